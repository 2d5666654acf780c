//! Approval gates: what waits for an approval does not begin because of what an agent changed or decided.

use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::journal::event::{Question, QuestionAnswer};
use rutter_core::plan::Driver;
use rutter_core::tool::FailureCategory::ToolError;
use rutter_testkit::scene::*;
use serde_json::json;

const FIRST: &str = "{id: z, tool: t.read}";
const GATE: &str = "{id: a, tool: t.set, depends_on: [z], approval: {expires: 1h}}";
const BEHIND: &str = "{id: b, tool: t.once, depends_on: [a]}";

fn steps(list: &[&str]) -> String {
    format!("steps: [{}]", list.join(", "))
}

fn gated() -> String {
    steps(&[FIRST, GATE, BEHIND])
}

/// The gate with another field.
fn gate(field: &str) -> String {
    GATE.replace("tool: t.set", &format!("tool: t.set, {field}"))
}

fn proposed(scene: &ExecutionScenario) -> Vec<String> {
    let lines = scene.execution.questions().into_iter().find_map(|question| match question {
        PendingQuestion::Replan { weakens, .. } => Some(weakens),
        _ => None,
    });
    lines.unwrap_or_default()
}

fn going_on(answer: QuestionAnswer) -> ExecutionInput {
    answering(Question::Failure(step("a")), answer, None)
}

/// The plans that a person has to approve, however the gate is made passable.
fn loosened() -> Vec<String> {
    vec![
        steps(&[FIRST, &gate("when: 'false'"), BEHIND]),
        steps(&[FIRST, &gate("when: \"'x' == 'y'\""), BEHIND]),
        steps(&[FIRST, &gate("for_each: '[]'"), BEHIND]),
        steps(&[FIRST, &gate("for_each: '[1]'"), BEHIND]),
        steps(&[FIRST, &gate("for_each: '[1]', tolerate: 1").replace("tolerate: 1", ""), BEHIND]).replace(", ,", ","),
        steps(&[FIRST, "{id: n, tool: t.read, when: 'true'}", &gate("else_of: n"), BEHIND]),
        steps(&[FIRST, &gate("when: 'false'"), "{id: b, tool: t.once, depends_on: [a], else_of: a}"]),
        steps(&[
            FIRST,
            "{id: n, tool: t.read, when: 'false'}",
            &gate("parameters: {n: '{{ steps.n.result.x }}'}"),
            BEHIND,
        ]),
        steps(&[FIRST, &gate("failure_policy: continue_others, parameters: {n: '{{ inputs.nothing }}'}"), BEHIND]),
        steps(&[FIRST, &gate("failure_policy: continue_others"), BEHIND]),
        steps(&[FIRST, &gate("failure_policy: cancel_dependent"), BEHIND]),
        format!("on_failure: continue_others\n{}", gated()),
    ]
}

#[test]
fn a_gate_is_not_made_passable_by_an_agents_plan() {
    for plan in loosened().into_iter().filter(|plan| !plan.contains("inputs.nothing")) {
        // Before it is asked.
        let mut scene = ExecutionScenario::started(&gated());
        scene.replan(&plan);
        assert_eq!((scene.count("Replanned"), scene.asks()), (0, vec!["replan 2".to_owned()]), "{plan}");
        assert!(proposed(&scene).iter().any(|line| line.starts_with("a: ")), "{plan}: {:?}", proposed(&scene));
        // While the question is open; after the no; after it expired.
        for settle in [
            (|_| {}) as fn(&mut ExecutionScenario),
            |scene| scene.deny("a"),
            |scene| scene.later(3_600_000),
            |scene| {
                scene.give(&agent(), ExecutionInput::Cancel { reason: "changed my mind".into(), undo: Some(false) });
            },
        ] {
            let mut scene = ExecutionScenario::started(&gated());
            scene.returns("z", done(json!({})));
            assert_eq!(scene.asks(), ["approval a"]);
            settle(&mut scene);
            scene.replan(&plan);
            assert_eq!((scene.count("Replanned"), scene.calls()), (0, vec![]), "{plan}: {:?}", scene.asks());
        }
    }
}

