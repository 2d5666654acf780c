//! Executions that have ended and are taken up again.

use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event::{Question, QuestionAnswer};
use rutter_core::plan::Driver;
use rutter_core::tool::FailureCategory::{Timeout, ToolError};
use rutter_testkit::scene::{ExecutionScenario, agent, answering, done, fails, maybe, part, person, plan, step};
use serde_json::json;

fn reopen(steps: &[&str]) -> ExecutionInput {
    let steps: Vec<StepId> = steps.iter().map(|step| StepId::new(step)).collect();
    ExecutionInput::Reopen { steps: Some(steps).filter(|steps| !steps.is_empty()), reason: "it works again".into() }
}

/// `a` is done, `b` failed, and with it everything stopped.
fn failed() -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(
        "on_failure: cancel_all
steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo, parameters: {id: '{{ result.id }}'}}}
  - {id: b, tool: t.once, parameters: {x: '{{ steps.a.result.id }}'}}
  - {id: c, tool: t.once, parameters: {x: '{{ steps.b.result.id }}'}}",
    );
    scene.returns("a", done(json!({ "id": 1 })));
    scene.returns("b", fails(ToolError));
    assert_eq!(scene.status(), "failed");
    scene
}

#[test]
fn a_failed_execution_goes_on_from_the_failed_step_and_repeats_nothing() {
    let mut scene = failed();
    let key = scene.part("a").key;
    scene.give(&agent(), reopen(&[]));
    assert_eq!(scene.steps(), ["completed", "running", "pending"]);
    assert_eq!(scene.calls(), ["b#2"]);
    scene.returns("b", done(json!({ "id": 2 })));
    scene.returns("c", done(json!({})));
    assert_eq!(scene.status(), "completed");
    assert_eq!(scene.part("a").key, key);
    // What was done before the end can still be undone.
    scene.compensate(None);
    assert_eq!(scene.calls(), ["undo a"]);
}

#[test]
fn an_answer_about_a_failed_step_takes_the_execution_up_again() {
    for (answer, steps) in [
        (QuestionAnswer::Retry, ["completed", "running", "pending"]),
        (QuestionAnswer::Skip, ["completed", "skipped", "skipped"]),
        (QuestionAnswer::Resolve, ["completed", "completed", "running"]),
    ] {
        let mut scene = failed();
        let result = (answer == QuestionAnswer::Resolve).then(|| json!({ "id": 9 }));
        scene.give(&person(), answering(Question::Failure(StepId::new("b")), answer, result));
        assert_eq!(scene.steps(), steps, "{answer:?}");
        assert_eq!(scene.count("Reopened"), 1, "{answer:?}");
        if answer == QuestionAnswer::Skip {
            assert_eq!(scene.status(), "partial");
        }
    }
}

/// The first item was denied, the second one waited for its approval, and the third one had not begun.
fn killed_while_an_item_waits_for_approval() -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(
        "on_failure: continue_others
steps:
  - {id: a, tool: t.once, for_each: '[1, 2, 3]', parameters: {n: '{{ item }}'}, approval: true}",
    );
    scene.deny("a[0]");
    scene.kill();
    assert_eq!((scene.status(), scene.step("a")), ("cancelled", "failed"));
    scene
}

#[test]
fn an_item_that_was_stopped_before_its_call_is_called_when_its_step_is_retried() {
    let mut scene = killed_while_an_item_waits_for_approval();
    scene.answer_failure("a", QuestionAnswer::Retry);
    for item in ["a[0]", "a[1]", "a[2]"] {
        scene.approve(item);
        scene.returns(item, done(json!({})));
    }
    assert_eq!((scene.status(), scene.step("a")), ("completed", "completed"));
}

#[test]
fn an_item_that_was_stopped_before_its_call_is_called_when_a_failed_one_is_decided_about() {
    for (answer, first) in [(QuestionAnswer::Retry, true), (QuestionAnswer::Skip, false)] {
        let mut scene = killed_while_an_item_waits_for_approval();
        let item = Question::Item(PartId { step: StepId::new("a"), item: Some(0) });
        scene.give(&person(), answering(item, answer, None));
        for item in ["a[0]", "a[1]", "a[2]"].into_iter().filter(|item| first || *item != "a[0]") {
            scene.approve(item);
            scene.returns(item, done(json!({})));
        }
        assert_eq!(scene.step("a"), "completed", "{answer:?}");
    }
}

