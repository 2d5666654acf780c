//! The ends of attempts, their follow-ups, and how doubts are settled.

use super::agenda::PartPosition;
use super::decide::{DecisionDraft, RecordResult};
use super::part::{AnsweredAttempt, PartState, ProbeProgress, StepPart};
use super::{Execution, ExecutionPhase};
use crate::hash::Hash;
use crate::id::{PartId, ToolName};
use crate::journal::event::{AttemptFollowUp, CallSide, DoubtSource, Event, ExecutionEnding, LateAnswer, NO_PROBE};
use crate::journal::payload::EventPayload;
use crate::limits;
use crate::plan::RetryPolicy;
use crate::time::{Millis, Timestamp};
use crate::tool::attempts::BackoffStrategy;
use crate::tool::{CallOutcome, FailureCategory, Safety, ToolFailure};
use std::sync::Arc;

impl DecisionDraft<'_> {
    /// A tool answered, in time or late.
    pub fn returned(&mut self, part: PartId, side: CallSide, attempt: u32, outcome: CallOutcome) -> RecordResult {
        let Some(at) = self.execution.locate(&part) else {
            let is_done =
                matches!(outcome, CallOutcome::Done { .. }) && matches!(side, CallSide::Do | CallSide::Fallback);
            return if is_done { self.deviate_dropped(&part, attempt) } else { Ok(()) };
        };
        if !self.execution.is_under_way(&part, side, attempt) {
            // The connector's own end of the wait for an attempt that was closed for the same reason is no answer.
            let is_answer = !matches!(&outcome, CallOutcome::Maybe(failure) if failure.is_impatience());
            return if is_answer { self.late(at, side, attempt, outcome) } else { Ok(()) };
        }
        match outcome {
            CallOutcome::Done { result, cost_micros } => {
                let twice = self.undone_twice(at, side, attempt);
                let (result, of) = (EventPayload::Present(result), part.clone());
                self.follow(Event::AttemptSucceeded { part, side, attempt, result, cost_micros })?;
                twice.map_or(Ok(()), |attempt| self.deviate_late(&of, side, attempt, None))
            }
            CallOutcome::NotDone(failure) => self.close(at, side, attempt, failure, false),
            CallOutcome::Maybe(failure) => self.close(at, side, attempt, failure, true),
        }
    }

    /// The call was not sent, because its tool has changed. The step has not failed: it waits for its tool.
    pub fn withdraw(
        &mut self,
        part: PartId,
        side: CallSide,
        attempt: u32,
        (tool, found): (&ToolName, Hash),
    ) -> RecordResult {
        if self.execution.outcome().is_none() && self.execution.is_news(tool, found) {
            self.note_definition(tool.clone(), found)?;
        }
        let message = format!("{tool} is no longer the tool the plan was checked with; nothing was sent");
        let failure = ToolFailure::new(FailureCategory::Unavailable, message);
        let waits = |at: &PartPosition| {
            self.execution.is_under_way(&part, side, attempt)
                && self.execution.call_of(*at, side).is_some()
                && self.execution.is_wanted_again(*at, side)
                && self.execution.answered_before(*at).is_none()
        };
        match self.execution.locate(&part).filter(waits) {
            Some(_) => {
                let then = AttemptFollowUp::Withdrawn;
                self.follow(Event::AttemptFailed { part, side, attempt, failure, maybe: false, then })
            }
            None => self.returned(part, side, attempt, CallOutcome::NotDone(failure)),
        }
    }

    /// Notes the definition that a tool has now: a change, or the end of one.
    pub fn note_definition(&mut self, tool: ToolName, found: Hash) -> RecordResult {
        let pinned = self.execution.definition(&tool);
        if found != pinned {
            return self.note(Event::ToolDrifted { tool, pinned, found });
        }
        match self.execution.drifted.contains_key(&tool) {
            true => self.note(Event::ToolRestored { tool, definition: found }),
            false => Ok(()),
        }
    }

    /// Closes an attempt without an answer: it may have taken effect.
    pub fn close_running(&mut self, at: PartPosition, failure: ToolFailure) -> RecordResult {
        match self.running_attempt(at) {
            Some(attempt) => self.close(at, attempt.side, attempt.number, failure, true),
            None => Ok(()),
        }
    }

    pub fn close(
        &mut self,
        at: PartPosition,
        side: CallSide,
        attempt: u32,
        failure: ToolFailure,
        maybe: bool,
    ) -> RecordResult {
        let then = self.after_failure(at, side, &failure, maybe);
        let part = self.execution.name(at);
        self.follow(Event::AttemptFailed { part, side, attempt, failure, maybe, then })
    }

    /// Records an answer to a closed attempt. It may settle a doubt about that attempt, and nothing else.
    pub fn late(&mut self, at: PartPosition, side: CallSide, attempt: u32, outcome: CallOutcome) -> RecordResult {
        let part = self.execution.name(at);
        let in_doubt = matches!(
            self.execution.part_at(at).map(|part| &part.state),
            Some(PartState::InDoubt { side: doubted, attempt: number, .. }) if (*doubted, *number) == (side, attempt)
        );
        let refusal = match &outcome {
            CallOutcome::NotDone(failure) => Some(failure.clone()),
            CallOutcome::Done { .. } | CallOutcome::Maybe(_) => None,
        };
        let (answer, cost_micros, settled) = match outcome {
            CallOutcome::Done { result, cost_micros } => {
                let result = EventPayload::Present(result);
                (LateAnswer::Done(result.clone()), cost_micros, Some((true, Some(result))))
            }
            // It says nothing of earlier attempts, which may have taken effect.
            CallOutcome::NotDone(failure) => {
                let first = self.execution.part_at(at).and_then(|part| part.first_unsure(side));
                let is_first = first.is_none_or(|first| first == attempt);
                (LateAnswer::NotDone(failure), 0, Some((false, None)).filter(|_| is_first))
            }
            CallOutcome::Maybe(failure) => (LateAnswer::Maybe(failure), 0, None),
        };
        let is_done = match &answer {
            LateAnswer::Done(_) => !in_doubt,
            LateAnswer::Maybe(failure) => failure.is_answer() && !in_doubt,
            LateAnswer::NotDone(_) => false,
        };
        let usable = matches!(answer, LateAnswer::Done(_));
        let effect = self.execution.late_effect(at, side, attempt, usable).filter(|_| is_done);
        let is_awaited = self.execution.is_awaited(at, effect);
        // An effect that is undone by one attempt is undone twice only if another one has done it too.
        let is_undoing =
            side == CallSide::Undo && self.execution.part_at(at).is_some_and(|part| attempt > part.undone_by);
        self.note(Event::LateAnswerArrived { part: part.clone(), side, attempt, answer, cost_micros, effect })?;
        if effect.is_some() && !is_undoing && !is_awaited {
            self.deviate_late(&part, side, attempt, effect)?;
        }
        if usable && effect.is_none() && !in_doubt {
            self.compare_by_hand(at, attempt)?;
        }
        if let Some((happened, result)) = settled.filter(|_| in_doubt) {
            let then = match refusal {
                Some(refusal) if !happened => self.after_late_not_done(at, side, &refusal),
                _ => AttemptFollowUp::GiveUp,
            };
            let reason = "the answer came after all".to_owned();
            let (source, twice) = (DoubtSource::LateAnswer, self.undone_twice(at, side, attempt).filter(|_| happened));
            let of = part.clone();
            self.follow(Event::DoubtSettled { part, side, happened, source, reason, result, evidence: None, then })?;
            if let Some(attempt) = twice {
                self.deviate_late(&of, side, attempt, None)?;
            }
        }
        Ok(())
    }

    /// Settles the doubts about attempts that repeat one which was answered "done".
    pub fn settle_answered(&mut self) -> RecordResult {
        for at in self.execution.agenda.doubts.clone() {
            let Some(answered) = self.execution.answered_before(at).cloned() else { continue };
            let AnsweredAttempt { side, attempt, result } = answered;
            let (part, source, then) = (self.execution.name(at), DoubtSource::LateAnswer, AttemptFollowUp::GiveUp);
            let reason = format!("attempt {attempt}, which has the same effect, was answered");
            let (happened, result) = (true, Some(result));
            self.follow(Event::DoubtSettled { part, side, happened, source, reason, result, evidence: None, then })?;
        }
        Ok(())
    }

    /// The other attempt that is known to have undone the effect which this one undoes.
    fn undone_twice(&self, at: PartPosition, side: CallSide, attempt: u32) -> Option<u32> {
        let known = self.execution.known_beside(at, side).filter(|_| side == CallSide::Undo)?;
        (known != attempt && !self.execution.is_undo_repeat(at, attempt)).then_some(known)
    }

    /// The follow-up of a doubt that ends with "it was not done": as if that had come in time.
    fn after_late_not_done(&self, at: PartPosition, side: CallSide, refusal: &ToolFailure) -> AttemptFollowUp {
        let execution = &*self.execution;
        let is_beside_undoing = side == CallSide::Undo && execution.phase != ExecutionPhase::Undoing;
        match execution.part_at(at).map(|part| (part, &part.state)) {
            Some((part, PartState::InDoubt { since, .. })) if !is_beside_undoing => {
                // The attempt was counted when it was closed.
                let tries = (part.failures + part.losses).max(1);
                match self.after_refusal(at, side, refusal, tries, *since) {
                    AttemptFollowUp::RetryAt(when) => AttemptFollowUp::RetryAt(when.max(self.now)),
                    then => then,
                }
            }
            _ => AttemptFollowUp::GiveUp,
        }
    }

    pub fn settle_by_person(
        &mut self,
        part: PartId,
        happened: bool,
        reason: String,
        result: Option<EventPayload>,
        evidence: EventPayload,
    ) -> RecordResult {
        let at = self.execution.locate(&part);
        let state = at.and_then(|at| self.execution.part_at(at)).map(|part| &part.state);
        let (Some(at), Some(PartState::InDoubt { side, attempt, .. })) = (at, state) else { return Ok(()) };
        let (side, attempt) = (*side, *attempt);
        let (of, twice) = (part.clone(), self.undone_twice(at, side, attempt).filter(|_| happened));
        // A person's statement permits sending it again, whatever the retry policy says.
        let then = match self.execution.phase {
            _ if happened || self.execution.took_effect_before(at, side) => AttemptFollowUp::GiveUp,
            ExecutionPhase::Forward | ExecutionPhase::Undoing => AttemptFollowUp::RetryAt(self.now),
            _ => self.after_not_happened(at, side),
        };
        let (source, evidence) = (DoubtSource::Person, Some(evidence));
        self.note(Event::DoubtSettled { part, side, happened, source, reason, result, evidence, then })?;
        twice.map_or(Ok(()), |attempt| self.deviate_late(&of, side, attempt, None))
    }

    /// Evaluates the answers of probes.
    pub fn evaluate_probes(&mut self) -> RecordResult {
        while let Some(at) = self.execution.agenda.to_evaluate.first().copied() {
            let part = self.execution.name(at);
            let Some(PartState::InDoubt { side, since, probing: ProbeProgress::Answered { answer, asked_at }, .. }) =
                self.execution.part_at(at).map(|part| part.state.clone())
            else {
                return Ok(());
            };
            let verdict = match answer.value() {
                Some(answer) => self.execution.evaluate_probe(at, answer),
                None => Err("its answer was erased".to_owned()),
            };
            let source = DoubtSource::Probe;
            let event = match verdict {
                Ok(Some(_)) if let Some(known) = self.execution.known_beside(at, side) => {
                    let reason =
                        format!("the probe found an effect, which may be that of attempt {known}: it is known by now");
                    Event::ProbeInconclusive { part, reason }
                }
                Ok(Some(result)) => {
                    let result = Some(EventPayload::Present(Arc::new(result)));
                    let reason = "the probe says that it happened".to_owned();
                    let then = AttemptFollowUp::GiveUp;
                    Event::DoubtSettled { part, side, happened: true, source, reason, result, evidence: None, then }
                }
                // A slow answer tells of the time when the probe was asked.
                Ok(None) if self.execution.settles_at(at, side, since) > asked_at => {
                    Event::ProbePostponed { part, until: self.execution.settles_at(at, side, since) }
                }
                Ok(None) => {
                    let then = self.after_not_happened(at, side);
                    let reason = "the probe says that it did not happen".to_owned();
                    Event::DoubtSettled {
                        part,
                        side,
                        happened: false,
                        source,
                        reason,
                        result: None,
                        evidence: None,
                        then,
                    }
                }
                Err(error) => {
                    Event::ProbeInconclusive { part, reason: format!("the probe's answer is inconclusive: {error}") }
                }
            };
            self.follow(event)?;
        }
        Ok(())
    }

    /// Starts probes for the parts in doubt, where the plan has one.
    pub fn probe(&mut self) -> RecordResult {
        if !self.execution.may_call() {
            return Ok(());
        }
        for at in self.due(super::agenda::TimerKind::RetryProbe) {
            self.start(at, CallSide::Probe)?;
        }
        for at in self.execution.agenda.to_probe.clone() {
            if self.execution.probe_of(at).is_some() {
                self.start(at, CallSide::Probe)?;
            } else {
                let (part, reason) = (self.execution.name(at), NO_PROBE.to_owned());
                self.follow(Event::ProbeInconclusive { part, reason })?;
            }
        }
        Ok(())
    }

    /// The follow-up of an attempt that failed; with `maybe`, it may have taken effect.
    fn after_failure(&self, at: PartPosition, side: CallSide, failure: &ToolFailure, maybe: bool) -> AttemptFollowUp {
        let execution = &*self.execution;
        let Some(part) = execution.part_at(at).filter(|_| execution.call_of(at, side).is_some()) else {
            return AttemptFollowUp::GiveUp;
        };
        // What is known of another attempt settles it at once.
        if side != CallSide::Probe && execution.answered_before(at).is_some() {
            return AttemptFollowUp::InDoubt;
        }
        if maybe && !execution.is_repeatable(at, side, self.now) {
            return AttemptFollowUp::InDoubt;
        }
        let failures = if side == CallSide::Probe { part.probe_failures } else { part.failures };
        let untouched = part.effect.is_none() && (!maybe || execution.is_read(at.step(), side));
        match self.after_refusal(at, side, failure, failures + 1, self.now) {
            AttemptFollowUp::FallBack if !untouched => AttemptFollowUp::GiveUp,
            then => then,
        }
    }

    /// The follow-up of the last of so many attempts, which ended at this time and had no effect.
    fn after_refusal(
        &self,
        at: PartPosition,
        side: CallSide,
        failure: &ToolFailure,
        tries: u32,
        ended_at: Timestamp,
    ) -> AttemptFollowUp {
        let execution = &*self.execution;
        let (Some(call), Some(part)) = (execution.call_of(at, side), execution.part_at(at)) else {
            return AttemptFollowUp::GiveUp;
        };
        let wanted = execution.is_wanted_again(at, side);
        let listed = call.retry.on.contains(&failure.category) && failure.category != FailureCategory::Cancelled;
        if wanted && listed && tries < call.retry.max_attempts {
            let seed = self.seed(at, side, part.attempts_of(side));
            let retry_at = ended_at.plus(delay(&call.retry, tries, seed, failure.retry_after));
            if side == CallSide::Undo || side == CallSide::Probe || !execution.is_out_of_time(at, retry_at) {
                return AttemptFollowUp::RetryAt(retry_at);
            }
        }
        match side == CallSide::Do && wanted && execution.plan.steps[at.step()].fallback.is_some() {
            true => AttemptFollowUp::FallBack,
            false => AttemptFollowUp::GiveUp,
        }
    }

    /// The follow-up of an attempt that was lost.
    pub fn after_loss(&self, at: PartPosition, side: CallSide) -> AttemptFollowUp {
        let execution = &*self.execution;
        let Some(part) = execution.part_at(at).filter(|_| execution.call_of(at, side).is_some()) else {
            return AttemptFollowUp::GiveUp;
        };
        let is_known = side != CallSide::Probe && execution.answered_before(at).is_some();
        if is_known || !execution.is_repeatable(at, side, self.now) {
            return AttemptFollowUp::InDoubt;
        }
        let wanted = execution.is_wanted_again(at, side);
        let losses = if side == CallSide::Probe { part.probe_losses } else { part.losses };
        if wanted && losses < limits::LOSSES_MAX { AttemptFollowUp::RetryAt(self.now) } else { AttemptFollowUp::GiveUp }
    }

    /// The follow-up of an attempt that is known to have had no effect.
    fn after_not_happened(&self, at: PartPosition, side: CallSide) -> AttemptFollowUp {
        let execution = &*self.execution;
        let (Some(call), Some(part)) = (execution.call_of(at, side), execution.part_at(at)) else {
            return AttemptFollowUp::GiveUp;
        };
        let wanted = execution.is_wanted_again(at, side)
            && (side != CallSide::Undo || execution.phase == ExecutionPhase::Undoing);
        if wanted && part.failures + part.losses < call.retry.max_attempts {
            return AttemptFollowUp::RetryAt(self.now);
        }
        let falls_back = side == CallSide::Do && wanted && execution.plan.steps[at.step()].fallback.is_some();
        if falls_back { AttemptFollowUp::FallBack } else { AttemptFollowUp::GiveUp }
    }

    /// Deterministic jitter: the same attempt always gets the same seed.
    fn seed(&self, at: PartPosition, side: CallSide, attempt: u32) -> u64 {
        let identity = &self.execution.identity;
        let hash = Hash::of_fields(
            "rutter/jitter/v1",
            &[
                identity.execution.as_str().as_bytes(),
                &at.step.to_be_bytes(),
                &at.item.to_be_bytes(),
                &[side as u8],
                &attempt.to_be_bytes(),
            ],
        );
        u64::from_be_bytes(hash.0[..8].try_into().expect("eight of thirty-two bytes"))
    }
}

