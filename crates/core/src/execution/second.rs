//! Late effects: an attempt that was settled otherwise took effect after all.

use super::admit::{AdmissionResult, person};
use super::agenda::PartPosition;
use super::apply::ApplyResult;
use super::decide::{DecisionDraft, RecordResult};
use super::input::Refusal;
use super::part::{AnsweredAttempt, PartState, SecondEffect, StepPart};
use super::step::StepStage;
use super::view::{EffectSnapshot, PendingQuestion, SurpriseKind};
use super::{Execution, ExecutionPhase};
use crate::actor::Actor;
use crate::id::PartId;
use crate::journal::event::{CallSide, Deviation, Event, LateEffect, Question, QuestionAnswer};
use crate::journal::payload::EventPayload;
use crate::plan::{Compensation, Driver, FailureTolerance, PlannedCall, Step};
use crate::time::Timestamp;
use crate::tool::Safety;

impl DecisionDraft<'_> {
    pub(super) fn deviate_late(
        &mut self,
        part: &PartId,
        side: CallSide,
        attempt: u32,
        effect: Option<LateEffect>,
    ) -> RecordResult {
        let what = match (side, effect) {
            (CallSide::Undo, _) => "its undoing took effect twice",
            (_, Some(LateEffect::Only)) => "it took effect after it was settled otherwise",
            (_, _) => "it took effect beside another attempt",
        };
        let description = format!("attempt {attempt} of {part} was answered late: {what}");
        let (kind, step) = (Deviation::SecondEffect, Some(part.step.clone()));
        self.follow(Event::DeviationFound { kind, step, description })
    }

    /// Completes the parts that failed and wait for a decision, if an attempt of theirs was answered after all: then the
    /// answer is their result, and there is nothing to decide.
    pub(super) fn complete_answered(&mut self) -> RecordResult {
        for at in self.execution.agenda.second.clone() {
            let is_open = matches!(self.execution.steps[at.step()].stage, StepStage::Held | StepStage::Begun);
            let part = self.execution.part_at(at).filter(|part| part.is_own_late() && !part.accepted);
            let Some(part) = part.filter(|part| is_open && part.is_answered_after_all()) else { continue };
            let attempt = part.effect.map_or(0, |effect| effect.attempt);
            let part = self.execution.name(at);
            let about = if part.item.is_some() { Question::Item(part) } else { Question::Failure(part.step) };
            let (answer, reason) = (QuestionAnswer::Retry, format!("attempt {attempt} took effect after all"));
            let (result, evidence, skipped) = (None, None, Vec::new());
            self.follow(Event::QuestionAnswered { about, answer, reason, result, evidence, skipped })?;
        }
        Ok(())
    }

    /// What a late "done" means for a part that was settled by hand: its result, if nobody knew one, or a contradiction.
    pub(super) fn compare_by_hand(&mut self, at: PartPosition, attempt: u32) -> RecordResult {
        let Some(part) = self.execution.part_at(at) else { return Ok(()) };
        let (name, is_completed) = (self.execution.name(at), matches!(part.state, PartState::Completed { .. }));
        if let Some(late) =
            part.answer_by_tool().filter(|_| is_completed && part.aside.is_none() && part.lacks_result())
            && late.result.value().is_some_and(|result| !result.is_null())
        {
            let (reason, result) = (format!("attempt {attempt} was answered after all"), late.result.clone());
            return self.correct(name, true, reason, Some(result), None);
        }
        let description =
            format!("attempt {attempt} of {name} was answered late, with another result than the one given by hand");
        let is_known = self.execution.deviations.iter().any(|(.., known)| *known == description);
        match part.contradiction().filter(|late| late.attempt == attempt && !is_known) {
            Some(_) => self.deviate(Deviation::OtherResult, &name.step, &description),
            None => Ok(()),
        }
    }

    /// Records, once, that a call of a step took effect which no plan has any more, and which nothing here can undo.
    pub(super) fn deviate_dropped(&mut self, part: &PartId, attempt: u32) -> RecordResult {
        let has_effect = self.execution.dropped.get(&part.step).is_some_and(|dropped| dropped.has_own_effect);
        let description = format!(
            "attempt {attempt} of {part} was answered late: it took effect, and its step was dropped by a replan"
        );
        let is_known = self.execution.deviations.iter().any(|(.., known)| *known == description);
        if !has_effect || is_known {
            return Ok(());
        }
        let (kind, step) = (Deviation::SecondEffect, Some(part.step.clone()));
        self.follow(Event::DeviationFound { kind, step, description })
    }
}