#[test]
fn one_item_of_an_ended_fan_out_is_retried() {
    let mut scene = ExecutionScenario::started(
        "on_failure: cancel_all
max_parallel: 3
steps:
  - {id: a, tool: t.once, for_each: '[1, 2, 3]', parameters: {n: '{{ item }}'}}",
    );
    scene.returns("a[0]", done(json!(0)));
    scene.returns("a[1]", done(json!(1)));
    scene.returns("a[2]", fails(ToolError));
    assert_eq!(scene.status(), "failed");
    let item = Question::Item(PartId { step: StepId::new("a"), item: Some(2) });
    scene.give(&agent(), answering(item, QuestionAnswer::Retry, None));
    assert_eq!(scene.calls(), ["a[2]#2"]);
    scene.returns("a[2]", done(json!(2)));
    assert_eq!(scene.status(), "completed");
    assert_eq!(scene.execution.result_of("a"), Some(&json!([0, 1, 2])));
}

#[test]
fn an_item_that_was_skipped_runs_after_all_if_a_person_says_so() {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 3
steps:
  - {id: a, tool: t.once, for_each: '[1, 2, 3]', parameters: {n: '{{ item }}'}}",
    );
    scene.returns("a[0]", done(json!(0)));
    scene.returns("a[1]", fails(ToolError));
    scene.returns("a[2]", fails(ToolError));
    let item = |item| Question::Item(PartId { step: StepId::new("a"), item: Some(item) });
    scene.give(&person(), answering(item(1), QuestionAnswer::Skip, None));
    scene.give(&person(), answering(item(2), QuestionAnswer::Skip, None));
    assert_eq!(scene.status(), "partial");
    let again = || answering(item(2), QuestionAnswer::Retry, None);
    assert_eq!(scene.refused(&agent(), again()), "execution.not_a_person");
    assert_eq!(scene.refused(&agent(), reopen(&["a"])), "execution.not_a_person");
    scene.give(&person(), again());
    assert_eq!(scene.calls(), ["a[2]#2"]);
    scene.returns("a[2]", done(json!(2)));
    assert_eq!(scene.status(), "partial");
    scene.give(&person(), reopen(&["a"]));
    scene.returns("a[1]", done(json!(1)));
    assert_eq!(scene.status(), "completed");
    assert_eq!(scene.execution.result_of("a"), Some(&json!([0, 1, 2])));
}

#[test]
fn a_completed_execution_names_the_item_that_failed_and_was_tolerated() {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 2
steps:
  - {id: a, tool: t.once, for_each: {items: '[1, 2]', tolerate: 1}, parameters: {n: '{{ item }}'}}",
    );
    scene.returns("a[0]", done(json!(0)));
    scene.returns("a[1]", fails(ToolError));
    assert_eq!(scene.status(), "completed");
    let refused = scene.input(&agent(), reopen(&[])).unwrap_err();
    assert_eq!(refused.hint.as_deref(), Some("name an item that failed to run it again: a[1]"));
    scene.give(&agent(), reopen(&["a"]));
    assert_eq!(scene.calls(), ["a[1]#2"]);
}

#[test]
fn a_cancelled_execution_goes_on_where_it_was() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once}
  - {id: b, tool: t.once, when: \"steps.a.status == 'completed'\"}
  - {id: c, tool: t.once, depends_on: [b]}",
    );
    scene.cancel(Some(false));
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "cancelled");
    scene.give(&person(), reopen(&[]));
    assert_eq!(scene.calls(), ["b"]);
    scene.returns("b", done(json!({})));
    scene.returns("c", done(json!({})));
    assert_eq!(scene.status(), "completed");
}

/// A condition that was false because of the failure is evaluated again; a step skipped by decision stays so.
#[test]
fn what_was_skipped_after_the_failure_is_decided_again() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once, failure_policy: continue_others}
  - {id: b, tool: t.once, when: \"steps.a.status == 'completed'\"}
  - {id: c, tool: t.once}",
    );
    scene.returns("a", fails(ToolError));
    scene.returns("c", fails(ToolError));
    scene.answer_failure("c", QuestionAnswer::Skip);
    assert_eq!(scene.steps(), ["failed", "skipped", "skipped"]);
    scene.give(&person(), reopen(&[]));
    scene.returns("a", done(json!({})));
    scene.returns("b", done(json!({})));
    assert_eq!(scene.steps(), ["completed", "completed", "skipped"]);
    assert_eq!(scene.status(), "partial");
}

