//! Errors that a store must report, and survive where possible: a full disk, failed syncs, damage, a second owner.

use rusqlite::{Connection, OpenFlags};
use rutter_core::actor::Actor;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::port::Error;
use rutter_core::port::journal::{Journal, NewRevision, RevisionScope};
use rutter_core::time::Timestamp;
use rutter_store::sqlite::DATABASE;
use rutter_store::{SqliteArchive, SqliteStore, wait};
use rutter_testkit::disk::account::{StoreAccount, StoreAnswer};
use rutter_testkit::disk::cases::{directory, open, play_all};
use rutter_testkit::disk::check::check;
use rutter_testkit::disk::shapes::PlanShape;
use rutter_testkit::disk::workload::{SHAPES, TENANT, carry_out};
use rutter_testkit::disk::{DiskAction, DiskFault, DiskFaultKind, DiskOperation, FaultyDisk, VFS};
use std::fs;
use std::path::Path;

const LATER: [Timestamp; 3] = [Timestamp(1_000_000), Timestamp(2_000_000), Timestamp(3_000_000)];

#[test]
fn a_full_disk_refuses_new_work_and_goes_on_by_itself() {
    let directory = directory();
    let disk = FaultyDisk::new(directory.path());
    let store = open(directory.path()).unwrap();
    let mut account = StoreAccount::default();
    work(&store, "first", LATER[0], &mut account).unwrap();
    disk.fail(DiskFault { at: 1, kind: DiskFaultKind::FullShortWrite });
    let before = account.acknowledged();
    carry_out(&store, "second", LATER[1], &[PlanShape::Diamond], &mut |note| account.take(note)).unwrap();
    assert_eq!(account.acknowledged(), before);
    let refused = StoreAnswer::No { code: "store.disk_full".to_owned() };
    assert!(account.plans.iter().skip(1).all(|(_, _, message)| *message == refused), "{account:?}");
    assert_eq!(store.trouble(), None, "a full disk is no reason to restart");
    wait(store.load(&identity("exec_first-0"))).expect("existing entries can be read");
    disk.heal();
    work(&store, "third", LATER[2], &mut account).unwrap();
    assert!(account.acknowledged() > before);
    check(&account, &store, directory.path()).unwrap();
}

#[test]
fn what_was_written_at_the_second_attempt_is_signed_too() {
    let directory = directory();
    let disk = FaultyDisk::new(directory.path());
    let store = open(directory.path()).unwrap();
    work(&store, "first", LATER[0], &mut StoreAccount::default()).unwrap();
    drop(store);
    // Everything so far is signed, and nothing else will ask for a checkpoint.
    let store = open(directory.path()).unwrap();
    disk.fail(DiskFault { at: 1, kind: DiskFaultKind::IoOnce });
    let (tenant, actor) = (TenantId::new(TENANT), Actor::agent("pilot"));
    let (id, plan) = (PlanId::new("plan_late"), PlanShape::Diamond.plan());
    wait(store.save(NewRevision { tenant, id, plan, expected: None, scope: RevisionScope::Plan, actor, at: LATER[1] }))
        .unwrap();
    assert_eq!(disk.failures(), 1);
    drop(store);
    let stats = SqliteArchive::open(directory.path()).unwrap().stats().unwrap();
    assert_eq!(stats.tenants[0].covered, stats.tenants[0].entries);
}

#[test]
fn after_a_failed_sync_nothing_is_written_until_a_restart() {
    let directory = directory();
    let disk = FaultyDisk::new(directory.path());
    let store = open(directory.path()).unwrap();
    let mut account = StoreAccount::default();
    work(&store, "first", LATER[0], &mut account).unwrap();
    disk.fail(DiskFault { at: 1, kind: DiskFaultKind::SyncError });
    // The first write is a plan, which cannot be repeated.
    let mut take = |note| account.take(note);
    let stopped = carry_out(&store, "second", LATER[1], &[PlanShape::Diamond], &mut take).unwrap_err();
    assert!(matches!(stopped, Error::ReadOnly(_)), "{stopped:?}");
    assert_eq!(store.trouble().map(|error| error.code()), Some(stopped.code()));
    let plans: Vec<&StoreAnswer> = account.plans.iter().map(|(_, _, message)| message).collect();
    let refused = StoreAnswer::No { code: stopped.code().to_owned() };
    assert_eq!(plans, [&StoreAnswer::Yes, &StoreAnswer::Maybe, &refused]);
    wait(store.load(&identity("exec_first-0"))).expect("existing entries can be read");
    // The disk works again, but what it has forgotten is unknown.
    assert!(work(&store, "third", LATER[2], &mut account).is_err());
    drop(store);
    let store = open(directory.path()).unwrap();
    work(&store, "fourth", LATER[2], &mut account).unwrap();
    check(&account, &store, directory.path()).unwrap();
}