impl Execution {
    /// What a late "done" means, if the attempt was not settled as done. The repeat of an effect that is on record is no
    /// effect of its own. While another attempt with the same effect runs, or is in doubt, the answer means nothing yet:
    /// the part remembers it. `usable`: it has a result.
    pub(super) fn late_effect(
        &self,
        at: PartPosition,
        side: CallSide,
        attempt: u32,
        usable: bool,
    ) -> Option<LateEffect> {
        let part = self.part_at(at).filter(|part| !part.is_done(side, attempt))?;
        match side {
            CallSide::Do | CallSide::Fallback => {
                let call = self.call_of(at, side).filter(|_| !self.is_read(at.step(), side))?;
                let repeats = |of: u32| repeats(part, call, side, attempt, of);
                if part.effects_of(side).any(repeats) {
                    return None;
                }
                if part.unsettled_attempt(side).is_some_and(|open| open != attempt && repeats(open)) {
                    return None;
                }
                // It is being undone, and when it took effect nobody knows.
                let unsure = part.effect.filter(|effect| effect.side == side).map(|effect| effect.attempt);
                if part.unsettled_attempt(CallSide::Undo).is_some() && unsure.is_some_and(repeats) {
                    return None;
                }
                let effect = self.effect_of_closed(at, side, attempt);
                let waits = !matches!(part.state, PartState::Failed { .. }) && call.is_repeatable();
                // A repeat may still bring a result.
                let may_be_repeated = effect == LateEffect::Only && part.effect.is_some() && waits;
                (usable || !may_be_repeated).then_some(effect)
            }
            CallSide::Undo => self.late_undo(at, part, attempt),
            CallSide::Probe => None,
        }
    }

    /// Whether a late "done" is what its part waited for: whether the attempt took effect was not known.
    pub(super) fn is_awaited(&self, at: PartPosition, effect: Option<LateEffect>) -> bool {
        let waits = |part: &StepPart| part.effect.is_some() && part.waits_for_call();
        effect == Some(LateEffect::Only) && self.part_at(at).is_some_and(waits)
    }

    /// The earlier attempt of an open one, or of one in doubt, that was answered "done" and has the same effect. An agent
    /// cannot settle a doubt with what it says.
    pub(super) fn answered_before(&self, at: PartPosition) -> Option<&AnsweredAttempt> {
        let part = self.part_at(at)?;
        let answered = part.answered.as_ref()?;
        let (side, open) = (answered.side, part.unsettled_attempt(answered.side)?);
        let (earlier, later) = (part.call(side, answered.attempt)?, part.call(side, open)?);
        let is_same = earlier.by == Driver::Server && earlier.key == later.key;
        let call = self.call_of(at, side).filter(|_| is_same && open != answered.attempt)?;
        if self.is_read(at.step(), side) {
            return None;
        }
        repeats(part, call, side, answered.attempt, open).then_some(answered)
    }

    /// What it means that an attempt to undo was done after all: it has undone the effect, or another one has or may have.
    fn late_undo(&self, at: PartPosition, part: &StepPart, attempt: u32) -> Option<LateEffect> {
        if attempt <= part.undone_by {
            return (!self.is_undo_repeat(at, attempt)).then_some(LateEffect::Second);
        }
        match &part.state {
            PartState::Asking { side: CallSide::Undo, .. }
            | PartState::Approved { side: CallSide::Undo, .. }
            | PartState::BackingOff { side: CallSide::Undo, .. }
            | PartState::CompensationFailed { .. } => Some(LateEffect::Only),
            PartState::Running(running) if running.side == CallSide::Undo => Some(LateEffect::Second),
            PartState::InDoubt { side: CallSide::Undo, .. } => Some(LateEffect::Second),
            _ => None,
        }
    }

    /// Whether an attempt repeats another one of its side without an effect of its own.
    pub(super) fn is_repeat(&self, at: PartPosition, side: CallSide, attempt: u32) -> bool {
        let (Some(part), Some(call)) = (self.part_at(at), self.call_of(at, side)) else { return false };
        is_repeat(part, call, side, attempt)
    }

    /// The same for an attempt to undo, also when its effect is gone.
    pub(super) fn is_undo_repeat(&self, at: PartPosition, attempt: u32) -> bool {
        let Some(part) = self.part_at(at) else { return false };
        let mut forward = part.calls.iter().rev().filter(|call| call.side != CallSide::Undo);
        let undo = forward.next().and_then(|call| compensation_for(&self.plan.steps[at.step()], call.side));
        undo.is_some_and(|undo| is_repeat(part, &undo.call, CallSide::Undo, attempt))
    }

