//! Call permits, requested from the tools while an execution decides.

use crate::shared::EngineShared;
use rutter_core::execution::input::{CallCapacity, CallRoom};
use rutter_core::id::{ExecutionId, TenantId, ToolName};
use rutter_core::policy::window::{LimitWindows, LimitedCall};
use rutter_core::port::tools::{Admission, CallPermit, PermitWaiter, ToolGateway};
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::ToolFailure;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;

/// An execution that waits for call permits.
pub(crate) struct ExecutionWaiter {
    pub(crate) tenant: TenantId,
    pub(crate) priority: i32,
    pub(crate) wakeup: Arc<Notify>,
}

impl PermitWaiter for ExecutionWaiter {
    fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    fn priority(&self) -> i32 {
        self.priority
    }

    fn wake(&self) {
        self.wakeup.notify_one();
    }
}

/// The permits granted to one decision. Those it does not use are returned when this is dropped.
pub(crate) struct PermitSource<'a> {
    pub(crate) now: Timestamp,
    pub(crate) tools: &'a dyn ToolGateway,
    pub(crate) waiter: &'a Arc<dyn PermitWaiter>,
    /// The engine is closing, or the execution is not recovered yet: no new call starts.
    pub(crate) is_closed: bool,
    pub(crate) granted: Vec<(ToolName, CallPermit)>,
    /// When to ask again, where that is known.
    pub(crate) retry_after: Option<Millis>,
    pub(crate) execution: &'a ExecutionId,
    /// The calls under the limits of the operator's policy.
    pub(crate) windows: &'a Mutex<LimitWindows>,
}

impl CallCapacity for PermitSource<'_> {
    fn try_acquire(&mut self, tool: &ToolName) -> CallRoom {
        match self.is_closed {
            true => CallRoom::Full,
            false => self.room(tool, self.tools.admit(tool, self.waiter)),
        }
    }

    fn try_acquire_paused(&mut self, tool: &ToolName) -> bool {
        !self.is_closed && self.room(tool, self.tools.admit_paused(tool, self.waiter)) == CallRoom::Free
    }

    fn reserve(&mut self, call: &LimitedCall<'_>, now: Timestamp) -> Option<Timestamp> {
        let mut windows = self.windows.lock().expect("no thread panics while holding it");
        windows.reserve(self.waiter.tenant(), self.execution, call, now)
    }
}

impl<'a> PermitSource<'a> {
    pub(crate) fn new(
        shared: &'a EngineShared,
        waiter: &'a Arc<dyn PermitWaiter>,
        execution: &'a ExecutionId,
        now: Timestamp,
    ) -> PermitSource<'a> {
        let (tools, windows) = (&*shared.tools, &shared.windows);
        let (is_closed, granted, retry_after) = (false, Vec::new(), None);
        PermitSource { now, tools, waiter, is_closed, granted, retry_after, execution, windows }
    }

    fn room(&mut self, tool: &ToolName, admission: Admission) -> CallRoom {
        match admission {
            Admission::Granted(permit) => {
                self.granted.push((tool.clone(), permit));
                CallRoom::Free
            }
            Admission::Later => CallRoom::Full,
            Admission::After(span) => {
                self.retry_after = Some(self.retry_after.map_or(span, |again| again.min(span)));
                CallRoom::Full
            }
            Admission::Paused(ToolFailure { retry_after, category, message }) => {
                let until = self.now.plus(retry_after.unwrap_or_default());
                CallRoom::Paused { until, failure: ToolFailure::new(category, message) }
            }
        }
    }

    /// Takes the permit of a call that was decided.
    pub(crate) fn take_permit(granted: &mut Vec<(ToolName, CallPermit)>, tool: &ToolName) -> CallPermit {
        match granted.iter().position(|(granted, _)| granted == tool) {
            Some(at) => granted.swap_remove(at).1,
            // A call that continues under its ticket was admitted before a restart.
            None => CallPermit::unlimited(),
        }
    }
}
