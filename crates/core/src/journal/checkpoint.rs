//! Checkpoints, the signed heads of a tenant's ledger: its size and its root, in C2SP's format.

use super::merkle;
use super::note::{self, SignedNote, SigningKey, VerifierKey};
use crate::hash::Hash;
use crate::time::Timestamp;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use std::fmt;

/// The prefix of the extension line with the time, in milliseconds since 1970.
const TIME: &str = "time ";

/// A checkpoint. Its text is `origin`, `size`, `root` and the extensions, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The ledger's name; a restored or forked ledger gets another one.
    pub origin: String,
    pub size: u64,
    pub root: Hash,
    pub extensions: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("expected an origin, a size and a base64 root on three lines")]
    Form,
    #[error("it belongs to ledger {found:?}, not {expected:?}")]
    Origin { expected: String, found: String },
    #[error(transparent)]
    Note(#[from] note::Error),
}

impl Checkpoint {
    pub fn new(origin: &str, size: u64, root: Hash, at: Timestamp) -> Checkpoint {
        let extensions = vec![format!("{TIME}{}", at.0)];
        Checkpoint { origin: origin.to_owned(), size, root, extensions }
    }

    pub fn time(&self) -> Option<Timestamp> {
        let text = self.extensions.iter().find_map(|line| line.strip_prefix(TIME))?;
        text.parse().ok().map(Timestamp)
    }

    pub fn parse(text: &str) -> Result<Checkpoint, Error> {
        let mut lines = text.strip_suffix('\n').ok_or(Error::Form)?.split('\n');
        let (Some(origin), Some(size), Some(root)) = (lines.next(), lines.next(), lines.next()) else {
            return Err(Error::Form);
        };
        let extensions: Vec<String> = lines.map(str::to_owned).collect();
        if origin.is_empty() || extensions.iter().any(String::is_empty) {
            return Err(Error::Form);
        }
        let canonical = size == "0" || (!size.starts_with('0') && size.bytes().all(|byte| byte.is_ascii_digit()));
        let size = size.parse().ok().filter(|_| canonical).ok_or(Error::Form)?;
        let root = BASE64_STANDARD.decode(root).ok().and_then(|root| root.try_into().ok()).ok_or(Error::Form)?;
        Ok(Checkpoint { origin: origin.to_owned(), size, root: Hash(root), extensions })
    }

    /// Reads a note that a known key signed for this ledger.
    pub fn open(note: &str, origin: &str, keys: &[VerifierKey]) -> Result<Checkpoint, Error> {
        let note = SignedNote::parse(note)?;
        let checkpoint = Checkpoint::parse(note.verify(keys)?)?;
        if checkpoint.origin != origin {
            return Err(Error::Origin { expected: origin.to_owned(), found: checkpoint.origin });
        }
        Ok(checkpoint)
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}\n{}\n{}", self.origin, self.size, BASE64_STANDARD.encode(self.root.0))?;
        self.extensions.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Guards the signing key: it never signs two checkpoints that contradict each other.
#[derive(Clone, Debug)]
pub struct CheckpointGuard {
    last: Option<Checkpoint>,
}

/// Why a checkpoint is not signed. Each means that the ledger does not continue the one signed before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointRefusal {
    #[error("the last checkpoint is of ledger {last:?}, this one of {next:?}")]
    OtherLedger { last: String, next: String },
    #[error("the last checkpoint has {last} entries, this one only {next}")]
    Shrunk { last: u64, next: u64 },
    #[error("the last checkpoint has the same {size} entries, but another root")]
    Forked { size: u64 },
    #[error("the consistency proof from {last} to {next} entries does not hold")]
    Inconsistent { last: u64, next: u64 },
    #[error("the checkpoint cannot be read back as it would be written")]
    Unreadable,
    #[error(transparent)]
    Note(#[from] note::Error),
}

impl CheckpointGuard {
    /// `last` is the newest checkpoint this key signed for the ledger, wherever it is stored.
    pub fn new(last: Option<Checkpoint>) -> CheckpointGuard {
        CheckpointGuard { last }
    }

    pub fn last(&self) -> Option<&Checkpoint> {
        self.last.as_ref()
    }

    /// Signs `next` if it continues the last checkpoint, which `consistency` must prove.
    pub fn sign(
        &mut self,
        key: &SigningKey,
        next: Checkpoint,
        consistency: &[Hash],
    ) -> Result<SignedNote, CheckpointRefusal> {
        if let Some(last) = &self.last {
            if last.origin != next.origin {
                return Err(CheckpointRefusal::OtherLedger { last: last.origin.clone(), next: next.origin });
            }
            if next.size < last.size {
                return Err(CheckpointRefusal::Shrunk { last: last.size, next: next.size });
            }
            if next.size == last.size && next.root != last.root {
                return Err(CheckpointRefusal::Forked { size: next.size });
            }
            if !merkle::verify_consistency(last.size, last.root, next.size, next.root, consistency) {
                return Err(CheckpointRefusal::Inconsistent { last: last.size, next: next.size });
            }
        }
        let text = next.to_string();
        if Checkpoint::parse(&text).as_ref() != Ok(&next) {
            return Err(CheckpointRefusal::Unreadable);
        }
        let note = key.sign(&text)?;
        self.last = Some(next);
        Ok(note)
    }
}

#[cfg(test)]
mod tests;
