//! The projection of hand-written journals, and its limits.

use rutter_core::actor::Actor;
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, PartId, PlanId, StepId, TenantId, ToolName};
use rutter_core::insight::day::{CalendarDate, NAMES_MAX, OTHERS};
use rutter_core::insight::open::EXECUTIONS_MAX;
use rutter_core::insight::projection::{LedgerProjection, ProjectionNeed, UNKNOWN};
use rutter_core::insight::steps::StepTally;
use rutter_core::insight::tally::{ActivityTally, WaitCause};
use rutter_core::journal::codec::StoredRecord;
use rutter_core::journal::event::{
    AttemptFollowUp, CallSide, Event, EventRecord, ExecutionEnding, PlanReference, SkipReason,
};
use rutter_core::journal::payload::{EventPayload, PayloadSalt};
use rutter_core::plan::Driver;
use rutter_core::port::feed::FeedEntry;
use rutter_core::time::Timestamp;
use rutter_core::tool::{FailureCategory, ToolFailure};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

const DAY: i64 = 86_400_000;
const HOUR: i64 = 3_600_000;

/// Appends entries one after the other, each at the next position.
#[derive(Default)]
struct Pen {
    fold: LedgerProjection,
}

impl Pen {
    fn write(&mut self, execution: &str, at: i64, event: Event) {
        let placed = self.placed(execution, at, event);
        self.fold.apply(&placed);
    }

    fn placed(&self, execution: &str, at: i64, event: Event) -> FeedEntry {
        let record = EventRecord { at: Timestamp(at), actor: Actor::rutter(), event };
        let (tenant, execution) = (TenantId::new("default"), ExecutionId::new(execution));
        let (stored, _) = StoredRecord::split(&tenant, &execution, 1, &record, &mut || PayloadSalt([1; 16])).unwrap();
        FeedEntry { position: self.fold.place() + 1, hash: Hash::ZERO, stored }
    }

    fn open(&mut self, execution: &str, at: i64, plan: &str) {
        let hash = Hash::of(&[plan.as_bytes()]);
        let (id, name) = (PlanId::new(plan), plan.to_owned());
        self.write("ledger", at, Event::PlanSaved { id, revision: 1, plan: hash, name });
        self.write(execution, at, opened(hash));
    }

    fn plan(&self, at: i64, plan: &str) -> &ActivityTally {
        self.fold.day(CalendarDate::of(Timestamp(at))).unwrap().plans.get(plan).unwrap()
    }
}

fn opened(hash: Hash) -> Event {
    let plan = PlanReference { hash, plan: None };
    let (lineage, inputs) = (String::new(), value());
    Event::ExecutionOpened { plan, revision: 1, lineage, driver: Driver::Server, inputs }
}

fn value() -> EventPayload {
    EventPayload::Present(Arc::new(json!({})))
}

fn part(step: &str) -> PartId {
    PartId::whole(StepId::new(step))
}

fn started(step: &str, attempt: u32, tool: &str) -> Event {
    Event::AttemptStarted {
        part: part(step),
        side: CallSide::Do,
        attempt,
        by: Driver::Server,
        tool: ToolName::new(tool),
        definition: Hash::ZERO,
        call: Hash::ZERO,
        key: Hash::ZERO,
        parameters: value(),
        deadline: None,
    }
}

fn ended() -> Event {
    Event::ExecutionEnded { outcome: ExecutionEnding::Completed, reason: String::new(), remains: Vec::new() }
}

