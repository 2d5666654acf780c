//! The disk and plain SQLite, to compare with in the same run; and the size of tables.

use anyhow::Context;
use rusqlite::{Connection, OpenFlags, params};
use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// A page, as SQLite writes them.
const PAGE: [u8; 4_096] = [0x5a; 4_096];

/// Writes and syncs one page at a time; returns syncs per second.
pub fn syncs_per_second(directory: &Path, during: Duration) -> anyhow::Result<f64> {
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
    let result = measured().with_context(|| path.display().to_string());
    let _ = std::fs::remove_file(&path);
    result
}

/// Commits one row of `bytes` at a time with the store's durability settings; returns commits per second.
pub fn commits_per_second(directory: &Path, bytes: usize, during: Duration) -> anyhow::Result<f64> {
    let path = directory.join("baseline.db");
    let connection = Connection::open(&path)?;
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
    let result = measured();
    drop(connection);
    for end in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(directory.join(format!("baseline.db{end}")));
    }
    Ok(result?)
}

/// How many bytes each table and index of a database takes. Reads every page.
pub fn table_bytes(database: &Path) -> anyhow::Result<Vec<(String, u64)>> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut statement = connection.prepare("select name, sum(pgsize) from dbstat group by name order by 2 desc")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
