//! Options and limits of the engine.

use rutter_core::id::WorkerId;
use rutter_core::time::{Millis, Timestamp};

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
    /// Why due timers must not simply fire: it is unknown how much time has really passed. Executions with due timers
    /// are paused with this reason when they are resumed.
    pub hold: Option<String>,
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
            hold: None,
        }
    }
}

/// Why to hold timers after a restart, if the process was last alive longer than a day ago, or in the future.
pub fn hold_after(last_alive: Option<Timestamp>, now: Timestamp) -> Option<String> {
    let last = last_alive?;
    if last.since(now) > CLOCK_SLACK {
        let apart = last.since(now);
        return Some(format!("the clock is {apart} behind the last run: check the clock, then resume"));
    }
    let gap = now.since(last);
    (gap > GAP_MAX).then(|| format!("no worker ran for {gap}: check what is still wanted, then resume"))
}

/// No timer is meant to wait unattended for longer than this.
pub const GAP_MAX: Millis = Millis::hours(24);
/// Clocks are corrected by small amounts all the time.
pub const CLOCK_SLACK: Millis = Millis::seconds(60);

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
