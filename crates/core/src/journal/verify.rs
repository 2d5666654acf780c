//! Verifies an export offline, from its lines and the reader's trust anchors alone.
//!
//! How much the result is worth depends on the trust anchors. See [`Assurance`].

mod verdict;

pub use verdict::{Assurance, FaultReason, VerificationFault, VerificationReport};

use super::chain::{self, HashChain};
use super::checkpoint::Checkpoint;
use super::codec;
use super::export::{
    CheckpointLine, EntryLine, ExportHeader, ExportLine, ExportScope, FORMAT, PayloadLine, RemovedLine,
};
use super::merkle::{self, MerkleFrontier};
use super::note::VerifierKey;
use super::payload::{Commitment, PayloadMismatch};
use crate::hash::Hash;
use crate::id::{ExecutionId, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What the reader trusts, from sources other than the export.
#[derive(Clone, Debug, Default)]
pub struct TrustAnchors {
    /// Public keys of the ledger. Without one, only the export's consistency with itself can be verified.
    pub keys: Vec<VerifierKey>,
    /// Signed checkpoints stored outside the ledger.
    pub checkpoints: Vec<String>,
    pub receipts: Vec<EntryReceipt>,
}

/// A receipt, with which a caller can prove later that an entry existed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryReceipt {
    pub tenant: TenantId,
    pub execution: ExecutionId,
    pub seq: u64,
    pub hash: Hash,
}

/// Verifies an export line by line. Lines come without their line ends.
pub fn verify_export<L: AsRef<[u8]>>(lines: impl IntoIterator<Item = L>, trust: TrustAnchors) -> VerificationReport {
    let mut verifier = LedgerVerifier::new(trust);
    for line in lines {
        verifier.read(line.as_ref());
    }
    verifier.finish()
}

/// The state of a verification: the heads of the chains and the frontier of the tree, but no entries.
#[derive(Clone, Debug)]
pub struct LedgerVerifier {
    trust: TrustAnchors,
    header: Option<Arc<ExportHeader>>,
    /// The keys checkpoints are verified with: those of the reader, or else those of the export.
    keys: Vec<VerifierKey>,
    chains: HashMap<ExecutionId, HashChain>,
    frontier: MerkleFrontier,
    /// The last leaf read. A partial export skips leaves, but its leaves only increase.
    last_leaf: Option<u64>,
    /// An entry without a leaf was read: no entry with a leaf may follow.
    in_tail: bool,
    checkpoint: Option<Checkpoint>,
    /// The roots of all checkpoints read, for inclusion proofs.
    roots: BTreeMap<u64, Hash>,
    /// External checkpoints not yet compared with the export.
    open_checkpoints: Vec<Checkpoint>,
    /// Receipts whose entry has not been read yet.
    open_receipts: Vec<EntryReceipt>,
    verdict: VerificationReport,
}

impl LedgerVerifier {
    pub fn new(trust: TrustAnchors) -> LedgerVerifier {
        LedgerVerifier {
            open_receipts: trust.receipts.clone(),
            trust,
            header: None,
            keys: Vec::new(),
            chains: HashMap::new(),
            frontier: MerkleFrontier::default(),
            last_leaf: None,
            in_tail: false,
            checkpoint: None,
            roots: BTreeMap::new(),
            open_checkpoints: Vec::new(),
            verdict: VerificationReport::default(),
        }
    }

    /// Reads the next line. After a fault it only checks whether an entry reported as missing comes later.
    pub fn read(&mut self, line: &[u8]) {
        match ExportLine::parse(line) {
            Ok(line) => self.take(&line),
            Err(why) => {
                self.verdict.lines += 1;
                if self.verdict.fault.is_none() {
                    self.conclude(Err(FaultReason::Line(why)), None);
                }
            }
        }
    }

    /// Reads a line that is already parsed, from a store that verifies itself.
    pub fn take(&mut self, line: &ExportLine) {
        self.verdict.lines += 1;
        match self.verdict.fault {
            Some(_) => self.look_for_missing(line),
            None => {
                let checked = self.check(line);
                self.conclude(checked, Some(line));
            }
        }
    }

    /// Whether no fault has been found so far.
    pub fn is_clean(&self) -> bool {
        self.verdict.is_clean()
    }

    /// Ends the export and returns the report.
    pub fn finish(mut self) -> VerificationReport {
        if self.verdict.fault.is_none() {
            let checked = self.check_end();
            self.conclude(checked, None);
        }
        let signed = !self.trust.keys.is_empty() && self.checkpoint.is_some();
        let compared = !self.trust.checkpoints.is_empty() || !self.trust.receipts.is_empty();
        let verdict = &mut self.verdict;
        verdict.executions = self.chains.len() as u64;
        verdict.assurance = match (signed, compared) {
            (true, true) => Assurance::Compared,
            (true, false) => Assurance::Signed,
            (false, _) => Assurance::ChainOnly,
        };
        if !signed {
            verdict.protected = 0;
        }
        self.verdict
    }

