//! What agents report: each report is one command, recorded as a whole or not at all.

use crate::driving::fixture::{EngineFixture, Script};
use rutter_core::actor::Actor;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::{PartId, StepId, ToolName};
use rutter_core::journal::event::{Deviation, Event};
use rutter_core::plan::Driver;
use rutter_engine::report::{AgentReport, DecidedAction, DecisionReport, ReportedEnd, StepReport};
use rutter_engine::{Error, StartRequest};
use serde_json::json;
use std::sync::Arc;

const PLAN: &str = "{ name: one, steps: [{ id: a, tool: fake.once }, { id: b, tool: fake.once, depends_on: [a] }] }";

async fn driven_by_agent(fixture: &EngineFixture) -> ExecutionIdentity {
    let plan = fixture.save(PLAN).await;
    let start = StartRequest { driver: Driver::Agent, ..fixture.start_of(&plan, json!({}), None) };
    crate::driving::fixture::identity(&fixture.engine.start(start).await.unwrap().execution)
}

fn finished(n: i32) -> StepReport {
    StepReport {
        part: PartId::whole(StepId::new("a")),
        status: "completed".to_owned(),
        tool: Some(ToolName::new("fake.once")),
        named: Some("fake.once".to_owned()),
        parameters: Some(Arc::new(json!({ "n": n }))),
        end: Some(ReportedEnd::Done { result: Arc::new(json!({ "n": n })), is_silent: false }),
    }
}

async fn report(fixture: &EngineFixture, execution: &ExecutionIdentity, call: StepReport, key: &str) {
    let agent = Actor::agent("pilot");
    fixture.engine.report(execution, agent, AgentReport::Step(call), Some(key.to_owned())).await.unwrap();
}

/// The call differs from the plan's, so its start is recorded with it.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_its_own_is_recorded_with_start_and_end() {
    let fixture = EngineFixture::new(Script::default()).await;
    let execution = driven_by_agent(&fixture).await;
    report(&fixture, &execution, finished(1), "first").await;
    let events = fixture.events(&execution).await;
    assert!(matches!(&events[..], [.., Event::AttemptStarted { .. }, Event::AttemptSucceeded { .. }]), "{events:#?}");
    fixture.close().await;
}

/// One append: no crash can come between the deviation and what the agent said.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_of_a_step_that_is_done_is_recorded_with_its_deviation() {
    let fixture = EngineFixture::new(Script::default()).await;
    let execution = driven_by_agent(&fixture).await;
    report(&fixture, &execution, finished(1), "first").await;
    let mut updates = fixture.engine.subscribe();
    report(&fixture, &execution, finished(2), "second").await;
    let appended = loop {
        let rutter_engine::UpdateContent::Recorded { records, .. } = updates.recv().await.unwrap().content else {
            continue;
        };
        break records.iter().map(|record| record.event.clone()).collect::<Vec<_>>();
    };
    let deviates = |event: &Event| matches!(event, Event::DeviationFound { kind: Deviation::Duplicate, .. });
    let is_kept = |event: &Event| {
        matches!(event, Event::ActionRecorded { details: Some(details), .. }
            if details.value().is_some_and(|details| details["result"] == json!({ "n": 2 })))
    };
    assert!(appended.iter().any(deviates) && appended.iter().any(is_kept), "{appended:#?}");
    // Sent again with its key it changes nothing.
    let before = fixture.events(&execution).await.len();
    report(&fixture, &execution, finished(2), "second").await;
    assert_eq!(fixture.events(&execution).await.len(), before);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_is_refused_is_not_recorded() {
    let fixture = EngineFixture::new(Script::default()).await;
    // Only a person raises a limit.
    let limited = PLAN.replace("{ name: one,", "{ name: one, budget: { calls: 1 },");
    let execution = fixture.start(&limited).await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
    let before = fixture.events(&execution).await.len();
    let decide = |action| {
        let (reason, key) = ("it is fine".to_owned(), Some("key".to_owned()));
        let decided = AgentReport::Decision(DecisionReport { step: None, action, reason, details: None });
        fixture.engine.report(&execution, Actor::agent("pilot"), decided, key)
    };
    let Err(Error::Refused(refusal)) = decide(DecidedAction::Continue).await else { panic!("it was not refused") };
    assert_eq!(refusal.code, "execution.not_a_person");
    assert_eq!(fixture.events(&execution).await.len(), before, "nothing was recorded");
    // Its key is free again, and what is possible is recorded and done.
    decide(DecidedAction::Stop).await.unwrap();
    let events = fixture.events(&execution).await;
    assert!(matches!(&events[before], Event::DecisionRecorded { decision, .. } if decision == "stop"), "{events:#?}");
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Cancelled);
    // A second stop is refused: it has ended.
    let Err(Error::Refused(_)) = fixture.engine.report(&execution, Actor::agent("pilot"), stop(), None).await else {
        panic!("it was stopped twice")
    };
    fixture.close().await;
}

fn stop() -> AgentReport {
    let (action, reason) = (DecidedAction::Stop, "again".to_owned());
    AgentReport::Decision(DecisionReport { step: None, action, reason, details: None })
}
