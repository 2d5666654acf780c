//! Opening the database file: every connection has the same safe settings.

use super::fault;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};
use rutter_core::port::Error;
use std::path::Path;

/// Older versions of SQLite can corrupt a database that has two connections (the WAL-reset defect).
const OLDEST: i32 = 3_051_003;
const OLDEST_NAME: &str = "3.51.3";

/// "RUTR", the application id in the file's header.
const APPLICATION: i32 = 0x5255_5452;

const STATEMENTS_MAX: usize = 128;
/// The WAL is checkpointed when it has so many pages: a page that changes often is then copied once for many changes.
const LOG_PAGES: i64 = 4_000;
/// The writer's page cache; it holds the newest pages of each table and index.
const CACHE_KIB: i64 = 16 << 10;
/// How long a statement waits for another connection.
pub(super) const WAIT: std::time::Duration = std::time::Duration::from_secs(5);
/// The longest value SQLite accepts; the longest one stored is a large payload.
const LENGTH_MAX: i32 = 64 << 20;

/// The database file and how it is opened.
#[derive(Clone, Debug)]
pub(super) struct DatabaseFile {
    pub path: std::path::PathBuf,
    /// The name of an SQLite VFS; tests use one that fails.
    pub vfs: Option<&'static str>,
}

impl DatabaseFile {
    /// The one connection that writes. Acknowledged must mean synced, so `synchronous` is FULL and stays so.
    pub fn writer(&self) -> Result<Connection, Error> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let connection = self.open(flags)?;
        let careful = || -> rusqlite::Result<String> {
            let mode = use_log(&connection)?;
            connection.pragma_update(None, "synchronous", "full")?;
            connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES)?;
            connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
            connection.pragma_update(None, "journal_size_limit", 64 << 20)?;
            // Erased content is overwritten, not only unlinked.
            connection.pragma_update(None, "secure_delete", true)?;
            connection.pragma_update(None, "foreign_keys", true)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
            Ok(mode)
        };
        match careful().map_err(fault::of)?.as_str() {
            "wal" => {}
            mode => {
                return Err(Error::Io(format!("the database is in {mode} mode and cannot be put into WAL mode")));
            }
        }
        let synchronous: i64 =
            connection.pragma_query_value(None, "synchronous", |row| row.get(0)).map_err(fault::of)?;
        assert!(synchronous >= 2, "synchronous is part of the promise, it must be FULL");
        Ok(connection)
    }

    pub fn reader(&self) -> Result<Connection, Error> {
        let connection =
            self.open(OpenFlags::SQLITE_OPEN_READ_ONLY).or_else(|error| self.reader_of_a_dead_file(error))?;
        connection.pragma_update(None, "query_only", true).map_err(fault::of)?;
        Ok(connection)
    }

    /// Opens a file without a WAL as immutable: on a read-only file system the WAL's index cannot be written.
    fn reader_of_a_dead_file(&self, error: Error) -> Result<Connection, Error> {
        let mut log = self.path.clone().into_os_string();
        log.push("-wal");
        let is_dead = std::fs::metadata(&log).map_or(true, |log| log.len() == 0);
        match self.path.to_str().filter(|_| is_dead && self.path.exists()) {
            None => Err(error),
            Some(path) => {
                let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
                let file = DatabaseFile { path: format!("file:{path}?immutable=1").into(), vfs: self.vfs };
                file.open(flags)
            }
        }
    }

    fn open(&self, flags: OpenFlags) -> Result<Connection, Error> {
        check_engine()?;
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let opened = match self.vfs {
            Some(vfs) => Connection::open_with_flags_and_vfs(&self.path, flags, vfs),
            None => Connection::open_with_flags(&self.path, flags),
        };
        let connection = opened.map_err(fault::of)?;
        let careful = || -> rusqlite::Result<()> {
            connection.busy_timeout(WAIT)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
            // A query plan must not depend on bound values: each new value would re-prepare the statement.
            connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
            connection.pragma_update(None, "cell_size_check", true)?;
            connection.pragma_update(None, "mmap_size", 0)?;
            connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, LENGTH_MAX)?;
            connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
            connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
            Ok(())
        };
        careful().map_err(fault::of)?;
        Ok(connection)
    }
}

/// Switches to WAL mode. SQLite returns the new mode before it writes it, so the statement is run to its end: only
/// then is it certain that the write succeeded and the old mode is not still in force.
fn use_log(connection: &Connection) -> rusqlite::Result<String> {
    let mut statement = connection.prepare("pragma journal_mode = wal")?;
    let mut rows = statement.query([])?;
    let mode = rows.next()?.ok_or(rusqlite::Error::QueryReturnedNoRows)?.get(0)?;
    while rows.next()?.is_some() {}
    Ok(mode)
}

pub(super) fn check_engine() -> Result<(), Error> {
    match rusqlite::version_number() {
        found if found >= OLDEST => Ok(()),
        _ => Err(Error::Engine { found: rusqlite::version().to_owned(), oldest: OLDEST_NAME }),
    }
}

/// Marks a new file as ours, and refuses the database of another program.
pub(super) fn check_application(connection: &Connection, path: &Path) -> Result<(), Error> {
    let read = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let tables = || connection.query_row("select count(*) from sqlite_schema", [], |row| row.get::<_, i64>(0));
    match (read("application_id").map_err(fault::of)?, tables().map_err(fault::of)?) {
        (found, _) if found == i64::from(APPLICATION) => Ok(()),
        (0, 0) => connection.pragma_update(None, "application_id", APPLICATION).map_err(fault::of),
        _ => Err(Error::Invalid(format!("{} is a database of another program", path.display()))),
    }
}
