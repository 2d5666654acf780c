//! A journal written for somebody else: one JSON object per line, with all that is needed to check it.
//!
//! docs/journal-format.md describes the lines exactly. A line has one way to be written; the reader refuses
//! every other, so that no byte of an export can change unnoticed.

use super::chain::Entry;
use super::payload::{Commitment, Salt, SealedPayload};
use crate::hash::Hash;
use crate::id::{ExecutionId, TenantId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The format that is written and read.
pub const FORMAT: &str = "rutter-export/1";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// The first line, and only that.
    Header(Header),
    Entry(EntryLine),
    /// An entry of an execution that was cleaned up: only its hash is left, and holds its place.
    Removed(RemovedLine),
    Checkpoint(CheckpointLine),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    pub format: String,
    pub scope: Scope,
    pub tenant: TenantId,
    /// The ledger's name in its checkpoints.
    pub origin: String,
    /// The keys that signed the checkpoints. A reader who wants to be sure knows them from elsewhere.
    pub keys: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// The whole ledger in order, each checkpoint right behind the entries it covers.
    Ledger,
    /// Some executions; checkpoints come first, and each entry brings a proof that one of them covers it.
    Executions,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryLine {
    pub execution: ExecutionId,
    pub seq: u64,
    /// The entry's place in the ledger, counted from 0; `null` while it has none.
    pub leaf: Option<u64>,
    pub prev: Hash,
    pub hash: Hash,
    /// The exact bytes that were hashed, as text.
    pub bytes: String,
    pub payloads: Vec<PayloadLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<InclusionLine>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum PayloadLine {
    Kept { commitment: Hash, salt: Salt, bytes: String },
    Erased { commitment: Hash },
}

/// Proves that the entry is in the tree of the checkpoint with this size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InclusionLine {
    pub size: u64,
    pub path: Vec<Hash>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RemovedLine {
    pub leaf: u64,
    pub hash: Hash,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CheckpointLine {
    /// The signed note.
    pub note: String,
    /// Proves that it continues the checkpoint before it; empty for the first.
    pub consistency: Vec<Hash>,
}

impl Line {
    /// Writes the line with its line end.
    pub fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        out.write_str(&self.text())?;
        out.write_char('\n')
    }

    /// Reads one line without its line end; refuses anything that [`Line::write`] would not have written.
    pub fn parse(line: &[u8]) -> Result<Line, String> {
        let parsed: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        match parsed.text().as_bytes() == line {
            true => Ok(parsed),
            false => Err("it is not written the one way a line is written".to_owned()),
        }
    }

    fn text(&self) -> String {
        serde_json::to_string(self).expect("a line has only text keys and whole numbers")
    }
}

impl Header {
    pub fn new(scope: Scope, tenant: TenantId, origin: &str, keys: Vec<String>) -> Header {
        Header { format: FORMAT.to_owned(), scope, tenant, origin: origin.to_owned(), keys }
    }
}

impl EntryLine {
    /// Writes an entry down as it is stored, even when it is damaged: the reader is to find that out.
    pub fn new(
        execution: ExecutionId,
        entry: &Entry,
        leaf: Option<u64>,
        payloads: Vec<PayloadLine>,
    ) -> EntryLine {
        let Entry { seq, ref bytes, prev, hash } = *entry;
        EntryLine { execution, seq, leaf, prev, hash, bytes: text(bytes), payloads, proof: None }
    }

    pub fn entry(&self) -> Entry {
        let bytes: Arc<[u8]> = self.bytes.as_bytes().into();
        Entry { seq: self.seq, bytes, prev: self.prev, hash: self.hash }
    }
}

impl PayloadLine {
    pub fn new(commitment: Commitment, sealed: Option<&SealedPayload>) -> PayloadLine {
        let commitment = commitment.hash;
        match sealed {
            Some(sealed) => PayloadLine::Kept { commitment, salt: sealed.salt, bytes: text(&sealed.bytes) },
            None => PayloadLine::Erased { commitment },
        }
    }

    pub fn commitment(&self) -> Commitment {
        let (PayloadLine::Kept { commitment, .. } | PayloadLine::Erased { commitment }) = self;
        Commitment { hash: *commitment }
    }
}

/// What we store is JSON text. Bytes that no longer are become other bytes here, which their hash will show.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
