//! Every event against every state, and random events in any order: an illegal one is an error, never a panic.

use proptest::prelude::*;
use rutter_core::actor::Actor;
use rutter_core::execution::Execution;
use rutter_core::execution::input::{DecisionContext, ExecutionInput};
use rutter_core::execution::part::{PartState, ProbeProgress, StepPart};
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event::{
    AttemptFollowUp, CallSide, Deviation, DoubtSource, Event, EventRecord, ExecutionEnding, ExecutionLimit, LateAnswer,
    PlanReference, Question, QuestionAnswer, SkipReason,
};
use rutter_core::journal::payload::EventPayload;
use rutter_core::plan::{Driver, Plan, PolicyAction};
use rutter_core::time::Timestamp;
use rutter_core::tool::FailureCategory::{Timeout, ToolError, Unavailable};
use rutter_core::tool::{FailureCategory, ToolFailure};
use rutter_testkit::scene::*;
use serde_json::json;
use std::sync::{Arc, LazyLock};

const PLAN: &str = "steps:
  - id: a
    tool: t.once
    approval: {expires: 1h}
    compensation: {tool: t.undo_once, retry: {max_attempts: 2}}
    probe: {tool: t.find, happened: result.found, settle: 0s}
    fallback: {tool: t.other}
  - {id: b, tool: t.set, depends_on: [a]}";

fn payload() -> EventPayload {
    EventPayload::Present(Arc::new(json!({"found": true})))
}

fn failure() -> ToolFailure {
    ToolFailure::new(FailureCategory::Unavailable, "gone")
}

fn asking() -> ExecutionScenario {
    ExecutionScenario::started(PLAN)
}

fn running() -> ExecutionScenario {
    let mut scene = asking();
    scene.approve("a");
    scene
}

fn completed() -> ExecutionScenario {
    let mut scene = running();
    scene.returns("a", done(json!({})));
    scene.returns("b", done(json!({})));
    scene
}

fn undoing() -> ExecutionScenario {
    let mut scene = completed();
    scene.compensate(None);
    scene
}

/// The states of part `a`, each with a scenario in that state.
fn states() -> Vec<(&'static str, ExecutionScenario)> {
    let mut approved = asking();
    approved.pause();
    approved.approve("a");
    let mut ticketed = running();
    ticketed.accepts("a", "ticket");
    let mut inquiring = running();
    inquiring.tool_asks("a", json!({"type": "object"}));
    let mut backing_off = running();
    backing_off.returns("a", fails(Unavailable));
    let mut falling_back = running();
    falling_back.pause();
    falling_back.returns("a", fails(ToolError));
    let mut unprobed = running();
    unprobed.pause();
    unprobed.returns("a", maybe(Timeout));
    let mut probing = running();
    probing.returns("a", maybe(Timeout));
    let mut probe_waits = running();
    probe_waits.returns("a", maybe(Timeout));
    probe_waits.returns("a", fails(Unavailable));
    let mut unknown = running();
    unknown.returns("a", maybe(Timeout));
    unknown.returns("a", fails(ToolError));
    let mut failed = asking();
    failed.deny("a");
    let mut pending = asking();
    pending.deny("a");
    pending.pause();
    pending.answer_failure("a", QuestionAnswer::Retry);
    let mut cancelled = asking();
    cancelled.cancel(None);
    let mut undo_waits = undoing();
    undo_waits.returns("a", fails(Unavailable));
    let mut undo_doubted = undoing();
    undo_doubted.returns("a", maybe(Timeout));
    let mut compensated = undoing();
    compensated.returns("a", done(json!({})));
    let mut stuck = undoing();
    stuck.returns("a", fails(ToolError));
    let mut given_up = undoing();
    given_up.returns("a", fails(ToolError));
    given_up.answer(Question::Compensation(part("a")), QuestionAnswer::Skip);
    vec![
        ("pending", pending),
        ("asking", asking()),
        ("approved", approved),
        ("running", running()),
        ("ticketed", ticketed),
        ("inquiring", inquiring),
        ("backing off", backing_off),
        ("falling back", falling_back),
        ("unprobed", unprobed),
        ("probing", probing),
        ("probe waits", probe_waits),
        ("unknown", unknown),
        ("completed", completed()),
        ("failed", failed),
        ("cancelled", cancelled),
        ("undoing", undoing()),
        ("undo waits", undo_waits),
        ("undo doubted", undo_doubted),
        ("compensated", compensated),
        ("stuck", stuck),
        ("given up", given_up),
    ]
}

