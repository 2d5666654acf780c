//! Correcting what was settled by hand: another result, "it did not happen", or "it did happen".

use super::admit::{AdmissionResult, person, unknown};
use super::agenda::PartPosition;
use super::apply::ApplyResult;
use super::decide::{DecisionDraft, RecordResult};
use super::input::Refusal;
use super::part::{HandSettlement, PartState, StepPart};
use super::step::StepStage;
use super::{Execution, ExecutionPhase};
use crate::actor::Actor;
use crate::id::{PartId, StepId};
use crate::journal::event::{CallSide, Deviation, Event, ExecutionEnding, LateEffect};
use crate::journal::payload::EventPayload;
use crate::plan::graph::NeedKind;
use crate::text::cut;
use crate::time::Timestamp;
use serde_json::Value;

/// The length of a result in a refusal.
const RESULT_CHARS_MAX: usize = 300;

impl Execution {
    pub(super) fn admit_correction(
        &self,
        actor: &Actor,
        id: &PartId,
        happened: bool,
        result: Option<&Value>,
    ) -> AdmissionResult {
        person(actor, "correct what was settled by hand")?;
        let at = self.locate(id).ok_or_else(|| unknown(id))?;
        let part = self.part_at(at).ok_or_else(|| unknown(id))?;
        let Some(settled) = part.by_hand else {
            return Err(Refusal::new("execution.not_by_hand", format!("{id} was not settled by hand"))
                .hint("only what a person or an agent settled can be corrected, not what a tool or a probe answered"));
        };
        self.admit_against_answer(id, part, happened, result)?;
        match (settled.happened, happened) {
            (true, true) => self.admit_other_result(at, settled, result),
            (true, false) if result.is_some() => {
                Err(Refusal::new("execution.result_invalid", "what did not happen has no result"))
            }
            (true, false) => self.admit_not_happened(at),
            (false, false) => Err(nothing(format!("{id} is settled like that already"))),
            (false, true) => self.admit_happened(at, settled, result),
        }
    }

    /// What the tool has answered to the same attempt is not corrected. What was said against it can be.
    fn admit_against_answer(
        &self,
        id: &PartId,
        part: &StepPart,
        happened: bool,
        result: Option<&Value>,
    ) -> AdmissionResult {
        let Some(late) = part.answer_by_tool() else { return Ok(()) };
        let answer = late.result.value().map(|answer| &**answer).filter(|answer| !answer.is_null());
        let fits = match (happened, answer, result) {
            (false, ..) => false,
            (true, Some(answer), Some(result)) => answer == result,
            (true, ..) => true,
        };
        if fits {
            return Ok(());
        }
        let with = answer.map(|answer| format!(", with the result {}", cut(&answer.to_string(), RESULT_CHARS_MAX)));
        Err(Refusal::new(
            "execution.answered",
            format!("{id} took effect: attempt {} was answered late{}", late.attempt, with.unwrap_or_default()),
        )
        .hint("what a tool answered is not corrected; correct it to exactly that result, or undo the step"))
    }

    fn admit_other_result(&self, at: PartPosition, settled: HandSettlement, result: Option<&Value>) -> AdmissionResult {
        let (id, Some(part)) = (self.name(at), self.part_at(at)) else { return Ok(()) };
        if result.is_none() || result == part.result.as_ref().and_then(|result| result.value()).map(|value| &**value) {
            return Err(nothing(format!("{id} has this result already"))
                .hint("give the corrected result, or say that it did not happen"));
        }
        match &part.state {
            PartState::Completed { .. } | PartState::CompensationFailed { .. } if part.aside.is_none() => {
                self.admit_result(at, settled.side, result)
            }
            _ => Err(being_undone(&id)),
        }
    }

    /// Nothing may stand that was built on it.
    fn admit_not_happened(&self, at: PartPosition) -> AdmissionResult {
        let id = self.name(at);
        let is_completed = |part: &StepPart| matches!(part.state, PartState::Completed { .. }) && part.aside.is_none();
        if !self.part_at(at).is_some_and(is_completed) || self.steps[at.step()].stage != StepStage::Completed {
            return Err(being_undone(&id));
        }
        match self.phase {
            ExecutionPhase::Forward | ExecutionPhase::Ended { .. } => {}
            ExecutionPhase::Pending
            | ExecutionPhase::Draining { .. }
            | ExecutionPhase::Undoing
            | ExecutionPhase::Killed => {
                return Err(Refusal::new("execution.stopping", "this execution is stopping or undoing")
                    .hint("wait for its end"));
            }
        }
        // What cannot be undone stands whatever is said: it is on record as built on what did not happen.
        let can_go = |step: usize, part: &StepPart| part.is_active() || self.has_undoable_effect(step, part);
        let mut built = self.built_upon(at.step());
        built.retain(|step| self.steps[*step].parts.iter().any(|part| can_go(*step, part)));
        if !built.is_empty() {
            let names: Vec<String> = self.names(&built).iter().map(ToString::to_string).collect();
            return Err(Refusal::new(
                "execution.built_upon",
                format!("{} was done after {id} and depends on it", names.join(", ")),
            )
            .hint("undo that first, after the end or by cancelling; or replan"));
        }
        match self.outcome() {
            Some(ExecutionEnding::Partial) => self.admit_going_on(),
            Some(ExecutionEnding::Completed) if let Some(doubt) = self.agenda.doubts.first() => {
                Err(Refusal::new("execution.in_doubt", format!("{} is in doubt", self.name(*doubt)))
                    .hint("settle the doubt first"))
            }
            _ => Ok(()),
        }
    }

