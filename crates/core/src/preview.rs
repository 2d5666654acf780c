//! A preview of a plan: what can be undone, the point of no return, and the consequence of each failure.

mod guarantee;
#[cfg(test)]
mod tests;
mod undo;
mod what_if;

use crate::id::StepId;
use crate::plan::Plan;
use crate::policy::OperatorPolicy;
use crate::policy::expect::{ExpectedRule, PlanCaller, StepRules};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub use guarantee::{GuaranteeKind, StepGuarantee};
pub use undo::{UndoCoverage, UndoPreview};
pub use what_if::{ScenarioOutcome, WhatIfScenario};

/// What is known about a plan before it starts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanPreview {
    /// In the order in which they run if nothing fails and one runs at a time.
    pub steps: Vec<StepPreview>,
    /// The first step after whose start the execution can no longer be undone completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point_of_no_return: Option<PointOfNoReturn>,
    /// The longest chain of dependent steps.
    pub critical_path: Vec<StepId>,
    /// For every step, in the same order: the consequence if it fails for good.
    pub what_if: Vec<WhatIfScenario>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepPreview {
    pub step: StepId,
    pub undo: UndoPreview,
    pub guarantee: StepGuarantee,
    /// The rules of the operator's policy that will or may apply to its calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub policy: Vec<ExpectedRule>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PointOfNoReturn {
    pub step: StepId,
    pub reason: String,
}

pub fn preview(plan: &Plan) -> PlanPreview {
    let order = sequence(plan);
    let undo: Vec<UndoPreview> = plan.steps.iter().map(|step| undo::of(step)).collect();
    let id = |step: usize| plan.steps[step].id.clone();
    let no_return = order.iter().find(|step| undo[**step].coverage.leaves_something());
    PlanPreview {
        point_of_no_return: no_return
            .map(|&step| PointOfNoReturn { step: id(step), reason: undo[step].reason.clone() }),
        critical_path: plan.graph.critical_path().into_iter().map(id).collect(),
        what_if: (0..order.len()).map(|turn| what_if::at(plan, &order, turn, &undo)).collect(),
        steps: order
            .iter()
            .map(|&step| StepPreview {
                step: id(step),
                undo: undo[step].clone(),
                guarantee: guarantee::of(plan, &plan.steps[step]),
                policy: Vec::new(),
            })
            .collect(),
    }
}

/// The same with the rules of the operator's policy.
pub fn preview_under(plan: &Plan, policy: &OperatorPolicy, caller: PlanCaller<'_>) -> PlanPreview {
    let mut preview = preview(plan);
    for StepRules { step, rules } in policy.expect(plan, caller) {
        if let Some(found) = preview.steps.iter_mut().find(|found| found.step == step) {
            found.policy = rules;
        }
    }
    preview
}

/// The consequence if this step fails for good; `None` when the plan has no such step.
pub fn what_if(plan: &Plan, step: &str) -> Option<WhatIfScenario> {
    let position = plan.find(step)?;
    let order = sequence(plan);
    let turn = order.iter().position(|at| *at == position)?;
    let undo: Vec<UndoPreview> = plan.steps.iter().map(|step| undo::of(step)).collect();
    Some(what_if::at(plan, &order, turn, &undo))
}

/// The order of the steps, one at a time: by priority, then with parallelism by the longest path to the end, then in
/// plan order. Executions choose among ready steps by the same rule.
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
