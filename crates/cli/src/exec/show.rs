//! `rutter exec show`: how one execution stands, read beside whoever drives it.

use crate::Exit;
use crate::args::run::ShowArgs;
use crate::outcome::Outcome;
use crate::store;
use crate::terminal::Terminal;
use rutter_core::execution::{Execution, Identity};
use rutter_core::id::ExecutionId;
use rutter_store::Archive;

pub(crate) fn run(args: &ShowArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let identity = Identity { tenant: args.tenant.id(), execution: ExecutionId::new(&args.execution) };
    let mut archive = store::archive(&args.store)?;
    tell(&mut archive, &identity, args.store.json, terminal)?;
    Ok(Exit::Done)
}

/// Tells how it stands; the exit code it would have if that were the end.
pub(super) fn tell(
    archive: &mut Archive,
    identity: &Identity,
    is_json: bool,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let loaded = archive.load(identity)?;
    let execution = Execution::replay(identity.clone(), &loaded.records)?;
    let outcome = Outcome::of(&execution);
    match is_json {
        true => terminal.answer(&format!("{}\n", outcome.json(Some(&archive.receipt(identity, None)?))))?,
        false => terminal.answer(&outcome.text(terminal))?,
    }
    Ok(outcome.exit())
}
