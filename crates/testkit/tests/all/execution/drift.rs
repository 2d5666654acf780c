//! Tools that change during an execution: nothing is called, nothing fails, and a person is asked.

use rutter_core::actor::Actor;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::hash::Hash;
use rutter_core::id::PartId;
use rutter_core::journal::event::CallSide;
use rutter_core::tool::FailureCategory::{ToolError, Unavailable};
use rutter_testkit::scene::*;
use serde_json::json;

/// The call of an attempt was not sent: its tool has another definition.
fn withdraw(scene: &mut ExecutionScenario, id: &str, side: CallSide, attempt: u32, name: &str, found: Hash) {
    let part = PartId::parse(id).expect("a part");
    let input = ExecutionInput::Withdraw { part, side, attempt, tool: tool(name), found };
    scene.give(&Actor::rutter(), input);
}

fn accept(scene: &mut ExecutionScenario, name: &str, definition: Hash) {
    let reason = String::new();
    scene.give(&person(), ExecutionInput::AcceptTool { tool: tool(name), definition, reason });
}

fn changed() -> Hash {
    Hash::of(&[b"changed"])
}

/// The definition that the catalogue of the scenes gives a tool.
fn pinned(scene: &ExecutionScenario, name: &str) -> Hash {
    scene.execution.plan().tools[&tool(name)].definition
}

#[test]
fn a_tool_that_changed_at_the_call_stops_the_step_and_does_not_fail_it() {
    for policy in ["cancel_all", "compensate", "continue_others", "cancel_dependent", "manual_decision"] {
        let mut scene = ExecutionScenario::started(&format!(
            "on_failure: {policy}
steps:
  - {{id: r, tool: t.set, compensation: {{tool: t.undo}}}}
  - {{id: a, tool: t.once, depends_on: [r], retry: {{max_attempts: 1}}, fallback: {{tool: t.other}}}}"
        ));
        scene.returns("r", done(json!({})));
        withdraw(&mut scene, "a", CallSide::Do, 1, "t.once", changed());
        assert_eq!((scene.calls(), scene.status()), (vec![], "waiting"), "{policy}");
        assert_eq!(scene.asks(), ["drift t.once"], "{policy}");
        assert_eq!(scene.count("ToolDrifted"), 1);
        accept(&mut scene, "t.once", changed());
        assert_eq!((scene.calls(), scene.call("a").definition), (vec!["a#2".to_owned()], changed()), "{policy}");
        scene.returns("a", done(json!({})));
        assert_eq!(scene.status(), "completed", "{policy}");
    }
}

#[test]
fn an_attempt_that_was_not_sent_does_not_count() {
    let mut scene = ExecutionScenario::started(
        "budget: {calls: 2}
steps: [{id: a, tool: t.set, retry: {max_attempts: 2, jitter: false}}]",
    );
    withdraw(&mut scene, "a", CallSide::Do, 1, "t.set", changed());
    accept(&mut scene, "t.set", changed());
    scene.returns("a", fails(Unavailable));
    scene.later(60_000);
    assert_eq!(scene.calls(), ["a#3"], "two attempts, as the plan says");
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "completed");
}

#[test]
fn a_fallback_a_probe_and_a_compensation_wait_for_their_tool_too() {
    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, retry: {max_attempts: 1}, fallback: {tool: t.other, retry: {max_attempts: 1}}}]",
    );
    scene.returns("a", fails(ToolError));
    withdraw(&mut scene, "a", CallSide::Fallback, 1, "t.other", changed());
    assert_eq!(scene.asks(), ["drift t.other"]);
    accept(&mut scene, "t.other", changed());
    assert_eq!(scene.calls().len(), 1);

    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, probe: {tool: t.find, happened: result.found, settle: 0s, retry: {max_attempts: 1}}}]",
    );
    scene.returns("a", maybe(Unavailable));
    withdraw(&mut scene, "a", CallSide::Probe, 1, "t.find", changed());
    assert_eq!(scene.asks(), ["doubt a", "drift t.find"]);
    accept(&mut scene, "t.find", changed());
    scene.returns("a", done(json!({"found": true})));
    assert_eq!(scene.status(), "completed");

    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, compensation: {tool: t.undo, retry: {max_attempts: 1}}}]",
    );
    scene.returns("a", done(json!({})));
    scene.compensate(None);
    withdraw(&mut scene, "a", CallSide::Undo, 1, "t.undo", changed());
    assert_eq!(scene.asks(), ["drift t.undo"]);
    accept(&mut scene, "t.undo", changed());
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "compensated");
}

#[test]
fn a_stopped_execution_does_not_wait_for_a_tool() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
    scene.cancel(None);
    withdraw(&mut scene, "a", CallSide::Do, 1, "t.once", changed());
    assert_eq!(scene.status(), "cancelled");
}

#[test]
fn a_tool_that_is_the_old_one_again_is_called() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once, retry: {max_attempts: 1}}]");
    let old = pinned(&scene, "t.once");
    withdraw(&mut scene, "a", CallSide::Do, 1, "t.once", changed());
    assert!(scene.execution.is_news(&tool("t.once"), old));
    scene.give(&Actor::rutter(), ExecutionInput::ReportDefinition { tool: tool("t.once"), found: old });
    assert_eq!((scene.count("ToolRestored"), scene.asks()), (1, vec![]));
    assert_eq!((scene.calls(), scene.call("a").definition), (vec!["a#2".to_owned()], old));
}

#[test]
fn only_the_definition_that_was_found_last_is_accepted() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
    let input = |definition| ExecutionInput::AcceptTool { tool: tool("t.once"), definition, reason: String::new() };
    assert_eq!(scene.refused(&person(), input(changed())), "execution.no_question");
    withdraw(&mut scene, "a", CallSide::Do, 1, "t.once", Hash::of(&[b"older"]));
    scene.give(&Actor::rutter(), ExecutionInput::ReportDefinition { tool: tool("t.once"), found: changed() });
    assert_eq!(scene.refused(&person(), input(Hash::of(&[b"older"]))), "execution.no_question");
    scene.give(&person(), input(changed()));
    assert_eq!(scene.calls(), ["a#2"]);
}

#[test]
fn a_new_plan_of_an_agent_does_not_accept_a_changed_tool() {
    let fields = "steps: [{id: a, tool: t.once}]";
    let mut tools = catalog();
    let changing = tools.tools.get_mut(&tool("t.once")).expect("it is in the catalogue");
    std::sync::Arc::make_mut(changing).definition = changed();
    let replan =
        || ExecutionInput::Replan { plan: plan_with(&tools, fields), revision: 2, reason: "the same once more".into() };
    let mut scene = ExecutionScenario::started(fields);
    withdraw(&mut scene, "a", CallSide::Do, 1, "t.once", changed());
    scene.give(&agent(), replan());
    assert_eq!((scene.calls(), scene.count("Replanned")), (vec![], 0));
    assert_eq!(scene.asks(), ["replan 2", "drift t.once"]);
    let questions = scene.execution.questions();
    let PendingQuestion::Replan { weakens, .. } = &questions[0] else { panic!("{questions:?}") };
    assert_eq!(weakens, &["t.once has changed since the plan was checked; accepted"]);
    // A person accepts it, as the tool or with a plan of their own.
    accept(&mut scene, "t.once", changed());
    scene.give(&person(), replan());
    assert_eq!(scene.count("Replanned"), 1);
}