#[test]
fn a_damaged_page_is_detected_wherever_it_is() {
    let directory = directory();
    let store = open(directory.path()).unwrap();
    let mut account = StoreAccount::default();
    let taken = &mut |note| account.take(note);
    carry_out(&store, "first", LATER[0], &SHAPES, taken).unwrap();
    drop(store);
    let sound = fs::read(directory.path().join(DATABASE)).unwrap();
    let pages = sound.len() / PAGE_BYTES;
    let (mut closed, mut unread, mut partly) = (0, 0, 0);
    for page in 0..pages {
        let mut damaged = sound.clone();
        damaged[page * PAGE_BYTES..(page + 1) * PAGE_BYTES].fill(0xa5);
        fs::write(directory.path().join(DATABASE), &damaged).unwrap();
        let store = match open(directory.path()) {
            Ok(store) => store,
            Err(Error::Corrupt(_)) => {
                closed += 1;
                continue;
            }
            Err(other) => panic!("page {page}: opening says {other:?}"),
        };
        let loaded: Vec<Result<_, Error>> =
            (0..SHAPES.len()).map(|nth| wait(store.load(&identity(&format!("exec_first-{nth}"))))).collect();
        for error in loaded.iter().filter_map(|loaded| loaded.as_ref().err()) {
            assert!(matches!(error, Error::Corrupt(_)), "page {page}: loading says {error:?}");
        }
        let failed = loaded.iter().filter(|loaded| loaded.is_err()).count();
        unread += usize::from(failed > 0);
        partly += usize::from(failed > 0 && failed < loaded.len());
        // What can be loaded is what was written: the chain and the account agree.
        for (nth, loaded) in loaded.iter().enumerate() {
            let Ok(loaded) = loaded else { continue };
            let handed = &account.executions[&format!("exec_first-{nth}")];
            let last = handed.iter().filter_map(|handed| handed.hashes.last()).next_back();
            assert_eq!(Some(&loaded.head.hash), last, "page {page}: exec_first-{nth}");
        }
    }
    println!("of {pages} pages, {closed} keep the store closed, {unread} spoil an execution, {partly} not all of them");
    assert!(closed > 0 && unread > 0 && partly > 0);
}

const PAGE_BYTES: usize = 4_096;

#[test]
fn a_lost_log_after_a_clean_close_loses_nothing() {
    let directory = directory();
    let mut account = StoreAccount::default();
    work(&open(directory.path()).unwrap(), "first", LATER[0], &mut account).unwrap();
    remove_log(directory.path());
    let store = open(directory.path()).unwrap();
    check(&account, &store, directory.path()).unwrap();
}

/// The database itself cannot reveal this: it is an older, consistent copy of itself. Only a checkpoint stored
/// elsewhere shows that entries are missing.
#[test]
fn a_lost_log_after_a_kill_is_an_older_database() {
    let directory = directory();
    let disk = FaultyDisk::with_volatile_cache(directory.path());
    let mut account = StoreAccount::default();
    work(&open(directory.path()).unwrap(), "first", LATER[0], &mut account).unwrap();
    let store = open(directory.path()).unwrap();
    let before = account.acknowledged();
    let mut lost = StoreAccount::default();
    work(&store, "second", LATER[1], &mut lost).unwrap();
    assert!(lost.acknowledged() > 0);
    disk.kill().unwrap();
    drop(store);
    remove_log(directory.path());
    disk.heal();
    let store = open(directory.path()).unwrap();
    let found = check(&account, &store, directory.path()).expect("it equals the database before the log");
    assert!(!found.executions.contains_key("exec_second-0"), "it was only in the log");
    assert_eq!(account.acknowledged(), before);
}

