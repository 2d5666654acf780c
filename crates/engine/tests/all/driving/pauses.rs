//! Servers that take no calls for a while.

use crate::driving::fixture::{EngineFixture, PAUSES, Script};
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::journal::event::Event;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_waits_for_its_server_on_record_and_uses_up_no_attempt() {
    let fixture = EngineFixture::new(Script { pause: vec!["fake.once"], ..Script::default() }).await;
    let plan = "{ name: one, steps: [{ id: a, tool: fake.once, retry: { max_attempts: 1 } }] }";
    let execution = fixture.start(plan).await;
    assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    assert_eq!(fixture.calls("fake.once"), 1);
    let events = fixture.events(&execution).await;
    let count = |is: fn(&Event) -> bool| events.iter().filter(|event| is(event)).count();
    assert_eq!(count(|event| matches!(event, Event::CallDelayed { failure: Some(_), .. })), PAUSES as usize);
    assert_eq!(count(|event| matches!(event, Event::AttemptStarted { .. })), 1);
    assert_eq!(count(|event| matches!(event, Event::AttemptFailed { .. })), 0);
    fixture.close().await;
}