#[test]
fn a_completed_execution_goes_on_only_with_a_new_plan() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
    scene.returns("a", done(json!({ "id": 1 })));
    assert_eq!(scene.refused(&person(), reopen(&[])), "execution.completed");
    scene.replan("steps: [{id: a, tool: t.once}, {id: b, tool: t.once, parameters: {x: '{{ steps.a.result.id }}'}}]");
    assert_eq!(*scene.call("b").parameters, json!({ "x": 1 }));
    scene.returns("b", done(json!({})));
    assert_eq!(scene.status(), "completed");
}

#[test]
fn what_was_undone_is_not_taken_up_again() {
    let mut scene = failed();
    scene.compensate(None);
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "compensated");
    assert_eq!(scene.refused(&person(), reopen(&[])), "execution.compensated");
    let retry = answering(Question::Failure(StepId::new("b")), QuestionAnswer::Retry, None);
    assert_eq!(scene.refused(&person(), retry), "execution.compensated");
}

#[test]
fn only_what_has_ended_and_is_not_done_can_be_reopened() {
    let mut scene = failed();
    assert_eq!(scene.refused(&person(), reopen(&["a"])), "execution.no_question");
    assert_eq!(scene.refused(&person(), reopen(&["nowhere"])), "execution.unknown_part");
    scene.give(&person(), reopen(&["b"]));
    assert_eq!(scene.refused(&person(), reopen(&["b"])), "execution.not_ended");
}

#[test]
fn deadlines_count_anew_from_the_reopening() {
    let mut scene = ExecutionScenario::started(
        "deadline: 1h
on_failure: cancel_all
steps: [{id: a, tool: t.once}]",
    );
    scene.returns("a", fails(ToolError));
    scene.now = scene.now.plus(rutter_core::time::Millis::hours(5));
    scene.give(&person(), reopen(&[]));
    assert_eq!(scene.calls(), ["a#2"]);
    scene.returns("a", done(json!({})));
    assert_eq!(scene.status(), "completed");
}

/// A plan that weakens the old one waits for a person; until then, and after a no, nothing runs.
#[test]
fn a_rejected_replan_leaves_an_ended_execution_as_it_was() {
    let fields = |timeout: &str| {
        format!(
            "on_failure: cancel_all
steps:
  - {{id: a, tool: t.once}}
  - {{id: b, tool: t.once, timeout: {timeout}, depends_on: [a]}}
  - {{id: c, tool: t.once, depends_on: [b]}}"
        )
    };
    let mut scene = ExecutionScenario::started(&fields("5s"));
    scene.returns("a", done(json!({})));
    scene.returns("b", fails(ToolError));
    let before = scene.execution.view();
    scene.replan(&fields("50s"));
    assert_eq!((scene.status(), scene.calls().len(), scene.count("Reopened")), ("failed", 0, 0));
    let plan = plan(&fields("50s"), Driver::Server).hash;
    let [PendingQuestion::Replan { plan: asked, .. }] = &*scene.execution.questions() else {
        panic!("nobody is asked")
    };
    assert_eq!(*asked, plan);
    scene.give(&person(), ExecutionInput::RejectReplan { plan, reason: "leave it".into() });
    assert_eq!(scene.execution.view().summary(), before.summary());
    assert_eq!((scene.calls().len(), scene.count("Reopened")), (0, 0));
    scene.replan(&fields("50s"));
    scene.give(&person(), ExecutionInput::ApproveReplan { plan, reason: "go".into() });
    assert_eq!((scene.calls(), scene.count("Reopened")), (vec!["b".to_owned() + "#2"], 1));
}