    fn check(&mut self, line: &ExportLine) -> Result<(), FaultReason> {
        match (self.header.clone(), line) {
            (None, ExportLine::Header(header)) => self.check_header(header),
            (None, _) => Err(FaultReason::Order("the first line must be the header")),
            (Some(_), ExportLine::Header(_)) => Err(FaultReason::Order("there is a second header")),
            (Some(header), ExportLine::Entry(line)) => self.check_entry(&header, line),
            (Some(header), ExportLine::Removed(line)) => self.check_removed(&header, line),
            (Some(header), ExportLine::Checkpoint(line)) => self.check_checkpoint(&header, line),
        }
    }

    fn conclude(&mut self, checked: Result<(), FaultReason>, line: Option<&ExportLine>) {
        let Err(why) = checked else { return };
        let entry = line.and_then(|line| match line {
            ExportLine::Entry(line) => Some((line.execution.clone(), line.seq)),
            _ => None,
        });
        self.verdict.fault = Some(VerificationFault { line: self.verdict.lines, entry, why });
    }

    fn check_header(&mut self, header: &ExportHeader) -> Result<(), FaultReason> {
        if header.format != FORMAT {
            return Err(FaultReason::Format(header.format.clone()));
        }
        let keys = header.keys.iter().map(|key| VerifierKey::parse(key)).collect::<Result<Vec<_>, _>>();
        let keys = keys.map_err(|error| FaultReason::Key(error.to_string()))?;
        if let Some(unknown) = keys.iter().find(|key| !self.trust.keys.is_empty() && !self.trust.keys.contains(key)) {
            return Err(FaultReason::Key(format!("{} is not a key you trust", unknown.name())));
        }
        self.keys = if self.trust.keys.is_empty() { keys } else { self.trust.keys.clone() };
        for note in &self.trust.checkpoints {
            let checkpoint = Checkpoint::open(note, &header.origin, &self.trust.keys);
            self.open_checkpoints.push(checkpoint.map_err(FaultReason::OutsideCheckpoint)?);
        }
        if self.open_receipts.iter().any(|receipt| receipt.tenant != header.tenant) {
            return Err(FaultReason::ReceiptTenant);
        }
        if header.scope == ExportScope::Ledger {
            self.compare_outside(0, merkle::empty_root())?;
        }
        self.header = Some(Arc::new(header.clone()));
        Ok(())
    }

    fn check_entry(&mut self, header: &ExportHeader, line: &EntryLine) -> Result<(), FaultReason> {
        let chain = self
            .chains
            .entry(line.execution.clone())
            .or_insert_with(|| HashChain::new(header.tenant.clone(), line.execution.clone()));
        chain.check(line.seq, line.prev, line.hash, line.bytes.as_bytes())?;
        self.check_payloads(codec::commitments_in(line.bytes.as_bytes()), &line.payloads)?;
        self.check_leaf(header.scope, line)?;
        let mut differs = false;
        self.open_receipts.retain(|receipt| {
            let here = receipt.seq == line.seq && receipt.execution == line.execution;
            differs |= here && receipt.hash != line.hash;
            !here
        });
        if differs {
            return Err(FaultReason::ReceiptDiffers);
        }
        self.verdict.entries += 1;
        Ok(())
    }

    fn check_payloads(&mut self, mut expected: Vec<Commitment>, lines: &[PayloadLine]) -> Result<(), FaultReason> {
        let mut found: Vec<Commitment> = lines.iter().map(PayloadLine::commitment).collect();
        expected.sort_unstable();
        found.sort_unstable();
        if expected != found {
            return Err(FaultReason::PayloadList);
        }
        for line in lines {
            match line {
                PayloadLine::Erased { .. } => self.verdict.erased += 1,
                PayloadLine::Present { commitment, salt, bytes } => {
                    let commitment = Commitment { hash: *commitment };
                    if Commitment::to(*salt, bytes.as_bytes()) != commitment {
                        return Err(chain::EntryDefect::from(PayloadMismatch::Bytes(commitment)).into());
                    }
                }
            }
        }
        Ok(())
    }

