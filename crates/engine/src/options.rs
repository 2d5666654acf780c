//! How the engine behaves, with the bounds everything in it has.

use rutter_core::id::WorkerId;
use rutter_core::time::{Millis, Timestamp};

#[derive(Clone, Debug)]
pub struct Options {
    pub worker: WorkerId,
    /// How long the worker is believed to live without a sign.
    pub lease: Millis,
    /// Executions in memory at once.
    pub executions_max: usize,
    /// Executions that were accepted and wait for a place in memory; more are refused.
    pub backlog_max: usize,
    /// How long calls under way may take to end when the engine is closed.
    pub drain: Millis,
    /// An execution that has nothing to do for longer than this leaves the memory.
    pub rest: Millis,
    /// How often the store is asked for executions that are due.
    pub look: Millis,
    /// Why timers that are due must not simply fire: nobody knows what time has really passed. Executions that have
    /// such timers are paused with this reason when they are taken up.
    pub hold: Option<String>,
}

impl Options {
    pub fn new(worker: WorkerId) -> Options {
        Options {
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

/// Why to hold timers after a restart, if the process was last alive at that time: longer ago than a day, or in the
/// future.
pub fn hold_after(last_alive: Option<Timestamp>, now: Timestamp) -> Option<String> {
    let last = last_alive?;
    if last.since(now) > CLOCK_SLACK {
        let apart = last.since(now);
        return Some(format!("the clock is {apart} behind when this was last driven: check it, then resume"));
    }
    let gap = now.since(last);
    (gap > GAP_MAX).then(|| format!("nothing was driven for {gap}: see what is still wanted, then resume"))
}

/// Longer than this nobody can have meant a timer to wait unseen.
pub const GAP_MAX: Millis = Millis::hours(24);
/// Clocks are corrected by a little all the time.
pub const CLOCK_SLACK: Millis = Millis::seconds(60);

/// What a caller is told to wait when there is too much to do.
pub const RETRY_AFTER: Millis = Millis::seconds(1);
/// Happenings a slow listener may be behind before it has to read the journal instead.
pub(crate) const HAPPENINGS_MAX: usize = 4_096;
/// How long whoever asked waits for an execution to decide.
pub(crate) const DECISION_MAX: Millis = Millis::seconds(10);
/// Executions taken up in one request to the store.
pub(crate) const CLAIM_MAX: u32 = 256;
/// After a failure of the store that left open what is on record.
pub(crate) const TAKE_UP_AGAIN: Millis = Millis::seconds(1);
/// Between two tries to write what could not be written.
pub(crate) const WRITE_AGAIN: Millis = Millis(200);
