//! Whatever fails, and whenever: nothing acknowledged is lost, nothing refused is there, and the store goes on.

use rutter_core::port::Error;
use rutter_core::time::Timestamp;
use rutter_fault::account::{Account, Note, Said};
use rutter_fault::bed::{directory, open, play_all, some};
use rutter_fault::check::check;
use rutter_fault::shapes::Shape;
use rutter_fault::workload::{SHAPES, carry_out};
use rutter_fault::{Disk, Fault, Kind};

#[test]
fn a_healthy_disk_keeps_everything() {
    let directory = directory();
    let mut account = Account::default();
    for (name, begin) in [("first", 1_000), ("second", 1_000_000)] {
        let store = open(directory.path()).unwrap();
        carry_out(&store, name, Timestamp(begin), &SHAPES, &mut |note| account.take(note)).unwrap();
        let found = check(&account, &store, directory.path()).unwrap();
        let left = found.executions.iter().filter(|(_, journal)| !journal.letters.is_empty()).count();
        assert_eq!(left, SHAPES.len(), "the letters of an earlier workload were to be answered");
    }
    assert!(account.executions.values().flatten().all(|handed| handed.said == Said::Yes));
    assert!(account.acknowledged() > 100, "{account:?}");
}

#[derive(Debug)]
struct Case {
    shape: Shape,
    kind: Kind,
    /// The operation that fails, from 1.
    at: u64,
}

/// What became of a case.
#[derive(Debug)]
struct Played {
    kind: Kind,
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
    let cases: Vec<Case> = Shape::ALL.into_iter().flat_map(cases).collect();
    let name = |case: &Case| format!("{:?}-{:?}-{}", case.shape, case.kind, case.at);
    let played = play_all(&cases, name, play);
    for kind in Kind::ALL {
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
            let goes_on = matches!(kind, Kind::IoOnce | Kind::FullOnce);
            assert!(!goes_on || went_on * 2 >= of_kind.len(), "after {kind:?} only {went_on} went on");
            assert!(
                kind != Kind::SyncError || went_on == 0,
                "something was acknowledged after a failed sync"
            );
        }
    }
    println!("{} cases", played.len());
}

/// One of so many operations is tried every time; `RUTTER_EVERY=1` tries all.
const STRIDE: usize = 3;

/// The operations of one execution and of closing, with every fault that can hit them. Opening is the same for all
/// shapes, and once is enough.
fn cases(shape: Shape) -> Vec<Case> {
    let directory = directory();
    let disk = Disk::new(directory.path());
    let store = open(directory.path()).unwrap();
    let opening = if shape == Shape::Chain { 0 } else { disk.operations() as usize };
    carry_out(&store, "first", Timestamp(1_000), &[shape], &mut |_| ()).unwrap();
    drop(store);
    let history = disk.history();
    let cases = |kind: Kind| {
        let hits =
            (1..).zip(&history).skip(opening).filter(move |(_, operation)| kind.fits(operation.action));
        // There are few syncs, and none is like another.
        let stride = if kind == Kind::SyncError { 1 } else { STRIDE };
        some(hits.map(move |(at, _)| Case { shape, kind, at }), stride)
    };
    Kind::ALL.into_iter().flat_map(cases).collect()
}

fn play(case: &Case) -> Result<Played, String> {
    let Case { shape, kind, at } = *case;
    let directory = directory();
    let disk = Disk::new(directory.path());
    disk.fail(Fault { at, kind });
    let mut account = Account::default();
    let mut afterwards = 0;
    let opened = match open(directory.path()) {
        Ok(store) => {
            let ended = carry_out(&store, "first", Timestamp(1_000), &[shape], &mut |note| {
                let is_yes = matches!(note, Note::Answered { said: Said::Yes, .. });
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
        other => return Err(format!("the store said {other:?}")),
    };
    let was_hit = disk.failures() > 0;
    disk.heal();
    let acknowledged = account.acknowledged();
    let said = |is: fn(&Said) -> bool| {
        account.executions.values().flatten().filter(|handed| is(&handed.said)).count()
    };
    let unknown = said(|said| *said == Said::Maybe);
    let refused = said(|said| matches!(said, Said::No { .. }));

    let store =
        open(directory.path()).map_err(|error| format!("a healed disk cannot be opened: {error:?}"))?;
    let begin = Timestamp(1_000_000);
    let ended = carry_out(&store, "second", begin, &[shape], &mut |note| account.take(note));
    ended.map_err(|error| format!("a healed disk takes no new work: {error:?}"))?;
    let found = check(&account, &store, directory.path())?;
    if !found.executions.contains_key("exec_second-0") {
        return Err("a healed disk took no new work".to_owned());
    }
    let opened = opened.is_ok();
    Ok(Played { kind, was_hit, opened, stopped, acknowledged, afterwards, unknown, refused })
}
