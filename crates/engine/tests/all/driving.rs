//! Executions on a real store, with tools in the process that count what they are asked to do.

mod fixture;
mod flaky;
mod pauses;
mod policy;
mod reports;
mod steering;

use fixture::{EngineFixture, Script, SetClock};
use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::view::{ExecutionStatus, PendingQuestion};
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event::{DueKind, Event, EventRecord, QuestionAnswer};
use rutter_core::time::Millis;
use rutter_engine::UpdateContent;
use rutter_engine::control::ControlAction;
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
    let fixture = EngineFixture::new(Script::default()).await;
    let execution = fixture.start(CHAIN).await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    assert_eq!(fixture.calls("fake.once"), 2);
    assert_eq!(fixture.calls("fake.read"), 1);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_in_flight_at_a_crash_is_not_sent_again() {
    let fixture = EngineFixture::new(Script { hang: vec!["fake.once"], ..Script::default() }).await;
    let execution = fixture.start(CHAIN).await;
    fixture.until(|fixture| fixture.calls("fake.once") == 1).await;
    let fixture = fixture.crash(Script::default()).await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
    assert_eq!(fixture.calls("fake.once"), 1, "its outcome is unknown, so it is not repeated");
    let view = fixture.engine.view(&execution).await.unwrap();
    assert_eq!(view.questions.len(), 1);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_answer_is_on_record_though_the_execution_has_left_the_memory() {
    let fixture = EngineFixture::new(Script::default()).await;
    let execution = fixture.start(CHAIN).await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    fixture.until(|fixture| fixture.engine.active_count() == 0).await;
    let mut updates = fixture.engine.subscribe();
    fixture.answer_late(0, json!({ "n": 8 }));
    let is_late = |record: &EventRecord| matches!(record.event, Event::LateAnswerArrived { attempt: 1, .. });
    loop {
        let update = updates.recv().await.unwrap();
        if matches!(&update.content, UpdateContent::Recorded { records, .. } if records.iter().any(is_late)) {
            break;
        }
    }
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_a_second_effect_is_answered_after_the_end() {
    let fixture = EngineFixture::new(Script { hold_all: vec!["fake.once"], ..Script::default() }).await;
    let plan = "{ name: one, steps: [{ id: a, tool: fake.once, parameters: { n: 1 }, timeout: 1s }] }";
    let execution = fixture.start(plan).await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
    let evidence = Some(std::sync::Arc::new(json!("the bank was asked")));
    let settle = ControlAction::Resolve { part: None, happened: false, result: None, evidence };
    fixture.control(&execution, settle).await.unwrap();
    fixture.until(|fixture| fixture.calls("fake.once") == 2).await;
    // Both are done now.
    fixture.release_all();
    fixture.wait_for(&execution, ExecutionStatus::Completed).await;
    let questions = || async { fixture.engine.view(&execution).await.unwrap().questions };
    while questions().await.is_empty() {
        tokio::task::yield_now().await;
    }
    assert!(matches!(questions().await[..], [PendingQuestion::SecondEffect { .. }]));
    let about = Some(PartId::whole(StepId::new("a")));
    let stands = ControlAction::Answer { about, answer: QuestionAnswer::Continue };
    fixture.control(&execution, stands).await.unwrap();
    assert!(questions().await.is_empty());
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_holds_back_steps_that_have_not_started() {
    let fixture = EngineFixture::new(Script { hold: vec!["fake.once"], ..Script::default() }).await;
    let execution = fixture.start(CHAIN).await;
    fixture.until(|fixture| fixture.calls("fake.once") == 1).await;
    fixture.signal(&execution, ExecutionInput::Pause { reason: "look".into() }).await.unwrap();
    fixture.release();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Paused);
    assert_eq!(fixture.calls("fake.once"), 1);
    fixture.signal(&execution, ExecutionInput::Resume { reason: "go".into() }).await.unwrap();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    assert_eq!(fixture.calls("fake.once"), 2);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_killed_before_it_is_recorded_is_not_sent() {
    let script = Script { hold: vec!["fake.once"], commands_before_load: 3, ..Script::default() };
    let fixture = EngineFixture::with(script, |options| options.rest = Millis(50)).await;
    let execution = fixture.start(CHAIN).await;
    fixture.until(|fixture| fixture.calls("fake.once") == 1).await;
    fixture.signal(&execution, ExecutionInput::Pause { reason: "look".into() }).await.unwrap();
    fixture.release();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Paused);
    fixture.until(|fixture| fixture.engine.active_count() == 0).await;
    // Both are decided before either is written.
    let kill = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        fixture.signal(&execution, ExecutionInput::Kill { reason: "no".into() }).await
    };
    let (resumed, killed) =
        tokio::join!(fixture.signal(&execution, ExecutionInput::Resume { reason: "go".into() }), kill);
    resumed.unwrap();
    killed.unwrap();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Cancelled);
    assert_eq!(fixture.calls("fake.once"), 1);
    fixture.until(|fixture| fixture.engine.active_count() == 0).await;
    assert!(fixture.engine.view(&execution).await.unwrap().questions.is_empty(), "it is known not to have happened");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_execution_that_left_the_memory_still_answers() {
    let fixture = EngineFixture::with(Script { fail: vec!["fake.once"], ..Script::default() }, |options| {
        options.rest = Millis(50);
    })
    .await;
    let execution = fixture.start(CHAIN).await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
    fixture.until(|fixture| fixture.engine.active_count() == 0).await;
    fixture.signal(&execution, ExecutionInput::Cancel { reason: "enough".into(), undo: None }).await.unwrap();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Cancelled);
    let late = ExecutionInput::Pause { reason: "too late".into() };
    assert_eq!(fixture.signal(&execution, late).await.unwrap_err().code(), "execution.ended");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_starts_one_execution() {
    let fixture = EngineFixture::new(Script::default()).await;
    let plan = fixture.save(CHAIN).await;
    let mut starts = Vec::new();
    for _ in 0..50 {
        let start = fixture.start_of(&plan, json!({}), Some("order-1"));
        let engine = fixture.engine.clone();
        starts.push(tokio::spawn(async move { engine.start(start).await.unwrap() }));
    }
    let mut ids = Vec::new();
    for start in starts {
        ids.push(start.await.unwrap());
    }
    assert_eq!(ids.iter().filter(|started| started.is_new).count(), 1);
    ids.dedup_by(|a, b| a.execution == b.execution);
    assert_eq!(ids.len(), 1);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_that_violates_its_schema_leaves_a_doubt() {
    let fixture = EngineFixture::new(Script::default()).await;
    let plan = "
name: strict
steps:
  - { id: a, tool: fake.once, output: { type: object, required: [receipt] } }
";
    let execution = fixture.start(plan).await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
    let view = fixture.engine.view(&execution).await.unwrap();
    assert_eq!(view.steps[0].status, "in_doubt", "it was done, so it must not count as not done");
    assert_eq!(fixture.calls("fake.once"), 1);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_long_gap_due_timers_wait_for_a_person() {
    let fixture = EngineFixture::new(Script { fail_once: vec!["fake.read"], ..Script::default() }).await;
    let plan = "
name: patient
steps:
  - { id: a, tool: fake.read, retry: { max_attempts: 3, initial: 300ms, backoff: fixed, jitter: false, on: [tool_error] } }
";
    let execution = fixture.start(plan).await;
    fixture.until(|fixture| fixture.calls("fake.read") == 1).await;
    let fixture = fixture.crash_for(std::time::Duration::from_millis(400), true).await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Paused);
    assert_eq!(fixture.calls("fake.read"), 1);
    fixture.signal(&execution, ExecutionInput::Resume { reason: "still wanted".into() }).await.unwrap();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    assert_eq!(fixture.calls("fake.read"), 2);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_lost_before_a_long_gap_are_not_retried() {
    let fixture = EngineFixture::new(Script { hang: vec!["fake.read"], ..Script::default() }).await;
    let execution = fixture.start("{ name: lost, steps: [{ id: a, tool: fake.read, timeout: 200ms }] }").await;
    fixture.until(|fixture| fixture.calls("fake.read") == 1).await;
    let fixture = fixture.crash_for(std::time::Duration::from_millis(400), true).await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Paused);
    let view = fixture.engine.view(&execution).await.unwrap();
    assert_eq!((view.steps[0].attempts, fixture.calls("fake.read")), (1, 1), "nothing has begun");
    fixture.signal(&execution, ExecutionInput::Resume { reason: "still wanted".into() }).await.unwrap();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    assert_eq!(fixture.calls("fake.read"), 2);
    fixture.close().await;
}

/// The deadline, the approval and the retry of three steps come due while no worker runs, and none of them happens.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_expires_in_the_append_that_recovers() {
    for expire in [false, true] {
        let fixture = EngineFixture::new(Script::default()).await;
        let plan = "
name: overdue
deadline: 600ms
on_failure: compensate
steps:
  - { id: a, tool: fake.once, compensation: { tool: fake.undo } }
  - { id: b, tool: fake.once, depends_on: [a], approval: { required: true, expires: 500ms } }
";
        let execution = fixture.start(plan).await;
        assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
        let fixture = fixture.crash_for(std::time::Duration::from_millis(700), true).await;
        // Until it is loaded, the status is that of before the gap.
        let paused = async {
            while fixture.engine.view(&execution).await.unwrap().status != ExecutionStatus::Paused {
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(10), paused).await.expect("it is held");
        let view = fixture.engine.view(&execution).await.unwrap();
        let hold = view.questions.iter().find_map(|ask| match ask {
            PendingQuestion::Hold { due, .. } => Some(due.iter().map(|timer| timer.what).collect::<Vec<_>>()),
            _ => None,
        });
        assert_eq!(hold, Some(vec![DueKind::Approval, DueKind::Deadline]));
        assert_eq!(fixture.calls("fake.undo"), 0);
        let reason = "looked".to_owned();
        if expire {
            fixture.signal(&execution, ExecutionInput::ResumeExpired { reason, only: Vec::new() }).await.unwrap();
            assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Compensated);
        } else {
            fixture.signal(&execution, ExecutionInput::Resume { reason }).await.unwrap();
            let view = fixture.engine.view(&execution).await.unwrap();
            assert!(matches!(&view.questions[..], [PendingQuestion::Approval { .. }]), "{:?}", view.questions);
        }
        fixture.close().await;
    }
}

/// The call would take for ever; its execution has half a second.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_ends_a_call_in_flight() {
    let fixture = EngineFixture::new(Script { hang: vec!["fake.once"], ..Script::default() }).await;
    let execution = fixture.start("{ name: brief, deadline: 500ms, steps: [{ id: a, tool: fake.once }] }").await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
    let view = fixture.engine.view(&execution).await.unwrap();
    assert_eq!((view.steps[0].status, view.questions.len()), ("in_doubt", 2), "{:?}", view.questions);
    fixture.close().await;
}

