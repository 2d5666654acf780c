//! Tampering that must be detected in an export, by kind, position and trust anchors.

use crate::journal::ledger::{Ledger, header, key, keyed, text};
use proptest::prelude::*;
use rutter_core::hash::Hash;
use rutter_core::id::ExecutionId;
use rutter_core::journal::chain;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::journal::export::{EntryLine, ExportLine, ExportScope, PayloadLine};
use rutter_core::journal::note::SigningKey;
use rutter_core::journal::payload::PayloadSalt;
use rutter_core::journal::verify::{
    Assurance, FaultReason, LedgerVerifier, TrustAnchors, VerificationReport, verify_export,
};

fn verify(lines: &[ExportLine], trust: TrustAnchors) -> VerificationReport {
    verify_export(text(lines).strip_suffix('\n').unwrap().split('\n'), trust)
}

fn fault(lines: &[ExportLine], trust: TrustAnchors) -> (u64, Option<(String, u64)>, FaultReason) {
    let fault = verify(lines, trust).fault.expect("the tampering is not detected");
    (fault.line, fault.entry.map(|(execution, seq)| (execution.to_string(), seq)), fault.why)
}

/// The trust anchors of each level, as in the table of docs/journal-format.md.
fn trusts(ledger: &Ledger) -> [TrustAnchors; 3] {
    let stored = ledger.notes.last().unwrap().1.clone();
    let last = ledger.receipt(ledger.entries.len() - 1);
    [TrustAnchors::default(), keyed(), TrustAnchors { checkpoints: vec![stored], receipts: vec![last], ..keyed() }]
}

fn entry(lines: &mut [ExportLine], leaf: usize) -> &mut EntryLine {
    let found = lines.iter_mut().find_map(|line| match line {
        ExportLine::Entry(entry) if entry.leaf == Some(leaf as u64) => Some(entry),
        _ => None,
    });
    found.unwrap()
}

fn position(lines: &[ExportLine], leaf: usize) -> usize {
    lines.iter().position(|line| matches!(line, ExportLine::Entry(entry) if entry.leaf == Some(leaf as u64))).unwrap()
}

fn checkpoints(lines: &[ExportLine]) -> Vec<usize> {
    (0..lines.len()).filter(|&at| matches!(lines[at], ExportLine::Checkpoint(_))).collect()
}

/// Changes the first record, and thereby all hashes after it.
fn rewritten(at: usize, record: EventRecord) -> EventRecord {
    match at {
        0 => EventRecord { event: Event::Killed { reason: "never happened".to_owned() }, ..record },
        _ => record,
    }
}

#[test]
fn an_untouched_export_is_clean_at_every_level() {
    let ledger = Ledger::new(24, &[0, 5, 16, 20]);
    let expected = [(Assurance::ChainOnly, 0), (Assurance::Signed, 20), (Assurance::Compared, 20)];
    for (trust, (assurance, protected)) in trusts(&ledger).into_iter().zip(expected) {
        let verdict = verify(&ledger.export(24), trust);
        assert_eq!(verdict.fault, None);
        assert_eq!((verdict.assurance, verdict.protected), (assurance, protected));
        assert_eq!((verdict.entries, verdict.executions, verdict.checkpoints, verdict.erased), (24, 3, 4, 0));
        assert_eq!(verdict.unprotected(), 24 - protected);
    }
    let verdict = verify(&ledger.export(22), keyed());
    assert_eq!((verdict.fault.clone(), verdict.unprotected()), (None, 4));
    assert_eq!(
        verdict.to_string(),
        "24 entries of 3 executions and 4 checkpoints are intact; V1, signed: a rewrite would show too, unless \
         the key was stolen; truncation would not; 4 entries are not yet covered by a checkpoint"
    );
}

