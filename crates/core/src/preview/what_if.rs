//! The consequence of one step's final failure, by its failure policy.

use super::undo::{UndoCoverage, UndoPreview};
use crate::id::StepId;
use crate::plan::graph::NeedKind;
use crate::plan::{Plan, PolicyAction};
use serde::Serialize;

/// One step fails for good without an effect; all others succeed and every condition is true.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhatIfScenario {
    pub step: StepId,
    pub action: PolicyAction,
    /// Steps completed before, in order.
    pub completed: Vec<StepId>,
    /// Steps that still run, in order.
    pub continue_with: Vec<StepId>,
    /// Steps that wait for the decision.
    pub held: Vec<StepId>,
    pub cancelled: Vec<StepId>,
    /// Steps that need its result.
    pub skipped: Vec<StepId>,
    /// Steps undone automatically, in order.
    pub undone: Vec<StepId>,
    /// Steps that can be undone on request, in order.
    pub undoable: Vec<StepId>,
    /// Completed steps whose effect cannot be undone completely.
    pub remains: Vec<StepId>,
    pub ends: ScenarioOutcome,
}

/// The state of the execution afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioOutcome {
    WaitsForDecision,
    Failed,
    Partial,
    Compensated,
}

/// `turn` is the failing step's position in `order`.
pub(super) fn at(plan: &Plan, order: &[usize], turn: usize, undo: &[UndoPreview]) -> WhatIfScenario {
    let (before, failing, after) = (&order[..turn], order[turn], &order[turn + 1..]);
    let action = plan.steps[failing].policy.action;
    let fates = fates(plan, failing, action);
    let with = |fate: StepFate| after.iter().copied().filter(|step| fates.of(*step) == fate).collect::<Vec<_>>();
    let continue_with = with(StepFate::Runs);
    let done: Vec<usize> = before.iter().chain(&continue_with).copied().collect();
    let last_first = |wanted: fn(UndoCoverage) -> bool| {
        done.iter().rev().copied().filter(|step| wanted(undo[*step].coverage)).collect::<Vec<_>>()
    };
    let (undone, undoable) = match action {
        PolicyAction::Compensate => (last_first(UndoCoverage::can_be_undone), Vec::new()),
        _ => (Vec::new(), last_first(UndoCoverage::can_be_undone)),
    };
    let ids = |steps: &[usize]| steps.iter().map(|step| plan.steps[*step].id.clone()).collect::<Vec<_>>();
    WhatIfScenario {
        step: plan.steps[failing].id.clone(),
        action,
        ends: match action {
            PolicyAction::ManualDecision => ScenarioOutcome::WaitsForDecision,
            PolicyAction::CancelAll => ScenarioOutcome::Failed,
            PolicyAction::Compensate if undone.is_empty() => ScenarioOutcome::Failed,
            PolicyAction::Compensate => ScenarioOutcome::Compensated,
            PolicyAction::CancelDependent | PolicyAction::ContinueOthers if done.is_empty() => ScenarioOutcome::Failed,
            PolicyAction::CancelDependent | PolicyAction::ContinueOthers => ScenarioOutcome::Partial,
        },
        completed: ids(before),
        continue_with: ids(&continue_with),
        held: ids(&with(StepFate::Held)),
        cancelled: ids(&with(StepFate::Cancelled)),
        skipped: ids(&with(StepFate::Skipped)),
        undone: ids(&undone),
        undoable: ids(&undoable),
        remains: ids(&done.iter().copied().filter(|step| undo[*step].coverage.leaves_something()).collect::<Vec<_>>()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StepFate {
    Runs,
    Held,
    Cancelled,
    Skipped,
}

/// The fates of the steps that have not started.
struct StepFates {
    all: StepFate,
    /// The fate by step, if not all are the same; otherwise empty.
    each: Vec<StepFate>,
}

impl StepFates {
    fn of(&self, step: usize) -> StepFate {
        self.each.get(step).copied().unwrap_or(self.all)
    }
}

fn fates(plan: &Plan, failing: usize, action: PolicyAction) -> StepFates {
    let everywhere = |all| StepFates { all, each: Vec::new() };
    let named = &plan.steps[failing].policy.propagate_to;
    let mut sources = vec![failing];
    sources.extend(named);
    match action {
        PolicyAction::ManualDecision => everywhere(StepFate::Held),
        PolicyAction::CancelAll | PolicyAction::Compensate => everywhere(StepFate::Cancelled),
        PolicyAction::CancelDependent => {
            let mut each = vec![StepFate::Runs; plan.steps.len()];
            let dependents = plan.graph.dependents_of(&sources, |kind| kind != NeedKind::Sequence);
            dependents.iter().chain(named).for_each(|step| each[*step] = StepFate::Cancelled);
            StepFates { all: StepFate::Runs, each }
        }
        PolicyAction::ContinueOthers => {
            let mut each = vec![StepFate::Runs; plan.steps.len()];
            for step in plan.graph.dependents_of(&sources, |kind| kind == NeedKind::Data) {
                each[step] = StepFate::Skipped;
            }
            named.iter().for_each(|step| each[*step] = StepFate::Cancelled);
            StepFates { all: StepFate::Runs, each }
        }
    }
}
