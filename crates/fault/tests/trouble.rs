//! Trouble that a store must name, and survive where it can: a full disk, failed syncs, damage, a second owner.

use rusqlite::{Connection, OpenFlags};
use rutter_core::actor::Actor;
use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::port::Error;
use rutter_core::port::journal::{Journal, NewPlan};
use rutter_core::time::Timestamp;
use rutter_fault::account::{Account, Said};
use rutter_fault::bed::{directory, open, play_all};
use rutter_fault::check::check;
use rutter_fault::shapes::Shape;
use rutter_fault::workload::{SHAPES, TENANT, carry_out};
use rutter_fault::{Action, Disk, Fault, Kind, Operation, VFS};
use rutter_store::sqlite::DATABASE;
use rutter_store::{Archive, Store, wait};
use std::fs;
use std::path::Path;

const LATER: [Timestamp; 3] = [Timestamp(1_000_000), Timestamp(2_000_000), Timestamp(3_000_000)];

#[test]
fn a_full_disk_refuses_new_work_and_goes_on_by_itself() {
    let directory = directory();
    let disk = Disk::new(directory.path());
    let store = open(directory.path()).unwrap();
    let mut account = Account::default();
    work(&store, "first", LATER[0], &mut account).unwrap();
    disk.fail(Fault { at: 1, kind: Kind::FullShortWrite });
    let before = account.acknowledged();
    carry_out(&store, "second", LATER[1], &[Shape::Diamond], &mut |note| account.take(note)).unwrap();
    assert_eq!(account.acknowledged(), before);
    let refused = Said::No { code: "store.disk_full".to_owned() };
    assert!(account.plans.iter().skip(1).all(|(_, _, said)| *said == refused), "{account:?}");
    assert_eq!(store.trouble(), None, "a full disk is no reason to restart");
    wait(store.load(&identity("exec_first-0"))).expect("what is there can be read");
    disk.heal();
    work(&store, "third", LATER[2], &mut account).unwrap();
    assert!(account.acknowledged() > before);
    check(&account, &store, directory.path()).unwrap();
}

#[test]
fn what_was_written_at_the_second_try_is_signed_too() {
    let directory = directory();
    let disk = Disk::new(directory.path());
    let store = open(directory.path()).unwrap();
    work(&store, "first", LATER[0], &mut Account::default()).unwrap();
    drop(store);
    // Everything so far is signed, and nothing else will ask for a checkpoint.
    let store = open(directory.path()).unwrap();
    disk.fail(Fault { at: 1, kind: Kind::IoOnce });
    let (tenant, actor) = (TenantId::new(TENANT), Actor::agent("pilot"));
    let (id, plan) = (PlanId::new("plan_late"), Shape::Diamond.plan());
    wait(store.save(NewPlan { tenant, id, plan, expected: None, actor, at: LATER[1] })).unwrap();
    assert_eq!(disk.failures(), 1);
    drop(store);
    let stats = Archive::open(directory.path()).unwrap().stats().unwrap();
    assert_eq!(stats.tenants[0].covered, stats.tenants[0].entries);
}

#[test]
fn after_a_failed_sync_nothing_is_written_until_a_restart() {
    let directory = directory();
    let disk = Disk::new(directory.path());
    let store = open(directory.path()).unwrap();
    let mut account = Account::default();
    work(&store, "first", LATER[0], &mut account).unwrap();
    disk.fail(Fault { at: 1, kind: Kind::SyncError });
    // The first thing written is a plan, and there is nothing to be repeated about it.
    let mut take = |note| account.take(note);
    let stopped = carry_out(&store, "second", LATER[1], &[Shape::Diamond], &mut take).unwrap_err();
    assert!(matches!(stopped, Error::ReadOnly(_)), "{stopped:?}");
    assert_eq!(store.trouble().map(|error| error.code()), Some(stopped.code()));
    let plans: Vec<&Said> = account.plans.iter().map(|(_, _, said)| said).collect();
    let refused = Said::No { code: stopped.code().to_owned() };
    assert_eq!(plans, [&Said::Yes, &Said::Maybe, &refused]);
    wait(store.load(&identity("exec_first-0"))).expect("what is there can be read");
    // The disk is well again, but nobody knows what it has forgotten.
    assert!(work(&store, "third", LATER[2], &mut account).is_err());
    drop(store);
    let store = open(directory.path()).unwrap();
    work(&store, "fourth", LATER[2], &mut account).unwrap();
    check(&account, &store, directory.path()).unwrap();
}

#[test]
fn a_damaged_page_is_noticed_wherever_it_is() {
    let directory = directory();
    let store = open(directory.path()).unwrap();
    let mut account = Account::default();
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
        // What can be loaded is what was written: the chain says so, and the account.
        for (nth, loaded) in loaded.iter().enumerate() {
            let Ok(loaded) = loaded else { continue };
            let handed = &account.executions[&format!("exec_first-{nth}")];
            let last = handed.iter().filter_map(|handed| handed.hashes.last()).next_back();
            assert_eq!(Some(&loaded.head.hash), last, "page {page}: exec_first-{nth}");
        }
    }
    println!(
        "of {pages} pages, {closed} keep the store closed, {unread} spoil an execution, {partly} not all of them"
    );
    assert!(closed > 0 && unread > 0 && partly > 0);
}

const PAGE_BYTES: usize = 4_096;

#[test]
fn a_lost_log_after_a_clean_close_loses_nothing() {
    let directory = directory();
    let mut account = Account::default();
    work(&open(directory.path()).unwrap(), "first", LATER[0], &mut account).unwrap();
    remove_log(directory.path());
    let store = open(directory.path()).unwrap();
    check(&account, &store, directory.path()).unwrap();
}