#[test]
fn an_export_of_one_execution_is_clean_with_its_proofs() {
    let ledger = Ledger::new(24, &[5, 16, 20]);
    let lines = ledger.export_execution("exec_b");
    let trust =
        TrustAnchors { checkpoints: vec![ledger.notes[1].1.clone()], receipts: vec![ledger.receipt(22)], ..keyed() };
    let verdict = verify(&lines, trust);
    assert_eq!(verdict.fault, None);
    assert_eq!((verdict.entries, verdict.protected, verdict.assurance), (8, 7, Assurance::Compared));

    // A checkpoint of another size cannot be compared with this export, which is reported.
    let between = Ledger::new(24, &[17]).notes[0].1.clone();
    let why = fault(&lines, TrustAnchors { checkpoints: vec![between], ..keyed() }).2;
    assert_eq!(why, FaultReason::NotComparable { checkpoint_size: 17 });
}

#[test]
fn tampering_with_an_entry_is_found_at_every_level_and_place() {
    type Tamper = fn(&mut Vec<ExportLine>, usize);
    type Expected = fn(&FaultReason) -> bool;
    let table: [(&str, Tamper, Expected); 9] = [
        (
            "changed",
            |lines, at| entry(lines, at).bytes = entry(lines, at).bytes.replace("\"at\":1", "\"at\":2"),
            |why| *why == FaultReason::Entry(chain::EntryDefect::Altered),
        ),
        (
            "deleted",
            |lines, at| drop(lines.remove(position(lines, at))),
            |why| {
                let missing = matches!(why, FaultReason::Entry(chain::EntryDefect::Missing { .. }));
                missing || matches!(why, FaultReason::Leaf { .. } | FaultReason::CheckpointSize { .. })
            },
        ),
        (
            "inserted twice",
            |lines, at| lines.insert(position(lines, at), lines[position(lines, at)].clone()),
            |why| *why == FaultReason::Entry(chain::EntryDefect::Duplicated),
        ),
        (
            "swapped with the next of its execution",
            |lines, at| {
                let (a, b) = (position(lines, at), position(lines, at + 3));
                lines.swap(a, b);
            },
            |why| matches!(why, FaultReason::Entry(chain::EntryDefect::Reordered { .. })),
        ),
        (
            "swapped with the next of the ledger",
            |lines, at| {
                let (a, b) = (position(lines, at), position(lines, at + 1));
                lines.swap(a, b);
            },
            |why| matches!(why, FaultReason::Leaf { .. }),
        ),
        (
            "moved to another execution",
            |lines, at| entry(lines, at).execution = ExecutionId::new("exec_z"),
            |why| matches!(why, FaultReason::Entry(chain::EntryDefect::Foreign { .. })),
        ),
        (
            "renumbered",
            |lines, at| entry(lines, at).seq += 1,
            |why| matches!(why, FaultReason::Entry(chain::EntryDefect::Renumbered { .. })),
        ),
        (
            "given another place",
            |lines, at| entry(lines, at).leaf = Some(99),
            |why| matches!(why, FaultReason::Leaf { .. }),
        ),
        (
            "sent back to the tail",
            |lines, at| entry(lines, at).leaf = None,
            |why| matches!(why, FaultReason::Leaf { .. } | FaultReason::CheckpointSize { .. }),
        ),
    ];
    let ledger = Ledger::new(24, &[5, 16, 20]);
    for (name, tamper, expected) in table {
        for at in 0..20 {
            let mut lines = ledger.export(24);
            tamper(&mut lines, at);
            for trust in trusts(&ledger) {
                let (line, place, why) = fault(&lines, trust);
                assert!(expected(&why), "{name} at {at}: line {line}, {place:?}, {why}");
                assert!(line as usize + 2 >= position(&ledger.export(24), at), "{name} at {at}: line {line}");
            }
        }
    }
}