    /// Another attempt of a part in doubt that is known to have taken effect.
    pub(super) fn known_beside(&self, at: PartPosition, side: CallSide) -> Option<u32> {
        let part = self.part_at(at)?;
        match side {
            CallSide::Undo => part.undone_late(),
            _ => part.second.iter().find(|second| second.side == side).map(|second| second.attempt),
        }
    }

    /// What it means for a part that a closed attempt took effect after all.
    pub(super) fn effect_of_closed(&self, at: PartPosition, side: CallSide, attempt: u32) -> LateEffect {
        let Some(part) = self.part_at(at) else { return LateEffect::Second };
        let is_settled = self.steps[at.step()].stage.is_settled();
        // It is not known whether this very attempt, or one that it repeats, took effect.
        let is_unsure = part.effect.is_some_and(|effect| {
            let repeats =
                || self.call_of(at, side).is_some_and(|call| repeats(part, call, side, attempt, effect.attempt));
            !effect.certain && effect.side == side && (effect.attempt == attempt || repeats())
        });
        let is_only = match &part.state {
            PartState::Failed { .. } | PartState::CompensationFailed { .. } if is_unsure => true,
            _ if part.waits_for_undo() && is_unsure => true,
            _ if part.effect.is_some() && !is_unsure => false,
            PartState::Failed { .. } | PartState::Cancelled => true,
            PartState::Pending
            | PartState::Asking { side: CallSide::Do | CallSide::Fallback, .. }
            | PartState::Approved { side: CallSide::Do | CallSide::Fallback, .. }
            | PartState::BackingOff { side: CallSide::Do | CallSide::Fallback, .. } => !is_settled,
            PartState::Asking { .. } | PartState::Approved { .. } => false,
            PartState::Running(_)
            | PartState::BackingOff { .. }
            | PartState::InDoubt { .. }
            | PartState::Completed { .. }
            | PartState::Compensated { .. }
            | PartState::CompensationFailed { .. } => false,
        };
        if is_only { LateEffect::Only } else { LateEffect::Second }
    }

    /// Whether another attempt is known to have taken effect, so that none may follow.
    pub(super) fn took_effect_before(&self, at: PartPosition, side: CallSide) -> bool {
        self.part_at(at).is_some_and(|part| match side {
            CallSide::Do | CallSide::Fallback => !part.second.is_empty(),
            CallSide::Undo => part.undone_late().is_some(),
            CallSide::Probe => false,
        })
    }

    /// Whether a retry waits that would find out whether an attempt took effect, while another one is known to have.
    pub(super) fn is_known_beside_unsure(&self, at: PartPosition, side: CallSide) -> bool {
        let waits = |part: &StepPart| {
            let is_unsure = part.effect.is_some_and(|effect| !effect.certain);
            is_unsure && part.waits_for_call() && part.side() == Some(side)
        };
        self.part_at(at).is_some_and(waits) && self.took_effect_before(at, side)
    }

    /// Whether a part has an effect that the plan can undo.
    pub(super) fn has_undoable_effect(&self, step: usize, part: &StepPart) -> bool {
        let step = &self.plan.steps[step];
        let own = part.effect.is_some_and(|effect| compensation_for(step, effect.side).is_some());
        own || part.second.iter().any(|second| compensation_for(step, second.side).is_some())
    }

    /// The effect of a part that is undone first.
    pub(super) fn choose_effect(&mut self, at: PartPosition) -> ApplyResult {
        let step = self.plan.steps[at.step()].clone();
        let mut part = self.steps[at.step()].parts[at.item()].clone();
        let own = part.effect.is_some_and(|effect| compensation_for(&step, effect.side).is_some());
        if own && !part.only_second {
            return Ok(());
        }
        let only_second = part.only_second;
        if !part.turn_to_second(|second| is_next(&step, second, only_second)) {
            // A plan without a compensation for it: the call cannot be prepared, which is on record then.
            return Ok(());
        }
        part.state = PartState::Completed { by_hand: false };
        self.replace(at, part);
        Ok(())
    }