/// The delay after the `tries`-th consecutive failure.
fn delay(retry: &RetryPolicy, tries: u32, seed: u64, retry_after: Option<Millis>) -> Millis {
    let initial = retry.initial.0 as f64;
    let tries = tries.max(1);
    let grown = match retry.backoff {
        BackoffStrategy::Fixed => initial,
        BackoffStrategy::Linear => initial * f64::from(tries),
        BackoffStrategy::Exponential => initial * retry.factor.powi(i32::try_from(tries - 1).unwrap_or(i32::MAX)),
    };
    let capped = grown.min(retry.max.0 as f64).max(0.0) as u64;
    let wait = if retry.jitter && capped > 0 { seed % (capped + 1) } else { capped };
    let asked = retry_after.unwrap_or_default().min(limits::BACKOFF_MAX);
    Millis(wait.max(asked.0))
}

impl Execution {
    /// Whether a call in flight is no longer wanted and should be cancelled.
    pub fn is_unwanted(&self, part: &PartId, side: CallSide, attempt: u32) -> bool {
        // Siblings of a failed step are not cancelled: their answers are needed to undo them.
        let stopping = matches!(self.phase, ExecutionPhase::Draining { outcome: ExecutionEnding::Cancelled, .. })
            && matches!(side, CallSide::Do | CallSide::Fallback);
        !self.is_under_way(part, side, attempt) || stopping
    }

