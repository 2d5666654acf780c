//! How attempts end, what that leads to, and how doubt is settled.

use super::agenda::PartAt;
use super::decide::{Draft, Recorded};
use super::part::{PartState, Probing};
use super::{Execution, Phase};
use crate::hash::Hash;
use crate::id::PartId;
use crate::journal::event::{DoubtSource, EndedAs, Event, LateAnswer, Side, Then};
use crate::journal::payload::Payload;
use crate::limits;
use crate::mutation::Mutation;
use crate::plan::{Backoff, Retry};
use crate::time::{Millis, Timestamp};
use crate::tool::{Category, Failure, Outcome};
use std::sync::Arc;

impl Draft<'_> {
    /// A tool answered, in time or not.
    pub fn returned(&mut self, part: PartId, side: Side, attempt: u32, outcome: Outcome) -> Recorded {
        let Some(at) = self.execution.locate(&part) else { return Ok(()) };
        let expected =
            self.running_attempt(at).is_some_and(|running| (running.side, running.number) == (side, attempt));
        if !expected {
            return self.late(at, side, attempt, outcome);
        }
        match outcome {
            Outcome::Done { result, cost_micros } => self.follow(Event::AttemptSucceeded {
                part,
                side,
                attempt,
                result: Payload::Present(result),
                cost_micros,
            }),
            Outcome::NotDone(failure) => self.close(at, side, attempt, failure, false),
            Outcome::Maybe(failure) => self.close(at, side, attempt, failure, true),
        }
    }

    /// Closes an attempt that did not answer: it may have happened.
    pub fn close_running(&mut self, at: PartAt, failure: Failure) -> Recorded {
        match self.running_attempt(at) {
            Some(attempt) => self.close(at, attempt.side, attempt.number, failure, true),
            None => Ok(()),
        }
    }

    pub fn close(&mut self, at: PartAt, side: Side, attempt: u32, failure: Failure, maybe: bool) -> Recorded {
        let then = self.after_failure(at, side, &failure, maybe);
        let part = self.execution.name(at);
        self.follow(Event::AttemptFailed { part, side, attempt, failure, maybe, then })
    }

    /// An answer to a closed attempt is kept, and may settle the doubt about that very attempt; nothing else.
    fn late(&mut self, at: PartAt, side: Side, attempt: u32, outcome: Outcome) -> Recorded {
        let part = self.execution.name(at);
        let in_doubt = matches!(
            self.execution.part_at(at).map(|part| &part.state),
            Some(PartState::InDoubt { side: doubted, attempt: number, .. }) if (*doubted, *number) == (side, attempt)
        );
        let (answer, cost_micros, settled) = match outcome {
            Outcome::Done { result, cost_micros } => {
                let result = Payload::Present(result);
                (LateAnswer::Done(result.clone()), cost_micros, Some((true, Some(result))))
            }
            Outcome::NotDone(failure) => (LateAnswer::NotDone(failure), 0, Some((false, None))),
            Outcome::Maybe(failure) => (LateAnswer::Maybe(failure), 0, None),
        };
        self.follow(Event::LateAnswerArrived { part: part.clone(), side, attempt, answer, cost_micros })?;
        if let Some((happened, result)) = settled.filter(|_| in_doubt) {
            let then = if happened { Then::GiveUp } else { self.after_not_happened(at, side) };
            let reason = "the answer came after all".to_owned();
            let source = DoubtSource::LateAnswer;
            self.follow(Event::DoubtSettled {
                part,
                side,
                happened,
                source,
                reason,
                result,
                evidence: None,
                then,
            })?;
        }
        Ok(())
    }

    pub fn settle_by_person(
        &mut self,
        part: PartId,
        happened: bool,
        reason: String,
        result: Option<Payload>,
        evidence: Payload,
    ) -> Recorded {
        let at = self.execution.locate(&part);
        let state = at.and_then(|at| self.execution.part_at(at)).map(|part| &part.state);
        let (Some(at), Some(PartState::InDoubt { side, .. })) = (at, state) else { return Ok(()) };
        let side = *side;
        // A person's word is the permission to send it again, whatever the retry rule says.
        let then = match self.execution.phase {
            _ if happened => Then::GiveUp,
            Phase::Forward | Phase::Undoing => Then::RetryAt(self.now),
            _ => self.after_not_happened(at, side),
        };
        let (source, evidence) = (DoubtSource::Person, Some(evidence));
        self.note(Event::DoubtSettled { part, side, happened, source, reason, result, evidence, then })
    }

    /// Judges the probes that have answered.
    pub fn judge_probes(&mut self) -> Recorded {
        while let Some(at) = self.execution.agenda.to_judge.first().copied() {
            let part = self.execution.name(at);
            let Some(PartState::InDoubt { side, probing: Probing::Answered(answer), .. }) =
                self.execution.part_at(at).map(|part| part.state.clone())
            else {
                return Ok(());
            };
            let verdict = match answer.value() {
                Some(answer) => self.execution.judge(at, answer).map_err(|error| error.to_string()),
                None => Err("its answer was erased".to_owned()),
            };
            let source = DoubtSource::Probe;
            let event = match verdict {
                Ok(Some(result)) => {
                    let result = Some(Payload::Present(Arc::new(result)));
                    let reason = "the probe says that it happened".to_owned();
                    let then = Then::GiveUp;
                    Event::DoubtSettled {
                        part,
                        side,
                        happened: true,
                        source,
                        reason,
                        result,
                        evidence: None,
                        then,
                    }
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
                Err(error) => Event::ProbeInconclusive {
                    part,
                    reason: format!("the probe's answer does not tell: {error}"),
                },
            };
            self.follow(event)?;
        }
        Ok(())
    }

    /// Asks the world about what is in doubt, where the plan says how.
    pub fn probe(&mut self) -> Recorded {
        if !self.execution.may_call() {
            return Ok(());
        }
        for at in self.due(super::agenda::Timer::RetryProbe) {
            self.start(at, Side::Probe)?;
        }
        for at in self.execution.agenda.to_probe.clone() {
            if self.execution.probe_of(at).is_some() {
                self.start(at, Side::Probe)?;
            } else {
                let (part, reason) = (self.execution.name(at), "the plan has no probe for it".to_owned());
                self.follow(Event::ProbeInconclusive { part, reason })?;
            }
        }
        Ok(())
    }

    /// What follows an attempt that failed or, with `maybe`, perhaps did not.
    fn after_failure(&self, at: PartAt, side: Side, failure: &Failure, maybe: bool) -> Then {
        let execution = &*self.execution;
        let (Some(call), Some(part)) = (execution.call_of(at, side), execution.part_at(at)) else {
            return Then::GiveUp;
        };
        let repeatable = call.is_repeatable() || (maybe && Mutation::RetryOnceAfterLostAnswer.is_active());
        if maybe && !repeatable {
            return Then::InDoubt;
        }
        let wanted = match side {
            Side::Do | Side::Fallback => execution.phase == Phase::Forward,
            Side::Undo | Side::Probe => true,
        };
        let listed = call.retry.on.contains(&failure.category) && failure.category != Category::Cancelled;
        let tries = if side == Side::Probe { part.attempts_of(Side::Probe) } else { part.failures + 1 };
        if wanted && listed && tries < call.retry.max_attempts {
            let seed = self.seed(at, side, part.attempts_of(side));
            let retry_at = self.now.plus(delay(&call.retry, tries, seed, failure.retry_after));
            let step = &execution.plan.steps[at.step()];
            let total = step.timeout_total.zip(part.began_at).map(|(span, began)| began.plus(span));
            if side == Side::Undo || side == Side::Probe || total.is_none_or(|total| retry_at < total) {
                return Then::RetryAt(retry_at);
            }
        }
        let untouched = (part.effect.is_none() && !maybe) || Mutation::FallbackAfterMaybe.is_active();
        if side == Side::Do && wanted && untouched && execution.plan.steps[at.step()].fallback.is_some() {
            return Then::FallBack;
        }
        Then::GiveUp
    }

    /// What follows an attempt nobody will ever answer for.
    pub fn after_loss(&self, at: PartAt, side: Side) -> Then {
        let execution = &*self.execution;
        let (Some(call), Some(part)) = (execution.call_of(at, side), execution.part_at(at)) else {
            return Then::GiveUp;
        };
        if !call.is_repeatable() && !Mutation::RetryOnceAfterCrash.is_active() {
            return Then::InDoubt;
        }
        let wanted = match side {
            Side::Do | Side::Fallback => execution.phase == Phase::Forward,
            Side::Undo | Side::Probe => true,
        };
        if wanted && part.losses < limits::LOSSES_MAX { Then::RetryAt(self.now) } else { Then::GiveUp }
    }

    /// What follows once it is known that an attempt had no effect.
    fn after_not_happened(&self, at: PartAt, side: Side) -> Then {
        let execution = &*self.execution;
        let (Some(call), Some(part)) = (execution.call_of(at, side), execution.part_at(at)) else {
            return Then::GiveUp;
        };
        let wanted = match side {
            Side::Do | Side::Fallback => execution.phase == Phase::Forward,
            Side::Undo | Side::Probe => execution.phase == Phase::Undoing,
        };
        if wanted && part.attempts_of(side) < call.retry.max_attempts {
            return Then::RetryAt(self.now);
        }
        let falls_back = side == Side::Do && wanted && execution.plan.steps[at.step()].fallback.is_some();
        if falls_back { Then::FallBack } else { Then::GiveUp }
    }

    /// Chance without randomness: the same for the same attempt, however often it is worked out.
    fn seed(&self, at: PartAt, side: Side, attempt: u32) -> u64 {
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

/// How long to wait after the `tries`-th failure in a row.
fn delay(retry: &Retry, tries: u32, seed: u64, retry_after: Option<Millis>) -> Millis {
    let initial = retry.initial.0 as f64;
    let tries = tries.max(1);
    let grown = match retry.backoff {
        Backoff::Fixed => initial,
        Backoff::Linear => initial * f64::from(tries),
        Backoff::Exponential => initial * retry.factor.powi(i32::try_from(tries - 1).unwrap_or(i32::MAX)),
    };
    let capped = grown.min(retry.max.0 as f64).max(0.0) as u64;
    let wait = if retry.jitter && capped > 0 { seed % (capped + 1) } else { capped };
    let asked = retry_after.unwrap_or_default().min(limits::BACKOFF_MAX);
    Millis(wait.max(asked.0))
}

impl Execution {
    /// Whether a call that is being made is no longer wanted: whoever makes it should cancel it.
    pub fn is_unwanted(&self, part: &PartId, side: Side, attempt: u32) -> bool {
        let running = self.part(part).and_then(|part| part.running());
        let running = running.is_some_and(|running| (running.side, running.number) == (side, attempt));
        // Siblings of a failed step come to their end: what they answer is needed to undo them.
        let stopping = matches!(self.phase, Phase::Draining { outcome: EndedAs::Cancelled, .. })
            && matches!(side, Side::Do | Side::Fallback);
        !running || stopping
    }

    /// The deadline of an attempt that starts now.
    pub(super) fn attempt_deadline(&self, at: PartAt, side: Side, now: Timestamp) -> Option<Timestamp> {
        self.call_of(at, side).map(|call| now.plus(call.timeout))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_grows_as_the_rule_says_and_never_beyond_its_bound() {
        let retry = |backoff| Retry { backoff, jitter: false, ..Retry::standard() };
        let waits = |backoff| [1, 2, 3, 10].map(|tries| delay(&retry(backoff), tries, 7, None).0);
        assert_eq!(waits(Backoff::Fixed), [1_000, 1_000, 1_000, 1_000]);
        assert_eq!(waits(Backoff::Linear), [1_000, 2_000, 3_000, 10_000]);
        assert_eq!(waits(Backoff::Exponential), [1_000, 2_000, 4_000, 60_000]);
    }

    #[test]
    fn jitter_is_the_same_each_time_and_stays_below_the_full_wait() {
        let retry = Retry::standard();
        for seed in [0, 1, 999, 1_000, 1_001, u64::MAX] {
            let wait = delay(&retry, 1, seed, None);
            assert_eq!(wait, delay(&retry, 1, seed, None));
            assert!(wait <= Millis(1_000));
        }
    }

    #[test]
    fn a_tool_that_asks_for_patience_gets_it_within_bounds() {
        let retry = Retry::standard();
        assert!(delay(&retry, 1, 3, Some(Millis::seconds(30))) >= Millis::seconds(30));
        assert_eq!(delay(&retry, 1, 3, Some(Millis::hours(99))), limits::BACKOFF_MAX);
    }
}
