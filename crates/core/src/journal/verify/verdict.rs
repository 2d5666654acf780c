//! The result of a verification, with messages for people.

use crate::id::ExecutionId;
use crate::journal::{chain, checkpoint};
use std::fmt;

/// The result: clean when there is no fault. `assurance` says how much that is worth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerificationReport {
    /// The first fault.
    pub fault: Option<VerificationFault>,
    pub assurance: Assurance,
    pub lines: u64,
    pub entries: u64,
    pub executions: u64,
    pub checkpoints: u64,
    /// Payloads that are missing, whether by request or by tampering: the journal cannot tell.
    pub erased: u64,
    /// Entries of executions that were cleaned up; their hashes remain.
    pub removed: u64,
    /// Entries that a checkpoint signed by a trusted key covers.
    pub protected: u64,
}

/// How much a clean verdict is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assurance {
    /// V0: the entries agree with each other.
    #[default]
    ChainOnly,
    /// V1: and with checkpoints signed by a key the reader trusts.
    Signed,
    /// V2: and with a checkpoint or receipt stored outside the ledger.
    Compared,
}

/// A fault and its line, counted from 1, with the entry if the line has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerificationFault {
    pub line: u64,
    pub entry: Option<(ExecutionId, u64)>,
    pub why: FaultReason,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultReason {
    #[error("the line cannot be read: {0}")]
    Line(String),
    #[error("{0}")]
    Order(&'static str),
    #[error("the format is {0:?}, which this program does not read")]
    Format(String),
    #[error("the export's key cannot be used: {0}")]
    Key(String),
    #[error(transparent)]
    Entry(#[from] chain::EntryDefect),
    #[error("its payloads do not match its commitments")]
    PayloadList,
    #[error("it is at position {found} of the ledger, expected {expected}")]
    Leaf { expected: u64, found: u64 },
    #[error("its inclusion proof does not hold")]
    Proof,
    #[error("the checkpoint cannot be trusted: {0}")]
    Checkpoint(checkpoint::Error),
    #[error("the checkpoint covers {says} entries, but {entries} come before it")]
    CheckpointSize { says: u64, entries: u64 },
    #[error("the entries at positions {from} to {to} of the ledger are not the ones that were signed")]
    Root { from: u64, to: u64 },
    #[error("the checkpoint is not proven to continue the one before it")]
    Consistency,
    #[error("the external checkpoint cannot be trusted: {0}")]
    OutsideCheckpoint(checkpoint::Error),
    #[error("the first {size} entries are not those of the external checkpoint")]
    OutsideRoot { size: u64 },
    #[error("the export ends after {entries} entries, but the external checkpoint covers {checkpoint_size}")]
    Truncated { checkpoint_size: u64, entries: u64 },
    #[error("the export has no checkpoint of {checkpoint_size} entries to compare with the external one")]
    NotComparable { checkpoint_size: u64 },
    #[error("the receipt is of another tenant")]
    ReceiptTenant,
    #[error("it is not the entry of the receipt")]
    ReceiptDiffers,
    #[error("entry {seq} of {execution}, for which there is a receipt, is not in the export")]
    ReceiptMissing { execution: ExecutionId, seq: u64 },
}

impl VerificationReport {
    pub fn is_clean(&self) -> bool {
        self.fault.is_none()
    }

    /// Entries that could be truncated or rewritten without a trace in the signatures.
    pub fn unprotected(&self) -> u64 {
        (self.entries + self.removed).saturating_sub(self.protected)
    }
}

impl fmt::Display for VerificationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(fault) = &self.fault {
            return write!(f, "{fault}");
        }
        let VerificationReport { entries, executions, checkpoints, erased, .. } = self;
        let count = |n: u64, one: &str, many: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {many}") };
        let entries = count(*entries, "entry", "entries");
        let executions = count(*executions, "execution", "executions");
        let checkpoints = count(*checkpoints, "checkpoint", "checkpoints");
        write!(f, "{entries} of {executions} and {checkpoints} are intact")?;
        if *erased > 0 {
            write!(f, ", {erased} payloads erased")?;
        }
        if self.removed > 0 {
            write!(f, ", {} entries removed", self.removed)?;
        }
        write!(f, "; {}", self.assurance)?;
        if self.assurance > Assurance::ChainOnly && self.unprotected() > 0 {
            write!(f, "; {} entries are not yet covered by a checkpoint", self.unprotected())?;
        }
        Ok(())
    }
}

impl fmt::Display for Assurance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Assurance::ChainOnly => {
                "V0, chain only: a change, insertion, deletion or reordering would show, \
                 a rewrite with new hashes or truncation would not"
            }
            Assurance::Signed => {
                "V1, signed: a rewrite would show too, unless the key was stolen; truncation would not"
            }
            Assurance::Compared => {
                "V2, compared with an external checkpoint or receipt: a rewrite or truncation up to it would show"
            }
        })
    }
}

impl fmt::Display for VerificationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if let Some((execution, seq)) = &self.entry {
            write!(f, "entry {seq} of {execution}: ")?;
        }
        write!(f, "{}", self.why)
    }
}
