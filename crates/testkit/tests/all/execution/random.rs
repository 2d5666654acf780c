//! Random inputs in any order: each is refused or leads to a state in which all invariants hold.
//!
//! The scenario checks after every decision; this only makes sure that many unusual paths are taken.

use proptest::prelude::*;
use rutter_core::actor::Actor;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::part::{PartState, ProbeProgress};
use rutter_core::execution::view::PendingQuestion;
use rutter_core::hash::Hash;
use rutter_core::id::PartId;
use rutter_core::journal::event::{CallSide, Question, QuestionAnswer};
use rutter_core::plan::{Driver, Plan};
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use rutter_testkit::scene::*;
use serde_json::json;
use std::sync::{Arc, LazyLock};

/// Revisions of one plan, all about the same steps.
static PLANS: LazyLock<Vec<Arc<Plan>>> = LazyLock::new(|| {
    let texts = [
        "max_parallel: 2
steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo}, fallback: {tool: t.other, compensation: {tool: t.undo_once}}}
  - {id: b, tool: t.set, depends_on: [a], retry: {max_attempts: 1}, compensation: {tool: t.undo_once}}
  - {id: c, tool: t.once, parameters: {x: '{{ steps.b.result.x }}'}, approval: true, probe: {tool: t.find, happened: result.found, settle: 0s}}
  - {id: f, tool: t.set, for_each: '[1, 2, 3]', compensation: {tool: t.undo}}",
        "max_parallel: 2
on_failure: compensate
steps:
  - {id: b, tool: t.set, retry: {max_attempts: 1}, compensation: {tool: t.undo_once}}
  - {id: f, tool: t.set, for_each: '[1, 2, 3]', compensation: {tool: t.undo}, depends_on: [b]}
  - {id: d, tool: t.keyed, parameters: {key: '{{ key }}'}, total_timeout: 2m}",
        "on_failure: continue_others
budget: {calls: 4}
steps:
  - {id: a, tool: t.once, compensation: {tool: t.undo}, fallback: {tool: t.other, compensation: {tool: t.undo_once}}}
  - {id: f, tool: t.once, for_each: {items: '[1, 2, 3]', max_parallel: 1}}
  - {id: e, tool: t.read, when: \"steps.a.status == 'completed'\", approval: {expires: 1m}}",
    ];
    texts.iter().map(|text| plan(text, Driver::Server)).collect()
});

const ANSWERS: [QuestionAnswer; 7] = [
    QuestionAnswer::Retry,
    QuestionAnswer::Skip,
    QuestionAnswer::Resolve,
    QuestionAnswer::Stop,
    QuestionAnswer::Continue,
    QuestionAnswer::Compensate,
    QuestionAnswer::Replan,
];

fn outcome(number: usize) -> CallOutcome {
    match number % 7 {
        0..=2 => done(json!({"x": 1, "found": number.is_multiple_of(2)})),
        3 => fails(FailureCategory::ToolError),
        4 => fails(FailureCategory::Unavailable),
        5 => maybe(FailureCategory::Timeout),
        _ => maybe(FailureCategory::ToolError),
    }
}

fn pick<T>(list: Vec<T>, number: usize) -> Option<T> {
    let length = list.len();
    list.into_iter().nth(number.checked_rem(length)?)
}

/// The running attempts.
fn running(scene: &ExecutionScenario) -> Vec<(PartId, CallSide, u32)> {
    let running = scene.execution.parts().filter_map(|(id, part)| match &part.state {
        PartState::Running(attempt) => Some((id, attempt.side, attempt.number)),
        PartState::InDoubt { probing: ProbeProgress::Running(probe), .. } => Some((id, CallSide::Probe, probe.number)),
        _ => None,
    });
    running.collect()
}

/// An answer to one of the open questions.
fn answer(scene: &ExecutionScenario, number: usize) -> Option<ExecutionInput> {
    let (reason, happened) = (String::new(), number.is_multiple_of(2));
    let choice = ANSWERS[number % ANSWERS.len()];
    Some(match pick(scene.execution.questions(), number)? {
        PendingQuestion::Approval { part, call, .. } if number.is_multiple_of(5) => {
            ExecutionInput::Deny { part, call, reason }
        }
        PendingQuestion::Approval { part, call, .. } => ExecutionInput::Approve { part, call, reason },
        PendingQuestion::Doubt { part, .. } => settling(&part.to_string(), happened, json!({"x": 2})),
        PendingQuestion::Failure { step, .. } => answering(Question::Failure(step), choice, Some(json!({"x": 3}))),
        PendingQuestion::Compensation { part, .. } => answering(Question::Compensation(part), choice, Some(json!({}))),
        PendingQuestion::SecondEffect { part, .. } => answering(Question::SecondEffect(part), choice, None),
        PendingQuestion::Limit { limit, .. } => answering(Question::Limit(limit), choice, None),
        PendingQuestion::Tool { part, attempt, .. } => {
            let answer = [None, Some(json!({"x": 5})), Some(json!(5))][number % 3].clone();
            answering_tool(&part.to_string(), attempt, answer)
        }
        PendingQuestion::Replan { plan, .. } if number.is_multiple_of(2) => {
            ExecutionInput::ApproveReplan { plan, reason }
        }
        PendingQuestion::Replan { plan, .. } => ExecutionInput::RejectReplan { plan, reason },
        PendingQuestion::Hold { .. } => ExecutionInput::ResumeExpired { reason, only: Vec::new() },
        PendingQuestion::Silence { .. } => answering(Question::Silence, choice, None),
        PendingQuestion::Drift { tool, found, .. } => ExecutionInput::AcceptTool { tool, definition: found, reason },
    })
}

