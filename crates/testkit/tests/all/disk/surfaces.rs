//! Whatever fails, and whenever: a mark moves with its deliveries or not at all, a register item changes with its
//! record or not at all, and what was acknowledged happened once.

use rutter_core::actor::Actor;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::port::Error;
use rutter_core::port::feed::LedgerFeed;
use rutter_core::port::outbox::{
    DeliveryAttempt, DeliveryFilter, DeliveryFollowUp, DeliveryOutbox, NewDelivery, ReaderAdvance,
};
use rutter_core::port::query::Pagination;
use rutter_core::port::register::{Register, RegisterChange, RegisterKind as Note, RegisterWrite};
use rutter_core::time::Timestamp;
use rutter_store::{SqliteStore, wait};
use rutter_testkit::disk::cases::{directory, open, play_all};
use rutter_testkit::disk::{DiskFault, DiskFaultKind, FaultyDisk};
use serde_json::json;
use std::path::Path;

const READER: &str = "courier";

fn tenant() -> TenantId {
    TenantId::new("acme")
}

/// The store's reply to each request; `None` was not sent.
#[derive(Debug, Default)]
struct Answer {
    first: Option<Result<(), Error>>,
    changed: Option<Result<(), Error>>,
    tried: Option<Result<(), Error>>,
    removed: Option<Result<(), Error>>,
    second: Option<Result<(), Error>>,
}

fn work(store: &SqliteStore) -> Answer {
    let first = wait(store.put(&tenant(), moved(0, 3), vec![delivery("e1"), delivery("e2")]));
    let changed = wait(store.write(changes(RegisterChange::put(Note::Webhook, "hook_1", json!({"url": "x"})))));
    let tried = match wait(store.due(Timestamp(9), &[], 1)) {
        Ok(due) => due.first().map(|delivery| {
            let outcome = "no answer".to_owned();
            let attempt = DeliveryAttempt { at: Timestamp(2), took_ms: 1, status: None, outcome };
            wait(store.record_attempt(delivery.number, attempt, DeliveryFollowUp::Again { at: Timestamp(5) }, None))
        }),
        Err(_) => None,
    };
    let second = wait(store.put(&tenant(), moved(3, 4), vec![delivery("e3")]));
    let removed = wait(store.write(changes(RegisterChange::remove(Note::Webhook, "hook_1").expecting(1))));
    Answer { first: Some(first), changed: Some(changed), tried, removed: Some(removed), second: Some(second) }
}

fn moved(from: u64, to: u64) -> Option<ReaderAdvance> {
    Some(ReaderAdvance { reader: READER.into(), from, to })
}

fn delivery(event: &str) -> NewDelivery {
    NewDelivery {
        destination: "hook_1".into(),
        event: event.into(),
        kind: "execution.ended".into(),
        body: vec![b'x'; 3_000],
        due_at: Timestamp(1),
    }
}

fn changes(change: RegisterChange) -> RegisterWrite {
    let event = Event::SettingChanged {
        setting: "webhook".into(),
        id: "hook_1".into(),
        change: if change.value.is_some() { "created" } else { "removed" }.into(),
    };
    let record = EventRecord { at: Timestamp(1), actor: Actor::person("operator"), event };
    RegisterWrite { tenant: tenant(), at: Timestamp(1), changes: vec![change], record: Some(record) }
}

/// Whether the reply agrees with what is present.
fn agrees(what: &str, message: &Option<Result<(), Error>>, is_there: bool) -> Result<(), String> {
    match message {
        None | Some(Err(Error::Unknown(_) | Error::Closed)) => Ok(()),
        Some(statement) if statement.is_ok() == is_there => Ok(()),
        Some(message_text) => Err(format!("{what}: the store returned {message_text:?}, present: {is_there}")),
    }
}

