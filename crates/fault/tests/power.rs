//! Wherever the power is cut, nothing acknowledged is missing; nor is anything that a restarted store has shown.

use rutter_core::port::Error;
use rutter_core::time::Timestamp;
use rutter_fault::account::Account;
use rutter_fault::bed::{directory, open, play_all, some};
use rutter_fault::check::{Found, check};
use rutter_fault::shapes::Shape;
use rutter_fault::workload::carry_out;
use rutter_fault::{Action, Disk, Fault, Kind};
use std::path::Path;

/// One of so many moments is tried every time; `RUTTER_EVERY=1` tries all.
const STRIDE: usize = 7;

#[derive(Debug)]
struct Cut {
    shape: Shape,
    /// The operation that is no longer done.
    at: u64,
    /// Which of the sectors not yet synced survive; `None` loses them all.
    torn: Option<u64>,
}

#[test]
fn wherever_the_power_is_cut_nothing_acknowledged_is_missing() {
    let cuts: Vec<Cut> = Shape::ALL.into_iter().flat_map(cuts).collect();
    let name = |cut: &Cut| format!("{:?}-{}-{:?}", cut.shape, cut.at, cut.torn);
    let acknowledged = play_all(&cuts, name, |cut| {
        let directory = directory();
        let disk = Disk::with_volatile_cache(directory.path());
        let account =
            work_until(&disk, directory.path(), cut.shape, Fault { at: cut.at, kind: Kind::IoForEver });
        match cut.torn {
            None => disk.cut_power(),
            Some(seed) => disk.cut_power_torn(seed),
        }
        .map_err(|error| error.to_string())?;
        disk.heal();
        look(&account, directory.path())?;
        Ok(account.acknowledged())
    });
    let total: usize = acknowledged.iter().sum();
    println!("{} power cuts after {total} acknowledgements", acknowledged.len());
    assert!(total > acknowledged.len(), "hardly anything was acknowledged before the cuts");
}

/// What was written and not synced when a process died is seen by the next one. Once it has shown it to somebody, a
/// power cut must not take it away.
#[test]
fn what_a_restarted_store_has_shown_survives_a_power_cut() {
    let moments: Vec<u64> = some(1..=operations(Shape::Compensated).len() as u64, STRIDE);
    let shown = play_all(
        &moments,
        |at| format!("killed-{at}"),
        |at| shown_after_death(Fault { at: *at, kind: Kind::IoForEver }),
    );
    println!("{} kills followed by power cuts, {} entries shown", shown.len(), shown.iter().sum::<usize>());
    assert!(shown.iter().sum::<usize>() > shown.len());
}

/// What a failed sync should have saved can still be read, and will never be saved by a later sync.
#[test]
fn what_is_shown_after_a_failed_sync_and_a_restart_survives_a_power_cut() {
    let history = operations(Shape::Compensated);
    let syncs = (1..).zip(&history).filter(|(_, action)| **action == Action::Sync).map(|(at, _)| at);
    let syncs: Vec<u64> = syncs.collect();
    let shown = play_all(
        &syncs,
        |at| format!("unsynced-{at}"),
        |at| shown_after_death(Fault { at: *at, kind: Kind::SyncError }),
    );
    println!("{} failed syncs followed by power cuts", shown.len());
    assert!(shown.len() > 10 && shown.iter().sum::<usize>() > shown.len());
}

/// Works until the fault, dies, restarts, looks, works on, loses power, and looks again. Returns how many entries
/// were seen in between.
fn shown_after_death(fault: Fault) -> Result<usize, String> {
    let directory = directory();
    let disk = Disk::with_volatile_cache(directory.path());
    let mut account = work_until(&disk, directory.path(), Shape::Compensated, fault);
    disk.kill().map_err(|error| error.to_string())?;
    disk.heal();
    let store =
        open(directory.path()).map_err(|error| format!("cannot be opened after a kill: {error:?}"))?;
    let shown = check(&account, &store, directory.path())?;
    let begin = Timestamp(1_000_000);
    let ended = carry_out(&store, "second", begin, &[Shape::Chain], &mut |note| account.take(note));
    ended.map_err(|error| format!("takes no work after a kill: {error:?}"))?;
    disk.cut_power().map_err(|error| error.to_string())?;
    drop(store);
    disk.heal();
    let left = look(&account, directory.path())?;
    for (execution, journal) in &shown.executions {
        let now = left.executions.get(execution).map_or(&[][..], |journal| &journal.hashes);
        if !now.starts_with(&journal.hashes) {
            let (before, now) = (journal.hashes.len(), now.len());
            return Err(format!("{execution} had {before} entries when it was looked at and has {now} now"));
        }
    }
    Ok(shown.executions.values().map(|journal| journal.hashes.len()).sum())
}

fn work_until(disk: &Disk, directory: &Path, shape: Shape, fault: Fault) -> Account {
    let mut account = Account::default();
    disk.fail(fault);
    if let Ok(store) = open(directory) {
        match carry_out(&store, "first", Timestamp(1_000), &[shape], &mut |note| account.take(note)) {
            Ok(()) | Err(Error::ReadOnly(_)) => {}
            Err(error) => panic!("{fault:?} made the store say {error:?}"),
        }
    }
    account
}

fn look(account: &Account, directory: &Path) -> Result<Found, String> {
    let store = open(directory).map_err(|error| format!("cannot be opened after a power cut: {error:?}"))?;
    check(account, &store, directory)
}

fn cuts(shape: Shape) -> Vec<Cut> {
    let moments = 1..=operations(shape).len() as u64;
    let cuts = moments.flat_map(|at| [None, Some(at)].map(|torn| Cut { shape, at, torn }));
    some(cuts, STRIDE)
}

/// What a healthy disk is asked for, from opening to closing.
fn operations(shape: Shape) -> Vec<Action> {
    let directory = directory();
    let disk = Disk::new(directory.path());
    let store = open(directory.path()).unwrap();
    carry_out(&store, "first", Timestamp(1_000), &[shape], &mut |_| ()).unwrap();
    drop(store);
    disk.history().iter().map(|operation| operation.action).collect()
}
