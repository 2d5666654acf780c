//! How the engine behaves, with the bounds everything in it has.

use rutter_core::id::WorkerId;
use rutter_core::time::Millis;

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
        }
    }
}

/// What a caller is told to wait when there is too much to do.
pub const RETRY_AFTER: Millis = Millis::seconds(1);
/// Happenings a slow listener may be behind before it has to read the journal instead.
pub(crate) const HAPPENINGS_MAX: usize = 4_096;
/// How long whoever asked waits for an execution to decide.
pub(crate) const DECISION_MAX: Millis = Millis::seconds(10);
/// Executions taken up in one request to the store.
pub(crate) const CLAIM_MAX: u32 = 256;
/// Between two tries to write what could not be written.
pub(crate) const WRITE_AGAIN: Millis = Millis(200);