#[test]
fn payloads_cannot_be_changed_swapped_added_or_left_out() {
    let ledger = Ledger::new(24, &[24]);
    let with: Vec<usize> = (0..24).filter(|&at| !ledger.entries[at].payloads.is_empty()).collect();
    assert!(with.len() > 5);
    for pair in with.windows(2) {
        let [a, b] = pair.try_into().unwrap();
        let check = |tamper: &dyn Fn(&mut Vec<ExportLine>), expected: fn(&FaultReason) -> bool| {
            let mut lines = ledger.export(24);
            tamper(&mut lines);
            let (_, place, why) = fault(&lines, TrustAnchors::default());
            assert!(expected(&why), "{why}");
            let EntryLine { execution, seq, .. } = &ledger.entries[a];
            assert_eq!(place, Some((execution.to_string(), *seq)));
        };
        let wrong = |why: &FaultReason| matches!(why, FaultReason::Entry(chain::EntryDefect::Payload(_)));
        let listed = |why: &FaultReason| *why == FaultReason::PayloadList;
        check(
            &|lines| match &mut entry(lines, a).payloads[0] {
                PayloadLine::Present { bytes, .. } => bytes.push(' '),
                PayloadLine::Erased { .. } => unreachable!("nothing is erased yet"),
            },
            wrong,
        );
        check(
            &|lines| match &mut entry(lines, a).payloads[0] {
                PayloadLine::Present { salt, .. } => *salt = PayloadSalt([0; 16]),
                PayloadLine::Erased { .. } => unreachable!("nothing is erased yet"),
            },
            wrong,
        );
        check(
            &|lines| {
                let other = entry(lines, b).payloads.clone();
                let mine = std::mem::replace(&mut entry(lines, a).payloads, other);
                entry(lines, b).payloads = mine;
            },
            listed,
        );
        check(&|lines| entry(lines, a).payloads.clear(), listed);
        check(
            &|lines| {
                let twice = entry(lines, a).payloads[0].clone();
                entry(lines, a).payloads.push(twice);
            },
            listed,
        );
    }
}

#[test]
fn erasing_payloads_leaves_the_proof_whole() {
    let ledger = Ledger::new(24, &[16, 24]);
    let mut lines = ledger.export(24);
    let mut erased = 0;
    for at in 0..24 {
        for payload in &mut entry(&mut lines, at).payloads {
            *payload = PayloadLine::new(payload.commitment(), None);
            erased += 1;
        }
    }
    let verdict = verify(&lines, keyed());
    assert_eq!((verdict.fault.clone(), verdict.erased, verdict.assurance), (None, erased, Assurance::Signed));
    assert!(verdict.to_string().contains("payloads erased"));
}

#[test]
fn truncation_is_found_only_with_an_external_checkpoint_or_receipt() {
    let ledger = Ledger::new(24, &[5, 16, 20]);
    let whole = ledger.export(24);
    for keep in 1..whole.len() {
        let cut = &whole[..keep];
        let entries = cut.iter().filter(|line| matches!(line, ExportLine::Entry(_))).count() as u64;
        assert!(verify(cut, TrustAnchors::default()).is_clean());
        assert!(verify(cut, keyed()).is_clean());

        let stored = TrustAnchors { checkpoints: vec![ledger.notes[2].1.clone()], ..keyed() };
        let verdict = verify(cut, stored);
        match entries < 20 {
            true => assert_eq!(verdict.fault.unwrap().why, FaultReason::Truncated { checkpoint_size: 20, entries }),
            false => assert_eq!(verdict.fault, None),
        }
        let receipt = TrustAnchors { receipts: vec![ledger.receipt(23)], ..keyed() };
        match entries < 24 {
            true => assert!(matches!(fault(cut, receipt).2, FaultReason::ReceiptMissing { seq: 8, .. })),
            false => assert!(verify(cut, receipt).is_clean()),
        }
    }
}

#[test]
fn a_rewrite_with_new_hashes_is_found_with_the_public_key() {
    let ledger = Ledger::new(24, &[5, 16]);
    let forged = Ledger::with(24, &[5, 16], &key(), &mut rewritten);

    // Without checkpoints the chain alone cannot show it, but a receipt does.
    let bare: Vec<ExportLine> =
        forged.export(24).into_iter().filter(|line| !matches!(line, ExportLine::Checkpoint(_))).collect();
    assert_eq!(verify(&bare, keyed()).assurance, Assurance::ChainOnly);
    let receipt = TrustAnchors { receipts: vec![ledger.receipt(3)], ..keyed() };
    assert_eq!(fault(&bare, receipt).2, FaultReason::ReceiptDiffers);

    // With the old checkpoints the root differs, and the report has the range of positions.
    let mut stored = forged.export(24);
    for at in checkpoints(&stored) {
        stored[at] = ledger.export(24)[at].clone();
    }
    assert_eq!(fault(&stored, TrustAnchors::default()), (7, None, FaultReason::Root { from: 0, to: 5 }));

    // With the forger's own key everything is consistent, but the reader does not trust that key.
    let own = SigningKey::new("rutter.example", [4; 32]).unwrap();
    let mut resigned = Ledger::with(24, &[5, 16], &own, &mut rewritten).export(24);
    resigned[0] = header(ExportScope::Ledger, &own);
    let verdict = verify(&resigned, TrustAnchors::default());
    assert_eq!((verdict.fault, verdict.assurance), (None, Assurance::ChainOnly));
    assert!(matches!(fault(&resigned, keyed()), (1, None, FaultReason::Key(_))));

    // With the stolen key, only an external checkpoint or receipt shows it.
    assert_eq!(verify(&forged.export(24), keyed()).fault, None);
    let outside = TrustAnchors { checkpoints: vec![ledger.notes[0].1.clone()], ..keyed() };
    assert_eq!(fault(&forged.export(24), outside).2, FaultReason::OutsideRoot { size: 5 });
}

