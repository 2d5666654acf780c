//! `rutter journal checkpoint`, `receipt` and `key`: small things to keep elsewhere, so that a change shows later.

use crate::Exit;
use crate::args::journal::{CheckpointArgs, KeyArgs, OutArgs, ReceiptArgs};
use crate::failure::Refusal;
use crate::outlet::Outlet;
use crate::store;
use crate::terminal::Terminal;
use rutter_core::execution::Identity;
use rutter_core::id::ExecutionId;
use serde_json::{Value, json};
use std::io::Write;

pub(crate) fn checkpoint(args: &CheckpointArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let tenant = args.tenant.id();
    let archive = store::archive(&args.store)?;
    store::check_tenant(&archive, &tenant)?;
    let unsigned = || {
        Refusal::new("store.not_found", format!("no checkpoint of {tenant} was signed yet"))
            .with_hint("whoever owns the database signs one within seconds of an entry, and when it ends")
    };
    let note = archive.checkpoint(&tenant)?.ok_or_else(unsigned)?;
    let answer = json!({ "ok": true, "tenant": tenant, "checkpoint": note });
    give(&args.out, args.store.json, &note, answer, terminal)
}

pub(crate) fn receipt(args: &ReceiptArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let identity = Identity { tenant: args.tenant.id(), execution: ExecutionId::new(&args.execution) };
    let archive = store::archive(&args.store)?;
    store::check_tenant(&archive, &identity.tenant)?;
    let receipt = archive.receipt(&identity, args.seq)?;
    let text = format!("{}\n", json!(receipt));
    let answer = json!({ "ok": true, "receipt": receipt });
    give(&args.out, args.store.json, &text, answer, terminal)
}

pub(crate) fn key(args: &KeyArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let key = store::archive(&args.store)?.public_key()?;
    let unsigned = || Refusal::new("store.not_found", "nothing was signed yet, so there is no key");
    let key = key.ok_or_else(unsigned)?.to_string();
    match args.store.json {
        true => terminal.answer(&format!("{}\n", json!({ "ok": true, "key": key })))?,
        false => terminal.answer(&format!("{key}\n"))?,
    }
    Ok(Exit::Done)
}

/// A file gets the text itself, whatever form the answer has.
fn give(
    out: &OutArgs,
    is_json: bool,
    text: &str,
    answer: Value,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    if out.out.is_some() || !is_json {
        let mut outlet = Outlet::open(out)?;
        outlet.write_all(text.as_bytes())?;
        outlet.finish()?;
    }
    if is_json {
        terminal.answer(&format!("{answer}\n"))?;
    }
    Ok(Exit::Done)
}
