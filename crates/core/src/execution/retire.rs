//! Replanning: a new revision takes over finished steps, including their compensations.

use super::agenda::{ExecutionAgenda, PartPosition};
use super::decide::{DecisionDraft, RecordResult};
use super::input::Refusal;
use super::part::{PartState, ProbeProgress, StepPart};
use super::step::{SkipCause, StepStage, StepState};
use super::weaken::{WrittenCall, own_calls, written};
use super::{Execution, SharedPlan};
use crate::id::StepId;
use crate::journal::event::{CallSide, Event, PlanReference};
use crate::limits;
use crate::plan::graph::{StepGraph, StepNeed};
use crate::plan::{Plan, Probe, Step};
use std::sync::Arc;

impl Execution {
    /// Refuses a new revision that cannot take over now.
    pub(super) fn admit_replan(&self, new: &Plan) -> Result<(), Refusal> {
        if self.replans >= limits::REPLANS_MAX {
            return Err(Refusal::new(
                "execution.replan_limit",
                format!("this execution was replanned {} times already", limits::REPLANS_MAX),
            ));
        }
        for (old, state) in self.plan.steps.iter().zip(&self.steps) {
            let id = &old.id;
            let stored = |new: &Step| {
                let mut judged = state.parts.iter().filter_map(judged_side);
                same_call(old, new)
                    && (!state.parts.iter().any(uses_fallback) || same_fallback(old, new))
                    && (state.stage == StepStage::Completed || judged.all(|side| same_safety(old, new, side)))
            };
            let kept = new.find(id.as_str()).map(|at| &new.steps[at]);
            let same_call = kept.map(|new| stored(new));
            if state.status() == "in_doubt" && same_call != Some(true) {
                return Err(Refusal::new("replan.in_doubt", format!("step {id:?} is in doubt and must stay as it is"))
                    .hint("settle it first, or keep it in the new plan"));
            }
            let falls_back = |part: &StepPart| part.side() == Some(CallSide::Fallback) && same_call == Some(false);
            let under_way = |part: &StepPart| matches!(part.state, PartState::Running(_)) || falls_back(part);
            let is_other = state.parts.iter().any(under_way) && same_call != Some(true);
            let is_probed_otherwise =
                state.parts.iter().any(is_probed) && !kept.is_some_and(|new| same_probe(old, new));
            if is_other || is_probed_otherwise {
                return Err(Refusal::new(
                    "replan.under_way",
                    format!("step {id:?} is under way and must stay as it is"),
                )
                .hint("wait until it has ended, or keep it in the new plan"));
            }
            let touched = state.parts.iter().any(StepPart::is_touched);
            if same_call == Some(false) && state.stage == StepStage::Completed {
                return Err(Refusal::new(
                    "replan.completed_changed",
                    format!("step {id:?} is completed and cannot become another call"),
                )
                .hint("give the new call an id of its own"));
            }
            if same_call == Some(false) && touched {
                return Err(Refusal::new(
                    "replan.may_have_happened",
                    format!("step {id:?} may have taken effect and cannot become another call"),
                )
                .hint("give the new call an id of its own"));
            }
        }
        Ok(())
    }

    /// Switches to a new revision. Steps with an effect stay, even if the new plan does not have them.
    pub(super) fn adopt(&mut self, new: Arc<Plan>, revision: u32) -> Result<(), String> {
        let retired: Vec<usize> = (0..self.steps.len())
            .filter(|step| new.find(self.plan.steps[*step].id.as_str()).is_none())
            .filter(|step| self.steps[*step].parts.iter().any(StepPart::is_touched))
            .collect();
        self.remember_dropped(&new, revision);
        let merged = merge(&new, &self.plan, &retired)?;
        let steps: Vec<StepState> = merged.steps.iter().map(|step| self.taken_over(&new, step)).collect();
        self.plan = SharedPlan(Arc::new(merged));
        self.revision = revision;
        self.replans = self.replans.saturating_add(1);
        self.steps = steps;
        self.replanning = false;
        self.proposal = None;
        self.over = None;
        // The new plan was checked with the tools as they are now.
        self.drifted.clear();
        self.accepted.clear();
        self.gave_up = self.has_left_out();
        self.rebuild();
        self.conclude_revived();
        Ok(())
    }

