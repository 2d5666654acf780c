//! How fast journals are written, verified and queried, compared with the disk and SQLite alone.

mod executions;
mod find;
mod read;
pub(crate) mod write;

use crate::args::StoreArgs;
use crate::baseline;
use crate::measurement::{BenchTarget, Measurement};
use rutter_store::{SqliteOptions, SqliteStore};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// About the size of an entry, for the bare table.
const ROW_BYTES: usize = 256;

pub(crate) fn run(args: &StoreArgs, directory: &Path) -> anyhow::Result<Vec<Measurement>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build()?;
    let say = |text: &str| eprintln!("{text}");
    let during = Duration::from_secs(args.common.seconds);

    say("the disk alone, SQLite alone");
    let syncs = baseline::syncs_per_second(directory, during)?;
    let commits = baseline::commits_per_second(directory, ROW_BYTES, during)?;
    let mut measured = vec![
        Measurement { what: "page + fdatasync".into(), value: syncs, unit: "/s", ratio: None },
        Measurement {
            what: "bare SQLite commit, FULL".into(),
            value: commits,
            unit: "/s",
            ratio: Some((commits / syncs, "x fdatasync", BenchTarget::None)),
        },
    ];
    measured.extend(runtime.block_on(write::measure(directory, during, syncs, commits, &say))?);
    measured.extend(runtime.block_on(read::measure(directory, args.entries, &say))?);
    Ok(measured)
}

/// Opens a store in its own directory.
pub(crate) fn open(directory: &Path) -> anyhow::Result<SqliteStore> {
    let clock = rutter_engine::SystemClock::system();
    Ok(SqliteStore::open(SqliteOptions::new(directory, Arc::new(move || clock.now())))?)
}
