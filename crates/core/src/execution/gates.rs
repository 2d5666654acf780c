//! Approval gates: steps that need a person's approval, with steps behind them that have an effect.
//!
//! What waits behind a gate begins after the approval, or because a person decided so, or because the plan went on
//! without it from the start. It does not begin because of what an agent changed: a new plan of an agent that loosens a
//! gate waits for a person, and where an agent changed something before a gate, the gate is not skipped without one.

use super::Execution;
use super::admit::AdmissionResult;
use super::decide::{DecisionDraft, RecordResult};
use super::denial::is_contested;
use super::input::Refusal;
use super::part::{PartRefusal, RefusalKind, StepPart};
use super::step::{SkipCause, StepStage, StepState};
use super::weaken::acting_tools;
use crate::actor::ActorKind;
use crate::id::{PartId, StepId, ToolName};
use crate::journal::event::{CallSide, Event, EventRecord, Question, QuestionAnswer, SkipReason};
use crate::plan::diff::diff;
use crate::plan::graph::NeedKind;
use crate::plan::{FailureTolerance, Plan, PolicyAction};
use crate::tool::{FailureCategory, ToolFailure};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The gates of an execution, over all its plans: an agent that leaves one out cannot bring back what waited for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ApprovalGates {
    /// What decides whether a gate is passed, as the last plan with it had it.
    forms: BTreeMap<StepId, GateForm>,
    /// The tools with an effect that are called behind a gate, and these gates.
    behind: BTreeMap<ToolName, BTreeSet<StepId>>,
    /// Gates that could be skipped because an agent changed or decided something before them.
    altered: BTreeSet<StepId>,
}

/// What decides whether a gate can be passed without an approval.
#[derive(Clone, Debug, PartialEq)]
struct GateForm {
    when: Option<Arc<str>>,
    else_of: Option<StepId>,
    fan_out: Option<(Arc<str>, FailureTolerance, u32)>,
    on_failure: PolicyAction,
    /// The steps whose failure cancels it.
    cancelled_by: BTreeSet<StepId>,
    /// The steps whose results it reads.
    reads: BTreeMap<StepId, NeedKind>,
}

impl GateForm {
    fn of(plan: &Plan, at: usize) -> GateForm {
        let (gate, id) = (&plan.steps[at], |at: usize| plan.steps[at].id.clone());
        let cancelling = plan.steps.iter().filter(|step| step.policy.propagate_to.contains(&at));
        let read = plan.graph.needs[at].iter().filter(|need| need.kind >= NeedKind::SoftData);
        GateForm {
            when: gate.when.as_ref().map(|when| when.source.clone()),
            else_of: gate.else_of.map(id),
            fan_out: gate.for_each.as_ref().map(|each| (each.items.source.clone(), each.tolerate, each.max_items)),
            on_failure: gate.policy.action,
            cancelled_by: cancelling.map(|step| step.id.clone()).collect(),
            reads: read.map(|need| (id(need.step), need.kind)).collect(),
        }
    }

    /// What another form changes so that the gate may be passed without its approval.
    fn loosened_by(&self, new: &GateForm) -> Vec<String> {
        let mut changes = Vec::new();
        if new.when.is_some() && new.when != self.when {
            changes.push("may be skipped by another condition".to_owned());
        }
        if new.else_of.is_some() && new.else_of != self.else_of {
            changes.push("runs only in the place of another step".to_owned());
        }
        if new.fan_out != self.fan_out {
            changes.push("is done for another list, or tolerates other failures".to_owned());
        }
        if looseness(new.on_failure) > looseness(self.on_failure) {
            changes.push("no longer holds up the others when it fails".to_owned());
        }
        changes.extend(new.cancelled_by.difference(&self.cancelled_by).map(|step| format!("is cancelled with {step}")));
        let reads_more = |(step, kind): &(&StepId, &NeedKind)| self.reads.get(*step).is_none_or(|known| known < *kind);
        let read = new.reads.iter().filter(reads_more);
        changes.extend(read.map(|(step, _)| format!("is skipped if {step} has no result")));
        changes
    }
}

