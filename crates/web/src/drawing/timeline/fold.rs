//! Builds the timeline of an execution from its journal, entry by entry.

use super::critical::critical;
use super::row_builder::{APPROVAL, DECISION, DOUBT, REPLY, TimelineRowBuilder};
use super::{AttemptOutcome, Timeline, TimelineMarker, TimelineRow, TimelineSpanKind};
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::attempts::{AttemptChange, AttemptEnd, ClosedAttempt, OpenAttempts};
use rutter_core::journal::event::{
    AttemptFollowUp, CallSide, DoubtSource, Event, EventRecord, LateEffect, Question, QuestionAnswer,
};
use rutter_core::plan::{Plan, PolicyAction};
use rutter_core::time::{Millis, Timestamp};
use std::collections::HashMap;

/// The longest quotation next to a marker.
const QUOTE_CHARS_MAX: usize = 120;

/// Builds the timeline of an execution of `plan` from its entries, each with its sequence number. Whatever is open at
/// `now` is drawn up to there.
pub fn from_records(plan: &Plan, records: &[(u64, EventRecord)], now: Timestamp) -> Timeline {
    let mut fold = TimelineBuilder::new(plan);
    records.iter().for_each(|(seq, record)| fold.apply(*seq, record));
    fold.finish(records, now)
}

struct TimelineBuilder<'a> {
    plan: &'a Plan,
    /// By step, and whether it is the row of its compensation.
    lines: HashMap<(StepId, bool), TimelineRowBuilder>,
    order: Vec<(StepId, bool)>,
    attempts: OpenAttempts,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    paused_at: Option<Timestamp>,
    pauses: Vec<(Timestamp, Timestamp)>,
    marks: Vec<TimelineMarker>,
}

