//! Baseline throughput of the disk and of plain SQLite, for benchmarks to compare with in the same run.

use super::fault;
use rusqlite::{Connection, params};
use rutter_core::port::Error;
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A page, as SQLite writes them.
const PAGE: [u8; 4_096] = [0x5a; 4_096];

/// Writes and syncs one page at a time; returns syncs per second.
pub fn syncs_per_second(directory: &Path, during: Duration) -> Result<f64, Error> {
    let path = directory.join("baseline.raw");
    let measured = || -> std::io::Result<f64> {
        let file = OpenOptions::new().create(true).truncate(true).write(true).open(&path)?;
        let (start, mut count) = (Instant::now(), 0_u32);
        while start.elapsed() < during {
            file.write_all_at(&PAGE, u64::from(count) * PAGE.len() as u64)?;
            file.sync_data()?;
            count += 1;
        }
        Ok(f64::from(count) / start.elapsed().as_secs_f64())
    };
    let result = measured().map_err(|error| Error::Io(format!("{}: {error}", path.display())));
    let _ = std::fs::remove_file(&path);
    result
}

/// Commits one row of `bytes` at a time with the store's durability settings; returns commits per second.
pub fn commits_per_second(directory: &Path, bytes: usize, during: Duration) -> Result<f64, Error> {
    let path = directory.join("baseline.db");
    let connection = Connection::open(&path).map_err(fault::of)?;
    let measured = || -> rusqlite::Result<f64> {
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.execute_batch("create table entry (place integer primary key, bytes blob not null) strict")?;
        let row = vec![0x5a_u8; bytes];
        let mut insert = connection.prepare("insert into entry (bytes) values (?1)")?;
        let (start, mut count) = (Instant::now(), 0_u32);
        while start.elapsed() < during {
            insert.execute(params![row])?;
            count += 1;
        }
        Ok(f64::from(count) / start.elapsed().as_secs_f64())
    };
    let result = measured().map_err(fault::of);
    drop(connection);
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(directory.join(format!("baseline.db{end}")));
    }
    result
}