#[test]
fn a_gate_that_ended_with_the_execution_is_still_one() {
    let stops = gated().replace("expires: 1h}", "expires: 1h}, failure_policy: cancel_all");
    let mut scene = ExecutionScenario::started(&stops);
    scene.returns("z", done(json!({})));
    scene.deny("a");
    assert_eq!(scene.status(), "failed");
    for answer in [QuestionAnswer::Skip, QuestionAnswer::Resolve] {
        let input = answering(Question::Failure(step("a")), answer, Some(json!({})));
        assert_eq!(scene.refused(&agent(), input), "execution.not_a_person");
    }
    for plan in [steps(&[FIRST, &gate("when: 'false'"), BEHIND]), steps(&[FIRST, "{id: c, tool: t.once}"])] {
        scene.replan(&plan);
        assert_eq!((scene.count("Replanned"), scene.calls()), (0, vec![]), "{plan}");
        scene.give(&person(), ExecutionInput::AbandonReplan { reason: "no".into() });
    }
}

#[test]
fn a_gate_may_be_tightened_and_steps_beside_it_may_change() {
    let conditional = steps(&[FIRST, &gate("when: \"steps.z.result.n > 1\", failure_policy: continue_others"), BEHIND]);
    for after in [
        conditional.replace("when: \"steps.z.result.n > 1\", ", ""),
        conditional.replace("continue_others", "cancel_all"),
        conditional.replace("expires: 1h", "expires: 30m"),
        conditional.replace("steps: [", "steps: [{id: new, tool: t.other}, "),
        conditional.replace("tool: t.set", "tool: t.other"),
    ] {
        let mut scene = ExecutionScenario::started(&conditional);
        scene.replan(&after);
        assert_eq!((scene.count("Replanned"), proposed(&scene)), (1, vec![]), "{after}");
    }
    // Nothing with an effect waits for it.
    let mut scene = ExecutionScenario::started(&steps(&[FIRST, GATE]));
    scene.replan(&steps(&[FIRST, &gate("when: 'false'")]));
    assert_eq!((scene.count("Replanned"), proposed(&scene)), (1, vec![]));
}

#[test]
fn what_waited_for_a_gate_does_not_come_back_without_it() {
    for (between, after, expected) in [
        (
            steps(&[FIRST, GATE]),
            steps(&[FIRST, GATE, "{id: b, tool: t.once}"]),
            "b: does not wait for a, which needs approval",
        ),
        (steps(&[FIRST]), steps(&[FIRST, "{id: c, tool: t.once}"]), "c: does not wait for a, which needs approval"),
        (
            steps(&[FIRST]),
            steps(&[FIRST, "{id: a, tool: t.read}", BEHIND]),
            "b: does not wait for a, which needs approval",
        ),
        (
            steps(&[FIRST]),
            steps(&[FIRST, &gate("when: 'false'"), BEHIND]),
            "a: may be skipped by another condition, and b waits for its approval",
        ),
    ] {
        let mut scene = ExecutionScenario::started(&gated());
        scene.replan(&between);
        assert_eq!(scene.count("Replanned"), 1, "leaving it out weakens nothing");
        scene.replan(&after);
        assert_eq!(scene.count("Replanned"), 1, "{after}");
        assert_eq!(proposed(&scene), [expected], "{after}");
    }
    // As it was it comes back unasked.
    let mut scene = ExecutionScenario::started(&gated());
    scene.replan(&steps(&[FIRST]));
    scene.replan(&gated());
    assert_eq!((scene.count("Replanned"), proposed(&scene)), (2, vec![]));
}