#[test]
fn a_read_only_database_is_reported_as_such() {
    let directory = directory();
    work(&open(directory.path()).unwrap(), "first", LATER[0], &mut StoreAccount::default()).unwrap();
    remove_log(directory.path());
    // A directory in place of the log: no user can write there, not even root.
    fs::create_dir(directory.path().join("rutter.db-wal")).unwrap();
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error, Error::Io(_) | Error::ReadOnly(_)), "{error:?}");
    fs::remove_dir(directory.path().join("rutter.db-wal")).unwrap();
    wait(open(directory.path()).unwrap().load(&identity("exec_first-0"))).unwrap();
}

#[test]
fn a_disk_that_works_again_needs_no_restart() {
    for failing in 1..=8 {
        let directory = directory();
        let disk = FaultyDisk::new(directory.path());
        let store = open(directory.path()).unwrap();
        let mut account = StoreAccount::default();
        work(&store, "first", LATER[0], &mut account).unwrap();
        // The commit fails, and so does reopening the file.
        (1..=failing).for_each(|at| disk.fail(DiskFault { at, kind: DiskFaultKind::IoOnce }));
        carry_out(&store, "second", LATER[1], &[PlanShape::Diamond], &mut |note| account.take(note)).unwrap();
        assert_eq!(store.trouble(), None, "after {failing} errors");
        let before = account.acknowledged();
        carry_out(&store, "third", LATER[2], &[PlanShape::FanOut], &mut |note| account.take(note)).unwrap();
        assert!(account.acknowledged() > before + 5, "after {failing} errors");
        check(&account, &store, directory.path()).unwrap();
    }
}

/// If the index of the log needs more memory after a commit is on disk, SQLite reports that the commit failed. If the
/// written data then cannot be read, the store must not claim that it is missing.
#[test]
fn a_commit_that_failed_after_it_was_on_disk_is_never_a_definite_no() {
    let history = outgrow_the_index(&[]).unwrap();
    let grows = |action| matches!(action, DiskAction::MapSharedMemory { grows: true });
    let last = history.iter().rposition(|operation| grows(operation.action)).unwrap();
    assert_eq!(history[last - 1].action, DiskAction::Sync, "the commit must already be on disk");
    let at = last as u64 + 1;
    let cases: Vec<u64> = (0..60).step_by(4).collect();
    play_all(
        &cases,
        |later| format!("again-after-{later}"),
        |later| {
            let again = DiskFault { at: at + 1 + later, kind: DiskFaultKind::IoForEver };
            outgrow_the_index(&[DiskFault { at, kind: DiskFaultKind::IoOnce }, again])
        },
    );
}

/// Makes the log longer than the first part of its index can hold, by a reader that never ends.
fn outgrow_the_index(faults: &[DiskFault]) -> Result<Vec<DiskOperation>, String> {
    let directory = directory();
    let disk = FaultyDisk::new(directory.path());
    faults.iter().for_each(|fault| disk.fail(*fault));
    let store = open(directory.path()).unwrap();
    let mut account = StoreAccount::default();
    work(&store, "first", LATER[0], &mut account).unwrap();
    let connect = || Connection::open_with_flags_and_vfs(directory.path().join(DATABASE), OpenFlags::default(), VFS);
    let (reader, writer) = (connect().unwrap(), connect().unwrap());
    let mut reading = reader.prepare("select count(*) from entry, entry").unwrap();
    let mut rows = reading.query([]).unwrap();
    rows.next().unwrap();
    writer.execute_batch("create table filler (bytes blob); insert into filler values (zeroblob(15500000))").unwrap();
    let ended = carry_out(&store, "second", LATER[1], &SHAPES, &mut |note| account.take(note));
    assert!(matches!(ended, Ok(()) | Err(Error::ReadOnly(_))), "{ended:?}");
    let history = disk.history();
    // The first reader after all are gone reads the log itself, not its index.
    drop(rows);
    drop(reading);
    drop((reader, writer, store));
    disk.heal();
    let store = open(directory.path()).map_err(|error| error.to_string())?;
    check(&account, &store, directory.path())?;
    Ok(history)
}

fn work(store: &SqliteStore, name: &str, begin: Timestamp, account: &mut StoreAccount) -> Result<(), Error> {
    carry_out(store, name, begin, &[PlanShape::Chain], &mut |note| account.take(note))
}

fn identity(execution: &str) -> ExecutionIdentity {
    ExecutionIdentity { tenant: TenantId::new(TENANT), execution: ExecutionId::new(execution) }
}

fn remove_log(directory: &Path) {
    for log in ["rutter.db-wal", "rutter.db-shm"] {
        let _ = fs::remove_file(directory.join(log));
    }
}
