//! Signatures of the Standard Webhooks specification, by which a receiver verifies the sender of an event.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rutter_core::hash::Hash;

const PREFIX: &str = "whsec_";
const SECRET_BYTES: usize = 32;
const BLOCK_BYTES: usize = 64;

/// A random secret, in the form the receiver gets it.
pub fn fresh_secret() -> String {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).expect("the system provides random bytes");
    format!("{PREFIX}{}", BASE64_STANDARD.encode(bytes))
}

/// The value of `webhook-signature`: one signature per secret.
pub fn signatures<'a>(secrets: impl IntoIterator<Item = &'a str>, id: &str, seconds: i64, body: &[u8]) -> String {
    let head = format!("{id}.{seconds}.");
    let signature = |secret: &str| {
        let key = BASE64_STANDARD.decode(secret.strip_prefix(PREFIX).unwrap_or(secret)).unwrap_or_default();
        format!("v1,{}", BASE64_STANDARD.encode(authentication(&key, &[head.as_bytes(), body]).0))
    };
    secrets.into_iter().map(signature).collect::<Vec<_>>().join(" ")
}

/// HMAC-SHA-256 (RFC 2104).
fn authentication(key: &[u8], message: &[&[u8]]) -> Hash {
    let mut block = [0; BLOCK_BYTES];
    if key.len() > BLOCK_BYTES {
        block[..32].copy_from_slice(&Hash::of(&[key]).0);
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let (inner, outer) = (block.map(|byte| byte ^ 0x36), block.map(|byte| byte ^ 0x5c));
    let parts: Vec<&[u8]> = std::iter::once(&inner[..]).chain(message.iter().copied()).collect();
    Hash::of(&[&outer, &Hash::of(&parts).0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_example_is_signed_as_published() {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let signed = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        let sign = |secrets: &[&'static str]| {
            let secrets = secrets.iter().copied();
            signatures(secrets, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#)
        };
        assert_eq!(sign(&[secret]), signed);
        let both = sign(&[secret, "whsec_b3RoZXI="]);
        assert!(both.starts_with(&format!("{signed} v1,")) && both.len() > signed.len() * 2, "{both}");
    }

    #[test]
    fn authentication_is_that_of_rfc_4231() {
        for (key, message, expected) in [
            (&[0x0b; 20][..], &b"Hi There"[..], "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                b"Jefe",
                b"what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
            (
                &[0xaa; 131],
                b"Test Using Larger Than Block-Size Key - Hash Key First",
                "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
            ),
        ] {
            assert_eq!(authentication(key, &[message]).to_string(), expected);
        }
    }

    #[test]
    fn no_two_secrets_are_the_same() {
        let secret = fresh_secret();
        assert_ne!(secret, fresh_secret());
        assert_eq!(BASE64_STANDARD.decode(&secret[PREFIX.len()..]).unwrap().len(), SECRET_BYTES);
    }
}
