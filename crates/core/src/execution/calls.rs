//! The calls of a decision: those of attempts that are open once the decision is complete.

use super::Execution;
use super::decide::DecisionDraft;
use super::input::ToolCall;
use super::part::Attempt;
use crate::id::PartId;
use crate::journal::event::{CallSide, Event};
use crate::plan::Driver;
use crate::time::Timestamp;

impl DecisionDraft<'_> {
    /// The calls to make now. An attempt that this decision started and closed again is not called; after a crash,
    /// attempts that can be resumed are.
    pub fn calls(&self, recovers: bool) -> Vec<ToolCall> {
        let started = self.records.iter().filter_map(|record| match &record.event {
            Event::AttemptStarted { part, side, attempt, by: Driver::Server, .. } => {
                let running = self.execution.attempt_under_way(part, *side, *attempt)?;
                Some(call(part.clone(), running, self.now))
            }
            _ => None,
        });
        let resumed = self.execution.agenda.running.iter().filter(|_| recovers).filter_map(|at| {
            let running = self.execution.part_at(*at)?.running()?;
            let is_known = running.by == Driver::Server && running.is_resumable();
            is_known.then(|| call(self.execution.name(*at), running, self.now))
        });
        started.chain(resumed).collect()
    }
}

impl Execution {
    /// The attempt with this number, if it is open.
    pub(super) fn attempt_under_way(&self, part: &PartId, side: CallSide, attempt: u32) -> Option<&Attempt> {
        let running = self.part(part)?.running()?;
        ((running.side, running.number) == (side, attempt)).then_some(running)
    }
}

fn call(part: PartId, attempt: &Attempt, now: Timestamp) -> ToolCall {
    ToolCall {
        part,
        side: attempt.side,
        attempt: attempt.number,
        tool: attempt.sent.tool.clone(),
        definition: attempt.sent.definition,
        // They can be erased only for a call that resumes with its ticket, and such a call sends nothing.
        parameters: attempt.sent.parameters.value().cloned().unwrap_or_default(),
        key: attempt.sent.key,
        deadline: attempt.deadline.unwrap_or(now),
        ticket: attempt.ticket.clone(),
        continuation: attempt.continuation().cloned(),
    }
}
