//! `rutter db backup`: a verified copy, made while the database is in use.

use super::sized;
use crate::args::db::DbBackupArgs;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::report::counted;
use crate::store;
use crate::terminal::Terminal;
use rutter_store::sqlite::backup::{BackupContents, backup};
use serde_json::json;

pub(crate) fn run(args: &DbBackupArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let config = store::config(&args.store)?;
    if args.file.exists() {
        let message = format!("{} already exists", args.file.display());
        return Err(CommandRefusal::new("file.exists", message).with_hint("choose another file name").into());
    }
    let copied = backup(&config.directory, &args.file, &mut |done, all| {
        terminal.progress(&format!("{done} of {all} pages"));
    })?;
    terminal.progress("");
    let BackupContents { bytes, entries, executions } = copied;
    let file = args.file.display().to_string();
    match args.store.json {
        true => {
            let answer = json!({
                "ok": true, "file": file, "bytes": bytes, "entries": entries, "executions": executions,
            });
            terminal.answer(&format!("{answer}\n"))?;
        }
        false => {
            let entries = counted(entries, "entry", "entries");
            let executions = counted(executions, "execution", "executions");
            terminal.answer(&format!("{file}: {}, {entries} of {executions}, verified\n", sized(bytes)))?;
            terminal.remark("note: ledger.key, which signs checkpoints, is not included; store it separately\n");
        }
    }
    Ok(CommandExit::Done)
}
