//! Erasing payloads: they are gone from every file, and the ledger still verifies.

use crate::query::fixture::{Pen, QueryFixture, acme, of, plan};
use rutter_core::actor::Actor;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, PlanId};
use rutter_core::journal::event::Event;
use rutter_core::journal::payload::EventPayload;
use rutter_core::journal::verify::TrustAnchors;
use rutter_core::port::Error;
use rutter_core::port::journal::{Journal, PlanState, PlanStateChange};
use rutter_core::port::query::{Pagination, PlanFilter, StoreQuery};
use rutter_core::port::upkeep::{ErasedTotals, ErasureRequest, StoreMaintenance};
use rutter_core::time::Timestamp;
use rutter_store::sqlite::DATABASE;
use rutter_store::{SqliteArchive, compress, wait};
use serde_json::json;
use std::path::Path;

const CANARY: &str = "canary-in-a-cage";

pub fn erasure(identity: &ExecutionIdentity) -> ErasureRequest {
    let (actor, reason) = (Actor::person("operator"), "asked to forget".to_owned());
    ErasureRequest { identity: identity.clone(), entries: None, actor, at: Timestamp(99), reason }
}

/// The files of a directory that have these bytes somewhere.
pub fn files_with(directory: &Path, bytes: &[u8]) -> Vec<String> {
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap());
    let has = |path: &Path| std::fs::read(path).unwrap().windows(bytes.len()).any(|window| window == bytes);
    files.filter(|file| has(&file.path())).map(|file| file.file_name().into_string().unwrap()).collect()
}

/// Bytes that do not compress, so that they can be looked for in the files.
fn noise(length: usize) -> String {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + (state >> 33) as u8 % 90).to_string().replace(['"', '\\'], "~")
    };
    (0..length).map(|_| next()).collect()
}

/// The same for text, whatever the case of its letters: the index of words folds it.
fn files_with_text(directory: &Path, text: &str) -> Vec<String> {
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap());
    let has = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text.as_bytes()))
    };
    files.filter(|file| has(&file.path())).map(|file| file.file_name().into_string().unwrap()).collect()
}

#[test]
fn the_words_and_tags_of_a_deleted_plan_are_in_no_file() {
    let fixture = QueryFixture::new();
    for number in 0..30 {
        fixture.save("acme", &format!("plan_other{number}"), &plan(&format!("other {number}"), json!({})), 2);
    }
    // Words of the name stay: the ledger's own journal says which plan was deleted.
    let secret = json!({ "goal": "visit the Zanzibarquay", "tags": ["quinquereme"], "description": "Nineveh" });
    fixture.save("acme", "plan_secret", &plan("first", secret), 3);
    fixture.save("acme", "plan_secret", &plan("first", json!({ "description": "the Dirtysmokestack" })), 4);
    for word in ["zanzibarquay", "dirtysmokestack"] {
        assert!(!files_with_text(fixture.directory.path(), word).is_empty(), "{word}");
    }
    let change = PlanStateChange {
        tenant: acme(),
        id: PlanId::new("plan_secret"),
        to: PlanState::Deleted,
        actor: Actor::person("operator"),
        at: Timestamp(5),
        reason: "asked to forget".to_owned(),
    };
    wait(fixture.store.change_plan(change)).unwrap();
    for word in ["zanzibarquay", "quinquereme", "nineveh", "dirtysmokestack"] {
        assert_eq!(files_with_text(fixture.directory.path(), word), [""; 0], "{word}");
    }
    let filter = PlanFilter { text: Some("other".into()), ..PlanFilter::default() };
    let others = wait(fixture.store.plans(&acme(), filter, Pagination::first(100))).unwrap().items;
    assert_eq!(others.len(), 30, "the words of other plans stay");
}

fn details(pen: &Pen<'_>, fixture: &QueryFixture) -> Vec<Option<EventPayload>> {
    let records = wait(fixture.store.load(&pen.identity)).unwrap().records;
    let details = records.into_iter().filter_map(|record| match record.event {
        Event::DecisionRecorded { details, .. } => Some(details),
        _ => None,
    });
    details.collect()
}