/// The machine was restored, or its clock was set: nothing that came due meanwhile simply happens, and the jump is on
/// record. A jump of less than a day lets come due what came due.
#[tokio::test(flavor = "multi_thread")]
async fn a_jump_of_the_clock_in_a_running_process_is_a_gap() {
    const HOUR: i64 = 3_600_000;
    for (ahead, status) in [(25 * HOUR, ExecutionStatus::Paused), (23 * HOUR, ExecutionStatus::Compensated)] {
        let hands = SetClock::new();
        let fixture = EngineFixture::on(hands.clock(), Script::default(), |_| {}).await;
        let plan = "
name: overdue
deadline: 10h
on_failure: compensate
steps:
  - { id: a, tool: fake.once, compensation: { tool: fake.undo } }
  - { id: b, tool: fake.once, depends_on: [a], approval: { required: true, expires: 5h } }
";
        let execution = fixture.start(plan).await;
        assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
        hands.set_ahead(ahead);
        // A sign of life wakes it before its timers do.
        let note = ExecutionInput::SaveContext { values: serde_json::Map::new() };
        fixture.signal(&execution, note).await.unwrap();
        assert_eq!(fixture.wait_for(&execution, status).await, status, "{ahead}");
        let undone = u32::from(status == ExecutionStatus::Compensated);
        assert_eq!(fixture.calls("fake.undo"), undone, "{ahead}");
        let recorded = fixture.clock_entries().await;
        assert!(matches!(&recorded[..], [change] if change.starts_with("time went from ")), "{recorded:?}");
        fixture.close().await;
    }
}

