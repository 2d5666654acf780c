//! Every way to tamper with a chain, and the entry that is reported for it.

use super::*;
use crate::actor::Actor;
use crate::journal::event::Event;
use crate::journal::payload::{Commitment, EventPayload};
use crate::time::Timestamp;
use serde_json::json;

/// The first entry that is defective.
#[derive(Debug)]
struct BrokenChain {
    seq: u64,
    why: EntryDefect,
}

/// The summary of an intact chain.
#[derive(Debug)]
struct IntactChain {
    head: ChainHead,
    /// Erased payloads: their commitments remain, their bytes are gone.
    erased: u64,
}

/// Checks all entries of an execution and their payloads; `find` returns `None` for an erased payload.
fn verify_chain(
    tenant: &TenantId,
    execution: &ExecutionId,
    entries: &[Entry],
    find: &dyn Fn(Commitment) -> Option<SealedPayload>,
) -> Result<IntactChain, BrokenChain> {
    let mut chain = HashChain::new(tenant.clone(), execution.clone());
    let mut erased = 0;
    for (at, entry) in entries.iter().enumerate() {
        let broken = |why| BrokenChain { seq: entry.seq, why };
        let stored = chain.follow(entry).map_err(|why| match why {
            EntryDefect::Missing { expected } if entries[at..].iter().any(|later| later.seq == expected) => {
                broken(EntryDefect::Reordered { expected })
            }
            why => broken(why),
        })?;
        for commitment in stored.commitments() {
            match find(commitment) {
                Some(sealed) => sealed.check(commitment).map_err(|wrong| broken(wrong.into()))?,
                None => erased += 1,
            }
        }
    }
    Ok(IntactChain { head: chain.head, erased })
}

struct TestJournal {
    tenant: TenantId,
    execution: ExecutionId,
    entries: Vec<Entry>,
    payloads: Vec<SealedPayload>,
}

impl TestJournal {
    fn new(tenant: &str, execution: &str, count: u64) -> TestJournal {
        let (tenant, execution) = (TenantId::new(tenant), ExecutionId::new(execution));
        let mut chain = HashChain::new(tenant.clone(), execution.clone());
        let (mut entries, mut payloads) = (Vec::new(), Vec::new());
        let mut salt = 0;
        for n in 0..count {
            let (entry, sealed) = chain
                .seal(&record(n), &mut || {
                    salt += 1;
                    PayloadSalt([salt; 16])
                })
                .unwrap();
            entries.push(entry);
            payloads.extend(sealed);
        }
        assert_eq!(chain.head().seq, count);
        TestJournal { tenant, execution, entries, payloads }
    }

    fn verify(&self) -> Result<IntactChain, BrokenChain> {
        verify_chain(&self.tenant, &self.execution, &self.entries, &|commitment| {
            self.payloads.iter().find(|sealed| sealed.commitment == commitment).cloned()
        })
    }

    fn why(&self) -> (u64, EntryDefect) {
        let broken = self.verify().unwrap_err();
        (broken.seq, broken.why)
    }
}

fn record(n: u64) -> EventRecord {
    let event = match n % 2 {
        0 => Event::ContextSaved { values: EventPayload::new(json!({ "n": n })) },
        _ => Event::Paused { reason: format!("reason {n}") },
    };
    EventRecord { at: Timestamp(n as i64), actor: Actor::rutter(), event }
}

/// Seals other bytes with a correct hash, as an attacker with access to the database could.
fn resealed(prev: Hash, seq: u64, bytes: &[u8]) -> Entry {
    Entry { seq, prev, hash: link(prev, bytes), bytes: bytes.into() }
}

fn altered(entry: &Entry) -> Vec<u8> {
    let text = String::from_utf8(entry.bytes.to_vec()).unwrap();
    text.replacen("\"rutter\"}", "\"ruttex\"}", 1).into_bytes()
}

#[test]
fn an_untouched_chain_is_intact() {
    let journal = TestJournal::new("acme", "exec_1", 9);
    let intact = journal.verify().unwrap();
    assert_eq!(intact.head, ChainHead { seq: 9, hash: journal.entries[8].hash });
    assert_eq!(intact.erased, 0);
    let none = TestJournal::new("acme", "exec_1", 0);
    assert_eq!(none.verify().unwrap().head.seq, 0);
}

#[test]
fn a_resumed_chain_goes_on_where_it_ended() {
    let journal = TestJournal::new("acme", "exec_1", 5);
    let head = verify_chain(&journal.tenant, &journal.execution, &journal.entries[..4], &|_| None).unwrap().head;
    let mut chain = HashChain::resume(journal.tenant.clone(), journal.execution.clone(), head);
    assert!(chain.follow(&journal.entries[4]).is_ok());
    assert_eq!(chain.head().hash, journal.entries[4].hash);
}

