//! SHA-256 values, printed and stored as lower-case hex.

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
        let hex = hex.as_bytes();
        let mut bytes = [0; 32];
        if hex.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks_exact(2)) {
            *byte = digit(pair[0])? << 4 | digit(pair[1])?;
        }
        Some(Hash(bytes))
    }

    /// The 64 hex digits as ASCII.
    pub fn hex(&self) -> [u8; 64] {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = [0; 64];
        for (at, byte) in self.0.iter().enumerate() {
            text[at * 2] = DIGITS[usize::from(byte >> 4)];
            text[at * 2 + 1] = DIGITS[usize::from(byte & 15)];
        }
        text
    }

    /// The first twelve hex digits, for people.
    pub fn short(&self) -> String {
        self.to_string()[..12].to_owned()
    }
}

fn digit(hex: u8) -> Option<u8> {
    match hex {
        b'0'..=b'9' => Some(hex - b'0'),
        b'a'..=b'f' => Some(hex - b'a' + 10),
        _ => None,
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
    fn hex_goes_there_and_back() {
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