fn started(part: PartId, side: CallSide, attempt: u32) -> Event {
    Event::AttemptStarted {
        part,
        side,
        attempt,
        by: Driver::Server,
        tool: tool("t.once"),
        definition: Hash::ZERO,
        call: Hash::ZERO,
        key: Hash::ZERO,
        parameters: payload(),
        deadline: None,
    }
}

fn settled(part: PartId, side: CallSide, happened: bool, then: AttemptFollowUp) -> Event {
    Event::DoubtSettled {
        part,
        side,
        happened,
        source: DoubtSource::Person,
        reason: String::new(),
        result: None,
        evidence: None,
        then,
    }
}

fn answered(about: Question, answer: QuestionAnswer) -> Event {
    Event::QuestionAnswered { about, answer, reason: String::new(), result: None, evidence: None, skipped: vec![] }
}

/// The requested call, the running attempt, the side in doubt: so that the event refers to them.
fn current(scene: &ExecutionScenario) -> (Hash, CallSide, u32) {
    match &scene.part("a").state {
        PartState::Asking { call, side, .. } | PartState::Approved { call, side, .. } => (*call, *side, 1),
        PartState::Running(attempt) => (Hash::ZERO, attempt.side, attempt.number),
        PartState::InDoubt { probing: ProbeProgress::Running(probe), .. } => {
            (Hash::ZERO, CallSide::Probe, probe.number)
        }
        PartState::InDoubt { side, attempt, .. } => (Hash::ZERO, *side, *attempt),
        PartState::BackingOff { side, .. } => (Hash::ZERO, *side, 1),
        _ => (Hash::ZERO, CallSide::Do, 1),
    }
}

