//! Weakening: what a new plan takes away from the approvals, safety and limits of the old one.

use super::denial::is_contested;
use super::input::Refusal;
use super::part::StepPart;
use super::step::StepStage;
use super::{Execution, SharedPlan};
use crate::actor::{Actor, ActorKind};
use crate::id::{StepId, ToolName};
use crate::plan::{Plan, PlannedCall, Probe, Step};
use crate::time::Millis;
use crate::tool::{FailureCategory, Safety, Tool};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A new plan that waits for a person's approval.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingReplan {
    pub(crate) plan: SharedPlan,
    pub revision: u32,
    pub weakens: Vec<String>,
    pub reason: String,
    /// Who proposed it.
    pub(crate) by: Option<Actor>,
}

/// The strictest that any revision was about the calls of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ToolGuard {
    /// How long an approval of it may be used, if one is needed.
    approval: Option<Millis>,
    safety: Safety,
    attempts: u32,
    retried: Vec<FailureCategory>,
    timeout: Millis,
}

impl ToolGuard {
    fn of(step: &Step, call: &PlannedCall) -> ToolGuard {
        let (retry, approval) = (&call.retry, step.approval.map(|approval| approval.expires));
        let (attempts, retried) = (retry.max_attempts, retry.on.clone());
        ToolGuard { approval, safety: call.safety, attempts, retried, timeout: call.timeout }
    }

    fn tighten(&mut self, other: &ToolGuard) {
        self.approval = self.approval.into_iter().chain(other.approval).min();
        self.safety = self.safety.max(other.safety);
        self.attempts = self.attempts.min(other.attempts);
        self.retried.retain(|category| other.retried.contains(category));
        self.timeout = self.timeout.min(other.timeout);
    }
}

impl Execution {
    /// What a new plan of this actor weakens. A person's own plan needs nobody else's approval.
    pub(super) fn weakened_by(&self, actor: &Actor, new: &Plan) -> Vec<String> {
        match actor.party {
            ActorKind::Person if actor.satisfies(self.proof_about_plans()) => Vec::new(),
            ActorKind::Person => self.weakening(new),
            ActorKind::Agent | ActorKind::Rutter => self.weakening(new),
        }
    }

    /// Refuses one more proposal after too many were rejected, whatever they said.
    pub(super) fn admit_proposal(&self, actor: &Actor, new: &Plan, ask_again_max: u32) -> Result<(), Refusal> {
        let rejections = self.rejections;
        if rejections > ask_again_max && !self.weakened_by(actor, new).is_empty() {
            let message = format!("a person rejected {rejections} such changes in a row");
            return Err(Refusal::new("replan.rejected", message).hint("only a person may make it now"));
        }
        Ok(())
    }

