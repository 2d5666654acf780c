//! Payloads, such as parameters and results: stored separately from the entry, which only commits to them.
//!
//! The commitment is salted, so that a short or guessable payload cannot be found by brute force, and erasing
//! the payload with its salt leaves a proof that reveals nothing about it.

use crate::encoding::{hex, unhex};
use crate::hash::Hash;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A payload of an event in memory.
#[derive(Clone, Debug, PartialEq)]
pub enum EventPayload {
    Present(Arc<Value>),
    /// The bytes were erased on purpose; the commitment is still in the journal.
    Erased,
}

impl EventPayload {
    pub fn new(value: Value) -> EventPayload {
        EventPayload::Present(Arc::new(value))
    }

    pub fn value(&self) -> Option<&Arc<Value>> {
        match self {
            EventPayload::Present(value) => Some(value),
            EventPayload::Erased => None,
        }
    }
}

/// Sixteen random bytes, fresh for every payload.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PayloadSalt(pub [u8; 16]);

impl PayloadSalt {
    pub fn parse(hex: &str) -> Option<PayloadSalt> {
        unhex(hex).map(PayloadSalt)
    }
}

impl fmt::Display for PayloadSalt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl fmt::Debug for PayloadSalt {
    /// Does not print the salt: with it, guesses of an erased payload could be tested.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PayloadSalt(…)")
    }
}

impl Serialize for PayloadSalt {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PayloadSalt {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PayloadSalt, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        PayloadSalt::parse(&text).ok_or_else(|| de::Error::custom("expected 32 lower-case hex digits"))
    }
}

/// The entry's commitment to a payload. Written `{"payload":"<64 hex digits>"}`, a form that nothing else
/// in an event has, so that commitments can be found without decoding the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commitment {
    #[serde(rename = "payload")]
    pub hash: Hash,
}

impl Commitment {
    pub fn to(salt: PayloadSalt, bytes: &[u8]) -> Commitment {
        Commitment { hash: Hash::of_fields("rutter/payload/v1", &[&salt.0, bytes]) }
    }
}

/// A payload as it is stored: the exact bytes, with the salt and the commitment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedPayload {
    pub commitment: Commitment,
    pub salt: PayloadSalt,
    pub bytes: Arc<[u8]>,
}

/// The payload does not match the entry's commitment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PayloadMismatch {
    #[error("the payload does not match commitment {}", .0.hash.short())]
    Bytes(Commitment),
    #[error("the payload of commitment {} is not JSON", .0.hash.short())]
    Json(Commitment),
}

impl SealedPayload {
    pub fn seal(value: &Value, salt: PayloadSalt) -> SealedPayload {
        let bytes = serde_json::to_vec(value).expect("a JSON value has only text keys");
        SealedPayload { commitment: Commitment::to(salt, &bytes), salt, bytes: bytes.into() }
    }

    /// Checks that these bytes match `commitment`.
    pub fn check(&self, commitment: Commitment) -> Result<(), PayloadMismatch> {
        match commitment == self.commitment && commitment == Commitment::to(self.salt, &self.bytes) {
            true => Ok(()),
            false => Err(PayloadMismatch::Bytes(commitment)),
        }
    }
}

/// Opens the payload of a commitment; `None` means that it was erased.
pub fn open(commitment: Commitment, sealed: Option<&SealedPayload>) -> Result<EventPayload, PayloadMismatch> {
    let Some(sealed) = sealed else { return Ok(EventPayload::Erased) };
    sealed.check(commitment)?;
    let value = serde_json::from_slice(&sealed.bytes).map_err(|_| PayloadMismatch::Json(commitment))?;
    Ok(EventPayload::new(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_sealed_bytes_open() {
        let value = json!({"amount": 12.5, "to": "Ada"});
        let sealed = SealedPayload::seal(&value, PayloadSalt([7; 16]));
        let commitment = sealed.commitment;
        assert_eq!(open(commitment, Some(&sealed)), Ok(EventPayload::new(value)));
        assert_eq!(open(commitment, None), Ok(EventPayload::Erased));

        let other = SealedPayload::seal(&json!("else"), PayloadSalt([7; 16]));
        assert_eq!(open(commitment, Some(&other)), Err(PayloadMismatch::Bytes(commitment)));
        let resalted = SealedPayload { salt: PayloadSalt([8; 16]), ..sealed.clone() };
        assert_eq!(open(commitment, Some(&resalted)), Err(PayloadMismatch::Bytes(commitment)));
        let altered = SealedPayload { bytes: b"{}".as_slice().into(), ..sealed };
        assert_eq!(open(commitment, Some(&altered)), Err(PayloadMismatch::Bytes(commitment)));
    }

    #[test]
    fn bytes_that_are_not_json_are_named_even_when_they_match() {
        let bytes: Arc<[u8]> = b"{".as_slice().into();
        let commitment = Commitment::to(PayloadSalt([1; 16]), &bytes);
        let sealed = SealedPayload { commitment, salt: PayloadSalt([1; 16]), bytes };
        assert_eq!(open(commitment, Some(&sealed)), Err(PayloadMismatch::Json(commitment)));
    }

    #[test]
    fn equal_payloads_have_different_commitments_under_different_salts() {
        let [a, b] = [1, 2].map(|salt| SealedPayload::seal(&json!(true), PayloadSalt([salt; 16])));
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
        assert_eq!(Commitment::to(PayloadSalt([9; 16]), b"null").hash, Hash::of(&[&input]));
    }

    #[test]
    fn salts_are_written_as_they_are_read() {
        let salt = PayloadSalt([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 250, 255]);
        assert_eq!(PayloadSalt::parse(&salt.to_string()), Some(salt));
        for text in ["", "00", "+0000000000000000000000000000000", "0102030405060708090A0B0C0D0E0F00", "é"] {
            assert_eq!(PayloadSalt::parse(text), None, "{text}");
        }
        assert_eq!(PayloadSalt::parse(&"é".repeat(16)), None);
        assert_eq!(format!("{salt:?}"), "PayloadSalt(…)");
    }
}