#[test]
fn every_flipped_bit_is_found_at_its_entry() {
    let whole = TestJournal::new("acme", "exec_1", 4);
    for at in 0..4 {
        let seq = at as u64 + 1;
        for bit in 0..whole.entries[at].bytes.len() * 8 {
            let mut journal = TestJournal { entries: whole.entries.clone(), ..TestJournal::new("acme", "exec_1", 4) };
            let mut bytes = journal.entries[at].bytes.to_vec();
            bytes[bit / 8] ^= 1 << (bit % 8);
            journal.entries[at].bytes = bytes.into();
            assert_eq!(journal.why(), (seq, EntryDefect::Altered));
        }
    }
}

#[test]
fn every_kind_of_tampering_is_named_at_its_entry() {
    type Tamper = fn(&mut TestJournal, usize);
    type Expected = fn(u64) -> (u64, EntryDefect);
    let table: [(&str, Tamper, Expected); 8] = [
        ("hash changed", |j, at| j.entries[at].hash = Hash::ZERO, |seq| (seq, EntryDefect::Altered)),
        ("prev changed", |j, at| j.entries[at].prev = Hash::ZERO, |seq| (seq, EntryDefect::Altered)),
        (
            "number changed",
            |j, at| j.entries[at].seq = 99,
            |seq| (99, EntryDefect::Renumbered { stored_as: 99, says: seq }),
        ),
        ("removed", |j, at| drop(j.entries.remove(at)), |seq| (seq + 1, EntryDefect::Missing { expected: seq })),
        (
            "swapped with the next",
            |j, at| j.entries.swap(at, at + 1),
            |seq| (seq + 1, EntryDefect::Reordered { expected: seq }),
        ),
        ("repeated", |j, at| j.entries.insert(at + 1, j.entries[at].clone()), |seq| (seq, EntryDefect::Duplicated)),
        (
            "rewritten with a new hash",
            |j, at| {
                let entry = &j.entries[at];
                j.entries[at] = resealed(entry.prev, entry.seq, &altered(entry));
            },
            |seq| (seq + 1, EntryDefect::Detached),
        ),
        (
            "replaced by the entry of another execution",
            |j, at| j.entries[at] = TestJournal::new("acme", "exec_2", 8).entries[at].clone(),
            |seq| {
                let (tenant, execution) = (TenantId::new("acme"), ExecutionId::new("exec_2"));
                (seq, EntryDefect::Foreign { tenant, execution })
            },
        ),
    ];
    for (name, tamper, expected) in table {
        for at in 0..7 {
            let mut journal = TestJournal::new("acme", "exec_1", 8);
            tamper(&mut journal, at);
            assert_eq!(journal.why(), expected(at as u64 + 1), "{name} at {at}");
        }
    }
}

#[test]
fn a_chain_under_another_name_is_foreign() {
    let journal = TestJournal::new("acme", "exec_1", 2);
    for (tenant, execution) in [("acme", "exec_2"), ("other", "exec_1")] {
        let moved = TestJournal {
            tenant: TenantId::new(tenant),
            execution: ExecutionId::new(execution),
            entries: journal.entries.clone(),
            payloads: Vec::new(),
        };
        assert!(matches!(moved.why(), (1, EntryDefect::Foreign { .. })));
    }
}

#[test]
fn bytes_that_hash_well_but_cannot_be_read_are_named() {
    let mut journal = TestJournal::new("acme", "exec_1", 3);
    journal.entries[1] = resealed(journal.entries[0].hash, 2, b"{\"v\":7,");
    assert_eq!(journal.why(), (2, EntryDefect::Undecodable(codec::Error::UnknownVersion(7))));
    journal.entries[1] = resealed(journal.entries[0].hash, 2, b"\xff");
    assert_eq!(journal.why(), (2, EntryDefect::Undecodable(codec::Error::NoVersion)));
}

#[test]
fn an_erased_payload_is_counted_and_a_wrong_one_named() {
    let mut journal = TestJournal::new("acme", "exec_1", 5);
    let erased = journal.payloads.remove(1);
    assert_eq!(journal.verify().unwrap().erased, 1);
    let EntryDefect::Payload(PayloadMismatch::Bytes(commitment)) = ({
        journal.payloads.push(SealedPayload { bytes: b"{}".as_slice().into(), ..erased.clone() });
        journal.why().1
    }) else {
        panic!("expected a wrong payload")
    };
    assert_eq!(commitment, erased.commitment);
    assert_eq!(journal.why().0, 3);
}

#[test]
fn an_erased_payload_cannot_be_sealed_again() {
    let mut chain = HashChain::new(TenantId::new("acme"), ExecutionId::new("exec_1"));
    let before = chain.head();
    let record = EventRecord { event: Event::ContextSaved { values: EventPayload::Erased }, ..record(0) };
    assert_eq!(chain.seal(&record, &mut || PayloadSalt([0; 16])), Err(ErasedPayload));
    assert_eq!(chain.head(), before);
}