    /// Every line says one thing that the new plan takes away.
    fn weakening(&self, new: &Plan) -> Vec<String> {
        let mut lines = Vec::new();
        for (old, state) in self.plan.steps.iter().zip(&self.steps) {
            let kept = new.find(old.id.as_str()).map(|at| &*new.steps[at]);
            if state.parts.iter().any(is_contested) {
                match kept {
                    None => lines.push(format!("{}: a person has its call to decide, or denied it; removed", old.id)),
                    Some(kept) if !is_same(old, kept) => {
                        lines.push(format!("{}: a person has its call to decide, or denied it; changed", old.id));
                    }
                    Some(_) => {}
                }
            }
            // What was undone is done again under the new plan.
            let is_done = state.stage == StepStage::Completed && state.status() != "compensated";
            if let Some(kept) = kept {
                // It may be undone and done again, and then nobody would be asked.
                compare_approvals(old, kept, &mut lines);
                let is_sent = state.parts.iter().any(StepPart::is_sent);
                compare_probes(old, kept, is_sent, is_done, &mut lines);
                if !is_done {
                    compare(old, kept, &mut lines);
                }
            }
        }
        for step in &new.steps {
            let old = self.plan.find(step.id.as_str()).map(|at| &*self.plan.steps[at]);
            // The approval of a step is not for its undoing.
            let undone_before: Vec<_> = old.into_iter().flat_map(undo_calls).map(written).collect();
            let is_new = |call: &&PlannedCall| self.is_guarded(call) && !undone_before.contains(&written(call));
            if let Some(call) = undo_calls(step).find(is_new) {
                lines.push(format!("{}: is undone by {} without the approval it needs elsewhere", step.id, call.tool));
            }
            let probed_before: Vec<_> = old.into_iter().flat_map(probe_calls).map(written).collect();
            let is_new = |call: &&PlannedCall| self.is_guarded(call) && !probed_before.contains(&written(call));
            if let Some(call) = probe_calls(step).find(is_new) {
                lines.push(format!(
                    "{}: asks {} as a probe without the approval it needs elsewhere",
                    step.id, call.tool
                ));
            }
            let is_elsewhere =
                |call: &&PlannedCall| old.is_none_or(|old| own_calls(old).all(|before| before.tool != call.tool));
            for call in own_calls(step).filter(is_elsewhere) {
                if let Some(guard) = self.guarded.get(&call.tool) {
                    compare_guard(guard, step, call, &mut lines);
                }
            }
            if step.approval.is_some() || old.is_some_and(|old| old.approval.is_some() || is_same(old, step)) {
                continue;
            }
            if let Some(call) = own_calls(step).find(|call| self.is_guarded(call)) {
                lines.push(format!("{}: calls {} without the approval it needs elsewhere", step.id, call.tool));
            }
        }
        lines.extend(self.changed_tools(new));
        lines.extend(self.runs_after_all(new));
        self.compare_gates(new, &mut lines);
        if self.ended_by_person && self.outcome().is_some() {
            lines.push("it goes on, although a person stopped or undid it".to_owned());
        }
        compare_limits(&self.plan, new, &mut lines);
        lines
    }

    /// Tools that have changed since the plan was checked. With a new plan their new definitions would be accepted.
    fn changed_tools<'a>(&'a self, new: &'a Plan) -> impl Iterator<Item = String> + 'a {
        let is_changed = |(tool, known): &(&'a ToolName, &'a Arc<Tool>)| {
            let pinned = self.plan.tools.get(*tool).map(|tool| tool.definition);
            pinned.is_some_and(|pinned| ![pinned, self.definition(tool)].contains(&known.definition))
        };
        new.tools
            .iter()
            .filter(is_changed)
            .map(|(tool, _)| format!("{tool} has changed since the plan was checked; accepted"))
    }

    /// Whether some revision calls the tool only after an approval.
    fn is_guarded(&self, call: &PlannedCall) -> bool {
        self.guarded.get(&call.tool).is_some_and(|guard| guard.approval.is_some())
    }

    /// A step that an agent leaves out cannot come back with less, whatever was planned in between.
    pub(super) fn guard(&mut self, actor: &Actor, new: &Plan) {
        if actor.party == ActorKind::Person {
            for call in new.steps.iter().flat_map(|step| own_calls(step)) {
                self.guarded.remove(&call.tool);
            }
        }
        // With the steps that the new plan leaves out and that may have taken effect.
        for (tool, guard) in guards(&self.plan) {
            tighten(&mut self.guarded, &tool, guard);
        }
        self.add_gates(actor.party == ActorKind::Person);
    }
}

/// The strictest that this plan is about each tool it calls.
pub(super) fn guards(plan: &Plan) -> BTreeMap<ToolName, ToolGuard> {
    let mut guards = BTreeMap::new();
    for (step, call) in plan.steps.iter().flat_map(|step| own_calls(step).map(move |call| (step, call))) {
        tighten(&mut guards, &call.tool, ToolGuard::of(step, call));
    }
    guards
}

