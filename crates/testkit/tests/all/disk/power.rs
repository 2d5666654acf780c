//! Wherever the power is cut, nothing acknowledged is lost; nor is anything that a restarted store has returned.

use rutter_core::port::Error;
use rutter_core::time::Timestamp;
use rutter_testkit::disk::account::StoreAccount;
use rutter_testkit::disk::cases::{directory, open, play_all, some};
use rutter_testkit::disk::check::{StoreContents, check};
use rutter_testkit::disk::shapes::PlanShape;
use rutter_testkit::disk::workload::carry_out;
use rutter_testkit::disk::{DiskAction, DiskFault, DiskFaultKind, FaultyDisk};
use std::path::Path;

/// Every n-th moment is tested; `RUTTER_EVERY=1` tests all.
const STRIDE: usize = 21;

#[derive(Debug)]
struct Cut {
    shape: PlanShape,
    /// The operation that is no longer performed.
    at: u64,
    /// The seed for which unsynced sectors survive; `None` loses them all.
    torn: Option<u64>,
}

#[test]
fn wherever_the_power_is_cut_nothing_acknowledged_is_missing() {
    let cuts: Vec<Cut> = PlanShape::ALL.into_iter().flat_map(cuts).collect();
    let name = |cut: &Cut| format!("{:?}-{}-{:?}", cut.shape, cut.at, cut.torn);
    let acknowledged = play_all(&cuts, name, |cut| {
        let directory = directory();
        let disk = FaultyDisk::with_volatile_cache(directory.path());
        let account =
            work_until(&disk, directory.path(), cut.shape, DiskFault { at: cut.at, kind: DiskFaultKind::IoForEver });
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

/// The next process sees what was written and not synced when a process died. Once it has returned such data, a power
/// cut must not remove it.
#[test]
fn what_a_restarted_store_has_returned_survives_a_power_cut() {
    let moments: Vec<u64> = some(1..=operations(PlanShape::Compensated).len() as u64, STRIDE);
    let items = play_all(
        &moments,
        |at| format!("killed-{at}"),
        |at| shown_after_death(DiskFault { at: *at, kind: DiskFaultKind::IoForEver }),
    );
    println!("{} kills followed by power cuts, {} entries shown", items.len(), items.iter().sum::<usize>());
    assert!(items.iter().sum::<usize>() > items.len());
}

/// What a failed sync should have saved can still be read, but no later sync will save it.
#[test]
fn what_is_returned_after_a_failed_sync_and_a_restart_survives_a_power_cut() {
    let history = operations(PlanShape::Compensated);
    let syncs = (1..).zip(&history).filter(|(_, action)| **action == DiskAction::Sync).map(|(at, _)| at);
    let syncs: Vec<u64> = syncs.collect();
    let items = play_all(
        &syncs,
        |at| format!("unsynced-{at}"),
        |at| shown_after_death(DiskFault { at: *at, kind: DiskFaultKind::SyncError }),
    );
    println!("{} failed syncs followed by power cuts", items.len());
    assert!(items.len() > 10 && items.iter().sum::<usize>() > items.len());
}

/// Works until the fault, dies, restarts, reads, works on, loses power, and reads again. Returns how many entries were
/// read in between.
fn shown_after_death(fault: DiskFault) -> Result<usize, String> {
    let directory = directory();
    let disk = FaultyDisk::with_volatile_cache(directory.path());
    let mut account = work_until(&disk, directory.path(), PlanShape::Compensated, fault);
    disk.kill().map_err(|error| error.to_string())?;
    disk.heal();
    let store = open(directory.path()).map_err(|error| format!("cannot be opened after a kill: {error:?}"))?;
    let store_contents = check(&account, &store, directory.path())?;
    let begin = Timestamp(1_000_000);
    let ended = carry_out(&store, "second", begin, &[PlanShape::Chain], &mut |note| account.take(note));
    ended.map_err(|error| format!("accepts no work after a kill: {error:?}"))?;
    disk.cut_power().map_err(|error| error.to_string())?;
    drop(store);
    disk.heal();
    let left = look(&account, directory.path())?;
    for (execution, journal) in &store_contents.executions {
        let now = left.executions.get(execution).map_or(&[][..], |journal| &journal.hashes);
        if !now.starts_with(&journal.hashes) {
            let (before, now) = (journal.hashes.len(), now.len());
            return Err(format!("{execution} had {before} entries when it was read and has {now} now"));
        }
    }
    Ok(store_contents.executions.values().map(|journal| journal.hashes.len()).sum())
}

fn work_until(disk: &FaultyDisk, directory: &Path, shape: PlanShape, fault: DiskFault) -> StoreAccount {
    let mut account = StoreAccount::default();
    disk.fail(fault);
    if let Ok(store) = open(directory) {
        match carry_out(&store, "first", Timestamp(1_000), &[shape], &mut |note| account.take(note)) {
            Ok(()) | Err(Error::ReadOnly(_)) => {}
            Err(error) => panic!("{fault:?} made the store return {error:?}"),
        }
    }
    account
}

fn look(account: &StoreAccount, directory: &Path) -> Result<StoreContents, String> {
    let store = open(directory).map_err(|error| format!("cannot be opened after a power cut: {error:?}"))?;
    check(account, &store, directory)
}

fn cuts(shape: PlanShape) -> Vec<Cut> {
    let moments = 1..=operations(shape).len() as u64;
    let cuts = moments.flat_map(|at| [None, Some(at)].map(|torn| Cut { shape, at, torn }));
    some(cuts, STRIDE)
}

/// The operations on a healthy disk, from opening to closing.
fn operations(shape: PlanShape) -> Vec<DiskAction> {
    let directory = directory();
    let disk = FaultyDisk::new(directory.path());
    let store = open(directory.path()).unwrap();
    carry_out(&store, "first", Timestamp(1_000), &[shape], &mut |_| ()).unwrap();
    drop(store);
    disk.history().iter().map(|operation| operation.action).collect()
}
