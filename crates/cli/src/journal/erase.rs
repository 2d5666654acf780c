//! `rutter journal erase`: what an execution carried is gone; that it was there can still be proven.

use crate::Exit;
use crate::args::journal::EraseArgs;
use crate::clock;
use crate::report::counted;
use crate::store;
use crate::terminal::Terminal;
use rutter_core::actor::Actor;
use rutter_core::execution::Identity;
use rutter_core::id::ExecutionId;
use rutter_core::port::upkeep::{Erasure, Upkeep};
use rutter_store::wait;
use serde_json::json;

pub(crate) fn run(args: &EraseArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let config = store::config(&args.store)?;
    let store = store::owned(&config)?;
    let identity = Identity { tenant: args.tenant.id(), execution: ExecutionId::new(&args.execution) };
    let what = match args.entries.len() {
        0 => format!("everything that {} carried", args.execution),
        count => format!("what {} of {} carried", counted(count as u64, "entry", "entries"), args.execution),
    };
    terminal.confirm(args.yes, &format!("Erase {what}? It cannot be brought back."))?;
    let erasure = Erasure {
        identity,
        entries: (!args.entries.is_empty()).then(|| args.entries.clone()),
        actor: Actor::person(&config.operator),
        at: clock::now(),
        reason: args.reason.clone(),
    };
    let erased = wait(store.erase(erasure))?;
    match args.store.json {
        true => {
            let answer = json!({ "ok": true, "payloads": erased.payloads, "bytes": erased.bytes });
            terminal.answer(&format!("{answer}\n"))?;
        }
        false => {
            let payloads = counted(erased.payloads, "payload", "payloads");
            terminal.answer(&format!("erased {payloads} with {} bytes\n", erased.bytes))?;
        }
    }
    Ok(Exit::Done)
}
