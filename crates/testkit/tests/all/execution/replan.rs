//! Replanning: a new revision keeps finished steps, and the obligation to undo them.

use rutter_core::actor::Actor;
use rutter_core::execution::input::{DecisionContext, ExecutionInput};
use rutter_core::execution::part::{PartState, ProbeProgress};
use rutter_core::execution::view::PendingQuestion;
use rutter_core::hash::Hash;
use rutter_core::journal::event::{CallSide, Event, EventRecord, PlanReference, QuestionAnswer};
use rutter_core::limits;
use rutter_core::plan::Driver;
use rutter_core::tool::FailureCategory::{Timeout, ToolError, Unavailable};
use rutter_testkit::scene::*;
use serde_json::json;

const A: &str = "{id: a, tool: t.once, parameters: {n: 1}, compensation: {tool: t.undo, parameters: {of: a}}}";
const B: &str = "{id: b, tool: t.once, depends_on: [a], compensation: {tool: t.undo, parameters: {of: b}}}";
const C: &str = "{id: c, tool: t.once, compensation: {tool: t.undo, parameters: {of: c}}}";

fn steps(list: &[&str]) -> String {
    format!("steps: [{}]", list.join(", "))
}

fn replanning(fields: &str) -> ExecutionInput {
    ExecutionInput::Replan { plan: plan(fields, Driver::Server), revision: 2, reason: "better".into() }
}

#[test]
fn finished_steps_stay_finished_and_new_ones_begin() {
    let mut scene = ExecutionScenario::started(&steps(&[A, B]));
    scene.returns("a", done(json!({})));
    scene.returns("b", fails(ToolError));
    scene.replan(&steps(&[A, C]));
    assert_eq!((scene.execution.revision(), scene.steps()), (2, vec!["completed", "running"]));
    assert_eq!(scene.calls(), ["c"]);
    scene.returns("c", done(json!({})));
    assert_eq!(scene.status(), "completed");
    assert_eq!(scene.started_calls(CallSide::Do), ["a", "b", "c"]);
}

#[test]
fn a_dropped_effect_stays_and_is_undone_in_order() {
    let mut scene = ExecutionScenario::started(&steps(&[A, B]));
    scene.returns("a", done(json!({})));
    scene.pause();
    scene.returns("b", done(json!({})));
    // The last step ended the execution, so begin again with one more step.
    let mut scene = ExecutionScenario::started(&steps(&[A, B, C]));
    scene.returns("a", done(json!({})));
    scene.returns("b", done(json!({})));
    scene.returns("c", fails(ToolError));
    scene.replan(&steps(&["{id: d, tool: t.once, compensation: {tool: t.undo, parameters: {of: d}}}"]));
    assert_eq!(scene.calls(), ["d"]);
    scene.returns("d", done(json!({})));
    assert_eq!(scene.status(), "completed");
    scene.compensate(None);
    let mut undone = Vec::new();
    while let Some(call) = scene.last.calls.first().cloned() {
        undone.push(call.parameters["of"].clone());
        scene.returns(&call.part.to_string(), done(json!({})));
    }
    assert_eq!(undone, ["d", "b", "a"], "dependents first, also among what was dropped");
    assert_eq!(scene.status(), "compensated");
}

#[test]
fn what_was_dropped_stays_through_further_replans() {
    let mut scene = ExecutionScenario::started(&steps(&[A, B]));
    scene.returns("a", done(json!({})));
    scene.returns("b", fails(ToolError));
    scene.replan(&steps(&["{id: c, tool: t.once, approval: true}"]));
    scene.replan(&steps(&["{id: c, tool: t.once, approval: true}", "{id: d, tool: t.once}"]));
    assert_eq!(scene.execution.undo_scope(None), [part("a")]);
    // A later plan with the step finds it done.
    scene.replan(&steps(&[A, "{id: c, tool: t.once, approval: true}"]));
    assert_eq!(scene.step("a"), "completed");
    assert_eq!(scene.started_calls(CallSide::Do), ["a", "b"]);
}

