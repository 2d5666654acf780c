//! What must not happen, whatever the state: one check per promise.

use super::{JournalMonitor, MonitorResult};
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, StepId, ToolName};
use rutter_core::journal::event::{AttemptFollowUp, CallSide, Event, ExecutionEnding, SkipReason};
use rutter_core::plan::graph::NeedKind;
use rutter_core::plan::{Driver, Step};
use serde_json::Value;

impl JournalMonitor {
    /// Checks what must not happen now.
    pub(super) fn check(&self, event: &Event) -> MonitorResult {
        match event {
            Event::AttemptStarted { part, side, attempt, by: Driver::Server, call, tool, .. } => {
                if self.paused {
                    return Err(format!("{part} was started while paused"));
                }
                if self.drifted.contains(tool) {
                    return Err(format!("{part} was started although {tool} has changed"));
                }
                match side {
                    CallSide::Do | CallSide::Fallback => self.check_forward(part, *side, *attempt, *call),
                    CallSide::Undo => self.check_undo(part, tool),
                    CallSide::Probe if self.in_doubt.contains(part) => Ok(()),
                    CallSide::Probe => Err(format!("{part} was probed without doubt")),
                }
            }
            Event::StepsSkipped { steps, because } => steps.iter().try_for_each(|step| self.check_skip(step, because)),
            Event::AttemptFailed { part, side, maybe: true, then, .. }
            | Event::AttemptLost { part, side, then, .. } => {
                let once = *side != CallSide::Probe && self.sent_once.contains(part);
                if once && *then != AttemptFollowUp::InDoubt {
                    return Err(format!("{part} was sent as a call that must not be repeated, and is not in doubt"));
                }
                Ok(())
            }
            Event::Reopened { steps, .. } => {
                let finished = |id: &&StepId| self.completed.contains(*id) && !self.items.contains_key(*id);
                match steps.iter().find(finished) {
                    Some(step) => Err(format!("{step:?} had completed and is pending again")),
                    None => Ok(()),
                }
            }
            Event::Replanned { plan, .. } => {
                let new = plan.plan.as_ref().ok_or("a replan without a plan")?;
                let dropped = self.in_doubt.iter().find(|part| new.find(part.step.as_str()).is_none());
                if let Some(part) = dropped {
                    return Err(format!("{part} is in doubt and was dropped by a replan"));
                }
                let forgotten = self.at_risk.iter().find(|(part, side)| {
                    let step = new.find(part.step.as_str()).map(|at| &new.steps[at]);
                    **side == CallSide::Fallback && step.is_some_and(|step| step.fallback.is_none())
                });
                forgotten.map_or(Ok(()), |(part, _)| {
                    Err(format!("the fallback of {part} may have taken effect and was dropped by a replan"))
                })
            }
            Event::ExecutionEnded { outcome, .. } => {
                let excused = self.killed;
                if let Some(part) = self.running.keys().next().filter(|_| !excused) {
                    return Err(format!("ended {outcome:?} while {part} was running"));
                }
                if let Some(part) = self.in_doubt.iter().next().filter(|_| !excused) {
                    return Err(format!("ended {outcome:?} while {part} was in doubt"));
                }
                if *outcome == ExecutionEnding::Compensated && !self.to_undo.is_empty() {
                    return Err(format!("ended compensated, not undone: {:?}", self.to_undo));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_forward(&self, part: &PartId, side: CallSide, attempt: u32, call_hash: Hash) -> MonitorResult {
        let (at, step) = self.step(part)?;
        if self.stopped || self.over || self.replanning || !self.held.is_empty() {
            return Err(format!("{part} was started while the execution was stopped or held"));
        }
        let waits_for =
            self.plan.graph.needs[at].iter().find(|need| !self.ended.contains(&self.plan.steps[need.step].id));
        if let Some(need) = waits_for {
            return Err(format!("{part} was started before {:?} ended", self.plan.steps[need.step].id));
        }
        let forward = self.running.values().filter(|side| matches!(side, CallSide::Do | CallSide::Fallback)).count();
        if forward >= self.plan.max_parallel as usize {
            return Err(format!("{part} was started although all {} slots are taken", self.plan.max_parallel));
        }
        let call = match (side, &step.fallback) {
            (CallSide::Fallback, Some(fallback)) => &fallback.call,
            _ => &step.call,
        };
        if self.at_risk.get(part).is_some_and(|by| !call.is_repeatable() || *by != side) {
            return Err(format!("{part} was sent again although it may have happened"));
        }
        if step.approval.is_some() && self.grants.get(part) != Some(&call_hash) {
            return Err(format!("{part} was started without approval of this call"));
        }
        // A step that has begun may continue, whatever the condition is by then: an agent's attempt, a call that was
        // approved, or other items of a fan-out.
        let mut begun = self.started_items.iter().chain(&self.waiting);
        let has_begun = begun.any(|begun| begun.step == part.step);
        if attempt == 1 && side == CallSide::Do && !has_begun && self.condition(&step) == Some(false) {
            return Err(format!("{part} was started although its condition is false"));
        }
        let other = step.else_of.map(|other| &self.plan.steps[other].id);
        let other = other.filter(|other| !self.passed_over.contains(*other));
        if let Some(other) = other.filter(|_| attempt == 1 && side == CallSide::Do && !has_begun) {
            return Err(format!("{part} was started although {other:?} was not skipped by its condition"));
        }
        Ok(())
    }

    /// A step is skipped only for a reason that holds: above all, one that can do without a result is not skipped for
    /// the lack of it.
    fn check_skip(&self, id: &StepId, because: &SkipReason) -> MonitorResult {
        let (_, step) = self.step(&PartId::whole(id.clone()))?;
        match because {
            SkipReason::Condition if self.condition_on_inputs(&step) == Some(true) => {
                Err(format!("{id:?} was skipped although its condition is true"))
            }
            SkipReason::ElseOf(other) if self.passed_over.contains(other) => {
                Err(format!("{id:?} was skipped although {other:?} was skipped by its condition"))
            }
            SkipReason::NeedsResultOf(lacked) if self.completed.contains(lacked) => {
                Err(format!("{id:?} was skipped for the result of {lacked:?}, which has one"))
            }
            SkipReason::NeedsResultOf(lacked) => {
                let reads = |text: &str| text.contains(&format!("steps.{lacked}.")) && !text.contains("default(");
                let parameters = step.call.parameters.source().as_object().into_iter().flat_map(|map| map.values());
                let when = step.when.iter().map(|when| when.source.to_string());
                let mut texts = parameters.map(Value::to_string).filter(|text| !text.contains(" if ")).chain(when);
                match texts.any(|text| reads(&text)) {
                    true => Ok(()),
                    false => Err(format!("{id:?} was skipped for the result of {lacked:?}, and can do without")),
                }
            }
            SkipReason::Condition | SkipReason::ElseOf(_) | SkipReason::LeftUndone => Ok(()),
        }
    }

    fn condition_on_inputs(&self, step: &Step) -> Option<bool> {
        let source = step.when.as_ref()?.source.trim();
        (source == "inputs.go").then_some(self.go)
    }

    /// The values of the generated conditions, computed independently.
    fn condition(&self, step: &Step) -> Option<bool> {
        let source = step.when.as_ref()?.source.trim();
        if source == "inputs.go" {
            return Some(self.go);
        }
        let needed = source.strip_prefix("steps.")?.strip_suffix(".result.flag")?;
        self.flags.get(needed).copied()
    }

    fn check_undo(&self, part: &PartId, tool: &ToolName) -> MonitorResult {
        let (at, step) = self.step(part)?;
        if !self.to_undo.contains(part) {
            return Err(format!("{part} was undone without a request, or twice"));
        }
        let at_risk = self.at_risk.get(part);
        let by_fallback = match &self.effects.sides(part)[..] {
            [left] if at_risk.is_none_or(|at_risk| at_risk == left) => left == &CallSide::Fallback,
            [] => at_risk == Some(&CallSide::Fallback),
            // One of several effects.
            _ => step.compensation.as_ref().is_none_or(|undo| undo.call.tool != *tool),
        };
        let undo = match &step.fallback {
            Some(fallback) if by_fallback => fallback.compensation.as_ref(),
            _ => step.compensation.as_ref(),
        };
        let undo = undo.ok_or_else(|| format!("{part} was undone, and the plan has no compensation for it"))?;
        if undo.call.tool != *tool {
            return Err(format!("{part} was undone by {tool}, and the plan says {}", undo.call.tool));
        }
        if self.undo_at_risk.contains(part) && !undo.call.is_repeatable() {
            return Err(format!("{part} was undone again although that may have happened"));
        }
        let dependents = self.plan.graph.dependents_of(&[at], |_: NeedKind| true);
        let open = |dependent: &usize| {
            let id = &self.plan.steps[*dependent].id;
            self.to_undo.iter().find(|part| part.step == *id)
        };
        match dependents.iter().find_map(open) {
            Some(dependent) => Err(format!("{part} was undone before {dependent}, which depends on it")),
            None => Ok(()),
        }
    }
}
