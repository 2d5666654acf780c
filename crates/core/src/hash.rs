//! SHA-256 values, printed and stored as lower-case hex.

use crate::encoding::{hex_digits, unhex};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};
use std::fmt;

/// A SHA-256 value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    pub const ZERO: Hash = Hash([0; 32]);

    /// Hashes the parts one after the other, without separators: the caller fixes their lengths.
    pub fn of(parts: &[&[u8]]) -> Hash {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Hash(hasher.finalize().into())
    }

    /// Hashes a list of texts so that no two different lists collide: each is preceded by its length.
    pub fn of_fields(domain: &str, fields: &[&[u8]]) -> Hash {
        let mut hasher = Sha256::new();
        for field in std::iter::once(&domain.as_bytes()).chain(fields) {
            hasher.update((field.len() as u64).to_be_bytes());
            hasher.update(field);
        }
        Hash(hasher.finalize().into())
    }

    pub fn parse(hex: &str) -> Option<Hash> {
        unhex(hex).map(Hash)
    }

    /// The 64 hex digits as ASCII.
    pub fn hex(&self) -> [u8; 64] {
        let mut text = [0; 64];
        for (pair, byte) in text.chunks_exact_mut(2).zip(self.0) {
            pair.copy_from_slice(&hex_digits(byte));
        }
        text
    }

    /// The first twelve hex digits, for people.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.hex()).expect("hex digits are ASCII"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Hash, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Hash::parse(&text).ok_or_else(|| de::Error::custom("expected 64 lower-case hex digits"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_survives_a_round_trip() {
        let hash = Hash::of(&[b"abc"]);
        assert_eq!(hash.to_string(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(Hash::parse(&hash.to_string()), Some(hash));
        assert_eq!(Hash::parse("BA"), None);
        assert_eq!(Hash::parse(&hash.to_string().to_uppercase()), None);
    }

    #[test]
    fn fields_do_not_run_into_each_other() {
        assert_ne!(Hash::of_fields("x", &[b"ab", b"c"]), Hash::of_fields("x", &[b"a", b"bc"]));
    }
}
