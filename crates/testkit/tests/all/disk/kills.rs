//! Killed processes: at every disk operation, and at random moments with several threads at work.

use rutter_core::time::Timestamp;
use rutter_testkit::disk::account::{AccountNote, StoreAccount};
use rutter_testkit::disk::cases::{directory, open, play_all, some};
use rutter_testkit::disk::check::check;
use rutter_testkit::disk::shapes::PlanShape;
use rutter_testkit::disk::workload::carry_out;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;

const SIGKILL: i32 = 9;
/// A process dies before every n-th operation; `RUTTER_EVERY=1` tests all.
const STRIDE: usize = 9;

#[test]
fn a_process_may_die_before_any_operation() {
    let cases = PlanShape::ALL
        .into_iter()
        .flat_map(|shape| some(1..=operations(shape), STRIDE).into_iter().map(move |at| (shape, at)));
    let cases: Vec<(PlanShape, u64)> = cases.collect();
    let name = |(shape, at): &(PlanShape, u64)| format!("{shape:?}-{at}");
    let deaths = play_all(&cases, name, |(shape, at)| {
        let directory = directory();
        let mut account = StoreAccount::default();
        let words = [(*shape as u64).to_string(), "die".to_owned(), at.to_string()];
        let ended = listen(directory.path(), &words, None, &mut account)?;
        go_on(&mut account, directory.path(), 1_000)?;
        Ok((ended.signal() == Some(SIGKILL), account.acknowledged()))
    });
    let died = deaths.iter().filter(|(died, _)| *died).count();
    println!("{died} of {} processes died in the middle", deaths.len());
    assert!(died * 10 >= deaths.len() * 9, "only {died} died");
}

/// Processes in one directory, one after the other, each killed.
const LIVES: u64 = 10;
const DIRECTORIES: u64 = 20;
/// The store is inspected only now and then: the next process has to recover by itself, too.
const LOOK_EVERY: u64 = 3;
const THREADS: &str = "3";
/// The longest life, in lines printed.
const NOTES_MAX: u64 = 150;

#[test]
fn a_process_may_be_killed_at_any_moment() {
    let seeds: Vec<u64> = (1..=DIRECTORIES).collect();
    let lives = play_all(
        &seeds,
        |seed| format!("seed-{seed}"),
        |seed| {
            let directory = directory();
            let mut account = StoreAccount::default();
            for life in 1..=LIVES {
                let words = [life.to_string(), THREADS.to_owned()];
                let moment = 1 + mixed(seed * LIVES + life) % NOTES_MAX;
                let ended = listen(directory.path(), &words, Some(moment), &mut account)?;
                if ended.signal() != Some(SIGKILL) {
                    return Err(format!("life {life} ended by itself: {ended}"));
                }
                if life % LOOK_EVERY == 0 || life == LIVES {
                    look_at(&account, directory.path()).map_err(|broken| format!("life {life}: {broken}"))?;
                }
            }
            go_on(&mut account, directory.path(), 1_000 * 1_000_000_000)?;
            Ok(account.acknowledged())
        },
    );
    let total: usize = lives.iter().sum();
    println!("{} kills, {total} acknowledgements", lives.len() as u64 * LIVES);
    assert!(total as u64 > lives.len() as u64 * LIVES, "hardly anything was acknowledged between the kills");
}

#[test]
fn a_second_process_learns_who_owns_the_store() {
    let directory = directory();
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_disk-torture"));
        command.arg(directory.path()).args(["1", "1"]).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut owner = start();
    let mut lines = BufReader::new(owner.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    let mut second = start();
    let mut message = String::new();
    second.stderr.take().unwrap().read_to_string(&mut message).unwrap();
    assert!(!second.wait().unwrap().success());
    assert!(
        message.starts_with("store.locked: ") && message.contains(&format!("process {} ", owner.id())),
        "{message}"
    );
    owner.kill().unwrap();
    owner.wait().unwrap();
    open(directory.path()).expect("a dead process holds nothing");
}

/// Starts a process and reads its account; kills it after this many lines.
fn listen(
    directory: &Path,
    words: &[String],
    kill_after: Option<u64>,
    account: &mut StoreAccount,
) -> Result<ExitStatus, String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_disk-torture"));
    command.arg(directory).args(words).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|error| error.to_string())?;
    let stdout = child.stdout.take().ok_or("a process has a stdout")?;
    // The pipe must be drained while the process works, or it blocks.
    let (send, lines) = mpsc::channel::<String>();
    let reader = std::thread::spawn(move || {
        let mut stdout = BufReader::new(stdout);
        loop {
            let mut line = String::new();
            match stdout.read_line(&mut line) {
                Ok(1..) => drop(send.send(line)),
                _ => return,
            }
        }
    });
    if let Some(notes) = kill_after {
        for line in lines.iter().take(notes as usize) {
            account.take(AccountNote::read(&line).ok_or_else(|| format!("{line:?} is not a note"))?);
        }
        child.kill().map_err(|error| error.to_string())?;
    }
    let ended = child.wait().map_err(|error| error.to_string())?;
    reader.join().map_err(|_| "reading from a pipe does not panic")?;
    lines.iter().filter_map(|line| AccountNote::read(&line)).for_each(|note| account.take(note));
    account.end_of_life();
    Ok(ended)
}

fn look_at(account: &StoreAccount, directory: &Path) -> Result<(), String> {
    let store = open(directory).map_err(|error| format!("cannot be opened after a kill: {error:?}"))?;
    check(account, &store, directory).map(|_| ())
}

/// Inspects what was left, and continues it.
fn go_on(account: &mut StoreAccount, directory: &Path, begin: i64) -> Result<(), String> {
    let store = open(directory).map_err(|error| format!("cannot be opened after a kill: {error:?}"))?;
    check(account, &store, directory)?;
    let begin = Timestamp(begin + 1_000_000);
    let ended = carry_out(&store, "afterwards", begin, &[PlanShape::Chain], &mut |note| account.take(note));
    ended.map_err(|error| format!("accepts no work after a kill: {error:?}"))?;
    check(account, &store, directory).map(|_| ())
}

fn operations(shape: PlanShape) -> u64 {
    let directory = directory();
    let disk = rutter_testkit::disk::FaultyDisk::new(directory.path());
    let store = open(directory.path()).unwrap();
    carry_out(&store, "first", Timestamp(1_000), &[shape], &mut |_| ()).unwrap();
    drop(store);
    disk.operations()
}

/// A pseudo-random number (splitmix64).
fn mixed(seed: u64) -> u64 {
    let mut mixed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
