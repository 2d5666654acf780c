//! What one step failing for good leads to, by its failure policy.

use super::undo::{Coverage, Undo};
use crate::id::StepId;
use crate::plan::graph::NeedKind;
use crate::plan::{Plan, PolicyAction};
use serde::Serialize;

/// One step fails for good, having done nothing; all others do well and every condition holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WhatIf {
    pub step: StepId,
    pub action: PolicyAction,
    /// Completed before, in that order.
    pub completed: Vec<StepId>,
    /// Still run, in that order.
    pub continue_with: Vec<StepId>,
    /// Wait for the decision.
    pub held: Vec<StepId>,
    pub cancelled: Vec<StepId>,
    /// Cannot do without its result.
    pub skipped: Vec<StepId>,
    /// Undone without being asked, in that order.
    pub undone: Vec<StepId>,
    /// Could be undone on request, in that order.
    pub undoable: Vec<StepId>,
    /// Completed, with an effect that no undoing takes back completely.
    pub remains: Vec<StepId>,
    pub ends: Ending,
}

/// Where the execution stands then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    WaitsForDecision,
    Failed,
    Partial,
    Compensated,
}

/// `turn` is the failing step's place in `order`.
pub(super) fn at(plan: &Plan, order: &[usize], turn: usize, undo: &[Undo]) -> WhatIf {
    let (before, failing, after) = (&order[..turn], order[turn], &order[turn + 1..]);
    let action = plan.steps[failing].policy.action;
    let fates = fates(plan, failing, action);
    let with = |fate: Fate| after.iter().copied().filter(|step| fates.of(*step) == fate).collect::<Vec<_>>();
    let continue_with = with(Fate::Runs);
    let done: Vec<usize> = before.iter().chain(&continue_with).copied().collect();
    let last_first = |wanted: fn(Coverage) -> bool| {
        done.iter().rev().copied().filter(|step| wanted(undo[*step].coverage)).collect::<Vec<_>>()
    };
    let (undone, undoable) = match action {
        PolicyAction::Compensate => (last_first(Coverage::can_be_undone), Vec::new()),
        _ => (Vec::new(), last_first(Coverage::can_be_undone)),
    };
    let ids = |steps: &[usize]| steps.iter().map(|step| plan.steps[*step].id.clone()).collect::<Vec<_>>();
    WhatIf {
        step: plan.steps[failing].id.clone(),
        action,
        ends: match action {
            PolicyAction::ManualDecision => Ending::WaitsForDecision,
            PolicyAction::CancelAll => Ending::Failed,
            PolicyAction::Compensate if undone.is_empty() => Ending::Failed,
            PolicyAction::Compensate => Ending::Compensated,
            PolicyAction::CancelDependent | PolicyAction::ContinueOthers if done.is_empty() => Ending::Failed,
            PolicyAction::CancelDependent | PolicyAction::ContinueOthers => Ending::Partial,
        },
        completed: ids(before),
        continue_with: ids(&continue_with),
        held: ids(&with(Fate::Held)),
        cancelled: ids(&with(Fate::Cancelled)),
        skipped: ids(&with(Fate::Skipped)),
        undone: ids(&undone),
        undoable: ids(&undoable),
        remains: ids(&done
            .iter()
            .copied()
            .filter(|step| undo[*step].coverage.leaves_something())
            .collect::<Vec<_>>()),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Runs,
    Held,
    Cancelled,
    Skipped,
}

/// What becomes of the steps that have not started.
struct Fates {
    all: Fate,
    /// Steps that fare differently; empty when none does.
    each: Vec<Fate>,
}

impl Fates {
    fn of(&self, step: usize) -> Fate {
        self.each.get(step).copied().unwrap_or(self.all)
    }
}

fn fates(plan: &Plan, failing: usize, action: PolicyAction) -> Fates {
    let everywhere = |all| Fates { all, each: Vec::new() };
    let named = &plan.steps[failing].policy.propagate_to;
    let mut sources = vec![failing];
    sources.extend(named);
    match action {
        PolicyAction::ManualDecision => everywhere(Fate::Held),
        PolicyAction::CancelAll | PolicyAction::Compensate => everywhere(Fate::Cancelled),
        PolicyAction::CancelDependent => {
            let mut each = vec![Fate::Runs; plan.steps.len()];
            let dependents = plan.graph.dependents_of(&sources, |kind| kind != NeedKind::Sequence);
            dependents.iter().chain(named).for_each(|step| each[*step] = Fate::Cancelled);
            Fates { all: Fate::Runs, each }
        }
        PolicyAction::ContinueOthers => {
            let mut each = vec![Fate::Runs; plan.steps.len()];
            for step in plan.graph.dependents_of(&sources, |kind| kind == NeedKind::Data) {
                each[step] = Fate::Skipped;
            }
            named.iter().for_each(|step| each[*step] = Fate::Cancelled);
            Fates { all: Fate::Runs, each }
        }
    }
}
