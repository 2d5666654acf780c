//! New plans of agents that weaken what protects a call: its probe, and the approval that comes before it.

use rutter_core::execution::view::PendingQuestion;
use rutter_core::journal::event::QuestionAnswer;
use rutter_core::tool::FailureCategory::Timeout;
use rutter_testkit::scene::*;
use serde_json::json;

/// What a person is asked to approve, or nothing if the plan holds already.
fn weakened(scene: &mut ExecutionScenario, fields: &str) -> Vec<String> {
    scene.replan(fields);
    let lines = scene.execution.questions().into_iter().find_map(|question| match question {
        PendingQuestion::Replan { weakens, .. } => Some(weakens),
        _ => None,
    });
    lines.unwrap_or_default()
}

fn probed(probe: &str) -> String {
    format!("steps: [{{id: a, tool: t.once, timeout: 30s{probe}}}]")
}

#[test]
fn an_agent_does_not_choose_another_probe_for_a_call() {
    const PROBE: &str = ", probe: {tool: t.find, parameters: {n: 1}, happened: result.found, settle: 20s}";
    let with = |old: &str, new: &str| probed(&PROBE.replace(old, new));
    for (after, expected) in [
        (probed(PROBE), vec![]),
        (with("settle: 20s", "settle: 21s"), vec![]),
        (probed(""), vec![]),
        (with("t.find", "t.read"), vec!["a: another probe says whether it happened"]),
        (with("n: 1", "n: 2"), vec!["a: another probe says whether it happened"]),
        (with("result.found", "'true'"), vec!["a: another probe says whether it happened"]),
        (with("settle: 20s", "settle: 19s"), vec!["a: its probe is believed after 19s instead of 20s"]),
    ] {
        let mut scene = ExecutionScenario::started(&probed(PROBE));
        assert_eq!(weakened(&mut scene, &after), expected, "{after}");
        assert_eq!(scene.count("Replanned"), usize::from(expected.is_empty()), "{after}");
    }
}

#[test]
fn a_doubt_does_not_get_a_probe_that_an_agent_chose_afterwards() {
    let mut scene = ExecutionScenario::started(&probed(""));
    scene.returns("a", maybe(Timeout));
    let after = probed(", probe: {tool: t.find, happened: 'false'}");
    assert_eq!(weakened(&mut scene, &after), ["a: gets a probe after its call was sent"]);
    assert_eq!((scene.count("Replanned"), scene.calls(), scene.step("a")), (0, vec![], "in_doubt"));
    let behind = |probe: &str| probed(probe).replace("steps: [{", "steps: [{id: z, tool: t.set}, {depends_on: [z], ");
    let mut scene = ExecutionScenario::started(&behind(""));
    let after = behind(", probe: {tool: t.find, happened: 'false'}");
    assert_eq!(weakened(&mut scene, &after), [""; 0], "nothing was sent yet");
}

#[test]
fn what_waits_for_an_approval_still_waits_for_it() {
    const ASK: &str = "{id: ask, tool: t.set, approval: {expires: 1h}}";
    let plan = |rest: &str| format!("steps: [{ASK}, {rest}]");
    let pay = plan("{id: pay, tool: t.once, depends_on: [ask]}");
    for (after, expected) in [
        (pay.clone(), vec![]),
        (plan("{id: pay, tool: t.once, depends_on: [ask]}, {id: look, tool: t.read}"), vec![]),
        (plan("{id: mid, tool: t.read, depends_on: [ask]}, {id: pay, tool: t.once, depends_on: [mid]}"), vec![]),
        (plan("{id: other, tool: t.other}"), vec![]),
        (plan("{id: pay, tool: t.once}"), vec!["pay: does not wait for ask, which needs approval"]),
        (plan("{id: pay2, tool: t.once}"), vec!["pay2: does not wait for ask, which needs approval"]),
        (
            plan("{id: x, tool: t.read, fallback: {tool: t.once}}"),
            vec!["x: does not wait for ask, which needs approval"],
        ),
    ] {
        let mut scene = ExecutionScenario::started(&pay);
        assert_eq!(weakened(&mut scene, &after), expected, "{after}");
        assert_eq!(scene.started_calls(rutter_core::journal::event::CallSide::Do), scene.calls(), "{after}");
    }
    // Once the approval is used there is nothing to wait for any more.
    let mut scene = ExecutionScenario::started(&pay.replace("t.once", "t.once, approval: {expires: 1h}"));
    scene.approve("ask");
    scene.returns("ask", done(json!({})));
    let after = plan("{id: pay, tool: t.once, approval: {expires: 1h}}");
    assert_eq!(weakened(&mut scene, &after), [""; 0]);
}

/// What waits for a step that a person did not allow is not reached by an agent's word.
#[test]
fn only_a_person_goes_on_past_a_step_that_was_not_allowed() {
    let going_on = |answer| answering(rutter_core::journal::event::Question::Failure(step("ask")), answer, None);
    let plan = "steps: [{id: ask, tool: t.set, approval: {expires: 1h}}, {id: pay, tool: t.once, depends_on: [ask]}]";
    for expires in [false, true] {
        let mut scene = ExecutionScenario::started(plan);
        if expires {
            scene.later(3_600_000);
        } else {
            scene.deny("ask");
        }
        for answer in [QuestionAnswer::Skip, QuestionAnswer::Continue] {
            let code = scene.refused(&agent(), going_on(answer));
            assert!(matches!(code, "execution.not_a_person" | "execution.no_such_answer"), "{code}");
            assert_eq!(scene.count("QuestionAnswered"), 0);
        }
        scene.give(&person(), going_on(QuestionAnswer::Skip));
        assert_eq!(scene.step("ask"), "skipped");
    }
    // Nothing waits for it: an agent may leave it out.
    let mut scene = ExecutionScenario::started("steps: [{id: ask, tool: t.set, approval: {expires: 1h}}]");
    scene.deny("ask");
    scene.give(&agent(), going_on(QuestionAnswer::Skip));
    assert_eq!(scene.step("ask"), "skipped");
}