#[test]
fn checkpoints_and_proofs_must_hold() {
    let ledger = Ledger::new(24, &[10, 16, 19]);
    let whole = ledger.export(24);
    let at = checkpoints(&whole);
    let tampered = |tamper: &dyn Fn(&mut Vec<ExportLine>)| {
        let mut lines = whole.clone();
        tamper(&mut lines);
        fault(&lines, keyed())
    };
    let note = |lines: &mut Vec<ExportLine>, at: usize, from: &str, to: &str| match &mut lines[at] {
        ExportLine::Checkpoint(line) => line.note = line.note.replacen(from, to, 1),
        _ => unreachable!("only checkpoints are asked for"),
    };
    for &at in &at {
        let line = at as u64 + 1;
        for (from, to) in [("\n1", "\n2"), ("time 1", "time 2"), ("acme", "acne"), ("\n\n", "\nx\n\n")] {
            let (found, _, why) = tampered(&|lines| note(lines, at, from, to));
            assert!(found == line && matches!(why, FaultReason::Checkpoint(_)), "{from}: line {found}, {why}");
        }
        let (found, _, why) = tampered(&|lines| note(lines, at, " rutter.example ", " another.example "));
        assert!(found == line && matches!(why, FaultReason::Checkpoint(_)), "line {found}, {why}");
    }
    for &at in &at[1..] {
        for bit in 0..256 {
            let flipped = tampered(&|lines| match &mut lines[at] {
                ExportLine::Checkpoint(line) => line.consistency[0].0[bit / 8] ^= 1 << (bit % 8),
                _ => unreachable!("only checkpoints are asked for"),
            });
            assert_eq!(flipped, (at as u64 + 1, None, FaultReason::Consistency));
        }
    }
    // If one is missing, the next has no proof from the one before. The last can be truncated.
    for &at in &at[..2] {
        assert_eq!(tampered(&|lines| drop(lines.remove(at))).2, FaultReason::Consistency);
    }
    let early = tampered(&|lines| lines.swap(at[0], at[0] - 1));
    assert_eq!(early.2, FaultReason::CheckpointSize { says: 10, entries: 9 });
}

#[test]
fn inclusion_proofs_must_hold() {
    let ledger = Ledger::new(24, &[5, 16, 20]);
    let whole = ledger.export_execution("exec_b");
    for at in 4..whole.len() - 1 {
        let check = |tamper: &dyn Fn(&mut EntryLine)| {
            let mut lines = whole.clone();
            match &mut lines[at] {
                ExportLine::Entry(entry) => tamper(entry),
                _ => unreachable!("entries follow the checkpoints"),
            }
            assert_eq!(fault(&lines, keyed()).2, FaultReason::Proof);
        };
        check(&|entry| entry.proof.as_mut().unwrap().path[0] = Hash::ZERO);
        check(&|entry| entry.proof.as_mut().unwrap().path.clear());
        check(&|entry| entry.proof.as_mut().unwrap().size = 17);
        check(&|entry| entry.leaf = entry.leaf.map(|leaf| leaf + 1));
        check(&|entry| entry.leaf = None);
        check(&|entry| entry.proof = None);
    }
    let mut late = whole.clone();
    late.swap(3, 4);
    assert!(matches!(fault(&late, keyed()).2, FaultReason::Proof | FaultReason::Order(_)));
    let mut whole_ledger = ledger.export(24);
    entry(&mut whole_ledger, 1).proof = match &whole[4] {
        ExportLine::Entry(entry) => entry.proof.clone(),
        _ => unreachable!("entries follow the checkpoints"),
    };
    assert!(matches!(fault(&whole_ledger, keyed()).2, FaultReason::Order(_)));
}