    /// Whether another attempt is of use: unless the execution stops, or one is known to have taken effect.
    fn is_wanted_again(&self, at: PartPosition, side: CallSide) -> bool {
        let goes_on = matches!(side, CallSide::Undo | CallSide::Probe) || self.phase == ExecutionPhase::Forward;
        goes_on && !self.took_effect_before(at, side)
    }

    /// Whether the call of a side can be sent again without harm: not with a key that its tool may have forgotten.
    pub(super) fn is_repeatable(&self, at: PartPosition, side: CallSide, now: Timestamp) -> bool {
        let (Some(call), Some(part)) = (self.call_of(at, side), self.part_at(at)) else { return false };
        let is_forgotten = || part.key_since.is_some_and(|since| since.plus(call.key_window) <= now);
        call.is_repeatable() && !(call.safety == Safety::Once && side != CallSide::Probe && is_forgotten())
    }

    /// Whether the next attempt of a side would repeat a call that may have taken effect, with a forgotten key.
    pub(super) fn has_forgotten_key(&self, at: PartPosition, side: CallSide, now: Timestamp) -> bool {
        let may_repeat = |part: &StepPart| {
            part.key_unsure.is_some()
                && part.sent.as_ref().is_some_and(|(sent, _)| *sent == side)
                && part.attempts_of(side) > 0
        };
        let is_keyed = self.call_of(at, side).is_some_and(|call| call.keyed);
        is_keyed && self.part_at(at).is_some_and(may_repeat) && !self.is_repeatable(at, side, now)
    }