    /// Turns to the next effect of a part when one is undone. Returns whether its undoing is over although an effect of
    /// its own remains.
    pub(super) fn turn_to_next_effect(&mut self, at: PartPosition, when: Timestamp, part: &mut StepPart) -> bool {
        let is_open = self.undo.as_ref().is_some_and(|undo| undo.open.contains_key(&at));
        if !is_open || !matches!(part.state, PartState::Compensated { .. }) {
            return false;
        }
        let step = self.plan.steps[at.step()].clone();
        let only_second = part.only_second;
        if part.turn_to_second(|second| is_next(&step, second, only_second)) {
            self.undo_next(at, when, None, part);
            return false;
        }
        if !part.turn_to_own() {
            part.only_second = false;
            return false;
        }
        let undoable = part.effect.is_some_and(|effect| compensation_for(&step, effect.side).is_some());
        if only_second || !undoable {
            return true;
        }
        self.undo_next(at, when, self.undoable_from(at, part), part);
        false
    }

    /// Has the effect that a part turned to undone. If the one before it was undone by hand before its turn, this one
    /// still waits: dependents come first.
    fn undo_next(&mut self, at: PartPosition, when: Timestamp, from: Option<Timestamp>, part: &mut StepPart) {
        match self.undo.as_mut().filter(|undo| undo.is_to_come(at)) {
            Some(undo) => {
                undo.turn_to_another(at, from);
                part.state = PartState::Completed { by_hand: false };
            }
            None => part.wait_to_undo(from.map_or(when, |from| from.max(when))),
        }
    }

    pub(super) fn admit_second(&self, actor: &Actor, part: &PartId, answer: QuestionAnswer) -> AdmissionResult {
        person(actor, "decide on a second effect")?;
        let open = self.locate(part).filter(|at| self.agenda.second.contains(at));
        let Some(at) = open else {
            return Err(Refusal::new("execution.no_question", "this question is not open"));
        };
        let surprise = self.part_at(at).and_then(surprise_of).unwrap_or(SurpriseKind::Second);
        if !surprise.answers().contains(&answer) {
            return Err(Refusal::new("execution.no_such_answer", "this question does not accept this answer"));
        }
        if answer != QuestionAnswer::Compensate {
            return Ok(());
        }
        if !matches!(self.phase, ExecutionPhase::Ended { .. }) {
            return Err(Refusal::new("execution.not_ended", "this execution is still under way")
                .hint("a second effect is undone after the end, or with everything else"));
        }
        if let Some(doubt) = self.agenda.doubts.first() {
            return Err(Refusal::new("execution.in_doubt", format!("{} is in doubt", self.name(*doubt)))
                .hint("settle the doubt first: an effect cannot be undone before it is known"));
        }
        match self.has_undoable_surprise(at, surprise) {
            true => Ok(()),
            false => Err(Refusal::new("execution.nothing_to_undo", "the plan has no compensation for it")
                .hint("undo it by hand, then let it stand here, with the evidence as the reason")),
        }
    }

    pub(super) fn answer_second(&mut self, id: &PartId, answer: QuestionAnswer) -> ApplyResult {
        let open = self.locate(id).filter(|at| self.agenda.second.contains(at));
        let Some(at) = open.filter(|_| Question::SECOND_EFFECT_ANSWERS.contains(&answer)) else {
            return Err(format!("{id} has no such question"));
        };
        let mut part = self.steps[at.step()].parts[at.item()].clone();
        match (surprise_of(&part), answer) {
            // It is undone like any other effect: its compensation starts next.
            (Some(SurpriseKind::Only), QuestionAnswer::Compensate) => {}
            (Some(SurpriseKind::Only), _) => part.late_own = false,
            (Some(SurpriseKind::OtherResult), _) => part.late_done.iter_mut().for_each(|late| late.is_overruled = true),
            (_, QuestionAnswer::Compensate) => part.only_second = true,
            // It is the effect that is known already.
            (_, QuestionAnswer::Skip) => part.second.retain(|second| second.accepted),
            _ => part.second.iter_mut().for_each(|second| second.accepted = true),
        }
        self.replace(at, part);
        Ok(())
    }

    /// Whether a step would not have failed if what its calls answered after all is counted.
    pub(super) fn is_answered_after_all(&self, step: usize) -> bool {
        let parts = &self.steps[step].parts;
        let failed = |part: &&StepPart| matches!(part.state, PartState::Failed { .. }) && !part.accepted;
        let (answered, failed): (Vec<&StepPart>, Vec<&StepPart>) =
            parts.iter().filter(failed).partition(|part| part.is_own_late() && part.is_answered_after_all());
        let fan_out = self.plan.steps[step].for_each.as_ref();
        let tolerate = fan_out.map_or(FailureTolerance::NONE, |fan_out| fan_out.tolerate);
        !answered.is_empty() && failed.len() <= tolerate.allowed(parts.len())
    }

