//! Questions of tools: listed like any other, answered by those the plan allows, closed with their attempt.

use rutter_core::actor::Actor;
use rutter_core::execution::Execution;
use rutter_core::execution::input::{DecisionContext, ExecutionInput};
use rutter_core::journal::event::{CallSide, Event, EventRecord};
use rutter_core::journal::payload::EventPayload;
use rutter_core::limits;
use rutter_core::plan::Driver;
use rutter_core::time::Millis;
use rutter_core::tool::Elicitation;
use rutter_core::tool::FailureCategory::{Timeout, Unavailable};
use rutter_testkit::scene::*;
use serde_json::{Value, json};
use std::sync::Arc;

/// An action on a scenario.
type Action = fn(&mut ExecutionScenario);

const PLAN: &str = "steps:
  - {id: a, tool: t.once, timeout: 60s, compensation: {tool: t.undo_once}}
  - {id: b, tool: t.once, depends_on: [a]}";

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "port": { "type": "string", "enum": ["Hull", "Leith"] },
            "berths": { "type": "integer", "minimum": 1 },
            "days": { "type": "array", "items": { "type": "string" } },
        },
        "required": ["port"],
    })
}

fn asked(fields: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(fields);
    scene.tool_asks("a", schema());
    scene
}

fn hull() -> Option<Value> {
    Some(json!({"port": "Hull"}))
}

#[test]
fn a_question_is_listed_with_its_text_and_its_schema() {
    let scene = asked(PLAN);
    assert_eq!(scene.events(), ["ToolAsked"]);
    assert_eq!(scene.asks(), ["tool a"]);
    assert_eq!((scene.status(), scene.step("a"), scene.execution.row().questions), ("waiting", "waiting", 1));
    assert_eq!(
        serde_json::to_value(scene.execution.questions()).unwrap(),
        json!([{
            "kind": "tool", "part": "a", "side": "do", "attempt": 1,
            "message": "which one?", "schema": schema(), "person_only": false,
        }])
    );
    let brief = scene.execution.brief();
    assert!(
        brief.contains("Next: answer: a person or an agent must answer the tool of a, which asks \"which one?\""),
        "{brief}"
    );
}

#[test]
fn an_answer_is_recorded_with_its_actor_and_the_call_continues() {
    for actor in [agent(), person()] {
        let mut scene = asked(PLAN);
        scene.answer_tool(&actor, "a", hull());
        let record = &scene.last.records[0];
        assert_eq!(record.actor, actor);
        let Event::ToolAnswered { side: CallSide::Do, attempt: 1, answer: Some(answer), .. } = &record.event else {
            panic!("{record:?}");
        };
        assert_eq!(answer, &EventPayload::new(json!({"port": "Hull"})));
        assert_eq!((scene.asks(), scene.status(), scene.step("a")), (vec![], "running", "running"));
        scene.returns("a", done(json!({})));
        assert_eq!(scene.calls(), ["b"]);
    }
}

#[test]
fn a_question_can_be_declined_and_another_one_asked() {
    let mut scene = asked(PLAN);
    scene.answer_tool(&agent(), "a", None);
    assert_eq!(scene.asks(), [""; 0]);
    scene.tool_asks("a", schema());
    assert_eq!(scene.asks(), ["tool a"]);
    let second = tool_asking("a", CallSide::Do, 1, schema());
    assert_eq!(scene.refused(&Actor::rutter(), second), "execution.told_already");
    scene.answer_tool(&agent(), "a", hull());
    assert_eq!(scene.count("ToolAsked"), 2);
}

/// An answer, and the code of its refusal, if any.
#[test]
fn an_answer_must_be_what_was_asked_for() {
    let long = "x".repeat(limits::VALUE_BYTES_MAX);
    let table = [
        (json!({"port": "Hull"}), ""),
        (json!({"port": "Leith", "berths": 2, "days": ["Monday"]}), ""),
        (json!({"port": "Ostend"}), "execution.answer_invalid"),
        (json!({"port": 7}), "execution.answer_invalid"),
        (json!({"port": "Hull", "berths": 0}), "execution.answer_invalid"),
        (json!({}), "execution.answer_invalid"),
        (json!("Hull"), "execution.answer_invalid"),
        (json!(null), "execution.answer_invalid"),
        (json!(["Hull"]), "execution.answer_invalid"),
        (json!({"port": "Hull", "more": {"deep": 1}}), "execution.answer_invalid"),
        (json!({"port": "Hull", "more": [[1]]}), "execution.answer_invalid"),
        (json!({"port": "Hull", "more": long}), "execution.too_large"),
    ];
    for (answer, code) in table {
        let given = asked(PLAN).input(&agent(), answering_tool("a", 1, Some(answer.clone())));
        let given = given.map_or_else(|refusal| refusal.code, |()| "");
        assert_eq!(given, code, "{}", answer.to_string().chars().take(80).collect::<String>());
    }
}

