//! From the journal of an execution to its timeline: entry by entry, as it happened.

use super::critical::critical;
use super::line::{APPROVAL, DECISION, DOUBT, Line, REPLY};
use super::{AttemptOutcome, Diamond, Row, SpanKind, Timeline};
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event::{Answer, DoubtSource, Event, LateAnswer, Question, Record, Side, Then};
use rutter_core::plan::{Plan, PolicyAction};
use rutter_core::time::{Millis, Timestamp};
use std::collections::HashMap;

/// Builds the timeline of an execution of `plan` from its entries, each with its number. Whatever is still open at
/// `now` is drawn up to there.
pub fn from_records(plan: &Plan, records: &[(u64, Record)], now: Timestamp) -> Timeline {
    let mut fold = Fold::new(plan);
    records.iter().for_each(|(_, record)| fold.apply(record));
    fold.finish(records, now)
}

struct Fold<'a> {
    plan: &'a Plan,
    /// By step, and whether it is about taking it back.
    lines: HashMap<(StepId, bool), Line>,
    order: Vec<(StepId, bool)>,
    started_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    paused_at: Option<Timestamp>,
    pauses: Vec<(Timestamp, Timestamp)>,
    marks: Vec<Diamond>,
}

impl<'a> Fold<'a> {
    fn new(plan: &'a Plan) -> Fold<'a> {
        let mut fold = Fold {
            plan,
            lines: HashMap::new(),
            order: Vec::new(),
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

    fn line(&mut self, step: &StepId, undo: bool) -> &mut Line {
        let key = (step.clone(), undo);
        if !self.lines.contains_key(&key) {
            self.order.push(key.clone());
        }
        self.lines.entry(key).or_insert_with(|| Line::new(if undo { "compensating" } else { "pending" }))
    }

    /// The line an attempt belongs to. A probe asks about whatever was done last.
    fn line_of(&mut self, part: &PartId, side: Side) -> &mut Line {
        let undo = match side {
            Side::Do | Side::Fallback => false,
            Side::Undo => true,
            Side::Probe => self.lines.contains_key(&(part.step.clone(), true)),
        };
        self.line(&part.step, undo)
    }

    fn mark(&mut self, at: Timestamp, text: String) {
        self.marks.push(Diamond { at, text });
    }

    fn apply(&mut self, record: &Record) {
        let (at, who) = (record.at, record.actor.to_string());
        match &record.event {
            Event::ExecutionStarted {} => self.started_at = Some(at),
            Event::ApprovalRequested { part, side, .. } => {
                self.line_of(part, *side).wait(at, part.item, APPROVAL, "waiting");
            }
            Event::ApprovalGranted { part, .. } => {
                self.approval_ended(at, part, format!("approved by {who}"))
            }
            Event::ApprovalDenied { part, .. } => self.approval_ended(at, part, format!("denied by {who}")),
            Event::ApprovalExpired { part, .. } => {
                self.approval_ended(at, part, "the approval expired".to_owned());
            }
            Event::ApprovalVoided { part, .. } => {
                self.approval_ended(at, part, "the approval became void".to_owned());
            }
            Event::AttemptStarted { part, side, attempt, .. } => {
                self.line_of(part, *side).begin(at, part.item, *attempt, *side);
            }
            Event::ToolAsked { part, side, .. } => {
                self.line_of(part, *side).wait(at, part.item, REPLY, "waiting");
            }
            Event::ToolAnswered { part, side, .. } => {
                let line = self.line_of(part, *side);
                line.end_wait(at, part.item, REPLY);
                line.stands(if *side == Side::Undo { "compensating" } else { "running" });
                line.diamond(at, format!("answered by {who}"));
            }
            Event::AttemptSucceeded { part, side, .. } => self.succeeded(at, part, *side),
            Event::AttemptFailed { part, side, then, .. } => {
                self.closed(at, part, *side, AttemptOutcome::Failed, *then);
            }
            Event::AttemptLost { part, side, then, .. } => {
                self.closed(at, part, *side, AttemptOutcome::Unknown, *then);
            }
            Event::LateAnswerArrived { part, side, answer, .. } => {
                let text = match answer {
                    LateAnswer::Done(_) => "a late answer: it was done",
                    LateAnswer::NotDone(_) => "a late answer: it was not done",
                    LateAnswer::Maybe(_) => "a late answer that does not tell",
                };
                self.line_of(part, *side).diamond(at, text.to_owned());
            }
            Event::PreparationFailed { part, side, failure }
            | Event::RetryAbandoned { part, side, failure } => {
                let (failed, undo) = (gave_up(*side), *side == Side::Undo);
                let line = self.line_of(part, *side);
                line.end_waits(at, part.item);
                line.stands(failed);
                line.diamond(at, format!("given up: {failure}"));
                line.rest(at);
                if undo {
                    line.wait(at, part.item, DECISION, failed);
                }
            }
            Event::DoubtSettled { part, side, happened, source, then, .. } => {
                self.doubt_settled(at, part, *side, *happened, *then);
                if *source == DoubtSource::Person {
                    let text = if *happened { "it happened" } else { "it did not happen" };
                    self.line_of(part, *side).diamond(at, format!("{text}, says {who}"));
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
                self.answered(at, about, *answer, &who);
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
                line.diamond(at, format!("taken back by hand, says {who}"));
            }
            Event::DecisionRecorded { step, decision, .. } => {
                self.said(at, step.as_ref(), format!("decided by {who}: {decision}"));
            }
            Event::ActionRecorded { step, description, .. } => {
                self.said(at, step.as_ref(), format!("done by {who}: {description}"));
            }
            Event::Paused { .. } => {
                self.paused_at.get_or_insert(at);
                self.mark(at, format!("paused by {who}"));
            }
            Event::Resumed { .. } => {
                self.pauses.extend(self.paused_at.take().map(|from| (from, at)));
                self.mark(at, format!("resumed by {who}"));
            }
            Event::LimitReached { limit, .. } => {
                self.mark(at, format!("a limit was reached: {limit:?}").to_lowercase());
            }
            Event::CancelRequested { .. } => self.mark(at, format!("cancelled by {who}")),
            Event::Killed { .. } => {
                self.mark(at, format!("killed by {who}"));
                self.ended_at = Some(at);
            }
            Event::Replanned { revision, .. } => self.mark(at, format!("replanned, revision {revision}")),
            Event::HandedOver { .. } => self.mark(at, format!("handed over by {who}")),
            Event::ToolDrifted { tool, .. } => self.mark(at, format!("{tool} changed")),
            Event::ToolAccepted { tool, .. } => self.mark(at, format!("{tool} accepted by {who}")),
            Event::ExecutionEnded { .. } => self.ended_at = Some(at),
            // They change nothing that is drawn.
            Event::ExecutionOpened { .. }
            | Event::FanOutOpened { .. }
            | Event::AttemptAccepted { .. }
            | Event::ProbeInconclusive { .. }
            | Event::ReplanBegun { .. }
            | Event::ReplanAbandoned { .. }
            | Event::ContextSaved { .. }
            | Event::DeviationFound { .. }
            | Event::PlanSaved { .. }
            | Event::PayloadsErased { .. }
            | Event::ExecutionsRemoved { .. }
            | Event::LedgerRestored { .. }
            | Event::SettingChanged { .. } => {}
        }
    }

    fn approval_ended(&mut self, at: Timestamp, part: &PartId, text: String) {
        let undo = self.lines.get(&(part.step.clone(), true)).is_some_and(|line| line.waits_for(APPROVAL));
        let line = self.line(&part.step, undo);
        line.end_wait(at, part.item, APPROVAL);
        line.diamond(at, text);
    }

    fn succeeded(&mut self, at: Timestamp, part: &PartId, side: Side) {
        let line = self.line_of(part, side);
        line.end_attempt(at, part.item, AttemptOutcome::Succeeded);
        if side != Side::Probe {
            line.finish(at, if side == Side::Undo { "compensated" } else { "completed" });
        }
    }

    fn closed(&mut self, at: Timestamp, part: &PartId, side: Side, outcome: AttemptOutcome, then: Then) {
        let outcome = if then == Then::InDoubt { AttemptOutcome::Unknown } else { outcome };
        let line = self.line_of(part, side);
        line.end_attempt(at, part.item, outcome);
        if side != Side::Probe {
            self.follow(at, part, side, then);
        }
    }

    fn follow(&mut self, at: Timestamp, part: &PartId, side: Side, then: Then) {
        let line = self.line_of(part, side);
        match then {
            Then::RetryAt(due) => line.back_off(at, due, part.item, side),
            Then::FallBack => {}
            Then::InDoubt => line.wait(at, part.item, DOUBT, "in_doubt"),
            Then::GiveUp if side == Side::Undo => line.wait(at, part.item, DECISION, gave_up(side)),
            Then::GiveUp => {
                line.stands(gave_up(side));
                line.rest(at);
            }
        }
    }

    fn doubt_settled(&mut self, at: Timestamp, part: &PartId, side: Side, happened: bool, then: Then) {
        let line = self.line_of(part, side);
        line.end_wait(at, part.item, DOUBT);
        if happened {
            line.stands(if side == Side::Undo { "compensated" } else { "completed" });
            line.rest(at);
        } else {
            self.follow(at, part, side, then);
        }
    }

    fn answered(&mut self, at: Timestamp, about: &Question, answer: Answer, who: &str) {
        let said = format!("{} says {who}", format!("{answer:?},").to_lowercase());
        let (step, item, undo) = match about {
            Question::Failure(step) => (step, None, false),
            Question::Compensation(part) => (&part.step, part.item, true),
            Question::Limit(_) => return self.mark(at, said),
        };
        let line = self.line(step, undo);
        line.end_wait(at, item, DECISION);
        line.diamond(at, said);
        line.stands(match (answer, undo) {
            (Answer::Retry, false) => "running",
            (Answer::Retry, true) => "compensating",
            (Answer::Resolve, false) => "completed",
            (Answer::Resolve, true) => "compensated",
            (Answer::Skip, false) => "skipped",
            (_, true) => "compensation_failed",
            (_, false) => "failed",
        });
        if answer != Answer::Retry {
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

    fn said(&mut self, at: Timestamp, step: Option<&StepId>, text: String) {
        match step {
            Some(step) => self.line(step, false).diamond(at, text),
            None => self.mark(at, text),
        }
    }

    fn finish(mut self, records: &[(u64, Record)], now: Timestamp) -> Timeline {
        let from = self.started_at.or_else(|| records.first().map(|(_, record)| record.at)).unwrap_or(now);
        let last = records.iter().map(|(_, record)| record.at).max().unwrap_or(now);
        let to = if self.ended_at.is_some() { last } else { last.max(now) };
        for line in self.lines.values_mut() {
            line.end_all(self.ended_at.unwrap_or(to), self.ended_at.is_some());
        }
        self.pauses.extend(self.paused_at.take().map(|from| (from, self.ended_at.unwrap_or(to))));
        self.queue(from);
        let critical = self.critical();
        let mut rows: Vec<(Option<Timestamp>, Row)> = Vec::with_capacity(self.order.len());
        for key in &self.order {
            let Some(line) = self.lines.remove(key) else { continue };
            let on_path = !key.1 && self.plan.find(key.0.as_str()).is_some_and(|step| critical[step]);
            rows.push((line.began(), row(self.plan, key, line, on_path)));
        }
        // What has not begun comes last; the sort is stable, so that equals keep the order of the plan.
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

    /// From when the last need of a step was at rest until it began, there was no room for it.
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
        let took = |step: &StepId| self.lines.get(&(step.clone(), false)).map_or(Millis(0), Line::took);
        let took: Vec<Millis> = self.plan.steps.iter().map(|step| took(&step.id)).collect();
        critical(&self.plan.graph, &took)
    }
}

fn gave_up(side: Side) -> &'static str {
    if side == Side::Undo { "compensation_failed" } else { "failed" }
}

fn row(plan: &Plan, (step, undo): &(StepId, bool), line: Line, critical: bool) -> Row {
    let name = plan.find(step.as_str()).map(|index| plan.steps[index].name.as_str()).unwrap_or_default();
    let Line { status, mut spans, diamonds, .. } = line;
    spans.sort_by_key(|span| (span.from, matches!(span.kind, SpanKind::Attempt { .. })));
    Row {
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