/// Time does not follow a clock that is set back: what was due in a second is due in a second, and not in an hour. The jump
/// is on record, also of a clock that was a little behind before.
#[tokio::test(flavor = "multi_thread")]
async fn a_clock_set_back_in_a_running_process_delays_nothing_and_is_on_record() {
    for steps in [&[3_600_000_i64][..], &[10_000, 3_600_000]] {
        let hands = SetClock::new();
        let often =
            |options: &mut rutter_engine::EngineOptions| (options.lease, options.look) = (Millis(300), Millis(20));
        let fixture = EngineFixture::on(hands.clock(), Script::default(), often).await;
        let plan = "
name: short
deadline: 1s
on_failure: compensate
steps:
  - { id: a, tool: fake.once, compensation: { tool: fake.undo } }
  - { id: b, tool: fake.once, depends_on: [a], approval: { required: true, expires: 5h } }
";
        let execution = fixture.start(plan).await;
        fixture.until_settled(&execution, 1).await;
        for back in steps {
            hands.set_ahead(-*back);
            // The worker looks at the clock when it renews its leases.
            tokio::time::sleep(std::time::Duration::from_millis(400)).await;
        }
        let status = fixture.wait_for(&execution, ExecutionStatus::Compensated).await;
        assert_eq!(status, ExecutionStatus::Compensated, "{steps:?}");
        assert_eq!(fixture.calls("fake.undo"), 1, "{steps:?}");
        let recorded = fixture.clock_entries().await;
        let is_told = |change: &String| change.ends_with(": recorded times do not go back with it");
        assert!(matches!(&recorded[..], [change] if is_told(change)), "{steps:?}: {recorded:?}");
        fixture.close().await;
    }
}

