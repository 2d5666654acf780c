//! Timelines of journals.

use super::graph::{order, plan};
use super::xml;
use rutter_core::actor::Actor;
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, StepId, ToolName};
use rutter_core::journal::event::{
    AttemptFollowUp, CallSide, DoubtSource, Event, EventRecord, ExecutionEnding, PlanReference, Question,
    QuestionAnswer, SkipReason,
};
use rutter_core::journal::payload::EventPayload;
use rutter_core::plan::{Driver, Plan, PolicyAction};
use rutter_core::time::Timestamp;
use rutter_core::tool::{FailureCategory, ToolFailure};
use rutter_web::drawing::timeline::{
    AttemptOutcome, ROWS_MAX, Timeline, TimelineRow, TimelineSpanKind, from_records, svg,
};
use serde_json::json;
use std::sync::Arc;

const START: i64 = 1_763_294_400_000;

/// A journal written by hand, in milliseconds since the start.
struct Journal {
    plan: Arc<Plan>,
    records: Vec<(u64, EventRecord)>,
}

impl Journal {
    fn of(plan: Arc<Plan>) -> Journal {
        let opened = Event::ExecutionOpened {
            plan: PlanReference::of(&plan),
            revision: 1,
            lineage: "l".to_owned(),
            driver: Driver::Server,
            inputs: nothing(),
        };
        let mut journal = Journal { plan, records: Vec::new() };
        journal.at(0, opened);
        journal.at(0, Event::ExecutionStarted {});
        journal
    }

    fn at(&mut self, ms: i64, event: Event) {
        let actor = match &event {
            Event::ApprovalGranted { .. } | Event::QuestionAnswered { .. } | Event::Paused { .. } => {
                Actor::person("operator")
            }
            _ => Actor::rutter(),
        };
        let seq = self.records.len() as u64 + 1;
        self.records.push((seq, EventRecord { at: Timestamp(START + ms), actor, event }));
    }

    fn start(&mut self, ms: i64, part: &str, side: CallSide, attempt: u32) {
        let event = Event::AttemptStarted {
            part: PartId::parse(part).unwrap(),
            side,
            attempt,
            by: Driver::Server,
            tool: ToolName::new("shop.order"),
            definition: Hash::ZERO,
            call: Hash::ZERO,
            key: Hash::ZERO,
            parameters: nothing(),
            deadline: None,
        };
        self.at(ms, event);
    }

    fn succeed(&mut self, ms: i64, part: &str, side: CallSide, attempt: u32) {
        let part = PartId::parse(part).unwrap();
        self.at(ms, Event::AttemptSucceeded { part, side, attempt, result: nothing(), cost_micros: 0 });
    }

    fn fail(&mut self, ms: i64, part: &str, side: CallSide, attempt: u32, then: AttemptFollowUp) {
        let part = PartId::parse(part).unwrap();
        self.at(ms, Event::AttemptFailed { part, side, attempt, failure: failure(), maybe: false, then });
    }

    fn done(&mut self, from: i64, to: i64, part: &str) {
        self.start(from, part, CallSide::Do, 1);
        self.succeed(to, part, CallSide::Do, 1);
    }

    fn ended(&mut self, ms: i64, outcome: ExecutionEnding) {
        self.at(ms, Event::ExecutionEnded { outcome, reason: String::new(), remains: Vec::new() });
    }

    fn drawn(&self, now: i64) -> Timeline {
        from_records(&self.plan, &self.records, Timestamp(START + now))
    }
}

fn nothing() -> EventPayload {
    EventPayload::new(json!({}))
}

fn failure() -> ToolFailure {
    ToolFailure::new(FailureCategory::Unavailable, "nobody answers")
}

fn due(ms: i64) -> AttemptFollowUp {
    AttemptFollowUp::RetryAt(Timestamp(START + ms))
}

