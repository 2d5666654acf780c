//! The differences between two revisions of a plan, by step and by meaning. Formatting does not count.

mod step;

use super::Plan;
use crate::id::StepId;
use serde::Serialize;

/// The changes of a new revision.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlanDiff {
    /// In the order of the new plan.
    pub added: Vec<StepId>,
    /// In the order of the old plan.
    pub removed: Vec<StepId>,
    pub changed: Vec<StepChange>,
    pub unchanged: Vec<StepId>,
    /// Changes outside the steps.
    pub plan: Vec<PlanChange>,
}

impl PlanDiff {
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty() && self.plan.is_empty()
    }

    /// One line per change: `~ charge: timeout: 30s becomes 1m`.
    pub fn lines(&self) -> Vec<String> {
        let plan = self.plan.iter().map(|change| format!("~ plan: {}", change.text));
        let removed = self.removed.iter().map(|step| format!("- {step}"));
        let added = self.added.iter().map(|step| format!("+ {step}"));
        let changed = self
            .changed
            .iter()
            .flat_map(|step| step.changes.iter().map(move |change| format!("~ {}: {}", step.step, change.text)));
        plan.chain(removed).chain(added).chain(changed).collect()
    }
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepChange {
    pub step: StepId,
    pub changes: Vec<PlanChange>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanChange {
    pub kind: ChangeKind,
    pub text: String,
}

/// The subject of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// Tool or parameters: approvals of the old call become void.
    Call,
    Fallback,
    Safety,
    Order,
    Condition,
    FanOut,
    Policy,
    Retry,
    Timeout,
    Compensation,
    Probe,
    Approval,
    Priority,
    Output,
    Inputs,
    Limits,
    Description,
}

pub fn diff(old: &Plan, new: &Plan) -> PlanDiff {
    let mut diff = PlanDiff { plan: plan_changes(old, new), ..PlanDiff::default() };
    diff.removed =
        old.steps.iter().map(|step| &step.id).filter(|id| new.find(id.as_str()).is_none()).cloned().collect();
    for (position, step) in new.steps.iter().enumerate() {
        let Some(before) = old.find(step.id.as_str()) else {
            diff.added.push(step.id.clone());
            continue;
        };
        let mut changes = ChangeCollector::default();
        step::compare(&old.steps[before], step, &mut changes);
        step::compare_names(old, before, new, position, &mut changes);
        match changes.0.is_empty() {
            true => diff.unchanged.push(step.id.clone()),
            false => diff.changed.push(StepChange { step: step.id.clone(), changes: changes.0 }),
        }
    }
    diff
}

fn plan_changes(old: &Plan, new: &Plan) -> Vec<PlanChange> {
    let mut changes = ChangeCollector::default();
    changes.text(ChangeKind::Description, "name", &old.name, &new.name);
    changes.text(ChangeKind::Description, "goal", &old.goal, &new.goal);
    if old.about != new.about {
        changes.push(ChangeKind::Description, "the description of the plan changes".to_owned());
    }
    if old.inputs != new.inputs {
        changes.push(ChangeKind::Inputs, "the inputs schema changes".to_owned());
    }
    changes.value(ChangeKind::Limits, "max_parallel", &old.max_parallel, &new.max_parallel);
    changes.value(ChangeKind::Limits, "deadline", &old.deadline, &new.deadline);
    changes.value(ChangeKind::Limits, "agent_timeout", &old.agent_timeout, &new.agent_timeout);
    changes.value(
        ChangeKind::Limits,
        "on_agent_silence",
        &old.on_agent_silence.as_str(),
        &new.on_agent_silence.as_str(),
    );
    let (spent, spend) = (&old.budget, &new.budget);
    changes.optional(ChangeKind::Limits, "budget.calls", spent.calls.as_ref(), spend.calls.as_ref());
    let cost = |micros: Option<u64>| micros.map(|micros| micros as f64 / 1e6);
    changes.optional(
        ChangeKind::Limits,
        "budget.cost",
        cost(spent.cost_micros).as_ref(),
        cost(spend.cost_micros).as_ref(),
    );
    changes.optional(ChangeKind::Limits, "budget.time", spent.time.as_ref(), spend.time.as_ref());
    changes.word(ChangeKind::Policy, "on_failure", &old.on_failure, &new.on_failure);
    changes.0
}

/// Collects the changes of the plan or of one step.
#[derive(Default)]
struct ChangeCollector(Vec<PlanChange>);

impl ChangeCollector {
    fn push(&mut self, kind: ChangeKind, text: String) {
        self.0.push(PlanChange { kind, text });
    }

    fn value<T: PartialEq + std::fmt::Display>(&mut self, kind: ChangeKind, name: &str, old: &T, new: &T) {
        self.optional(kind, name, Some(old), Some(new));
    }

    fn optional<T: PartialEq + std::fmt::Display>(
        &mut self,
        kind: ChangeKind,
        name: &str,
        old: Option<&T>,
        new: Option<&T>,
    ) {
        match (old, new) {
            (Some(old), Some(new)) if old != new => self.push(kind, format!("{name}: {old} becomes {new}")),
            (None, Some(new)) => self.push(kind, format!("{name}: {new} is added")),
            (Some(old), None) => self.push(kind, format!("{name}: {old} is removed")),
            _ => {}
        }
    }

    /// Enum values as they are written in plans.
    fn word<T: PartialEq + Serialize>(&mut self, kind: ChangeKind, name: &str, old: &T, new: &T) {
        let written = |word: &T| match serde_json::to_value(word) {
            Ok(serde_json::Value::String(word)) => word,
            _ => String::new(),
        };
        if old != new {
            self.push(kind, format!("{name}: {} becomes {}", written(old), written(new)));
        }
    }

    /// Free text may be long, so it is not repeated.
    fn text(&mut self, kind: ChangeKind, name: &str, old: &str, new: &str) {
        if old != new {
            self.push(kind, format!("the {name} changes"));
        }
    }
}
