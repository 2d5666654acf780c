//! Whatever fails, and whenever: a mark moves with its deliveries or not at all, a note changes with its record or not
//! at all, and what was acknowledged happened once.

use rutter_core::actor::Actor;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::event::{Event, Record};
use rutter_core::port::Error;
use rutter_core::port::feed::Feed;
use rutter_core::port::outbox::{DeliveryAttempt, DeliveryFilter, Moved, NewDelivery, Outbox, Then};
use rutter_core::port::query::Page;
use rutter_core::port::register::{Change, Changes, Kind as Note, Register};
use rutter_core::time::Timestamp;
use rutter_fault::bed::{directory, open, play_all};
use rutter_fault::{Disk, Fault, Kind};
use rutter_store::{Store, wait};
use serde_json::json;
use std::path::Path;

const READER: &str = "courier";

fn tenant() -> TenantId {
    TenantId::new("acme")
}

/// What the store said to each request; `None` was not asked.
#[derive(Debug, Default)]
struct Said {
    first: Option<Result<(), Error>>,
    changed: Option<Result<(), Error>>,
    tried: Option<Result<(), Error>>,
    removed: Option<Result<(), Error>>,
    second: Option<Result<(), Error>>,
}

fn work(store: &Store) -> Said {
    let first = wait(store.put(&tenant(), moved(0, 3), vec![delivery("e1"), delivery("e2")]));
    let changed = wait(store.write(changes(Change::put(Note::Webhook, "hook_1", json!({"url": "x"})))));
    let tried = match wait(store.due(Timestamp(9), &[], 1)) {
        Ok(due) => due.first().map(|delivery| {
            let outcome = "no answer".to_owned();
            let attempt = DeliveryAttempt { at: Timestamp(2), took_ms: 1, status: None, outcome };
            wait(store.tried(delivery.number, attempt, Then::Again { at: Timestamp(5) }, None))
        }),
        Err(_) => None,
    };
    let second = wait(store.put(&tenant(), moved(3, 4), vec![delivery("e3")]));
    let removed = wait(store.write(changes(Change::remove(Note::Webhook, "hook_1").expecting(1))));
    Said { first: Some(first), changed: Some(changed), tried, removed: Some(removed), second: Some(second) }
}

fn moved(from: u64, to: u64) -> Option<Moved> {
    Some(Moved { reader: READER.into(), from, to })
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

fn changes(change: Change) -> Changes {
    let event = Event::SettingChanged {
        setting: "webhook".into(),
        id: "hook_1".into(),
        change: if change.value.is_some() { "created" } else { "removed" }.into(),
    };
    let record = Record { at: Timestamp(1), actor: Actor::person("operator"), event };
    Changes { tenant: tenant(), at: Timestamp(1), changes: vec![change], record: Some(record) }
}

/// Whether what was said agrees with whether it is there.
fn agrees(what: &str, said: &Option<Result<(), Error>>, is_there: bool) -> Result<(), String> {
    match said {
        None | Some(Err(Error::Unknown(_) | Error::Closed)) => Ok(()),
        Some(said) if said.is_ok() == is_there => Ok(()),
        Some(said) => Err(format!("{what}: the store said {said:?}, and is there: {is_there}")),
    }
}

fn look(said: &Said, directory: &Path) -> Result<(), String> {
    let store = open(directory).map_err(|error| format!("a healed disk cannot be opened: {error:?}"))?;
    let failed = |error: Error| error.to_string();
    let mark = wait(store.mark(&tenant(), READER)).map_err(failed)?;
    let listing = wait(store.deliveries(&tenant(), DeliveryFilter::default(), Page::first(10)));
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
    agrees("the first deliveries", &said.first, mark >= 3)?;
    agrees("the second deliveries", &said.second, mark == 4)?;

    let stretch = wait(store.after(&tenant(), 0, 10)).map_err(failed)?;
    let own =
        |placed: &&rutter_core::port::feed::Placed| placed.stored.execution == ExecutionId::new("ledger");
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
        other => return Err(format!("records and note do not go together: {other:?}")),
    }
    agrees("the note", &said.changed, !records.is_empty())?;
    agrees("its removal", &said.removed, records.len() == 2)?;

    let oldest = deliveries.last().map(|delivery| delivery.number);
    let attempts = match oldest {
        Some(number) => {
            wait(store.delivery(&tenant(), number)).map_err(failed)?.map_or(0, |(_, all)| all.len())
        }
        None => 0,
    };
    if attempts > 1 {
        return Err(format!("one try was recorded {attempts} times"));
    }
    agrees("the try", &said.tried, attempts == 1)
}

#[derive(Debug)]
struct Case {
    kind: Kind,
    /// The operation that fails, counted from after opening.
    at: u64,
    /// Whether the power is cut then.
    is_cut: bool,
}

/// Every operation of the work and of closing, with every fault that can hit it.
fn cases() -> Vec<Case> {
    let directory = directory();
    let disk = Disk::new(directory.path());
    let store = open(directory.path()).unwrap();
    let opening = disk.operations() as usize;
    let said = work(&store);
    assert!(
        [said.first, said.changed, said.tried, said.removed, said.second]
            .iter()
            .all(|said| *said == Some(Ok(())))
    );
    drop(store);
    let history = disk.history();
    let of_kind = |kind: Kind| {
        let hits = (1..).zip(&history[opening..]).filter(move |(_, operation)| kind.fits(operation.action));
        hits.map(move |(at, _)| Case { kind, at, is_cut: false }).collect::<Vec<_>>()
    };
    let cut =
        (1..=(history.len() - opening) as u64).map(|at| Case { kind: Kind::IoForEver, at, is_cut: true });
    Kind::ALL.into_iter().flat_map(of_kind).chain(cut).collect()
}

#[test]
fn whatever_fails_each_request_is_carried_out_whole_and_once_or_not_at_all() {
    let cases = cases();
    let name = |case: &Case| format!("{:?}-{}-{}", case.kind, case.at, case.is_cut);
    let hits = play_all(&cases, name, |case| {
        let directory = directory();
        let disk = match case.is_cut {
            true => Disk::with_volatile_cache(directory.path()),
            false => Disk::new(directory.path()),
        };
        let store = open(directory.path()).map_err(|error| error.to_string())?;
        disk.fail(Fault { at: case.at, kind: case.kind });
        let said = work(&store);
        drop(store);
        let was_hit = disk.failures() > 0;
        if case.is_cut {
            disk.cut_power().map_err(|error| error.to_string())?;
        }
        disk.heal();
        look(&said, directory.path())?;
        let all = [&said.first, &said.changed, &said.tried, &said.removed, &said.second];
        Ok((was_hit, all.into_iter().filter(|said| **said == Some(Ok(()))).count()))
    });
    let hit = hits.iter().filter(|(was_hit, _)| *was_hit).count();
    let acknowledged: usize = hits.iter().map(|(_, acknowledged)| acknowledged).sum();
    println!("{} cases, {hit} hit, {acknowledged} acknowledged", hits.len());
    assert!(hit * 10 >= hits.len() * 9, "only {hit} of {} were hit", hits.len());
    assert!(acknowledged > hits.len(), "hardly anything was acknowledged");
}