    fn has_undoable_surprise(&self, at: PartPosition, surprise: SurpriseKind) -> bool {
        let step = &self.plan.steps[at.step()];
        let Some(part) = self.part_at(at) else { return false };
        match surprise {
            SurpriseKind::Second => part.second.iter().any(|second| is_next(step, second, true)),
            SurpriseKind::Only => part.effect.is_some_and(|effect| compensation_for(step, effect.side).is_some()),
            SurpriseKind::OtherResult => false,
        }
    }

    pub(super) fn ask_second(&self, at: PartPosition) -> Option<PendingQuestion> {
        let part = self.part_at(at)?;
        let surprise = surprise_of(part)?;
        let can_undo = matches!(self.phase, ExecutionPhase::Ended { .. })
            && self.agenda.doubts.is_empty()
            && self.has_undoable_surprise(at, surprise);
        let answers = match (surprise, can_undo) {
            (SurpriseKind::Second, false) => Question::SECOND_EFFECT_WITHOUT_UNDO,
            (SurpriseKind::Only, false) => Question::OTHER_RESULT_ANSWERS,
            _ => surprise.answers(),
        };
        let effects = self.effects_for_people(part, surprise);
        let attempts = effects.iter().filter(|effect| effect.is_late).map(|effect| effect.attempt).collect();
        Some(PendingQuestion::SecondEffect { part: self.name(at), surprise, attempts, effects, answers })
    }

    /// The effects that a question about a late answer tells of: what was known, and what came late.
    fn effects_for_people(&self, part: &StepPart, surprise: SurpriseKind) -> Vec<EffectSnapshot> {
        let value = |payload: &EventPayload| payload.value().cloned();
        let own = part.effect.map(|effect| EffectSnapshot {
            side: effect.side,
            attempt: effect.attempt,
            parameters: part.parameters.as_ref().and_then(value),
            result: part.result.as_ref().and_then(value),
            is_late: surprise == SurpriseKind::Only,
            by_hand: part.by_hand.is_some_and(|settled| settled.happened),
        });
        let second = part.second.iter().map(|second| EffectSnapshot {
            side: second.side,
            attempt: second.attempt,
            parameters: second.parameters.as_ref().and_then(value),
            result: value(&second.result),
            is_late: !second.accepted,
            by_hand: false,
        });
        let other = part.contradiction().map(|late| EffectSnapshot {
            side: late.side,
            attempt: late.attempt,
            parameters: part.parameters.as_ref().and_then(value),
            result: value(&late.result),
            is_late: true,
            by_hand: false,
        });
        match surprise {
            SurpriseKind::Second | SurpriseKind::Only => own.into_iter().chain(second).collect(),
            SurpriseKind::OtherResult => own.into_iter().chain(other).collect(),
        }
    }
}

/// What a late answer says of a part, if that waits for a decision.
fn surprise_of(part: &StepPart) -> Option<SurpriseKind> {
    if part.has_open_second() {
        return Some(SurpriseKind::Second);
    }
    if part.is_own_late() {
        return Some(SurpriseKind::Only);
    }
    part.contradiction().map(|_| SurpriseKind::OtherResult)
}

/// Whether an attempt repeats the last other one of its side without an effect of its own.
fn is_repeat(part: &StepPart, call: &PlannedCall, side: CallSide, attempt: u32) -> bool {
    let other = part.calls.iter().rev().find(|other| other.side == side && other.attempt != attempt);
    other.map_or(call.is_repeatable(), |other| repeats(part, call, side, attempt, other.attempt))
}

/// Whether two attempts of a side have one effect: not with different keys, nor with a key that the tool may have
/// forgotten between them.
fn repeats(part: &StepPart, call: &PlannedCall, side: CallSide, attempt: u32, of: u32) -> bool {
    if !call.is_repeatable() || call.safety != Safety::Once {
        return call.is_repeatable();
    }
    let (Some(own), Some(other)) = (part.call(side, attempt), part.call(side, of)) else { return true };
    let apart = other.sent_at.since(own.sent_at).max(own.sent_at.since(other.sent_at));
    other.key == own.key && apart < call.key_window
}

/// Whether a second effect is to be undone and can be.
fn is_next(step: &Step, second: &SecondEffect, only_second: bool) -> bool {
    (!only_second || !second.accepted) && compensation_for(step, second.side).is_some()
}

/// The compensation of the effect of one side.
fn compensation_for(step: &Step, side: CallSide) -> Option<&Compensation> {
    match side {
        CallSide::Fallback => step.fallback.as_ref()?.compensation.as_ref(),
        CallSide::Do | CallSide::Undo | CallSide::Probe => step.compensation.as_ref(),
    }
}