/// Nothing inside the database can tell: it is an older, sound copy of itself. Only a checkpoint of the ledger that was
/// kept elsewhere shows that entries are missing.
#[test]
fn a_lost_log_after_a_kill_is_an_older_database() {
    let directory = directory();
    let disk = Disk::with_volatile_cache(directory.path());
    let mut account = Account::default();
    work(&open(directory.path()).unwrap(), "first", LATER[0], &mut account).unwrap();
    let store = open(directory.path()).unwrap();
    let before = account.acknowledged();
    let mut lost = Account::default();
    work(&store, "second", LATER[1], &mut lost).unwrap();
    assert!(lost.acknowledged() > 0);
    disk.kill().unwrap();
    drop(store);
    remove_log(directory.path());
    disk.heal();
    let store = open(directory.path()).unwrap();
    let found = check(&account, &store, directory.path()).expect("it is what it was before the log");
    assert!(!found.executions.contains_key("exec_second-0"), "the log was all there was of it");
    assert_eq!(account.acknowledged(), before);
}

#[test]
fn a_database_that_cannot_be_written_says_so() {
    let directory = directory();
    work(&open(directory.path()).unwrap(), "first", LATER[0], &mut Account::default()).unwrap();
    remove_log(directory.path());
    // A directory in the place of the log: nobody can write there, whatever his rights.
    fs::create_dir(directory.path().join("rutter.db-wal")).unwrap();
    let error = open(directory.path()).unwrap_err();
    assert!(matches!(error, Error::Io(_) | Error::ReadOnly(_)), "{error:?}");
    fs::remove_dir(directory.path().join("rutter.db-wal")).unwrap();
    wait(open(directory.path()).unwrap().load(&identity("exec_first-0"))).unwrap();
}

#[test]
fn a_disk_that_is_well_again_needs_no_restart() {
    for failing in 1..=8 {
        let directory = directory();
        let disk = Disk::new(directory.path());
        let store = open(directory.path()).unwrap();
        let mut account = Account::default();
        work(&store, "first", LATER[0], &mut account).unwrap();
        // The commit fails, and so does opening the file again.
        (1..=failing).for_each(|at| disk.fail(Fault { at, kind: Kind::IoOnce }));
        carry_out(&store, "second", LATER[1], &[Shape::Diamond], &mut |note| account.take(note)).unwrap();
        assert_eq!(store.trouble(), None, "after {failing} errors");
        let before = account.acknowledged();
        carry_out(&store, "third", LATER[2], &[Shape::FanOut], &mut |note| account.take(note)).unwrap();
        assert!(account.acknowledged() > before + 5, "after {failing} errors");
        check(&account, &store, directory.path()).unwrap();
    }
}

/// When the index of the log needs more memory after a commit is on disk, SQLite says that the commit failed. If then
/// what was written cannot be looked at, nobody may say that it is not there.
#[test]
fn a_commit_that_failed_after_it_was_on_disk_is_never_a_definite_no() {
    let history = outgrow_the_index(&[]).unwrap();
    let grows = |action| matches!(action, Action::MapSharedMemory { grows: true });
    let last = history.iter().rposition(|operation| grows(operation.action)).unwrap();
    assert_eq!(history[last - 1].action, Action::Sync, "the commit was to be on disk already");
    let at = last as u64 + 1;
    let cases: Vec<u64> = (0..60).step_by(4).collect();
    play_all(
        &cases,
        |later| format!("again-after-{later}"),
        |later| {
            let again = Fault { at: at + 1 + later, kind: Kind::IoForEver };
            outgrow_the_index(&[Fault { at, kind: Kind::IoOnce }, again])
        },
    );
}

/// Lets the log become longer than the first part of its index has room for, by a reader who never ends.
fn outgrow_the_index(faults: &[Fault]) -> Result<Vec<Operation>, String> {
    let directory = directory();
    let disk = Disk::new(directory.path());
    faults.iter().for_each(|fault| disk.fail(*fault));
    let store = open(directory.path()).unwrap();
    let mut account = Account::default();
    work(&store, "first", LATER[0], &mut account).unwrap();
    let connect =
        || Connection::open_with_flags_and_vfs(directory.path().join(DATABASE), OpenFlags::default(), VFS);
    let (reader, writer) = (connect().unwrap(), connect().unwrap());
    let mut reading = reader.prepare("select count(*) from entry, entry").unwrap();
    let mut rows = reading.query([]).unwrap();
    rows.next().unwrap();
    writer
        .execute_batch("create table filler (bytes blob); insert into filler values (zeroblob(15500000))")
        .unwrap();
    let ended = carry_out(&store, "second", LATER[1], &SHAPES, &mut |note| account.take(note));
    assert!(matches!(ended, Ok(()) | Err(Error::ReadOnly(_))), "{ended:?}");
    let history = disk.history();
    // Whoever comes when all are gone reads the log itself, not its index.
    drop(rows);
    drop(reading);
    drop((reader, writer, store));
    disk.heal();
    let store = open(directory.path()).map_err(|error| error.to_string())?;
    check(&account, &store, directory.path())?;
    Ok(history)
}

fn work(store: &Store, name: &str, begin: Timestamp, account: &mut Account) -> Result<(), Error> {
    carry_out(store, name, begin, &[Shape::Chain], &mut |note| account.take(note))
}

fn identity(execution: &str) -> Identity {
    Identity { tenant: TenantId::new(TENANT), execution: ExecutionId::new(execution) }
}

fn remove_log(directory: &Path) {
    for log in ["rutter.db-wal", "rutter.db-shm"] {
        let _ = fs::remove_file(directory.join(log));
    }
}
