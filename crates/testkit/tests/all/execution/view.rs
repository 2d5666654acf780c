//! What people and agents see: status words, questions, the brief.

use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::hash::Hash;
use rutter_core::journal::event::{ExecutionLimit, Question, QuestionAnswer};
use rutter_core::plan::Driver;
use rutter_core::tool::FailureCategory::{Timeout, ToolError, Unavailable};
use rutter_testkit::scene::*;
use serde_json::{Map, json};
use std::fmt::Write;

/// A scenario for every status of an execution.
#[test]
fn every_status_word_can_be_seen() {
    let one = "steps: [{id: a, tool: t.once, compensation: {tool: t.undo}}]";
    let mut seen = Vec::new();
    let mut see = |scene: &ExecutionScenario| seen.push(scene.status());
    see(&ExecutionScenario::of(one));
    let mut scene = ExecutionScenario::started(one);
    see(&scene);
    scene.pause();
    see(&scene);
    scene.resume();
    scene.give(&agent(), ExecutionInput::BeginReplan { reason: String::new() });
    see(&scene);
    scene.returns("a", maybe(Timeout));
    scene.give(&agent(), ExecutionInput::AbandonReplan { reason: String::new() });
    see(&scene);
    scene.settle("a", true, json!({}));
    see(&scene);
    scene.compensate(None);
    see(&scene);
    scene.returns("a", done(json!({})));
    see(&scene);
    let mut scene = ExecutionScenario::started(one);
    scene.returns("a", fails(ToolError));
    scene.answer_failure("a", QuestionAnswer::Stop);
    see(&scene);
    let mut scene = ExecutionScenario::of(one);
    scene.cancel(None);
    see(&scene);
    let mut scene = ExecutionScenario::started(
        "on_failure: continue_others\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}]",
    );
    scene.returns("a", fails(ToolError));
    scene.returns("b", done(json!({})));
    see(&scene);
    let all = [
        ExecutionStatus::Pending,
        ExecutionStatus::Running,
        ExecutionStatus::Paused,
        ExecutionStatus::Replanning,
        ExecutionStatus::Waiting,
        ExecutionStatus::Completed,
        ExecutionStatus::Compensating,
        ExecutionStatus::Compensated,
        ExecutionStatus::Failed,
        ExecutionStatus::Cancelled,
        ExecutionStatus::Partial,
    ];
    assert_eq!(seen, all.map(ExecutionStatus::as_str));
}

#[test]
fn every_status_word_of_a_step_can_be_seen() {
    let fields = "max_parallel: 9
steps:
  - {id: done, tool: t.once, compensation: {tool: t.undo}}
  - {id: runs, tool: t.once}
  - {id: retries, tool: t.set}
  - {id: asks, tool: t.once, approval: true}
  - {id: doubts, tool: t.once}
  - {id: fails, tool: t.once, failure_policy: cancel_dependent}
  - {id: skips, tool: t.once, when: 'false'}
  - {id: follows, tool: t.once, depends_on: [fails]}
  - {id: waits, tool: t.once, depends_on: [runs]}
  - {id: undone, tool: t.once}";
    let mut scene = ExecutionScenario::started(fields);
    scene.returns("done", done(json!({})));
    scene.returns("undone", done(json!({})));
    scene.returns("retries", fails(Unavailable));
    scene.returns("doubts", maybe(Timeout));
    scene.returns("fails", fails(ToolError));
    scene.give(
        &agent(),
        ExecutionInput::RecordCompensation { part: part("undone"), description: String::new(), evidence: None },
    );
    assert_eq!(
        scene.steps(),
        [
            "completed",
            "running",
            "retrying",
            "waiting",
            "in_doubt",
            "failed",
            "skipped",
            "cancelled",
            "pending",
            "compensated"
        ]
    );
    let view = scene.execution.view();
    assert_eq!((view.settled, view.total, view.calls), (5, 10, 6));
    let stages: Vec<_> = scene.execution.stages().map(|(id, _)| id.to_string()).collect();
    assert_eq!(stages.len(), 10);
}

