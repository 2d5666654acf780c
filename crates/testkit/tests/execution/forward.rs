//! Going forward: who begins when, and in which order.

use rutter_core::journal::event::Side;
use rutter_testkit::scene::{Scene, done};
use serde_json::json;

#[test]
fn sequential_steps_go_in_plan_order() {
    let mut scene = Scene::started(
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
    assert_eq!(scene.started_calls(Side::Do), ["c", "a", "b"]);
    assert_eq!(scene.events(), ["AttemptSucceeded", "ExecutionEnded"]);
}

#[test]
fn dependencies_come_before_plan_order() {
    let mut scene = Scene::started(
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
    let mut scene = Scene::started("steps: [{id: a, tool: t.once}, {id: b, tool: t.once}]");
    scene.returns("a", done(json!({})));
    assert_eq!(scene.events(), ["AttemptSucceeded", "AttemptStarted"]);
}

/// Who is called first: plan fields, room, calls of the first decision.
#[test]
fn places_priorities_heights_and_room_say_who_begins() {
    let table = [
        // One place: plan order, whatever hangs on a step.
        (
            "steps: [{id: a, tool: t.once}, {id: b, tool: t.once}, {id: c, tool: t.once, depends_on: [b]}]",
            9,
            vec!["a"],
        ),
        // Places.
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
        // Room.
        (
            "max_parallel: 9\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}, {id: c, tool: t.once}]",
            1,
            vec!["a"],
        ),
        ("max_parallel: 9\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}]", 0, vec![]),
        // Priority, also with one place.
        ("steps: [{id: a, tool: t.once}, {id: b, tool: t.once, priority: 1}]", 9, vec!["b"]),
        ("steps: [{id: a, tool: t.once, priority: -1}, {id: b, tool: t.once}]", 9, vec!["b"]),
        // The longest way to the end goes first when there are places.
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
        let mut scene = Scene::of(fields);
        scene.room = room;
        scene.start();
        assert_eq!(scene.calls(), calls, "{fields}");
    }
}

#[test]
fn what_found_no_room_begins_when_there_is_some() {
    let mut scene = Scene::of("max_parallel: 9\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}]");
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
    let mut scene = Scene::started(
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
fn a_flat_list_goes_one_after_the_other_even_with_places() {
    // Nothing here speaks of order, so the list does.
    let text = "name: scene\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}]";
    let checked = rutter_core::plan::check::read_and_check(
        text.as_bytes(),
        rutter_core::plan::document::Format::Yaml,
        &rutter_testkit::scene::catalog(),
        rutter_core::plan::Driver::Server,
        None,
    );
    let plan = checked.plan.unwrap();
    let mut scene = Scene::open(plan, rutter_core::plan::Driver::Server, json!({}));
    scene.start();
    assert_eq!(scene.calls(), ["a"]);
    scene.returns("a", done(json!({})));
    assert_eq!(scene.calls(), ["b"]);
}

#[test]
fn parameters_are_worked_out_from_inputs_and_results() {
    let mut scene = Scene::with(
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
fn parameters_that_cannot_be_worked_out_fail_the_step_without_a_call() {
    let mut scene = Scene::started(
        "steps:
  - {id: a, tool: t.once}
  - {id: b, tool: t.once, parameters: {id: '{{ steps.a.result.id }}'}}",
    );
    scene.returns("a", done(json!({})));
    assert_eq!(scene.events(), ["AttemptSucceeded", "PreparationFailed", "FailureHandled"]);
    assert_eq!(scene.asks(), ["failure b"]);
}