/// `chg` and `mel` failed; `ship` comes after the one, `note` after the other.
fn two_failures(policy: &str) -> ExecutionScenario {
    let mut scene = ExecutionScenario::started(&format!(
        "on_failure: {policy}
max_parallel: 3
steps:
  - {{id: chg, tool: t.once, depends_on: []}}
  - {{id: mel, tool: t.once, depends_on: []}}
  - {{id: ship, tool: t.once, depends_on: [chg]}}
  - {{id: note, tool: t.once, depends_on: [mel]}}"
    ));
    scene.returns("chg", fails(ToolError));
    scene.returns("mel", fails(ToolError));
    assert_eq!(scene.steps(), ["failed", "failed", "cancelled", "cancelled"]);
    scene
}

#[test]
fn one_failed_step_is_retried_without_what_another_failure_stopped() {
    for policy in ["cancel_all", "cancel_dependent"] {
        let mut scene = two_failures(policy);
        let retry = answering(Question::Failure(step("mel")), QuestionAnswer::Retry, None);
        scene.give(&agent(), retry);
        scene.returns("mel", done(json!({})));
        scene.returns("note", done(json!({})));
        assert_eq!(scene.steps(), ["failed", "completed", "cancelled", "completed"], "{policy}");
        assert_eq!(scene.status(), "partial");
        assert_eq!(scene.refused(&person(), reopen(&["ship"])), "execution.after_failure");
        scene.give(&person(), reopen(&["chg", "ship"]));
        scene.returns("chg", done(json!({})));
        assert_eq!(scene.calls(), ["ship"]);
    }
}

#[test]
fn a_replan_runs_nothing_that_a_person_skipped_or_undid() {
    let fields = "max_parallel: 3
steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo}}
  - {id: b, tool: t.once}
  - {id: c, tool: t.once, approval: true}";
    let more = format!("{fields}\n  - {{id: d, tool: t.set}}");
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a", done(json!({})));
    scene.returns("b", fails(ToolError));
    scene.answer_failure("b", QuestionAnswer::Skip);
    scene.replan(&more);
    assert_eq!(scene.steps(), ["completed", "skipped", "waiting", "running"]);
    scene.approve("c");
    scene.returns("c", done(json!({})));
    scene.returns("d", done(json!({})));
    assert_eq!(scene.status(), "partial");
    scene.compensate(Some(&["a"]));
    scene.returns("a", done(json!({})));
    assert_eq!((scene.status(), scene.steps()[0]), ("partial", "compensated"));
    // What a person undid, only a person takes up again.
    let last = format!("{more}\n  - {{id: e, tool: t.set}}");
    scene.replan(&last);
    assert_eq!((scene.status(), scene.calls().len()), ("partial", 0));
    scene.replan_as(&person(), &last);
    assert_eq!(scene.calls(), ["e"]);
    scene.returns("e", done(json!({})));
    assert_eq!(scene.steps(), ["compensated", "skipped", "completed", "completed", "completed"]);
    assert_eq!(scene.status(), "partial");
    let unmet: Vec<String> = scene.execution.view().unmet.iter().map(ToString::to_string).collect();
    assert_eq!(unmet, ["a (undone)", "b (skipped: \"so be it\")"]);
}

/// Another call under the same id runs: an agent's plan that does so waits for a person.
#[test]
fn a_step_that_was_skipped_by_decision_runs_with_another_call_only_after_a_persons_yes() {
    let fields = |n: u32| {
        format!(
            "max_parallel: 2\nsteps: [{{id: a, tool: t.set, parameters: {{n: {n}}}}}, {{id: b, tool: t.once, approval: true}}]"
        )
    };
    let mut scene = ExecutionScenario::started(&fields(1));
    scene.returns("a", fails(ToolError));
    scene.answer_failure("a", QuestionAnswer::Skip);
    let new = plan(&fields(2), Driver::Server);
    assert_eq!(scene.execution.runs_after_all(&new), ["a: it was skipped by decision, and runs with another call"]);
    scene.replan(&fields(2));
    assert_eq!(scene.count("ReplanProposed"), 1);
    scene.give(&person(), ExecutionInput::ApproveReplan { plan: new.hash, reason: "go".into() });
    assert_eq!(scene.calls(), ["a"]);
}

