//! Checking an export alone: no server, no database, only the lines and what the reader already trusts.
//!
//! How sure the answer is depends on what the reader brings. See [`Assurance`].

mod verdict;

pub use verdict::{Assurance, Fault, Verdict, Why};

use super::chain::{self, Chain};
use super::checkpoint::Checkpoint;
use super::export::{CheckpointLine, EntryLine, FORMAT, Header, Line, PayloadLine, RemovedLine, Scope};
use super::merkle::{self, Frontier};
use super::note::VerifierKey;
use super::payload::{Commitment, Wrong};
use crate::hash::Hash;
use crate::id::{ExecutionId, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What the reader knows from elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Trust {
    /// Public keys of the ledger. Without one the export can only agree with itself.
    pub keys: Vec<VerifierKey>,
    /// Signed checkpoints that were kept outside.
    pub checkpoints: Vec<String>,
    pub receipts: Vec<Receipt>,
}

/// What a caller can keep to show later that an entry was there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    pub tenant: TenantId,
    pub execution: ExecutionId,
    pub seq: u64,
    pub hash: Hash,
}

/// Checks an export line by line. Lines come without their line ends.
pub fn verify_export<L: AsRef<[u8]>>(lines: impl IntoIterator<Item = L>, trust: Trust) -> Verdict {
    let mut verifier = Verifier::new(trust);
    for line in lines {
        verifier.read(line.as_ref());
    }
    verifier.finish()
}

/// The state of a check: the heads of the chains, the frontier of the tree, and nothing of what was read.
#[derive(Clone, Debug)]
pub struct Verifier {
    trust: Trust,
    header: Option<Arc<Header>>,
    /// The keys checkpoints are checked with: those of the reader, or else those of the export.
    keys: Vec<VerifierKey>,
    chains: HashMap<ExecutionId, Chain>,
    frontier: Frontier,
    /// The last leaf read; in a part of a ledger leaves are left out, but never go back.
    last_leaf: Option<u64>,
    /// An entry without a place in the ledger was read: no placed one may follow.
    in_tail: bool,
    checkpoint: Option<Checkpoint>,
    /// The roots of all checkpoints read, for inclusion proofs.
    roots: BTreeMap<u64, Hash>,
    /// Outside checkpoints that no part of the export has been compared with yet.
    open_checkpoints: Vec<Checkpoint>,
    /// Receipts whose entry has not been read yet.
    open_receipts: Vec<Receipt>,
    verdict: Verdict,
}

impl Verifier {
    pub fn new(trust: Trust) -> Verifier {
        Verifier {
            open_receipts: trust.receipts.clone(),
            trust,
            header: None,
            keys: Vec::new(),
            chains: HashMap::new(),
            frontier: Frontier::default(),
            last_leaf: None,
            in_tail: false,
            checkpoint: None,
            roots: BTreeMap::new(),
            open_checkpoints: Vec::new(),
            verdict: Verdict::default(),
        }
    }

    /// Reads the next line. After a fault it only looks whether an entry that seemed missing comes later.
    pub fn read(&mut self, line: &[u8]) {
        match Line::parse(line) {
            Ok(line) => self.take(&line),
            Err(why) => {
                self.verdict.lines += 1;
                if self.verdict.fault.is_none() {
                    self.conclude(Err(Why::Line(why)), None);
                }
            }
        }
    }

    /// Takes a line that was never text, as a store that checks itself has them.
    pub fn take(&mut self, line: &Line) {
        self.verdict.lines += 1;
        match self.verdict.fault {
            Some(_) => self.look_for_missing(line),
            None => {
                let checked = self.check(line);
                self.conclude(checked, Some(line));
            }
        }
    }

    /// Whether nothing wrong has been found so far.
    pub fn is_clean(&self) -> bool {
        self.verdict.is_clean()
    }

