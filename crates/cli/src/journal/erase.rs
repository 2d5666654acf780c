//! `rutter journal erase`: erases payloads of an execution; that they existed can still be proven.

use crate::args::journal::JournalEraseArgs;
use crate::clock;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::report::counted;
use crate::store;
use crate::terminal::Terminal;
use rutter_app::cleanup::erasure;
use rutter_app::principal::Principal;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::ExecutionId;
use rutter_core::port::upkeep::StoreMaintenance;
use rutter_core::redact::Redactor;
use rutter_store::wait;
use serde_json::json;

pub(crate) fn run(args: &JournalEraseArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let config = store::config(&args.store)?;
    let store = store::owned(&config)?;
    let identity = ExecutionIdentity { tenant: args.tenant.id(), execution: ExecutionId::new(&args.execution) };
    let what = match args.entries.len() {
        0 => format!("everything that {} carried", args.execution),
        count => format!("what {} of {} carried", counted(count as u64, "entry", "entries"), args.execution),
    };
    terminal.confirm(args.yes, &format!("Erase {what}? This cannot be undone."))?;
    let caller = Principal::owner(args.tenant.id(), &config.operator);
    let entries = (!args.entries.is_empty()).then(|| args.entries.clone());
    // Without a server no secret of the configuration is resolved; secrets of known shapes are recognised.
    let erasure = erasure(&caller, &Redactor::standard(), identity, entries, &args.reason, clock::now());
    let erasure = erasure.map_err(CommandRefusal::of)?;
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
    Ok(CommandExit::Done)
}
