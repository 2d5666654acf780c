//! Many concurrent writers, each with its own execution; every append is acknowledged when it is on disk.

use super::executions::{self, BenchExecution};
use super::open;
use crate::measurement::{BenchTarget, Measurement};
use rutter_store::SqliteStore;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Entries in one append: the result of a step and the start of the next.
const ENTRIES: f64 = 2.0;

pub(super) async fn measure(
    scratch: &Path,
    during: Duration,
    syncs: f64,
    commits: f64,
    say: &dyn Fn(&str),
) -> anyhow::Result<Vec<Measurement>> {
    let mut measured = Vec::new();
    for writers in [1, 16, 128, 1_000] {
        say(&format!("{writers} writers"));
        let directory = scratch.join(format!("writers-{writers}"));
        let store = Arc::new(open(&directory)?);
        let (appends, mut latencies) = write(&store, writers, during).await?;
        drop(store);
        std::fs::remove_dir_all(&directory)?;
        let entries = appends * ENTRIES;
        let ratio = match writers {
            1 => (appends / commits, "x bare SQLite", BenchTarget::AtLeast(0.7)),
            128 => (entries / syncs, "x fdatasync", BenchTarget::AtLeast(10.0)),
            1_000 => (entries / syncs, "x fdatasync", BenchTarget::AtLeast(20.0)),
            _ => (entries / syncs, "x fdatasync", BenchTarget::None),
        };
        let what = format!("entries, {writers} writers");
        measured.push(Measurement { what, value: entries, unit: "/s", ratio: Some(ratio) });
        latencies.sort_unstable();
        let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize].as_secs_f64() * 1_000.0;
        for (name, share) in [("median", 0.5), ("99 of 100", 0.99)] {
            let what = format!("append, {writers} writers, {name}");
            measured.push(Measurement { what, value: at(share), unit: "ms", ratio: None });
        }
    }
    Ok(measured)
}

/// Entries per second that the bare store accepts from this many writers.
pub(crate) async fn entries_per_second(directory: &Path, writers: u64, during: Duration) -> anyhow::Result<f64> {
    let store = Arc::new(open(directory)?);
    let (appends, _) = write(&store, writers, during).await?;
    drop(store);
    std::fs::remove_dir_all(directory)?;
    Ok(appends * ENTRIES)
}

/// Returns the appends per second, and how long each took.
async fn write(store: &Arc<SqliteStore>, writers: u64, during: Duration) -> anyhow::Result<(f64, Vec<Duration>)> {
    let plan = executions::save_plan(store).await?;
    let mut ships = Vec::new();
    for number in 0..writers {
        ships.push(BenchExecution::open_with_retry(store, &plan, number).await?);
    }
    let start = Instant::now();
    let sailing: Vec<_> = ships
        .into_iter()
        .map(|mut ship| {
            let store = Arc::clone(store);
            tokio::spawn(async move {
                let mut latencies = Vec::new();
                while start.elapsed() < during {
                    let begun = Instant::now();
                    ship.append_step(&store).await?;
                    latencies.push(begun.elapsed());
                }
                Ok::<_, rutter_core::port::Error>(latencies)
            })
        })
        .collect();
    let mut latencies = Vec::new();
    for ship in sailing {
        latencies.extend(ship.await??);
    }
    Ok((latencies.len() as f64 / start.elapsed().as_secs_f64(), latencies))
}
