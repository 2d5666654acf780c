//! What was sent and what came back: stored apart from the entry, which only commits to it.
//!
//! The commitment is salted, so that a short or guessable payload cannot be found by trying, and erasing
//! the payload with its salt leaves a proof that says nothing about it.

use crate::hash::Hash;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A payload as an event carries it in memory.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload {
    Present(Arc<Value>),
    /// The bytes were erased on purpose; the commitment still stands in the journal.
    Erased,
}

impl Payload {
    pub fn new(value: Value) -> Payload {
        Payload::Present(Arc::new(value))
    }

    pub fn value(&self) -> Option<&Arc<Value>> {
        match self {
            Payload::Present(value) => Some(value),
            Payload::Erased => None,
        }
    }
}

/// Sixteen bytes nobody can guess, fresh for every payload.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Salt(pub [u8; 16]);

impl Salt {
    pub fn parse(hex: &str) -> Option<Salt> {
        let mut salt = [0; 16];
        let lower = hex.len() == 32 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        for (at, byte) in salt.iter_mut().enumerate().take_while(|_| lower) {
            *byte = u8::from_str_radix(hex.get(at * 2..at * 2 + 2)?, 16).ok()?;
        }
        lower.then_some(Salt(salt))
    }
}

impl fmt::Display for Salt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Salt {
    /// Keeps quiet: whoever knows the salt can test guesses of an erased payload.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Salt(…)")
    }
}

impl Serialize for Salt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Salt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Salt, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Salt::parse(&text).ok_or_else(|| de::Error::custom("expected 32 lower-case hex digits"))
    }
}

/// What the entry holds instead of the payload. Written `{"payload":"<64 hex digits>"}`, a shape nothing
/// else in an event has, so that a reader who knows no event can still find every commitment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commitment {
    #[serde(rename = "payload")]
    pub hash: Hash,
}

impl Commitment {
    pub fn to(salt: Salt, bytes: &[u8]) -> Commitment {
        Commitment { hash: Hash::of_fields("rutter/payload/v1", &[&salt.0, bytes]) }
    }
}

/// A payload as it is stored: the exact bytes, and what binds them to their entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedPayload {
    pub commitment: Commitment,
    pub salt: Salt,
    pub bytes: Arc<[u8]>,
}

/// The payload is not the one the entry committed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    #[error("the payload does not match commitment {}", .0.hash.short())]
    Bytes(Commitment),
    #[error("the payload of commitment {} is not JSON", .0.hash.short())]
    Json(Commitment),
}

impl SealedPayload {
    pub fn seal(value: &Value, salt: Salt) -> SealedPayload {
        let bytes = serde_json::to_vec(value).expect("a JSON value has only text keys");
        SealedPayload { commitment: Commitment::to(salt, &bytes), salt, bytes: bytes.into() }
    }

    /// Checks that these bytes are what `commitment` promised.
    pub fn check(&self, commitment: Commitment) -> Result<(), Wrong> {
        match commitment == self.commitment && commitment == Commitment::to(self.salt, &self.bytes) {
            true => Ok(()),
            false => Err(Wrong::Bytes(commitment)),
        }
    }
}

/// Returns the payload behind a commitment; none stored means it was erased.
pub fn open(commitment: Commitment, sealed: Option<&SealedPayload>) -> Result<Payload, Wrong> {
    let Some(sealed) = sealed else { return Ok(Payload::Erased) };
    sealed.check(commitment)?;
    let value = serde_json::from_slice(&sealed.bytes).map_err(|_| Wrong::Json(commitment))?;
    Ok(Payload::new(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_was_sealed_opens_and_what_was_not_does_not() {
        let value = json!({"amount": 12.5, "to": "Ada"});
        let sealed = SealedPayload::seal(&value, Salt([7; 16]));
        let commitment = sealed.commitment;
        assert_eq!(open(commitment, Some(&sealed)), Ok(Payload::new(value)));
        assert_eq!(open(commitment, None), Ok(Payload::Erased));

        let other = SealedPayload::seal(&json!("else"), Salt([7; 16]));
        assert_eq!(open(commitment, Some(&other)), Err(Wrong::Bytes(commitment)));
        let resalted = SealedPayload { salt: Salt([8; 16]), ..sealed.clone() };
        assert_eq!(open(commitment, Some(&resalted)), Err(Wrong::Bytes(commitment)));
        let altered = SealedPayload { bytes: b"{}".as_slice().into(), ..sealed };
        assert_eq!(open(commitment, Some(&altered)), Err(Wrong::Bytes(commitment)));
    }

    #[test]
    fn bytes_that_are_not_json_are_named_even_when_they_match() {
        let bytes: Arc<[u8]> = b"{".as_slice().into();
        let commitment = Commitment::to(Salt([1; 16]), &bytes);
        let sealed = SealedPayload { commitment, salt: Salt([1; 16]), bytes };
        assert_eq!(open(commitment, Some(&sealed)), Err(Wrong::Json(commitment)));
    }

    #[test]
    fn equal_payloads_have_different_commitments_under_different_salts() {
        let [a, b] = [1, 2].map(|salt| SealedPayload::seal(&json!(true), Salt([salt; 16])));
        assert_ne!(a.commitment, b.commitment);
    }

    #[test]
    fn the_commitment_is_the_one_the_format_describes() {
        // Lengths as eight bytes, big-endian, before the tag, the salt and the bytes.
        let mut input = Vec::new();
        for field in [b"rutter/payload/v1".as_slice(), &[9; 16], b"null"] {
            input.extend((field.len() as u64).to_be_bytes());
            input.extend(field);
        }
        assert_eq!(Commitment::to(Salt([9; 16]), b"null").hash, Hash::of(&[&input]));
    }

    #[test]
    fn salts_are_written_as_they_are_read() {
        let salt = Salt([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 250, 255]);
        assert_eq!(Salt::parse(&salt.to_string()), Some(salt));
        for text in ["", "00", "+0000000000000000000000000000000", "0102030405060708090A0B0C0D0E0F00", "é"] {
            assert_eq!(Salt::parse(text), None, "{text}");
        }
        assert_eq!(Salt::parse(&"é".repeat(16)), None);
        assert_eq!(format!("{salt:?}"), "Salt(…)");
    }
}
