//! Applies one event to the counts of its day and to the open executions.

use super::day::{CalendarDate, DailyTally};
use super::open::{OngoingWait, OpenExecution};
use super::steps::StepTally;
use super::tally::{ActivityTally, WaitCause};
use crate::id::{PartId, StepId, ToolName};
use crate::journal::attempts::{AttemptChange, AttemptEnd, ClosedAttempt};
use crate::journal::event::{
    AttemptFollowUp, CallSide, Event, ExecutionEnding, LateEffect, Question, QuestionAnswer, SkipReason,
};
use crate::plan::PolicyAction;
use crate::time::Timestamp;
use crate::tool::FailureCategory;

pub(super) struct EventCounter<'a> {
    pub at: Timestamp,
    pub day: &'a mut DailyTally,
    pub underway: &'a mut OpenExecution,
}

impl EventCounter<'_> {
    pub fn take<P>(&mut self, seq: u64, event: &Event<P>) {
        if let Some(AttemptChange::Closed(closed)) = self.underway.attempts.apply(seq, self.at, event) {
            self.attempt_ended(&closed);
        }
        match event {
            Event::ExecutionOpened { .. } => {
                self.underway.is_live = true;
                self.count(None, |tally| tally.opened += 1);
                self.day.hours.entry(CalendarDate::hour(self.at)).or_default().opened += 1;
            }
            Event::ApprovalRequested { .. }
            | Event::ApprovalGranted { .. }
            | Event::ApprovalDenied { .. }
            | Event::ApprovalExpired { .. }
            | Event::ApprovalVoided { .. } => self.approval(event),
            Event::AttemptStarted { part, side, attempt, tool, .. } => {
                self.attempt_started(part, *side, *attempt, tool);
            }
            Event::ToolAsked { part, side, .. } => {
                let tool = self.underway.attempts.find(part, *side).map(|open| open.tool.clone());
                self.wait(WaitCause::ToolQuestion, Some(part.clone()), tool);
            }
            Event::ToolAnswered { part, .. } => {
                self.end_wait(WaitCause::ToolQuestion, Some(part));
            }
            Event::LateAnswerArrived { part, side, cost_micros, effect, .. } => {
                self.count(None, |tally| {
                    tally.late_answers += 1;
                    tally.cost_micros = tally.cost_micros.saturating_add(*cost_micros);
                });
                match (side, effect) {
                    (CallSide::Undo, Some(LateEffect::Only)) => {
                        for cause in [WaitCause::Compensation, WaitCause::BackOff, WaitCause::Approval] {
                            self.end_wait(cause, Some(part));
                        }
                        self.count(None, |tally| tally.compensated += 1);
                    }
                    (CallSide::Undo, Some(LateEffect::Second)) => self.underway.undone_late.push(part.clone()),
                    // It would have been called again.
                    (CallSide::Do | CallSide::Fallback, Some(LateEffect::Only)) => {
                        let asked = self.end_wait(WaitCause::Approval, Some(part));
                        let tool = self.end_wait(WaitCause::BackOff, Some(part)).or(asked);
                        self.succeeded(part, *side, tool.as_ref());
                    }
                    _ => {}
                }
            }
            Event::PreparationFailed { part, side, failure } => {
                self.count(None, |tally| *tally.failures.entry(failure.category).or_default() += 1);
                self.abandoned(part, *side, failure.category);
            }
            Event::CallForbidden { part, side, .. } => {
                let category = FailureCategory::Unauthorized;
                self.count(None, |tally| *tally.failures.entry(category).or_default() += 1);
                self.abandoned(part, *side, category);
            }
            Event::RetryAbandoned { part, side, failure } => self.abandoned(part, *side, failure.category),
            Event::KeyExpired { part, side } => {
                self.end_wait(WaitCause::Approval, Some(part));
                let tool = self.end_wait(WaitCause::BackOff, Some(part));
                self.follow(part, *side, tool, AttemptFollowUp::InDoubt, None);
            }
            Event::DoubtSettled { part, side, happened, then, .. } => {
                self.end_wait(WaitCause::ToolQuestion, Some(part));
                let tool = self.end_wait(WaitCause::Doubt, Some(part));
                match happened {
                    true => self.succeeded(part, *side, tool.as_ref()),
                    false => self.follow(part, *side, tool, *then, None),
                }
            }
            Event::FanOutOpened { step, count, .. } => self.count_step(step, |tally| {
                tally.fanned_out += 1;
                tally.items += u64::from(*count);
            }),
            Event::StepsSkipped { steps, because } => {
                self.skipped(steps);
                if *because == SkipReason::Condition {
                    steps.iter().for_each(|step| self.count_step(step, |tally| tally.passed_over += 1));
                }
            }
            Event::FailureHandled { step, action, skipped, .. } => {
                self.count(None, |tally| tally.steps_failed += 1);
                self.skipped(skipped);
                match action {
                    PolicyAction::ManualDecision => {
                        self.wait(WaitCause::Failure, Some(PartId::whole(step.clone())), None);
                    }
                    PolicyAction::CancelAll | PolicyAction::Compensate => self.stop(),
                    PolicyAction::CancelDependent | PolicyAction::ContinueOthers => {}
                }
            }
            Event::QuestionAnswered { about, answer, skipped, .. } => {
                self.skipped(skipped);
                self.answered(about, *answer);
            }
            Event::LimitReached { limit, action } => {
                self.count(None, |tally| *tally.limits.entry(*limit).or_default() += 1);
                match action {
                    PolicyAction::ManualDecision => {
                        // A time limit may take the place of another limit that waits.
                        if !self.underway.waits_for(WaitCause::Limit, None) {
                            self.wait(WaitCause::Limit, None, None);
                        }
                    }
                    PolicyAction::CancelAll
                    | PolicyAction::CancelDependent
                    | PolicyAction::ContinueOthers
                    | PolicyAction::Compensate => self.stop(),
                }
            }
            Event::Paused { .. } => self.wait(WaitCause::Paused, None, None),
            Event::Held { .. } => {
                // It may be paused already.
                if !self.underway.waits_for(WaitCause::Paused, None) {
                    self.wait(WaitCause::Paused, None, None);
                }
            }
            Event::Resumed { .. } | Event::HoldEnded { .. } => {
                self.end_wait(WaitCause::Paused, None);
            }
            Event::CancelRequested { .. } => self.stop(),
            Event::Killed { .. } => self.end_everything(),
            Event::Reopened { held, .. } => {
                self.underway.again |= !self.underway.is_live;
                self.underway.is_live = true;
                for step in held {
                    self.wait(WaitCause::Failure, Some(PartId::whole(step.clone())), None);
                }
            }
            Event::CompensationStarted { .. } => {
                self.count(None, |tally| tally.compensations += 1);
                self.underway.again |= !self.underway.is_live;
                self.underway.is_live = true;
            }
            Event::CompensationRecorded { part, .. } => {
                self.count(None, |tally| tally.compensated += 1);
                self.end_wait(WaitCause::Compensation, Some(part));
                self.end_wait(WaitCause::BackOff, Some(part));
                self.end_wait(WaitCause::Approval, Some(part));
            }
            Event::ReplanBegun { .. } => self.wait(WaitCause::Replanning, None, None),
            Event::ReplanAbandoned { .. } | Event::ReplanProposed { .. } => {
                self.end_wait(WaitCause::Replanning, None);
            }
            Event::Replanned { .. } => self.replanned(),
            Event::HandedOver { .. } => self.count(None, |tally| tally.handovers += 1),
            Event::ToolDrifted { tool, .. } => {
                self.count(Some(tool), |tally| tally.drifts += 1);
                self.end_waits(|wait| wait.cause == WaitCause::Drift && wait.tool.as_ref() == Some(tool));
                self.wait(WaitCause::Drift, None, Some(tool.clone()));
            }
            Event::ToolRestored { tool, .. } | Event::ToolAccepted { tool, .. } => {
                self.end_waits(|wait| wait.cause == WaitCause::Drift && wait.tool.as_ref() == Some(tool));
            }
            Event::DecisionRecorded { .. } => self.count(None, |tally| tally.decisions += 1),
            Event::ActionRecorded { .. } => self.count(None, |tally| tally.actions += 1),
            Event::DeviationFound { kind, .. } => {
                self.count(None, |tally| *tally.deviations.entry(*kind).or_default() += 1);
            }
            Event::ExecutionEnded { outcome, .. } => self.ended(*outcome),
            // Their ends are counted above.
            Event::AttemptSucceeded { .. } | Event::AttemptFailed { .. } | Event::AttemptLost { .. } => {}
            Event::ExecutionStarted {}
            | Event::AttemptAccepted { .. }
            | Event::ProbeInconclusive { .. }
            | Event::CallDelayed { .. }
            | Event::ReplanRejected { .. }
            | Event::ProbePostponed { .. }
            | Event::SettlementCorrected { .. }
            | Event::AgentSeen {}
            | Event::AgentSilent { .. }
            | Event::ContextSaved { .. }
            | Event::PlanSaved { .. }
            | Event::PayloadsErased { .. }
            | Event::ExecutionsRemoved { .. }
            | Event::LedgerRestored { .. }
            | Event::SettingChanged { .. }
            | Event::ActRefused { .. } => {}
        }
    }

    fn approval<P>(&mut self, event: &Event<P>) {
        match event {
            Event::ApprovalRequested { part, tool, side, .. } => {
                self.underway.undo_asked.retain(|asked| asked != part);
                if *side == CallSide::Undo {
                    self.underway.undo_asked.push(part.clone());
                }
                self.count(Some(tool), |tally| tally.approvals.asked += 1);
                self.end_wait(WaitCause::BackOff, Some(part));
                self.wait(WaitCause::Approval, Some(part.clone()), Some(tool.clone()));
            }
            Event::ApprovalGranted { part, .. } => {
                let tool = self.end_wait(WaitCause::Approval, Some(part));
                self.count(tool.as_ref(), |tally| tally.approvals.granted += 1);
            }
            Event::ApprovalDenied { part, .. } => {
                let tool = self.end_wait(WaitCause::Approval, Some(part));
                self.count(tool.as_ref(), |tally| tally.approvals.denied += 1);
                self.not_approved(part, tool);
            }
            Event::ApprovalExpired { part, .. } => {
                let tool = self.end_wait(WaitCause::Approval, Some(part));
                self.count(tool.as_ref(), |tally| tally.approvals.expired += 1);
                self.not_approved(part, tool);
            }
            Event::ApprovalVoided { part, .. } => {
                let tool = self.end_wait(WaitCause::Approval, Some(part));
                self.count(tool.as_ref(), |tally| tally.approvals.voided += 1);
            }
            _ => {}
        }
    }

    /// A person said no, or nothing: the step has failed, or its compensation.
    fn not_approved(&mut self, part: &PartId, tool: Option<ToolName>) {
        if self.underway.undo_asked.contains(part) {
            self.given_up(part, CallSide::Undo, tool, None);
        } else {
            self.blame(part, None);
            self.underway.leave_off(part);
        }
    }

    fn attempt_started(&mut self, part: &PartId, side: CallSide, attempt: u32, tool: &ToolName) {
        let is_retry = attempt > 1 && side != CallSide::Probe;
        self.count(Some(tool), |tally| {
            *tally.attempts.entry(side).or_default() += 1;
            tally.retries += u64::from(is_retry);
        });
        self.end_wait(WaitCause::Approval, Some(part));
        self.end_wait(WaitCause::BackOff, Some(part));
        self.underway.steps += u64::from(side == CallSide::Do && attempt == 1);
        let goes_forward = matches!(side, CallSide::Do | CallSide::Fallback);
        if goes_forward {
            self.underway.undone_late.retain(|undone| undone != part);
        }
        if goes_forward && !self.underway.begun.iter().any(|(begun, _)| begun == part) {
            self.underway.begun.push((part.clone(), self.at));
        }
    }

    fn attempt_ended(&mut self, closed: &ClosedAttempt) {
        let (part, side, tool) = (&closed.key.part, closed.key.side, closed.tool());
        self.end_wait(WaitCause::ToolQuestion, Some(part));
        let is_answered = matches!(closed.end, AttemptEnd::Succeeded { .. } | AttemptEnd::Failed { .. });
        if let Some(took) = closed.took().filter(|_| is_answered) {
            self.count(tool, |tally| tally.attempt_ms.record(took.0));
        }
        match &closed.end {
            AttemptEnd::Succeeded { cost_micros } => {
                self.count(tool, |tally| {
                    tally.succeeded += 1;
                    tally.cost_micros = tally.cost_micros.saturating_add(*cost_micros);
                });
                self.succeeded(part, side, tool);
            }
            AttemptEnd::Failed { failure, then, .. } => {
                self.count(tool, |tally| *tally.failures.entry(failure.category).or_default() += 1);
                self.follow(part, side, tool.cloned(), *then, Some(failure.category));
            }
            AttemptEnd::Lost { then } => {
                self.count(tool, |tally| tally.lost += 1);
                self.follow(part, side, tool.cloned(), *then, None);
            }
            AttemptEnd::Abandoned => {}
        }
    }

    /// The call took effect, according to an answer or a settled doubt.
    fn succeeded(&mut self, part: &PartId, side: CallSide, tool: Option<&ToolName>) {
        match side {
            CallSide::Do | CallSide::Fallback => {
                if let Some(since) = self.underway.leave_off(part) {
                    let took_ms = self.at.since(since).0;
                    self.count(tool, |tally| tally.step_ms.record(took_ms));
                    self.count_step(&part.step, |tally| tally.took_ms.record(took_ms));
                }
            }
            CallSide::Undo => {
                self.underway.undone_late.retain(|undone| undone != part);
                self.count(tool, |tally| tally.compensated += 1);
            }
            CallSide::Probe => {}
        }
    }

    /// Counts a final failure that was not requested; `tool` is `None` if a person caused it.
    fn blame(&mut self, part: &PartId, tool: Option<&ToolName>) {
        self.count_step(&part.step, |tally| tally.failed += 1);
        if let Some(tool) = tool {
            self.day.tools.of(tool.as_str()).steps_failed += 1;
        }
    }

    /// Handles the follow-up of an attempt that did not succeed.
    fn follow(
        &mut self,
        part: &PartId,
        side: CallSide,
        tool: Option<ToolName>,
        then: AttemptFollowUp,
        category: Option<FailureCategory>,
    ) {
        if side == CallSide::Probe {
            return;
        }
        match then {
            AttemptFollowUp::RetryAt(_) | AttemptFollowUp::FallBack => {
                self.wait(WaitCause::BackOff, Some(part.clone()), tool)
            }
            AttemptFollowUp::InDoubt => {
                self.count(tool.as_ref(), |tally| tally.doubts += 1);
                self.wait(WaitCause::Doubt, Some(part.clone()), tool);
            }
            // Another attempt has undone it.
            AttemptFollowUp::GiveUp if side == CallSide::Undo && self.underway.undone_late.contains(part) => {
                self.succeeded(part, side, tool.as_ref());
            }
            AttemptFollowUp::GiveUp => self.given_up(part, side, tool, category),
            // The wait for its tool is on record, and is not the step's own time.
            AttemptFollowUp::Withdrawn if side == CallSide::Undo => {}
            AttemptFollowUp::Withdrawn => _ = self.underway.leave_off(part),
        }
    }

    /// No further attempt is made.
    fn abandoned(&mut self, part: &PartId, side: CallSide, category: FailureCategory) {
        self.end_wait(WaitCause::Approval, Some(part));
        let tool = self.end_wait(WaitCause::BackOff, Some(part));
        self.given_up(part, side, tool, Some(category));
    }

    fn given_up(&mut self, part: &PartId, side: CallSide, tool: Option<ToolName>, category: Option<FailureCategory>) {
        match side {
            CallSide::Do | CallSide::Fallback => {
                if category != Some(FailureCategory::Cancelled) {
                    self.blame(part, tool.as_ref());
                }
                self.underway.leave_off(part);
            }
            CallSide::Undo => {
                self.count(tool.as_ref(), |tally| tally.compensations_failed += 1);
                self.wait(WaitCause::Compensation, Some(part.clone()), tool);
            }
            CallSide::Probe => {}
        }
    }

    fn answered(&mut self, about: &Question, answer: QuestionAnswer) {
        let stops = matches!(answer, QuestionAnswer::Stop | QuestionAnswer::Compensate);
        match about {
            Question::Failure(_) | Question::Limit(_) | Question::Silence if stops => self.stop(),
            Question::Silence => {}
            // The question stays open until the new plan arrives.
            Question::Failure(_) | Question::Limit(_) if answer == QuestionAnswer::Replan => {
                self.wait(WaitCause::Replanning, None, None);
            }
            Question::Failure(step) => {
                self.end_wait(WaitCause::Failure, Some(&PartId::whole(step.clone())));
            }
            // Whether the step still waits is not known from one item; if it does, its failure is handled again.
            Question::Item(part) => {
                if answer == QuestionAnswer::Retry {
                    self.end_wait(WaitCause::Failure, Some(&PartId::whole(part.step.clone())));
                }
            }
            Question::Limit(_) => {
                self.end_wait(WaitCause::Limit, None);
            }
            Question::SecondEffect(_) => {}
            Question::Compensation(part) => {
                self.end_wait(WaitCause::Compensation, Some(part));
                let by_hand = u64::from(answer == QuestionAnswer::Resolve);
                self.count(None, |tally| tally.compensated += by_hand);
            }
        }
    }

    fn skipped(&mut self, steps: &[StepId]) {
        self.count(None, |tally| tally.steps_skipped += steps.len() as u64);
    }

    /// Nothing new starts: waits for approvals, decisions and retries end.
    fn stop(&mut self) {
        self.end_waits(|wait| match wait.cause {
            WaitCause::Approval
            | WaitCause::Failure
            | WaitCause::Limit
            | WaitCause::Replanning
            | WaitCause::BackOff => true,
            WaitCause::Compensation
            | WaitCause::Doubt
            | WaitCause::Drift
            | WaitCause::ToolQuestion
            | WaitCause::Paused => false,
        });
        self.underway.leave_off_the_rest();
    }

    /// A new plan ends the questions of the old one. Which of its steps continue is not known here.
    fn replanned(&mut self) {
        self.count(None, |tally| tally.replans += 1);
        self.end_waits(|wait| match wait.cause {
            WaitCause::Failure | WaitCause::Limit | WaitCause::Drift | WaitCause::Replanning | WaitCause::BackOff => {
                true
            }
            WaitCause::Approval
            | WaitCause::Compensation
            | WaitCause::Doubt
            | WaitCause::ToolQuestion
            | WaitCause::Paused => false,
        });
        self.underway.leave_off_the_rest();
    }

    fn ended(&mut self, outcome: ExecutionEnding) {
        self.end_everything();
        self.underway.is_live = false;
        if self.underway.again {
            return self.count(None, |tally| tally.ended_again += 1);
        }
        let took_ms = self.at.since(self.underway.origin.opened_at).0;
        let steps = self.underway.steps;
        self.count(None, |tally| {
            *tally.ended.of(outcome) += 1;
            tally.duration_ms.record(took_ms);
            tally.steps.record(steps);
        });
        *self.day.hours.entry(CalendarDate::hour(self.at)).or_default().ended.of(outcome) += 1;
    }

    fn end_everything(&mut self) {
        self.end_waits(|_| true);
        self.underway.begun.clear();
    }

    /// Changes the tallies of the plan, the driver, and the tool if known.
    fn count(&mut self, tool: Option<&ToolName>, change: impl Fn(&mut ActivityTally)) {
        change(self.day.plans.of(&self.underway.origin.plan));
        change(self.day.of(self.underway.origin.driver));
        if let Some(tool) = tool {
            change(self.day.tools.of(tool.as_str()));
        }
    }

    fn count_step(&mut self, step: &StepId, change: impl FnOnce(&mut StepTally)) {
        self.day.steps.count(&self.underway.origin.plan, step, change);
    }

    fn wait(&mut self, cause: WaitCause, part: Option<PartId>, tool: Option<ToolName>) {
        if cause == WaitCause::Drift || !self.underway.waits_for(cause, part.as_ref()) {
            self.underway.waits.push(OngoingWait { cause, part, tool, since: self.at });
        }
    }

    /// Ends a wait; returns the tool of the call that waited.
    fn end_wait(&mut self, cause: WaitCause, part: Option<&PartId>) -> Option<ToolName> {
        self.end_waits(|wait| wait.cause == cause && wait.part.as_ref() == part)
    }

    fn end_waits(&mut self, is_over: impl Fn(&OngoingWait) -> bool) -> Option<ToolName> {
        let mut tool = None;
        for wait in self.underway.end_waits(is_over) {
            let waited_ms = self.at.since(wait.since).0;
            self.count(wait.tool.as_ref(), |tally| {
                tally.waits_ms.entry(wait.cause).or_default().record(waited_ms);
            });
            if let (WaitCause::Approval, Some(part)) = (wait.cause, &wait.part) {
                self.count_step(&part.step, |tally| tally.asked_ms.record(waited_ms));
            }
            tool = wait.tool;
        }
        tool
    }
}
