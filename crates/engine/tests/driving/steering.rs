//! Steering executions that are under way: stop, replan, hand over, close.

use crate::deck::{Deck, Script, tenant};
use rutter_core::actor::Actor;
use rutter_core::execution::Execution;
use rutter_core::execution::view::{Ask, Status};
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event::{Answer, Deviation};
use rutter_core::plan::Driver;
use rutter_core::plan::document::Format;
use rutter_core::port::query::ExecutionFilter;
use rutter_core::time::Millis;
use rutter_core::tool::{Category, Failure};
use rutter_engine::control::Control;
use rutter_engine::{Error, Signal};
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
    let deck = Deck::new(Script { hang_until_cancelled: vec!["fake.read"], ..Script::default() }).await;
    let execution = deck.start(UNDOABLE).await;
    deck.until(|deck| deck.calls("fake.read") == 1).await;
    deck.control(&execution, Control::Cancel { undo: Some(true) }).await.unwrap();
    assert_eq!(deck.wait(&execution).await, Status::Compensated);
    assert_eq!(deck.cancelled(), 1);
    assert_eq!(deck.calls("fake.undo"), 1);
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_over_its_time_is_cancelled_and_its_late_answer_settles_the_doubt() {
    let deck = Deck::new(Script { hang_until_cancelled: vec!["fake.once"], ..Script::default() }).await;
    let execution = deck.start("{ name: late, steps: [{ id: a, tool: fake.once, timeout: 200ms }] }").await;
    assert_eq!(deck.wait_for(&execution, Status::Completed).await, Status::Completed);
    assert_eq!((deck.calls("fake.once"), deck.cancelled()), (1, 1), "the answer came after all");
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_tool_stops_the_step_until_somebody_accepts_it() {
    let deck = Deck::new(Script { hold: vec!["fake.once"], ..Script::default() }).await;
    let execution = deck.start(UNDOABLE).await;
    deck.until(|deck| deck.calls("fake.once") == 1).await;
    deck.change("fake.read");
    deck.release();
    assert_eq!(deck.wait(&execution).await, Status::Waiting);
    assert_eq!(deck.calls("fake.read"), 0);
    let view = deck.engine.view(&execution).await.unwrap();
    assert!(matches!(&view.questions[..], [Ask::Drift { .. }]), "{:?}", view.questions);
    let tool = rutter_core::id::ToolName::new("fake.read");
    let accept = |definition| Control::AcceptTool { tool: tool.clone(), definition };
    let other = deck.control(&execution, accept(Some(Hash::ZERO))).await.unwrap_err();
    assert!(other.to_string().contains("has changed again"), "{other}");
    let [Ask::Drift { found, .. }] = &view.questions[..] else { unreachable!() };
    deck.control(&execution, accept(Some(*found))).await.unwrap();
    assert_eq!(deck.wait(&execution).await, Status::Completed);
    assert_eq!(deck.calls("fake.read"), 1);
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_step_is_replanned_and_finished_work_is_kept() {
    let deck = Deck::new(Script { fail: vec!["fake.read"], ..Script::default() }).await;
    let execution = deck.start(UNDOABLE).await;
    assert_eq!(deck.wait(&execution).await, Status::Waiting);
    let bad = "{ name: undoable, steps: [{ id: a, tool: nobody.knows }] }";
    let replan = |text: &str| {
        let (engine, text) = (deck.engine.clone(), text.as_bytes().to_vec());
        let execution = execution.clone();
        async move {
            engine
                .replan(&execution, text, Format::Yaml, "try another way".into(), Actor::agent("pilot"))
                .await
        }
    };
    assert!(matches!(replan(bad).await, Err(Error::Plan { .. })));
    let good = UNDOABLE.replace("tool: fake.read", "tool: fake.undo, parameters: { n: 1 }");
    deck.control(&execution, Control::Answer { about: None, answer: Answer::Replan }).await.unwrap();
    let submitted = replan(&good).await.unwrap();
    assert_eq!(submitted.saved.revision(), 2);
    assert_eq!(deck.wait(&execution).await, Status::Completed);
    assert_eq!((deck.calls("fake.once"), deck.calls("fake.undo")), (1, 1));
    assert_eq!(deck.engine.view(&execution).await.unwrap().revision, 2);
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_takes_over_records_its_deeds_and_hands_back() {
    let deck = Deck::new(Script { hold: vec!["fake.once"], ..Script::default() }).await;
    let execution = deck.start(UNDOABLE).await;
    deck.until(|deck| deck.calls("fake.once") == 1).await;
    deck.control(&execution, Control::TakeOver).await.unwrap();
    deck.release();
    let part = || PartId::whole(StepId::new("b"));
    let agent = |signal| deck.engine.signal(&execution, Actor::agent("pilot"), signal, None);
    deck.until_settled(&execution, 1).await;
    agent(Signal::RecordStarted { part: part(), tool: None, parameters: None }).await.unwrap();
    let failure = Failure::new(Category::ToolError, "no luck");
    agent(Signal::RecordFailed { part: part(), failure, maybe: false }).await.unwrap();
    let started =
        Signal::RecordStarted { part: PartId::whole(StepId::new("a")), tool: None, parameters: None };
    agent(started).await.unwrap();
    assert!(deck.engine.brief(&execution).await.unwrap().len() < 3_200);
    deck.control(&execution, Control::HandBack).await.unwrap();
    let view = deck.engine.view(&execution).await.unwrap();
    assert_eq!(view.driver, Driver::Server);
    assert!(view.deviations.iter().any(|found| found.kind == Deviation::Duplicate), "{:?}", view.deviations);
    assert_eq!(deck.calls("fake.once"), 1, "what is done is not done again");
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_cannot_approve_or_settle_anything() {
    let deck = Deck::new(Script::default()).await;
    let plan = "{ name: asked, steps: [{ id: a, tool: fake.once, approval: { required: true } }] }";
    let execution = deck.start(plan).await;
    assert_eq!(deck.wait(&execution).await, Status::Waiting);
    let approve = || Control::Approve { part: None, call: None };
    let agent = Actor::agent("pilot");
    let refused = deck.engine.control(&execution, agent, approve(), "please".into(), None).await.unwrap_err();
    assert_eq!(refused.code(), "execution.not_a_person");
    assert_eq!(deck.calls("fake.once"), 0);
    deck.control(&execution, approve()).await.unwrap();
    assert_eq!(deck.wait(&execution).await, Status::Completed);
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_lets_calls_end_records_them_and_begins_nothing() {
    let deck = Deck::new(Script { hold: vec!["fake.once"], ..Script::default() }).await;
    let execution = deck.start(UNDOABLE).await;
    deck.until(|deck| deck.calls("fake.once") == 1).await;
    let engine = deck.engine.clone();
    let closing = tokio::spawn(async move { engine.close().await });
    tokio::time::sleep(Duration::from_millis(50)).await;
    deck.release();
    closing.await.unwrap();
    assert_eq!(deck.calls("fake.read"), 0);
    let deck = deck.crash(Script::default()).await;
    assert_eq!(deck.wait(&execution).await, Status::Completed);
    assert_eq!((deck.calls("fake.once"), deck.calls("fake.read")), (1, 1), "nothing was in doubt");
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_fits_waits_its_turn_and_more_than_that_is_refused() {
    let deck = Deck::with(Script { hold_all: vec!["fake.once"], ..Script::default() }, |options| {
        (options.executions_max, options.backlog_max) = (2, 1);
        options.look = Millis(20);
    })
    .await;
    let plan = deck.save("{ name: one, steps: [{ id: a, tool: fake.once }] }").await;
    let start = || deck.engine.start(deck.start_of(&plan, json!({}), None));
    let mut started = Vec::new();
    for _ in 0..3 {
        started.push(start().await.unwrap());
    }
    match start().await {
        Err(Error::Busy { retry_after }) => assert!(retry_after > Millis(0)),
        other => panic!("{other:?}"),
    }
    assert_eq!(deck.calls("fake.once"), 2);
    deck.release_all();
    for started in started {
        assert_eq!(deck.wait(&crate::deck::identity(&started.execution)).await, Status::Completed);
    }
    assert_eq!(deck.calls("fake.once"), 3);
    let all = deck.engine.executions(&tenant(), ExecutionFilter::default()).await.unwrap();
    assert_eq!(all.len(), 3, "what was refused left nothing behind");
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn inputs_with_a_secret_are_refused_and_leave_nothing_behind() {
    let deck = Deck::new(Script::default()).await;
    let plan = deck.save("{ name: one, steps: [{ id: a, tool: fake.once }] }").await;
    let key = format!("sk-live-{}", "4eC39HqLyjWDarjtT1zdp7dc");
    let refused = deck.engine.start(deck.start_of(&plan, json!({ "api_key": key }), None)).await.unwrap_err();
    assert_eq!(refused.code(), "engine.secret");
    assert!(deck.engine.executions(&tenant(), ExecutionFilter::default()).await.unwrap().is_empty());
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_say_is_redacted_before_it_is_recorded() {
    let deck = Deck::new(Script { fail: vec!["fake.once"], ..Script::default() }).await;
    let execution = deck.start("{ name: one, steps: [{ id: a, tool: fake.once }] }").await;
    assert_eq!(deck.wait(&execution).await, Status::Waiting);
    let key = format!("sk-live-{}", "4eC39HqLyjWDarjtT1zdp7dc");
    let resolve = Control::Resolve {
        part: None,
        happened: true,
        result: None,
        evidence: Some(Arc::new(json!({ "seen": "in the log", "api_key": key }))),
    };
    deck.control(&execution, resolve).await.unwrap();
    assert_eq!(deck.wait(&execution).await, Status::Completed);
    assert!(!deck.bytes_on_disk().windows(key.len()).any(|bytes| bytes == key.as_bytes()));
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_saw_the_same_one_is_heard() {
    let deck = Deck::new(Script { fail: vec!["fake.once"], ..Script::default() }).await;
    let execution = deck.start("{ name: one, steps: [{ id: a, tool: fake.once }] }").await;
    assert_eq!(deck.wait(&execution).await, Status::Waiting);
    let entries = || deck.engine.look(&execution, Execution::entries);
    let seen = entries().await.unwrap();
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..20 {
        let (engine, execution, actor) = (deck.engine.clone(), execution.clone(), Actor::person("operator"));
        let decision = format!("number {number}");
        let signal = Signal::RecordDecision { step: None, decision, reason: "because".into(), details: None };
        let key = Some(format!("key-{number}"));
        asking.spawn(async move { engine.signal_as_seen(&execution, actor, signal, key, Some(seen)).await });
    }
    let (heard, refused): (Vec<_>, Vec<_>) = asking.join_all().await.into_iter().partition(Result::is_ok);
    assert_eq!((heard.len(), refused.len()), (1, 19), "{:?}", refused.first());
    assert!(refused.into_iter().all(|refused| refused.unwrap_err().code() == "engine.changed"));
    assert_eq!(entries().await.unwrap(), seen + 1);
    // What was refused may be said again, by whoever has looked again.
    for number in 0..3 {
        let (seen, actor) = (entries().await.unwrap(), Actor::person("operator"));
        let (control, key) = (Control::Pause, Some(format!("pause-{number}")));
        let pause = |seen| {
            deck.engine.control_as_seen(
                &execution,
                actor.clone(),
                control.clone(),
                "tea".into(),
                key.clone(),
                Some(seen),
            )
        };
        assert_eq!(pause(seen - 1).await.unwrap_err().code(), "engine.changed");
        pause(seen).await.unwrap();
        deck.signal(&execution, Signal::Resume { reason: "done".into() }).await.unwrap();
    }
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_stops_waiting_for_a_start_stops_nothing_else() {
    let deck = Deck::new(Script::default()).await;
    let plan = deck.save("{ name: one, steps: [{ id: a, tool: fake.once }] }").await;
    let starts = 60;
    for at in 0..starts {
        let start = deck.engine.start(deck.start_of(&plan, json!({}), None));
        // Somewhere between when it is sent and after it is answered.
        let _ = tokio::time::timeout(Duration::from_micros(at * 20), start).await;
    }
    let tenant = tenant();
    let completed = || async {
        let found = deck.engine.executions(&tenant, ExecutionFilter::default()).await.unwrap();
        found.iter().filter(|found| found.row.status == Status::Completed).count() as u64
    };
    // Those that nobody waits for may still be about to be written.
    for _ in 0..1_000 {
        if completed().await == starts {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(completed().await, starts);
    assert_eq!(u64::from(deck.calls("fake.once")), starts);
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_append_that_fails_is_written_again_or_the_execution_is_read_back() {
    use rutter_core::port::Error;
    for (failures, error, once, status) in [
        // Space comes back: what was answered is written after all.
        (3, Error::DiskFull("no room".into()), 1, Status::Completed),
        (1, Error::Unknown("perhaps".into()), 1, Status::Completed),
        // What came of the call is lost with the loop, so it must not be sent again.
        (1, Error::Io("a bad sector".into()), 1, Status::Waiting),
    ] {
        let script = Script { store_fails: Some((failures, error.clone())), ..Script::default() };
        let deck = Deck::new(script).await;
        let execution = deck.start("{ name: one, steps: [{ id: a, tool: fake.once }] }").await;
        assert_eq!(deck.wait(&execution).await, status, "{error}");
        assert_eq!(deck.calls("fake.once"), once, "{error}");
        deck.close().await;
    }
}
