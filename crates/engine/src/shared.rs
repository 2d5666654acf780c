//! What the engine, its worker, its loops and their calls share.

use crate::active_executions::ActiveExecutions;
use crate::clock::SystemClock;
use crate::command_replies::CommandReplies;
use crate::gaps::GapRecord;
use crate::options::EngineOptions;
use crate::update::ExecutionUpdate;
use rutter_core::actor::Actor;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::ExecutionId;
use rutter_core::policy::window::LimitWindows;
use rutter_core::port::journal::Journal;
use rutter_core::port::query::StoreQuery;
use rutter_core::port::tools::ToolGateway;
use rutter_core::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::runtime::Handle;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The state that all loops share.
pub(crate) struct EngineShared {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) query: Arc<dyn StoreQuery>,
    pub(crate) tools: Arc<dyn ToolGateway>,
    pub(crate) clock: SystemClock,
    pub(crate) gaps: GapRecord,
    pub(crate) options: EngineOptions,
    /// The runtime of the loops, whichever thread starts them.
    pub(crate) runtime: Handle,
    /// The loops, so that closing can wait for them.
    pub(crate) loops: TaskTracker,
    pub(crate) active_executions: ActiveExecutions,
    pub(crate) command_replies: CommandReplies,
    /// Wakes the worker: an execution may be due.
    pub(crate) recheck: Notify,
    /// Executions that are accepted but not in memory yet.
    pub(crate) backlog: AtomicUsize,
    /// When the leases of this worker expire.
    pub(crate) lease_until: AtomicI64,
    pub(crate) updates: broadcast::Sender<ExecutionUpdate>,
    /// The calls under the limits of the operator's policy.
    pub(crate) windows: Mutex<LimitWindows>,
    pub(crate) broken: Mutex<BTreeMap<ExecutionId, String>>,
    /// Signs of life of agents that were too early to be worth an entry.
    pub(crate) signs: Mutex<BTreeMap<ExecutionId, (Actor, Timestamp)>>,
    /// Executions held since the worker last said so.
    pub(crate) held: AtomicUsize,
    /// Cancelled first: nothing new starts.
    pub(crate) closing: CancellationToken,
    /// Cancelled when calls in flight are to be cancelled.
    pub(crate) cancel_calls: CancellationToken,
    /// Cancelled last: nothing is waited for any more.
    pub(crate) stopped: CancellationToken,
}

impl EngineShared {
    /// The time, with a sign of life: whoever decides by it knows of every gap before it.
    pub(crate) fn now(&self) -> Timestamp {
        let now = self.clock.now();
        self.gaps.beat(now);
        now
    }

    pub(crate) fn publish(&self, update: ExecutionUpdate) {
        // There may be no subscriber.
        let _ = self.updates.send(update);
    }

    pub(crate) fn broken(&self, identity: ExecutionIdentity, why: String) {
        self.broken.lock().expect("no thread panics while holding it").insert(identity.execution, why);
    }

    /// Takes the remembered sign of life of an execution's agent.
    pub(crate) fn take_sign(&self, execution: &ExecutionId) -> Option<(Actor, Timestamp)> {
        self.signs.lock().expect("no thread panics while holding it").remove(execution)
    }

    pub(crate) fn lease_has_ended(&self) -> bool {
        self.clock.now().0 > self.lease_until.load(Ordering::Acquire)
    }

    pub(crate) fn lease_renewed(&self, until: Timestamp) {
        self.lease_until.store(until.0, Ordering::Release);
    }
}
