//! Schema migrations: numbered, forward only, each in one transaction.

use super::connection::DatabaseFile;
use super::{DATABASE, fault, plans};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};
use rutter_core::hash::Hash;
use rutter_core::port::Error;
use rutter_core::time::Timestamp;
use std::path::Path;

/// Never edited once released: the checksum of each is stored in the database.
pub(super) const ALL: &[Migration] = &[
    Migration { number: 1, name: "journal", sql: include_str!("../../migrations/0001_journal.sql") },
    Migration { number: 2, name: "surfaces", sql: include_str!("../../migrations/0002_surfaces.sql") },
    Migration { number: 3, name: "note_kind", sql: include_str!("../../migrations/0003_note_kind.sql") },
    Migration { number: 4, name: "command", sql: include_str!("../../migrations/0004_command.sql") },
    Migration { number: 5, name: "plan_state", sql: include_str!("../../migrations/0005_plan_state.sql") },
    Migration { number: 6, name: "cause", sql: include_str!("../../migrations/0006_cause.sql") },
    Migration { number: 7, name: "deviations", sql: include_str!("../../migrations/0007_deviations.sql") },
];

#[derive(Clone, Copy, Debug)]
pub(super) struct Migration {
    pub number: u64,
    pub name: &'static str,
    pub sql: &'static str,
}

/// The migration that begins to index the names of tools, which SQL alone cannot read.
const PLAN_WORDS: u64 = 5;

const TABLE: &str = "
    create table if not exists migration (
        number integer primary key,
        name text not null,
        checksum blob not null,
        applied_at integer not null
    ) strict";
const APPLIED: &str = "select name, checksum from migration where number = ?1";
const NEWEST: &str = "select coalesce(max(number), 0) from migration";
const EXISTS: &str = "select count(*) from sqlite_schema where name = 'migration'";
const APPLY: &str = "insert into migration (number, name, checksum, applied_at) values (?1, ?2, ?3, ?4)";

/// The schema version before and after a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrationResult {
    pub from: u64,
    pub to: u64,
}

/// Returns the migration that opening a directory's store would run; `from` is 0 if there is no database.
pub fn pending(directory: &Path) -> Result<MigrationResult, Error> {
    let path = directory.join(DATABASE);
    let to = ALL.last().map_or(0, |last| last.number);
    let from = match path.exists() {
        true => check(&DatabaseFile { path, vfs: None }.reader()?, ALL)?,
        false => 0,
    };
    Ok(MigrationResult { from, to })
}

/// Returns the newest migration that was applied.
pub(super) fn version(connection: &Connection) -> Result<u64, Error> {
    let exists: i64 = connection.query_row(EXISTS, [], |row| row.get(0)).map_err(fault::of)?;
    match exists {
        0 => Ok(0),
        _ => connection.query_row(NEWEST, [], |row| row.get(0)).map_err(fault::of),
    }
}

/// Applies the missing migrations. After a crash in between, the next process continues with the next one.
pub(super) fn migrate(
    connection: &mut Connection,
    migrations: &[Migration],
    now: Timestamp,
) -> Result<MigrationResult, Error> {
    let from = check(connection, migrations)?;
    let pending = migrations.iter().filter(|migration| migration.number > from);
    let mut to = from;
    for migration in pending {
        apply(connection, migration, now)?;
        to = migration.number;
    }
    Ok(MigrationResult { from, to })
}

/// Refuses a database of a newer version, or one whose migrations are not the ones this program knows.
pub(super) fn check(connection: &Connection, migrations: &[Migration]) -> Result<u64, Error> {
    let found = version(connection)?;
    let known = migrations.last().map_or(0, |last| last.number);
    if found > known {
        return Err(Error::Schema { found, known });
    }
    for migration in migrations.iter().filter(|migration| migration.number <= found) {
        let applied: Option<(String, Vec<u8>)> = connection
            .query_row(APPLIED, [migration.number], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()
            .map_err(fault::of)?;
        if applied != Some((migration.name.to_owned(), checksum(migration).0.to_vec())) {
            let number = migration.number;
            return Err(Error::Corrupt(format!("migration {number} is not the one this program knows")));
        }
    }
    Ok(found)
}

fn apply(connection: &mut Connection, migration: &Migration, now: Timestamp) -> Result<(), Error> {
    let begin = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = begin.map_err(fault::of)?;
    transaction.execute_batch(TABLE).map_err(fault::of)?;
    transaction.execute_batch(migration.sql).map_err(fault::of)?;
    if migration.number == PLAN_WORDS {
        plans::reindex(&transaction)?;
    }
    let row = params![migration.number, migration.name, checksum(migration).0, now.0];
    transaction.execute(APPLY, row).map_err(fault::of)?;
    transaction.commit().map_err(fault::of)
}

fn checksum(migration: &Migration) -> Hash {
    Hash::of(&[migration.sql.as_bytes()])
}

#[cfg(test)]
mod tests;