/// How much goes on after a failure.
fn looseness(action: PolicyAction) -> u8 {
    match action {
        PolicyAction::ManualDecision | PolicyAction::CancelAll | PolicyAction::Compensate => 0,
        PolicyAction::CancelDependent => 1,
        PolicyAction::ContinueOthers => 2,
    }
}

impl ApprovalGates {
    /// The gates of the first plan.
    pub(super) fn of(plan: &Plan) -> ApprovalGates {
        let mut gates = ApprovalGates::default();
        (0..plan.steps.len()).filter(|at| plan.steps[*at].approval.is_some()).for_each(|at| gates.add(plan, at));
        gates
    }

    fn add(&mut self, plan: &Plan, at: usize) {
        let gate = &plan.steps[at].id;
        let dependents = plan.graph.dependents_of(&[at], |_| true);
        let tools: BTreeSet<&ToolName> = dependents.iter().flat_map(|step| acting_tools(&plan.steps[*step])).collect();
        if !tools.is_empty() {
            self.forms.insert(gate.clone(), GateForm::of(plan, at));
        }
        for tool in tools {
            self.behind.entry(tool.clone()).or_default().insert(gate.clone());
        }
    }

    fn remove(&mut self, gate: &StepId) {
        self.forms.remove(gate);
        self.altered.remove(gate);
        self.behind.retain(|_, gates| {
            gates.remove(gate);
            !gates.is_empty()
        });
    }
}

/// The steps that come after a step.
fn after(plan: &Plan, at: usize) -> BTreeSet<&StepId> {
    plan.graph.dependents_of(&[at], |_| true).into_iter().map(|at| &plan.steps[at].id).collect()
}

impl Execution {
    /// What waits behind a gate still does, and the gate is not easier to pass.
    pub(super) fn compare_gates(&self, new: &Plan, lines: &mut Vec<String>) {
        let mut gates = self.gates.clone();
        for (at, state) in self.steps.iter().enumerate() {
            if !state.retired && state.parts.iter().any(is_contested) {
                gates.add(&self.plan, at);
            }
            if self.is_passed(at) {
                gates.remove(&self.plan.steps[at].id);
            }
        }
        for gate in self.gate_ids(&gates) {
            let before = self.plan.find(gate.as_str()).map(|at| after(&self.plan, at)).unwrap_or_default();
            let kept = new.find(gate.as_str()).filter(|at| self.is_still_gate(new, *at));
            let behind = kept.map(|at| after(new, at)).unwrap_or_default();
            for step in new.steps.iter().filter(|step| step.id != *gate && !behind.contains(&step.id)) {
                let old = self.plan.find(step.id.as_str()).map(|at| &self.plan.steps[at]);
                let is_other = |tool: &&ToolName| old.is_none_or(|old| !acting_tools(old).any(|known| known == *tool));
                let is_guarded = |tool: &ToolName| gates.behind.get(tool).is_some_and(|all| all.contains(gate));
                let was_behind = before.contains(&step.id) && self.is_still_to_do(&step.id);
                if was_behind || acting_tools(step).filter(is_other).any(is_guarded) {
                    lines.push(format!("{}: does not wait for {gate}, which needs approval", step.id));
                }
            }
            let acts = |step: &&StepId| {
                let planned = new.find(step.as_str()).map(|at| &new.steps[at]);
                planned.is_some_and(|step| acting_tools(step).next().is_some()) && !self.is_finished(step)
            };
            if let (Some(at), Some(form), Some(waiting)) =
                (kept, gates.forms.get(gate), behind.iter().copied().find(acts))
            {
                let changes = form.loosened_by(&GateForm::of(new, at)).into_iter();
                lines.extend(changes.map(|change| format!("{gate}: {change}, and {waiting} waits for its approval")));
            }
        }
    }

    /// The gates in the order of the plan, then those that it no longer has.
    fn gate_ids<'a>(&'a self, gates: &'a ApprovalGates) -> Vec<&'a StepId> {
        let is_gate = |id: &&StepId| gates.forms.contains_key(*id) || self.is_gate_without_effects(id);
        let planned = self.plan.steps.iter().map(|step| &step.id).filter(is_gate);
        let gone = gates.forms.keys().filter(|id| self.plan.find(id.as_str()).is_none());
        planned.chain(gone).collect()
    }