fn agent_action(scene: &ExecutionScenario, number: usize) -> Option<ExecutionInput> {
    let part = pick(scene.execution.parts().map(|(id, _)| id).collect(), number)?;
    let failure = ToolFailure::new(FailureCategory::Unavailable, "gone");
    Some(match number % 5 {
        0 => ExecutionInput::RecordStarted { part, tool: None, parameters: None },
        1 | 2 => ExecutionInput::RecordFinished { part, result: Arc::new(json!({"x": 4})) },
        3 => ExecutionInput::RecordFailed { part, failure, maybe: number.is_multiple_of(2) },
        _ => ExecutionInput::RecordCompensation { part, description: String::new(), evidence: None },
    })
}

fn control(number: usize) -> ExecutionInput {
    let reason = String::new();
    let to = if number.is_multiple_of(2) { Driver::Agent } else { Driver::Server };
    let tools = ["t.once", "t.set", "t.undo", "t.find", "t.other"];
    match number % 16 {
        0 | 1 => ExecutionInput::Pause { reason },
        2..=5 => ExecutionInput::Resume { reason },
        6 => ExecutionInput::Cancel { reason, undo: [None, Some(true), Some(false)][number % 3] },
        7 => ExecutionInput::BeginReplan { reason },
        8 => ExecutionInput::AbandonReplan { reason },
        9 | 10 => ExecutionInput::Replan { plan: PLANS[number % PLANS.len()].clone(), revision: 2, reason },
        11 | 12 => ExecutionInput::HandOver { to, reason },
        13 => ExecutionInput::ReportDefinition { tool: tool(tools[number % tools.len()]), found: Hash::ZERO },
        14 if number.is_multiple_of(7) => ExecutionInput::Kill { reason },
        14 => ExecutionInput::RecordEnd { reason },
        _ => compensating(if number.is_multiple_of(3) { Some(&["b", "f"]) } else { None }),
    }
}

fn input(scene: &ExecutionScenario, kind: usize, number: usize) -> Option<ExecutionInput> {
    match kind {
        0..=7 => {
            let (part, side, attempt) = pick(running(scene), number)?;
            Some(ExecutionInput::Returned { part, side, attempt, outcome: outcome(number) })
        }
        8 => {
            let (id, part) = pick(scene.execution.parts().collect(), number)?;
            let side = [CallSide::Do, CallSide::Fallback, CallSide::Undo, CallSide::Probe][number % 4];
            let attempt = part.attempts_of(side);
            Some(ExecutionInput::Returned { part: id, side, attempt, outcome: outcome(number / 4) })
        }
        9..=12 => answer(scene, number),
        19 => {
            let (part, side, attempt) = pick(running(scene), number)?;
            Some(ExecutionInput::Accepted { part, side, attempt, ticket: format!("ticket {number}") })
        }
        20 => {
            let (part, side, attempt) = pick(running(scene), number)?;
            Some(tool_asking(&part.to_string(), side, attempt, json!({"type": "object"})))
        }
        13 | 14 => agent_action(scene, number),
        15 => Some(ExecutionInput::Recovered),
        _ => Some(control(number)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_inputs_never_break_an_execution(
        first in 0..3usize,
        room in prop::sample::select(vec![1u32, 2, 1_000]),
        steps in prop::collection::vec((0..21usize, 0..1_000usize, prop::sample::select(vec![0i64, 0, 0, 500, 61_000])), 1..50),
    ) {
        let mut scene = ExecutionScenario::open(PLANS[first].clone(), Driver::Server, json!({}));
        scene.room = room;
        scene.start();
        for (kind, number, wait) in steps {
            scene.now.0 += wait;
            let Some(input) = input(&scene, kind, number) else { continue };
            let actor = if matches!(kind, 9..=12) { person() } else { agent() };
            // A refusal is fine; the scenario has checked that it changed nothing.
            let _ = scene.input(&actor, input);
        }
        scene.room = 1_000;
        scene.give(&Actor::rutter(), ExecutionInput::Recovered);
        let settled = scene.execution.outcome().is_some();
        let waits = scene.execution.wake_at().is_some() || !scene.asks().is_empty();
        let held = matches!(scene.status(), "paused" | "replanning") || scene.execution.driver() == Driver::Agent;
        prop_assert!(settled || waits || held || !running(&scene).is_empty(), "{} for ever", scene.status());
    }
}