/// What comes before a gate may be changed by an agent. If the gate were then passed without its approval, a person is
/// asked first.
#[test]
fn a_gate_is_not_skipped_because_of_what_an_agent_changed_before_it() {
    let reads = "{id: a, tool: t.set, parameters: {n: '{{ steps.z.result.n }}'}, approval: {expires: 1h}}";
    let conditional = "{id: a, tool: t.set, when: 'steps.z.result.n > 1', approval: {expires: 1h}}";
    let listed = "{id: a, tool: t.set, for_each: 'steps.z.result.list', approval: {expires: 1h}}";
    for (asks, before, result) in [
        (reads, "{id: z, tool: t.read, when: 'false'}", None),
        (conditional, "{id: z, tool: t.find}", Some(json!({"n": 1}))),
        (listed, "{id: z, tool: t.find}", Some(json!({"list": []}))),
    ] {
        let slow = "{id: y, tool: t.read}";
        let first = "{id: z, tool: t.read, depends_on: [y]}";
        let before = before.replace("tool:", "depends_on: [y], tool:");
        let held = || {
            let mut scene = ExecutionScenario::started(&steps(&[slow, first, asks, BEHIND]));
            scene.replan(&steps(&[slow, &before, asks, BEHIND]));
            assert_eq!((scene.count("Replanned"), proposed(&scene)), (1, vec![]));
            scene.returns("y", done(json!({})));
            if let Some(result) = &result {
                scene.returns("z", done(result.clone()));
            }
            assert_eq!((scene.asks(), scene.calls()), (vec!["failure a".to_owned()], vec![]), "{asks}");
            scene
        };
        let mut scene = held();
        for answer in [QuestionAnswer::Skip, QuestionAnswer::Continue, QuestionAnswer::Resolve] {
            let code = scene.refused(&agent(), answering(Question::Failure(step("a")), answer, Some(json!({}))));
            assert!(matches!(code, "execution.not_a_person" | "execution.no_such_answer"), "{code}");
        }
        scene.crash();
        scene.give(&person(), going_on(QuestionAnswer::Skip));
        assert_eq!(scene.calls(), ["b"], "a person may go on");
        let mut scene = held();
        scene.give(&agent(), going_on(QuestionAnswer::Retry));
        assert!(scene.asks() == ["failure a"] || scene.asks() == ["approval a"], "{:?}", scene.asks());
        assert_eq!(scene.calls(), [""; 0]);
    }
    // Also while the agent drives, and hands it back.
    let mut scene = ExecutionScenario::started(&steps(&[FIRST, reads, BEHIND]));
    scene.pause();
    scene.returns("z", fails(ToolError));
    scene.replan(&steps(&["{id: z, tool: t.find, when: 'false'}", reads, BEHIND]));
    scene.resume();
    scene.hand_over(Driver::Agent);
    scene.give(&agent(), ExecutionInput::HandOver { to: Driver::Server, reason: "yours".into() });
    assert_eq!((scene.asks(), scene.calls()), (vec!["failure a".to_owned()], vec![]));
}

#[test]
fn a_gate_is_not_skipped_because_an_agent_left_out_what_it_reads() {
    let reads = "{id: a, tool: t.set, parameters: {n: '{{ steps.z.result.n }}'}, approval: {expires: 1h}}";
    let mut scene = ExecutionScenario::started(&steps(&[FIRST, reads, BEHIND]));
    scene.returns("z", fails(ToolError));
    scene.give(&agent(), answering(Question::Failure(step("z")), QuestionAnswer::Skip, None));
    assert_eq!((scene.asks(), scene.calls()), (vec!["failure a".to_owned()], vec![]));
    let mut scene = ExecutionScenario::started(&steps(&[FIRST, reads, BEHIND]));
    scene.returns("z", fails(ToolError));
    scene.give(&person(), answering(Question::Failure(step("z")), QuestionAnswer::Skip, None));
    assert_eq!(scene.calls(), ["b"], "a person decided it, and the plan goes on");
}

#[test]
fn a_plan_that_goes_on_without_the_approval_from_the_start_does() {
    let plan = steps(&[FIRST, &gate("when: 'steps.z.result.n > 1'"), BEHIND]);
    let mut scene = ExecutionScenario::started(&plan);
    scene.replan(&plan.replace("steps: [", "steps: [{id: new, tool: t.read, depends_on: [b]}, "));
    scene.returns("z", done(json!({"n": 1})));
    assert_eq!((scene.step("a"), scene.calls()), ("skipped", vec!["b".to_owned()]));
    let mut scene = ExecutionScenario::started(&steps(&[FIRST, &gate("failure_policy: continue_others"), BEHIND]));
    scene.returns("z", done(json!({})));
    scene.deny("a");
    assert_eq!(scene.calls(), ["b"]);
}

#[test]
fn a_gate_whose_call_cannot_be_prepared_is_passed_by_people_only() {
    let broken = "{id: a, tool: t.set, parameters: {n: '{{ steps.z.result.n + 1 }}'}, approval: {expires: 1h}}";
    let mut scene = ExecutionScenario::started(&steps(&[FIRST, broken, BEHIND]));
    scene.returns("z", done(json!({"n": "text"})));
    assert_eq!(scene.asks(), ["failure a"]);
    for answer in [QuestionAnswer::Skip, QuestionAnswer::Continue, QuestionAnswer::Resolve] {
        let input = answering(Question::Failure(step("a")), answer, Some(json!({})));
        let code = scene.refused(&agent(), input);
        assert!(matches!(code, "execution.not_a_person" | "execution.no_such_answer"), "{code}");
    }
    scene.give(&person(), going_on(QuestionAnswer::Skip));
    assert_eq!(scene.calls(), ["b"]);
}
