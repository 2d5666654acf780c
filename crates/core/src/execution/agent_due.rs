//! What an agent that drives does next: the call of a step, or the call that undoes one.

use super::agenda::{PartPosition, TimerKind};
use super::{Execution, ExecutionPhase};
use crate::id::{PartId, ToolName};
use crate::journal::event::CallSide;
use crate::plan::Driver;
use crate::time::Timestamp;
use serde_json::Value;
use std::sync::Arc;

/// The compensation that an agent carries out next.
#[derive(Clone, Debug, PartialEq)]
pub struct DueCompensation {
    pub part: PartId,
    pub tool: ToolName,
    /// The reason why they have no value, if they have none.
    pub parameters: Result<Arc<Value>, String>,
    /// The call that it undoes may be under way until then: undone earlier, it could take effect afterwards.
    pub not_before: Option<Timestamp>,
}

impl Execution {
    /// The part that an agent does next.
    pub(super) fn due_to_agent(&self) -> Option<(PartId, ToolName)> {
        let goes_forward = matches!(self.phase, ExecutionPhase::Pending | ExecutionPhase::Forward);
        if self.driver != Driver::Agent || !goes_forward {
            return None;
        }
        let ready = self.agenda.ready.iter().map(|turn| turn.part).find(|at| self.steps[at.step()].unmet == 0);
        let at = ready.or_else(|| self.agenda.approved.first().copied())?;
        Some((self.name(at), self.plan.steps[at.step()].call.tool.clone()))
    }

    /// The part that an agent undoes next, while it drives.
    pub(super) fn compensation_due(&self) -> Option<DueCompensation> {
        let (at, not_before) = self.undo_due_to_agent().filter(|_| self.driver == Driver::Agent)?;
        let tool = self.call_of(at, CallSide::Undo)?.tool.clone();
        let parameters = match self.prepare(at, CallSide::Undo) {
            Ok(prepared) => Ok(prepared.parameters),
            Err(unprepared) => Err(unprepared.into_failure().to_string()),
        };
        Some(DueCompensation { part: self.name(at), tool, parameters, not_before })
    }

    /// The part to be undone next, and the time before which it is not. What Rutter began to undo is the agent's as soon
    /// as it drives.
    pub(super) fn undo_due_to_agent(&self) -> Option<(PartPosition, Option<Timestamp>)> {
        let undo = self.undo.as_ref().filter(|_| self.phase == ExecutionPhase::Undoing)?;
        let begun = || {
            let again = self.agenda.timer(TimerKind::RetryUndo).first().map(|(_, at)| *at);
            again.or_else(|| self.agenda.approved.first().copied()).map(|at| (at, None))
        };
        undo.first().or_else(begun)
    }
}