fn tighten(guards: &mut BTreeMap<ToolName, ToolGuard>, tool: &ToolName, guard: ToolGuard) {
    match guards.get_mut(tool) {
        Some(known) => known.tighten(&guard),
        None => drop(guards.insert(tool.clone(), guard)),
    }
}

/// The calls that an approval of the step is for.
pub(super) fn own_calls(step: &Step) -> impl Iterator<Item = &PlannedCall> {
    std::iter::once(&step.call).chain(step.fallback.iter().map(|fallback| &fallback.call))
}

/// The tools of its own calls that may have an effect.
pub(super) fn acting_tools(step: &Step) -> impl Iterator<Item = &ToolName> {
    own_calls(step).filter(|call| call.safety != Safety::ReadOnly).map(|call| &call.tool)
}

fn undo_calls(step: &Step) -> impl Iterator<Item = &PlannedCall> {
    let of_fallback = step.fallback.iter().filter_map(|fallback| fallback.compensation.as_ref());
    step.compensation.iter().chain(of_fallback).map(|compensation| &compensation.call)
}

fn probe_calls(step: &Step) -> impl Iterator<Item = &PlannedCall> {
    let of_fallback = step.fallback.iter().filter_map(|fallback| fallback.compensation.as_ref());
    let of_undoing = step.compensation.iter().chain(of_fallback).filter_map(|undo| undo.probe.as_ref());
    step.probe.iter().chain(of_undoing).map(|probe| &probe.call)
}

/// A call as the plan has it, before anything is filled in.
pub(super) type WrittenCall = (ToolName, Value);

pub(super) fn written(call: &PlannedCall) -> WrittenCall {
    (call.tool.clone(), call.parameters.source().clone())
}

/// Whether two revisions of a step make the same calls, in the same cases.
fn is_same(old: &Step, new: &Step) -> bool {
    let calls = |step: &Step| -> Vec<_> { own_calls(step).map(written).collect() };
    let items = |step: &Step| step.for_each.as_ref().map(|fan_out| fan_out.items.source.clone());
    let when = |step: &Step| step.when.as_ref().map(|when| when.source.clone());
    calls(old) == calls(new) && items(old) == items(new) && when(old) == when(new)
}

fn compare_approvals(old: &Step, new: &Step, lines: &mut Vec<String>) {
    match (old.approval, new.approval) {
        (Some(_), None) => lines.push(format!("{}: no longer needs approval", old.id)),
        (Some(before), Some(after)) => compare_spans(&old.id, before.expires, after.expires, lines),
        (None, _) => {}
    }
}

fn compare_spans(id: &StepId, before: Millis, after: Millis, lines: &mut Vec<String>) {
    if after > before {
        lines.push(format!("{id}: its approval may be used for {after} instead of {before}"));
    }
}

/// A probe settles a doubt in the place of a person, so an agent does not choose another one.
fn compare_probes(old: &Step, new: &Step, is_sent: bool, is_done: bool, lines: &mut Vec<String>) {
    if !is_done {
        compare_probe(&old.id, (&old.call, old.probe.as_ref()), (&new.call, new.probe.as_ref()), is_sent, lines);
    }
    if let (Some(old_undo), Some(new_undo)) = (&old.compensation, &new.compensation) {
        let (before, after) = ((&old_undo.call, old_undo.probe.as_ref()), (&new_undo.call, new_undo.probe.as_ref()));
        compare_probe(&old.id, before, after, is_sent, lines);
    }
}

type ProbedCall<'a> = (&'a PlannedCall, Option<&'a Probe>);

