//! Taking up an execution that has ended: what failed, or did not run because of that, is pending again.

use super::admit::{AdmissionResult, person};
use super::apply::{ApplyResult, count};
use super::decide::{DecisionDraft, RecordResult};
use super::input::Refusal;
use super::part::{PartState, StepPart};
use super::step::{SkipCause, StepStage, StepState};
use super::{Execution, ExecutionPhase};
use crate::actor::{Actor, ActorKind};
use crate::id::StepId;
use crate::journal::event::{Event, EventRecord, ExecutionEnding, Question, QuestionAnswer};
use crate::plan::PolicyAction;
use crate::plan::graph::NeedKind;
use crate::time::Timestamp;
use std::collections::BTreeMap;

impl DecisionDraft<'_> {
    /// Goes on from the named steps, or from everything that failed. The steps in `held` get their decision next.
    pub fn reopen(&mut self, named: &[StepId], held: &[StepId], reason: String) -> RecordResult {
        let execution = &self.execution;
        let chosen = execution.find_all(named.iter().chain(held));
        let mut pending = execution.to_reopen(&chosen);
        pending.retain(|step| !held.contains(&execution.plan.steps[*step].id));
        let steps = execution.names(&pending);
        self.note(Event::Reopened { steps, held: held.to_vec(), reason })
    }

    /// A new plan takes over from the end: it decides what is pending again.
    pub fn reopen_for_replan(&mut self, reason: &str) -> RecordResult {
        match self.execution.outcome() {
            Some(_) => self.note(Event::Reopened { steps: Vec::new(), held: Vec::new(), reason: reason.to_owned() }),
            None => Ok(()),
        }
    }
}

impl Execution {
    /// Refuses to take up an execution that has nothing left to do, or nothing left to build on.
    pub(super) fn admit_reopening(&self, actor: &Actor, steps: &[StepId]) -> AdmissionResult {
        self.admit_going_on()?;
        self.admit_person_after_person(actor)?;
        let named = self.find_all(steps);
        let has_failed_item = |step: &usize| self.steps[*step].has_failed_item();
        if self.outcome() == Some(ExecutionEnding::Completed) && !named.iter().any(has_failed_item) {
            return Err(self.completed());
        }
        steps.iter().try_for_each(|step| self.admit_reopening_of(actor, step))?;
        if self.to_reopen(&named).is_empty() {
            return Err(Refusal::new(
                "execution.nothing_left",
                "nothing failed or was cancelled here that could run again",
            )
            .hint(
                "name a step that was undone or skipped by decision to run it again, or replan to go on with others",
            ));
        }
        let stopped = self.stopped_by_failures(&named);
        match named.iter().find_map(|step| Some((*step, *stopped.get(step)?))) {
            Some((step, failed)) => {
                let (step, failed) = (&self.plan.steps[step].id, &self.plan.steps[failed].id);
                Err(Refusal::new("execution.after_failure", format!("{step} comes after {failed}, which has failed"))
                    .hint(format!("reopen {failed} too, or retry, skip or resolve it first")))
            }
            None => Ok(()),
        }
    }

    /// All items that are not done run again with their steps, also those that somebody skipped.
    pub(super) fn admit_left_out_items(&self, actor: &Actor, steps: &[StepId]) -> AdmissionResult {
        let steps = self.to_reopen(&self.find_all(steps));
        match steps.iter().any(|step| self.steps[*step].has_left_out_item()) {
            true => person(actor, "run an item after all that was skipped by decision"),
            false => Ok(()),
        }
    }

    /// An execution that has completed goes on only with an item that failed and was tolerated, if it is named.
    fn completed(&self) -> Refusal {
        let failed = self.parts().map(|(id, _)| id).find(|id| self.is_failed_item(id));
        match failed {
            Some(item) => {
                Refusal::new("execution.completed", "this execution has completed: what failed was tolerated")
                    .hint(format!("name an item that failed to run it again: {item}"))
            }
            None => Refusal::new("execution.completed", "this execution has completed: nothing is left to do")
                .hint("replan it to go on with more steps, or start another execution"),
        }
    }