/// An answer may be as large as a value can be, and no larger.
#[test]
fn an_answer_has_a_size() {
    let mut open = json!({"type": "object"});
    open["properties"] = json!({"t": {"type": "string"}});
    for (more, code) in [(0, ""), (1, "execution.too_large")] {
        let mut scene = ExecutionScenario::started(PLAN);
        scene.tool_asks("a", open.clone());
        let answer = json!({"t": "x".repeat(limits::VALUE_BYTES_MAX - 8 + more)});
        let given = scene.input(&agent(), answering_tool("a", 1, Some(answer)));
        assert_eq!(given.map_or_else(|refusal| refusal.code, |()| ""), code);
    }
}

#[test]
fn a_question_that_cannot_be_answered_is_refused() {
    let rutter = Actor::rutter();
    for schema in [
        json!({}),
        json!(true),
        json!({"type": "string"}),
        json!({"type": "object", "properties": {"a": {"type": "nothing"}}}),
        json!({"type": "object", "properties": {"a": {"$ref": "https://example.com/schema"}}}),
    ] {
        let code = ExecutionScenario::started(PLAN).refused(&rutter, tool_asking("a", CallSide::Do, 1, schema.clone()));
        assert_eq!(code, "execution.question_invalid", "{schema}");
    }
    for (more, code) in [(0, ""), (1, "execution.text_too_long")] {
        let message = "x".repeat(limits::REASON_BYTES_MAX + more);
        let question = Elicitation { message, schema: Arc::new(schema()), continuation: None };
        let input = ExecutionInput::ToolAsks { part: part("a"), side: CallSide::Do, attempt: 1, question };
        let given = ExecutionScenario::started(PLAN).input(&rutter, input);
        assert_eq!(given.map_or_else(|refusal| refusal.code, |()| ""), code);
    }
    for (name, attempt) in [("a", 2), ("b", 1), ("nobody", 1)] {
        let code =
            ExecutionScenario::started(PLAN).refused(&rutter, tool_asking(name, CallSide::Do, attempt, schema()));
        assert_eq!(code, "execution.unknown_attempt", "{name}");
    }
}

#[test]
fn only_a_person_answers_where_the_plan_requires_approval() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once, approval: true}]");
    scene.approve("a");
    scene.tool_asks("a", schema());
    let brief = scene.execution.brief();
    assert!(brief.contains("a person must answer the tool of a"), "{brief}");
    for answer in [hull(), None] {
        let input = answering_tool("a", 1, answer);
        assert_eq!(scene.refused(&agent(), input.clone()), "execution.not_a_person");
        assert_eq!(scene.refused(&Actor::rutter(), input), "execution.not_a_person");
    }
    scene.answer_tool(&person(), "a", hull());
    let code = asked(PLAN).refused(&Actor::rutter(), answering_tool("a", 1, hull()));
    assert_eq!(code, "execution.not_a_person", "Rutter itself cannot answer");
}

#[test]
fn a_question_that_is_not_open_has_no_answer() {
    let mut scene = asked(PLAN);
    assert_eq!(scene.refused(&agent(), answering_tool("a", 2, hull())), "execution.no_question");
    assert_eq!(scene.refused(&agent(), answering_tool("b", 1, hull())), "execution.no_question");
    assert_eq!(scene.refused(&agent(), answering_tool("nobody", 1, hull())), "execution.unknown_part");
    scene.answer_tool(&agent(), "a", hull());
    assert_eq!(scene.refused(&agent(), answering_tool("a", 1, hull())), "execution.no_question");
}

/// However an attempt ends, its question is closed with it.
#[test]
fn an_attempt_that_ends_closes_its_question() {
    let ends: [(&str, Action); 6] = [
        ("answered", |scene| scene.returns("a", done(json!({})))),
        ("failed", |scene| scene.returns("a", fails(Unavailable))),
        ("lost its response", |scene| scene.returns("a", maybe(Timeout))),
        ("timed out", |scene| scene.later(60_000)),
        ("crashed", ExecutionScenario::crash),
        ("killed", ExecutionScenario::kill),
    ];
    for (name, end) in ends {
        let mut scene = asked(PLAN);
        end(&mut scene);
        assert!(!scene.asks().contains(&"tool a".to_owned()), "{name}: {:?}", scene.asks());
        assert_eq!(scene.count("ToolAnswered"), 0, "{name}");
        assert_eq!(scene.refused(&person(), answering_tool("a", 1, hull())), "execution.no_question", "{name}");
    }
}