    /// The steps that a new plan runs although they were skipped by decision or undone, one line each.
    pub fn runs_after_all(&self, new: &Plan) -> Vec<String> {
        let planned = self.plan.steps.iter().zip(&self.steps).filter_map(|(old, state)| {
            let kept = &new.steps[new.find(old.id.as_str())?];
            let was = state.set_aside()?;
            (!same_call(old, kept)).then(|| format!("{}: it {was}, and runs with another call", old.id))
        });
        let is_back = |id: &StepId| self.plan.find(id.as_str()).is_none() && new.find(id.as_str()).is_some();
        let dropped = self.dropped.iter().filter(|(id, _)| is_back(id)).filter_map(|(id, dropped)| {
            let was = dropped.set_aside?;
            Some(format!("{id}: it {was} before revision {} left it out, and runs after all", dropped.revision))
        });
        let is_new =
            |step: &&Arc<Step>| self.plan.find(step.id.as_str()).is_none() && !self.dropped.contains_key(&step.id);
        let renamed = new.steps.iter().filter(is_new).filter_map(|step| {
            let calls: Vec<_> = own_calls(step).map(written).collect();
            let skipped = self.skipped_calls().find(|(_, call)| calls.contains(call))?.0;
            Some(format!("{}: it makes the call of {skipped}, which was skipped by decision", step.id))
        });
        planned.chain(dropped).chain(renamed).collect()
    }

    /// The calls of the steps that were skipped by decision, also of those that a replan left out.
    fn skipped_calls(&self) -> impl Iterator<Item = (&StepId, WrittenCall)> {
        let planned = self.plan.steps.iter().zip(&self.steps);
        let skipped = planned.filter(|(_, state)| state.skip_cause == Some(SkipCause::Decision));
        let of_plan = skipped.flat_map(|(step, _)| own_calls(step).map(|call| (&step.id, written(call))));
        let dropped =
            self.dropped.iter().flat_map(|(id, dropped)| dropped.skipped.iter().map(move |call| (id, call.clone())));
        of_plan.chain(dropped)
    }

    /// The state of a step under the new revision.
    fn taken_over(&self, new: &Plan, step: &Step) -> StepState {
        let fans_out = step.for_each.is_some();
        let Some(old) = self.plan.find(step.id.as_str()) else { return StepState::new(0, fans_out) };
        let mut state = self.steps[old].clone();
        let fresh = state.anew(fans_out);
        state.retired = false;
        let touched = state.parts.iter().any(StepPart::is_touched);
        if new.find(step.id.as_str()).is_none() {
            // Retired: settled for good, and only there to be undone.
            for part in &mut state.parts {
                part.stop();
            }
            state.retired = true;
            let completed = state.stage == StepStage::Completed;
            state.stage = if completed { StepStage::Completed } else { StepStage::Failed };
            return state;
        }
        if !same_call(&self.plan.steps[old], step) {
            return fresh;
        }
        let done = state.stage == StepStage::Completed && state.status() != "compensated";
        let under_way = state.stage == StepStage::Begun && state.parts.iter().any(StepPart::is_active);
        // A decision stays, and what was undone is not done again.
        let is_kept_out = state.skip_cause == Some(SkipCause::Decision) || state.is_undone();
        if done || under_way || is_kept_out {
            if state.skip_cause == Some(SkipCause::Decision) {
                // A plan in between may have left it out.
                state.stage = StepStage::Skipped;
            }
            return state;
        }
        if step.for_each.is_some() && !touched && !state.parts.iter().any(StepPart::is_active) {
            return fresh;
        }
        let is_over = |part: &StepPart| {
            matches!(part.state, PartState::Completed { .. })
                || (step.for_each.is_some() && matches!(part.state, PartState::Compensated { .. }))
        };
        for part in state.parts.iter_mut().filter(|part| !is_over(part) && !part.is_active()) {
            part.revive(self.last_at);
        }
        let unsettled = state.parts.iter().filter(|part| !is_over(part)).count();
        state.unsettled = u32::try_from(unsettled).unwrap_or(u32::MAX);
        state.next_item = u32::try_from(state.parts.len()).unwrap_or(u32::MAX);
        let begun = step.for_each.is_some() || unsettled == 0 || state.parts.iter().any(StepPart::is_active);
        state.stage = if begun { StepStage::Begun } else { StepStage::Waiting };
        (state.halted, state.left_behind) = (false, false);
        state.failure = None;
        (state.results, state.skip_reason, state.skip_cause) = (None, None, None);
        state
    }

