//! `rutter db backup`: a verified copy, made while the database is used.

use super::sized;
use crate::Exit;
use crate::args::db::BackupArgs;
use crate::failure::Refusal;
use crate::report::counted;
use crate::store;
use crate::terminal::Terminal;
use rutter_store::sqlite::backup::{Copied, backup};
use serde_json::json;

pub(crate) fn run(args: &BackupArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let config = store::config(&args.store)?;
    if args.file.exists() {
        let message = format!("{} exists already", args.file.display());
        return Err(Refusal::new("file.exists", message).with_hint("a backup gets a new name").into());
    }
    let copied = backup(&config.directory, &args.file, &mut |done, all| {
        terminal.progress(&format!("{done} of {all} pages"));
    })?;
    terminal.progress("");
    let Copied { bytes, entries, executions } = copied;
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
            terminal
                .remark("note: the key that signs checkpoints, ledger.key, is not in it; keep that apart\n");
        }
    }
    Ok(Exit::Done)
}