#[test]
fn a_dropped_step_without_effect_is_gone() {
    let mut scene = ExecutionScenario::started(&steps(&[A, B]));
    scene.returns("a", fails(ToolError));
    scene.replan(&steps(&[C]));
    assert_eq!(scene.steps().len(), 1);
    scene.returns("c", done(json!({})));
    assert_eq!(scene.status(), "completed", "what failed is no longer part of the plan");
}

#[test]
fn a_failed_step_that_is_kept_is_tried_again() {
    let mut scene = ExecutionScenario::started(&steps(&[A, B]));
    scene.returns("a", fails(ToolError));
    scene.replan(&steps(&[A, B, C]));
    assert_eq!(scene.calls(), ["a#2"]);
}

#[test]
fn a_failed_step_may_become_another_call_unless_it_may_have_happened() {
    let other = "steps: [{id: a, tool: t.set, parameters: {n: 2}}]";
    let mut scene =
        ExecutionScenario::started("steps: [{id: a, tool: t.set, parameters: {n: 1}, retry: {max_attempts: 1}}]");
    scene.returns("a", fails(ToolError));
    scene.replan(other);
    assert_eq!(*scene.call("a").parameters, json!({"n": 2}));

    let mut scene =
        ExecutionScenario::started("steps: [{id: a, tool: t.set, parameters: {n: 1}, retry: {max_attempts: 1}}]");
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.refused(&agent(), replanning(other)), "replan.may_have_happened");
}

/// A step in some state, and the refusal of changing or dropping it.
#[test]
fn a_running_or_completed_step_cannot_become_another_call() {
    let first = steps(&[A, "{id: z, tool: t.once}"]);
    let changed = steps(&["{id: a, tool: t.once, parameters: {n: 2}}"]);
    let undone_otherwise = steps(&["{id: a, tool: t.once, parameters: {n: 1}}"]);
    let dropped = steps(&[C]);
    let running = || ExecutionScenario::started(&first);
    let completed = || {
        let mut scene = ExecutionScenario::started(&first);
        scene.returns("a", done(json!({})));
        scene.returns("z", fails(ToolError));
        scene
    };
    let doubtful = || {
        let mut scene = ExecutionScenario::started(&first);
        scene.returns("a", maybe(Timeout));
        scene
    };
    let backing_off = || {
        let mut scene = ExecutionScenario::started(&first);
        scene.returns("a", fails(Unavailable));
        scene
    };
    let table: [(&str, &dyn Fn() -> ExecutionScenario, &str, &str); 10] = [
        ("running", &running, &changed, "replan.under_way"),
        ("running", &running, &dropped, "replan.under_way"),
        ("backing off", &backing_off, &changed, ""),
        ("backing off", &backing_off, &dropped, ""),
        ("in doubt", &doubtful, &changed, "replan.in_doubt"),
        ("in doubt", &doubtful, &dropped, "replan.in_doubt"),
        ("completed", &completed, &changed, "replan.completed_changed"),
        ("completed", &completed, &undone_otherwise, "replan.completed_changed"),
        ("completed", &completed, &dropped, ""),
        ("completed", &completed, &first, ""),
    ];
    for (state, scene, fields, code) in table {
        let mut scene = scene();
        let got = scene.input(&agent(), replanning(fields)).map_or_else(|refusal| refusal.code, |()| "");
        assert_eq!(got, code, "{state}: {fields}");
    }
}

#[test]
fn a_fallback_that_is_needed_stays_as_it_is() {
    let undo = "compensation: {tool: t.undo}";
    let with = |fallback: &str| format!("steps: [{{id: a, tool: t.once{fallback}}}, {B}]");
    let first = with(&format!(", fallback: {{tool: t.set, {undo}}}"));
    let others = [with(""), with(", fallback: {tool: t.set}"), with(&format!(", fallback: {{tool: t.other, {undo}}}"))];

    let mut scene = ExecutionScenario::started(&first);
    scene.returns("a", fails(ToolError));
    scene.returns("a", fails(Unavailable));
    assert_eq!(scene.step("a"), "retrying");
    for other in &others {
        assert_eq!(scene.refused(&agent(), replanning(other)), "replan.under_way");
    }
    scene.wait();
    scene.returns("a", done(json!({})));
    for other in &others {
        assert_eq!(scene.refused(&agent(), replanning(other)), "replan.completed_changed");
    }
    scene.replan(&first);

    let mut scene = ExecutionScenario::started(&first);
    scene.returns("a", done(json!({})));
    scene.replan(&others[0]);
    assert_eq!(scene.step("a"), "completed", "what was never needed may go");
}