    /// Refuses to go on after the end where something is in doubt, or what the steps would build on is gone.
    pub(super) fn admit_going_on(&self) -> AdmissionResult {
        let Some(outcome) = self.outcome() else {
            return Err(Refusal::new("execution.not_ended", "this execution has not ended"));
        };
        if let Some(part) = self.agenda.doubts.first() {
            return Err(Refusal::new("execution.in_doubt", format!("{} is in doubt", self.name(*part)))
                .hint("settle the doubt first: what is not known cannot be built on"));
        }
        if outcome == ExecutionEnding::Compensated {
            return Err(Refusal::new(
                "execution.compensated",
                "this execution was undone: what its steps would build on is gone",
            )
            .hint("start another execution of the plan"));
        }
        let not_undone = self.parts().find(|(_, part)| matches!(part.state, PartState::CompensationFailed { .. }));
        match not_undone {
            Some((part, _)) if outcome != ExecutionEnding::Completed => Err(Refusal::new(
                "execution.compensated",
                format!("undoing {part} failed: it is not known what the steps would build on"),
            )
            .hint("undo it by hand and record that, or start another execution of the plan")),
            _ => Ok(()),
        }
    }

    /// What a person ended, only a person takes up again.
    fn admit_person_after_person(&self, actor: &Actor) -> AdmissionResult {
        match self.ended_by_person {
            true => person(actor, "take up what a person stopped or undid"),
            false => Ok(()),
        }
    }

    fn admit_reopening_of(&self, actor: &Actor, step: &StepId) -> AdmissionResult {
        let Some(state) = self.plan.find(step.as_str()).map(|step| &self.steps[step]).filter(|state| !state.retired)
        else {
            return Err(Refusal::new("execution.unknown_part", format!("the plan has no step {step:?}")));
        };
        if state.is_undone() {
            return person(actor, "run a step again that was undone");
        }
        if state.skip_cause == Some(SkipCause::Decision) {
            return person(actor, "run a step after all that was skipped by decision");
        }
        let has_failed_item = state.has_failed_item() || state.has_left_out_item();
        let done = state.stage == StepStage::Completed && !has_failed_item;
        if done || !state.stage.is_settled() {
            let what = if done { "is completed" } else { "has not ended" };
            return Err(Refusal::new("execution.no_question", format!("step {step:?} {what}")));
        }
        Ok(())
    }

    /// Whether somebody may go on from what failed or was cancelled.
    pub fn can_reopen(&self) -> bool {
        self.admit_going_on().is_ok()
            && self.outcome() != Some(ExecutionEnding::Completed)
            && !self.to_reopen(&[]).is_empty()
    }