/// The last sign of a worker is written now and then: what was recorded after it, and before the crash, is held as well.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_recorded_just_before_a_crash_is_held_if_the_clock_went_back() {
    const HOUR: i64 = 3_600_000;
    for (back, status) in [(HOUR, ExecutionStatus::Paused), (1_000, ExecutionStatus::Completed)] {
        let hands = SetClock::new();
        let script = Script { hang: vec!["fake.read"], ..Script::default() };
        let fixture = EngineFixture::on(hands.clock(), script, |_| {}).await;
        // Newer than the sign of life that the engine gave when it started.
        hands.set_ahead(2_001);
        let execution = fixture.start("{ name: late, steps: [{ id: a, tool: fake.read }] }").await;
        fixture.until(|fixture| fixture.calls("fake.read") == 1).await;
        hands.set_ahead(-back);
        let fixture = fixture.crash_under(hands.clock()).await;
        assert_eq!(fixture.wait_for(&execution, status).await, status, "{back}");
        let calls = if status == ExecutionStatus::Paused { 1 } else { 2 };
        assert_eq!(fixture.calls("fake.read"), calls, "{back}");
        fixture.close().await;
    }
}

#[test]
fn only_long_gaps_and_clocks_that_went_back_hold_timers() {
    use rutter_core::time::Timestamp;
    use rutter_engine::options::{CLOCK_SLACK, GAP_MAX, gap_before};
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
        assert_eq!(gap_before(last, now).is_some(), holds, "{last:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_a_ticket_is_taken_up_again_after_a_crash_and_not_repeated() {
    let fixture = EngineFixture::new(Script { ticket: vec!["fake.once"], ..Script::default() }).await;
    let execution = fixture.start("{ name: long, steps: [{ id: a, tool: fake.once }] }").await;
    fixture.ticket_is_on_record().await;
    let fixture = fixture.crash(Script::default()).await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    assert_eq!(fixture.calls("fake.once"), 1);
    assert_eq!(fixture.calls("fake.once under t-1"), 1);
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_a_ticket_that_is_killed_during_recovery_stays_in_doubt() {
    let fixture = EngineFixture::new(Script { ticket: vec!["fake.once"], ..Script::default() }).await;
    let execution = fixture.start("{ name: long, steps: [{ id: a, tool: fake.once }] }").await;
    fixture.ticket_is_on_record().await;
    // The kill is decided in the same append as the recovery.
    let fixture = fixture.crash(Script { commands_before_load: 1, ..Script::default() }).await;
    fixture.signal(&execution, ExecutionInput::Kill { reason: "no".into() }).await.unwrap();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Cancelled);
    fixture.until(|fixture| fixture.engine.active_count() == 0).await;
    let view = fixture.engine.view(&execution).await.unwrap();
    assert_eq!(view.steps[0].status, "in_doubt", "it was sent before the crash");
    assert_eq!(view.questions.len(), 1);
    assert_eq!((fixture.calls("fake.once"), fixture.calls("fake.once under t-1")), (1, 0));
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn drift_noticed_during_recovery_starts_nothing_that_is_then_lost() {
    let fixture = EngineFixture::new(Script { fail_once: vec!["fake.read"], ..Script::default() }).await;
    let plan = "
name: drifted
max_parallel: 2
steps:
  - { id: a, tool: fake.read, retry: { max_attempts: 3, initial: 100ms, backoff: fixed, jitter: false, on: [tool_error] } }
  - { id: b, tool: fake.undo, depends_on: [a] }
";
    let execution = fixture.start(plan).await;
    fixture.until_step(&execution, "retrying").await;
    let fixture = fixture.crash(Script { commands_before_load: 1, ..Script::default() }).await;
    fixture.change("fake.undo");
    tokio::time::sleep(std::time::Duration::from_millis(150)).await;
    let note = ExecutionInput::SaveContext { values: serde_json::Map::new() };
    fixture.signal(&execution, note).await.unwrap();
    fixture.until_settled(&execution, 1).await;
    let view = fixture.engine.view(&execution).await.unwrap();
    assert_eq!((view.steps[0].attempts, fixture.calls("fake.read")), (2, 2), "no attempt was lost");
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_of_a_tool_survives_a_crash_and_its_answer_continues_the_call() {
    let fixture = EngineFixture::new(Script { ask_and_keep: vec!["fake.once"], ..Script::default() }).await;
    let execution = fixture.start("{ name: paint, steps: [{ id: a, tool: fake.once }] }").await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
    let fixture = fixture.crash(Script { ask_and_keep: vec!["fake.once"], ..Script::default() }).await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
    let view = fixture.engine.view(&execution).await.unwrap();
    assert_eq!((view.questions.len(), view.steps[0].attempts), (1, 1));
    let answer = Some(std::sync::Arc::new(json!({ "colour": "red" })));
    fixture.control(&execution, ControlAction::Reply { part: None, answer }).await.unwrap();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    assert_eq!((fixture.calls("fake.once"), fixture.calls("fake.once continued")), (1, 1));
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_recorded_before_the_call_is_resumed_reaches_the_tool() {
    let asks = || Script { ask_and_keep: vec!["fake.once"], ..Script::default() };
    let fixture = EngineFixture::new(asks()).await;
    let execution = fixture.start("{ name: paint, steps: [{ id: a, tool: fake.once }] }").await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
    // The answer is decided in the same append as the recovery.
    let fixture = fixture.crash(Script { commands_before_load: 1, ..asks() }).await;
    let answer = std::sync::Arc::new(json!({ "colour": "red" }));
    let (part, reason) = (PartId::whole(StepId::new("a")), "so be it".to_owned());
    let input = ExecutionInput::AnswerTool { part, attempt: 1, answer: Some(answer), reason };
    fixture.signal(&execution, input).await.unwrap();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    let result = fixture.engine.inspect(&execution, |execution| execution.result_of("a").cloned()).await.unwrap();
    assert_eq!(result, Some(json!({ "colour": "red" })));
    assert_eq!((fixture.calls("fake.once"), fixture.calls("fake.once continued")), (1, 1));
    fixture.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_question_of_a_tool_is_asked_and_the_answer_reaches_it() {
    let fixture = EngineFixture::new(Script { ask: vec!["fake.once"], ..Script::default() }).await;
    let execution = fixture.start("{ name: paint, steps: [{ id: a, tool: fake.once }] }").await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Waiting);
    let reply = |answer| ControlAction::Reply { part: None, answer: Some(std::sync::Arc::new(answer)) };
    let refused = fixture.control(&execution, reply(json!({ "color": "red" }))).await.unwrap_err();
    assert_eq!(refused.code(), "execution.answer_invalid");
    fixture.control(&execution, reply(json!({ "colour": "red" }))).await.unwrap();
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    let result = fixture.engine.inspect(&execution, |execution| execution.result_of("a").cloned()).await.unwrap();
    assert_eq!(result, Some(json!({ "colour": "red" })));
    assert_eq!(fixture.calls("fake.once"), 1);
    fixture.close().await;
}
