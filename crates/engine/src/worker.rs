//! The process's side of leases: says that it lives, and takes up what is due and nobody holds.

use crate::drive::{Drive, Line};
use crate::engine::Shared;
use crate::logbook::Logbook;
use crate::options::{CLAIM_MAX, TAKE_UP_AGAIN};
use rutter_core::execution::Execution;
use rutter_core::journal::chain::Chain;
use rutter_core::port::Error;
use rutter_core::port::journal::{Claim, Lease};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) async fn run(shared: Arc<Shared>) {
    let mut renewed_at = shared.clock.now();
    let mut jump = None;
    loop {
        let now = shared.clock.now();
        if now.since(renewed_at).0 >= shared.options.lease.0 / 3 {
            match renew(&shared).await {
                Ok(()) => renewed_at = now,
                Err(error) => tracing::warn!(error.code = error.code(), "the lease was not renewed: {error}"),
            }
            let apart = shared.clock.jump();
            if apart.is_some() && apart != jump {
                tracing::warn!(
                    "the wall clock was moved by {} ms; timers keep to what has passed",
                    apart.unwrap_or(0)
                );
            }
            jump = apart;
        }
        let is_full = match shared.closing.is_cancelled() {
            true => false,
            false => match claim(&shared).await {
                Ok(taken) => taken == CLAIM_MAX as usize,
                Err(error) => {
                    tracing::warn!(error.code = error.code(), "nothing could be taken up: {error}");
                    false
                }
            },
        };
        if is_full {
            continue;
        }
        tokio::select! {
            () = shared.nudge.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(shared.options.look.0)) => {}
            () = shared.stopped.cancelled() => return,
        }
    }
}

pub(crate) async fn renew(shared: &Shared) -> Result<(), Error> {
    let until = shared.clock.now().plus(shared.options.lease);
    shared.journal.renew(&shared.options.worker, until).await?;
    shared.lease_renewed(until);
    Ok(())
}

/// Takes up what is due, as far as there are places; how many there were.
async fn claim(shared: &Arc<Shared>) -> Result<usize, Error> {
    let places = shared.options.executions_max.saturating_sub(shared.fleet.len());
    let limit = CLAIM_MAX.min(u32::try_from(places).unwrap_or(u32::MAX));
    if limit == 0 {
        return Ok(0);
    }
    let (worker, now) = (shared.options.worker.clone(), shared.clock.now());
    let leases = shared.journal.claim(Claim { worker, now, limit }).await?;
    let taken = leases.len();
    shared
        .backlog
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(taken)))
        .ok();
    for lease in leases {
        shared.loops.spawn_on(take_up(Arc::clone(shared), lease), &shared.runtime);
    }
    Ok(taken)
}

/// Carries an execution on until it needs nobody here, and once more when the store failed it.
async fn take_up(shared: Arc<Shared>, lease: Lease) {
    let left = take_up_once(&shared, lease).await;
    keep(shared, left).await;
}

/// Takes up again what could not be written a moment ago, and is still ours, unless everything ends.
pub(crate) async fn keep(shared: Arc<Shared>, mut left: Option<Lease>) {
    while let Some(lease) = left {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(TAKE_UP_AGAIN.0)) => {}
            () = shared.closing.cancelled() => return,
        }
        left = take_up_once(&shared, lease).await;
    }
}

/// Reads an execution back and carries it on.
async fn take_up_once(shared: &Arc<Shared>, lease: Lease) -> Option<Lease> {
    let identity = lease.identity.clone();
    let Some(mail) = shared.fleet.enter(&identity) else {
        tracing::error!(execution = %identity.execution, "it was given out although it is driven here");
        return None;
    };
    let loaded = match shared.journal.load(&identity).await {
        Ok(loaded) => loaded,
        Err(error) => {
            tracing::error!(execution = %identity.execution, error.code = error.code(), "{error}");
            shared.broken(identity.clone(), error.to_string());
            shared.fleet.remove(&identity);
            return None;
        }
    };
    match Execution::replay(identity.clone(), &loaded.records) {
        Ok(execution) => {
            let chain = Chain::resume(identity.tenant, identity.execution, loaded.head);
            let logbook = Logbook { journal: Arc::clone(&shared.journal), lease, chain };
            let line = Line::of(&execution);
            Drive::new(Arc::clone(shared), execution, logbook, mail, line).resume(loaded.letters).await
        }
        Err(illegal) => {
            tracing::error!(execution = %identity.execution, "{illegal}");
            shared.broken(identity.clone(), illegal.to_string());
            shared.fleet.remove(&identity);
            None
        }
    }
}