#[test]
fn after_a_crash_a_tool_with_a_ticket_may_ask_again() {
    let mut scene = asked(PLAN);
    scene.accepts("a", "ticket-7");
    scene.crash();
    assert_eq!((scene.asks(), scene.calls()), (vec![], vec!["a".to_owned()]));
    assert_eq!(scene.events(), ["ToolAnswered"]);
    let record = &scene.last.records[0];
    assert!(matches!(record.event, Event::ToolAnswered { answer: None, .. }), "{record:?}");
    assert_eq!((&record.actor, scene.status()), (&Actor::rutter(), "running"));
    scene.tool_asks("a", schema());
    scene.answer_tool(&agent(), "a", hull());
    scene.returns("a", done(json!({})));
    assert_eq!(scene.started_calls(CallSide::Do), ["a", "b"]);
}

#[test]
fn an_execution_waits_only_if_nothing_else_runs() {
    let mut scene =
        ExecutionScenario::started("max_parallel: 2\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}]");
    scene.tool_asks("a", schema());
    assert_eq!((scene.status(), scene.steps()), ("running", vec!["waiting", "running"]));
    scene.returns("b", done(json!({})));
    assert_eq!(scene.status(), "waiting");
    scene.pause();
    assert_eq!((scene.status(), scene.asks()), ("paused", vec!["tool a".to_owned()]));
    scene.answer_tool(&agent(), "a", hull());
    scene.resume();
    assert_eq!(scene.status(), "running");
    let mut scene = ExecutionScenario::started("max_parallel: 2\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.set}]");
    scene.tool_asks("a", schema());
    scene.returns("b", fails(Unavailable));
    assert_eq!(scene.status(), "running", "b is going to be tried again");
}

#[test]
fn a_question_outlives_pause_cancel_replan_and_hand_over() {
    let steps: [(&str, Action); 4] = [
        ("paused", ExecutionScenario::pause),
        ("cancelled", |scene| scene.cancel(None)),
        ("replanned", |scene| scene.replan(PLAN)),
        ("handed over", |scene| scene.hand_over(Driver::Agent)),
    ];
    for (name, step) in steps {
        let mut scene = asked(PLAN);
        step(&mut scene);
        assert_eq!(scene.asks(), ["tool a"], "{name}");
        scene.answer_tool(&agent(), "a", hull());
        assert_eq!(scene.asks(), [""; 0], "{name}");
    }
}

#[test]
fn probes_and_undoing_may_ask_too() {
    let mut scene = ExecutionScenario::started(PLAN);
    scene.returns("a", done(json!({})));
    scene.returns("b", done(json!({})));
    scene.compensate(None);
    scene.tool_asks("a", schema());
    assert_eq!((scene.status(), scene.asks()), ("waiting", vec!["tool a".to_owned()]));
    scene.answer_tool(&agent(), "a", hull());
    assert_eq!(scene.status(), "compensating");
    let probed = "steps: [{id: a, tool: t.once, probe: {tool: t.find, happened: result.found, settle: 0s}}]";
    let mut scene = ExecutionScenario::started(probed);
    scene.returns("a", maybe(Timeout));
    scene.tool_asks("a", schema());
    assert_eq!((scene.status(), scene.asks()), ("waiting", vec!["tool a".to_owned()]));
    scene.answer_tool(&agent(), "a", hull());
    scene.returns("a", done(json!({"found": true})));
    assert_eq!(scene.status(), "completed");
}

#[test]
fn a_question_whose_schema_was_erased_can_only_be_declined() {
    let scene = asked(PLAN);
    let mut journal: Vec<EventRecord> = scene.journal.clone();
    if let Some(Event::ToolAsked { schema, .. }) = journal.last_mut().map(|record| &mut record.event) {
        *schema = EventPayload::Erased;
    }
    let mut execution = Execution::replay(identity(), &journal).unwrap();
    assert_eq!(execution.questions().len(), 1);
    let refusal = execution.admit(&agent(), &answering_tool("a", 1, hull()), &scene.policy).unwrap_err();
    assert_eq!((refusal.code, refusal.hint.as_deref()), ("execution.answer_invalid", Some("decline it")));
    let moment = DecisionContext { now: scene.now, room: 9 };
    execution.decide(&agent(), answering_tool("a", 1, None), moment).unwrap();
    assert!(execution.questions().is_empty());
}