/// Neither by leaving it out for the time of one plan nor by giving it another name.
#[test]
fn a_step_that_was_skipped_by_decision_does_not_come_back_without_a_persons_yes() {
    let with = |step: &str| format!("max_parallel: 2\nsteps: [{step}{{id: b, tool: t.once, approval: true}}]");
    let again = with("{id: a, tool: t.once, parameters: {n: 2}}, ");
    let renamed = with("{id: other, tool: t.once, parameters: {n: 1}}, ");
    let mut scene = ExecutionScenario::started(&with("{id: a, tool: t.once, parameters: {n: 1}}, "));
    scene.returns("a", fails(ToolError));
    scene.answer_failure("a", QuestionAnswer::Skip);
    scene.replan(&renamed);
    assert_eq!((scene.count("ReplanProposed"), scene.calls().len()), (1, 0));
    let found = scene.execution.runs_after_all(&plan(&renamed, Driver::Server));
    assert_eq!(found, ["other: it makes the call of a, which was skipped by decision"]);
    scene.replan(&with(""));
    assert_eq!(scene.count("Replanned"), 1);
    for (proposals, back) in [(2, &again), (3, &renamed)] {
        scene.replan(back);
        assert_eq!((scene.count("ReplanProposed"), scene.calls().len()), (proposals, 0), "{back}");
    }
    let found = scene.execution.runs_after_all(&plan(&again, Driver::Server));
    assert_eq!(found, ["a: it was skipped by decision before revision 2 left it out, and runs after all"]);
    scene.replan_as(&person(), &renamed);
    assert_eq!(scene.calls(), ["other"]);
}

#[test]
fn a_step_that_was_skipped_after_some_of_its_items_stays_skipped_when_it_comes_back() {
    let with = |step: &str| format!("steps: [{step}{{id: b, tool: t.once, approval: true}}]");
    let items = "{id: a, tool: t.once, for_each: '[1, 2]', parameters: {n: '{{ item }}'}}, ";
    let mut scene = ExecutionScenario::started(&with(items));
    scene.returns("a[0]", done(json!({})));
    scene.returns("a[1]", fails(ToolError));
    scene.answer_failure("a", QuestionAnswer::Skip);
    scene.replan(&with(""));
    scene.replan(&with(items));
    assert_eq!((scene.count("Replanned"), scene.step("a"), scene.calls().len()), (2, "skipped", 0));
}

#[test]
fn nothing_is_reopened_where_nothing_is_left() {
    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once}, {id: b, tool: t.once, compensation: {tool: t.undo}}]",
    );
    scene.returns("a", done(json!({})));
    scene.returns("b", done(json!({})));
    scene.compensate(Some(&["b"]));
    scene.returns("b", done(json!({})));
    assert_eq!(scene.status(), "partial");
    assert_eq!(scene.refused(&person(), reopen(&[])), "execution.nothing_left");
    assert_eq!(scene.refused(&agent(), reopen(&["b"])), "execution.not_a_person");
    scene.give(&person(), reopen(&["b"]));
    assert_eq!(scene.calls(), ["b#2"]);
}

#[test]
fn an_agent_does_not_take_up_what_a_person_stopped() {
    let start = || ExecutionScenario::started("steps: [{id: a, tool: t.once}, {id: b, tool: t.once}]");
    let mut cancelled = start();
    cancelled.cancel(Some(false));
    cancelled.returns("a", done(json!({})));
    let mut stopped = start();
    stopped.returns("a", fails(ToolError));
    stopped.answer_failure("a", QuestionAnswer::Stop);
    for mut scene in [cancelled, stopped] {
        assert_eq!(scene.refused(&agent(), reopen(&[])), "execution.not_a_person");
        let before = scene.status().to_owned();
        scene.replan("steps: [{id: a, tool: t.once}, {id: b, tool: t.once}, {id: c, tool: t.once}]");
        assert_eq!((scene.status(), scene.calls().len()), (before.as_str(), 0));
        scene.give(&person(), reopen(&[]));
        assert_eq!(scene.count("Reopened"), 1);
    }
}

#[test]
fn a_step_that_a_replan_of_an_ended_execution_drops_is_remembered_as_failed() {
    let mut scene = failed();
    scene.replan("on_failure: cancel_all\nsteps: [{id: a, tool: t.once, compensation: {tool: t.undo, parameters: {id: '{{ result.id }}'}}}, {id: z, tool: t.once}]");
    scene.returns("z", done(json!({})));
    let unmet: Vec<String> = scene.execution.view().unmet.iter().map(ToString::to_string).collect();
    assert_eq!(
        unmet,
        [
            "b (dropped by revision 2, after it failed: tool_error: \"refused\")",
            "c (dropped by revision 2, after it was cancelled)"
        ]
    );
}