impl<'a> TimelineBuilder<'a> {
    fn new(plan: &'a Plan) -> TimelineBuilder<'a> {
        let mut fold = TimelineBuilder {
            plan,
            lines: HashMap::new(),
            order: Vec::new(),
            attempts: OpenAttempts::default(),
            started_at: None,
            ended_at: None,
            paused_at: None,
            pauses: Vec::new(),
            marks: Vec::new(),
        };
        for step in &plan.steps {
            fold.line(&step.id, false);
        }
        fold
    }

    fn line(&mut self, step: &StepId, undo: bool) -> &mut TimelineRowBuilder {
        let key = (step.clone(), undo);
        if !self.lines.contains_key(&key) {
            self.order.push(key.clone());
        }
        self.lines.entry(key).or_insert_with(|| TimelineRowBuilder::new(if undo { "compensating" } else { "pending" }))
    }

    /// The row of an attempt. A probe belongs to the last call.
    fn line_of(&mut self, part: &PartId, side: CallSide) -> &mut TimelineRowBuilder {
        let undo = match side {
            CallSide::Do | CallSide::Fallback => false,
            CallSide::Undo => true,
            CallSide::Probe => self.lines.contains_key(&(part.step.clone(), true)),
        };
        self.line(&part.step, undo)
    }

    /// Adds a marker above the rows, for events of the execution as a whole.
    fn mark(&mut self, record: &EventRecord) {
        self.marks.push(TimelineMarker { at: record.at, text: words(record) });
    }

    fn apply(&mut self, seq: u64, record: &EventRecord) {
        let at = record.at;
        match self.attempts.apply(seq, at, &record.event) {
            Some(AttemptChange::Started(key)) => {
                self.line_of(&key.part, key.side).begin(at, key.part.item, key.side);
            }
            Some(AttemptChange::Closed(closed)) => self.closed(&closed),
            Some(AttemptChange::Abandoned(all)) => all.iter().for_each(|closed| self.draw(closed)),
            Some(AttemptChange::AnsweredLate { .. }) | None => {}
        }
        match &record.event {
            Event::ExecutionStarted {} => self.started_at = Some(at),
            Event::ApprovalRequested { part, side, .. } => {
                self.line_of(part, *side).wait(at, part.item, APPROVAL, "waiting");
            }
            Event::ApprovalGranted { part, .. }
            | Event::ApprovalDenied { part, .. }
            | Event::ApprovalExpired { part, .. }
            | Event::ApprovalVoided { part, .. } => self.approval_ended(record, part),
            Event::ToolAsked { part, side, .. } => {
                self.line_of(part, *side).wait(at, part.item, REPLY, "waiting");
            }
            Event::ToolAnswered { part, side, .. } => {
                let line = self.line_of(part, *side);
                line.end_wait(at, part.item, REPLY);
                line.stands(if *side == CallSide::Undo { "compensating" } else { "running" });
                line.diamond(at, words(record));
            }
            Event::LateAnswerArrived { part, side, .. } | Event::CallDelayed { part, side, .. } => {
                self.line_of(part, *side).diamond(at, words(record));
            }
            Event::PreparationFailed { part, side, .. }
            | Event::CallForbidden { part, side, .. }
            | Event::RetryAbandoned { part, side, .. } => {
                let (failed, undo) = (gave_up(*side), *side == CallSide::Undo);
                let line = self.line_of(part, *side);
                line.end_waits(at, part.item);
                line.stands(failed);
                line.diamond(at, words(record));
                line.rest(at);
                if undo {
                    line.wait(at, part.item, DECISION, failed);
                }
            }
            Event::KeyExpired { part, side } => {
                let line = self.line_of(part, *side);
                line.end_waits(at, part.item);
                line.wait(at, part.item, DOUBT, "in_doubt");
            }
            Event::DoubtSettled { part, side, happened, source, then, .. } => {
                self.doubt_settled(at, part, *side, *happened, *then);
                if *source == DoubtSource::Person {
                    self.line_of(part, *side).diamond(at, words(record));
                }
            }
            Event::SettlementCorrected { part, side, happened, effect, .. } => {
                let line = self.line_of(part, *side);
                line.diamond(at, words(record));
                if !happened {
                    line.stands("waiting");
                } else if *effect == Some(LateEffect::Only) {
                    line.stands("completed");
                }
            }
            Event::StepsSkipped { steps, .. } => self.rest_all(at, steps, "skipped"),
            Event::FailureHandled { step, action, cancelled, skipped, .. } => {
                if *action == PolicyAction::ManualDecision {
                    self.line(step, false).wait(at, None, DECISION, "waiting");
                } else {
                    self.rest_all(at, std::slice::from_ref(step), "failed");
                }
                self.rest_all(at, cancelled, "cancelled");
                self.rest_all(at, skipped, "skipped");
            }
            Event::QuestionAnswered { about, answer, skipped, .. } => {
                self.answered(record, about, *answer);
                self.rest_all(at, skipped, "skipped");
            }
            Event::CompensationStarted { parts, .. } => {
                for part in parts {
                    self.line(&part.step, true).announce(at);
                }
            }
            Event::CompensationRecorded { part, .. } => {
                let line = self.line(&part.step, true);
                line.end_waits(at, part.item);
                line.stands("compensated");
                line.diamond(at, words(record));
            }
            Event::DecisionRecorded { step, .. } | Event::ActionRecorded { step, .. } => match step {
                Some(step) => self.line(step, false).diamond(at, words(record)),
                None => self.mark(record),
            },
            Event::Paused { .. } | Event::Held { .. } => {
                self.paused_at.get_or_insert(at);
                self.mark(record);
            }
            Event::Resumed { .. } | Event::HoldEnded { .. } => {
                self.pauses.extend(self.paused_at.take().map(|from| (from, at)));
                self.mark(record);
            }
            Event::Killed { .. } => {
                self.mark(record);
                self.ended_at = Some(at);
            }
            Event::Reopened { steps, .. } => {
                self.mark(record);
                self.ended_at = None;
                for step in steps {
                    self.line(step, false).stands("pending");
                }
            }
            Event::LimitReached { .. }
            | Event::CancelRequested { .. }
            | Event::Replanned { .. }
            | Event::ReplanProposed { .. }
            | Event::ReplanRejected { .. }
            | Event::HandedOver { .. }
            | Event::AgentSilent { .. }
            | Event::ToolDrifted { .. }
            | Event::ToolRestored { .. }
            | Event::ToolAccepted { .. } => self.mark(record),
            Event::ExecutionEnded { .. } => self.ended_at = Some(at),
            // Attempts are handled above; the others change nothing in the drawing.
            Event::AttemptStarted { .. }
            | Event::AttemptSucceeded { .. }
            | Event::AttemptFailed { .. }
            | Event::AttemptLost { .. }
            | Event::ExecutionOpened { .. }
            | Event::FanOutOpened { .. }
            | Event::AttemptAccepted { .. }
            | Event::AgentSeen {}
            | Event::ProbeInconclusive { .. }
            | Event::ProbePostponed { .. }
            | Event::ReplanBegun { .. }
            | Event::ReplanAbandoned { .. }
            | Event::ContextSaved { .. }
            | Event::DeviationFound { .. }
            | Event::PlanSaved { .. }
            | Event::PayloadsErased { .. }
            | Event::ExecutionsRemoved { .. }
            | Event::LedgerRestored { .. }
            | Event::SettingChanged { .. }
            | Event::ActRefused { .. } => {}
        }
    }

    fn approval_ended(&mut self, record: &EventRecord, part: &PartId) {
        let undo = self.lines.get(&(part.step.clone(), true)).is_some_and(|line| line.waits_for(APPROVAL));
        let line = self.line(&part.step, undo);
        line.end_wait(record.at, part.item, APPROVAL);
        line.diamond(record.at, words(record));
    }

    /// Ends an attempt and starts what follows for its step.
    fn closed(&mut self, closed: &ClosedAttempt) {
        self.draw(closed);
        let (at, part, side) = (closed.ended_at, &closed.key.part, closed.key.side);
        match closed.end.then() {
            _ if side == CallSide::Probe => {}
            Some(then) => self.follow(at, part, side, then),
            None => {
                let status = if side == CallSide::Undo { "compensated" } else { "completed" };
                self.line_of(part, side).finish(at, status);
            }
        }
    }

    fn draw(&mut self, closed: &ClosedAttempt) {
        let outcome = match &closed.end {
            AttemptEnd::Succeeded { .. } => AttemptOutcome::Succeeded,
            AttemptEnd::Failed { .. } if !closed.end.is_in_doubt() => AttemptOutcome::Failed,
            AttemptEnd::Failed { .. } | AttemptEnd::Lost { .. } | AttemptEnd::Abandoned => AttemptOutcome::Unknown,
        };
        if let Some(start) = &closed.start {
            self.line_of(&closed.key.part, closed.key.side).end_attempt(closed.ended_at, start, outcome);
        }
    }

    fn follow(&mut self, at: Timestamp, part: &PartId, side: CallSide, then: AttemptFollowUp) {
        let line = self.line_of(part, side);
        match then {
            AttemptFollowUp::RetryAt(due) => line.back_off(at, due, part.item, side),
            AttemptFollowUp::FallBack | AttemptFollowUp::Withdrawn => {}
            AttemptFollowUp::InDoubt => line.wait(at, part.item, DOUBT, "in_doubt"),
            AttemptFollowUp::GiveUp if side == CallSide::Undo => line.wait(at, part.item, DECISION, gave_up(side)),
            AttemptFollowUp::GiveUp => {
                line.stands(gave_up(side));
                line.rest(at);
            }
        }
    }

    fn doubt_settled(&mut self, at: Timestamp, part: &PartId, side: CallSide, happened: bool, then: AttemptFollowUp) {
        let line = self.line_of(part, side);
        line.end_wait(at, part.item, DOUBT);
        if happened {
            line.stands(if side == CallSide::Undo { "compensated" } else { "completed" });
            line.rest(at);
        } else {
            self.follow(at, part, side, then);
        }
    }

    fn answered(&mut self, record: &EventRecord, about: &Question, answer: QuestionAnswer) {
        let at = record.at;
        let (step, item, undo) = match about {
            Question::Failure(step) => (step, None, false),
            Question::Item(part) => (&part.step, part.item, false),
            Question::Compensation(part) => (&part.step, part.item, true),
            Question::Limit(_) | Question::SecondEffect(_) | Question::Silence => return self.mark(record),
        };
        let line = self.line(step, undo);
        line.end_wait(at, item, DECISION);
        line.diamond(at, words(record));
        line.stands(match (answer, undo) {
            (QuestionAnswer::Retry, false) => "running",
            (QuestionAnswer::Retry, true) => "compensating",
            (QuestionAnswer::Resolve, false) => "completed",
            (QuestionAnswer::Resolve, true) => "compensated",
            (QuestionAnswer::Skip, false) => "skipped",
            (_, true) => "compensation_failed",
            (_, false) => "failed",
        });
        if answer != QuestionAnswer::Retry {
            line.rest(at);
        }
    }

    fn rest_all(&mut self, at: Timestamp, steps: &[StepId], status: &'static str) {
        for step in steps {
            let line = self.line(step, false);
            line.end_waits(at, None);
            line.stands(status);
            line.rest(at);
        }
    }

    fn finish(mut self, records: &[(u64, EventRecord)], now: Timestamp) -> Timeline {
        let from = self.started_at.or_else(|| records.first().map(|(_, record)| record.at)).unwrap_or(now);
        let last = records.iter().map(|(_, record)| record.at).max().unwrap_or(now);
        let to = if self.ended_at.is_some() { last } else { last.max(now) };
        for open in std::mem::take(&mut self.attempts).iter() {
            self.line_of(&open.key.part, open.key.side).end_attempt(to, open, AttemptOutcome::Running);
        }
        for line in self.lines.values_mut() {
            line.end_all(self.ended_at.unwrap_or(to), self.ended_at.is_some());
        }
        self.pauses.extend(self.paused_at.take().map(|from| (from, self.ended_at.unwrap_or(to))));
        self.queue(from);
        let critical = self.critical();
        let mut rows: Vec<(Option<Timestamp>, TimelineRow)> = Vec::with_capacity(self.order.len());
        for key in &self.order {
            let Some(line) = self.lines.remove(key) else { continue };
            let on_path = !key.1 && self.plan.find(key.0.as_str()).is_some_and(|step| critical[step]);
            rows.push((line.began(), row(self.plan, key, line, on_path)));
        }
        // Steps that have not started come last; the sort is stable, so ties keep plan order.
        rows.sort_by_key(|(began, _)| began.unwrap_or(Timestamp(i64::MAX)));
        Timeline {
            title: self.plan.name.clone(),
            from,
            to,
            now: self.ended_at.is_none().then_some(to),
            pauses: self.pauses,
            marks: self.marks,
            rows_before: 0,
            rows_total: rows.len(),
            rows: rows.into_iter().map(|(_, row)| row).collect(),
        }
    }

    /// The time from when the last dependency of a step ended until the step started is time in the queue.
    fn queue(&mut self, from: Timestamp) {
        let rests: Vec<Option<Timestamp>> =
            self.plan.steps.iter().map(|step| self.lines.get(&(step.id.clone(), false))?.rested()).collect();
        for (index, needs) in self.plan.graph.needs.iter().enumerate() {
            let ready = needs.iter().try_fold(from, |ready, need| Some(ready.max(rests[need.step]?)));
            let line = self.lines.get_mut(&(self.plan.steps[index].id.clone(), false));
            if let (Some(ready), Some(line)) = (ready, line) {
                line.queue(ready);
            }
        }
    }

    fn critical(&self) -> Vec<bool> {
        let took = |step: &StepId| self.lines.get(&(step.clone(), false)).map_or(Millis(0), TimelineRowBuilder::took);
        let took: Vec<Millis> = self.plan.steps.iter().map(|step| took(&step.id)).collect();
        critical(&self.plan.graph, &took)
    }
}

fn words(record: &EventRecord) -> String {
    record.describe().brief(QUOTE_CHARS_MAX)
}

fn gave_up(side: CallSide) -> &'static str {
    if side == CallSide::Undo { "compensation_failed" } else { "failed" }
}

fn row(plan: &Plan, (step, undo): &(StepId, bool), line: TimelineRowBuilder, critical: bool) -> TimelineRow {
    let name = plan.find(step.as_str()).map(|index| plan.steps[index].name.as_str()).unwrap_or_default();
    let TimelineRowBuilder { status, mut spans, diamonds, .. } = line;
    spans.sort_by_key(|span| (span.from, matches!(span.kind, TimelineSpanKind::Attempt { .. })));
    TimelineRow {
        step: step.to_string(),
        label: if name.is_empty() { step.to_string() } else { name.to_owned() },
        undo: *undo,
        status,
        critical,
        spans,
        diamonds,
        href: format!("?step={step}"),
    }
}