    /// Completes the steps of which every part took effect after all.
    pub(super) fn conclude_revived(&mut self) {
        for step in 0..self.steps.len() {
            let state = &self.steps[step];
            if state.stage == StepStage::Begun && state.unsettled == 0 && !state.parts.is_empty() {
                self.conclude(step);
            }
        }
    }

    /// Rebuilds everything that is derived from the steps.
    pub(super) fn rebuild(&mut self) {
        self.agenda = ExecutionAgenda::default();
        let plan = self.plan.0.clone();
        self.unsettled = self.steps.iter().filter(|step| !step.stage.is_settled()).count();
        for (step, needs) in plan.graph.needs.iter().enumerate() {
            let unmet = needs.iter().filter(|need| !self.steps[need.step].stage.is_settled()).count();
            self.steps[step].unmet = u32::try_from(unmet).unwrap_or(u32::MAX);
            self.steps[step].queued = 0;
            let active = self.steps[step].parts.iter().filter(|part| part.is_active()).count();
            self.steps[step].active = u32::try_from(active).unwrap_or(u32::MAX);
            let doubts = self.steps[step].parts.iter().filter(|part| part.is_idle_doubt()).count();
            self.steps[step].idle_doubts = u32::try_from(doubts).unwrap_or(u32::MAX);
            for item in 0..self.steps[step].parts.len() {
                let at = PartPosition::new(step, item);
                let part = &self.steps[step].parts[item];
                self.agenda.enlist(at, part, plan.steps[step].timeout_total);
                let queued = part.state == PartState::Pending && self.steps[step].stage == StepStage::Begun;
                if queued && (item as u32) < self.steps[step].next_item && !self.steps[step].halted {
                    self.enqueue(at);
                }
            }
            if self.steps[step].stage == StepStage::Waiting && unmet == 0 {
                self.enqueue(PartPosition::new(step, 0));
            }
        }
    }
}

impl DecisionDraft<'_> {
    /// Takes over a new plan, or proposes it to a person if it weakens the present one.
    pub fn propose(&mut self, plan: &Arc<Plan>, revision: u32, reason: String) -> RecordResult {
        let weakens = self.execution.weakened_by(&self.actor, plan);
        if weakens.is_empty() {
            return self.replan(plan, revision, reason);
        }
        self.note(Event::ReplanProposed { plan: PlanReference::of(plan), revision, weakens, reason })
    }

    pub fn replan(&mut self, plan: &Arc<Plan>, revision: u32, reason: String) -> RecordResult {
        self.reopen_for_replan(&reason)?;
        for at in self.execution.agenda.asking.union(&self.execution.agenda.approved).copied().collect::<Vec<_>>() {
            let old = &self.execution.plan.steps[at.step()];
            let stored = plan.find(old.id.as_str()).is_some_and(|new| same_call(old, &plan.steps[new]));
            let state = self.execution.part_at(at).map(|part| &part.state);
            if let (false, Some(PartState::Asking { call, .. } | PartState::Approved { call, .. })) = (stored, state) {
                let (call, part) = (*call, self.execution.name(at));
                let reason = "the plan changed".to_owned();
                self.follow(Event::ApprovalVoided { part, call, reason })?;
            }
        }
        self.note(Event::Replanned { plan: PlanReference::of(plan), revision, reason })?;
        // An equal call can be written in another way, or its tool be pinned anew; the approval is for exactly one.
        self.void_changed_approvals("the plan writes the call in another way")
    }
}

/// Whether two revisions of a step make the same call and the same compensation.
fn same_call(old: &Step, new: &Step) -> bool {
    let call = |step: &Step| (step.call.tool.clone(), step.call.parameters.source().clone());
    let undo =
        |step: &Step| step.compensation.as_ref().map(|c| (c.call.tool.clone(), c.call.parameters.source().clone()));
    let items = |step: &Step| step.for_each.as_ref().map(|fan_out| fan_out.items.source.clone());
    call(old) == call(new) && undo(old) == undo(new) && items(old) == items(new)
}