    fn find_all<'a>(&self, steps: impl IntoIterator<Item = &'a StepId>) -> Vec<usize> {
        steps.into_iter().filter_map(|step| self.plan.find(step.as_str())).collect()
    }

    /// The steps that are pending again: the named ones, or all that failed; all that were cancelled or left undone,
    /// unless a failure that stays stops them; and those that were skipped and come after one of them, because their
    /// reason may be gone. What was undone runs again only if it is named.
    fn to_reopen(&self, named: &[usize]) -> Vec<usize> {
        let stopped = self.stopped_by_failures(named);
        let chosen = |step: usize, state: &StepState| match (state.stage, state.skip_cause) {
            _ if state.retired => false,
            _ if named.contains(&step) => true,
            _ if stopped.contains_key(&step) || state.is_undone() => false,
            (StepStage::Cancelled, _) | (StepStage::Skipped, Some(SkipCause::LeftUndone)) => true,
            (StepStage::Failed, _) | (StepStage::Skipped, Some(SkipCause::NoResult)) => named.is_empty(),
            _ => false,
        };
        let mut steps: Vec<usize> =
            self.steps.iter().enumerate().filter(|(step, state)| chosen(*step, state)).map(|(step, _)| step).collect();
        let after = self.plan.graph.dependents_of(&steps, |kind| kind > NeedKind::Sequence);
        steps.extend(after.into_iter().filter(|step| {
            let state = &self.steps[*step];
            let may_run = match state.skip_cause {
                Some(SkipCause::Condition) => !self.else_has_run(*step),
                Some(SkipCause::OtherBranch | SkipCause::NoResult) => true,
                Some(SkipCause::Decision | SkipCause::LeftUndone) | None => false,
            };
            state.stage == StepStage::Skipped && may_run && !state.retired && !stopped.contains_key(step)
        }));
        steps.sort_unstable();
        steps.dedup();
        steps
    }

    /// The steps that a failure still stops, each with the failed step: it is not taken up, and they come after it.
    fn stopped_by_failures(&self, named: &[usize]) -> BTreeMap<usize, usize> {
        let mut stopped = BTreeMap::new();
        for (failed, state) in self.steps.iter().enumerate().filter(|(_, state)| state.stage == StepStage::Failed) {
            let goes_on = named.contains(&failed) || (named.is_empty() && !state.is_undone());
            if goes_on || state.retired {
                continue;
            }
            let policy = &self.plan.steps[failed].policy;
            let mut roots = policy.propagate_to.clone();
            if !state.left_behind {
                roots.push(failed);
            }
            let all = policy.action != PolicyAction::CancelDependent;
            let after = self.plan.graph.dependents_of(&roots, |kind| all || kind > NeedKind::Sequence);
            for step in after.into_iter().chain(policy.propagate_to.iter().copied()) {
                stopped.entry(step).or_insert(failed);
            }
        }
        stopped
    }

    /// Whether the other branch of a step is done, or may be.
    fn else_has_run(&self, step: usize) -> bool {
        let other = self.plan.steps.iter().zip(&self.steps).filter(|(other, _)| other.else_of == Some(step));
        other.into_iter().any(|(_, state)| {
            let is_done = state.stage == StepStage::Completed && !state.is_undone();
            is_done || state.parts.iter().any(StepPart::is_touched)
        })
    }

    pub(super) fn reopen(&mut self, at: Timestamp, steps: &[StepId], held: &[StepId]) -> ApplyResult {
        for id in steps {
            let step = self.expect_step(id)?;
            let state = &self.steps[step];
            if !state.stage.is_settled() || state.retired {
                return Err(format!("step {id:?} cannot be taken up again"));
            }
            self.steps[step] = restarted(state, self.plan.steps[step].for_each.is_some(), at);
        }
        let mut waiting = Vec::new();
        for id in held {
            let step = self.expect_step(id)?;
            let state = &self.steps[step];
            let has_failed = state.stage == StepStage::Failed || state.has_failed_item() || state.has_left_out_item();
            if !has_failed || state.retired {
                return Err(format!("step {id:?} has not failed"));
            }
            self.steps[step].stage = StepStage::Held;
            // Items that were stopped before a call wait for the decision like those that had not begun.
            let stopped = self.steps[step].parts.iter_mut().filter(|part| part.state == PartState::Cancelled);
            stopped.for_each(|part| part.revive(at));
            // At the end everything had settled, also what an agent had begun while the step waited for a decision.
            self.steps[step].unsettled = 0;
            waiting.push(step);
        }
        self.phase = ExecutionPhase::Forward;
        self.reopened_at = Some(at);
        self.time_added.clear();
        self.stop_reason.clear();
        (self.stop_limit, self.undo_reason) = (None, String::new());
        self.gave_up = self.has_left_out();
        self.rebuild();
        self.conclude_revived();
        self.agenda.held.extend(waiting);
        Ok(())
    }

    /// Whether a step of the plan, or an item of one, is left out by decision.
    pub(super) fn has_left_out(&self) -> bool {
        self.steps.iter().filter(|state| !state.retired).any(|state| {
            let left_out = matches!(state.skip_cause, Some(SkipCause::Decision | SkipCause::LeftUndone));
            left_out || state.has_left_out_item()
        })
    }

    /// Remembers whether a person stopped or undid the execution.
    pub(super) fn remember_who_ended(&mut self, record: &EventRecord) {
        let ends = match &record.event {
            Event::CancelRequested { .. } | Event::Killed { .. } => true,
            Event::QuestionAnswered { about: Question::SecondEffect(_), .. } => false,
            Event::QuestionAnswered { answer, .. } => {
                matches!(answer, QuestionAnswer::Stop | QuestionAnswer::Compensate)
            }
            // The undoing of a second effect leaves the end as it was.
            Event::CompensationStarted { .. } => self.undo.as_ref().is_some_and(|undo| undo.restores.is_none()),
            Event::Reopened { .. } => {
                self.ended_by_person = false;
                false
            }
            _ => false,
        };
        self.ended_by_person |= ends && record.actor.party == ActorKind::Person;
    }
}

/// The state of a step that runs again. Attempts, effects, keys and finished items stay.
fn restarted(state: &StepState, fans_out: bool, at: Timestamp) -> StepState {
    let is_done = |part: &StepPart| matches!(part.state, PartState::Completed { .. });
    let has_history = state.parts.iter().any(|part| is_done(part) || part.is_touched());
    if state.parts.is_empty() || (fans_out && !has_history) {
        return state.anew(fans_out);
    }
    let mut state = state.clone();
    for part in state.parts.iter_mut().filter(|part| !is_done(part)) {
        part.revive(at);
    }
    state.unsettled = count(state.parts.iter().filter(|part| !is_done(part)).count());
    state.next_item = count(state.parts.len());
    let begun = fans_out || state.unsettled == 0 || state.parts.iter().any(StepPart::is_active);
    state.stage = if begun { StepStage::Begun } else { StepStage::Waiting };
    (state.halted, state.left_behind) = (false, false);
    state.failure = None;
    (state.results, state.skip_reason, state.skip_cause) = (None, None, None);
    state
}