    /// How long a call of a side may act on after its time is up.
    pub(super) fn grace_of(&self, at: PartPosition, side: CallSide) -> Millis {
        let tool = self.call_of(at, side).and_then(|call| self.plan.tools.get(&call.tool));
        tool.and_then(|tool| tool.grace).unwrap_or_default()
    }

    /// When "it did not happen" counts for a doubt of this age.
    fn settles_at(&self, at: PartPosition, side: CallSide, since: Timestamp) -> Timestamp {
        let settle = self.probe_of(at).and_then(|probe| probe.settle);
        let timeout = || self.call_of(at, side).map_or(limits::ATTEMPT_TIMEOUT_DEFAULT, |call| call.timeout);
        since.plus(settle.unwrap_or_else(timeout).max(self.grace_of(at, side)))
    }

    /// Whether an attempt has started and is not closed.
    pub fn is_under_way(&self, part: &PartId, side: CallSide, attempt: u32) -> bool {
        self.attempt_under_way(part, side, attempt).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_grows_as_the_rule_says_and_never_beyond_its_bound() {
        let retry = |backoff| RetryPolicy { backoff, jitter: false, ..RetryPolicy::standard() };
        let waits = |backoff| [1, 2, 3, 10].map(|tries| delay(&retry(backoff), tries, 7, None).0);
        assert_eq!(waits(BackoffStrategy::Fixed), [1_000, 1_000, 1_000, 1_000]);
        assert_eq!(waits(BackoffStrategy::Linear), [1_000, 2_000, 3_000, 10_000]);
        assert_eq!(waits(BackoffStrategy::Exponential), [1_000, 2_000, 4_000, 60_000]);
    }

    #[test]
    fn jitter_is_the_same_each_time_and_stays_below_the_full_wait() {
        let retry = RetryPolicy::standard();
        for seed in [0, 1, 999, 1_000, 1_001, u64::MAX] {
            let wait = delay(&retry, 1, seed, None);
            assert_eq!(wait, delay(&retry, 1, seed, None));
            assert!(wait <= Millis(1_000));
        }
    }

    #[test]
    fn a_tool_that_asks_for_patience_gets_it_within_bounds() {
        let retry = RetryPolicy::standard();
        assert!(delay(&retry, 1, 3, Some(Millis::seconds(30))) >= Millis::seconds(30));
        assert_eq!(delay(&retry, 1, 3, Some(Millis::hours(99))), limits::BACKOFF_MAX);
    }
}