/// What a probe found is judged by the probe that was sent.
#[test]
fn a_running_probe_stays_as_it_is() {
    let with = |probe: &str| format!("steps: [{{id: a, tool: t.once{probe}}}, {B}]");
    let first = with(", probe: {tool: t.find, happened: result.found, settle: 0s, result: result.value}");
    let others = [
        with(""),
        with(", probe: {tool: t.read, happened: result.found, settle: 0s, result: result.value}"),
        with(", probe: {tool: t.find, parameters: {n: 1}, happened: result.found, settle: 0s, result: result.value}"),
        with(", probe: {tool: t.find, happened: not result.found, settle: 0s, result: result.value}"),
        with(", probe: {tool: t.find, happened: result.found, settle: 0s}"),
    ];
    let mut scene = ExecutionScenario::started(&first);
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.calls(), ["probe a"]);
    for other in &others {
        assert_eq!(scene.refused(&agent(), replanning(other)), "replan.under_way", "{other}");
    }
    scene.replan(&with(
        ", probe: {tool: t.find, happened: result.found, settle: 0s, result: result.value, timeout: 5s}",
    ));
    scene.returns("a", done(json!({"found": true, "value": {}})));
    assert_eq!(scene.step("a"), "completed");

    let mut scene = ExecutionScenario::started(&first);
    scene.returns("a", maybe(Timeout));
    scene.returns("a", fails(Unavailable));
    scene.replan(&others[0]);
    scene.wait();
    assert_eq!(scene.asks(), ["doubt a"], "between two attempts of the probe it may go");
}

/// Journals of earlier versions have such replans.
#[test]
fn the_answer_of_a_probe_that_a_replan_has_dropped_says_nothing() {
    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, retry: {max_attempts: 3}, probe: {tool: t.find, happened: result.found, settle: 0s}}]",
    );
    scene.returns("a", maybe(Timeout));
    let (mut execution, now) = (scene.execution.clone(), scene.now);
    let new = plan("steps: [{id: a, tool: t.once, retry: {max_attempts: 3}}]", Driver::Server);
    let event = Event::Replanned { plan: PlanReference::of(&new), revision: 2, reason: String::new() };
    execution.apply(&EventRecord { at: now, actor: agent(), event }).unwrap();
    let (part, side, outcome) = (part("a"), CallSide::Probe, done(json!({"found": true})));
    let returned = ExecutionInput::Returned { part: part.clone(), side, attempt: 1, outcome };
    let decision = execution.decide(&Actor::rutter(), returned, DecisionContext { now, room: 9 }).unwrap();
    assert!(decision.calls.is_empty(), "it happened, and must not be sent again");
    let state = &execution.part(&part).unwrap().state;
    assert!(matches!(state, PartState::InDoubt { probing: ProbeProgress::Exhausted { .. }, .. }), "{state:?}");
}

/// A call is judged by what it was sent as, and one that may have happened is not sent again as a call that must not be.
#[test]
fn the_safety_of_a_step_does_not_change_while_it_is_open_or_may_have_happened() {
    let with = |safety: &str, more: &str| format!("steps: [{{id: a, tool: t.set{safety}{more}}}, {B}]");
    let (loose, tight) = (with("", ", retry: {jitter: false}"), with(", safety: once", ""));
    let mut scene = ExecutionScenario::started(&tight);
    assert_eq!(scene.refused(&agent(), replanning(&loose)), "replan.under_way");
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.refused(&agent(), replanning(&loose)), "replan.in_doubt");
    scene.settle("a", true, json!({}));
    scene.replan(&loose);
    assert_eq!(scene.step("a"), "completed", "nothing more is judged");

    let mut scene = ExecutionScenario::started(&loose);
    assert_eq!(scene.refused(&agent(), replanning(&tight)), "replan.under_way");
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.refused(&agent(), replanning(&tight)), "replan.may_have_happened");

    let mut scene = ExecutionScenario::started(&loose);
    scene.returns("a", fails(Unavailable));
    scene.replan(&tight);
    scene.wait();
    scene.crash();
    assert_eq!(scene.step("a"), "in_doubt", "what had no effect may become stricter");

    let with = |safety: &str| format!("steps: [{{id: a, tool: t.once, fallback: {{tool: t.set{safety}}}}}, {B}]");
    let mut scene = ExecutionScenario::started(&with(", safety: once"));
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.calls(), ["fallback a"]);
    assert_eq!(scene.refused(&agent(), replanning(&with(""))), "replan.under_way");
}