fn steps(ids: &[&str]) -> Vec<StepId> {
    ids.iter().map(|id| StepId::new(id)).collect()
}

fn golden(name: &str, timeline: &Timeline) {
    let drawn = svg(timeline);
    xml::check(&drawn);
    insta::assert_snapshot!(name, drawn.replace("><", ">\n<"));
}

fn row<'a>(timeline: &'a Timeline, step: &str, undo: bool) -> &'a TimelineRow {
    timeline.rows.iter().find(|row| row.step == step && row.undo == undo).unwrap()
}

/// Kinds and milliseconds of a row, in drawing order.
fn spans(row: &TimelineRow) -> Vec<(&'static str, i64, i64)> {
    let kind = |kind: &TimelineSpanKind| match kind {
        TimelineSpanKind::Attempt { outcome: AttemptOutcome::Succeeded, .. } => "succeeded",
        TimelineSpanKind::Attempt { outcome: AttemptOutcome::Failed, .. } => "failed",
        TimelineSpanKind::Attempt { outcome: AttemptOutcome::Running, .. } => "running",
        TimelineSpanKind::Attempt { outcome: AttemptOutcome::Unknown, .. } => "unknown",
        TimelineSpanKind::Queued => "queued",
        TimelineSpanKind::Waiting(_) => "waiting",
        TimelineSpanKind::BackOff => "back-off",
    };
    row.spans.iter().map(|span| (kind(&span.kind), span.from.0 - START, span.to.0 - START)).collect()
}

/// Half of an order, with retries and a pending approval.
fn half_an_order() -> Journal {
    let mut journal = Journal::of(order());
    journal.done(0, 120, "validate");
    journal.start(140, "customer", CallSide::Do, 1);
    journal.start(140, "orders", CallSide::Do, 1);
    journal.start(310, "stock", CallSide::Do, 1);
    journal.succeed(400, "orders", CallSide::Do, 1);
    journal.succeed(620, "customer", CallSide::Do, 1);
    journal.start(660, "fraud", CallSide::Do, 1);
    journal.succeed(980, "stock", CallSide::Do, 1);
    journal.done(1_000, 1_600, "reserve");
    journal.start(1_010, "quote", CallSide::Do, 1);
    journal.fail(1_100, "fraud", CallSide::Do, 1, due(1_350));
    journal.start(1_350, "fraud", CallSide::Do, 2);
    journal.fail(1_800, "fraud", CallSide::Do, 2, due(2_200));
    journal.succeed(2_100, "quote", CallSide::Do, 1);
    journal.start(2_300, "fraud", CallSide::Do, 3);
    journal.succeed(2_720, "fraud", CallSide::Do, 3);
    journal.at(
        2_750,
        Event::ApprovalRequested {
            part: PartId::parse("approve").unwrap(),
            side: CallSide::Do,
            call: Hash::ZERO,
            tool: ToolName::new("gate.approval"),
            parameters: nothing(),
            expires_at: Timestamp(START + 86_400_000),
            basis: None,
        },
    );
    journal
}

#[test]
fn an_order_that_waits_for_a_person() {
    let drawn = half_an_order().drawn(4_600);
    assert_eq!(
        spans(row(&drawn, "fraud", false)),
        [
            ("queued", 620, 660),
            ("failed", 660, 1_100),
            ("back-off", 1_100, 1_350),
            ("failed", 1_350, 1_800),
            ("back-off", 1_800, 2_200),
            ("queued", 2_200, 2_300),
            ("succeeded", 2_300, 2_720),
        ]
    );
    assert_eq!(spans(row(&drawn, "approve", false)), [("queued", 2_720, 2_750), ("waiting", 2_750, 4_600)]);
    let critical: Vec<&str> = drawn.rows.iter().filter(|row| row.critical).map(|row| row.step.as_str()).collect();
    assert_eq!(critical, ["validate", "customer", "fraud", "approve"]);
    assert_eq!(drawn.now, Some(Timestamp(START + 4_600)));
    assert_eq!(drawn.rows.last().unwrap().status, "pending");
    golden("timeline_waiting", &drawn);
}

