//! What people and programs see of the commands of the store.

// Every call of a test may fail loudly, also in the functions they share.
#![allow(clippy::unwrap_used)]

mod db;
mod journal;
mod kept;
mod stage;

use kept::Kept;

/// Runs commands one after the other, for one snapshot of all.
fn seen(kept: &Kept, commands: &[&[&str]]) -> String {
    commands.iter().map(|arguments| kept.seen(arguments)).collect::<Vec<_>>().join("\n")
}
