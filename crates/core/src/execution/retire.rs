//! Replanning: a new revision takes over what is finished, with its duty to undo it.

use super::agenda::{Agenda, PartAt};
use super::decide::{Draft, Recorded};
use super::input::Refusal;
use super::part::{Part, PartState};
use super::step::{Stage, StepState};
use super::{Execution, SharedPlan};
use crate::journal::event::{Event, PlanRef};
use crate::limits;
use crate::mutation::Mutation;
use crate::plan::graph::{Graph, Need};
use crate::plan::{Plan, Step};
use std::sync::Arc;

impl Execution {
    /// Why a new revision cannot take over now, if it cannot.
    pub(super) fn admit_replan(&self, new: &Plan) -> Result<(), Refusal> {
        if self.revision > limits::REPLANS_MAX {
            return Err(Refusal::new(
                "execution.replan_limit",
                format!("this execution was replanned {} times already", limits::REPLANS_MAX),
            ));
        }
        for (old, state) in self.plan.steps.iter().zip(&self.steps) {
            let id = &old.id;
            let same_call = new.find(id.as_str()).map(|at| same_call(old, &new.steps[at]));
            if state.status() == "in_doubt"
                && same_call != Some(true)
                && !Mutation::DropDoubtOnReplan.is_active()
            {
                return Err(Refusal::new(
                    "replan.in_doubt",
                    format!("step {id:?} is in doubt and must stay as it is"),
                )
                .hint("settle it first, or keep it in the new plan"));
            }
            let under_way = state.parts.iter().any(|part| matches!(part.state, PartState::Running(_)));
            if under_way && same_call != Some(true) {
                return Err(Refusal::new(
                    "replan.under_way",
                    format!("step {id:?} is under way and must stay as it is"),
                )
                .hint("wait until it has ended, or keep it in the new plan"));
            }
            let touched = state.parts.iter().any(|part| part.effect.is_some());
            if same_call == Some(false) && state.stage == Stage::Completed {
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

    /// Takes over a new revision. What is finished or touched stays, also where the new plan has no word of it.
    pub(super) fn adopt(&mut self, new: Arc<Plan>, revision: u32) -> Result<(), String> {
        let retired: Vec<usize> = (0..self.steps.len())
            .filter(|step| new.find(self.plan.steps[*step].id.as_str()).is_none())
            .filter(|step| self.steps[*step].parts.iter().any(|part| part.effect.is_some()))
            .filter(|_| !Mutation::ForgetRetiredEffects.is_active())
            .collect();
        let merged = merge(&new, &self.plan, &retired)?;
        let steps: Vec<StepState> = merged.steps.iter().map(|step| self.taken_over(&new, step)).collect();
        self.plan = SharedPlan(Arc::new(merged));
        self.revision = revision;
        self.steps = steps;
        self.replanning = false;
        self.over = None;
        // The new plan was checked with the tools as they are now.
        self.drifted.clear();
        self.accepted.clear();
        self.rebuild();
        Ok(())
    }

    /// The state of a step under the new revision.
    fn taken_over(&self, new: &Plan, step: &Step) -> StepState {
        let fresh = StepState::new(0, step.for_each.is_some());
        let Some(old) = self.plan.find(step.id.as_str()) else { return fresh };
        let mut state = self.steps[old].clone();
        let touched = state.parts.iter().any(|part| part.effect.is_some());
        if new.find(step.id.as_str()).is_none() {
            // Retired: at rest for ever, kept only for what there is to undo.
            for part in &mut state.parts {
                part.stop();
            }
            let completed = state.stage == Stage::Completed;
            state.stage = if completed { Stage::Completed } else { Stage::Failed };
            return state;
        }
        if !same_call(&self.plan.steps[old], step) {
            return fresh;
        }
        let done = state.stage == Stage::Completed && state.status() != "compensated";
        let under_way = state.stage == Stage::Begun && state.parts.iter().any(Part::is_active);
        if done || under_way {
            return state;
        }
        if step.for_each.is_some() && !touched {
            return fresh;
        }
        for part in &mut state.parts {
            if !matches!(part.state, PartState::Completed { .. }) {
                part.revive(self.last_at);
            }
        }
        let unsettled =
            state.parts.iter().filter(|part| !matches!(part.state, PartState::Completed { .. })).count();
        state.unsettled = u32::try_from(unsettled).unwrap_or(u32::MAX);
        state.next_item = u32::try_from(state.parts.len()).unwrap_or(u32::MAX);
        let begun = step.for_each.is_some() || state.parts.iter().any(Part::is_active);
        state.stage = if begun { Stage::Begun } else { Stage::Waiting };
        state.halted = false;
        state.failure = None;
        state
    }

    /// Works out anew everything that is derived from the steps.
    fn rebuild(&mut self) {
        self.agenda = Agenda::default();
        let plan = self.plan.0.clone();
        self.unsettled = self.steps.iter().filter(|step| !step.stage.is_settled()).count();
        for (step, needs) in plan.graph.needs.iter().enumerate() {
            let unmet = needs.iter().filter(|need| !self.steps[need.step].stage.is_settled()).count();
            self.steps[step].unmet = u32::try_from(unmet).unwrap_or(u32::MAX);
            self.steps[step].queued = 0;
            let active = self.steps[step].parts.iter().filter(|part| part.is_active()).count();
            self.steps[step].active = u32::try_from(active).unwrap_or(u32::MAX);
            for item in 0..self.steps[step].parts.len() {
                let at = PartAt::new(step, item);
                let part = &self.steps[step].parts[item];
                self.agenda.enlist(at, part, plan.steps[step].timeout_total);
                let queued = part.state == PartState::Pending && self.steps[step].stage == Stage::Begun;
                if queued && (item as u32) < self.steps[step].next_item && !self.steps[step].halted {
                    self.enqueue(at);
                }
            }
            if self.steps[step].stage == Stage::Waiting && unmet == 0 {
                self.enqueue(PartAt::new(step, 0));
            }
        }
    }
}

impl Draft<'_> {
    pub fn replan(&mut self, plan: &Arc<Plan>, reason: String) -> Recorded {
        for at in
            self.execution.agenda.asking.union(&self.execution.agenda.approved).copied().collect::<Vec<_>>()
        {
            let old = &self.execution.plan.steps[at.step()];
            let kept = plan.find(old.id.as_str()).is_some_and(|new| same_call(old, &plan.steps[new]));
            let state = self.execution.part_at(at).map(|part| &part.state);
            if let (false, Some(PartState::Asking { call, .. } | PartState::Approved { call, .. })) =
                (kept, state)
            {
                let (call, part) = (*call, self.execution.name(at));
                let reason = "the plan changed".to_owned();
                self.follow(Event::ApprovalVoided { part, call, reason })?;
            }
        }
        let revision = self.execution.revision + 1;
        self.note(Event::Replanned { plan: PlanRef::of(plan), revision, reason })
    }
}

/// Whether two revisions of a step make the same calls, forward and back.
fn same_call(old: &Step, new: &Step) -> bool {
    let call = |step: &Step| (step.call.tool.clone(), step.call.parameters.source().clone());
    let undo = |step: &Step| {
        step.compensation.as_ref().map(|c| (c.call.tool.clone(), c.call.parameters.source().clone()))
    };
    let items = |step: &Step| step.for_each.as_ref().map(|fan_out| fan_out.items.source.clone());
    call(old) == call(new) && undo(old) == undo(new) && items(old) == items(new)
}

/// The new plan with the finished steps it does not name, appended so that they can still be undone.
fn merge(new: &Plan, old: &Plan, retired: &[usize]) -> Result<Plan, String> {
    let mut steps = new.steps.clone();
    steps.extend(retired.iter().map(|step| old.steps[*step].clone()));
    let index = steps.iter().enumerate().map(|(at, step)| (step.id.clone(), at)).collect();
    let mut edges: Vec<(usize, Need)> = Vec::new();
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
        budget: new.budget,
        on_failure: new.on_failure,
        steps,
        graph: Graph::default(),
        tools: new.tools.clone(),
        index,
    };
    for (at, step) in retired.iter().enumerate() {
        let at = new.steps.len() + at;
        for need in &old.graph.needs[*step] {
            if let Some(kept) = merged.find(old.steps[need.step].id.as_str()) {
                edges.push((at, Need { step: kept, kind: need.kind }));
            }
        }
        for tool in old.tools.values() {
            merged.tools.entry(tool.name.clone()).or_insert_with(|| tool.clone());
        }
    }
    merged.graph =
        Graph::build(merged.steps.len(), &edges).map_err(|_| "the retained steps close a cycle")?;
    Ok(merged)
}