#[test]
fn an_order_that_is_compensated() {
    let steps_of_plan = json!([
        { "id": "reserve", "tool": "shop.order", "cancellable": "reversible",
          "compensation": { "tool": "shop.release" } },
        { "id": "charge", "tool": "shop.order", "depends_on": ["reserve"], "cancellable": "reversible",
          "compensation": { "tool": "shop.refund" } },
        { "id": "ship", "tool": "shop.order", "depends_on": ["charge"], "cancellable": "irreversible" },
        { "id": "mail", "tool": "shop.order", "depends_on": ["ship"], "cancellable": "irreversible" },
    ]);
    let mut journal = Journal::of(plan("order-4712", &steps_of_plan));
    journal.done(0, 20_000, "reserve");
    journal.start(20_000, "charge", CallSide::Do, 1);
    journal.at(
        80_000,
        Event::AttemptLost {
            part: PartId::parse("charge").unwrap(),
            side: CallSide::Do,
            attempt: 1,
            then: AttemptFollowUp::InDoubt,
        },
    );
    journal.start(81_000, "charge", CallSide::Probe, 1);
    journal.succeed(84_000, "charge", CallSide::Probe, 1);
    let settled = Event::DoubtSettled {
        part: PartId::parse("charge").unwrap(),
        side: CallSide::Do,
        happened: true,
        source: DoubtSource::Probe,
        reason: String::new(),
        result: None,
        evidence: None,
        then: AttemptFollowUp::GiveUp,
    };
    journal.at(84_000, settled);
    journal.start(85_000, "ship", CallSide::Do, 1);
    journal.fail(110_000, "ship", CallSide::Do, 1, AttemptFollowUp::GiveUp);
    let handled = Event::FailureHandled {
        step: StepId::new("ship"),
        action: PolicyAction::ManualDecision,
        reason: String::new(),
        cancelled: Vec::new(),
        skipped: Vec::new(),
    };
    journal.at(110_000, handled);
    journal.at(120_000, Event::Paused { reason: String::new() });
    journal.at(150_000, Event::Resumed { reason: String::new() });
    let answered = Event::QuestionAnswered {
        about: Question::Failure(StepId::new("ship")),
        answer: QuestionAnswer::Compensate,
        reason: String::new(),
        result: None,
        evidence: None,
        skipped: steps(&["mail"]),
    };
    journal.at(200_000, answered);
    let parts = ["charge", "reserve"].map(|part| PartId::parse(part).unwrap()).to_vec();
    journal.at(200_000, Event::CompensationStarted { parts, whole: true, reason: String::new() });
    journal.start(200_000, "charge", CallSide::Undo, 1);
    journal.fail(215_000, "charge", CallSide::Undo, 1, due(225_000));
    journal.start(225_000, "charge", CallSide::Undo, 2);
    journal.succeed(240_000, "charge", CallSide::Undo, 2);
    journal.start(240_000, "reserve", CallSide::Undo, 1);
    journal.succeed(252_000, "reserve", CallSide::Undo, 1);
    journal.ended(252_000, ExecutionEnding::Compensated);
    let drawn = journal.drawn(900_000);
    assert_eq!((drawn.now, drawn.to), (None, Timestamp(START + 252_000)), "it ends with the execution");
    assert_eq!(
        spans(row(&drawn, "charge", false)),
        [("unknown", 20_000, 80_000), ("waiting", 80_000, 84_000), ("succeeded", 81_000, 84_000)]
    );
    assert_eq!(row(&drawn, "charge", true).status, "compensated");
    assert_eq!(row(&drawn, "mail", false).status, "skipped");
    assert_eq!(spans(row(&drawn, "ship", false))[2], ("waiting", 110_000, 200_000));
    assert_eq!(drawn.pauses, [(Timestamp(START + 120_000), Timestamp(START + 150_000))]);
    golden("timeline_compensated", &drawn);
}

