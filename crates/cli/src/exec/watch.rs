//! `rutter exec watch`: follows an execution, and continues it if no other process does.

use super::show;
use crate::args::DatabaseArgs;
use crate::args::run::{ExecWatchArgs, ToolSourceArgs};
use crate::exit::CommandExit;
use crate::progress::ProgressPrinter;
use crate::runtime::LocalRuntime;
use crate::store;
use crate::terminal::Terminal;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::ExecutionId;
use rutter_core::port::Error;
use std::thread;
use std::time::Duration;

/// How often the journal of another process's execution is read.
const POLL: Duration = Duration::from_millis(500);
/// How many polls before this process tries to take the database again.
const POLLS: u32 = 4;

pub(crate) fn run(args: &ExecWatchArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let identity = ExecutionIdentity { tenant: args.tenant.id(), execution: ExecutionId::new(&args.execution) };
    store::archive(&args.store)?.receipt(&identity, None)?;
    follow(&args.store, &args.tools, &identity, args.wait, 0, terminal)
}

/// Follows another process by the journal as long as one owns the database; otherwise continues the execution itself.
/// The first `count` entries are not printed.
pub(crate) fn follow(
    store: &DatabaseArgs,
    tools: &ToolSourceArgs,
    identity: &ExecutionIdentity,
    stays: bool,
    count: u64,
    terminal: &Terminal,
) -> anyhow::Result<CommandExit> {
    let mut progress = ProgressPrinter::new(terminal, store.json && !terminal.is_watched).after(count);
    loop {
        match crate::blocking::block_on(follow_locally(store, tools, identity, stays, &mut progress, terminal)) {
            Err(error) if matches!(error.downcast_ref(), Some(Error::Locked { .. })) => {}
            here => return here,
        }
        let mut archive = store::archive(store)?;
        for _ in 0..POLLS {
            let loaded = archive.load(identity)?;
            progress.print_all(1, &loaded.records);
            let status = Execution::replay(identity.clone(), &loaded.records)?.status();
            let needs_attention =
                matches!(status, ExecutionStatus::Waiting | ExecutionStatus::Paused | ExecutionStatus::Replanning);
            if status.has_ended() || (needs_attention && !stays) {
                return show::tell(&mut archive, identity, store, terminal);
            }
            thread::sleep(POLL);
        }
    }
}

async fn follow_locally(
    store: &DatabaseArgs,
    tools: &ToolSourceArgs,
    identity: &ExecutionIdentity,
    stays: bool,
    progress: &mut ProgressPrinter,
    terminal: &Terminal,
) -> anyhow::Result<CommandExit> {
    let runtime = LocalRuntime::open(store, tools).await?;
    let updates = runtime.app.updates();
    let exit = match runtime.follow(identity, updates, stays, progress).await {
        Ok(()) => runtime.conclude(identity, store.json, terminal).await,
        Err(error) => Err(error),
    };
    runtime.close().await;
    exit
}
