//! The independent verifier in tools/ and ours must agree on clean exports and on the first bad line.
//!
//! `RUTTER_PYTHON` names an interpreter that has the package `cryptography`; the default is `python3`.

use crate::journal::ledger::{Ledger, header, key, keyed, text};
use rutter_core::id::ExecutionId;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::journal::export::{CheckpointLine, EntryLine, ExportLine, ExportScope, PayloadLine};
use rutter_core::journal::note::SigningKey;
use rutter_core::journal::verify::{TrustAnchors, VerificationReport, verify_export};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The result both must report: clean, or the first bad line and its entry.
#[derive(Debug, PartialEq)]
enum VerifierAnswer {
    Clean(String),
    Bad { line: u64, entry: Option<String> },
}

fn ours(verdict: &VerificationReport) -> VerifierAnswer {
    let Some(fault) = &verdict.fault else {
        let level = verdict.assurance.to_string()[..2].to_owned();
        let (entries, unprotected, erased) = (verdict.entries, verdict.unprotected(), verdict.erased);
        return VerifierAnswer::Clean(format!(
            "{level}: {entries} entries, {unprotected} unprotected, {erased} payloads erased"
        ));
    };
    let entry = fault.entry.as_ref().map(|(execution, seq)| format!("entry {seq} of {execution}"));
    VerifierAnswer::Bad { line: fault.line, entry }
}

fn theirs(name: &str, export: &str, trust: &TrustAnchors) -> VerifierAnswer {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python_verifier").join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let write = |file: &str, text: &str| -> PathBuf {
        let path = directory.join(file);
        std::fs::write(&path, text).unwrap();
        path
    };
    let python = std::env::var("RUTTER_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut command = Command::new(&python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/verify_journal.py"));
    command.arg(write("export.ndjson", export));
    for key in &trust.keys {
        command.arg("--key").arg(key.to_string());
    }
    for (at, note) in trust.checkpoints.iter().enumerate() {
        command.arg("--checkpoint").arg(write(&format!("checkpoint_{at}"), note));
    }
    for (at, receipt) in trust.receipts.iter().enumerate() {
        let receipt = serde_json::to_string(receipt).unwrap();
        command.arg("--receipt").arg(write(&format!("receipt_{at}"), &receipt));
    }
    let output = command.output().unwrap_or_else(|error| panic!("{python} does not start: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !errors.contains("No module named 'cryptography'"),
        "{python} lacks the package cryptography: pip install cryptography, or set RUTTER_PYTHON"
    );
    let message = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    match output.status.code() {
        Some(0) => VerifierAnswer::Clean(message),
        Some(1) if errors.is_empty() => {
            let mut fields = message.splitn(3, ": ");
            let line = fields.next().unwrap().strip_prefix("line ").unwrap().parse().unwrap();
            let entry = fields.next().filter(|field| field.starts_with("entry ") && field.contains(" of "));
            VerifierAnswer::Bad { line, entry: entry.map(str::to_owned) }
        }
        code => panic!("{name}: exit status {code:?}: {message}{errors}"),
    }
}

/// Asserts that both agree on the lines, and returns whether they are clean.
fn agree(name: &str, lines: &[ExportLine], trust: TrustAnchors) -> bool {
    agree_on_text(name, &text(lines), trust)
}

fn agree_on_text(name: &str, export: &str, trust: TrustAnchors) -> bool {
    let verdict = verify_export(export.strip_suffix('\n').unwrap().split('\n'), trust.clone());
    let (mut theirs, ours) = (theirs(name, export, &trust), ours(&verdict));
    // Where we cannot parse a line at all, the other verifier may already know its entry.
    if let (VerifierAnswer::Bad { entry, .. }, VerifierAnswer::Bad { entry: None, .. }) = (&mut theirs, &ours) {
        *entry = None;
    }
    assert_eq!(theirs, ours, "{name}: {verdict}");
    verdict.is_clean()
}

fn entry(line: &mut ExportLine) -> &mut EntryLine {
    match line {
        ExportLine::Entry(entry) => entry,
        _ => unreachable!("an entry was asked for"),
    }
}

fn checkpoint(line: &mut ExportLine) -> &mut CheckpointLine {
    match line {
        ExportLine::Checkpoint(checkpoint) => checkpoint,
        _ => unreachable!("a checkpoint was asked for"),
    }
}

fn killed(at: usize, record: EventRecord) -> EventRecord {
    match at {
        0 => EventRecord { event: Event::Killed { reason: "never happened".to_owned() }, ..record },
        _ => record,
    }
}

#[test]
fn both_find_what_is_clean_clean() {
    let ledger = Ledger::new(40, &[0, 5, 16, 33, 38]);
    let stored = |at: usize| TrustAnchors { checkpoints: vec![ledger.notes[at].1.clone()], ..keyed() };
    let receipt = TrustAnchors { receipts: vec![ledger.receipt(39)], ..keyed() };
    assert!(agree("clean_chain", &ledger.export(40), TrustAnchors::default()));
    assert!(agree("clean_signed", &ledger.export(39), keyed()));
    assert!(agree("clean_compared", &ledger.export(40), stored(2)));
    assert!(agree("clean_receipt", &ledger.export(40), receipt));
    assert!(agree("clean_part", &ledger.export_execution("exec_b"), stored(3)));
    assert!(agree("clean_empty", &Ledger::new(0, &[0]).export(0), keyed()));
    for size in [1, 2, 3, 4, 7, 8, 11, 16] {
        let sizes: Vec<u64> = [size, size + 1, 2 * size + 3].into();
        let ledger = Ledger::new(40, &sizes);
        assert!(agree(&format!("proofs_{size}"), &ledger.export_execution("exec_a"), keyed()));
    }
    let mut erased = ledger.export(40);
    let first = entry(&mut erased[2]);
    first.payloads[0] = PayloadLine::new(first.payloads[0].commitment(), None);
    assert!(agree("erased_payload", &erased, keyed()));
}

