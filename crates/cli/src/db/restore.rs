//! `rutter db restore`: restores a backup and pauses the executions that were open in it.

use crate::args::db::DbRestoreArgs;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::printable::printable;
use crate::report::{counted, plural};
use crate::store;
use crate::terminal::Terminal;
use rutter_core::actor::Actor;
use rutter_store::sqlite::DATABASE;
use rutter_store::sqlite::backup::{RestoredStore, restore};
use serde_json::json;

pub(crate) fn run(args: &DbRestoreArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let config = store::config(&args.store)?;
    if !args.file.exists() {
        let message = format!("cannot read {}: there is no such file", args.file.display());
        return Err(CommandRefusal::new("file.unreadable", message).into());
    }
    let place = config.directory.display().to_string();
    if config.directory.join(DATABASE).exists() && !args.replace {
        let message = format!("{place} already has a database");
        return Err(CommandRefusal::new("file.exists", message).with_hint("--replace moves it aside").into());
    }
    let operator = Actor::person(&config.operator);
    let restored = restore(&args.file, store::options(&config), args.replace, &operator, &args.reason)?;
    let RestoredStore { copied, held, replaced } = restored;
    let replaced = replaced.map(|path| path.display().to_string());
    if args.store.json {
        let held: Vec<_> =
            held.iter().map(|identity| json!({ "tenant": identity.tenant, "execution": identity.execution })).collect();
        let answer = json!({
            "ok": true, "dir": place, "entries": copied.entries, "executions": copied.executions,
            "held": held, "replaced": replaced,
        });
        terminal.answer(&format!("{answer}\n"))?;
        return Ok(CommandExit::Done);
    }
    let entries = counted(copied.entries, "entry", "entries");
    let executions = counted(copied.executions, "execution", "executions");
    terminal.answer(&format!("{place}: restored, {entries} of {executions}\n"))?;
    if let Some(path) = replaced {
        terminal.answer(&format!("the previous database is now {path}\n"))?;
    }
    if !held.is_empty() {
        terminal.answer(&format!("paused until resumed: {}\n", plural(held.len(), "execution")))?;
        for identity in &held {
            terminal.answer(&format!("  {}\n", printable(identity.execution.as_str())))?;
        }
    }
    Ok(CommandExit::Done)
}
