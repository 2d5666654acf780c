//! `rutter exec watch`: follows an execution, and carries it on where nobody else does.

use super::show;
use crate::Exit;
use crate::args::StoreArgs;
use crate::args::run::{ToolArgs, WatchArgs};
use crate::helm::{self, Helm};
use crate::progress::Progress;
use crate::run::conclude;
use crate::store;
use crate::terminal::Terminal;
use rutter_core::execution::view::Status;
use rutter_core::execution::{Execution, Identity};
use rutter_core::id::ExecutionId;
use rutter_core::port::Error;
use std::thread;
use std::time::Duration;

/// How often the journal of another process's execution is read.
const POLL: Duration = Duration::from_millis(500);
/// How long it is followed by its journal before somebody looks whether that process is still there.
const POLLS: u32 = 4;

pub(crate) fn run(args: &WatchArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let identity = Identity { tenant: args.tenant.id(), execution: ExecutionId::new(&args.execution) };
    store::archive(&args.store)?.receipt(&identity, None)?;
    follow(&args.store, &args.tools, &identity, args.wait, 0, terminal)
}

/// Follows what another process does, by its journal, for as long as there is one; otherwise carries on itself. Entries
/// up to `told` are not told again.
pub(crate) fn follow(
    store: &StoreArgs,
    tools: &ToolArgs,
    identity: &Identity,
    stays: bool,
    told: u64,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let mut progress = Progress::new(terminal, store.json && !terminal.is_watched).after(told);
    loop {
        match helm::on_runtime(here(store, tools, identity, stays, &mut progress, terminal)) {
            Err(error) if matches!(error.downcast_ref(), Some(Error::Locked { .. })) => {}
            here => return here,
        }
        let mut archive = store::archive(store)?;
        for _ in 0..POLLS {
            let loaded = archive.load(identity)?;
            progress.tell_all(1, &loaded.records);
            let status = Execution::replay(identity.clone(), &loaded.records)?.status();
            let needs_somebody = matches!(status, Status::Waiting | Status::Paused | Status::Replanning);
            if status.has_ended() || (needs_somebody && !stays) {
                return show::tell(&mut archive, identity, store.json, terminal);
            }
            thread::sleep(POLL);
        }
    }
}

async fn here(
    store: &StoreArgs,
    tools: &ToolArgs,
    identity: &Identity,
    stays: bool,
    progress: &mut Progress,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let helm = Helm::open(store, tools).await?;
    let happenings = helm.engine.listen();
    let exit = match helm.follow(identity, happenings, stays, progress).await {
        Ok(()) => conclude(&helm, identity, store.json, terminal).await,
        Err(error) => Err(error),
    };
    helm.close().await;
    exit
}
