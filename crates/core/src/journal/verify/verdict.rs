//! What a check found, in words for the person who asked for it.

use crate::id::ExecutionId;
use crate::journal::{chain, checkpoint};
use std::fmt;

/// The answer. Clean when there is no fault; then `assurance` says how much that is worth.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The first thing that is wrong.
    pub fault: Option<Fault>,
    pub assurance: Assurance,
    pub lines: u64,
    pub entries: u64,
    pub executions: u64,
    pub checkpoints: u64,
    /// Payloads that were erased on purpose, or by somebody: the journal cannot tell.
    pub erased: u64,
    /// Entries of executions that were cleaned up: their hashes hold their places.
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
    /// V1: and with checkpoints that a key the reader trusts has signed.
    Signed,
    /// V2: and with a checkpoint or receipt that was kept elsewhere.
    Compared,
}

/// Where and what. The line counts from 1; the entry is named where there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub line: u64,
    pub entry: Option<(ExecutionId, u64)>,
    pub why: Why,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Why {
    #[error("the line cannot be read: {0}")]
    Line(String),
    #[error("{0}")]
    Order(&'static str),
    #[error("the format is {0:?}, which this program does not read")]
    Format(String),
    #[error("the export's key cannot be used: {0}")]
    Key(String),
    #[error(transparent)]
    Entry(#[from] chain::Why),
    #[error("its payloads are not the ones it commits to")]
    PayloadList,
    #[error("it is at place {found} of the ledger, where {expected} was expected")]
    Leaf { expected: u64, found: u64 },
    #[error("its inclusion proof does not hold")]
    Proof,
    #[error("the checkpoint cannot be trusted: {0}")]
    Checkpoint(checkpoint::Error),
    #[error("the checkpoint covers {says} entries, but {entries} stand before it")]
    CheckpointSize { says: u64, entries: u64 },
    #[error("the entries at places {from} to {to} of the ledger are not the ones that were signed")]
    Root { from: u64, to: u64 },
    #[error("the checkpoint is not proven to continue the one before it")]
    Consistency,
    #[error("the checkpoint kept elsewhere cannot be trusted: {0}")]
    OutsideCheckpoint(checkpoint::Error),
    #[error("the first {size} entries are not those of the checkpoint kept elsewhere")]
    OutsideRoot { size: u64 },
    #[error("the export ends after {entries} entries, but a checkpoint kept elsewhere covers {kept}")]
    Truncated { kept: u64, entries: u64 },
    #[error("the export has no checkpoint of {kept} entries to compare the one kept elsewhere with")]
    NotComparable { kept: u64 },
    #[error("the receipt is of another tenant")]
    ReceiptTenant,
    #[error("it is not the entry the receipt was given for")]
    ReceiptDiffers,
    #[error("entry {seq} of {execution}, for which there is a receipt, is not in the export")]
    ReceiptMissing { execution: ExecutionId, seq: u64 },
}

impl Verdict {
    pub fn is_clean(&self) -> bool {
        self.fault.is_none()
    }

    /// Entries that could have been cut off or rewritten without a trace in the signatures.
    pub fn unprotected(&self) -> u64 {
        (self.entries + self.removed).saturating_sub(self.protected)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(fault) = &self.fault {
            return write!(f, "{fault}");
        }
        let Verdict { entries, executions, checkpoints, erased, .. } = self;
        let count =
            |n: u64, one: &str, many: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {many}") };
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
                 a rewrite with new hashes or a cut end would not"
            }
            Assurance::Signed => {
                "V1, signed: a rewrite would show too, unless the key was stolen; a cut end would not"
            }
            Assurance::Compared => {
                "V2, compared with what was kept elsewhere: a rewrite or cut end would show up to there"
            }
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: ", self.line)?;
        if let Some((execution, seq)) = &self.entry {
            write!(f, "entry {seq} of {execution}: ")?;
        }
        write!(f, "{}", self.why)
    }
}