    /// Says what the export amounts to, now that it has ended.
    pub fn finish(mut self) -> Verdict {
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

    fn check(&mut self, line: &Line) -> Result<(), Why> {
        match (self.header.clone(), line) {
            (None, Line::Header(header)) => self.check_header(header),
            (None, _) => Err(Why::Order("the first line must be the header")),
            (Some(_), Line::Header(_)) => Err(Why::Order("there is a second header")),
            (Some(header), Line::Entry(line)) => self.check_entry(&header, line),
            (Some(header), Line::Removed(line)) => self.check_removed(&header, line),
            (Some(header), Line::Checkpoint(line)) => self.check_checkpoint(&header, line),
        }
    }

    fn conclude(&mut self, checked: Result<(), Why>, line: Option<&Line>) {
        let Err(why) = checked else { return };
        let entry = line.and_then(|line| match line {
            Line::Entry(line) => Some((line.execution.clone(), line.seq)),
            _ => None,
        });
        self.verdict.fault = Some(Fault { line: self.verdict.lines, entry, why });
    }

    fn check_header(&mut self, header: &Header) -> Result<(), Why> {
        if header.format != FORMAT {
            return Err(Why::Format(header.format.clone()));
        }
        let keys = header.keys.iter().map(|key| VerifierKey::parse(key)).collect::<Result<Vec<_>, _>>();
        let keys = keys.map_err(|error| Why::Key(error.to_string()))?;
        if let Some(unknown) =
            keys.iter().find(|key| !self.trust.keys.is_empty() && !self.trust.keys.contains(key))
        {
            return Err(Why::Key(format!("{} is not a key you trust", unknown.name())));
        }
        self.keys = if self.trust.keys.is_empty() { keys } else { self.trust.keys.clone() };
        for note in &self.trust.checkpoints {
            let checkpoint = Checkpoint::open(note, &header.origin, &self.trust.keys);
            self.open_checkpoints.push(checkpoint.map_err(Why::OutsideCheckpoint)?);
        }
        if self.open_receipts.iter().any(|receipt| receipt.tenant != header.tenant) {
            return Err(Why::ReceiptTenant);
        }
        if header.scope == Scope::Ledger {
            self.compare_outside(0, merkle::empty_root())?;
        }
        self.header = Some(Arc::new(header.clone()));
        Ok(())
    }

    fn check_entry(&mut self, header: &Header, line: &EntryLine) -> Result<(), Why> {
        let chain = self
            .chains
            .entry(line.execution.clone())
            .or_insert_with(|| Chain::new(header.tenant.clone(), line.execution.clone()));
        let stored = chain.follow(&line.entry())?;
        self.check_payloads(stored.commitments(), &line.payloads)?;
        self.check_leaf(header.scope, line)?;
        let mut differs = false;
        self.open_receipts.retain(|receipt| {
            let here = receipt.seq == line.seq && receipt.execution == line.execution;
            differs |= here && receipt.hash != line.hash;
            !here
        });
        if differs {
            return Err(Why::ReceiptDiffers);
        }
        self.verdict.entries += 1;
        Ok(())
    }

    fn check_payloads(&mut self, mut expected: Vec<Commitment>, lines: &[PayloadLine]) -> Result<(), Why> {
        let mut found: Vec<Commitment> = lines.iter().map(PayloadLine::commitment).collect();
        expected.sort_unstable();
        found.sort_unstable();
        if expected != found {
            return Err(Why::PayloadList);
        }
        for line in lines {
            match line {
                PayloadLine::Erased { .. } => self.verdict.erased += 1,
                PayloadLine::Kept { commitment, salt, bytes } => {
                    let commitment = Commitment { hash: *commitment };
                    if Commitment::to(*salt, bytes.as_bytes()) != commitment {
                        return Err(chain::Why::from(Wrong::Bytes(commitment)).into());
                    }
                }
            }
        }
        Ok(())
    }

    fn check_leaf(&mut self, scope: Scope, line: &EntryLine) -> Result<(), Why> {
        let Some(leaf) = line.leaf else {
            self.in_tail = true;
            return if line.proof.is_none() { Ok(()) } else { Err(Why::Proof) };
        };
        match (scope, &line.proof) {
            (Scope::Ledger, None) => self.check_place(leaf, line.hash),
            (Scope::Ledger, Some(_)) => Err(Why::Order("a whole ledger has no inclusion proofs")),
            // A place that nothing proves is not to be stated.
            (Scope::Executions, None) => Err(Why::Proof),
            (Scope::Executions, Some(proof)) => {
                let expected = self.last_leaf.map_or(0, |last| last.saturating_add(1));
                if self.in_tail || leaf < expected {
                    return Err(Why::Leaf { expected, found: leaf });
                }
                self.last_leaf = Some(leaf);
                let root = *self.roots.get(&proof.size).ok_or(Why::Proof)?;
                let holds =
                    merkle::verify_inclusion(merkle::leaf(line.hash), leaf, proof.size, &proof.path, root);
                self.verdict.protected += 1;
                holds.then_some(()).ok_or(Why::Proof)
            }
        }
    }

    fn check_checkpoint(&mut self, header: &Header, line: &CheckpointLine) -> Result<(), Why> {
        let next = Checkpoint::open(&line.note, &header.origin, &self.keys).map_err(Why::Checkpoint)?;
        let holds = match &self.checkpoint {
            None => line.consistency.is_empty(),
            Some(last) => {
                merkle::verify_consistency(last.size, last.root, next.size, next.root, &line.consistency)
            }
        };
        if header.scope == Scope::Ledger {
            if next.size != self.frontier.size() {
                return Err(Why::CheckpointSize { says: next.size, entries: self.frontier.size() });
            }
            if next.root != self.frontier.root() {
                let from = self.checkpoint.as_ref().map_or(0, |last| last.size);
                return Err(Why::Root { from, to: next.size });
            }
            self.verdict.protected = next.size;
        } else if self.verdict.entries > 0 {
            return Err(Why::Order("in a part of a ledger the checkpoints come before the entries"));
        } else {
            self.compare_outside(next.size, next.root)?;
        }
        if !holds {
            return Err(Why::Consistency);
        }
        self.roots.insert(next.size, next.root);
        self.checkpoint = Some(next);
        self.verdict.checkpoints += 1;
        Ok(())
    }

    fn compare_outside(&mut self, size: u64, root: Hash) -> Result<(), Why> {
        let differs = self.open_checkpoints.iter().any(|kept| kept.size == size && kept.root != root);
        self.open_checkpoints.retain(|kept| kept.size != size);
        if differs { Err(Why::OutsideRoot { size }) } else { Ok(()) }
    }

    fn check_end(&self) -> Result<(), Why> {
        let header = self.header.as_ref().ok_or(Why::Order("there is no header"))?;
        if let Some(kept) = self.open_checkpoints.iter().max_by_key(|kept| kept.size) {
            return Err(match header.scope {
                Scope::Ledger => Why::Truncated { kept: kept.size, entries: self.frontier.size() },
                Scope::Executions => Why::NotComparable { kept: kept.size },
            });
        }
        match self.open_receipts.first() {
            Some(receipt) => {
                Err(Why::ReceiptMissing { execution: receipt.execution.clone(), seq: receipt.seq })
            }
            None => Ok(()),
        }
    }

    /// Of a removed entry only its place in the tree can be checked.
    fn check_removed(&mut self, header: &Header, line: &RemovedLine) -> Result<(), Why> {
        if header.scope != Scope::Ledger {
            return Err(Why::Order("only a whole ledger has removed entries"));
        }
        self.check_place(line.leaf, line.hash)?;
        self.verdict.removed += 1;
        Ok(())
    }

    /// Adds a leaf to the tree of a whole ledger.
    fn check_place(&mut self, leaf: u64, hash: Hash) -> Result<(), Why> {
        let expected = self.last_leaf.map_or(0, |last| last.saturating_add(1));
        if self.in_tail || leaf != expected {
            return Err(Why::Leaf { expected, found: leaf });
        }
        self.last_leaf = Some(leaf);
        self.frontier.append(merkle::leaf(hash), &mut |_, _| {});
        match self.open_checkpoints.iter().any(|kept| kept.size == self.frontier.size()) {
            true => self.compare_outside(self.frontier.size(), self.frontier.root()),
            false => Ok(()),
        }
    }

    fn look_for_missing(&mut self, line: &Line) {
        if let Some(fault) = &mut self.verdict.fault
            && let Why::Entry(chain::Why::Missing { expected }) = fault.why
            && let Some((execution, _)) = &fault.entry
            && let Line::Entry(line) = line
            && (&line.execution, line.seq) == (execution, expected)
        {
            fault.why = Why::Entry(chain::Why::Reordered { expected });
        }
    }
}
