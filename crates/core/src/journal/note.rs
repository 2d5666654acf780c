//! Signed notes as specified by C2SP: a text, a blank line, and signatures that name their keys.

use crate::encoding::hex;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ed25519_dalek::{Signature, Signer};
use sha2::{Digest, Sha256};
use std::fmt;

/// Larger than any note we write; a longer one is refused before it is parsed.
pub const NOTE_BYTES_MAX: usize = 64 << 10;
pub const SIGNATURES_MAX: usize = 16;

/// The only signature algorithm we sign and verify with.
const ED25519: u8 = 1;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("a key name is not empty and has no space, plus or control character")]
    KeyName,
    #[error("expected a key as name+8 hex digits+base64")]
    KeyForm,
    #[error("the key's id is not that of its name and bytes")]
    KeyId,
    #[error("not an ed25519 public key")]
    Key,
    #[error("a note's text ends with a new line and has no other control character")]
    Text,
    #[error("expected a text, a blank line and signatures")]
    Form,
    #[error("expected a signature as \u{2014} name base64")]
    SignatureForm,
    #[error("a note has at most {SIGNATURES_MAX} signatures and {NOTE_BYTES_MAX} bytes")]
    TooLarge,
    #[error("a signature does not match its key")]
    BadSignature,
    #[error("no known key has signed it")]
    Unsigned,
}

/// A private key and its name.
#[derive(Clone)]
pub struct SigningKey {
    name: String,
    secret: ed25519_dalek::SigningKey,
}

/// A public key and its name. Written `name+8 hex digits+base64`.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    id: [u8; 4],
    key: ed25519_dalek::VerifyingKey,
}

/// A text and its signatures, not yet verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedNote {
    text: String,
    signatures: Vec<NoteSignature>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct NoteSignature {
    name: String,
    /// The key's id, then the signature itself; other algorithms have other lengths.
    bytes: Vec<u8>,
}

impl SigningKey {
    pub fn new(name: &str, seed: [u8; 32]) -> Result<SigningKey, Error> {
        check_name(name)?;
        Ok(SigningKey { name: name.to_owned(), secret: ed25519_dalek::SigningKey::from_bytes(&seed) })
    }

    pub fn verifier(&self) -> VerifierKey {
        let key = self.secret.verifying_key();
        VerifierKey { name: self.name.clone(), id: key_id(&self.name, key.as_bytes()), key }
    }

    pub fn sign(&self, text: &str) -> Result<SignedNote, Error> {
        check_text(text)?;
        let mut bytes = self.verifier().id.to_vec();
        bytes.extend(self.secret.sign(text.as_bytes()).to_bytes());
        let signature = NoteSignature { name: self.name.clone(), bytes };
        Ok(SignedNote { text: text.to_owned(), signatures: vec![signature] })
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.name)
    }
}

impl VerifierKey {
    pub fn parse(text: &str) -> Result<VerifierKey, Error> {
        let mut fields = text.splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(Error::KeyForm);
        };
        check_name(name)?;
        let bytes = BASE64_STANDARD.decode(key).map_err(|_| Error::KeyForm)?;
        let Some((&ED25519, key)) = bytes.split_first() else { return Err(Error::Key) };
        let key: [u8; 32] = key.try_into().map_err(|_| Error::Key)?;
        let found = key_id(name, &key);
        if id != hex(&found) {
            return Err(Error::KeyId);
        }
        let key = ed25519_dalek::VerifyingKey::from_bytes(&key).map_err(|_| Error::Key)?;
        match key.is_weak() {
            true => Err(Error::Key),
            false => Ok(VerifierKey { name: name.to_owned(), id: found, key }),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = [&[ED25519], self.key.as_bytes().as_slice()].concat();
        write!(f, "{}+{}+{}", self.name, hex(&self.id), BASE64_STANDARD.encode(key))
    }
}

impl fmt::Debug for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl SignedNote {
    /// The text, without a check of the signatures.
    pub fn unverified_text(&self) -> &str {
        &self.text
    }

    pub fn parse(note: &str) -> Result<SignedNote, Error> {
        if note.len() > NOTE_BYTES_MAX {
            return Err(Error::TooLarge);
        }
        // The last blank line is the separator; an earlier one belongs to the text.
        let middle = note.rfind("\n\n").ok_or(Error::Form)?;
        let (text, signatures) = (&note[..middle + 1], &note[middle + 2..]);
        check_text(text)?;
        let lines = signatures.strip_suffix('\n').ok_or(Error::Form)?;
        let signatures = lines
            .split('\n')
            .take(SIGNATURES_MAX + 1)
            .map(NoteSignature::parse)
            .collect::<Result<Vec<NoteSignature>, Error>>()?;
        match signatures.len() > SIGNATURES_MAX {
            true => Err(Error::TooLarge),
            false => Ok(SignedNote { text: text.to_owned(), signatures }),
        }
    }

    /// Returns the text if a known key signed it. Unknown keys are ignored, as C2SP requires, but a wrong
    /// signature of a known key invalidates the note.
    pub fn verify(&self, keys: &[VerifierKey]) -> Result<&str, Error> {
        let mut signed = false;
        for signature in &self.signatures {
            let Some((id, bytes)) = signature.bytes.split_at_checked(4) else {
                return Err(Error::SignatureForm);
            };
            let Some(key) = keys.iter().find(|key| key.name == signature.name && key.id == id) else {
                continue;
            };
            let bytes: &[u8; 64] = bytes.try_into().map_err(|_| Error::BadSignature)?;
            let signature = Signature::from_bytes(bytes);
            key.key.verify_strict(self.text.as_bytes(), &signature).map_err(|_| Error::BadSignature)?;
            signed = true;
        }
        signed.then_some(self.text.as_str()).ok_or(Error::Unsigned)
    }
}

impl fmt::Display for SignedNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.text)?;
        self.signatures.iter().try_for_each(|signature| {
            writeln!(f, "\u{2014} {} {}", signature.name, BASE64_STANDARD.encode(&signature.bytes))
        })
    }
}

impl NoteSignature {
    fn parse(line: &str) -> Result<NoteSignature, Error> {
        let (name, base64) =
            line.strip_prefix("\u{2014} ").and_then(|rest| rest.split_once(' ')).ok_or(Error::SignatureForm)?;
        check_name(name)?;
        let bytes = BASE64_STANDARD.decode(base64).map_err(|_| Error::SignatureForm)?;
        match bytes.len() > 4 {
            true => Ok(NoteSignature { name: name.to_owned(), bytes }),
            false => Err(Error::SignatureForm),
        }
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    let fine = |c: char| !c.is_whitespace() && !c.is_control() && c != '+';
    (!name.is_empty() && name.chars().all(fine)).then_some(()).ok_or(Error::KeyName)
}

fn check_text(text: &str) -> Result<(), Error> {
    let fine = text.ends_with('\n') && text.bytes().all(|byte| byte >= b' ' || byte == b'\n');
    fine.then_some(()).ok_or(Error::Text)
}

fn key_id(name: &str, key: &[u8; 32]) -> [u8; 4] {
    let hash: [u8; 32] =
        Sha256::new().chain_update(name).chain_update([b'\n', ED25519]).chain_update(key).finalize().into();
    [hash[0], hash[1], hash[2], hash[3]]
}

#[cfg(test)]
mod tests;
