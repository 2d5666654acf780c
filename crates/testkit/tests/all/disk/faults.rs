//! Whatever fails, and whenever: nothing acknowledged is lost, nothing refused is present, and the store continues.

use rutter_core::port::Error;
use rutter_core::time::Timestamp;
use rutter_testkit::disk::account::{AccountNote, StoreAccount, StoreAnswer};
use rutter_testkit::disk::cases::{directory, open, play_all, some};
use rutter_testkit::disk::check::check;
use rutter_testkit::disk::shapes::PlanShape;
use rutter_testkit::disk::workload::{SHAPES, carry_out};
use rutter_testkit::disk::{DiskFault, DiskFaultKind, FaultyDisk};

#[test]
fn a_healthy_disk_loses_nothing() {
    let directory = directory();
    let mut account = StoreAccount::default();
    for (name, begin) in [("first", 1_000), ("second", 1_000_000)] {
        let store = open(directory.path()).unwrap();
        carry_out(&store, name, Timestamp(begin), &SHAPES, &mut |note| account.take(note)).unwrap();
        let found = check(&account, &store, directory.path()).unwrap();
        let left = found.executions.iter().filter(|(_, journal)| !journal.commands.is_empty()).count();
        assert_eq!(left, SHAPES.len(), "the commands of an earlier workload must be answered");
    }
    assert!(account.executions.values().flatten().all(|handed| handed.answer == StoreAnswer::Yes));
    assert!(account.acknowledged() > 100, "{account:?}");
}

#[derive(Debug)]
struct Case {
    shape: PlanShape,
    kind: DiskFaultKind,
    /// The operation that fails, from 1.
    at: u64,
}

/// The result of a case.
#[derive(Debug)]
struct Played {
    kind: DiskFaultKind,
    was_hit: bool,
    opened: bool,
    stopped: bool,
    acknowledged: usize,
    /// Acknowledged after the fault and before the disk was healed.
    afterwards: usize,
    unknown: usize,
    refused: usize,
}

#[test]
fn whatever_fails_nothing_acknowledged_is_lost() {
    let cases: Vec<Case> = PlanShape::ALL.into_iter().flat_map(cases).collect();
    let name = |case: &Case| format!("{:?}-{:?}-{}", case.shape, case.kind, case.at);
    let played = play_all(&cases, name, play);
    for kind in DiskFaultKind::ALL {
        let of_kind: Vec<&Played> = played.iter().filter(|played| played.kind == kind).collect();
        let count = |is: &dyn Fn(&Played) -> bool| of_kind.iter().filter(|played| is(played)).count();
        let sum = |of: &dyn Fn(&Played) -> usize| of_kind.iter().map(|played| of(played)).sum::<usize>();
        let went_on = count(&|played| played.afterwards > 0);
        println!(
            "{kind:?}: {} cases, {} hit, {} could not open, {} stopped, {went_on} acknowledged more afterwards; \
             {} acknowledged, {} unknown, {} refused",
            of_kind.len(),
            count(&|played| played.was_hit),
            count(&|played| !played.opened),
            count(&|played| played.stopped),
            sum(&|played| played.acknowledged),
            sum(&|played| played.unknown),
            sum(&|played| played.refused),
        );
        if std::env::var("RUTTER_CASE").is_err() {
            assert!(count(&|played| played.was_hit) * 10 >= of_kind.len() * 9, "{kind:?} hardly ever hit");
            let goes_on = matches!(kind, DiskFaultKind::IoOnce | DiskFaultKind::FullOnce);
            assert!(!goes_on || went_on * 2 >= of_kind.len(), "after {kind:?} only {went_on} went on");
            assert!(kind != DiskFaultKind::SyncError || went_on == 0, "something was acknowledged after a failed sync");
        }
    }
    println!("{} cases", played.len());
}

/// Every n-th operation is tested; `RUTTER_EVERY=1` tests all.
const STRIDE: usize = 9;

/// The operations of one execution and of closing, with every fault that can hit them. Opening is the same for all
/// shapes, so it is tested once.
fn cases(shape: PlanShape) -> Vec<Case> {
    let directory = directory();
    let disk = FaultyDisk::new(directory.path());
    let store = open(directory.path()).unwrap();
    let opening = if shape == PlanShape::Chain { 0 } else { disk.operations() as usize };
    carry_out(&store, "first", Timestamp(1_000), &[shape], &mut |_| ()).unwrap();
    drop(store);
    let history = disk.history();
    let cases = |kind: DiskFaultKind| {
        let hits = (1..).zip(&history).skip(opening).filter(move |(_, operation)| kind.fits(operation.action));
        // There are few syncs, and all are different.
        let stride = if kind == DiskFaultKind::SyncError { 1 } else { STRIDE };
        some(hits.map(move |(at, _)| Case { shape, kind, at }), stride)
    };
    DiskFaultKind::ALL.into_iter().flat_map(cases).collect()
}

fn play(case: &Case) -> Result<Played, String> {
    let Case { shape, kind, at } = *case;
    let directory = directory();
    let disk = FaultyDisk::new(directory.path());
    disk.fail(DiskFault { at, kind });
    let mut account = StoreAccount::default();
    let mut afterwards = 0;
    let opened = match open(directory.path()) {
        Ok(store) => {
            let ended = carry_out(&store, "first", Timestamp(1_000), &[shape], &mut |note| {
                let is_yes = matches!(note, AccountNote::Answered { answer: StoreAnswer::Yes, .. });
                afterwards += usize::from(is_yes && disk.failures() > 0);
                account.take(note);
            });
            Ok(ended)
        }
        Err(error) => Err(error),
    };
    let stopped = match &opened {
        Ok(Ok(())) => false,
        Ok(Err(Error::ReadOnly(_))) => true,
        Err(Error::Io(_) | Error::DiskFull(_) | Error::Unknown(_)) => true,
        other => return Err(format!("the store returned {other:?}")),
    };
    let was_hit = disk.failures() > 0;
    disk.heal();
    let acknowledged = account.acknowledged();
    let message = |is: fn(&StoreAnswer) -> bool| {
        account.executions.values().flatten().filter(|handed| is(&handed.answer)).count()
    };
    let unknown = message(|statement| *statement == StoreAnswer::Maybe);
    let refused = message(|message_text| matches!(message_text, StoreAnswer::No { .. }));

    let store = open(directory.path()).map_err(|error| format!("a healed disk cannot be opened: {error:?}"))?;
    let begin = Timestamp(1_000_000);
    let ended = carry_out(&store, "second", begin, &[shape], &mut |note| account.take(note));
    ended.map_err(|error| format!("a healed disk accepts no new work: {error:?}"))?;
    let found = check(&account, &store, directory.path())?;
    if !found.executions.contains_key("exec_second-0") {
        return Err("a healed disk accepted no new work".to_owned());
    }
    let opened = opened.is_ok();
    Ok(Played { kind, was_hit, opened, stopped, acknowledged, afterwards, unknown, refused })
}
