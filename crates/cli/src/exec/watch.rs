//! `rutter exec watch`: follows an execution, and carries it on where nobody else does.

use super::show;
use crate::Exit;
use crate::args::run::WatchArgs;
use crate::helm::{self, Helm};
use crate::progress::Progress;
use crate::run::conclude;
use crate::store;
use crate::terminal::Terminal;
use rutter_core::execution::view::Status;
use rutter_core::execution::{Execution, Identity};
use rutter_core::id::ExecutionId;
use rutter_core::port::Error;
use rutter_store::Archive;
use std::thread;
use std::time::Duration;

/// How often the journal of another process's execution is read.
const POLL: Duration = Duration::from_millis(500);

pub(crate) fn run(args: &WatchArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let identity = Identity { tenant: args.tenant.id(), execution: ExecutionId::new(&args.execution) };
    let archive = store::archive(&args.store)?;
    archive.receipt(&identity, None)?;
    let mut progress = Progress::new(terminal, args.store.json && !terminal.is_watched);
    let here = helm::on_runtime(async {
        let helm = Helm::open(&args.store, &args.tools).await?;
        let happenings = helm.engine.listen();
        let ended = helm.follow(&identity, happenings, args.wait, &mut progress).await;
        let exit = match ended {
            Ok(()) => conclude(&helm, &identity, args.store.json, terminal).await,
            Err(error) => Err(error),
        };
        helm.close().await;
        exit
    });
    match here {
        Err(error) if matches!(error.downcast_ref(), Some(Error::Locked { .. })) => {
            beside(archive, &identity, args.wait, args.store.json, terminal)
        }
        here => here,
    }
}

/// Follows what another process does, by its journal.
pub(super) fn beside(
    mut archive: Archive,
    identity: &Identity,
    stays: bool,
    is_json: bool,
    terminal: &Terminal,
) -> anyhow::Result<Exit> {
    let mut progress = Progress::new(terminal, is_json && !terminal.is_watched);
    let mut told = 0;
    loop {
        let loaded = archive.load(identity)?;
        loaded.records.iter().skip(told).for_each(|record| progress.tell(record));
        told = loaded.records.len();
        let status = Execution::replay(identity.clone(), &loaded.records)?.status();
        let needs_somebody = matches!(status, Status::Waiting | Status::Paused | Status::Replanning);
        if status.has_ended() || (needs_somebody && !stays) {
            return show::tell(&mut archive, identity, is_json, terminal);
        }
        thread::sleep(POLL);
    }
}
