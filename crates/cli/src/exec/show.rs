//! `rutter exec show`: the state of one execution, read beside the process that drives it.

use crate::args::DatabaseArgs;
use crate::args::run::ExecShowArgs;
use crate::daemon;
use crate::exit::CommandExit;
use crate::outcome::ExecutionReport;
use crate::owner;
use crate::store;
use crate::terminal::Terminal;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::ExecutionId;
use rutter_core::port::Error;
use rutter_store::SqliteArchive;

pub(crate) fn run(args: &ExecShowArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let identity = ExecutionIdentity { tenant: args.tenant.id(), execution: ExecutionId::new(&args.execution) };
    let mut archive = store::archive(&args.store)?;
    tell(&mut archive, &identity, &args.store, terminal)?;
    let under_way = archive.execution(&identity)?.filter(|found| owner::needs_a_process(&found.row));
    owner::note_unowned(&store::config(&args.store)?.directory, under_way.iter().count(), terminal);
    Ok(CommandExit::Done)
}

/// Prints the state, and returns the exit code for it.
pub(super) fn tell(
    archive: &mut SqliteArchive,
    identity: &ExecutionIdentity,
    store: &DatabaseArgs,
    terminal: &Terminal,
) -> anyhow::Result<CommandExit> {
    let loaded = archive.load(identity)?;
    let execution = Execution::replay(identity.clone(), &loaded.records)?;
    let outcome = ExecutionReport::of(&execution);
    match store.json {
        true => {
            let missing = || Error::NotFound { what: "execution", id: identity.execution.to_string() };
            let summary = archive.execution(identity)?.ok_or_else(missing)?;
            let receipt = archive.receipt(identity, None)?;
            let base = daemon::link(&store::config(store)?.directory);
            terminal.answer(&format!("{}\n", outcome.json(&summary.plan, base.as_deref(), &receipt)))?;
        }
        false => terminal.answer(&outcome.text(terminal))?,
    }
    Ok(outcome.exit())
}
