//! The preview of every step's failure matches what then happens, on random plans.

use rutter_core::actor::Actor;
use rutter_core::execution::input::{DecisionContext, ExecutionInput, ToolCall};
use rutter_core::execution::opening::opening;
use rutter_core::execution::step::StepStage;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::{ExecutionId, StepId, TenantId};
use rutter_core::journal::event::{CallSide, Event, EventRecord};
use rutter_core::plan::{Driver, Plan};
use rutter_core::preview::{ScenarioOutcome, WhatIfScenario, preview};
use rutter_core::time::Timestamp;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use rutter_testkit::chance::SeededRandom;
use rutter_testkit::simulator::plans;
use serde_json::{Value, json};
use std::sync::Arc;

#[test]
fn what_if_a_step_fails_is_what_happens_when_it_does() {
    let catalog = plans::catalog();
    let mut compared = 0;
    for seed in 0..300 {
        let document = plain(plans::document(&mut SeededRandom::new(seed)));
        let plan = plans::compile(&document, &catalog).expect("the generator writes valid plans");
        for what_if_scenario in preview(&plan).what_if {
            let (execution, records) = carry_out(&plan, &what_if_scenario.step);
            assert_eq!(
                happened(&execution, &records, &what_if_scenario.step),
                said(&what_if_scenario),
                "seed {seed}, {:?} fails",
                what_if_scenario.step
            );
            compared += 1;
        }
    }
    assert!(compared > 1_000);
}

/// The preview assumes that conditions hold, no approval is needed and one step runs at a time.
fn plain(mut document: Value) -> Value {
    document["max_parallel"] = json!(1);
    document["deadline"] = json!("24h");
    document.as_object_mut().expect("an object").shift_remove("budget");
    for step in document["steps"].as_array_mut().expect("a list") {
        let step = step.as_object_mut().expect("an object");
        for field in ["approval", "fallback", "when", "else_of", "priority"] {
            step.shift_remove(field);
        }
        if let Some(fan_out) = step.get_mut("for_each").and_then(Value::as_object_mut) {
            fan_out.shift_remove("tolerate");
        }
    }
    document
}

/// Everything succeeds but this one step, which certainly has no effect.
fn carry_out(plan: &Arc<Plan>, failing: &StepId) -> (Execution, Vec<EventRecord>) {
    let identity = ExecutionIdentity { tenant: TenantId::new("sim"), execution: ExecutionId::new("exec_1") };
    let inputs = Arc::new(json!({ "items": [1, 2], "go": true, "n": 1 }));
    let at = Timestamp(0);
    let first = opening(plan, 1, Driver::Server, inputs, &identity.execution, Actor::agent("pilot"), at);
    let first = first.expect("the inputs fit");
    let mut execution = Execution::open(identity, &first).expect("it opens");
    let mut records = vec![first];
    let mut inputs = vec![ExecutionInput::Start];
    while let Some(input) = inputs.pop() {
        let moment = DecisionContext { now: Timestamp(0), room: 8 };
        let decision = execution.decide(&Actor::rutter(), input, moment).expect("it is decided");
        records.extend(decision.records);
        inputs.extend(decision.calls.iter().map(|call| answer(call, failing)));
    }
    (execution, records)
}

fn answer(call: &ToolCall, failing: &StepId) -> ExecutionInput {
    let outcome = if call.part.step == *failing && call.side == CallSide::Do {
        CallOutcome::NotDone(ToolFailure::new(FailureCategory::InvalidInput, "no"))
    } else {
        CallOutcome::Done { result: Arc::new(json!({ "n": 1, "flag": true })), cost_micros: 0 }
    };
    ExecutionInput::Returned { part: call.part.clone(), side: call.side, attempt: call.attempt, outcome }
}

/// Completed in order, held, cancelled, skipped, undone in order, the end.
type Story = (Vec<StepId>, Vec<StepId>, Vec<StepId>, Vec<StepId>, Vec<StepId>, ScenarioOutcome);

fn said(answer: &WhatIfScenario) -> Story {
    let completed = answer.completed.iter().chain(&answer.continue_with).cloned().collect();
    let sorted = |steps: &[StepId]| {
        let mut steps = steps.to_vec();
        steps.sort();
        steps
    };
    (
        completed,
        sorted(&answer.held),
        sorted(&answer.cancelled),
        sorted(&answer.skipped),
        answer.undone.clone(),
        answer.ends,
    )
}

fn happened(execution: &Execution, records: &[EventRecord], failing: &StepId) -> Story {
    let steps_of = |wanted: CallSide| {
        let mut steps: Vec<StepId> = Vec::new();
        for record in records {
            if let Event::AttemptSucceeded { part, side, .. } = &record.event
                && *side == wanted
                && part.step != *failing
                && !steps.contains(&part.step)
            {
                steps.push(part.step.clone());
            }
        }
        steps
    };
    let staged = |wanted: StepStage| {
        let steps = execution.stages().filter(|(id, stage)| *stage == wanted && *id != failing);
        let mut steps: Vec<StepId> = steps.map(|(id, _)| id.clone()).collect();
        steps.sort();
        steps
    };
    let end = match execution.status() {
        ExecutionStatus::Waiting => ScenarioOutcome::WaitsForDecision,
        ExecutionStatus::Failed => ScenarioOutcome::Failed,
        ExecutionStatus::Partial => ScenarioOutcome::Partial,
        ExecutionStatus::Compensated => ScenarioOutcome::Compensated,
        other => panic!("ended {other:?}"),
    };
    let undone = steps_of(CallSide::Undo);
    (
        steps_of(CallSide::Do),
        staged(StepStage::Waiting),
        staged(StepStage::Cancelled),
        staged(StepStage::Skipped),
        undone,
        end,
    )
}