    fn admit_happened(&self, at: PartPosition, settled: HandSettlement, result: Option<&Value>) -> AdmissionResult {
        let (id, HandSettlement { side, attempt, .. }) = (self.name(at), settled);
        if self.part_at(at).is_some_and(|part| part.is_done(side, attempt)) {
            return Err(nothing(format!("attempt {attempt} of {id} is known to have taken effect")));
        }
        if self.is_repeat(at, side, attempt) && self.effect_of_closed(at, side, attempt) == LateEffect::Second {
            return Err(nothing(format!("{id} was called again, and its repeat has no effect of its own")));
        }
        self.admit_result(at, side, result)
    }

    /// The steps after this one that have taken effect, or may still.
    fn built_upon(&self, step: usize) -> Vec<usize> {
        let stands = |part: &StepPart| part.is_touched() || part.is_active();
        let mut dependents = self.plan.graph.dependents_of(&[step], |kind| kind > NeedKind::Sequence);
        dependents.retain(|step| self.steps[*step].parts.iter().any(stands));
        dependents
    }

    /// The steps that were called with the result of this one.
    fn readers_of(&self, step: usize) -> Vec<StepId> {
        let called = |part: &StepPart| part.attempts_of(CallSide::Do) + part.attempts_of(CallSide::Fallback) > 0;
        let dependents = self.plan.graph.dependents[step].iter().filter(|need| need.kind >= NeedKind::SoftData);
        let readers = dependents.filter(|need| self.steps[need.step].parts.iter().any(called));
        self.names(&readers.map(|need| need.step).collect::<Vec<_>>())
    }

    pub(super) fn apply_correction(
        &mut self,
        id: &PartId,
        at: Timestamp,
        happened: bool,
        event: &Event,
    ) -> ApplyResult {
        self.change_part(id, at, event)?;
        let step = self.expect_step(&id.step)?;
        if self.steps[step].stage != StepStage::Completed {
            return Ok(());
        }
        if happened {
            self.collect_results(step);
            return Ok(());
        }
        self.steps[step].results = None;
        if self.phase != ExecutionPhase::Forward {
            self.steps[step].stage = StepStage::Failed;
            return Ok(());
        }
        // As if it had failed: its dependents wait, and somebody decides.
        self.steps[step].stage = StepStage::Held;
        self.agenda.held.insert(step);
        self.wait_again(step);
        Ok(())
    }
}

impl DecisionDraft<'_> {
    pub fn correct(
        &mut self,
        part: PartId,
        happened: bool,
        reason: String,
        result: Option<EventPayload>,
        evidence: Option<EventPayload>,
    ) -> RecordResult {
        let at = self.execution.locate(&part);
        let settled = at.and_then(|at| self.execution.part_at(at)).and_then(|part| part.by_hand);
        let (Some(at), Some(HandSettlement { side, attempt, happened: before })) = (at, settled) else {
            return Ok(());
        };
        let effect = (happened && !before).then(|| self.execution.effect_of_closed(at, side, attempt));
        let stale = if before { self.execution.readers_of(at.step()) } else { Vec::new() };
        let mut built =
            if before && !happened { self.execution.names(&self.execution.built_upon(at.step())) } else { Vec::new() };
        built.retain(|step| !stale.contains(step));
        let goes_on = matches!(self.execution.outcome(), Some(ExecutionEnding::Completed | ExecutionEnding::Partial))
            && !happened
            && !self.execution.steps[at.step()].retired;
        let (step, name, why) = (part.step.clone(), part.to_string(), reason.clone());
        self.note(Event::SettlementCorrected { part, side, attempt, happened, reason, result, evidence, effect })?;
        for reader in stale {
            let description = format!("it used the result of {name}, which was corrected later");
            self.deviate(Deviation::StaleResult, &reader, &description)?;
        }
        for step in built {
            let description = format!("it was done after {name}, which did not happen after all");
            self.deviate(Deviation::StaleResult, &step, &description)?;
        }
        if effect.is_some() {
            let description = format!("attempt {attempt} of {name} took effect after all: a person corrected that");
            self.deviate(Deviation::SecondEffect, &step, &description)?;
        }
        self.void_changed_approvals(&format!("the result of {name} was corrected, so this is another call"))?;
        // An execution with a step that was not done has not reached its end.
        if goes_on { self.reopen(&[], std::slice::from_ref(&step), why) } else { Ok(()) }
    }
}

impl DecisionDraft<'_> {
    /// Takes back what was asked about calls, or approved, that are other calls now: a question always shows its call.
    pub(super) fn void_changed_approvals(&mut self, reason: &str) -> RecordResult {
        let execution = &*self.execution;
        let waiting: Vec<PartPosition> = execution.agenda.asking.union(&execution.agenda.approved).copied().collect();
        for at in waiting {
            let state = self.execution.part_at(at).map(|part| &part.state);
            let Some(PartState::Asking { side, call, .. } | PartState::Approved { side, call, .. }) = state else {
                continue;
            };
            let call = *call;
            if !self.execution.prepare(at, *side).is_ok_and(|prepared| prepared.hash == call) {
                let part = self.execution.name(at);
                self.follow(Event::ApprovalVoided { part, call, reason: reason.to_owned() })?;
            }
        }
        Ok(())
    }
}

fn nothing(message: String) -> Refusal {
    Refusal::new("execution.nothing_to_correct", message)
}

fn being_undone(id: &PartId) -> Refusal {
    nothing(format!("{id} is not completed any more: it is being undone, was undone, or runs again"))
        .hint("`rutter exec show` has its state")
}
