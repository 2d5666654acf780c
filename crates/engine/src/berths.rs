//! Room for calls, asked of the tools while an execution decides.

use rutter_core::execution::input::Room;
use rutter_core::id::{TenantId, ToolName};
use rutter_core::port::tools::{Admission, Applicant, Berth, Tools};
use rutter_core::time::Millis;
use std::sync::Arc;
use tokio::sync::Notify;

/// An execution as the tools know it while it waits for room.
pub(crate) struct Waiting {
    pub(crate) tenant: TenantId,
    pub(crate) priority: i32,
    pub(crate) bell: Arc<Notify>,
}

impl Applicant for Waiting {
    fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    fn priority(&self) -> i32 {
        self.priority
    }

    fn wake(&self) {
        self.bell.notify_one();
    }
}

/// What one decision was granted. What it does not use goes back when this is dropped.
pub(crate) struct Berths<'a> {
    pub(crate) tools: &'a dyn Tools,
    pub(crate) applicant: &'a Arc<dyn Applicant>,
    /// Nothing new begins: the engine is being closed.
    pub(crate) is_closed: bool,
    pub(crate) granted: Vec<(ToolName, Berth)>,
    /// When to ask again, where that is known.
    pub(crate) again: Option<Millis>,
}

impl Room for Berths<'_> {
    fn take(&mut self, tool: &ToolName) -> bool {
        if self.is_closed {
            return false;
        }
        match self.tools.admit(tool, self.applicant) {
            Admission::Granted(berth) => {
                self.granted.push((tool.clone(), berth));
                true
            }
            Admission::Later => false,
            Admission::After(span) => {
                self.again = Some(self.again.map_or(span, |again| again.min(span)));
                false
            }
        }
    }
}

impl Berths<'_> {
    /// The berth of a call that was decided.
    pub(crate) fn of(granted: &mut Vec<(ToolName, Berth)>, tool: &ToolName) -> Berth {
        match granted.iter().position(|(granted, _)| granted == tool) {
            Some(at) => granted.swap_remove(at).1,
            // A call that goes on under its ticket was admitted in an earlier life.
            None => Berth::free(),
        }
    }
}