#[test]
fn a_running_step_continues_if_it_is_kept() {
    let mut scene = ExecutionScenario::started(&steps(&[A, B]));
    scene.replan(&steps(&[C, A]));
    assert_eq!(scene.calls(), [""; 0], "a keeps its slot");
    scene.returns("a", done(json!({})));
    assert_eq!(scene.calls(), ["c"]);

    let mut scene = ExecutionScenario::started(&steps(&[A, B]));
    scene.returns("a", maybe(Timeout));
    scene.replan(&steps(&[A, C]));
    assert_eq!(scene.asks(), ["doubt a"]);
    scene.settle("a", true, json!({}));
    assert_eq!(scene.calls(), ["c"]);
}

#[test]
fn keys_outlive_a_replan() {
    let keyed = "{id: a, tool: t.keyed, parameters: {key: '{{ key }}', n: 1}}";
    let mut scene = ExecutionScenario::started(&steps(&[keyed]));
    let key = scene.call("a").key;
    scene.returns("a", fails(ToolError));
    scene.replan(&steps(&[C, keyed]));
    scene.returns("c", done(json!({})));
    assert_eq!(scene.call("a").key, key);
}

#[test]
fn an_undone_step_stays_undone_until_a_person_runs_it_again_with_a_new_key() {
    let keyed = "{id: a, tool: t.keyed, parameters: {key: '{{ key }}'}}";
    let mut scene = ExecutionScenario::started(&steps(&[keyed, C]));
    let key = scene.call("a").key;
    scene.returns("a", done(json!({})));
    scene.give(
        &agent(),
        ExecutionInput::RecordCompensation { part: part("a"), description: "undone".into(), evidence: None },
    );
    scene.returns("c", fails(ToolError));
    scene.replan(&steps(&[keyed, B]));
    assert_eq!(scene.calls(), ["b"]);
    scene.returns("b", done(json!({})));
    assert_eq!((scene.status(), scene.step("a")), ("partial", "compensated"));
    let again = || ExecutionInput::Reopen { steps: Some(vec![step("a")]), reason: "after all".into() };
    assert_eq!(scene.refused(&agent(), again()), "execution.not_a_person");
    scene.give(&person(), again());
    assert_eq!(scene.calls(), ["a#2"]);
    assert_ne!(scene.call("a").key, key);
}

#[test]
fn nothing_starts_while_the_new_plan_is_being_made() {
    let mut scene = ExecutionScenario::started(&steps(&[A, B]));
    let begin = || ExecutionInput::BeginReplan { reason: String::new() };
    let abandon = || ExecutionInput::AbandonReplan { reason: String::new() };
    assert_eq!(scene.refused(&agent(), abandon()), "execution.not_replanning");
    scene.give(&agent(), begin());
    assert_eq!(scene.status(), "replanning");
    assert_eq!(scene.refused(&agent(), begin()), "execution.replanning");
    scene.returns("a", done(json!({})));
    assert_eq!((scene.calls().len(), scene.status()), (0, "replanning"));
    scene.give(&agent(), abandon());
    assert_eq!(scene.calls(), ["b"]);
}

