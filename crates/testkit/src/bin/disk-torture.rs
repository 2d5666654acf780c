//! Works on a store until it is killed, and prints every request and reply on stdout, line by line.
//!
//! `disk-torture DIRECTORY SEED THREADS` works for ever; `disk-torture DIRECTORY SEED die N` kills itself at the n-th
//! disk operation, or ends when there are fewer.

use rutter_core::port::Error;
use rutter_core::time::Timestamp;
use rutter_store::SqliteStore;
use rutter_testkit::disk::account::AccountNote;
use rutter_testkit::disk::shapes::PlanShape;
use rutter_testkit::disk::workload::{SHAPES, carry_out};
use rutter_testkit::disk::{FaultyDisk, cases};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let ended = match words[..] {
        [directory, seed, "die", at] => read(seed).and_then(|seed| die(directory, seed, read(at)?)),
        [directory, seed, threads] => read(seed).and_then(|seed| work(directory, seed, read(threads)?)),
        _ => Err("expected a directory, a seed, and a number of threads or `die` and a number".to_owned()),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Several threads, each with its own executions, until the process is killed.
fn work(directory: &str, seed: u64, threads: u64) -> Result<(), String> {
    let store = open(directory)?;
    let ended = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads)
            .map(|thread| {
                scope.spawn({
                    let store = &store;
                    move || (0..).try_for_each(|round| carry_out_round(store, seed, thread, round))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("the thread does not panic")).find(Result::is_err)
    });
    ended.unwrap_or(Ok(())).map_err(|error| format!("the store returned {error:?}"))
}

fn carry_out_round(store: &SqliteStore, seed: u64, thread: u64, round: u64) -> Result<(), Error> {
    // Later processes have later clocks. Threads take over each other's executions that seem abandoned.
    let begin = Timestamp((seed * 1_000_000_000 + round * 1_000_000) as i64);
    carry_out(store, &format!("{seed}-{thread}-{round}"), begin, &SHAPES, &mut tell)
}

/// One execution of the shape chosen by the seed.
fn die(directory: &str, seed: u64, at: u64) -> Result<(), String> {
    std::fs::create_dir_all(directory).map_err(|error| error.to_string())?;
    let disk = FaultyDisk::new(Path::new(directory));
    disk.die(at);
    let store = open(directory)?;
    let shape = PlanShape::ALL[seed as usize % PlanShape::ALL.len()];
    let ended = carry_out(&store, &format!("first-{seed}"), Timestamp(1_000), &[shape], &mut tell);
    ended.map_err(|error| format!("the store returned {error:?}"))
}

fn open(directory: &str) -> Result<SqliteStore, String> {
    cases::open(Path::new(directory)).map_err(|error| format!("{}: {error}", error.code()))
}

/// A failed write is ignored: the reader is gone.
fn tell(note: AccountNote) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{note}").and_then(|()| stdout.flush());
}

fn read(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("expected a number, found {word:?}"))
}
