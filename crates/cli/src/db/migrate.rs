//! `rutter db migrate`: brings the database to the schema of this program.

use crate::args::db::DbMigrateArgs;
use crate::exit::CommandExit;
use crate::store;
use crate::terminal::Terminal;
use rutter_store::SqliteStore;
use rutter_store::sqlite::migration::{MigrationResult, pending};
use serde_json::json;

pub(crate) fn run(args: &DbMigrateArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let config = store::config(&args.store)?;
    let MigrationResult { from, to } = pending(&config.directory)?;
    let place = config.directory.display().to_string();
    if !args.check && from < to {
        // Opening it migrates it.
        SqliteStore::open(store::options(&config))?;
    }
    let is_pending = args.check && from < to;
    if args.store.json {
        let answer = json!({ "ok": !is_pending, "dir": place, "from": from, "to": to, "check": args.check });
        terminal.answer(&format!("{answer}\n"))?;
    } else {
        let words = match (from, is_pending) {
            (from, _) if from == to => format!("already has schema {to}"),
            (0, true) => format!("has no database; one with schema {to} would be created"),
            (from, true) => format!("has schema {from} and must be migrated to {to}"),
            (0, false) => format!("has a new database with schema {to}"),
            (from, false) => format!("was migrated from schema {from} to {to}"),
        };
        terminal.answer(&format!("{place} {words}\n"))?;
    }
    Ok(if is_pending { CommandExit::Differs } else { CommandExit::Done })
}
