//! Migrations are applied once, in order and whole, and an unknown one is refused.

use super::*;

const FIRST: Migration = Migration { number: 1, name: "first", sql: "create table one (a integer) strict;" };
const SECOND: Migration = Migration { number: 2, name: "second", sql: "create table two (a integer) strict;" };
const BROKEN: Migration = Migration { number: 2, name: "second", sql: "create table two (a integer); nonsense;" };
const NOW: Timestamp = Timestamp(7);

fn tables(connection: &Connection) -> Vec<String> {
    let mut statement = connection.prepare("select name from sqlite_schema order by name").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn each_migration_is_applied_once_and_in_order() {
    let mut connection = Connection::open_in_memory().unwrap();
    let migrate = |connection: &mut Connection, all: &[Migration]| migrate(connection, all, NOW).unwrap();
    assert_eq!(migrate(&mut connection, &[FIRST]), MigrationResult { from: 0, to: 1 });
    assert_eq!(migrate(&mut connection, &[FIRST, SECOND]), MigrationResult { from: 1, to: 2 });
    assert_eq!(migrate(&mut connection, &[FIRST, SECOND]), MigrationResult { from: 2, to: 2 });
    assert_eq!(tables(&connection), ["migration", "one", "two"]);
}

#[test]
fn a_migration_that_fails_leaves_the_one_before() {
    let mut connection = Connection::open_in_memory().unwrap();
    assert!(migrate(&mut connection, &[FIRST, BROKEN], NOW).is_err());
    assert_eq!((version(&connection).unwrap(), tables(&connection)), (1, vec!["migration".into(), "one".into()]));
    assert_eq!(migrate(&mut connection, &[FIRST, SECOND], NOW).unwrap(), MigrationResult { from: 1, to: 2 });
}

#[test]
fn a_newer_schema_is_refused_and_left_alone() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, &[FIRST, SECOND], NOW).unwrap();
    let refused = migrate(&mut connection, &[FIRST], NOW).unwrap_err();
    assert_eq!(refused, Error::Schema { found: 2, known: 1 });
}

#[test]
fn an_edited_migration_is_noticed() {
    let mut connection = Connection::open_in_memory().unwrap();
    migrate(&mut connection, &[FIRST], NOW).unwrap();
    let edited = Migration { sql: "create table one (a integer, b integer) strict;", ..FIRST };
    assert!(matches!(migrate(&mut connection, &[edited], NOW), Err(Error::Corrupt(_))));
}

#[test]
fn migrations_are_numbered_without_gaps() {
    let numbers: Vec<u64> = ALL.iter().map(|migration| migration.number).collect();
    assert_eq!(numbers, (1..=ALL.len() as u64).collect::<Vec<_>>());
}
