//! What would happen: what can be undone, from where on not everything can, and what each failure would lead to.

mod guarantee;
#[cfg(test)]
mod tests;
mod undo;
mod what_if;

use super::Plan;
use crate::id::StepId;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub use guarantee::{Guarantee, GuaranteeKind};
pub use undo::{Coverage, Undo};
pub use what_if::{Ending, WhatIf};

/// Everything that can be said about a plan before it starts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Preview {
    /// In the order they run when nothing fails and only one runs at a time.
    pub steps: Vec<StepPreview>,
    /// The first step after whose start the execution can no longer be undone completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point_of_no_return: Option<NoReturn>,
    /// The longest chain of steps that must follow each other.
    pub critical_path: Vec<StepId>,
    /// For every step, in the same order: what if it fails for good.
    pub what_if: Vec<WhatIf>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepPreview {
    pub step: StepId,
    pub undo: Undo,
    pub guarantee: Guarantee,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NoReturn {
    pub step: StepId,
    pub reason: String,
}

pub fn preview(plan: &Plan) -> Preview {
    let order = sequence(plan);
    let undo: Vec<Undo> = plan.steps.iter().map(|step| undo::of(step)).collect();
    let id = |step: usize| plan.steps[step].id.clone();
    let no_return = order.iter().find(|step| undo[**step].coverage.leaves_something());
    Preview {
        point_of_no_return: no_return
            .map(|&step| NoReturn { step: id(step), reason: undo[step].reason.clone() }),
        critical_path: plan.graph.critical_path().into_iter().map(id).collect(),
        what_if: (0..order.len()).map(|turn| what_if::at(plan, &order, turn, &undo)).collect(),
        steps: order
            .iter()
            .map(|&step| StepPreview {
                step: id(step),
                undo: undo[step].clone(),
                guarantee: guarantee::of(plan, &plan.steps[step]),
            })
            .collect(),
    }
}

/// What if this one step fails for good; `None` when the plan has no such step.
pub fn what_if(plan: &Plan, step: &str) -> Option<WhatIf> {
    let position = plan.find(step)?;
    let order = sequence(plan);
    let turn = order.iter().position(|at| *at == position)?;
    let undo: Vec<Undo> = plan.steps.iter().map(|step| undo::of(step)).collect();
    Some(what_if::at(plan, &order, turn, &undo))
}

/// The order in which steps come to their turn, one at a time: by priority, with parallelism the longest way to the
/// end first, then as listed. Executions choose among ready steps by the same rule.
fn sequence(plan: &Plan) -> Vec<usize> {
    let turn = |step: usize| {
        let height = if plan.max_parallel == 1 { 0 } else { plan.graph.height[step] };
        Reverse((Reverse(plan.steps[step].priority), Reverse(height), step))
    };
    let mut missing: Vec<usize> = plan.graph.needs.iter().map(Vec::len).collect();
    let mut ready: BinaryHeap<_> = (0..missing.len()).filter(|step| missing[*step] == 0).map(turn).collect();
    let mut order = Vec::with_capacity(missing.len());
    while let Some(Reverse((_, _, step))) = ready.pop() {
        order.push(step);
        for dependent in &plan.graph.dependents[step] {
            missing[dependent.step] -= 1;
            if missing[dependent.step] == 0 {
                ready.push(turn(dependent.step));
            }
        }
    }
    order
}
