//! The worker: renews the leases of this process, and claims executions that are due and free.

use crate::clock::JUMP_MAX;
use crate::execution_loop::{ExecutionLoop, WaiterHandle};
use crate::journal_writer::JournalWriter;
use crate::options::{CLAIM_MAX, CLOCK_SLACK, TAKE_UP_AGAIN};
use crate::shared::EngineShared;
use rutter_core::execution::Execution;
use rutter_core::journal::chain::HashChain;
use rutter_core::port::Error;
use rutter_core::port::journal::{ClaimRequest, Lease};
use rutter_core::time::{Millis, Timestamp};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

pub(crate) async fn run(shared: Arc<EngineShared>) {
    let mut renewed_at = shared.clock.now();
    let (mut wall_clock, mut held) = (WallClockWatch::default(), 0);
    loop {
        let now = shared.now();
        if now.since(renewed_at).0 >= shared.options.lease.0 / 3 {
            wall_clock.look(&shared, now);
            match renew(&shared).await {
                Ok(()) => renewed_at = now,
                Err(error) => tracing::warn!(error.code = error.code(), "the lease was not renewed: {error}"),
            }
        }
        let is_full = match shared.closing.is_cancelled() {
            true => false,
            false => match claim(&shared).await {
                Ok(taken) => taken == CLAIM_MAX as usize,
                Err(error) => {
                    tracing::warn!(error.code = error.code(), "executions could not be claimed: {error}");
                    false
                }
            },
        };
        if is_full {
            continue;
        }
        held = report_held(&shared, held);
        tokio::select! {
            () = shared.recheck.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(shared.options.look.0)) => {}
            () = shared.stopped.cancelled() => return,
        }
    }
}

/// What was said of the wall clock so far, in milliseconds. Each time that it is set is told once.
#[derive(Default)]
struct WallClockWatch {
    followed_ms: i64,
    /// How far it was behind when that was logged, and when it was written into the ledger.
    logged_ms: i64,
    recorded_ms: i64,
}

impl WallClockWatch {
    fn look(&mut self, shared: &EngineShared, now: Timestamp) {
        let (followed_ms, behind_ms) = (shared.clock.followed_ms(), shared.clock.behind().unwrap_or_default());
        if followed_ms > self.followed_ms {
            let ahead_ms = followed_ms - self.followed_ms;
            tracing::warn!("the wall clock was set ahead by {ahead_ms} ms; time follows it");
        }
        self.followed_ms = followed_ms;
        let is_set_back = |told_ms: i64, slack_ms: u64| behind_ms > told_ms + slack_ms as i64;
        if is_set_back(self.logged_ms, JUMP_MAX.as_millis() as u64) {
            tracing::warn!("the wall clock is {behind_ms} ms behind; recorded times do not go back with it");
            self.logged_ms = behind_ms;
        }
        if is_set_back(self.recorded_ms, CLOCK_SLACK.0) {
            shared.gaps.set_back(now, Millis(behind_ms.unsigned_abs()));
            self.recorded_ms = behind_ms;
        }
        // Where it was set right again, the next time counts anew.
        self.logged_ms = self.logged_ms.min(behind_ms);
        self.recorded_ms = self.recorded_ms.min(behind_ms);
    }
}

/// Says how many executions are held: once, when no more are found.
fn report_held(shared: &EngineShared, before: usize) -> usize {
    let found = shared.held.swap(0, Ordering::Relaxed);
    let held = before + found;
    if found > 0 || held == 0 {
        return held;
    }
    let reason = shared.gaps.all().pop().map(|gap| gap.reason).unwrap_or_default();
    tracing::warn!("{held} executions are held until a person resumes them; {reason}");
    0
}

/// The last sign of life is written first: what a gap before it caught is known before anything can be claimed.
pub(crate) async fn renew(shared: &EngineShared) -> Result<(), Error> {
    let until = shared.now().plus(shared.options.lease);
    shared.gaps.write().await?;
    shared.journal.renew(&shared.options.worker, until).await?;
    shared.lease_renewed(until);
    Ok(())
}

/// Claims due executions, as many as fit in memory; returns how many.
async fn claim(shared: &Arc<EngineShared>) -> Result<usize, Error> {
    let places = shared.options.executions_max.saturating_sub(shared.active_executions.len());
    let limit = CLAIM_MAX.min(u32::try_from(places).unwrap_or(u32::MAX));
    if limit == 0 {
        return Ok(0);
    }
    let (worker, now) = (shared.options.worker.clone(), shared.now());
    let leases = shared.journal.claim(ClaimRequest { worker, now, limit }).await?;
    let taken = leases.len();
    shared.backlog.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(taken))).ok();
    for lease in leases {
        shared.loops.spawn_on(take_up(Arc::clone(shared), lease), &shared.runtime);
    }
    Ok(taken)
}

/// Runs a claimed execution, and resumes it after store errors.
async fn take_up(shared: Arc<EngineShared>, lease: Lease) {
    let left = take_up_once(&shared, lease).await;
    resume_while_leased(shared, left).await;
}

/// Resumes an execution after a store error while its lease is still held, unless the engine closes.
pub(crate) async fn resume_while_leased(shared: Arc<EngineShared>, mut left: Option<Lease>) {
    while let Some(lease) = left {
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(TAKE_UP_AGAIN.0)) => {}
            () = shared.closing.cancelled() => return,
        }
        left = take_up_once(&shared, lease).await;
    }
}

/// Loads an execution and runs it.
async fn take_up_once(shared: &Arc<EngineShared>, lease: Lease) -> Option<Lease> {
    let identity = lease.identity.clone();
    let Some(message) = shared.active_executions.register(&identity) else {
        tracing::error!(execution = %identity.execution, "the store leased it although it is driven here");
        return None;
    };
    let loaded = match shared.journal.load(&identity).await {
        Ok(loaded) => loaded,
        Err(error) => {
            tracing::error!(execution = %identity.execution, error.code = error.code(), "{error}");
            shared.broken(identity.clone(), error.to_string());
            shared.active_executions.remove(&identity);
            return None;
        }
    };
    match Execution::replay(identity.clone(), &loaded.records) {
        Ok(execution) => {
            let chain = HashChain::resume(identity.tenant, identity.execution, loaded.head);
            let journal_writer = JournalWriter { journal: Arc::clone(&shared.journal), lease, chain };
            let line = WaiterHandle::of(&execution);
            ExecutionLoop::new(Arc::clone(shared), loaded.plan, execution, journal_writer, message, line)
                .resume(loaded.commands)
                .await
        }
        Err(illegal) => {
            tracing::error!(execution = %identity.execution, "{illegal}");
            shared.broken(identity.clone(), illegal.to_string());
            shared.active_executions.remove(&identity);
            None
        }
    }
}
