//! Options and limits of the engine.

use rutter_core::execution::hold::WorkerGap;
use rutter_core::id::WorkerId;
use rutter_core::policy::OperatorPolicy;
use rutter_core::time::{Millis, Timestamp};
use std::sync::Arc;

#[derive(Clone, Debug)]
pub struct EngineOptions {
    pub worker: WorkerId,
    /// How long the worker's leases last without a renewal.
    pub lease: Millis,
    /// Executions in memory at once.
    pub executions_max: usize,
    /// Accepted executions that wait for capacity in memory; more are refused.
    pub backlog_max: usize,
    /// How long calls in flight may take to end when the engine is closed.
    pub drain: Millis,
    /// An execution that is idle for longer than this is unloaded.
    pub rest: Millis,
    /// How often the store is asked for executions that are due.
    pub look: Millis,
    /// The time of the newest entry that earlier processes left, if any.
    pub last_entry: Option<Timestamp>,
    /// The operator's policy, which stands above every plan.
    pub policy: Arc<OperatorPolicy>,
}

impl EngineOptions {
    pub fn new(worker: WorkerId) -> EngineOptions {
        EngineOptions {
            worker,
            lease: Millis::seconds(30),
            executions_max: 10_000,
            backlog_max: 10_000,
            drain: Millis::seconds(30),
            rest: Millis::seconds(30),
            look: Millis(500),
            last_entry: None,
            policy: Arc::default(),
        }
    }
}

/// The gap before this time, if the last sign of a worker is more than a day old, or in the future. `now` is what the wall
/// clock says.
pub fn gap_before(last_alive: Option<Timestamp>, now: Timestamp) -> Option<WorkerGap> {
    let last = last_alive?;
    if last.since(now) > CLOCK_SLACK {
        let apart = last.since(now).rounded();
        let reason = format!("the clock is {apart} behind the last run: check the clock, then resume");
        return Some(WorkerGap { reason, since: last, until: last });
    }
    let gap = now.since(last);
    let reason = format!("no worker ran for {}: check what is still wanted, then resume", gap.rounded());
    (gap > GAP_MAX).then_some(WorkerGap { reason, since: last, until: now })
}

/// No timer is meant to wait unattended for longer than this.
pub const GAP_MAX: Millis = Millis::hours(24);
/// Clocks are corrected by small amounts all the time.
pub const CLOCK_SLACK: Millis = Millis::seconds(60);
/// A jump of the clock in a running process is on record if it is larger than this.
pub const JUMP_NOTED: Millis = Millis::seconds(60);
/// Gaps kept on record; with more, the oldest go.
pub(crate) const GAPS_MAX: usize = 100;

/// How long a refused caller should wait when there is too much to do.
pub const RETRY_AFTER: Millis = Millis::seconds(1);
/// Updates that a slow subscriber may lag behind before it has to read the journal instead.
pub(crate) const UPDATES_MAX: usize = 4_096;
/// How long a caller waits for the decision on its command.
pub(crate) const DECISION_MAX: Millis = Millis::seconds(10);
/// Executions claimed in one request to the store.
pub(crate) const CLAIM_MAX: u32 = 256;
/// The pause before an execution is loaded again after a store error.
pub(crate) const TAKE_UP_AGAIN: Millis = Millis::seconds(1);
/// The pause between two tries of an append.
pub(crate) const WRITE_AGAIN: Millis = Millis(200);
