//! `rutter db restore`: beginning again from a backup, with everything that was open held.

use crate::Exit;
use crate::args::db::RestoreArgs;
use crate::failure::Refusal;
use crate::report::{counted, plural};
use crate::store;
use crate::terminal::{Terminal, printable};
use rutter_core::actor::Actor;
use rutter_store::sqlite::DATABASE;
use rutter_store::sqlite::backup::{Restored, restore};
use serde_json::json;

pub(crate) fn run(args: &RestoreArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let config = store::config(&args.store)?;
    if !args.file.exists() {
        let message = format!("cannot read {}: there is no such file", args.file.display());
        return Err(Refusal::new("file.unreadable", message).into());
    }
    let place = config.directory.display().to_string();
    if config.directory.join(DATABASE).exists() && !args.replace {
        let message = format!("{place} has a database already");
        return Err(Refusal::new("file.exists", message).with_hint("--replace puts it aside").into());
    }
    let operator = Actor::person(&config.operator);
    let restored = restore(&args.file, store::options(&config), args.replace, &operator, &args.reason)?;
    let Restored { copied, held, replaced } = restored;
    let replaced = replaced.map(|path| path.display().to_string());
    if args.store.json {
        let held: Vec<_> = held
            .iter()
            .map(|identity| json!({ "tenant": identity.tenant, "execution": identity.execution }))
            .collect();
        let answer = json!({
            "ok": true, "dir": place, "entries": copied.entries, "executions": copied.executions,
            "held": held, "replaced": replaced,
        });
        terminal.answer(&format!("{answer}\n"))?;
        return Ok(Exit::Done);
    }
    let entries = counted(copied.entries, "entry", "entries");
    let executions = counted(copied.executions, "execution", "executions");
    terminal.answer(&format!("{place}: restored, {entries} of {executions}\n"))?;
    if let Some(path) = replaced {
        terminal.answer(&format!("what was there before is now {path}\n"))?;
    }
    if !held.is_empty() {
        terminal
            .answer(&format!("paused until somebody resumes them: {}\n", plural(held.len(), "execution")))?;
        for identity in &held {
            terminal.answer(&format!("  {}\n", printable(identity.execution.as_str())))?;
        }
    }
    Ok(Exit::Done)
}