/// Whether two revisions of a step have the same fallback with the same compensation.
fn same_fallback(old: &Step, new: &Step) -> bool {
    let fallback = |step: &Step| {
        let (call, undo) = step.fallback.as_ref().map(|other| (&other.call, other.compensation.as_ref()))?;
        let undo = undo.map(|undo| (undo.call.tool.clone(), undo.call.parameters.source().clone()));
        Some((call.tool.clone(), call.parameters.source().clone(), undo))
    };
    fallback(old) == fallback(new)
}

/// Whether the calls of a side may be repeated in the same cases in two revisions of a step.
fn same_safety(old: &Step, new: &Step, side: CallSide) -> bool {
    let safety = |step: &Step| match side {
        CallSide::Fallback => step.fallback.as_ref().map(|fallback| (fallback.call.safety, fallback.call.keyed)),
        CallSide::Do | CallSide::Undo | CallSide::Probe => Some((step.call.safety, step.call.keyed)),
    };
    safety(old) == safety(new)
}

/// Whether two revisions of a step are probed by the same call, and its answer means the same.
fn same_probe(old: &Step, new: &Step) -> bool {
    let probe = |step: &Step| {
        let Probe { call, happened, result, settle } = step.probe.as_ref()?;
        let result = result.as_ref().map(|result| result.source.clone());
        Some((call.tool.clone(), call.parameters.source().clone(), happened.source.clone(), result, *settle))
    };
    probe(old) == probe(new)
}

/// The side whose safety is still to be asked: its answer is open, or it may be sent again although it may have taken
/// effect.
fn judged_side(part: &StepPart) -> Option<CallSide> {
    match &part.state {
        PartState::Running(_) | PartState::InDoubt { .. } => part.side(),
        _ => part.effect.map(|effect| effect.side),
    }
}

fn is_probed(part: &StepPart) -> bool {
    matches!(part.state, PartState::InDoubt { probing: ProbeProgress::Running(_), .. })
}

/// Whether a part runs its fallback, or the fallback may have taken effect.
fn uses_fallback(part: &StepPart) -> bool {
    part.side() == Some(CallSide::Fallback) || part.effect.is_some_and(|effect| effect.side == CallSide::Fallback)
}

/// The new plan with the finished steps it does not name, appended so that they can still be undone.
fn merge(new: &Plan, old: &Plan, retired: &[usize]) -> Result<Plan, String> {
    let mut steps = new.steps.clone();
    steps.extend(retired.iter().map(|step| old.steps[*step].clone()));
    let index = steps.iter().enumerate().map(|(at, step)| (step.id.clone(), at)).collect();
    let mut edges: Vec<(usize, StepNeed)> = Vec::new();
    for (step, needs) in new.graph.needs.iter().enumerate() {
        edges.extend(needs.iter().map(|need| (step, *need)));
    }
    let mut merged = Plan {
        hash: new.hash,
        source: Arc::clone(&new.source),
        format: new.format,
        name: new.name.clone(),
        goal: new.goal.clone(),
        about: new.about.clone(),
        inputs: new.inputs.clone(),
        max_parallel: new.max_parallel,
        deadline: new.deadline,
        agent_timeout: new.agent_timeout,
        on_agent_silence: new.on_agent_silence,
        budget: new.budget,
        on_failure: new.on_failure,
        steps,
        graph: StepGraph::default(),
        tools: new.tools.clone(),
        index,
    };
    for (at, step) in retired.iter().enumerate() {
        let at = new.steps.len() + at;
        for need in &old.graph.needs[*step] {
            if let Some(stored) = merged.find(old.steps[need.step].id.as_str()) {
                edges.push((at, StepNeed { step: stored, kind: need.kind }));
            }
        }
        for tool in old.tools.values() {
            merged.tools.entry(tool.name.clone()).or_insert_with(|| tool.clone());
        }
    }
    merged.graph = StepGraph::build(merged.steps.len(), &edges).map_err(|_| "the retained steps close a cycle")?;
    Ok(merged)
}