#[test]
fn a_held_failure_can_be_answered_by_a_new_plan_or_later_by_another_answer() {
    let mut scene = ExecutionScenario::started(&steps(&[A, B]));
    scene.returns("a", fails(ToolError));
    scene.answer_failure("a", QuestionAnswer::Replan);
    assert_eq!(scene.status(), "replanning");
    let about = rutter_core::journal::event::Question::Failure(step("a"));
    assert_eq!(scene.refused(&person(), answering(about, QuestionAnswer::Replan, None)), "execution.replanning");
    scene.give(&agent(), ExecutionInput::AbandonReplan { reason: String::new() });
    assert_eq!((scene.status(), scene.asks()), ("waiting", vec!["failure a".to_owned()]));
    scene.answer_failure("a", QuestionAnswer::Retry);
    assert_eq!(scene.calls(), ["a#2"]);
}

#[test]
fn there_is_a_bound_to_replanning() {
    let asked = "{id: a, tool: t.once, approval: true}";
    let mut scene = ExecutionScenario::started(&steps(&[asked]));
    for _ in 0..limits::REPLANS_MAX {
        // The same plan again is the same revision.
        scene.give(&agent(), replanning(&steps(&[asked])));
    }
    assert_eq!(scene.execution.revision(), 2);
    assert_eq!(scene.refused(&agent(), replanning(&steps(&[asked]))), "execution.replan_limit");
}

#[test]
fn a_new_plan_has_the_number_it_is_saved_under() {
    let asked = "{id: a, tool: t.once, approval: true}";
    let saved = |fields: &str, revision| {
        let plan = plan(&steps(&[fields]), Driver::Server);
        ExecutionInput::Replan { plan, revision, reason: "better".into() }
    };
    let mut scene = ExecutionScenario::started(&steps(&[asked]));
    scene.give(&agent(), saved("{id: a, tool: t.once}", 7));
    assert!(scene.asks().contains(&"replan 7".to_owned()), "{:?}", scene.asks());
    let PendingQuestion::Replan { plan, .. } = scene.execution.questions().pop().unwrap() else { panic!("not asked") };
    scene.crash();
    scene.give(&person(), ExecutionInput::ApproveReplan { plan, reason: "fine".into() });
    let numbers = scene.journal.iter().filter_map(|record| match &record.event {
        Event::ReplanProposed { revision, .. } | Event::Replanned { revision, .. } => Some(*revision),
        _ => None,
    });
    assert_eq!((numbers.collect::<Vec<_>>(), scene.execution.revision()), (vec![7, 7], 7));
    // Back to an earlier one.
    scene.give(&person(), saved("{id: a, tool: t.once, approval: {expires: 1h}}", 3));
    assert_eq!(scene.execution.revision(), 3);
}

#[test]
fn replanning_is_for_executions_that_go_forward() {
    let mut scene = ExecutionScenario::of(&steps(&[A]));
    assert_eq!(scene.refused(&agent(), replanning(&steps(&[A]))), "execution.not_started");
    scene.start();
    scene.cancel(None);
    assert_eq!(scene.refused(&agent(), replanning(&steps(&[A]))), "execution.stopping");
    scene.returns("a", fails(ToolError));
    // After the end, a new plan takes the execution up again; what a person cancelled, only a person's.
    scene.give(&agent(), replanning(&steps(&[A])));
    assert_eq!(scene.calls(), [""; 0]);
    scene.give(&person(), replanning(&steps(&[A])));
    assert_eq!(scene.calls(), ["a#2"]);
}

#[test]
fn a_fan_out_keeps_its_finished_items() {
    let fan = "{id: a, tool: t.once, for_each: '[1, 2, 3]', parameters: {n: '{{ item }}'}}";
    let mut scene = ExecutionScenario::started(&steps(&[fan]));
    scene.returns("a[0]", done(json!(1)));
    scene.returns("a[1]", fails(ToolError));
    scene.replan(&steps(&[fan, C]));
    assert_eq!(scene.calls(), ["a[1]#2"]);
    scene.returns("a[1]", done(json!(2)));
    scene.returns("a[2]", done(json!(3)));
    scene.returns("c", done(json!({})));
    assert_eq!(scene.status(), "completed");
    assert_eq!(scene.started_calls(CallSide::Do), ["a[0]", "a[1]", "a[1]", "a[2]", "c"]);
}

