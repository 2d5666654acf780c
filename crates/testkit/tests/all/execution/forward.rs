//! Forward execution: which step starts when, and in which order.

use rutter_core::journal::event::CallSide;
use rutter_testkit::scene::{ExecutionScenario, done};
use serde_json::json;

#[test]
fn sequential_steps_go_in_plan_order() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: c, tool: t.once}
  - {id: a, tool: t.once}
  - {id: b, tool: t.once}",
    );
    for name in ["c", "a", "b"] {
        assert_eq!(scene.calls(), [name]);
        scene.returns(name, done(json!({})));
    }
    assert_eq!(scene.status(), "completed");
    assert_eq!(scene.started_calls(CallSide::Do), ["c", "a", "b"]);
    assert_eq!(scene.events(), ["AttemptSucceeded", "ExecutionEnded"]);
}

#[test]
fn dependencies_come_before_plan_order() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once, depends_on: [b]}
  - {id: b, tool: t.once}",
    );
    assert_eq!(scene.calls(), ["b"]);
    scene.returns("b", done(json!({})));
    assert_eq!(scene.calls(), ["a"]);
}

#[test]
fn the_result_of_one_step_and_the_start_of_the_next_are_one_decision() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once}, {id: b, tool: t.once}]");
    scene.returns("a", done(json!({})));
    assert_eq!(scene.events(), ["AttemptSucceeded", "AttemptStarted"]);
}

/// Which steps are called first: plan fields, capacity, calls of the first decision.
#[test]
fn slots_priorities_heights_and_capacity_decide_who_starts() {
    let table = [
        // One slot: plan order, whatever depends on a step.
        ("steps: [{id: a, tool: t.once}, {id: b, tool: t.once}, {id: c, tool: t.once, depends_on: [b]}]", 9, vec!["a"]),
        // Slots.
        (
            "max_parallel: 2\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}, {id: c, tool: t.once}]",
            9,
            vec!["a", "b"],
        ),
        (
            "max_parallel: 9\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}, {id: c, tool: t.once}]",
            9,
            vec!["a", "b", "c"],
        ),
        // Capacity.
        ("max_parallel: 9\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}, {id: c, tool: t.once}]", 1, vec!["a"]),
        ("max_parallel: 9\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}]", 0, vec![]),
        // Priority, also with one slot.
        ("steps: [{id: a, tool: t.once}, {id: b, tool: t.once, priority: 1}]", 9, vec!["b"]),
        ("steps: [{id: a, tool: t.once, priority: -1}, {id: b, tool: t.once}]", 9, vec!["b"]),
        // With free slots, the longest path to the end goes first.
        (
            "max_parallel: 2\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}, {id: c, tool: t.once, depends_on: [b]}]",
            1,
            vec!["b"],
        ),
        // Priority before length.
        (
            "max_parallel: 2\nsteps: [{id: a, tool: t.once, priority: 1}, {id: b, tool: t.once}, {id: c, tool: t.once, depends_on: [b]}]",
            1,
            vec!["a"],
        ),
    ];
    for (fields, room, calls) in table {
        let mut scene = ExecutionScenario::of(fields);
        scene.room = room;
        scene.start();
        assert_eq!(scene.calls(), calls, "{fields}");
    }
}

#[test]
fn a_step_without_capacity_starts_when_there_is_some() {
    let mut scene = ExecutionScenario::of("max_parallel: 9\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}]");
    scene.room = 0;
    scene.start();
    assert_eq!(scene.count("AttemptStarted"), 0);
    scene.room = 1;
    scene.wake();
    assert_eq!(scene.calls(), ["a"]);
    scene.wake();
    assert_eq!(scene.calls(), ["b"]);
}

#[test]
fn a_diamond_joins_when_both_sides_have_ended() {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 4
steps:
  - {id: a, tool: t.once}
  - {id: b, tool: t.once, depends_on: [a]}
  - {id: c, tool: t.once, depends_on: [a]}
  - {id: d, tool: t.once, depends_on: [b, c]}",
    );
    scene.returns("a", done(json!({})));
    assert_eq!(scene.calls(), ["b", "c"]);
    scene.returns("c", done(json!({})));
    assert_eq!(scene.calls(), [""; 0]);
    scene.returns("b", done(json!({})));
    assert_eq!(scene.calls(), ["d"]);
    scene.returns("d", done(json!({})));
    assert_eq!(scene.status(), "completed");
}

#[test]
fn a_flat_list_runs_sequentially_even_with_free_slots() {
    // Nothing here defines an order, so the list does.
    let text = "name: scene\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}]";
    let checked = rutter_core::plan::check::read_and_check(
        text.as_bytes(),
        rutter_core::plan::document::DocumentFormat::Yaml,
        &rutter_testkit::scene::catalog(),
        rutter_core::plan::Driver::Server,
        None,
    );
    let plan = checked.plan.unwrap();
    let mut scene = ExecutionScenario::open(plan, rutter_core::plan::Driver::Server, json!({}));
    scene.start();
    assert_eq!(scene.calls(), ["a"]);
    scene.returns("a", done(json!({})));
    assert_eq!(scene.calls(), ["b"]);
}

#[test]
fn parameters_are_evaluated_from_inputs_and_results() {
    let mut scene = ExecutionScenario::with(
        "inputs: {type: object, properties: {sku: {type: string}}}
steps:
  - {id: a, tool: t.once, parameters: {sku: '{{ inputs.sku }}'}}
  - {id: b, tool: t.keyed, parameters: {id: '{{ steps.a.result.id }}', text: 'no. {{ steps.a.result.id }}', key: '{{ key }}'}}",
        json!({"sku": "x"}),
    );
    scene.start();
    assert_eq!(*scene.call("a").parameters, json!({"sku": "x"}));
    scene.returns("a", done(json!({"id": 7})));
    let call = scene.call("b");
    assert_eq!(*call.parameters, json!({"id": 7, "text": "no. 7", "key": call.key.to_string()}));
}

#[test]
fn parameters_that_cannot_be_evaluated_fail_the_step_without_a_call() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once}
  - {id: b, tool: t.once, parameters: {id: '{{ steps.a.result.id }}'}}",
    );
    scene.returns("a", done(json!({})));
    assert_eq!(scene.events(), ["AttemptSucceeded", "PreparationFailed", "FailureHandled"]);
    assert_eq!(scene.asks(), ["failure b"]);
}
