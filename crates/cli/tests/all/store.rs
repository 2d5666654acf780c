//! The output of the store's commands.

mod db;
mod fixture;
mod journal;
mod sample_database;

use fixture::StoreFixture;

/// Runs commands one after the other, for one snapshot.
fn seen(fixture: &StoreFixture, commands: &[&[&str]]) -> String {
    commands.iter().map(|arguments| fixture.seen(arguments)).collect::<Vec<_>>().join("\n")
}