    fn check_leaf(&mut self, scope: ExportScope, line: &EntryLine) -> Result<(), FaultReason> {
        let Some(leaf) = line.leaf else {
            self.in_tail = true;
            return if line.proof.is_none() { Ok(()) } else { Err(FaultReason::Proof) };
        };
        match (scope, &line.proof) {
            (ExportScope::Ledger, None) => self.check_place(leaf, line.hash),
            (ExportScope::Ledger, Some(_)) => Err(FaultReason::Order("a whole ledger has no inclusion proofs")),
            // An unproven leaf must not be claimed.
            (ExportScope::Executions, None) => Err(FaultReason::Proof),
            (ExportScope::Executions, Some(proof)) => {
                let expected = self.last_leaf.map_or(0, |last| last.saturating_add(1));
                if self.in_tail || leaf < expected {
                    return Err(FaultReason::Leaf { expected, found: leaf });
                }
                self.last_leaf = Some(leaf);
                let root = *self.roots.get(&proof.size).ok_or(FaultReason::Proof)?;
                let holds = merkle::verify_inclusion(merkle::leaf(line.hash), leaf, proof.size, &proof.path, root);
                self.verdict.protected += 1;
                holds.then_some(()).ok_or(FaultReason::Proof)
            }
        }
    }

    fn check_checkpoint(&mut self, header: &ExportHeader, line: &CheckpointLine) -> Result<(), FaultReason> {
        let next = Checkpoint::open(&line.note, &header.origin, &self.keys).map_err(FaultReason::Checkpoint)?;
        let holds = match &self.checkpoint {
            None => line.consistency.is_empty(),
            Some(last) => merkle::verify_consistency(last.size, last.root, next.size, next.root, &line.consistency),
        };
        if header.scope == ExportScope::Ledger {
            if next.size != self.frontier.size() {
                return Err(FaultReason::CheckpointSize { says: next.size, entries: self.frontier.size() });
            }
            if next.root != self.frontier.root() {
                let from = self.checkpoint.as_ref().map_or(0, |last| last.size);
                return Err(FaultReason::Root { from, to: next.size });
            }
            self.verdict.protected = next.size;
        } else if self.verdict.entries > 0 {
            return Err(FaultReason::Order("in a part of a ledger the checkpoints come before the entries"));
        } else {
            self.compare_outside(next.size, next.root)?;
        }
        if !holds {
            return Err(FaultReason::Consistency);
        }
        self.roots.insert(next.size, next.root);
        self.checkpoint = Some(next);
        self.verdict.checkpoints += 1;
        Ok(())
    }

    fn compare_outside(&mut self, size: u64, root: Hash) -> Result<(), FaultReason> {
        let differs = self.open_checkpoints.iter().any(|stored| stored.size == size && stored.root != root);
        self.open_checkpoints.retain(|retained| retained.size != size);
        if differs { Err(FaultReason::OutsideRoot { size }) } else { Ok(()) }
    }

    fn check_end(&self) -> Result<(), FaultReason> {
        let header = self.header.as_ref().ok_or(FaultReason::Order("there is no header"))?;
        if let Some(stored) = self.open_checkpoints.iter().max_by_key(|retained| retained.size) {
            return Err(match header.scope {
                ExportScope::Ledger => {
                    FaultReason::Truncated { checkpoint_size: stored.size, entries: self.frontier.size() }
                }
                ExportScope::Executions => FaultReason::NotComparable { checkpoint_size: stored.size },
            });
        }
        match self.open_receipts.first() {
            Some(receipt) => {
                Err(FaultReason::ReceiptMissing { execution: receipt.execution.clone(), seq: receipt.seq })
            }
            None => Ok(()),
        }
    }

    /// Of a removed entry, only its leaf in the tree can be checked.
    fn check_removed(&mut self, header: &ExportHeader, line: &RemovedLine) -> Result<(), FaultReason> {
        if header.scope != ExportScope::Ledger {
            return Err(FaultReason::Order("only a whole ledger has removed entries"));
        }
        self.check_place(line.leaf, line.hash)?;
        self.verdict.removed += 1;
        Ok(())
    }

    /// Adds a leaf to the tree of a whole ledger.
    fn check_place(&mut self, leaf: u64, hash: Hash) -> Result<(), FaultReason> {
        let expected = self.last_leaf.map_or(0, |last| last.saturating_add(1));
        if self.in_tail || leaf != expected {
            return Err(FaultReason::Leaf { expected, found: leaf });
        }
        self.last_leaf = Some(leaf);
        self.frontier.append(merkle::leaf(hash), &mut |_, _| {});
        match self.open_checkpoints.iter().any(|stored| stored.size == self.frontier.size()) {
            true => self.compare_outside(self.frontier.size(), self.frontier.root()),
            false => Ok(()),
        }
    }

    fn look_for_missing(&mut self, line: &ExportLine) {
        if let Some(fault) = &mut self.verdict.fault
            && let FaultReason::Entry(chain::EntryDefect::Missing { expected }) = fault.why
            && let Some((execution, _)) = &fault.entry
            && let ExportLine::Entry(line) = line
            && (&line.execution, line.seq) == (execution, expected)
        {
            fault.why = FaultReason::Entry(chain::EntryDefect::Reordered { expected });
        }
    }
}