#[test]
fn both_find_the_same_first_bad_line() {
    // Line 0 is the header; entries 0 to 4 are lines 1 to 5; then the checkpoint of five, and so on.
    let ledger = Ledger::new(24, &[5, 16, 20]);
    type Tamper = fn(&mut Vec<ExportLine>);
    let table: [(&str, Tamper); 17] = [
        ("change", |l| entry(&mut l[3]).bytes = entry(&mut l[3]).bytes.replace("acme", "acne")),
        ("insert", |l| l.insert(8, l[7].clone())),
        ("delete", |l| drop(l.remove(4))),
        ("delete_before_checkpoint", |l| drop(l.remove(5))),
        ("reorder", |l| l.swap(2, 5)),
        ("reorder_neighbours", |l| l.swap(2, 3)),
        ("swap_payloads", |l| {
            let other = entry(&mut l[3]).payloads.clone();
            entry(&mut l[1]).payloads = other;
        }),
        ("change_payload", |l| match &mut entry(&mut l[1]).payloads[0] {
            PayloadLine::Present { bytes, .. } => bytes.insert(0, ' '),
            PayloadLine::Erased { .. } => unreachable!("nothing was erased"),
        }),
        ("drop_payload", |l| entry(&mut l[1]).payloads.clear()),
        ("move_to_another_execution", |l| entry(&mut l[7]).execution = ExecutionId::new("exec_b")),
        ("place_changed", |l| entry(&mut l[7]).leaf = Some(3)),
        ("sent_to_the_tail", |l| entry(&mut l[7]).leaf = None),
        ("forged_checkpoint", |l| {
            let note = &mut checkpoint(&mut l[6]).note;
            *note = note.replacen("\n5\n", "\n4\n", 1);
        }),
        ("flipped_bit_in_proof", |l| checkpoint(&mut l[18]).consistency[1].0[9] ^= 4),
        ("flipped_bit_in_hash", |l| entry(&mut l[9]).hash.0[0] ^= 1),
        ("checkpoint_removed", |l| drop(l.remove(18))),
        ("second_header", |l| l.insert(4, l[0].clone())),
    ];
    for (name, tamper) in table {
        let mut lines = ledger.export(24);
        tamper(&mut lines);
        assert!(!agree(name, &lines, keyed()), "{name} is not detected");
    }
}

#[test]
fn both_find_cut_rewritten_and_foreign_exports() {
    let ledger = Ledger::new(24, &[5, 16, 20]);
    let outside = TrustAnchors { checkpoints: vec![ledger.notes[2].1.clone()], ..keyed() };
    let receipt = TrustAnchors { receipts: vec![ledger.receipt(23)], ..keyed() };
    let whole = ledger.export(24);
    let cut = &whole[..19];
    assert!(agree("cut_tail_v1", cut, keyed()));
    assert!(!agree("cut_tail_checkpoint", cut, outside.clone()));
    assert!(!agree("cut_tail_receipt", cut, receipt.clone()));

    let forged = Ledger::with(24, &[5, 16, 20], &key(), &mut killed).export(24);
    let mut old_notes = forged.clone();
    old_notes[6] = whole[6].clone();
    assert!(!agree("rewritten_v1", &old_notes, keyed()));
    assert!(agree("rewritten_with_the_stolen_key_v1", &forged, keyed()));
    assert!(!agree("rewritten_with_the_stolen_key_v2", &forged, outside));
    let early = TrustAnchors { receipts: vec![ledger.receipt(0)], ..keyed() };
    assert!(!agree("rewritten_receipt", &forged, early));

    let own = SigningKey::new("rutter.example", [4; 32]).unwrap();
    let mut resigned = Ledger::with(24, &[5, 16, 20], &own, &mut killed).export(24);
    assert!(!agree("wrong_key", &resigned, keyed()));
    resigned[0] = header(ExportScope::Ledger, &own);
    assert!(!agree("wrong_key_in_header", &resigned, keyed()));
    assert!(agree("own_key_untrusted", &resigned, TrustAnchors::default()));

    let mut part = ledger.export_execution("exec_c");
    entry(&mut part[5]).proof.as_mut().unwrap().path[1].0[31] ^= 128;
    assert!(!agree("flipped_bit_in_inclusion", &part, keyed()));
}

#[test]
fn both_refuse_other_ways_to_write_a_line() {
    let export = text(&Ledger::new(6, &[3, 6]).export(6));
    for (at, (from, to)) in [
        ("\"seq\":1,", "\"seq\": 1,"),
        ("\"seq\":1,", "\"seq\":1.0,"),
        ("\"seq\":1,", "\"seq\":true,"),
        ("\"seq\":1,", "\"seq\":1,\"seq\":1,"),
        ("exec_b", "exec\\u005fb"),
        ("\"leaf\":1,", ""),
        ("\"payloads\":[]", "\"payloads\":[],\"proof\":null"),
        ("\"consistency\":[]", "\"consistency\":null"),
        ("rutter-export/1", "rutter-export/2"),
        ("\"kept\":", "\"Kept\":"),
        ("}}\n", "}}\r\n"),
        ("}}\n", "}}\n\n"),
        ("{\"entry\"", "{\"entrx\""),
    ]
    .into_iter()
    .enumerate()
    {
        let changed = export.replacen(from, to, 1);
        assert_ne!(changed, export, "{from}");
        assert!(!agree_on_text(&format!("form_{at}"), &changed, keyed()), "{from} as {to}");
    }
}
