//! Encodes records as the bytes that are stored and hashed for ever, and decodes them.
//!
//! The format is compact JSON that begins with its version. The bytes include the tenant, the execution and
//! the sequence number, so that the hash covers everything about an entry.

mod payloads;

use super::event::{Event, EventRecord};
use super::payload::{self, Commitment, EventPayload, PayloadMismatch, PayloadSalt, SealedPayload};
use crate::actor::Actor;
use crate::hash::Hash;
use crate::id::{ExecutionId, TenantId};
use crate::time::Timestamp;
use memchr::memmem;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::convert::Infallible;

/// The format version that is written. Older versions are still read.
pub const VERSION: u32 = 1;

/// A record as it is stored, its payloads replaced by commitments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredRecord {
    v: u32,
    pub tenant: TenantId,
    pub execution: ExecutionId,
    pub seq: u64,
    pub at: Timestamp,
    pub actor: Actor,
    pub event: Event<Commitment>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("expected a record that begins with its format version, such as {{\"v\":1,")]
    NoVersion,
    #[error("format version {0} is not known: this program reads versions 1 to {VERSION}")]
    UnknownVersion(u64),
    #[error("not a record of format version {version}: {why}")]
    Malformed { version: u64, why: String },
}

/// An erased payload has no bytes that a new entry could commit to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an erased payload cannot go into a new entry")]
pub struct ErasedPayload;

impl StoredRecord {
    /// Separates the payloads from a record. Each gets its own salt, in the order of the event's fields.
    pub fn split(
        tenant: &TenantId,
        execution: &ExecutionId,
        seq: u64,
        record: &EventRecord,
        salts: &mut dyn FnMut() -> PayloadSalt,
    ) -> Result<(StoredRecord, Vec<SealedPayload>), ErasedPayload> {
        let mut payloads = Vec::new();
        let event = record.event.clone().try_map(&mut |payload: EventPayload| {
            let value = payload.value().ok_or(ErasedPayload)?;
            let sealed = SealedPayload::seal(value, salts());
            let commitment = sealed.commitment;
            payloads.push(sealed);
            Ok(commitment)
        })?;
        let (tenant, execution) = (tenant.clone(), execution.clone());
        let stored =
            StoredRecord { v: VERSION, tenant, execution, seq, at: record.at, actor: record.actor.clone(), event };
        Ok((stored, payloads))
    }

    /// Puts the payloads back into the record; one that is no longer stored was erased.
    pub fn open(self, find: &dyn Fn(Commitment) -> Option<SealedPayload>) -> Result<EventRecord, PayloadMismatch> {
        let event = self.event.try_map(&mut |commitment| payload::open(commitment, find(commitment).as_ref()))?;
        Ok(EventRecord { at: self.at, actor: self.actor, event })
    }

    /// Returns the commitments of the event, in the order of its fields.
    pub fn commitments(&self) -> Vec<Commitment> {
        let mut commitments = Vec::new();
        let Ok(_) = self.event.clone().try_map(&mut |commitment| {
            commitments.push(commitment);
            Ok::<_, Infallible>(())
        });
        commitments
    }

    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a stored record has only text keys and finite numbers")
    }
}

/// The envelope of stored bytes: everything but the event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryEnvelope<'a> {
    pub tenant: Cow<'a, str>,
    pub execution: Cow<'a, str>,
    pub seq: u64,
}

/// Reads the envelope of an entry. The event may be of a later program: checking hashes does not decode it.
pub fn envelope(bytes: &[u8]) -> Result<EntryEnvelope<'_>, Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct EnvelopeFields<'a> {
        #[serde(rename = "v")]
        _version: IgnoredAny,
        #[serde(borrow)]
        tenant: Cow<'a, str>,
        #[serde(borrow)]
        execution: Cow<'a, str>,
        seq: u64,
        #[serde(rename = "at")]
        _at: i64,
        #[serde(rename = "actor")]
        _actor: IgnoredAny,
        #[serde(rename = "event")]
        _event: IgnoredAny,
    }
    match version(bytes).ok_or(Error::NoVersion)? {
        1 => {
            let malformed = |error: serde_json::Error| Error::Malformed { version: 1, why: error.to_string() };
            let EnvelopeFields { tenant, execution, seq, .. } = serde_json::from_slice(bytes).map_err(malformed)?;
            Ok(EntryEnvelope { tenant, execution, seq })
        }
        unknown => Err(Error::UnknownVersion(unknown)),
    }
}

/// Returns the commitments in stored bytes, in their order there, without decoding the rest.
///
/// Inside a text every quotation mark is escaped, so what looks like a commitment is one.
pub fn commitments_in(bytes: &[u8]) -> Vec<Commitment> {
    const BEFORE: &[u8] = b"{\"payload\":\"";
    const HEX: usize = 64;
    let mut commitments = Vec::new();
    let mut rest = bytes;
    while let Some(at) = memmem::find(rest, BEFORE) {
        rest = &rest[at + BEFORE.len()..];
        let hex = rest.get(..HEX).and_then(|hex| std::str::from_utf8(hex).ok());
        commitments.extend(hex.and_then(Hash::parse).map(|hash| Commitment { hash }));
    }
    commitments
}

/// Decodes stored bytes of any known version into a record of the current version.
pub fn decode(bytes: &[u8]) -> Result<StoredRecord, Error> {
    match version(bytes).ok_or(Error::NoVersion)? {
        // A later format gets its own arm here, which upgrades the older shape.
        1 => serde_json::from_slice(bytes).map_err(|error| Error::Malformed { version: 1, why: error.to_string() }),
        unknown => Err(Error::UnknownVersion(unknown)),
    }
}

/// The version comes first, so that it can be read before anything else is known.
fn version(bytes: &[u8]) -> Option<u64> {
    let rest = bytes.strip_prefix(b"{\"v\":")?;
    let digits = &rest[..rest.iter().position(|&byte| byte == b',')?];
    let canonical = digits.first()? != &b'0' && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| canonical)?.parse().ok()
}

#[cfg(test)]
mod tests;
