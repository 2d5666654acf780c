//! The ends of attempts, their follow-ups, and how doubts are settled.

use super::agenda::PartPosition;
use super::decide::{DecisionDraft, RecordResult};
use super::part::{PartState, ProbeProgress};
use super::{Execution, ExecutionPhase};
use crate::hash::Hash;
use crate::id::PartId;
use crate::journal::event::{AttemptFollowUp, CallSide, DoubtSource, Event, ExecutionEnding, LateAnswer};
use crate::journal::payload::EventPayload;
use crate::limits;
use crate::plan::{BackoffStrategy, RetryPolicy};
use crate::time::{Millis, Timestamp};
use crate::tool::{CallOutcome, FailureCategory, ToolFailure};
use std::sync::Arc;

impl DecisionDraft<'_> {
    /// A tool answered, in time or late.
    pub fn returned(&mut self, part: PartId, side: CallSide, attempt: u32, outcome: CallOutcome) -> RecordResult {
        let Some(at) = self.execution.locate(&part) else { return Ok(()) };
        if !self.execution.is_under_way(&part, side, attempt) {
            return self.late(at, side, attempt, outcome);
        }
        match outcome {
            CallOutcome::Done { result, cost_micros } => self.follow(Event::AttemptSucceeded {
                part,
                side,
                attempt,
                result: EventPayload::Present(result),
                cost_micros,
            }),
            CallOutcome::NotDone(failure) => self.close(at, side, attempt, failure, false),
            CallOutcome::Maybe(failure) => self.close(at, side, attempt, failure, true),
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
        let (answer, cost_micros, settled) = match outcome {
            CallOutcome::Done { result, cost_micros } => {
                let result = EventPayload::Present(result);
                (LateAnswer::Done(result.clone()), cost_micros, Some((true, Some(result))))
            }
            // It says nothing of earlier attempts, which may have taken effect.
            CallOutcome::NotDone(failure) => {
                let effect =
                    self.execution.part_at(at).and_then(|part| part.effect).filter(|effect| effect.side == side);
                let is_first = effect.is_none_or(|effect| effect.attempt == attempt);
                (LateAnswer::NotDone(failure), 0, Some((false, None)).filter(|_| is_first))
            }
            CallOutcome::Maybe(failure) => (LateAnswer::Maybe(failure), 0, None),
        };
        self.note(Event::LateAnswerArrived { part: part.clone(), side, attempt, answer, cost_micros })?;
        if let Some((happened, result)) = settled.filter(|_| in_doubt) {
            let then = if happened { AttemptFollowUp::GiveUp } else { self.after_not_happened(at, side) };
            let reason = "the answer came after all".to_owned();
            let source = DoubtSource::LateAnswer;
            self.follow(Event::DoubtSettled { part, side, happened, source, reason, result, evidence: None, then })?;
        }
        Ok(())
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
        let (Some(at), Some(PartState::InDoubt { side, .. })) = (at, state) else { return Ok(()) };
        let side = *side;
        // A person's statement permits sending it again, whatever the retry policy says.
        let then = match self.execution.phase {
            _ if happened => AttemptFollowUp::GiveUp,
            ExecutionPhase::Forward | ExecutionPhase::Undoing => AttemptFollowUp::RetryAt(self.now),
            _ => self.after_not_happened(at, side),
        };
        let (source, evidence) = (DoubtSource::Person, Some(evidence));
        self.note(Event::DoubtSettled { part, side, happened, source, reason, result, evidence, then })
    }

    /// Evaluates the answers of probes.
    pub fn evaluate_probes(&mut self) -> RecordResult {
        while let Some(at) = self.execution.agenda.to_evaluate.first().copied() {
            let part = self.execution.name(at);
            let Some(PartState::InDoubt { side, probing: ProbeProgress::Answered(answer), .. }) =
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
                Ok(Some(result)) => {
                    let result = Some(EventPayload::Present(Arc::new(result)));
                    let reason = "the probe says that it happened".to_owned();
                    let then = AttemptFollowUp::GiveUp;
                    Event::DoubtSettled { part, side, happened: true, source, reason, result, evidence: None, then }
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
                let (part, reason) = (self.execution.name(at), "the plan has no probe for it".to_owned());
                self.follow(Event::ProbeInconclusive { part, reason })?;
            }
        }
        Ok(())
    }

    /// The follow-up of an attempt that failed; with `maybe`, it may have taken effect.
    fn after_failure(&self, at: PartPosition, side: CallSide, failure: &ToolFailure, maybe: bool) -> AttemptFollowUp {
        let execution = &*self.execution;
        let (Some(call), Some(part)) = (execution.call_of(at, side), execution.part_at(at)) else {
            return AttemptFollowUp::GiveUp;
        };
        if maybe && !call.is_repeatable() {
            return AttemptFollowUp::InDoubt;
        }
        let wanted = match side {
            CallSide::Do | CallSide::Fallback => execution.phase == ExecutionPhase::Forward,
            CallSide::Undo | CallSide::Probe => true,
        };
        let listed = call.retry.on.contains(&failure.category) && failure.category != FailureCategory::Cancelled;
        let tries = if side == CallSide::Probe { part.attempts_of(CallSide::Probe) } else { part.failures + 1 };
        if wanted && listed && tries < call.retry.max_attempts {
            let seed = self.seed(at, side, part.attempts_of(side));
            let retry_at = self.now.plus(delay(&call.retry, tries, seed, failure.retry_after));
            if side == CallSide::Undo || side == CallSide::Probe || !execution.is_out_of_time(at, retry_at) {
                return AttemptFollowUp::RetryAt(retry_at);
            }
        }
        let untouched = part.effect.is_none() && (!maybe || execution.is_read(at.step(), side));
        if side == CallSide::Do && wanted && untouched && execution.plan.steps[at.step()].fallback.is_some() {
            return AttemptFollowUp::FallBack;
        }
        AttemptFollowUp::GiveUp
    }

    /// The follow-up of an attempt that was lost.
    pub fn after_loss(&self, at: PartPosition, side: CallSide) -> AttemptFollowUp {
        let execution = &*self.execution;
        let (Some(call), Some(part)) = (execution.call_of(at, side), execution.part_at(at)) else {
            return AttemptFollowUp::GiveUp;
        };
        if !call.is_repeatable() {
            return AttemptFollowUp::InDoubt;
        }
        let wanted = match side {
            CallSide::Do | CallSide::Fallback => execution.phase == ExecutionPhase::Forward,
            CallSide::Undo | CallSide::Probe => true,
        };
        if wanted && part.losses < limits::LOSSES_MAX {
            AttemptFollowUp::RetryAt(self.now)
        } else {
            AttemptFollowUp::GiveUp
        }
    }

    /// The follow-up of an attempt that is known to have had no effect.
    fn after_not_happened(&self, at: PartPosition, side: CallSide) -> AttemptFollowUp {
        let execution = &*self.execution;
        let (Some(call), Some(part)) = (execution.call_of(at, side), execution.part_at(at)) else {
            return AttemptFollowUp::GiveUp;
        };
        let wanted = match side {
            CallSide::Do | CallSide::Fallback => execution.phase == ExecutionPhase::Forward,
            CallSide::Undo | CallSide::Probe => execution.phase == ExecutionPhase::Undoing,
        };
        if wanted && part.attempts_of(side) < call.retry.max_attempts {
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

    /// Whether an attempt has started and is not closed.
    pub fn is_under_way(&self, part: &PartId, side: CallSide, attempt: u32) -> bool {
        self.attempt_under_way(part, side, attempt).is_some()
    }

    /// Whether the deadline of all attempts of a part together has passed by then.
    pub(super) fn is_out_of_time(&self, at: PartPosition, when: Timestamp) -> bool {
        let total = self.plan.steps[at.step()].timeout_total;
        self.part_at(at).and_then(|part| part.ends_by(total)).is_some_and(|end| end <= when)
    }

    /// The deadline of an attempt that starts now.
    pub(super) fn attempt_deadline(&self, at: PartPosition, side: CallSide, now: Timestamp) -> Option<Timestamp> {
        self.call_of(at, side).map(|call| now.plus(call.timeout))
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