#[test]
fn a_retried_step_is_counted_where_it_happened() {
    let mut pen = Pen::default();
    pen.open("exec_1", DAY - 500, "order");
    pen.write("exec_1", DAY - 400, started("charge", 1, "payments.charge"));
    let failure = ToolFailure::new(FailureCategory::Unavailable, "closed");
    let then = AttemptFollowUp::RetryAt(Timestamp(DAY));
    let (side, maybe) = (CallSide::Do, false);
    pen.write(
        "exec_1",
        DAY - 300,
        Event::AttemptFailed { part: part("charge"), side, attempt: 1, failure, maybe, then },
    );
    pen.write("exec_1", DAY + 1_000, started("charge", 2, "payments.charge"));
    let (result, cost_micros) = (value(), 7);
    pen.write(
        "exec_1",
        DAY + 1_200,
        Event::AttemptSucceeded { part: part("charge"), side, attempt: 2, result, cost_micros },
    );
    pen.write("exec_1", DAY + 3 * HOUR, ended());

    let (before, after) = (pen.plan(0, "order"), pen.plan(DAY, "order"));
    assert_eq!((before.opened, before.ended.all(), before.calls(), before.failed()), (1, 0, 1, 1));
    assert_eq!((after.opened, after.ended.completed, after.calls(), after.retries), (0, 1, 1, 1));
    assert_eq!(after.waits_ms[&WaitCause::BackOff].sum(), 1_300);
    assert_eq!((after.step_ms.sum(), after.attempt_ms.sum(), after.cost_micros), (1_600, 200, 7));
    assert_eq!((after.duration_ms.sum(), after.steps.sum()), (3 * HOUR as u64 + 500, 1));
    let days: Vec<_> = pen.fold.days().collect();
    assert_eq!(days[0].1.hours[&23].opened, 1);
    assert_eq!(days[1].1.hours[&3].ended.completed, 1);
    assert_eq!(days[1].1.tools.get("payments.charge").unwrap().cost_micros, 7);
    assert!(pen.fold.open().is_empty());
}

#[test]
fn a_changed_tool_is_waited_for_until_it_is_accepted() {
    let mut pen = Pen::default();
    let (tool, hash) = (ToolName::new("mail.send"), Hash::ZERO);
    let drifted = || Event::ToolDrifted { tool: tool.clone(), pinned: hash, found: hash };
    pen.open("exec_1", 0, "mail");
    pen.write("exec_1", 1_000, drifted());
    let accepted = Event::ToolAccepted { tool: tool.clone(), definition: hash, reason: String::new() };
    pen.write("exec_1", 61_000, accepted);
    pen.write("exec_1", 70_000, drifted());
    pen.write("exec_1", 71_000, ended());
    let tally = pen.plan(0, "mail");
    assert_eq!((tally.drifts, tally.waits_ms[&WaitCause::Drift].count()), (2, 2));
    assert_eq!(tally.waits_ms[&WaitCause::Drift].sum(), 61_000);
    let tools = &pen.fold.day(CalendarDate::of(Timestamp(0))).unwrap().tools;
    assert_eq!(tools.get("mail.send").unwrap().waits_ms[&WaitCause::Drift].sum(), 61_000);
}

#[test]
fn an_execution_that_is_not_tracked_is_requested() {
    let mut pen = Pen::default();
    pen.open("exec_1", 0, "order");
    pen.write("exec_1", 10, ended());
    let reason = || "changed our mind".to_owned();
    let undo = Event::CompensationStarted { parts: Vec::new(), whole: true, reason: reason() };
    let placed = pen.placed("exec_1", 20, undo);
    assert_eq!(pen.fold.needs(&placed), Some(ProjectionNeed::Execution(ExecutionId::new("exec_1"))));
    pen.fold.apply(&placed);
    pen.write("exec_1", 30, ended());
    let unknown = pen.plan(0, UNKNOWN);
    assert_eq!((unknown.compensations, unknown.ended_again, unknown.ended.all()), (1, 1, 0));
    assert_eq!(pen.plan(0, "order").ended.all(), 1);

    let strange = pen.placed("exec_2", 40, opened(Hash::of(&[b"never saved"])));
    assert_eq!(pen.fold.needs(&strange), Some(ProjectionNeed::Plan(Hash::of(&[b"never saved"]))));
    let tomorrow = pen.placed("exec_2", DAY, ended());
    assert_eq!(pen.fold.needs(&tomorrow), Some(ProjectionNeed::Day(CalendarDate::of(Timestamp(DAY)))));
}

#[test]
fn plans_beyond_the_bound_of_a_day_are_counted_together() {
    for (plans, others) in [(NAMES_MAX - 1, 0), (NAMES_MAX, 0), (NAMES_MAX + 1, 1)] {
        let mut pen = Pen::default();
        for plan in 0..plans {
            pen.open(&format!("exec_{plan}"), 0, &format!("plan {plan}"));
        }
        let day = pen.fold.day(CalendarDate::of(Timestamp(0))).unwrap();
        assert_eq!(day.plans.get(OTHERS).map_or(0, |tally| tally.opened), others, "{plans}");
        assert_eq!(day.total().opened, plans as u64);
    }
}

