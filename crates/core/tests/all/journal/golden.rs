//! The bytes of every variant, as the first release wrote them. A new variant adds a line; lines never
//! change, because stored entries must be readable for ever.

use crate::journal::samples::{Values, all_plain, events};
use proptest::prelude::*;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::codec;
use rutter_core::journal::event::Event;
use rutter_core::journal::label::KINDS;
use rutter_core::journal::payload::Commitment;
use rutter_core::time::{Timestamp, calendar};
use serde_json::Value;
use std::collections::BTreeSet;

const GOLDEN: &str = include_str!("../../journal_golden/v1.ndjson");

/// The names of all variants, which the decoder lists when it meets an unknown one.
fn variants() -> BTreeSet<String> {
    let error = serde_json::from_str::<Event<Commitment>>(r#"{"":{}}"#).unwrap_err().to_string();
    error.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

fn variant(line: &str) -> String {
    let value: Value = serde_json::from_str(line).unwrap();
    value["event"].as_object().unwrap().keys().next().unwrap().clone()
}

/// Seals every event, with every choice inside it, into one chain.
fn sealed() -> Vec<String> {
    let mut salts = Values::plain(0);
    let mut chain = HashChain::new(TenantId::new("acme"), ExecutionId::new("exec_1"));
    let sealed = all_plain().into_iter().enumerate().map(|(at, event)| {
        let record = Values::plain(at).record(event);
        let (entry, _) = chain.seal(&record, &mut || salts.salt()).unwrap();
        String::from_utf8(entry.bytes.to_vec()).unwrap()
    });
    sealed.collect()
}

#[test]
fn every_variant_has_golden_bytes() {
    let golden: BTreeSet<String> = GOLDEN.lines().map(variant).collect();
    for (event, line) in all_plain().iter().zip(GOLDEN.lines()) {
        assert_eq!(event.kind(), variant(line));
    }
    assert!(golden.len() > 30);
    assert_eq!(golden, variants());
    assert_eq!(golden, KINDS.iter().map(|kind| (*kind).to_owned()).collect());
}

#[test]
fn golden_bytes_are_what_is_written_today() {
    let lines = sealed();
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        // Lines of new variants are added; the others are for ever.
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journal_golden/v1.ndjson");
        let added = lines.iter().skip(GOLDEN.lines().count()).map(|line| format!("{line}\n"));
        std::fs::write(path, format!("{GOLDEN}{}", added.collect::<String>())).expect("the golden file can be written");
        return;
    }
    for (line, golden) in lines.iter().zip(GOLDEN.lines()) {
        assert_eq!(line, golden, "if the variant is new, this is its golden line");
    }
    assert_eq!(lines.len(), GOLDEN.lines().count(), "the last line is {:?}", lines.last());
}

#[test]
fn golden_bytes_are_read_and_written_back() {
    for (line, seq) in GOLDEN.lines().zip(1..) {
        let stored = codec::decode(line.as_bytes()).unwrap();
        assert_eq!((stored.tenant.as_str(), stored.execution.as_str(), stored.seq), ("acme", "exec_1", seq));
        assert_eq!(stored.encode(), line.as_bytes());
    }
}

#[test]
fn no_field_of_golden_bytes_can_be_renamed_or_added_quietly() {
    for line in GOLDEN.lines() {
        for (at, _) in line.match_indices("\":") {
            let renamed = [&line[..at], "x", &line[at..]].concat();
            assert!(codec::decode(renamed.as_bytes()).is_err(), "{renamed}");
        }
    }
}

/// Finds commitments without decoding events.
fn commitments(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(map) if map.len() == 1 && map.contains_key("payload") => {
            found.push(map["payload"].as_str().unwrap().to_owned());
        }
        Value::Object(map) => map.values().for_each(|value| commitments(value, found)),
        Value::Array(list) => list.iter().for_each(|value| commitments(value, found)),
        _ => {}
    }
}

