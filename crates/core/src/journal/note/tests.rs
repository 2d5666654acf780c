//! Notes against the published example of Go's note package, and against everything that is not a note.

use super::*;
use proptest::prelude::*;

const TEXT: &str =
    "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const VKEY: &str = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const SEED: &str = "gQoUAtUUbI2E8kQzMPVAgOv5juF9nHT2JS/F1ccoMXM=";
const SIGNATURE: &str = "\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";

fn peter() -> SigningKey {
    SigningKey::new("PeterNeumann", BASE64_STANDARD.decode(SEED).unwrap().try_into().unwrap()).unwrap()
}

fn other() -> SigningKey {
    SigningKey::new("other", [5; 32]).unwrap()
}

#[test]
fn keys_and_signatures_are_the_published_ones() {
    assert_eq!(peter().verifier().to_string(), VKEY);
    assert_eq!(VerifierKey::parse(VKEY), Ok(peter().verifier()));
    let note = peter().sign(TEXT).unwrap();
    assert_eq!(note.to_string(), format!("{TEXT}\n{SIGNATURE}"));
    assert_eq!(SignedNote::parse(&note.to_string()).unwrap().verify(&[peter().verifier()]), Ok(TEXT));
}

#[test]
fn only_known_keys_count_and_theirs_must_hold() {
    let keys = [peter().verifier()];
    let verify = |note: &str| SignedNote::parse(note).unwrap().verify(&keys).map(str::to_owned);
    let stranger = other().sign(TEXT).unwrap().to_string().split_off(TEXT.len() + 1);
    assert_eq!(verify(&format!("{TEXT}\n{stranger}{SIGNATURE}")), Ok(TEXT.to_owned()));
    assert_eq!(verify(&format!("{TEXT}\n{stranger}")), Err(Error::Unsigned));
    assert_eq!(verify(&format!("{TEXT}More.\n\n{SIGNATURE}")), Err(Error::BadSignature));
    // The same name with another key is another key.
    let namesake = SigningKey::new("PeterNeumann", [6; 32]).unwrap().sign(TEXT).unwrap();
    assert_eq!(namesake.verify(&keys), Err(Error::Unsigned));
}

#[test]
fn invalid_notes_are_refused() {
    let many = format!("{TEXT}\n{}", SIGNATURE.repeat(SIGNATURES_MAX + 1));
    let long = format!("{}\n\n{SIGNATURE}", "x".repeat(NOTE_BYTES_MAX));
    for (note, error) in [
        ("", Error::Form),
        ("text\n", Error::Form),
        ("\n\n", Error::Form),
        ("text\n\n", Error::Form),
        ("text\n\n\n", Error::Form),
        ("te\rxt\n\n\u{2014} a AAAAAAA=\n", Error::Text),
        ("text\n\n\u{2014} a AAAAAAA=", Error::Form),
        ("text\n\n- a AAAAAAA=\n", Error::SignatureForm),
        ("text\n\n\u{2014} a+b AAAAAAA=\n", Error::KeyName),
        ("text\n\n\u{2014}  AAAAAAA=\n", Error::KeyName),
        ("text\n\n\u{2014} a AAAAAAA\n", Error::SignatureForm),
        ("text\n\n\u{2014} a AAAAAAB=\n", Error::SignatureForm),
        ("text\n\n\u{2014} a AAAA\n", Error::SignatureForm),
        (&many, Error::TooLarge),
        (&long, Error::TooLarge),
    ] {
        assert_eq!(SignedNote::parse(note), Err(error), "{note:.80}");
    }
    for name in ["", "a b", "a+b", "a\nb", "a\u{2003}b"] {
        assert_eq!(SigningKey::new(name, [0; 32]).map(|_| ()), Err(Error::KeyName), "{name:?}");
    }
    for text in ["", "no end", "bell\u{7}\n"] {
        assert_eq!(peter().sign(text), Err(Error::Text), "{text:?}");
    }
}

#[test]
fn invalid_keys_are_refused() {
    // A point of small order would let one signature fit many texts.
    let weak = BASE64_STANDARD.encode([&[1_u8, 1][..], &[0; 31]].concat());
    let weak_id = hex(&key_id("w", &[&[1][..], &[0; 31]].concat().try_into().unwrap()));
    for (key, error) in [
        ("", Error::KeyForm),
        ("name", Error::KeyForm),
        ("name+c74f20a3", Error::KeyForm),
        ("+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", Error::KeyName),
        ("PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", Error::KeyId),
        ("PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", Error::KeyId),
        ("PeterNeumann+c74f20a3+AhpcgQcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW", Error::Key),
        ("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10T", Error::KeyForm),
        ("PeterNeumann+c74f20a3+ARpc", Error::Key),
        ("PeterNeumann+c74f20a3+", Error::Key),
        (&format!("w+{weak_id}+{weak}"), Error::Key),
    ] {
        assert_eq!(VerifierKey::parse(key), Err(error), "{key}");
    }
}

#[test]
fn the_secret_is_not_printed() {
    assert_eq!(format!("{:?}", peter()), "SigningKey(PeterNeumann)");
}

proptest! {
    #[test]
    fn any_flipped_bit_spoils_the_note(bit in 0..(TEXT.len() + 1 + SIGNATURE.len()) * 8) {
        let mut bytes = format!("{TEXT}\n{SIGNATURE}").into_bytes();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let verified = std::str::from_utf8(&bytes).ok()
            .and_then(|text| SignedNote::parse(text).ok())
            .is_some_and(|note| note.verify(&[peter().verifier()]).is_ok());
        prop_assert!(!verified);
    }

    #[test]
    fn arbitrary_text_is_refused_or_written_back_as_it_was(text in "[\\PC\n]{0,80}(\n\n)?(\u{2014} [a-z]{1,3} [A-Za-z0-9+/]{8}\n){0,3}") {
        if let Ok(note) = SignedNote::parse(&text) {
            prop_assert_eq!(note.to_string(), text);
        }
    }

    #[test]
    fn arbitrary_keys_are_refused_or_written_back_as_they_were(text in "\\PC{0,9}\\+[0-9a-f]{8}\\+[A-Za-z0-9+/]{44}") {
        if let Ok(key) = VerifierKey::parse(&text) {
            prop_assert_eq!(key.to_string(), text);
        }
    }
}
