//! What one event adds to the counts of its day, and what it begins or ends.

use super::day::{Date, Day};
use super::open::{Running, Underway, Wait};
use super::steps::StepTally;
use super::tally::{Cause, Tally};
use crate::id::{PartId, StepId, ToolName};
use crate::journal::event::{Answer, EndedAs, Event, Question, Side, SkipReason, Then};
use crate::plan::PolicyAction;
use crate::time::Timestamp;
use crate::tool::Category;

pub(super) struct Scribe<'a> {
    pub at: Timestamp,
    pub day: &'a mut Day,
    pub underway: &'a mut Underway,
}

impl Scribe<'_> {
    pub fn take<P>(&mut self, event: &Event<P>) {
        match event {
            Event::ExecutionOpened { .. } => {
                self.underway.is_live = true;
                self.count(None, |tally| tally.opened += 1);
                self.day.hours.entry(Date::hour(self.at)).or_default().opened += 1;
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
                let of = |running: &&Running| running.side == *side && running.part == *part;
                let tool = self.underway.attempts.iter().find(of).map(|running| running.tool.clone());
                self.wait(Cause::ToolQuestion, Some(part.clone()), tool);
            }
            Event::ToolAnswered { part, .. } => {
                self.end_wait(Cause::ToolQuestion, Some(part));
            }
            Event::AttemptSucceeded { part, side, cost_micros, .. } => {
                let tool = self.attempt_ended(part, *side, true);
                self.count(tool.as_ref(), |tally| {
                    tally.succeeded += 1;
                    tally.cost_micros = tally.cost_micros.saturating_add(*cost_micros);
                });
                self.succeeded(part, *side, tool.as_ref());
            }
            Event::AttemptFailed { part, side, failure, then, .. } => {
                let tool = self.attempt_ended(part, *side, true);
                self.count(tool.as_ref(), |tally| *tally.failures.entry(failure.category).or_default() += 1);
                self.follow(part, *side, tool, *then, Some(failure.category));
            }
            Event::AttemptLost { part, side, then, .. } => {
                let tool = self.attempt_ended(part, *side, false);
                self.count(tool.as_ref(), |tally| tally.lost += 1);
                self.follow(part, *side, tool, *then, None);
            }
            Event::LateAnswerArrived { cost_micros, .. } => self.count(None, |tally| {
                tally.late_answers += 1;
                tally.cost_micros = tally.cost_micros.saturating_add(*cost_micros);
            }),
            Event::PreparationFailed { part, side, failure } => {
                self.count(None, |tally| *tally.failures.entry(failure.category).or_default() += 1);
                self.abandoned(part, *side, failure.category);
            }
            Event::RetryAbandoned { part, side, failure } => self.abandoned(part, *side, failure.category),
            Event::DoubtSettled { part, side, happened, then, .. } => {
                // Nobody listens any more to a probe that is under way.
                self.attempt_ended(part, Side::Probe, false);
                let tool = self.end_wait(Cause::Doubt, Some(part));
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
                        self.wait(Cause::Failure, Some(PartId::whole(step.clone())), None);
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
                    PolicyAction::ManualDecision => self.wait(Cause::Limit, None, None),
                    PolicyAction::CancelAll
                    | PolicyAction::CancelDependent
                    | PolicyAction::ContinueOthers
                    | PolicyAction::Compensate => self.stop(),
                }
            }
            Event::Paused { .. } => self.wait(Cause::Paused, None, None),
            Event::Resumed { .. } => {
                self.end_wait(Cause::Paused, None);
            }
            Event::CancelRequested { .. } => self.stop(),
            Event::Killed { .. } => self.end_everything(),
            Event::CompensationStarted { .. } => {
                self.count(None, |tally| tally.compensations += 1);
                self.underway.again |= !self.underway.is_live;
                self.underway.is_live = true;
            }
            Event::CompensationRecorded { part, .. } => {
                self.count(None, |tally| tally.compensated += 1);
                self.end_wait(Cause::Compensation, Some(part));
                self.end_wait(Cause::BackOff, Some(part));
            }
            Event::ReplanBegun { .. } => self.wait(Cause::Replanning, None, None),
            Event::ReplanAbandoned { .. } => {
                self.end_wait(Cause::Replanning, None);
            }
            Event::Replanned { .. } => self.replanned(),
            Event::HandedOver { .. } => self.count(None, |tally| tally.handovers += 1),
            Event::ToolDrifted { tool, .. } => {
                self.count(Some(tool), |tally| tally.drifts += 1);
                self.end_waits(|wait| wait.cause == Cause::Drift && wait.tool.as_ref() == Some(tool));
                self.wait(Cause::Drift, None, Some(tool.clone()));
            }
            Event::ToolAccepted { tool, .. } => {
                self.end_waits(|wait| wait.cause == Cause::Drift && wait.tool.as_ref() == Some(tool));
            }
            Event::DecisionRecorded { .. } => self.count(None, |tally| tally.decisions += 1),
            Event::ActionRecorded { .. } => self.count(None, |tally| tally.actions += 1),
            Event::DeviationFound { kind, .. } => {
                self.count(None, |tally| *tally.deviations.entry(*kind).or_default() += 1);
            }
            Event::ExecutionEnded { outcome, .. } => self.ended(*outcome),
            Event::ExecutionStarted {}
            | Event::AttemptAccepted { .. }
            | Event::ProbeInconclusive { .. }
            | Event::ContextSaved { .. }
            | Event::PlanSaved { .. }
            | Event::PayloadsErased { .. }
            | Event::ExecutionsRemoved { .. }
            | Event::LedgerRestored { .. }
            | Event::SettingChanged { .. } => {}
        }
    }

    fn approval<P>(&mut self, event: &Event<P>) {
        match event {
            Event::ApprovalRequested { part, tool, .. } => {
                self.count(Some(tool), |tally| tally.approvals.asked += 1);
                self.end_wait(Cause::BackOff, Some(part));
                self.wait(Cause::Approval, Some(part.clone()), Some(tool.clone()));
            }
            Event::ApprovalGranted { part, .. } => {
                let tool = self.end_wait(Cause::Approval, Some(part));
                self.count(tool.as_ref(), |tally| tally.approvals.granted += 1);
            }
            Event::ApprovalDenied { part, .. } => {
                let tool = self.end_wait(Cause::Approval, Some(part));
                self.count(tool.as_ref(), |tally| tally.approvals.denied += 1);
                self.blame(part, None);
                self.underway.leave_off(part);
            }
            Event::ApprovalExpired { part, .. } => {
                let tool = self.end_wait(Cause::Approval, Some(part));
                self.count(tool.as_ref(), |tally| tally.approvals.expired += 1);
                self.blame(part, None);
                self.underway.leave_off(part);
            }
            Event::ApprovalVoided { part, .. } => {
                let tool = self.end_wait(Cause::Approval, Some(part));
                self.count(tool.as_ref(), |tally| tally.approvals.voided += 1);
            }
            _ => {}
        }
    }

    fn attempt_started(&mut self, part: &PartId, side: Side, attempt: u32, tool: &ToolName) {
        let is_retry = attempt > 1 && side != Side::Probe;
        self.count(Some(tool), |tally| {
            *tally.attempts.entry(side).or_default() += 1;
            tally.retries += u64::from(is_retry);
        });
        self.end_wait(Cause::Approval, Some(part));
        self.end_wait(Cause::BackOff, Some(part));
        self.underway.steps += u64::from(side == Side::Do && attempt == 1);
        let goes_forward = matches!(side, Side::Do | Side::Fallback);
        if goes_forward && !self.underway.begun.iter().any(|(begun, _)| begun == part) {
            self.underway.begun.push((part.clone(), self.at));
        }
        let (part, tool) = (part.clone(), tool.clone());
        self.underway.attempts.push(Running { part, side, tool, since: self.at });
    }

    /// Closes an attempt; answers whose it was.
    fn attempt_ended(&mut self, part: &PartId, side: Side, is_answered: bool) -> Option<ToolName> {
        self.end_wait(Cause::ToolQuestion, Some(part));
        let running = self.underway.end_attempt(part, side)?;
        if is_answered {
            let took_ms = self.at.since(running.since).0;
            self.count(Some(&running.tool), |tally| tally.attempt_ms.record(took_ms));
        }
        Some(running.tool)
    }

    /// It has taken effect: by an answer, or because a doubt was settled.
    fn succeeded(&mut self, part: &PartId, side: Side, tool: Option<&ToolName>) {
        match side {
            Side::Do | Side::Fallback => {
                if let Some(since) = self.underway.leave_off(part) {
                    let took_ms = self.at.since(since).0;
                    self.count(tool, |tally| tally.step_ms.record(took_ms));
                    self.count_step(&part.step, |tally| tally.took_ms.record(took_ms));
                }
            }
            Side::Undo => self.count(tool, |tally| tally.compensated += 1),
            Side::Probe => {}
        }
    }

    /// It failed for good, and nobody wanted that. What a person refused is no fault of the tool.
    fn blame(&mut self, part: &PartId, tool: Option<&ToolName>) {
        self.count_step(&part.step, |tally| tally.failed += 1);
        if let Some(tool) = tool {
            self.day.tools.of(tool.as_str()).steps_failed += 1;
        }
    }

    /// What comes after an attempt that did not succeed.
    fn follow(
        &mut self,
        part: &PartId,
        side: Side,
        tool: Option<ToolName>,
        then: Then,
        category: Option<Category>,
    ) {
        if side == Side::Probe {
            return;
        }
        match then {
            Then::RetryAt(_) | Then::FallBack => self.wait(Cause::BackOff, Some(part.clone()), tool),
            Then::InDoubt => {
                self.count(tool.as_ref(), |tally| tally.doubts += 1);
                self.wait(Cause::Doubt, Some(part.clone()), tool);
            }
            Then::GiveUp => self.given_up(part, side, tool, category),
        }
    }

    /// No further attempt is made.
    fn abandoned(&mut self, part: &PartId, side: Side, category: Category) {
        self.end_wait(Cause::Approval, Some(part));
        let tool = self.end_wait(Cause::BackOff, Some(part));
        self.given_up(part, side, tool, Some(category));
    }

    fn given_up(&mut self, part: &PartId, side: Side, tool: Option<ToolName>, category: Option<Category>) {
        match side {
            Side::Do | Side::Fallback => {
                if category != Some(Category::Cancelled) {
                    self.blame(part, tool.as_ref());
                }
                self.underway.leave_off(part);
            }
            Side::Undo => {
                self.count(tool.as_ref(), |tally| tally.compensations_failed += 1);
                self.wait(Cause::Compensation, Some(part.clone()), tool);
            }
            Side::Probe => {}
        }
    }

    fn answered(&mut self, about: &Question, answer: Answer) {
        let stops = matches!(answer, Answer::Stop | Answer::Compensate);
        match about {
            Question::Failure(_) | Question::Limit(_) if stops => self.stop(),
            // The question stays until the new plan is there.
            Question::Failure(_) | Question::Limit(_) if answer == Answer::Replan => {
                self.wait(Cause::Replanning, None, None);
            }
            Question::Failure(step) => {
                self.end_wait(Cause::Failure, Some(&PartId::whole(step.clone())));
            }
            Question::Limit(_) => {
                self.end_wait(Cause::Limit, None);
            }
            Question::Compensation(part) => {
                self.end_wait(Cause::Compensation, Some(part));
                let by_hand = u64::from(answer == Answer::Resolve);
                self.count(None, |tally| tally.compensated += by_hand);
            }
        }
    }

    fn skipped(&mut self, steps: &[StepId]) {
        self.count(None, |tally| tally.steps_skipped += steps.len() as u64);
    }

    /// Nothing new begins: nobody waits for a yes, a decision or another try any more.
    fn stop(&mut self) {
        self.end_waits(|wait| match wait.cause {
            Cause::Approval | Cause::Failure | Cause::Limit | Cause::Replanning | Cause::BackOff => true,
            Cause::Compensation | Cause::Doubt | Cause::Drift | Cause::ToolQuestion | Cause::Paused => false,
        });
        self.underway.leave_off_the_rest();
    }

    /// The new plan answers what the old one asked; which of its steps go on as they were is not known here.
    fn replanned(&mut self) {
        self.count(None, |tally| tally.replans += 1);
        self.end_waits(|wait| match wait.cause {
            Cause::Failure | Cause::Limit | Cause::Drift | Cause::Replanning | Cause::BackOff => true,
            Cause::Approval | Cause::Compensation | Cause::Doubt | Cause::ToolQuestion | Cause::Paused => {
                false
            }
        });
        self.underway.leave_off_the_rest();
    }

    fn ended(&mut self, outcome: EndedAs) {
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
        *self.day.hours.entry(Date::hour(self.at)).or_default().ended.of(outcome) += 1;
    }

    fn end_everything(&mut self) {
        self.end_waits(|_| true);
        self.underway.attempts.clear();
        self.underway.begun.clear();
    }

    /// Adds to the plan, the driver, and the tool where one is known.
    fn count(&mut self, tool: Option<&ToolName>, change: impl Fn(&mut Tally)) {
        change(self.day.plans.of(&self.underway.origin.plan));
        change(self.day.of(self.underway.origin.driver));
        if let Some(tool) = tool {
            change(self.day.tools.of(tool.as_str()));
        }
    }

    fn count_step(&mut self, step: &StepId, change: impl FnOnce(&mut StepTally)) {
        self.day.steps.count(&self.underway.origin.plan, step, change);
    }

    fn wait(&mut self, cause: Cause, part: Option<PartId>, tool: Option<ToolName>) {
        if cause == Cause::Drift || !self.underway.waits_for(cause, part.as_ref()) {
            self.underway.waits.push(Wait { cause, part, tool, since: self.at });
        }
    }

    /// Answers whose call was waited for.
    fn end_wait(&mut self, cause: Cause, part: Option<&PartId>) -> Option<ToolName> {
        self.end_waits(|wait| wait.cause == cause && wait.part.as_ref() == part)
    }

    fn end_waits(&mut self, is_over: impl Fn(&Wait) -> bool) -> Option<ToolName> {
        let mut tool = None;
        for wait in self.underway.end_waits(is_over) {
            let waited_ms = self.at.since(wait.since).0;
            self.count(wait.tool.as_ref(), |tally| {
                tally.waits_ms.entry(wait.cause).or_default().record(waited_ms);
            });
            if let (Cause::Approval, Some(part)) = (wait.cause, &wait.part) {
                self.count_step(&part.step, |tally| tally.asked_ms.record(waited_ms));
            }
            tool = wait.tool;
        }
        tool
    }
}