fn look(message: &Answer, directory: &Path) -> Result<(), String> {
    let store = open(directory).map_err(|error| format!("a healed disk cannot be opened: {error:?}"))?;
    let failed = |error: Error| error.to_string();
    let mark = wait(store.reader_position(&tenant(), READER)).map_err(failed)?;
    let listing = wait(store.deliveries(&tenant(), DeliveryFilter::default(), Pagination::first(10)));
    let deliveries = listing.map_err(failed)?.items;
    let expected = match mark {
        0 => 0,
        3 => 2,
        4 => 3,
        other => return Err(format!("the mark is at {other}")),
    };
    if deliveries.len() != expected {
        return Err(format!("the mark is at {mark}, and there are {} deliveries", deliveries.len()));
    }
    agrees("the first deliveries", &message.first, mark >= 3)?;
    agrees("the second deliveries", &message.second, mark == 4)?;

    let stretch = wait(store.entries_after(&tenant(), 0, 10)).map_err(failed)?;
    let own = |placed: &&rutter_core::port::feed::FeedEntry| placed.stored.execution == ExecutionId::new("ledger");
    let records: Vec<String> = stretch
        .items
        .iter()
        .filter(own)
        .filter_map(|placed| match &placed.stored.event {
            Event::SettingChanged { change, .. } => Some(change.clone()),
            _ => None,
        })
        .collect();
    let note = wait(store.find(&tenant(), Note::Webhook, "hook_1")).map_err(failed)?;
    let version = note.map(|note| note.version);
    match (records.iter().map(String::as_str).collect::<Vec<_>>().as_slice(), version) {
        ([], None) | (["created"], Some(1)) | (["created", "removed"], None) => {}
        other => return Err(format!("records and item do not match: {other:?}")),
    }
    agrees("the note", &message.changed, !records.is_empty())?;
    agrees("its removal", &message.removed, records.len() == 2)?;

    let oldest = deliveries.last().map(|delivery| delivery.number);
    let attempts = match oldest {
        Some(number) => wait(store.delivery(&tenant(), number)).map_err(failed)?.map_or(0, |(_, all)| all.len()),
        None => 0,
    };
    if attempts > 1 {
        return Err(format!("one attempt was recorded {attempts} times"));
    }
    agrees("the try", &message.tried, attempts == 1)
}

#[derive(Debug)]
struct Case {
    kind: DiskFaultKind,
    /// The operation that fails, counted from after opening.
    at: u64,
    /// Whether the power is cut then.
    is_cut: bool,
}

/// Every operation of the work and of closing, with every fault that can hit it.
fn cases() -> Vec<Case> {
    let directory = directory();
    let disk = FaultyDisk::new(directory.path());
    let store = open(directory.path()).unwrap();
    let opening = disk.operations() as usize;
    let message = work(&store);
    assert!(
        [message.first, message.changed, message.tried, message.removed, message.second]
            .iter()
            .all(|statement| *statement == Some(Ok(())))
    );
    drop(store);
    let history = disk.history();
    let of_kind = |kind: DiskFaultKind| {
        let hits = (1..).zip(&history[opening..]).filter(move |(_, operation)| kind.fits(operation.action));
        hits.map(move |(at, _)| Case { kind, at, is_cut: false }).collect::<Vec<_>>()
    };
    let cut =
        (1..=(history.len() - opening) as u64).map(|at| Case { kind: DiskFaultKind::IoForEver, at, is_cut: true });
    DiskFaultKind::ALL.into_iter().flat_map(of_kind).chain(cut).collect()
}

#[test]
fn whatever_fails_each_request_is_performed_completely_once_or_not_at_all() {
    let cases = cases();
    let name = |case: &Case| format!("{:?}-{}-{}", case.kind, case.at, case.is_cut);
    let hits = play_all(&cases, name, |case| {
        let directory = directory();
        let disk = match case.is_cut {
            true => FaultyDisk::with_volatile_cache(directory.path()),
            false => FaultyDisk::new(directory.path()),
        };
        let store = open(directory.path()).map_err(|error| error.to_string())?;
        disk.fail(DiskFault { at: case.at, kind: case.kind });
        let message = work(&store);
        drop(store);
        let was_hit = disk.failures() > 0;
        if case.is_cut {
            disk.cut_power().map_err(|error| error.to_string())?;
        }
        disk.heal();
        look(&message, directory.path())?;
        let all = [&message.first, &message.changed, &message.tried, &message.removed, &message.second];
        Ok((was_hit, all.into_iter().filter(|statement| **statement == Some(Ok(()))).count()))
    });
    let hit = hits.iter().filter(|(was_hit, _)| *was_hit).count();
    let acknowledged: usize = hits.iter().map(|(_, acknowledged)| acknowledged).sum();
    println!("{} cases, {hit} hit, {acknowledged} acknowledged", hits.len());
    assert!(hit * 10 >= hits.len() * 9, "only {hit} of {} were hit", hits.len());
    assert!(acknowledged > hits.len(), "hardly anything was acknowledged");
}