#[test]
fn lines_out_of_order_or_form_are_refused() {
    let ledger = Ledger::new(6, &[6]);
    let whole = text(&ledger.export(6));
    let lines: Vec<&str> = whole.strip_suffix('\n').unwrap().split('\n').collect();
    let check = |lines: &[&str], line: u64| {
        let fault = verify_export(lines, keyed()).fault.unwrap();
        assert!(
            fault.line == line
                && matches!(fault.why, FaultReason::Line(_) | FaultReason::Order(_) | FaultReason::Format(_)),
            "{fault}"
        );
    };
    check(&[], 0);
    check(&lines[1..], 1);
    check(&[lines[0], lines[0]], 2);
    check(&[&lines[0].replace("export/1", "export/2")], 1);
    check(&[&lines[0].replace("ledger", "ledges")], 1);
    for (from, to) in [
        (":", ": "),
        ("\"seq\":", "\"seq\":0"),
        ("\"seq\":1", "\"seq\":1.0"),
        ("\"leaf\":0,", ""),
        ("\"leaf\":0", "\"leaf\":0,\"leaf\":0"),
        ("exec_a", "exec\\u005fa"),
        ("\"payloads\"", "\"extra\":1,\"payloads\""),
        ("}}", "}}\r"),
    ] {
        let changed = lines[1].replacen(from, to, 1);
        assert_ne!(changed, lines[1]);
        check(&[lines[0], &changed], 2);
    }
    let deep = format!("{{\"entry\":{}", "[".repeat(100_000));
    check(&[lines[0], &deep], 2);
}

/// Whichever bit is flipped, the export is no longer clean.
#[test]
fn no_flipped_bit_of_a_small_export_goes_unseen() {
    let ledger = Ledger::new(4, &[0, 2, 3]);
    for mut lines in [ledger.export(3), ledger.export_execution("exec_a")] {
        if let Some(ExportLine::Entry(first)) = lines.iter_mut().find(|line| matches!(line, ExportLine::Entry(_))) {
            first.payloads[0] = PayloadLine::new(first.payloads[0].commitment(), None);
        }
        let bytes = text(&lines).into_bytes();
        // The lines before the flipped bit are clean and need not be read again.
        let mut before = LedgerVerifier::new(keyed());
        let mut start = 0;
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            for bit in 0..line.len() * 8 {
                let mut flipped = bytes[start..bytes.len() - 1].to_vec();
                if let Some(byte) = flipped.get_mut(bit / 8) {
                    *byte ^= 1 << (bit % 8);
                    let mut verifier = before.clone();
                    flipped.split(|&byte| byte == b'\n').for_each(|line| verifier.read(line));
                    assert!(!verifier.finish().is_clean(), "bit {} of byte {}", bit % 8, start + bit / 8);
                }
            }
            before.read(&line[..line.len() - 1]);
            start += line.len();
        }
        assert_eq!(before.finish().fault, None);
    }
}

proptest! {
    #[test]
    fn arbitrary_lines_never_panic(lines: Vec<Vec<u8>>) {
        let header = text(&[header(ExportScope::Ledger, &key())]);
        let _ = verify_export(&lines, keyed());
        let _ = verify_export(std::iter::once(header.trim_end().as_bytes().to_vec()).chain(lines), keyed());
    }

    #[test]
    fn shuffled_exports_are_never_clean(a in 0..28_usize, b in 0..28_usize) {
        let ledger = Ledger::new(24, &[5, 16, 20]);
        let mut lines = ledger.export(24);
        lines.swap(a, b);
        prop_assert_eq!(verify(&lines, keyed()).is_clean(), a == b);
    }
}