#[test]
fn a_fan_out_without_effects_is_evaluated_again() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.read, for_each: '[1, 2]'}]");
    scene.returns("a[0]", fails(ToolError));
    scene.replan("steps: [{id: a, tool: t.read, for_each: '[1, 2]'}, {id: b, tool: t.once}]");
    assert_eq!(scene.count("FanOutOpened"), 2);
    assert_eq!(scene.calls(), ["a[0]"]);
}

#[test]
fn a_touched_step_that_is_dropped_stays_to_be_undone() {
    let touched = "{id: a, tool: t.set, retry: {max_attempts: 1}, compensation: {tool: t.undo}}";
    let mut scene = ExecutionScenario::started(&steps(&[touched]));
    scene.returns("a", maybe(Timeout));
    scene.replan(&steps(&[C]));
    assert_eq!(scene.steps(), ["running", "failed"]);
    scene.cancel(Some(true));
    scene.returns("c", fails(ToolError));
    scene.wait();
    assert_eq!(scene.calls(), ["undo a"]);
}

#[test]
fn skipped_and_cancelled_steps_get_a_new_chance() {
    let mut scene = ExecutionScenario::started(
        "max_parallel: 2
steps:
  - {id: a, tool: t.once, failure_policy: cancel_dependent}
  - {id: b, tool: t.once, depends_on: [a]}
  - {id: z, tool: t.once, approval: true}",
    );
    scene.returns("a", fails(ToolError));
    assert_eq!(scene.step("b"), "cancelled");
    scene.replan(
        "max_parallel: 2
steps:
  - {id: b, tool: t.once}
  - {id: z, tool: t.once, approval: true}",
    );
    assert_eq!(scene.calls(), ["b"]);
}

#[test]
fn drift_stops_the_calls_of_a_tool_until_a_person_accepts_it() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set}, {id: b, tool: t.once, depends_on: [a]}]");
    let found = Hash::of(&[b"new"]);
    let report = |name: &str| ExecutionInput::ReportDefinition { tool: tool(name), found };
    let accept = |name: &str| ExecutionInput::AcceptTool { tool: tool(name), definition: found, reason: String::new() };
    assert_eq!(scene.refused(&Actor::rutter(), report("no.body")), "execution.unknown_tool");
    scene.give(&Actor::rutter(), report("t.once"));
    scene.returns("a", done(json!({})));
    assert_eq!((scene.calls().len(), scene.status()), (0, "waiting"));
    assert_eq!(scene.asks(), ["drift t.once"]);
    assert_eq!(scene.refused(&agent(), accept("t.once")), "execution.not_a_person");
    scene.give(&person(), accept("t.once"));
    assert_eq!((scene.calls(), scene.call("b").definition), (vec!["b".to_owned()], found));
    scene.returns("b", done(json!({})));
    assert_eq!(scene.refused(&person(), accept("t.once")), "execution.ended");
}

#[test]
fn drift_stops_an_approved_call_a_probe_and_a_compensation_too() {
    let found = Hash::of(&[b"new"]);
    let report = |name: &str| ExecutionInput::ReportDefinition { tool: tool(name), found };
    let accept = |name: &str| ExecutionInput::AcceptTool { tool: tool(name), definition: found, reason: String::new() };
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.once, approval: true}]");
    scene.give(&Actor::rutter(), report("t.once"));
    scene.approve("a");
    assert_eq!(scene.calls(), [""; 0]);

    let mut scene = ExecutionScenario::started(
        "steps: [{id: a, tool: t.once, probe: {tool: t.find, happened: result.found, settle: 0s}, compensation: {tool: t.undo}}]",
    );
    scene.give(&Actor::rutter(), report("t.find"));
    scene.returns("a", maybe(Timeout));
    assert_eq!(scene.calls(), [""; 0]);
    assert_eq!(scene.asks(), ["doubt a", "drift t.find"], "a person may know without the probe");
    scene.give(&person(), accept("t.find"));
    assert_eq!(scene.calls(), ["probe a"]);
    scene.give(&Actor::rutter(), report("t.undo"));
    scene.cancel(Some(true));
    scene.returns("a", done(json!({"found": true})));
    assert_eq!((scene.calls().len(), scene.status()), (0, "waiting"));
    scene.give(&person(), accept("t.undo"));
    assert_eq!(scene.calls(), ["undo a"]);
}
