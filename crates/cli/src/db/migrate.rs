//! `rutter db migrate`: the database as this program expects it.

use crate::Exit;
use crate::args::db::MigrateArgs;
use crate::store;
use crate::terminal::Terminal;
use rutter_store::Store;
use rutter_store::sqlite::migration::{Migrated, pending};
use serde_json::json;

pub(crate) fn run(args: &MigrateArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let config = store::config(&args.store)?;
    let Migrated { from, to } = pending(&config.directory)?;
    let place = config.directory.display().to_string();
    if !args.check && from < to {
        // Opening it does what is missing.
        Store::open(store::options(&config))?;
    }
    let is_pending = args.check && from < to;
    if args.store.json {
        let answer = json!({ "ok": !is_pending, "dir": place, "from": from, "to": to, "check": args.check });
        terminal.answer(&format!("{answer}\n"))?;
    } else {
        let words = match (from, is_pending) {
            (from, _) if from == to => format!("is at schema {to} already"),
            (0, true) => format!("has no database; there would be one with schema {to}"),
            (from, true) => format!("has schema {from} and must be brought to {to}"),
            (0, false) => format!("has a new database with schema {to}"),
            (from, false) => format!("was brought from schema {from} to {to}"),
        };
        terminal.answer(&format!("{place} {words}\n"))?;
    }
    Ok(if is_pending { Exit::Differs } else { Exit::Done })
}
