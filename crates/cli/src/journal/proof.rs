//! `rutter journal checkpoint`, `receipt` and `key`: small proofs to store elsewhere, which reveal later changes.

use crate::args::journal::{JournalCheckpointArgs, JournalKeyArgs, JournalReceiptArgs, OutputArgs};
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::output::CommandOutput;
use crate::store;
use crate::terminal::Terminal;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::ExecutionId;
use serde_json::{Value, json};
use std::io::Write;

pub(crate) fn checkpoint(args: &JournalCheckpointArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let tenant = args.tenant.id();
    let archive = store::archive(&args.store)?;
    store::check_tenant(&archive, &tenant)?;
    let unsigned = || {
        CommandRefusal::new("store.not_found", format!("no checkpoint of {tenant} has been signed yet"))
            .with_hint("the server signs one within seconds of an entry, and when it stops")
    };
    let note = archive.checkpoint(&tenant)?.ok_or_else(unsigned)?;
    let answer = json!({ "ok": true, "tenant": tenant, "checkpoint": note });
    give(&args.out, args.store.json, &note, answer, terminal)
}

pub(crate) fn receipt(args: &JournalReceiptArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let identity = ExecutionIdentity { tenant: args.tenant.id(), execution: ExecutionId::new(&args.execution) };
    let archive = store::archive(&args.store)?;
    store::check_tenant(&archive, &identity.tenant)?;
    let receipt = archive.receipt(&identity, args.seq)?;
    let text = format!("{}\n", json!(receipt));
    let answer = json!({ "ok": true, "receipt": receipt });
    give(&args.out, args.store.json, &text, answer, terminal)
}

pub(crate) fn key(args: &JournalKeyArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let key = store::archive(&args.store)?.public_key()?;
    let unsigned = || CommandRefusal::new("store.not_found", "nothing has been signed yet, so there is no key");
    let key = key.ok_or_else(unsigned)?.to_string();
    match args.store.json {
        true => terminal.answer(&format!("{}\n", json!({ "ok": true, "key": key })))?,
        false => terminal.answer(&format!("{key}\n"))?,
    }
    Ok(CommandExit::Done)
}

/// A file gets the text itself, whatever the output format.
fn give(
    out: &OutputArgs,
    is_json: bool,
    text: &str,
    answer: Value,
    terminal: &Terminal,
) -> anyhow::Result<CommandExit> {
    if out.out.is_some() || !is_json {
        let mut outlet = CommandOutput::open(out)?;
        outlet.write_all(text.as_bytes())?;
        outlet.finish()?;
    }
    if is_json {
        terminal.answer(&format!("{answer}\n"))?;
    }
    Ok(CommandExit::Done)
}
