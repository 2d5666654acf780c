//! What the plan says about the calls of a part.

use rutter_core::id::{PartId, ToolName};
use rutter_core::journal::event::CallSide;
use rutter_core::plan::{Compensation, Plan, PlannedCall, Probe, Step};
use rutter_core::time::Millis;

pub(super) fn step_of<'a>(plan: &'a Plan, part: &PartId) -> Option<&'a Step> {
    plan.find(part.step.as_str()).map(|at| &*plan.steps[at])
}

pub(super) fn can_undo(step: &Step, side: CallSide) -> bool {
    compensation_of(step, side).is_some()
}

/// The compensation of the effect of one side.
pub(super) fn compensation_of(step: &Step, side: CallSide) -> Option<&Compensation> {
    match side {
        CallSide::Fallback => step.fallback.as_ref()?.compensation.as_ref(),
        CallSide::Do | CallSide::Undo | CallSide::Probe => step.compensation.as_ref(),
    }
}

/// The call of a side; of several compensations the one with this tool.
pub(super) fn call_of<'a>(
    plan: &'a Plan,
    part: &PartId,
    side: CallSide,
    tool: Option<&ToolName>,
) -> Option<&'a PlannedCall> {
    let step = step_of(plan, part)?;
    match side {
        CallSide::Do => Some(&step.call),
        CallSide::Fallback => step.fallback.as_ref().map(|fallback| &fallback.call),
        CallSide::Undo => compensations(step).find(|undo| Some(&undo.call.tool) == tool).map(|undo| &undo.call),
        CallSide::Probe => None,
    }
}

/// How old a doubt must be; if two compensations have the same tool, by the more impatient of them.
pub(super) fn settle_of(plan: &Plan, step: &Step, side: CallSide, tool: Option<&ToolName>) -> Millis {
    let settle = |call: &PlannedCall, probe: Option<&Probe>| {
        let grace = plan.tools.get(&call.tool).and_then(|tool| tool.grace).unwrap_or_default();
        probe.and_then(|probe| probe.settle).unwrap_or(call.timeout).max(grace)
    };
    match side {
        CallSide::Undo => {
            let undos = compensations(step).filter(|undo| Some(&undo.call.tool) == tool);
            undos.map(|undo| settle(&undo.call, undo.probe.as_ref())).min().unwrap_or_default()
        }
        _ => settle(&step.call, step.probe.as_ref()),
    }
}

fn compensations(step: &Step) -> impl Iterator<Item = &Compensation> {
    step.compensation.iter().chain(step.fallback.iter().filter_map(|fallback| fallback.compensation.as_ref()))
}