#[test]
fn many_items_share_the_row_of_their_step() {
    let steps_of_plan = json!([
        { "id": "list", "tool": "shop.list", "cancellable": "irreversible" },
        { "id": "update", "tool": "shop.order", "for_each": "{{ steps.list.result }}", "cancellable": "irreversible" },
        { "id": "note", "tool": "shop.note", "depends_on": ["update"], "when": "false",
          "cancellable": "irreversible" },
    ]);
    let mut journal = Journal::of(plan("bulk", &steps_of_plan));
    journal.done(0, 300, "list");
    journal.at(300, Event::FanOutOpened { step: StepId::new("update"), count: 9, items: nothing() });
    for item in 0..9_i64 {
        journal.start(300 + item * 90, &format!("update[{item}]"), CallSide::Do, 1);
    }
    for item in 0..9_i64 {
        let part = format!("update[{item}]");
        if item == 4 {
            journal.fail(1_100, &part, CallSide::Do, 1, due(1_400));
            journal.start(1_400, &part, CallSide::Do, 2);
            journal.succeed(1_700, &part, CallSide::Do, 2);
        } else {
            journal.succeed(900 + item * 130, &part, CallSide::Do, 1);
        }
    }
    journal.at(1_950, Event::StepsSkipped { steps: steps(&["note"]), because: SkipReason::Condition });
    journal.ended(1_950, ExecutionEnding::Completed);
    let drawn = journal.drawn(9_000);
    assert_eq!(row(&drawn, "update", false).spans.len(), 11);
    assert_eq!(row(&drawn, "update", false).status, "completed");
    golden("timeline_items", &drawn);
}

#[test]
fn an_attempt_without_an_end_is_unknown_after_the_execution_ended() {
    let mut journal = Journal::of(order());
    journal.start(10, "validate", CallSide::Do, 1);
    let running = journal.drawn(500);
    assert_eq!(spans(row(&running, "validate", false)), [("queued", 0, 10), ("running", 10, 500)]);
    journal.at(800, Event::Killed { reason: String::new() });
    let killed = journal.drawn(5_000);
    assert_eq!(spans(row(&killed, "validate", false)), [("queued", 0, 10), ("unknown", 10, 800)]);
    let of_customer = |timeline: &Timeline| row(timeline, "customer", false).status;
    assert_eq!((of_customer(&running), of_customer(&killed)), ("pending", "cancelled"));
}

#[test]
fn every_prefix_of_a_journal_has_its_timeline() {
    let whole = half_an_order();
    for length in 0..=whole.records.len() {
        let journal = Journal { plan: whole.plan.clone(), records: whole.records[..length].to_vec() };
        let drawn = journal.drawn(2_800);
        assert_eq!(drawn.rows.len(), 12);
        for span in drawn.rows.iter().flat_map(|row| &row.spans) {
            assert!(span.from <= span.to && span.from >= drawn.from && span.to <= drawn.to, "{span:?}");
        }
        xml::check(&svg(&drawn));
    }
}

#[test]
fn rows_come_in_pages() {
    let many =
        (0..450).map(|at| json!({ "id": format!("s{at}"), "tool": "shop.order", "cancellable": "irreversible" }));
    let journal = Journal::of(plan("many", &json!(many.collect::<Vec<_>>())));
    let drawn = journal.drawn(10);
    assert_eq!(svg(&drawn).matches("<a class=\"row").count(), ROWS_MAX);
    assert!(svg(&drawn).contains("rows 1 to 200 of 450"));
    assert!(svg(&drawn.page(2)).contains("rows 401 to 450 of 450"));
    assert!(drawn.page(3).rows.is_empty() && drawn.page(usize::MAX).rows.is_empty());
}