    /// A step that needs approval, and behind it only steps that read.
    fn is_gate_without_effects(&self, id: &StepId) -> bool {
        self.plan.find(id.as_str()).is_some_and(|at| {
            let contested = self.steps[at].parts.iter().any(is_contested);
            (self.plan.steps[at].approval.is_some() || contested) && !self.steps[at].retired && !self.is_passed(at)
        })
    }

    /// Whether a step of a new plan asks as it did: by the plan, or because its call was put to a person already.
    fn is_still_gate(&self, new: &Plan, at: usize) -> bool {
        let step = &new.steps[at];
        let asked = |at: usize| self.plan.steps[at].approval.is_none() && !self.steps[at].retired;
        step.approval.is_some() || self.plan.find(step.id.as_str()).is_some_and(asked)
    }

    /// Whether nobody waits for the approval of this step any more: it is done, or a person left it out.
    fn is_passed(&self, at: usize) -> bool {
        self.is_done(&self.steps[at]) || self.steps[at].skip_cause == Some(SkipCause::Decision)
    }

    fn is_done(&self, state: &StepState) -> bool {
        state.stage == StepStage::Completed && !state.is_undone()
    }

    fn is_finished(&self, step: &StepId) -> bool {
        self.plan.find(step.as_str()).is_some_and(|at| self.is_done(&self.steps[at]))
    }

    /// Whether a step runs, or would under another plan.
    fn is_still_to_do(&self, step: &StepId) -> bool {
        self.plan.find(step.as_str()).is_some_and(|at| {
            let state = &self.steps[at];
            !state.retired && !self.is_done(state) && state.set_aside().is_none()
        })
    }

    /// Follows what concerns gates, right before the record is applied.
    pub(super) fn remember_gates(&mut self, record: &EventRecord) {
        let is_agent = record.actor.party == ActorKind::Agent;
        match &record.event {
            Event::Replanned { plan, .. } => {
                let passed: Vec<usize> = (0..self.steps.len()).filter(|at| self.is_passed(*at)).collect();
                passed.into_iter().for_each(|at| self.gates.remove(&self.plan.0.steps[at].id));
                match plan.plan.as_deref().filter(|_| is_agent) {
                    Some(new) => {
                        let altered = self.altered_by(new);
                        self.gates.altered.extend(altered);
                    }
                    None if self.proposal.as_ref().is_some_and(|proposal| proposal.plan.hash == plan.hash) => {}
                    // A person's own plan is the measure from now on.
                    None => self.gates.altered.clear(),
                }
            }
            Event::QuestionAnswered {
                about: Question::Failure(step) | Question::Item(PartId { step, .. }),
                answer: QuestionAnswer::Skip | QuestionAnswer::Resolve | QuestionAnswer::Continue,
                ..
            } if is_agent => {
                let Some(at) = self.plan.find(step.as_str()) else { return };
                let plan = self.plan.0.clone();
                let altered = after(&plan, at).into_iter().filter(|step| self.gates.forms.contains_key(*step)).cloned();
                self.gates.altered.extend(altered.collect::<Vec<_>>());
            }
            _ => {}
        }
    }

    /// Adds the gates of a plan that was taken over.
    pub(super) fn add_gates(&mut self, is_person: bool) {
        let plan = self.plan.0.clone();
        if is_person {
            for tool in plan.steps.iter().flat_map(|step| acting_tools(step)) {
                self.gates.behind.remove(tool);
            }
        }
        for at in 0..plan.steps.len() {
            if plan.steps[at].approval.is_some() && !self.steps[at].retired && !self.is_passed(at) {
                self.gates.add(&plan, at);
            }
        }
    }

    /// The gates before which a new plan changes something that is not done.
    fn altered_by(&self, new: &Plan) -> Vec<StepId> {
        let diff = diff(&self.plan, new);
        let changed = diff.added.iter().chain(&diff.removed).chain(diff.changed.iter().map(|change| &change.step));
        let changed: Vec<&StepId> = changed.filter(|step| !self.is_finished(step)).collect();
        let altered = self.gates.forms.keys().filter(|gate| {
            let is_before =
                |plan: &Plan, step: &StepId| plan.find(step.as_str()).is_some_and(|at| after(plan, at).contains(gate));
            let is_back = self.plan.find(gate.as_str()).is_none();
            let touches = |step: &&StepId| *step == *gate || is_before(&self.plan, step) || is_before(new, step);
            is_back || changed.iter().any(touches)
        });
        altered.cloned().collect()
    }