#[test]
fn executions_beyond_the_bound_are_forgotten_oldest_first() {
    for (executions, left) in
        [(EXECUTIONS_MAX, EXECUTIONS_MAX), (EXECUTIONS_MAX + 1, EXECUTIONS_MAX - EXECUTIONS_MAX / 10)]
    {
        let mut pen = Pen::default();
        for execution in 0..executions {
            pen.open(&format!("exec_{execution}"), 0, "order");
        }
        assert_eq!(pen.fold.open().len(), left, "{executions}");
        let (first, last) = ("exec_0".to_owned(), format!("exec_{}", executions - 1));
        let is_known = |execution: &str| pen.fold.needs(&pen.placed(execution, 0, ended())).is_none();
        assert_eq!((is_known(&first), is_known(&last)), (executions == EXECUTIONS_MAX, true));
    }
}

#[test]
fn steps_are_counted_by_outcome() {
    let mut pen = Pen::default();
    let (side, maybe, then) = (CallSide::Do, false, AttemptFollowUp::GiveUp);
    let failed = |step: &str, category: FailureCategory| {
        let failure = ToolFailure::new(category, "no");
        Event::AttemptFailed { part: part(step), side, attempt: 1, failure, maybe, then }
    };
    for (execution, category) in [("exec_1", FailureCategory::Unavailable), ("exec_2", FailureCategory::Cancelled)] {
        pen.open(execution, 0, "order");
        pen.write(execution, 100, started("charge", 1, "payments.charge"));
        pen.write(execution, 200, failed("charge", category));
        pen.write(execution, 300, ended());
    }
    pen.open("exec_3", 0, "order");
    let (steps, because) = (vec![StepId::new("gift"), StepId::new("bow")], SkipReason::Condition);
    pen.write("exec_3", 10, Event::StepsSkipped { steps, because });
    let (steps, because) = (vec![StepId::new("card")], SkipReason::LeftUndone);
    pen.write("exec_3", 10, Event::StepsSkipped { steps, because });
    let (call, expires_at) = (Hash::ZERO, Timestamp(HOUR));
    for (step, asked, answered, is_granted) in [("charge", 20, 520, true), ("mail", 30, 330, false)] {
        let (part, tool) = (part(step), ToolName::new("payments.charge"));
        let parameters = value();
        let request =
            Event::ApprovalRequested { part: part.clone(), side, call, tool, parameters, expires_at, basis: None };
        pen.write("exec_3", asked, request);
        let reason = String::new();
        let answer = match is_granted {
            true => Event::ApprovalGranted { part, call, reason },
            false => Event::ApprovalDenied { part, call, reason },
        };
        pen.write("exec_3", answered, answer);
    }
    pen.write("exec_3", 600, started("charge", 1, "payments.charge"));
    let (result, cost_micros) = (value(), 0);
    pen.write("exec_3", 640, Event::AttemptSucceeded { part: part("charge"), side, attempt: 1, result, cost_micros });
    pen.write("exec_3", 650, Event::FanOutOpened { step: StepId::new("ship"), count: 4, items: value() });

    let day = pen.fold.day(CalendarDate::of(Timestamp(0))).unwrap();
    let steps: BTreeMap<&str, &StepTally> = day.steps.of("order").map(|(step, tally)| (step.as_str(), tally)).collect();
    let names: Vec<&str> = steps.keys().copied().collect();
    assert_eq!(names, ["bow", "charge", "gift", "mail", "ship"], "one left undone is not counted as skipped");
    let charge = steps["charge"];
    assert_eq!((charge.failed, charge.took_ms.count(), charge.took_ms.sum()), (1, 1, 40));
    assert_eq!((charge.asked_ms.count(), charge.asked_ms.sum()), (1, 500));
    assert_eq!((steps["gift"].passed_over, steps["bow"].passed_over), (1, 1));
    assert_eq!((steps["mail"].failed, steps["mail"].asked_ms.sum()), (1, 300), "a person denied it");
    assert_eq!((steps["ship"].fanned_out, steps["ship"].items), (1, 4));
    let tool = day.tools.get("payments.charge").unwrap();
    assert_eq!((tool.steps_failed, tool.step_ms.count()), (1, 1), "a denial does not count against the tool");
    assert_eq!(pen.plan(0, "order").steps_failed, 0, "counted when the policy is applied");
}