#[test]
fn commitments_are_found_without_knowing_the_events() {
    let mut total = 0;
    for line in GOLDEN.lines() {
        let mut found = Vec::new();
        commitments(&serde_json::from_str::<Value>(line).unwrap()["event"], &mut found);
        let stored = codec::decode(line.as_bytes()).unwrap();
        let known: Vec<String> = stored.commitments().iter().map(|known| known.hash.to_string()).collect();
        assert_eq!(found, known, "{line}");
        assert_eq!(codec::commitments_in(line.as_bytes()), stored.commitments(), "{line}");
        total += found.len();
    }
    assert!(total >= 14, "{total}");
}

/// A number of milliseconds in this century, which only a time is.
fn is_time(value: &Value) -> bool {
    value.as_i64().is_some_and(|number| number > 946_684_800_000)
}

/// Pointers to the values that satisfy `is`.
fn pointers(value: &Value, is: fn(&Value) -> bool) -> Vec<String> {
    let inside = |name: String, value: &Value| -> Vec<String> {
        pointers(value, is).into_iter().map(|rest| format!("/{name}{rest}")).collect()
    };
    match value {
        value if is(value) => vec![String::new()],
        Value::Object(map) => map.iter().flat_map(|(name, value)| inside(name.clone(), value)).collect(),
        Value::Array(list) => list.iter().enumerate().flat_map(|(at, value)| inside(at.to_string(), value)).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn times_are_numbers_in_golden_bytes_and_rfc_3339_for_readers() {
    let mut found = BTreeSet::new();
    for line in GOLDEN.lines() {
        let stored = codec::decode(line.as_bytes()).unwrap();
        let kind = stored.event.kind();
        let (bytes, fields) = (&serde_json::to_value(&stored.event).unwrap()[kind], Value::from(stored.event.fields()));
        assert_eq!(pointers(&fields, is_time), Vec::<String>::new(), "Event::times does not name a time of {kind}");
        for pointer in pointers(bytes, is_time) {
            let at = bytes.pointer(&pointer).and_then(Value::as_i64).unwrap();
            let text = fields.pointer(&pointer).and_then(Value::as_str).unwrap();
            assert_eq!(calendar::read(text), Some(Timestamp(at)), "{kind}{pointer}");
            found.insert(format!("{kind}{pointer}"));
        }
    }
    let expected = [
        "agent_silent/since",
        "approval_requested/expires_at",
        "attempt_failed/then/retry_at",
        "attempt_lost/then/retry_at",
        "attempt_started/deadline",
        "call_delayed/until",
        "doubt_settled/then/retry_at",
        "held/due/0/at",
        "held/due/1/at",
        "held/due/2/at",
        "held/due/3/at",
        "held/due/4/at",
        "held/due/5/at",
        "held/due/6/at",
        "held/due/7/at",
        "held/due/8/at",
        "held/since",
        "hold_ended/expired/0/at",
        "hold_ended/expired/1/at",
        "probe_postponed/until",
    ];
    assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected);
}

proptest! {
    #[test]
    fn what_is_sealed_opens_as_it_was(seed: u64) {
        let mut values = Values::random(seed);
        let events = events(&mut values);
        let mut chain = HashChain::new(TenantId::new("acme"), ExecutionId::new("exec_1"));
        for event in events {
            let record = values.record(event);
            let (entry, payloads) = chain.seal(&record, &mut || values.salt()).unwrap();
            let stored = codec::decode(&entry.bytes).unwrap();
            prop_assert_eq!(&stored.encode()[..], &entry.bytes[..]);
            let opened = stored.open(&|commitment| {
                payloads.iter().find(|sealed| sealed.commitment == commitment).cloned()
            });
            prop_assert_eq!(opened.unwrap(), record);
        }
    }

    #[test]
    fn damaged_golden_bytes_never_panic(line: prop::sample::Index, at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
        let mut bytes = GOLDEN.lines().nth(line.index(GOLDEN.lines().count())).unwrap().as_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let _ = codec::decode(&bytes);
        let _ = codec::decode(&bytes[..cut.index(bytes.len())]);
    }
}