fn compare_probe(id: &StepId, old: ProbedCall<'_>, new: ProbedCall<'_>, is_sent: bool, lines: &mut Vec<String>) {
    let Some(after) = new.1 else { return };
    let Some(before) = old.1 else {
        if is_sent {
            lines.push(format!("{id}: gets a probe after its call was sent"));
        }
        return;
    };
    let says = |probe: &Probe| {
        let result = probe.result.as_ref().map(|result| result.source.clone());
        (written(&probe.call), probe.happened.source.clone(), result)
    };
    if says(before) != says(after) {
        lines.push(format!("{id}: another probe says whether it happened"));
    }
    let settle = |(call, probe): (&PlannedCall, &Probe)| probe.settle.unwrap_or(call.timeout);
    let (earlier, later) = (settle((new.0, after)), settle((old.0, before)));
    if earlier < later {
        lines.push(format!("{id}: its probe is believed after {earlier} instead of {later}"));
    }
}

/// Compares the call of a step that is new, or new with this tool, with what was said about the tool before.
fn compare_guard(before: &ToolGuard, step: &Step, call: &PlannedCall, lines: &mut Vec<String>) {
    if let (Some(before), Some(after)) = (before.approval, step.approval) {
        compare_spans(&step.id, before, after.expires, lines);
    }
    compare_safety(&step.id, &call.tool, before.safety, call.safety, lines);
    compare_attempts(&step.id, before, call, lines);
}

fn compare(old: &Step, new: &Step, lines: &mut Vec<String>) {
    let id = &old.id;
    let fallbacks = old.fallback.iter().zip(&new.fallback).map(|(old, new)| (&old.call, &new.call));
    for (before, after) in std::iter::once((&old.call, &new.call)).chain(fallbacks) {
        if before.tool == after.tool {
            compare_safety(id, &after.tool, before.safety, after.safety, lines);
        }
        compare_attempts(id, &ToolGuard::of(old, before), after, lines);
    }
    if let Some(before) = old.timeout_total.filter(|before| new.timeout_total.is_none_or(|after| after > *before)) {
        lines.push(format!("{id}: may take longer than {before} in all"));
    }
}

fn compare_safety(id: &StepId, tool: &ToolName, before: Safety, after: Safety, lines: &mut Vec<String>) {
    if after < before {
        lines.push(format!("{id}: {tool} counts as {} instead of {}", after.as_str(), before.as_str()));
    }
}

fn compare_attempts(id: &StepId, before: &ToolGuard, new: &PlannedCall, lines: &mut Vec<String>) {
    let is_once = before.safety == Safety::Once;
    if is_once && new.retry.max_attempts > before.attempts {
        let (before, after) = (before.attempts, new.retry.max_attempts);
        lines.push(format!("{id}: {after} attempts of a once call instead of {before}"));
    }
    let added = new.retry.on.iter().find(|category| !before.retried.contains(category));
    if let Some(category) = added.filter(|_| is_once && new.retry.max_attempts > 1) {
        lines.push(format!("{id}: retries a once call after {}", category.as_str()));
    }
    if new.timeout > before.timeout {
        lines.push(format!("{id}: a call may take {} instead of {}", new.timeout, before.timeout));
    }
}

fn compare_limits(old: &Plan, new: &Plan, lines: &mut Vec<String>) {
    if new.deadline > old.deadline {
        lines.push(format!("the deadline is {} instead of {}", new.deadline, old.deadline));
    }
    if new.agent_timeout > old.agent_timeout {
        lines.push(format!("the agent may be silent for {} instead of {}", new.agent_timeout, old.agent_timeout));
    }
    if new.on_agent_silence != old.on_agent_silence {
        let (before, after) = (old.on_agent_silence.as_str(), new.on_agent_silence.as_str());
        lines.push(format!("a silent agent means {after} instead of {before}"));
    }
    let mut compare = |name: &str, before: Option<u64>, after: Option<u64>| {
        if before.is_some_and(|before| after.is_none_or(|after| after > before)) {
            lines.push(format!("the budget of {name} is raised or removed"));
        }
    };
    let span = |span: Option<Millis>| span.map(|span| span.0);
    compare("calls", old.budget.calls, new.budget.calls);
    compare("cost", old.budget.cost_micros, new.budget.cost_micros);
    compare("time", span(old.budget.time), span(new.budget.time));
}