    /// Whether only an approval, or a person, lets this step be passed: an agent changed something before it, and a step
    /// with an effect waits behind it.
    pub(super) fn needs_a_yes(&self, at: usize) -> bool {
        let waits = |at: &usize| {
            self.steps[*at].stage == StepStage::Waiting && acting_tools(&self.plan.steps[*at]).next().is_some()
        };
        self.gates.altered.contains(&self.plan.steps[at].id)
            && self.plan.steps[at].approval.is_some()
            && (self.steps[at].parts.is_empty() || self.steps[at].parts.iter().any(lacks_a_yes))
            && self.plan.graph.dependents_of(&[at], |_| true).iter().any(waits)
    }

    /// The steps that are not cancelled alone: what waits behind a gate is cancelled with it.
    pub(super) fn with_those_behind(&self, mut cancelled: Vec<usize>) -> Vec<usize> {
        let gates: Vec<usize> = cancelled.iter().copied().filter(|at| self.needs_a_yes(*at)).collect();
        let behind = self.plan.graph.dependents_of(&gates, |_| true).into_iter();
        cancelled.extend(behind.filter(|at| self.steps[*at].stage == StepStage::Waiting));
        cancelled
    }

    /// Whether the plan wants an approval for these parts of a step, and they have none.
    pub(super) fn lacks_approval(&self, step: &StepId, parts: &[&StepPart]) -> bool {
        let is_asked = self.plan.find(step.as_str()).is_some_and(|at| self.plan.steps[at].approval.is_some());
        is_asked && (parts.is_empty() || parts.iter().any(|part| lacks_a_yes(part)))
    }

    /// Refuses to go on past a gate without its approval, or past a step that was not allowed, where others wait for it.
    pub(super) fn admit_passing(&self, step: &StepId, parts: &[&StepPart]) -> AdmissionResult {
        let Some(at) = self.plan.find(step.as_str()) else { return Ok(()) };
        let is_refused = |part: &&StepPart| {
            matches!(part.refused, Some(PartRefusal { kind: RefusalKind::Denied | RefusalKind::Expired, .. }))
        };
        if !self.lacks_approval(step, parts) && !parts.iter().any(is_refused) {
            return Ok(());
        }
        let next = after(&self.plan, at).into_iter().find(|step| self.is_still_to_do(step));
        let refused = |what: String| {
            Err(Refusal::new("execution.not_a_person", format!("only a person may go on {what}"))
                .hint("a person must decide; stop, or wait"))
        };
        match next {
            Some(next) => refused(format!("to {next:?}: it waits for {step:?}, which was not allowed")),
            None if self.gates.forms.contains_key(step) => {
                refused(format!("past {step:?}: what waited for it was left out, and it was not allowed"))
            }
            None => Ok(()),
        }
    }
}

/// Whether its call was never sent, or was not allowed since.
fn lacks_a_yes(part: &StepPart) -> bool {
    part.refused.is_some() || !part.is_sent()
}

impl DecisionDraft<'_> {
    /// Skips a step. A gate that an agent changed something before is not skipped: a person decides.
    pub(super) fn skip(&mut self, step: usize, because: SkipReason) -> RecordResult {
        if self.execution.needs_a_yes(step) {
            return self.hold_gate(step, &because.to_string());
        }
        let steps = self.execution.names(&[step]);
        self.follow(Event::StepsSkipped { steps, because })
    }

    /// Fails a gate that would be passed without its approval; its question goes to a person.
    pub(super) fn hold_gate(&mut self, step: usize, why: &str) -> RecordResult {
        let message = format!(
            "it needs approval and would be passed without one ({why}), after an agent changed what comes before it"
        );
        let failure = ToolFailure::new(FailureCategory::Unauthorized, message);
        let part = PartId::whole(self.execution.plan.steps[step].id.clone());
        self.follow(Event::PreparationFailed { part, side: CallSide::Do, failure })
    }
}
