//! Executions on a real store, with tools in the process that count what they are asked to do.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

mod deck;
mod flaky;
mod steering;

use deck::{Deck, Script};
use rutter_core::execution::view::Status;
use rutter_core::time::Millis;
use rutter_engine::Signal;
use rutter_engine::control::Control;
use serde_json::json;

const CHAIN: &str = "
name: chain
goal: three steps in order
steps:
  - { id: a, tool: fake.once, parameters: { n: 1 } }
  - { id: b, tool: fake.once, depends_on: [a], parameters: { n: '{{ steps.a.result.n }}' } }
  - { id: c, tool: fake.read, depends_on: [b] }
";

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_carried_out_and_every_step_is_called_once() {
    let deck = Deck::new(Script::default()).await;
    let execution = deck.start(CHAIN).await;
    assert_eq!(deck.wait(&execution).await, Status::Completed);
    assert_eq!(deck.calls("fake.once"), 2);
    assert_eq!(deck.calls("fake.read"), 1);
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_ran_when_the_process_died_is_not_sent_again() {
    let deck = Deck::new(Script { hang: vec!["fake.once"], ..Script::default() }).await;
    let execution = deck.start(CHAIN).await;
    deck.until(|deck| deck.calls("fake.once") == 1).await;
    let deck = deck.crash(Script::default()).await;
    assert_eq!(deck.wait(&execution).await, Status::Waiting);
    assert_eq!(deck.calls("fake.once"), 1, "nobody knows whether it happened, so nobody repeats it");
    let view = deck.engine.view(&execution).await.unwrap();
    assert_eq!(view.questions.len(), 1);
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_holds_back_what_has_not_begun() {
    let deck = Deck::new(Script { hold: vec!["fake.once"], ..Script::default() }).await;
    let execution = deck.start(CHAIN).await;
    deck.until(|deck| deck.calls("fake.once") == 1).await;
    deck.signal(&execution, Signal::Pause { reason: "look".into() }).await.unwrap();
    deck.release();
    assert_eq!(deck.wait(&execution).await, Status::Paused);
    assert_eq!(deck.calls("fake.once"), 1);
    deck.signal(&execution, Signal::Resume { reason: "go".into() }).await.unwrap();
    assert_eq!(deck.wait(&execution).await, Status::Completed);
    assert_eq!(deck.calls("fake.once"), 2);
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_that_left_the_memory_still_answers() {
    let deck = Deck::with(Script { fail: vec!["fake.once"], ..Script::default() }, |options| {
        options.rest = Millis(50);
    })
    .await;
    let execution = deck.start(CHAIN).await;
    assert_eq!(deck.wait(&execution).await, Status::Waiting);
    deck.until(|deck| deck.engine.live() == 0).await;
    deck.signal(&execution, Signal::Cancel { reason: "enough".into(), undo: None }).await.unwrap();
    assert_eq!(deck.wait(&execution).await, Status::Cancelled);
    let late = Signal::Pause { reason: "too late".into() };
    assert_eq!(deck.signal(&execution, late).await.unwrap_err().code(), "execution.ended");
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_starts_one_execution() {
    let deck = Deck::new(Script::default()).await;
    let plan = deck.save(CHAIN).await;
    let mut starts = Vec::new();
    for _ in 0..50 {
        let start = deck.start_of(&plan, json!({}), Some("order-1"));
        let engine = deck.engine.clone();
        starts.push(tokio::spawn(async move { engine.start(start).await.unwrap() }));
    }
    let mut ids = Vec::new();
    for start in starts {
        ids.push(start.await.unwrap());
    }
    assert_eq!(ids.iter().filter(|started| started.is_new).count(), 1);
    ids.dedup_by(|a, b| a.execution == b.execution);
    assert_eq!(ids.len(), 1);
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_is_not_what_the_plan_says_leaves_a_doubt() {
    let deck = Deck::new(Script::default()).await;
    let plan = "
name: strict
steps:
  - { id: a, tool: fake.once, output: { type: object, required: [receipt] } }
";
    let execution = deck.start(plan).await;
    assert_eq!(deck.wait(&execution).await, Status::Waiting);
    let view = deck.engine.view(&execution).await.unwrap();
    assert_eq!(view.steps[0].status, "in_doubt", "it was done, so it must not count as not done");
    assert_eq!(deck.calls("fake.once"), 1);
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_gap_nobody_can_vouch_for_due_timers_wait_for_a_person() {
    let deck = Deck::new(Script { fail_once: vec!["fake.read"], ..Script::default() }).await;
    let plan = "
name: patient
steps:
  - { id: a, tool: fake.read, retry: { max_attempts: 3, initial: 300ms, backoff: fixed, jitter: false, on: [tool_error] } }
";
    let execution = deck.start(plan).await;
    deck.until(|deck| deck.calls("fake.read") == 1).await;
    let deck = deck.crash_for(std::time::Duration::from_millis(400), Some("three days have gone by")).await;
    assert_eq!(deck.wait(&execution).await, Status::Paused);
    assert_eq!(deck.calls("fake.read"), 1);
    deck.signal(&execution, Signal::Resume { reason: "still wanted".into() }).await.unwrap();
    assert_eq!(deck.wait(&execution).await, Status::Completed);
    assert_eq!(deck.calls("fake.read"), 2);
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_lost_before_such_a_gap_is_not_tried_again_either() {
    let deck = Deck::new(Script { hang: vec!["fake.read"], ..Script::default() }).await;
    let execution = deck.start("{ name: lost, steps: [{ id: a, tool: fake.read, timeout: 200ms }] }").await;
    deck.until(|deck| deck.calls("fake.read") == 1).await;
    let deck = deck.crash_for(std::time::Duration::from_millis(400), Some("three days have gone by")).await;
    assert_eq!(deck.wait(&execution).await, Status::Paused);
    let view = deck.engine.view(&execution).await.unwrap();
    assert_eq!((view.steps[0].attempts, deck.calls("fake.read")), (1, 1), "nothing has begun");
    deck.signal(&execution, Signal::Resume { reason: "still wanted".into() }).await.unwrap();
    assert_eq!(deck.wait(&execution).await, Status::Completed);
    assert_eq!(deck.calls("fake.read"), 2);
    deck.close().await;
}

#[test]
fn only_long_gaps_and_clocks_that_went_back_hold_timers() {
    use rutter_core::time::Timestamp;
    use rutter_engine::options::{CLOCK_SLACK, GAP_MAX, hold_after};
    let now = Timestamp(1_800_000_000_000);
    let ago = |ms: u64| Some(Timestamp(now.0 - ms as i64));
    let ahead = |ms: u64| Some(now.plus(Millis(ms)));
    for (last, holds) in [
        (None, false),
        (ago(1), false),
        (ago(GAP_MAX.0), false),
        (ago(GAP_MAX.0 + 1), true),
        (ahead(CLOCK_SLACK.0), false),
        (ahead(CLOCK_SLACK.0 + 1), true),
    ] {
        assert_eq!(hold_after(last, now).is_some(), holds, "{last:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_a_ticket_is_taken_up_again_after_a_crash_and_not_repeated() {
    let deck = Deck::new(Script { ticket: vec!["fake.once"], ..Script::default() }).await;
    let execution = deck.start("{ name: long, steps: [{ id: a, tool: fake.once }] }").await;
    deck.ticket_is_on_record().await;
    let deck = deck.crash(Script::default()).await;
    assert_eq!(deck.wait(&execution).await, Status::Completed);
    assert_eq!(deck.calls("fake.once"), 1);
    assert_eq!(deck.calls("fake.once under t-1"), 1);
    deck.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tool_asks_is_asked_on_and_the_answer_reaches_it() {
    let deck = Deck::new(Script { ask: vec!["fake.once"], ..Script::default() }).await;
    let execution = deck.start("{ name: paint, steps: [{ id: a, tool: fake.once }] }").await;
    assert_eq!(deck.wait(&execution).await, Status::Waiting);
    let reply = |answer| Control::Reply { part: None, answer: Some(std::sync::Arc::new(answer)) };
    let refused = deck.control(&execution, reply(json!({ "color": "red" }))).await.unwrap_err();
    assert_eq!(refused.code(), "execution.answer_invalid");
    deck.control(&execution, reply(json!({ "colour": "red" }))).await.unwrap();
    assert_eq!(deck.wait(&execution).await, Status::Completed);
    let result = deck.engine.look(&execution, |execution| execution.result_of("a").cloned()).await.unwrap();
    assert_eq!(result, Some(json!({ "colour": "red" })));
    assert_eq!(deck.calls("fake.once"), 1);
    deck.close().await;
}
