//! The operator's policy, over a restart of the process.

use crate::driving::fixture::{EngineFixture, Script};
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::policy::OperatorPolicy;
use rutter_core::policy::rule::PolicyRuleDraft;
use rutter_core::time::Millis;
use rutter_engine::SystemClock;
use serde_json::{Value, json};
use std::sync::Arc;

fn policy(rules: Value) -> Arc<OperatorPolicy> {
    let drafts: Vec<PolicyRuleDraft> = serde_json::from_value(rules).unwrap();
    Arc::new(OperatorPolicy::read(&drafts).unwrap())
}

/// A limit that is about calls whose safety and opener only the whole journal shows.
fn two_in_an_hour() -> Arc<OperatorPolicy> {
    policy(json!([{
        "name": "few", "tools": ["fake.once"], "safety": ["once"], "principals": ["agent:*"],
        "limit": { "calls": 2, "per": "1h" },
    }]))
}

/// Large calls have a limit of their own.
fn large_and_others() -> Arc<OperatorPolicy> {
    let one = json!({ "calls": 1, "per": "1h" });
    policy(json!([
        { "name": "large", "tools": ["fake.once"], "when": "parameters.amount > 5", "limit": one },
        { "name": "others", "tools": ["fake.once"], "limit": one },
    ]))
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_under_a_limit_still_count_after_a_restart() {
    let plan = "{ name: one, steps: [{ id: a, tool: fake.once }] }";
    let fixture = EngineFixture::with(Script::default(), |options| options.policy = two_in_an_hour()).await;
    for _ in 0..2 {
        let execution = fixture.start(plan).await;
        assert_eq!(fixture.wait(&execution).await, ExecutionStatus::Completed);
    }
    let fixture = fixture.crash(Script::default()).await;
    let other = fixture.start("{ name: other, steps: [{ id: a, tool: fake.read }] }").await;
    assert_eq!(fixture.wait(&other).await, ExecutionStatus::Completed, "the rule is not about this tool");
    let third = fixture.start(plan).await;
    let view = fixture.engine.view(&third).await.unwrap();
    assert_eq!((view.steps[0].attempts, fixture.calls("fake.once")), (0, 2), "there is no room before an hour is over");
    let wake_at = fixture.engine.inspect(&third, |execution| execution.wake_at()).await.unwrap();
    let wait = wake_at.expect("it waits for room").since(SystemClock::system().now());
    let hour = Millis::hours(1);
    assert!(wait < hour && wait.0 > hour.0 / 2, "the first call leaves the window after an hour: {wait}");
    fixture.close().await;
}

/// Nobody knows any more how large it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_erased_parameters_counts_under_every_limit_that_it_may_have_come_under() {
    let plan = |amount: u32| {
        format!("{{ name: pay{amount}, steps: [{{ id: a, tool: fake.once, parameters: {{ amount: {amount} }} }}] }}")
    };
    for is_erased in [false, true] {
        let fixture = EngineFixture::with(Script::default(), |options| options.policy = large_and_others()).await;
        let small = fixture.start(&plan(1)).await;
        assert_eq!(fixture.wait(&small).await, ExecutionStatus::Completed);
        if is_erased {
            fixture.erase(&small).await;
        }
        let fixture = fixture.crash(Script::default()).await;
        let large = fixture.start(&plan(9)).await;
        if is_erased {
            let wake_at = fixture.engine.inspect(&large, |execution| execution.wake_at()).await.unwrap();
            assert!(wake_at.is_some(), "it waits for room");
        } else {
            assert_eq!(fixture.wait(&large).await, ExecutionStatus::Completed, "the other call was small");
        }
        assert_eq!(fixture.calls("fake.once"), if is_erased { 1 } else { 2 });
        fixture.close().await;
    }
}