/// An event about part `a`, and the states in which it may happen; in all others it is illegal.
fn part_events(scene: &ExecutionScenario) -> Vec<(&'static str, Event, &'static [&'static str])> {
    let a = || part("a");
    let (call, side, attempt) = current(scene);
    let reason = String::new;
    let doubted = match &scene.part("a").state {
        PartState::InDoubt { side, .. } => *side,
        _ => CallSide::Do,
    };
    let prepared = if matches!(scene.part("a").state, PartState::InDoubt { .. }) { CallSide::Probe } else { side };
    let next = |side: CallSide| scene.part("a").attempts_of(side) + 1;
    let (tool, called) = (tool("t.once"), tool("t.once"));
    let expires_at = Timestamp(9_000_000);
    vec![
        (
            "requested",
            Event::ApprovalRequested { part: a(), side, call, tool, parameters: payload(), expires_at, basis: None },
            &["pending", "backing off", "falling back", "undo waits"],
        ),
        (
            "forbidden",
            Event::CallForbidden {
                part: a(),
                side: prepared,
                call,
                tool: called.clone(),
                rule: None,
                reason: reason(),
                digest: Hash::ZERO,
            },
            PREPARED,
        ),
        (
            "delayed",
            Event::CallDelayed { part: a(), side: prepared, rule: reason(), until: expires_at, failure: None },
            PREPARED,
        ),
        ("granted", Event::ApprovalGranted { part: a(), call, reason: reason() }, &["asking"]),
        ("denied", Event::ApprovalDenied { part: a(), call, reason: reason() }, &["asking"]),
        ("expired", Event::ApprovalExpired { part: a(), call }, &["asking"]),
        ("voided", Event::ApprovalVoided { part: a(), call, reason: reason() }, &["asking", "approved"]),
        ("do", started(a(), CallSide::Do, next(CallSide::Do)), &["pending", "approved", "backing off"]),
        ("do of no number", started(a(), CallSide::Do, next(CallSide::Do) + 1), &[]),
        ("undo", started(a(), CallSide::Undo, next(CallSide::Undo)), &["undo waits"]),
        ("fallback", started(a(), CallSide::Fallback, next(CallSide::Fallback)), &["falling back"]),
        ("probe", started(a(), CallSide::Probe, next(CallSide::Probe)), &["unprobed", "probe waits"]),
        (
            "accepted",
            Event::AttemptAccepted { part: a(), side, attempt, ticket: reason() },
            &["running", "probing", "undoing", "inquiring"],
        ),
        (
            "asked",
            Event::ToolAsked { part: a(), side, attempt, message: reason(), schema: payload(), continuation: None },
            &["running", "ticketed", "probing", "undoing"],
        ),
        ("answered", Event::ToolAnswered { part: a(), side, attempt, answer: None, reason: reason() }, &["inquiring"]),
        ("another accepted", Event::AttemptAccepted { part: a(), side, attempt: 9, ticket: reason() }, &[]),
        (
            "succeeded",
            Event::AttemptSucceeded { part: a(), side, attempt, result: payload(), cost_micros: 1 },
            &["running", "ticketed", "inquiring", "probing", "undoing"],
        ),
        (
            "another succeeded",
            Event::AttemptSucceeded { part: a(), side, attempt: 9, result: payload(), cost_micros: 1 },
            &[],
        ),
        (
            "attempt failed",
            Event::AttemptFailed {
                part: a(),
                side,
                attempt,
                failure: failure(),
                maybe: false,
                then: AttemptFollowUp::GiveUp,
            },
            &["running", "ticketed", "inquiring", "probing", "undoing"],
        ),
        (
            "lost",
            Event::AttemptLost { part: a(), side, attempt, then: AttemptFollowUp::GiveUp },
            &["running", "ticketed", "inquiring", "probing", "undoing"],
        ),
        (
            "abandoned",
            Event::RetryAbandoned { part: a(), side, failure: failure() },
            &["pending", "asking", "approved", "backing off", "falling back"],
        ),
        ("inconclusive", Event::ProbeInconclusive { part: a(), reason: reason() }, &["unprobed"]),
        ("postponed", Event::ProbePostponed { part: a(), until: Timestamp(2_000_000) }, &[]),
        ("key expired", Event::KeyExpired { part: a(), side }, &[]),
        (
            "settled",
            settled(a(), doubted, true, AttemptFollowUp::GiveUp),
            &["unprobed", "probing", "probe waits", "unknown", "undo doubted"],
        ),
        ("settled about another side", settled(a(), CallSide::Probe, true, AttemptFollowUp::GiveUp), &[]),
        ("prepared in vain", Event::PreparationFailed { part: a(), side: prepared, failure: failure() }, PREPARED),
        (
            "attempt failed into a fallback",
            Event::AttemptFailed {
                part: a(),
                side,
                attempt,
                failure: failure(),
                maybe: false,
                then: AttemptFollowUp::FallBack,
            },
            &["running", "ticketed", "inquiring"],
        ),
        ("tried to undo again", answered(Question::Compensation(a()), QuestionAnswer::Retry), &["stuck"]),
        ("left not undone", answered(Question::Compensation(a()), QuestionAnswer::Skip), &["stuck"]),
        ("undone by hand", answered(Question::Compensation(a()), QuestionAnswer::Resolve), &["stuck"]),
        ("compensation stopped", answered(Question::Compensation(a()), QuestionAnswer::Stop), &[]),
        (
            "by hand",
            Event::CompensationRecorded { part: a(), description: reason(), evidence: None },
            &["completed", "undo waits", "stuck", "given up"],
        ),
    ]
}

/// The states in which a call can be prepared.
const PREPARED: &[&str] =
    &["pending", "approved", "backing off", "falling back", "unprobed", "probe waits", "undo waits"];

fn record(event: Event) -> EventRecord {
    EventRecord { at: Timestamp(2_000_000), actor: Actor::rutter(), event }
}

#[test]
fn each_event_of_a_part_may_follow_exactly_its_listed_states() {
    let mut wrong = Vec::new();
    for (state, scene) in states() {
        for (name, event, allowed) in part_events(&scene) {
            let applied = scene.execution.clone().apply(&record(event));
            if applied.is_ok() != allowed.contains(&state) {
                wrong.push(format!("{name} while {state}: {applied:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_late_answer_never_changes_a_part() {
    for (state, scene) in states() {
        for answer in [LateAnswer::Done(payload()), LateAnswer::NotDone(failure()), LateAnswer::Maybe(failure())] {
            let mut execution = scene.execution.clone();
            let event = Event::LateAnswerArrived {
                part: part("a"),
                side: CallSide::Do,
                attempt: 1,
                answer,
                cost_micros: 0,
                effect: None,
            };
            execution.apply(&record(event)).unwrap();
            // What was said is kept for the question about it.
            let said = |part: &StepPart| StepPart { reported: None, late_done: Vec::new(), ..part.clone() };
            let [after, before] = [&execution, &scene.execution].map(|execution| execution.part(&part("a")).map(said));
            assert_eq!(after, before, "{state}");
        }
    }
}

#[test]
fn events_about_unknown_steps_are_illegal() {
    let scene = running();
    for name in ["nobody", "a[0]", "b[7]"] {
        for event in [
            started(part(name), CallSide::Do, 1),
            Event::ApprovalExpired { part: part(name), call: Hash::ZERO },
            Event::CompensationStarted { parts: vec![part(name)], whole: true, reason: String::new() },
        ] {
            let error = scene.execution.clone().apply(&record(event.clone()));
            assert!(error.is_err(), "{event:?}");
        }
    }
    for event in [
        Event::FanOutOpened { step: step("nobody"), count: 1, items: payload() },
        Event::StepsSkipped { steps: vec![step("nobody")], because: SkipReason::Condition },
        Event::StepsSkipped { steps: vec![step("a")], because: SkipReason::Condition },
        Event::FanOutOpened { step: step("a"), count: 1, items: payload() },
        Event::FailureHandled {
            step: step("a"),
            action: PolicyAction::CancelAll,
            reason: String::new(),
            cancelled: vec![],
            skipped: vec![],
        },
        answered(Question::Failure(step("a")), QuestionAnswer::Retry),
        answered(Question::Limit(ExecutionLimit::Calls), QuestionAnswer::Continue),
        Event::ExecutionStarted {},
        scene.journal[0].event.clone(),
    ] {
        let error = scene.execution.clone().apply(&record(event.clone()));
        let error = error.expect_err(&format!("{event:?} is illegal"));
        assert!(!error.why.is_empty() && error.event.len() <= 1_000, "{error}");
    }
}

#[test]
fn an_event_out_of_its_phase_is_illegal() {
    let reason = String::new;
    let request = |call| Event::ApprovalRequested {
        part: part("a"),
        side: CallSide::Do,
        call,
        tool: tool("t.once"),
        parameters: payload(),
        expires_at: Timestamp(9_000_000),
        basis: None,
    };
    let end = || Event::ExecutionEnded { outcome: ExecutionEnding::Completed, reason: reason(), remains: vec![] };
    let opened = || ExecutionScenario::of("steps: [{id: a, tool: t.once}, {id: f, tool: t.once, for_each: '[1]'}]");
    let mut paused = running();
    paused.pause();
    let twice = Event::CompensationStarted { parts: vec![part("a"), part("a")], whole: true, reason: reason() };
    let list = || EventPayload::Present(Arc::new(json!([1])));
    let table = [
        ("an attempt before the start", opened(), started(part("a"), CallSide::Do, 1)),
        ("a question before the start", opened(), request(Hash::ZERO)),
        ("a list before the start", opened(), Event::FanOutOpened { step: step("f"), count: 1, items: list() }),
        ("an end before the start", opened(), end()),
        ("an end while something runs", running(), end()),
        ("an end after the end", completed(), end()),
        ("a pause after the end", completed(), Event::Paused { reason: reason() }),
        ("a pause while paused", paused, Event::Paused { reason: reason() }),
        ("a resume while not paused", running(), Event::Resumed { reason: reason() }),
        ("a cancel while undoing", undoing(), Event::CancelRequested { reason: reason(), undo: true }),
        ("a kill after the end", completed(), Event::Killed { reason: reason() }),
        (
            "undoing while going forward",
            running(),
            Event::CompensationStarted { parts: vec![], whole: true, reason: reason() },
        ),
        ("undoing a part twice", completed(), twice),
        (
            "a limit after the end",
            completed(),
            Event::LimitReached { limit: ExecutionLimit::Calls, action: PolicyAction::ManualDecision },
        ),
        ("a new plan being made after the end", completed(), Event::ReplanBegun { reason: reason() }),
        ("a new plan given up that was not being made", running(), Event::ReplanAbandoned { reason: reason() }),
        (
            "a new plan after the end",
            completed(),
            Event::Replanned { plan: PlanReference::of(&NEW_PLAN), revision: 2, reason: reason() },
        ),
        (
            "a new plan that was not saved",
            running(),
            Event::Replanned { plan: PlanReference::of(&NEW_PLAN), revision: 0, reason: reason() },
        ),
        ("a hand-over to the same driver", running(), Event::HandedOver { to: Driver::Server, reason: reason() }),
    ];
    let wrong: Vec<_> = table
        .into_iter()
        .filter(|(_, scene, event)| scene.execution.clone().apply(&record(event.clone())).is_ok())
        .map(|(name, ..)| name)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_list_that_does_not_fit_its_step_is_illegal() {
    let mut scene = ExecutionScenario::of(
        "steps: [{id: a, tool: t.once}, {id: f, tool: t.once, for_each: {items: '[1, 2]', max_items: 2}}]",
    );
    scene.room = 0;
    scene.start();
    let list = |items: serde_json::Value| EventPayload::Present(Arc::new(items));
    let table = [
        ("a step without for_each", "a", 1, list(json!([1]))),
        ("fewer parts than items", "f", 1, list(json!([1, 2]))),
        ("more parts than items", "f", 3, list(json!([1, 2]))),
        ("more items than may be", "f", 3, list(json!([1, 2, 3]))),
        ("no list", "f", 1, list(json!(1))),
        ("more parts than there can ever be, of an erased list", "f", 20_000, EventPayload::Erased),
    ];
    let wrong: Vec<_> = table
        .into_iter()
        .filter(|(_, name, count, items)| {
            let event = Event::FanOutOpened { step: step(name), count: *count, items: items.clone() };
            scene.execution.clone().apply(&record(event)).is_ok()
        })
        .map(|(what, ..)| what)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_journal_begins_with_its_opening() {
    let records = [record(Event::ExecutionStarted {})];
    assert!(Execution::replay(identity(), &records).is_err());
    assert!(Execution::replay(identity(), &[]).is_err());
    let mut opening = ExecutionScenario::of(PLAN).journal[0].clone();
    if let Event::ExecutionOpened { plan, .. } = &mut opening.event {
        *plan = PlanReference { hash: plan.hash, plan: None };
    }
    assert!(Execution::replay(identity(), &[opening]).is_err(), "its plan is missing");
}

/// Any event, about the small plan below or about something that is not in it.
fn any_event() -> impl Strategy<Value = Event> {
    let parts = prop::sample::select(vec!["a", "b", "c", "f[0]", "f[1]", "f[9]", "f", "zz"]).prop_map(part);
    let ids = prop::sample::select(vec!["a", "b", "c", "f", "zz"]).prop_map(step);
    let sides = prop::sample::select(vec![CallSide::Do, CallSide::Fallback, CallSide::Undo, CallSide::Probe]);
    let thens = prop::sample::select(vec![
        AttemptFollowUp::RetryAt(Timestamp(1_000_500)),
        AttemptFollowUp::FallBack,
        AttemptFollowUp::InDoubt,
        AttemptFollowUp::GiveUp,
    ]);
    let actions = prop::sample::select(vec![
        PolicyAction::ManualDecision,
        PolicyAction::CancelAll,
        PolicyAction::CancelDependent,
        PolicyAction::ContinueOthers,
        PolicyAction::Compensate,
    ]);
    let answers = prop::sample::select(vec![
        QuestionAnswer::Retry,
        QuestionAnswer::Skip,
        QuestionAnswer::Resolve,
        QuestionAnswer::Stop,
        QuestionAnswer::Continue,
        QuestionAnswer::Compensate,
        QuestionAnswer::Replan,
    ]);
    let lists = prop::collection::vec(ids.clone(), 0..3);
    (0..39u32, parts, ids, sides, thens, (actions, answers, lists), (1..3u32, any::<bool>())).prop_map(
        |(kind, part, step, side, then, (action, answer, steps), (attempt, flag))| {
            event(Draw { kind, part, step, side, then, action, answer, steps, attempt, flag })
        },
    )
}

/// The components of a random event.
struct Draw {
    kind: u32,
    part: PartId,
    step: StepId,
    side: CallSide,
    then: AttemptFollowUp,
    action: PolicyAction,
    answer: QuestionAnswer,
    steps: Vec<StepId>,
    attempt: u32,
    flag: bool,
}

fn event(draw: Draw) -> Event {
    let Draw { kind, part, step, side, then, action, answer, steps, attempt, flag } = draw;
    let reason = String::new();
    let call = Hash::ZERO;
    let by = if flag { Driver::Server } else { Driver::Agent };
    match kind {
        0 => Event::ExecutionStarted {},
        1 => Event::FanOutOpened { step, count: attempt, items: payload() },
        2 => Event::StepsSkipped { steps, because: SkipReason::Condition },
        3 => {
            let (tool, expires_at) = (tool("t.once"), Timestamp(1_000_900));
            Event::ApprovalRequested { part, side, call, tool, parameters: payload(), expires_at, basis: None }
        }
        4 => Event::ApprovalGranted { part, call, reason },
        5 => Event::ApprovalDenied { part, call, reason },
        6 => Event::ApprovalExpired { part, call },
        7 => Event::ApprovalVoided { part, call, reason },
        8..=11 => started(part, side, attempt),
        12..=14 => Event::AttemptSucceeded { part, side, attempt, result: payload(), cost_micros: 1 },
        15..=17 => Event::AttemptFailed { part, side, attempt, failure: failure(), maybe: flag, then },
        18 => Event::AttemptLost { part, side, attempt, then },
        36 => Event::AttemptAccepted { part, side, attempt, ticket: reason },
        37 => {
            let continuation = flag.then(payload);
            Event::ToolAsked { part, side, attempt, message: reason, schema: payload(), continuation }
        }
        38 => Event::ToolAnswered { part, side, attempt, answer: flag.then(payload), reason },
        19 => Event::LateAnswerArrived {
            part,
            side,
            attempt,
            answer: LateAnswer::NotDone(failure()),
            cost_micros: 0,
            effect: None,
        },
        20 if flag => {
            let (tool, rule, digest) = (tool("t.once"), None, Hash::ZERO);
            Event::CallForbidden { part, side, call, tool, rule, reason, digest }
        }
        21 if flag => Event::CallDelayed { part, side, rule: reason, until: Timestamp(1_000_900), failure: None },
        20 => Event::PreparationFailed { part, side, failure: failure() },
        21 => Event::RetryAbandoned { part, side, failure: failure() },
        22 if flag => Event::ProbeInconclusive { part, reason },
        22 if attempt > 1 => Event::ProbePostponed { part, until: Timestamp(1_000_700) },
        22 => Event::KeyExpired { part, side },
        23 => settled(part, side, flag, then),
        24 => Event::FailureHandled { step, action, reason, cancelled: steps, skipped: vec![] },
        25 => answered(Question::Failure(step), answer),
        26 => answered(Question::Compensation(part), answer),
        27 => Event::LimitReached { limit: ExecutionLimit::Calls, action },
        28 => answered(Question::Limit(ExecutionLimit::Calls), answer),
        29 if flag => Event::Paused { reason },
        29 => Event::Resumed { reason },
        30 => Event::CancelRequested { reason, undo: flag },
        31 => Event::CompensationStarted { parts: vec![part.clone(), part], whole: flag, reason },
        32 => Event::CompensationRecorded { part, description: reason, evidence: None },
        33 if flag => Event::Killed { reason },
        33 => Event::HandedOver { to: by, reason },
        34 => Event::Replanned { plan: PlanReference::of(&NEW_PLAN), revision: attempt, reason },
        _ if flag => Event::ExecutionEnded { outcome: ExecutionEnding::Completed, reason, remains: vec![] },
        _ => Event::DeviationFound { kind: Deviation::Skipped, step: Some(step), description: reason },
    }
}

static NEW_PLAN: LazyLock<Arc<Plan>> = LazyLock::new(|| plan(PLAN, Driver::Server));
static SMALL_SCENE: LazyLock<Execution> = LazyLock::new(|| ExecutionScenario::of(SMALL).execution);

const SMALL: &str = "max_parallel: 2
steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo}, fallback: {tool: t.other}}
  - {id: b, tool: t.set, depends_on: [a], failure_policy: continue_others}
  - {id: c, tool: t.once, parameters: {x: '{{ steps.b.result.x }}'}, approval: true}
  - {id: f, tool: t.once, for_each: '[1, 2]', compensation: {tool: t.undo}}";

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_events_never_panic(events in prop::collection::vec(any_event(), 1..40)) {
        let mut execution = SMALL_SCENE.clone();
        for event in events {
            let before = execution.clone();
            if execution.apply(&record(event)).is_err() {
                // The caller discards it; continue from the state before.
                execution = before;
            }
            let _ = (execution.view(), execution.brief(), execution.wake_at());
        }
        let moment = DecisionContext { now: Timestamp(3_000_000), room: 9 };
        let _ = execution.decide(&Actor::rutter(), ExecutionInput::Recovered, moment);
    }
}