/// Step a, a `once` call, whose tool asks and gives what continues the call.
fn asked_with(continuation: Value) -> ExecutionScenario {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once, parameters: {n: 1}}]");
    scene.give(&Actor::rutter(), asking_with(continuation));
    scene
}

fn asking_with(continuation: Value) -> ExecutionInput {
    let (schema, continuation) = (Arc::new(schema()), Some(Arc::new(continuation)));
    let question = Elicitation { message: "which one?".into(), schema, continuation };
    ExecutionInput::ToolAsks { part: part("a"), side: CallSide::Do, attempt: 1, question }
}

#[test]
fn a_question_with_a_continuation_outlives_its_process() {
    let mut scene = asked_with(json!({"state": "s1"}));
    for _ in 0..2 {
        scene.give(&Actor::rutter(), ExecutionInput::Recovered);
        assert_eq!(
            (scene.asks(), scene.step("a"), scene.count("AttemptLost")),
            (vec!["tool a".to_owned()], "waiting", 0)
        );
        let [call] = &scene.last.calls[..] else { panic!("{:?}", scene.last.calls) };
        assert_eq!(call.continuation.as_deref(), Some(&json!({"state": "s1"})));
        assert_eq!((&*call.parameters, call.attempt), (&json!({"n": 1}), 1));
        assert_eq!(scene.events(), [""; 0], "nothing has changed");
    }
    scene.answer_tool(&person(), "a", hull());
    scene.returns("a", done(json!({})));
    assert_eq!((scene.status(), scene.count("AttemptStarted")), ("completed", 1));
}

#[test]
fn a_question_that_was_answered_does_not_outlive_its_process() {
    let mut scene = asked_with(json!({"state": "s1"}));
    scene.answer_tool(&person(), "a", hull());
    scene.give(&Actor::rutter(), ExecutionInput::Recovered);
    assert_eq!((scene.asks(), scene.calls()), (vec!["doubt a".to_owned()], vec![]), "the tool may have the answer");
    // Without a continuation a question is lost with its connection.
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
    scene.tool_asks("a", schema());
    scene.give(&Actor::rutter(), ExecutionInput::Recovered);
    assert_eq!(scene.asks(), ["doubt a"]);
}

#[test]
fn a_held_execution_takes_no_answer_that_could_not_reach_the_tool() {
    let mut scene = asked_with(json!({"state": "s1"}));
    let since = scene.now;
    scene.now = since.plus(Millis::hours(30));
    scene.give(&Actor::rutter(), ExecutionInput::Hold { reason: "no worker ran".into(), since });
    scene.give(&Actor::rutter(), ExecutionInput::Recovered);
    assert_eq!(scene.calls(), [""; 0]);
    for answer in [hull(), None] {
        assert_eq!(scene.refused(&person(), answering_tool("a", 1, answer)), "execution.held");
    }
    scene.give(&person(), ExecutionInput::Resume { reason: "go on".into() });
    assert_eq!(scene.last.calls.len(), 1);
    scene.answer_tool(&person(), "a", hull());
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "completed");
}

#[test]
fn a_continuation_has_a_limit_and_can_be_erased() {
    let fits = limits::CONTINUATION_BYTES_MAX - 2;
    for (size, code) in [(fits - 1, ""), (fits, ""), (fits + 1, "execution.question_invalid")] {
        let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
        let given = scene.input(&Actor::rutter(), asking_with(json!("x".repeat(size))));
        assert_eq!(given.map_or_else(|refusal| refusal.code, |()| ""), code);
    }
    let scene = asked_with(json!({"state": "s1"}));
    let mut journal: Vec<EventRecord> = scene.journal.clone();
    if let Some(Event::ToolAsked { continuation, .. }) = journal.last_mut().map(|record| &mut record.event) {
        *continuation = Some(EventPayload::Erased);
    }
    let mut execution = Execution::replay(identity(), &journal).unwrap();
    let moment = DecisionContext { now: scene.now, room: 9 };
    assert!(execution.decide(&Actor::rutter(), ExecutionInput::Recovered, moment).unwrap().calls.is_empty());
    assert_eq!(execution.questions().len(), 1, "a doubt");
}