#[test]
fn a_view_has_times_and_counts() {
    let mut scene = ExecutionScenario::started("steps: [{id: a, tool: t.set, retry: {jitter: false}}]");
    let began = scene.now;
    scene.returns("a", fails(Unavailable));
    scene.wait();
    let view = &scene.execution.view().steps[0];
    assert_eq!((view.attempts, view.began_at, view.ended_at, view.touched), (2, Some(began), None, false));
    scene.returns("a", done(json!({})));
    let view = &scene.execution.view().steps[0];
    assert_eq!((view.ended_at, view.touched), (Some(scene.now), true));
    assert!(serde_json::to_string(&scene.execution.view()).is_ok());
}

#[test]
fn a_fan_out_that_failed_before_it_had_parts_shows_its_failure() {
    let mut scene = ExecutionScenario::with(
        "inputs: {type: object, properties: {list: {}}}
steps: [{id: a, tool: t.once, for_each: inputs.list}]",
        json!({"list": 3}),
    );
    scene.start();
    assert!(scene.execution.view().steps[0].failure.is_some());
    assert!(scene.execution.brief().contains("expected a list"), "{}", scene.execution.brief());
}

#[test]
fn the_brief_says_what_blocks_and_what_is_next() {
    let mut scene = ExecutionScenario::by_agent(
        "steps: [{id: a, tool: t.once, parameters: {n: 1}}, {id: b, tool: t.once, depends_on: [a]}]",
    );
    scene.start();
    let expect = |scene: &ExecutionScenario, texts: &[&str]| {
        let brief = scene.execution.brief();
        for text in texts {
            assert!(brief.contains(text), "{text:?} is missing:\n{brief}");
        }
    };
    expect(
        &scene,
        &[
            "Goal: see what follows",
            "Status: running, 0 of 2",
            "driven by an agent",
            "call t.once for step a with {\"n\":1}",
        ],
    );
    scene.record_started("a");
    expect(&scene, &["Under way: a", "Next: finish what is under way"]);
    scene.record_finished("a", json!({}));
    expect(&scene, &["Done: a", "Do not repeat (each call has its own effect): a", "Pending: b"]);
    scene.record_failed("b", Timeout, true);
    expect(&scene, &["Blocked by: a person must say whether b happened (", "Next: answer"]);
    scene.pause();
    expect(&scene, &["Next: nothing until it is resumed"]);
    scene.resume();
    scene.give(&agent(), ExecutionInput::BeginReplan { reason: String::new() });
    expect(&scene, &["Next: send the new plan"]);
    scene.kill();
    expect(&scene, &["Next: answer: a person must say whether b happened"]);
    let scene = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
    expect(&scene, &["driven by Rutter", "Next: wait; Rutter makes the calls"]);
}

#[test]
fn the_brief_names_every_kind_of_question() {
    let mut stuck = ExecutionScenario::started("steps: [{id: a, tool: t.once, compensation: {tool: t.undo}}]");
    stuck.returns("a", done(json!({})));
    stuck.compensate(None);
    stuck.returns("a", fails(ToolError));
    let mut over =
        ExecutionScenario::started("budget: {calls: 1}\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}]");
    over.returns("a", done(json!({})));
    let mut drifted = ExecutionScenario::started("steps: [{id: a, tool: t.set}, {id: b, tool: t.once}]");
    let found = Hash::ZERO;
    drifted.give(&person(), ExecutionInput::ReportDefinition { tool: tool("t.once"), found });
    let mut failed = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
    failed.returns("a", fails(ToolError));
    let asking = ExecutionScenario::started("steps: [{id: a, tool: t.once, approval: true}]");
    let mut inquiring = ExecutionScenario::started("steps: [{id: a, tool: t.once}]");
    inquiring.tool_asks("a", json!({"type": "object"}));
    for (scene, text) in [
        (stuck, "): retry, resolve or skip"),
        (over, "the limit of calls was reached: a person may let it go on; or stop, compensate or replan"),
        (drifted, "t.once is no longer the tool"),
        (failed, "a failed (tool_error: \"refused\"): retry, skip"),
        (asking, "a person must approve a (t.once)"),
        (inquiring, "a person or an agent must answer the tool of a, which asks \"which one?\""),
    ] {
        assert!(scene.execution.brief().contains(text), "{text:?} is missing:\n{}", scene.execution.brief());
    }
}