#[test]
fn erased_payloads_are_in_no_file_and_the_chain_stays_valid() {
    let fixture = QueryFixture::new();
    let mut pen = fixture.open("exec_1", 1);
    let (compressible, noise) = (format!("{CANARY}{}", "ab".repeat(5_000)), noise(200_000));
    let large = format!("{CANARY}{}", "cd".repeat(100_000));
    for text in [CANARY, &compressible, &large, &noise] {
        pen.note("look", json!(text));
    }
    let head = pen.chain.head();
    // What the files contain: the short text as it is, the others packed; packing hardly changes the noise.
    let packed = |text: &str| compress::pack(json!(text).to_string().as_bytes());
    let traces = [CANARY.as_bytes().to_vec(), packed(&compressible), packed(&large)[20..].to_vec()];
    let piece_of_noise = packed(&noise)[100_000..100_064].to_vec();
    for trace in traces.iter().chain([&piece_of_noise]) {
        assert!(!files_with(fixture.directory.path(), trace).is_empty());
    }

    let bytes = [CANARY, &compressible, &large, &noise].map(|text| text.len() as u64 + 2).iter().sum::<u64>();
    let some = ErasureRequest { entries: Some(vec![2, 3, 4, 5, 5, 77, u64::MAX]), ..erasure(&pen.identity) };
    assert_eq!(wait(fixture.store.erase(some)), Ok(ErasedTotals { payloads: 4, bytes }));

    for trace in traces.iter().chain([&piece_of_noise]) {
        assert_eq!(files_with(fixture.directory.path(), trace), [""; 0]);
    }
    assert_eq!(details(&pen, &fixture), vec![Some(EventPayload::Erased); 4]);
    assert_eq!(wait(fixture.store.load(&pen.identity)).unwrap().head, head);
    assert_eq!(verify(&fixture), (4, 0));
    let rest = ErasedTotals { payloads: 1, bytes: json!({"for": "exec_1"}).to_string().len() as u64 };
    assert_eq!(wait(fixture.store.erase(erasure(&pen.identity))), Ok(rest));
    let own = fixture.entries(of("ledger"));
    let reason = "asked to forget".to_owned();
    let event = Event::PayloadsErased { execution: ExecutionId::new("exec_1"), payloads: 4, reason };
    assert_eq!((own.len(), &own[1].record.event, own[1].record.at), (3, &event, Timestamp(99)));
    assert_eq!(own[1].record.actor, Actor::person("operator"));
}

/// Checks the whole ledger; returns how many payloads are erased and how many entries removed.
pub fn verify(fixture: &QueryFixture) -> (u64, u64) {
    let mut archive = SqliteArchive::open(fixture.directory.path()).unwrap();
    let checked = archive.verify(&acme(), TrustAnchors::default(), false, &mut |_| ()).unwrap();
    assert!(checked.is_clean(), "{checked:?}");
    (checked.verdict.erased, checked.verdict.removed)
}

#[test]
fn a_payload_that_another_execution_shares_stays_there() {
    let fixture = QueryFixture::new();
    let large = json!("x".repeat(100_000));
    let mut pens = ["exec_1", "exec_2"].map(|name| fixture.open(name, 1));
    pens.iter_mut().for_each(|pen| pen.note("large", large.clone()));
    wait(fixture.store.erase(erasure(&pens[0].identity))).unwrap();
    assert_eq!(details(&pens[0], &fixture), [Some(EventPayload::Erased)]);
    assert_eq!(details(&pens[1], &fixture), [Some(EventPayload::new(large))]);
    wait(fixture.store.erase(erasure(&pens[1].identity))).unwrap();
    let connection = rusqlite::Connection::open(fixture.directory.path().join(DATABASE)).unwrap();
    let blobs: i64 = connection.query_row("select count(*) from blob", [], |row| row.get(0)).unwrap();
    assert_eq!(blobs, 0);
}

#[test]
fn erasing_nothing_records_nothing() {
    let fixture = QueryFixture::new();
    let pen = fixture.open("exec_1", 1);
    wait(fixture.store.erase(erasure(&pen.identity))).unwrap();
    let before = fixture.entries(of("ledger")).len();
    assert_eq!(wait(fixture.store.erase(erasure(&pen.identity))), Ok(ErasedTotals::default()));
    let none = ErasureRequest { entries: Some(Vec::new()), ..erasure(&pen.identity) };
    assert_eq!(wait(fixture.store.erase(none)), Ok(ErasedTotals::default()));
    assert_eq!(fixture.entries(of("ledger")).len(), before);
}

#[test]
fn only_existing_executions_of_the_tenant_can_be_erased() {
    let fixture = QueryFixture::new();
    let pen = fixture.open("exec_1", 1);
    let other = ExecutionIdentity { tenant: rutter_core::id::TenantId::new("other"), ..pen.identity.clone() };
    let ledger = ExecutionIdentity { execution: ExecutionId::new("ledger"), ..pen.identity.clone() };
    for identity in [other, ledger] {
        let refused = wait(fixture.store.erase(erasure(&identity))).unwrap_err();
        assert_eq!(refused.code(), "store.not_found");
    }
    let long = ErasureRequest { reason: "x".repeat(4_097), ..erasure(&pen.identity) };
    let limit = Error::Limit { limit: "reason_bytes_max", max: 4_096, found: 4_097 };
    assert_eq!(wait(fixture.store.erase(long)), Err(limit));
    assert_eq!(verify(&fixture), (0, 0));
}

#[test]
fn a_reader_that_needs_the_log_delays_its_emptying_but_not_for_ever() {
    let fixture = QueryFixture::new();
    let mut pen = fixture.open("exec_1", 1);
    pen.note("look", json!(CANARY));
    let mut reader = rusqlite::Connection::open(fixture.directory.path().join(DATABASE)).unwrap();
    let reading = reader.transaction().unwrap();
    let count = |connection: &rusqlite::Connection| -> i64 {
        connection.query_row("select count(*) from payload", [], |row| row.get(0)).unwrap()
    };
    assert_eq!(count(&reading), 2);
    assert_eq!(wait(fixture.store.erase(erasure(&pen.identity))).unwrap().payloads, 2);
    assert!(!files_with(fixture.directory.path(), CANARY.as_bytes()).is_empty());
    drop(reading);
    // At the latest with the next write.
    fixture.open("exec_2", 1);
    assert_eq!(files_with(fixture.directory.path(), CANARY.as_bytes()), [""; 0]);
    assert_eq!(count(&reader), 1);
}
