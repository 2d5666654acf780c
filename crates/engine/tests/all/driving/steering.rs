//! Steering executions that are under way: stop, replan, hand over, close.

use crate::driving::fixture::{EngineFixture, Script, tenant};
use rutter_core::actor::Actor;
use rutter_core::execution::Execution;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::view::{ExecutionStatus, PendingQuestion};
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event::{Deviation, QuestionAnswer};
use rutter_core::plan::Driver;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::port::query::ExecutionFilter;
use rutter_core::time::Millis;
use rutter_core::tool::{FailureCategory, ToolFailure};
use rutter_engine::control::ControlAction;
use rutter_engine::submit::PlanText;
use rutter_engine::{Error, ReplanCommand};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

const UNDOABLE: &str = "
name: undoable
max_parallel: 4
steps:
  - id: a
    tool: fake.once
    cancellable: reversible
    compensation: { tool: fake.undo, parameters: { n: '{{ result.n }}' } }
  - { id: b, tool: fake.read, depends_on: [a] }
";

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_reaches_the_tool_and_what_was_done_is_undone() {
    let fixture = EngineFixture::new(Script { hang_until_cancelled: vec!["fake.read"], ..Script::default() }).await;
    let execution = fixture.start(UNDOABLE).await;
    fixture.until(|fixture| fixture.calls("fake.read") == 1).await;
    fixture.control(&execution, ControlAction::Cancel { undo: Some(true) }).await.unwrap();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Compensated);
    assert_eq!(fixture.cancelled(), 1);
    assert_eq!(fixture.calls("fake.undo"), 1);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_over_its_time_is_cancelled_and_its_late_answer_settles_the_doubt() {
    let fixture = EngineFixture::new(Script { hang_until_cancelled: vec!["fake.once"], ..Script::default() }).await;
    let execution = fixture.start("{ name: late, steps: [{ id: a, tool: fake.once, timeout: 200ms }] }").await;
    assert_eq!(fixture.wait_for(&execution, ExecutionStatus::Completed).await, ExecutionStatus::Completed);
    assert_eq!((fixture.calls("fake.once"), fixture.cancelled()), (1, 1), "the answer came after all");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_tool_stops_the_step_until_it_is_accepted() {
    let fixture = EngineFixture::new(Script { hold: vec!["fake.once"], ..Script::default() }).await;
    let execution = fixture.start(UNDOABLE).await;
    fixture.until(|fixture| fixture.calls("fake.once") == 1).await;
    fixture.change("fake.read");
    fixture.release();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
    assert_eq!(fixture.calls("fake.read"), 0);
    let view = fixture.engine.view(&execution).await.unwrap();
    assert!(matches!(&view.questions[..], [PendingQuestion::Drift { .. }]), "{:?}", view.questions);
    let tool = rutter_core::id::ToolName::new("fake.read");
    let accept = |definition| ControlAction::AcceptTool { tool: tool.clone(), definition };
    let other = fixture.control(&execution, accept(Some(Hash::ZERO))).await.unwrap_err();
    assert!(other.to_string().contains("has changed again"), "{other}");
    let [PendingQuestion::Drift { found, .. }] = &view.questions[..] else { unreachable!() };
    fixture.control(&execution, accept(Some(*found))).await.unwrap();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    assert_eq!(fixture.calls("fake.read"), 1);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_step_is_replanned_and_finished_work_is_kept() {
    let fixture = EngineFixture::new(Script { fail: vec!["fake.read"], ..Script::default() }).await;
    let execution = fixture.start(UNDOABLE).await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
    let bad = "{ name: undoable, steps: [{ id: a, tool: nobody.knows }] }";
    let replan = |text: &str| {
        let (engine, text) = (fixture.engine.clone(), text.as_bytes().to_vec());
        let execution = execution.clone();
        async move {
            let summary = engine.executions(&execution.tenant, Default::default()).await?.remove(0);
            let (plan, actor) = (summary.plan, Actor::agent("pilot"));
            let (format, driver) = (DocumentFormat::Yaml, Driver::Server);
            let text = PlanText { tenant: execution.tenant.clone(), source: text, format, driver };
            let submitted = engine.submit(text, Some(plan.clone()), None, actor.clone()).await?;
            let command =
                ReplanCommand { plan, revision: submitted.saved.revision(), reason: "try another way".to_owned() };
            engine.follow_revision(&execution, actor, command, None, None).await?;
            Ok::<_, Error>(submitted)
        }
    };
    assert!(matches!(replan(bad).await, Err(Error::Plan { .. })));
    let good = UNDOABLE.replace("tool: fake.read", "tool: fake.undo, parameters: { n: 1 }");
    fixture.control(&execution, ControlAction::Answer { about: None, answer: QuestionAnswer::Replan }).await.unwrap();
    let submitted = replan(&good).await.unwrap();
    assert_eq!(submitted.saved.revision(), 2);
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    assert_eq!((fixture.calls("fake.once"), fixture.calls("fake.undo")), (1, 1));
    assert_eq!(fixture.engine.view(&execution).await.unwrap().revision, 2);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_takes_over_records_its_actions_and_hands_back() {
    let fixture = EngineFixture::new(Script { hold: vec!["fake.once"], ..Script::default() }).await;
    let execution = fixture.start(UNDOABLE).await;
    fixture.until(|fixture| fixture.calls("fake.once") == 1).await;
    fixture.control(&execution, ControlAction::TakeOver).await.unwrap();
    fixture.release();
    let part = || PartId::whole(StepId::new("b"));
    let agent = |signal| fixture.engine.command(&execution, Actor::agent("pilot"), signal, None);
    fixture.until_settled(&execution, 1).await;
    agent(ExecutionInput::RecordStarted { part: part(), tool: None, parameters: None }).await.unwrap();
    let failure = ToolFailure::new(FailureCategory::ToolError, "no luck");
    agent(ExecutionInput::RecordFailed { part: part(), failure, maybe: false }).await.unwrap();
    let started = ExecutionInput::RecordStarted { part: PartId::whole(StepId::new("a")), tool: None, parameters: None };
    agent(started).await.unwrap();
    assert!(fixture.engine.brief(&execution).await.unwrap().len() < 3_200);
    fixture.control(&execution, ControlAction::HandBack).await.unwrap();
    let view = fixture.engine.view(&execution).await.unwrap();
    assert_eq!(view.driver, Driver::Server);
    assert!(view.deviations.iter().any(|found| found.kind == Deviation::Duplicate), "{:?}", view.deviations);
    assert_eq!(fixture.calls("fake.once"), 1, "what is done is not done again");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_cannot_approve_or_settle_anything() {
    let fixture = EngineFixture::new(Script::default()).await;
    let plan = "{ name: asked, steps: [{ id: a, tool: fake.once, approval: { required: true } }] }";
    let execution = fixture.start(plan).await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
    let approve = || ControlAction::Approve { part: None, call: None };
    let agent = Actor::agent("pilot");
    let refused = fixture.engine.control(&execution, agent, approve(), "please".into(), None, None).await.unwrap_err();
    assert_eq!(refused.code(), "execution.not_a_person");
    assert_eq!(fixture.calls("fake.once"), 0);
    fixture.control(&execution, approve()).await.unwrap();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_lets_calls_end_records_them_and_begins_nothing() {
    let fixture = EngineFixture::new(Script { hold: vec!["fake.once"], ..Script::default() }).await;
    let execution = fixture.start(UNDOABLE).await;
    fixture.until(|fixture| fixture.calls("fake.once") == 1).await;
    let engine = fixture.engine.clone();
    let closing = tokio::spawn(async move { engine.close().await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    fixture.release();
    closing.await.unwrap();
    assert_eq!(fixture.calls("fake.read"), 0);
    let fixture = fixture.crash(Script::default()).await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    assert_eq!((fixture.calls("fake.once"), fixture.calls("fake.read")), (1, 1), "nothing was in doubt");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_wait_for_capacity_and_beyond_the_backlog_are_refused() {
    let fixture = EngineFixture::with(Script { hold_all: vec!["fake.once"], ..Script::default() }, |options| {
        (options.executions_max, options.backlog_max) = (2, 1);
        options.look = Millis(20);
    })
    .await;
    let plan = fixture.save("{ name: one, steps: [{ id: a, tool: fake.once }] }").await;
    let start = || fixture.engine.start(fixture.start_of(&plan, json!({}), None));
    let mut started = Vec::new();
    for _ in 0..3 {
        started.push(start().await.unwrap());
    }
    match start().await {
        Err(Error::Busy { retry_after }) => assert!(retry_after > Millis(0)),
        other => panic!("{other:?}"),
    }
    assert_eq!(fixture.calls("fake.once"), 2);
    fixture.release_all();
    for started in started {
        assert_eq!(
            fixture.wait(&crate::driving::fixture::identity(&started.execution)).await,
            ExecutionStatus::Completed
        );
    }
    assert_eq!(fixture.calls("fake.once"), 3);
    let all = fixture.engine.executions(&tenant(), ExecutionFilter::default()).await.unwrap();
    assert_eq!(all.len(), 3, "what was refused left nothing behind");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_with_a_secret_are_refused_and_leave_nothing_behind() {
    let fixture = EngineFixture::new(Script::default()).await;
    let plan = fixture.save("{ name: one, steps: [{ id: a, tool: fake.once }] }").await;
    let key = format!("sk-live-{}", "4eC39HqLyjWDarjtT1zdp7dc");
    let refused = fixture.engine.start(fixture.start_of(&plan, json!({ "api_key": key }), None)).await.unwrap_err();
    assert_eq!(refused.code(), "engine.secret");
    assert!(fixture.engine.executions(&tenant(), ExecutionFilter::default()).await.unwrap().is_empty());
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_are_redacted_before_they_are_recorded() {
    let fixture = EngineFixture::new(Script { fail: vec!["fake.once"], ..Script::default() }).await;
    let execution = fixture.start("{ name: one, steps: [{ id: a, tool: fake.once }] }").await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
    let key = format!("sk-live-{}", "4eC39HqLyjWDarjtT1zdp7dc");
    let resolve = ControlAction::Resolve {
        part: None,
        happened: true,
        result: None,
        evidence: Some(Arc::new(json!({ "seen": "in the log", "api_key": key }))),
    };
    fixture.control(&execution, resolve).await.unwrap();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    assert!(!fixture.bytes_on_disk().windows(key.len()).any(|bytes| bytes == key.as_bytes()));
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_commands_that_saw_the_same_state_one_is_accepted() {
    let fixture = EngineFixture::new(Script { fail: vec!["fake.once"], ..Script::default() }).await;
    let execution = fixture.start("{ name: one, steps: [{ id: a, tool: fake.once }] }").await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
    let entries = || fixture.engine.inspect(&execution, Execution::entries);
    let seen = entries().await.unwrap();
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (engine, execution, actor) = (fixture.engine.clone(), execution.clone(), Actor::person("operator"));
        let (reason, key) = (format!("number {number}"), Some(format!("key-{number}")));
        asking.spawn(
            async move { engine.control(&execution, actor, ControlAction::Pause, reason, key, Some(seen)).await },
        );
    }
    let (heard, refused): (Vec<_>, Vec<_>) = asking.join_all().await.into_iter().partition(Result::is_ok);
    assert_eq!((heard.len(), refused.len()), (1, 19), "{:?}", refused.first());
    assert!(refused.into_iter().all(|refused| refused.unwrap_err().code() == "engine.changed"));
    assert_eq!(entries().await.unwrap(), seen + 1);
    fixture.signal(&execution, ExecutionInput::Resume { reason: "done".into() }).await.unwrap();
    // A refused command may be repeated with its key after reading the state again.
    for number in 0..3 {
        let (seen, actor) = (entries().await.unwrap(), Actor::person("operator"));
        let (control, key) = (ControlAction::Pause, Some(format!("pause-{number}")));
        let pause = |seen| {
            fixture.engine.control(&execution, actor.clone(), control.clone(), "tea".into(), key.clone(), Some(seen))
        };
        assert_eq!(pause(seen - 1).await.unwrap_err().code(), "engine.changed");
        pause(seen).await.unwrap();
        fixture.signal(&execution, ExecutionInput::Resume { reason: "done".into() }).await.unwrap();
    }
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_start_does_not_stop_the_execution() {
    let fixture = EngineFixture::new(Script::default()).await;
    let plan = fixture.save("{ name: one, steps: [{ id: a, tool: fake.once }] }").await;
    let starts = 60;
    for at in 0..starts {
        let start = fixture.engine.start(fixture.start_of(&plan, json!({}), None));
        // Dropped somewhere between sending and after the answer.
        let _ = tokio::time::timeout(Duration::from_micros(at * 20), start).await;
    }
    let tenant = tenant();
    let completed = || async {
        let found = fixture.engine.executions(&tenant, ExecutionFilter::default()).await.unwrap();
        found.iter().filter(|found| found.row.status == ExecutionStatus::Completed).count() as u64
    };
    // Dropped starts may still be about to be written.
    for _ in 0..1_000 {
        if completed().await == starts {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(completed().await, starts);
    assert_eq!(u64::from(fixture.calls("fake.once")), starts);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_fails_is_written_again_or_the_execution_is_read_back() {
    use rutter_core::port::Error;
    for (failures, error, once, status) in [
        // Space is freed: the outcome is written after all.
        (3, Error::DiskFull("no space".into()), 1, ExecutionStatus::Completed),
        (1, Error::Unknown("perhaps".into()), 1, ExecutionStatus::Completed),
        // The outcome of the call is lost with the loop, so it must not be sent again.
        (1, Error::Io("a bad sector".into()), 1, ExecutionStatus::Waiting),
    ] {
        let script = Script { store_fails: Some((failures, error.clone())), ..Script::default() };
        let fixture = EngineFixture::new(script).await;
        let execution = fixture.start("{ name: one, steps: [{ id: a, tool: fake.once }] }").await;
        assert_eq!(fixture.wait(&execution).await, status, "{error}");
        assert_eq!(fixture.calls("fake.once"), once, "{error}");
        fixture.close().await;
    }
}