/// A hundred steps with long names, in several states at once: done, failed, skipped, in doubt, pending.
fn hundred(id: impl Fn(usize) -> String, goal: &str) -> ExecutionScenario {
    let mut fields = format!("max_parallel: 64\ndescription: {goal:?}\nsteps:\n");
    for number in 0..100 {
        let rest = match number % 10 {
            0..=2 => "approval: true",
            3 => "when: 'false'",
            4 => "failure_policy: continue_others",
            _ => "",
        };
        // A doubt holds up only the steps that depend on it.
        let rest = if number >= 90 { format!("depends_on: [{}]", id(7)) } else { rest.to_owned() };
        let comma = if rest.is_empty() { "" } else { ", " };
        writeln!(fields, "  - {{id: {}, tool: t.once{comma}{rest}}}", id(number)).expect("a string takes it");
    }
    let mut scene = ExecutionScenario::started(&fields);
    for number in 0..60 {
        match number % 10 {
            0..=3 => {}
            4 => scene.returns(&id(number), fails(ToolError)),
            5 | 6 => scene.returns(&id(number), done(json!({}))),
            _ => scene.returns(&id(number), maybe(Timeout)),
        }
    }
    scene
}

#[test]
fn the_brief_of_a_hundred_steps_is_short_in_every_state() {
    let long = |number: usize| format!("{}_{number:03}", "a_step_with_a_rather_long_name".repeat(2));
    let mut scene = hundred(long, &"Überführung der Bestände 🚢 ".repeat(60));
    let mut values = Map::new();
    for number in 0..50 {
        values.insert(format!("schlüssel_{number}"), json!("wért🚢".repeat(40)));
    }
    scene.give(&agent(), ExecutionInput::SaveContext { values });
    scene.hand_over(Driver::Agent);
    for number in 60..70 {
        scene.record_finished(&format!("nicht_im_plan_{number}"), json!({}));
    }
    let brief = scene.execution.brief();
    assert!(brief.chars().count() <= 3_200, "{} characters:\n{brief}", brief.chars().count());
    for label in [
        "Execution",
        "Status",
        "Done",
        "Failed",
        "Skipped",
        "Under way",
        "Pending",
        "Do not repeat",
        "Blocked by",
        "Differs",
        "Context",
        "Next",
    ] {
        assert!(brief.contains(&format!("\n{label}")) || brief.starts_with(label), "{label} is missing:\n{brief}");
    }
    scene.kill();
    assert!(scene.execution.brief().chars().count() <= 3_200);
}

#[test]
fn a_brief_cuts_multi_byte_text_between_characters() {
    for length in 230..250 {
        let mut scene = ExecutionScenario::of("steps: [{id: a, tool: t.once}]");
        let mut values = Map::new();
        values.insert("k".into(), json!("🚢".repeat(length)));
        scene.give(&agent(), ExecutionInput::SaveContext { values });
        assert!(scene.execution.brief().contains('🚢'));
    }
}

#[test]
fn a_question_lists_the_answers_it_takes() {
    let mut scene =
        ExecutionScenario::started("budget: {calls: 1}\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}]");
    scene.returns("a", done(json!({})));
    let value = serde_json::to_value(scene.execution.questions()).unwrap();
    assert_eq!(
        value,
        json!([{"kind": "limit", "limit": "calls", "answers": ["continue", "stop", "compensate", "replan"]}])
    );
    for answer in Question::LIMIT_ANSWERS {
        let mut scene =
            ExecutionScenario::started("budget: {calls: 1}\nsteps: [{id: a, tool: t.once}, {id: b, tool: t.once}]");
        scene.returns("a", done(json!({})));
        scene.answer(Question::Limit(ExecutionLimit::Calls), *answer);
        // While a new plan is being made the limit question stays open.
        let open = usize::from(*answer == QuestionAnswer::Replan);
        assert_eq!(scene.asks().len(), open, "{answer:?}");
    }
}

#[test]
fn the_brief_has_what_pending_steps_read_of_a_long_result() {
    let mut scene = ExecutionScenario::started(
        "steps:
  - {id: a, tool: t.once}
  - {id: b, tool: t.once, parameters: {n: '{{ steps.a.result.n }}', first: '{{ steps.a.result.list[0].id }}'}}",
    );
    scene.pause();
    scene.returns("a", done(json!({ "text": "x".repeat(5_000), "n": 4711, "list": [{ "id": "i-1" }] })));
    let brief = scene.execution.brief();
    assert!(brief.contains("a.result.list.0.id=\"i-1\", a.result.n=4711, a={\"text\":\"xxx"), "{brief}");
}