#[test]
fn a_tolerated_item_is_decided_about_live_and_after_the_end() {
    let fields = "max_parallel: 3
steps:
  - {id: a, tool: t.once, for_each: {items: '[1, 2]', tolerate: 1, max_parallel: 2}, depends_on: []}
  - {id: w, tool: t.once, depends_on: []}
  - {id: b, tool: t.once, depends_on: [a, w]}";
    let item = || Question::Item(part("a[0]"));
    for answer in Question::ITEM_ANSWERS {
        let mut scene = ExecutionScenario::started(fields);
        scene.returns("a[0]", fails(ToolError));
        scene.returns("a[1]", done(json!(1)));
        assert_eq!(scene.steps(), ["completed", "running", "pending"]);
        let result = (*answer == QuestionAnswer::Resolve).then(|| json!(0));
        scene.give(&agent(), answering(item(), *answer, result));
        scene.returns("w", done(json!({})));
        if *answer == QuestionAnswer::Retry {
            assert_eq!(scene.steps(), ["running", "completed", "pending"]);
            scene.returns("a[0]", done(json!(0)));
        }
        assert_eq!(scene.calls(), ["b"], "{answer:?}");
        scene.returns("b", done(json!({})));
        let status = if *answer == QuestionAnswer::Skip { "partial" } else { "completed" };
        assert_eq!(scene.status(), status, "{answer:?}");
    }
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("a[0]", fails(ToolError));
    scene.returns("a[1]", done(json!(1)));
    scene.returns("w", done(json!({})));
    scene.returns("b", done(json!({})));
    assert_eq!(scene.status(), "completed");
    assert_eq!(scene.refused(&agent(), reopen(&[])), "execution.completed");
    scene.give(&agent(), answering(item(), QuestionAnswer::Retry, None));
    assert_eq!(scene.calls(), ["a[0]#2"]);
    scene.returns("a[0]", done(json!(0)));
    assert_eq!((scene.status(), scene.execution.result_of("a")), ("completed", Some(&json!([0, 1]))));
}

/// The other branch has run: the condition is not evaluated again.
#[test]
fn a_reopening_does_not_run_both_branches() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: f, tool: t.once, failure_policy: continue_others}
  - {id: x, tool: t.once, when: \"steps.f.status == 'completed'\"}
  - {id: y, tool: t.once, else_of: x}",
    );
    scene.returns("f", fails(ToolError));
    scene.returns("y", done(json!({})));
    assert_eq!(scene.steps(), ["failed", "skipped", "completed"]);
    scene.give(&agent(), reopen(&[]));
    scene.returns("f", done(json!({})));
    assert_eq!(scene.steps(), ["completed", "skipped", "completed"]);
    assert_eq!(scene.status(), "completed");
}

/// With the key of its first undoing, the tool would take the second one for done.
#[test]
fn a_step_that_was_undone_and_begins_anew_is_undone_with_another_key() {
    let steps = |of: &str| {
        format!(
            "on_failure: cancel_all
steps:
  - {{id: c, tool: t.once}}
  - {{id: a, tool: t.set, {of}, retry: {{max_attempts: 1}}, depends_on: [c], compensation: {{tool: t.undo_once}}}}"
        )
    };
    let item = "for_each: '[1]', parameters: {n: '{{ item }}'}";
    for (before, after, name) in [
        ("parameters: {n: 1}".to_owned(), "parameters: {n: 2}".to_owned(), "a"),
        (item.to_owned(), item.replace("[1]", "[2]"), "a[0]"),
    ] {
        let mut scene = ExecutionScenario::started(&steps(&before));
        scene.returns("c", done(json!({})));
        scene.returns(name, maybe(Timeout));
        scene.compensate(Some(&["a"]));
        scene.wait();
        let key = scene.call(name).key;
        scene.returns(name, done(json!({})));
        scene.replan_as(&person(), &steps(&after));
        scene.returns(name, maybe(Timeout));
        scene.compensate(Some(&["a"]));
        scene.wait();
        assert_ne!(scene.call(name).key, key, "{name}");
    }
}
