//! Exports: a journal as one JSON object per line, with everything needed to verify it.
//!
//! docs/journal-format.md specifies the lines exactly. A line has one canonical form; the reader refuses
//! every other, so that no byte of an export can change unnoticed.

use super::chain::Entry;
use super::payload::{Commitment, PayloadSalt, SealedPayload};
use crate::hash::Hash;
use crate::id::{ExecutionId, TenantId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The format that is written and read.
pub const FORMAT: &str = "rutter-export/1";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportLine {
    /// The first line, and only that.
    Header(ExportHeader),
    Entry(EntryLine),
    /// An entry of an execution that was cleaned up: only its hash and its position are left.
    Removed(RemovedLine),
    Checkpoint(CheckpointLine),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportHeader {
    pub format: String,
    pub scope: ExportScope,
    pub tenant: TenantId,
    /// The ledger's name in its checkpoints.
    pub origin: String,
    /// The keys that signed the checkpoints. A reader should get them from a trusted source.
    pub keys: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExportScope {
    /// The whole ledger in order, each checkpoint right after the entries it covers.
    Ledger,
    /// Some executions; checkpoints come first, and each entry has a proof that one of them covers it.
    Executions,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryLine {
    pub execution: ExecutionId,
    pub seq: u64,
    /// The entry's index in the ledger, from 0; `null` while it has none.
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
    #[serde(rename = "kept")]
    Present {
        commitment: Hash,
        salt: PayloadSalt,
        bytes: String,
    },
    Erased {
        commitment: Hash,
    },
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

impl ExportLine {
    /// Writes the line with its line end.
    pub fn write(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        out.write_str(&self.text())?;
        out.write_char('\n')
    }

    /// Parses one line without its line end; refuses anything that [`ExportLine::write`] would not have written.
    pub fn parse(line: &[u8]) -> Result<ExportLine, String> {
        let parsed: ExportLine = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        match parsed.text().as_bytes() == line {
            true => Ok(parsed),
            false => Err("it is not in canonical form".to_owned()),
        }
    }

    fn text(&self) -> String {
        serde_json::to_string(self).expect("a line has only text keys and whole numbers")
    }
}

impl ExportHeader {
    pub fn new(scope: ExportScope, tenant: TenantId, origin: &str, keys: Vec<String>) -> ExportHeader {
        ExportHeader { format: FORMAT.to_owned(), scope, tenant, origin: origin.to_owned(), keys }
    }
}

impl EntryLine {
    /// Exports an entry as it is stored, even a damaged one: the verifier reports that.
    pub fn new(execution: ExecutionId, entry: &Entry, leaf: Option<u64>, payloads: Vec<PayloadLine>) -> EntryLine {
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
            Some(sealed) => PayloadLine::Present { commitment, salt: sealed.salt, bytes: text(&sealed.bytes) },
            None => PayloadLine::Erased { commitment },
        }
    }

    pub fn commitment(&self) -> Commitment {
        let (PayloadLine::Present { commitment, .. } | PayloadLine::Erased { commitment }) = self;
        Commitment { hash: *commitment }
    }
}

/// Stored bytes are JSON text. Invalid UTF-8 is replaced here, and the hash then no longer matches.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
