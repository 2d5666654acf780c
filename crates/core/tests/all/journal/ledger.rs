//! A small ledger of several executions, and its export, for tests to tamper with.

#![allow(dead_code, reason = "two test programs share this file, and each uses a part of it")]

use crate::journal::samples::{Values, events};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::checkpoint::{Checkpoint, CheckpointGuard};
use rutter_core::journal::event::EventRecord;
use rutter_core::journal::export::{
    CheckpointLine, EntryLine, ExportHeader, ExportLine, ExportScope, InclusionLine, PayloadLine,
};
use rutter_core::journal::merkle::{self, MerkleTree};
use rutter_core::journal::note::SigningKey;
use rutter_core::journal::verify::{EntryReceipt, TrustAnchors};
use rutter_core::time::Timestamp;

pub(crate) const TENANT: &str = "acme";
pub(crate) const ORIGIN: &str = "rutter.example/acme";

pub(crate) fn key() -> SigningKey {
    SigningKey::new("rutter.example", [3; 32]).unwrap()
}

/// The trust anchors of a reader who has only the key.
pub(crate) fn keyed() -> TrustAnchors {
    TrustAnchors { keys: vec![key().verifier()], ..TrustAnchors::default() }
}

/// Three interleaved executions, with one checkpoint after each of the given sizes.
pub(crate) struct Ledger {
    pub(crate) entries: Vec<EntryLine>,
    pub(crate) tree: MerkleTree,
    pub(crate) notes: Vec<(u64, String)>,
}

impl Ledger {
    pub(crate) fn new(entries: usize, checkpoints: &[u64]) -> Ledger {
        Ledger::with(entries, checkpoints, &key(), &mut |_, record| record)
    }

    /// The same with another key, or with changed records, as a forger would make it.
    pub(crate) fn with(
        count: usize,
        checkpoints: &[u64],
        key: &SigningKey,
        change: &mut dyn FnMut(usize, EventRecord) -> EventRecord,
    ) -> Ledger {
        let mut values = Values::plain(0);
        let tenant = TenantId::new(TENANT);
        let names = ["exec_a", "exec_b", "exec_c"].map(ExecutionId::new);
        let mut chains = names.clone().map(|name| HashChain::new(tenant.clone(), name));
        let (mut entries, mut tree) = (Vec::new(), MerkleTree::default());
        for (at, event) in events(&mut values).into_iter().cycle().take(count).enumerate() {
            let which = at % 3;
            let record = change(at, values.record(event));
            let (entry, payloads) = chains[which].seal(&record, &mut || values.salt()).unwrap();
            tree.append(merkle::leaf(entry.hash));
            let payloads = payloads.iter().map(|sealed| PayloadLine::new(sealed.commitment, Some(sealed)));
            entries.push(EntryLine::new(names[which].clone(), &entry, Some(at as u64), payloads.collect()));
        }
        let mut guard = CheckpointGuard::new(None);
        let notes = checkpoints.iter().map(|&size| {
            let consistency = consistency(&tree, guard.last().map_or(0, |last| last.size), size);
            let root = tree.root_at(size).unwrap();
            let checkpoint = Checkpoint::new(ORIGIN, size, root, Timestamp(1_700_000_000_000));
            (size, guard.sign(key, checkpoint, &consistency).unwrap().to_string())
        });
        Ledger { notes: notes.collect(), entries, tree }
    }

    pub(crate) fn receipt(&self, at: usize) -> EntryReceipt {
        let EntryLine { execution, seq, hash, .. } = self.entries[at].clone();
        EntryReceipt { tenant: TenantId::new(TENANT), execution, seq, hash }
    }

    /// The whole ledger. Entries after `sequenced` have no leaf yet.
    pub(crate) fn export(&self, sequenced: usize) -> Vec<ExportLine> {
        let mut lines = vec![header(ExportScope::Ledger, &key())];
        lines.extend(self.notes.first().filter(|(size, _)| *size == 0).map(|_| self.checkpoint(0)));
        for (at, entry) in self.entries.iter().enumerate() {
            let leaf = entry.leaf.filter(|_| at < sequenced);
            lines.push(ExportLine::Entry(EntryLine { leaf, ..entry.clone() }));
            let due = self.notes.iter().position(|(size, _)| *size == at as u64 + 1);
            lines.extend(due.map(|note| self.checkpoint(note)));
        }
        lines
    }

    /// Only one execution, each entry with a proof if a checkpoint covers it.
    pub(crate) fn export_execution(&self, execution: &str) -> Vec<ExportLine> {
        let mut lines = vec![header(ExportScope::Executions, &key())];
        lines.extend((0..self.notes.len()).map(|note| self.checkpoint(note)));
        for entry in self.entries.iter().filter(|entry| entry.execution.as_str() == execution) {
            let leaf = entry.leaf.unwrap();
            let proof = self.notes.iter().map(|(size, _)| *size).find(|size| *size > leaf).map(|size| {
                let path = merkle::inclusion_proof(&|node| self.tree.node(node), leaf, size).unwrap();
                InclusionLine { size, path }
            });
            let leaf = proof.as_ref().map(|_| leaf);
            lines.push(ExportLine::Entry(EntryLine { leaf, proof, ..entry.clone() }));
        }
        lines
    }

    fn checkpoint(&self, at: usize) -> ExportLine {
        let (size, note) = &self.notes[at];
        let last = at.checked_sub(1).map_or(0, |before| self.notes[before].0);
        let consistency = if at == 0 { Vec::new() } else { consistency(&self.tree, last, *size) };
        ExportLine::Checkpoint(CheckpointLine { note: note.clone(), consistency })
    }
}

pub(crate) fn header(scope: ExportScope, key: &SigningKey) -> ExportLine {
    ExportLine::Header(ExportHeader::new(scope, TenantId::new(TENANT), ORIGIN, vec![key.verifier().to_string()]))
}

pub(crate) fn text(lines: &[ExportLine]) -> String {
    let mut text = String::new();
    lines.iter().for_each(|line| line.write(&mut text).unwrap());
    text
}

fn consistency(tree: &MerkleTree, old: u64, new: u64) -> Vec<Hash> {
    merkle::consistency_proof(&|node| tree.node(node), old, new).unwrap()
}
