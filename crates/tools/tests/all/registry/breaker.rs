//! When the circuit breaker opens, for how long, and what closes it.

use crate::registry::fixture::{Puppet, RegistryFixture, applicant, call, done, entrant, not_done, plain};
use rutter_core::id::ToolName;
use rutter_core::port::tools::{Admission, CallPermit, CallReturn, ToolGateway};
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::report::BreakerReport;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use rutter_tools::config::{CallLimits, ServerSettings};
use rutter_tools::registry::breaker::CircuitBreaker;
use serde_json::json;
use std::sync::Arc;

const PAUSE: Millis = Millis::seconds(30);

fn at(seconds: i64) -> Timestamp {
    Timestamp(seconds * 1_000)
}

fn breaker(failures_max: u32) -> Arc<CircuitBreaker> {
    Arc::new(CircuitBreaker::new(failures_max, PAUSE))
}

fn ends(breaker: &Arc<CircuitBreaker>, now: Timestamp, outcome: &CallOutcome) {
    breaker.enter(now).unwrap().ended(outcome, now);
}

fn ill() -> CallOutcome {
    CallOutcome::Maybe(ToolFailure::new(FailureCategory::Unavailable, "connection reset"))
}

/// After how long it lets a call through again, if it does not now.
fn closed_for(breaker: &Arc<CircuitBreaker>, now: Timestamp) -> Option<Millis> {
    let failure = breaker.enter(now).map(drop).err()?;
    assert_eq!(failure.category, FailureCategory::Unavailable);
    failure.retry_after
}

#[test]
fn only_failures_of_the_server_itself_count_against_it() {
    for category in FailureCategory::ALL {
        let counts = [
            FailureCategory::Unavailable,
            FailureCategory::Timeout,
            FailureCategory::Protocol,
            FailureCategory::Internal,
        ]
        .contains(&category);
        for outcome in [CallOutcome::NotDone, CallOutcome::Maybe].map(|kind| kind(ToolFailure::new(category, "no"))) {
            let breaker = breaker(3);
            (0..3).for_each(|_| ends(&breaker, at(0), &outcome));
            assert_eq!(closed_for(&breaker, at(0)).is_some(), counts, "{outcome:?}");
        }
    }
}

#[test]
fn it_opens_at_so_many_failures_in_a_row_and_not_before() {
    for failures_max in [1, 2, 5] {
        let breaker = breaker(failures_max);
        for _ in 1..failures_max {
            ends(&breaker, at(0), &ill());
        }
        assert_eq!(closed_for(&breaker, at(0)), None, "one below");
        ends(&breaker, at(0), &ill());
        assert_eq!(closed_for(&breaker, at(0)), Some(PAUSE), "at the limit");
    }
}

#[test]
fn an_answer_resets_the_count_and_a_cancelled_call_does_not() {
    for (outcome, is_anew) in [
        (done(json!(1)), true),
        (not_done(FailureCategory::Conflict), true),
        (not_done(FailureCategory::Cancelled), false),
    ] {
        let breaker = breaker(2);
        ends(&breaker, at(0), &ill());
        ends(&breaker, at(0), &outcome);
        ends(&breaker, at(0), &ill());
        assert_eq!(closed_for(&breaker, at(0)).is_none(), is_anew, "{outcome:?}");
    }
}

#[test]
fn after_the_pause_one_call_is_tried_and_no_second_one_beside_it() {
    let breaker = breaker(1);
    ends(&breaker, at(0), &ill());
    assert_eq!(closed_for(&breaker, Timestamp(29_999)), Some(Millis(1)));
    let trial = breaker.enter(at(30)).unwrap();
    assert_eq!(closed_for(&breaker, at(30)), Some(Millis::seconds(10)));
    trial.ended(&done(json!(1)), at(31));
    assert_eq!(breaker.report(at(31)), BreakerReport::Closed { failures: 0 });
}

#[test]
fn pauses_double_up_to_five_minutes_and_begin_anew_once_it_was_well() {
    let breaker = breaker(1);
    let mut now = at(0);
    ends(&breaker, now, &ill());
    for seconds in [30, 60, 120, 240, 300, 300, 300] {
        assert_eq!(closed_for(&breaker, now), Some(Millis::seconds(seconds)));
        now = now.plus(Millis::seconds(seconds));
        ends(&breaker, now, &ill());
    }
    now = now.plus(Millis::seconds(300));
    ends(&breaker, now, &done(json!(1)));
    ends(&breaker, now, &ill());
    assert_eq!(closed_for(&breaker, now), Some(PAUSE));
}

#[test]
fn a_trial_that_shows_nothing_leaves_the_next_to_try() {
    let breaker = breaker(1);
    ends(&breaker, at(0), &ill());
    drop(breaker.enter(at(30)).unwrap());
    breaker.enter(at(30)).unwrap().ended(&not_done(FailureCategory::Cancelled), at(30));
    let third = breaker.enter(at(30)).unwrap();
    third.ended(&not_done(FailureCategory::ToolError), at(31));
    assert_eq!(breaker.report(at(31)), BreakerReport::Closed { failures: 0 }, "it answered");
}

#[test]
fn calls_from_before_it_opened_neither_close_nor_prolong_it() {
    let breaker = breaker(1);
    let [well, bad, last] = [(); 3].map(|()| breaker.enter(at(0)).unwrap());
    last.ended(&ill(), at(0));
    well.ended(&done(json!(1)), at(10));
    bad.ended(&ill(), at(20));
    assert_eq!(closed_for(&breaker, at(20)), Some(Millis::seconds(10)));
}

#[test]
fn a_clock_that_is_set_back_does_not_prolong_the_pause() {
    let breaker = breaker(1);
    ends(&breaker, at(100_000), &ill());
    assert_eq!(closed_for(&breaker, at(50)), Some(PAUSE));
    assert_eq!(closed_for(&breaker, at(80)), None);
}

#[test]
fn the_report_shows_since_when_and_why() {
    let breaker = breaker(1);
    assert_eq!(breaker.report(at(0)), BreakerReport::Closed { failures: 0 });
    ends(&breaker, at(5), &ill());
    let failure = breaker.enter(at(15)).map(drop).unwrap_err();
    assert_eq!(
        failure.message,
        "the circuit breaker is open since 1970-01-01 00:00:05Z, after 1 failures in a row, \
         the last one unavailable: connection reset; next try in 20s"
    );
    let reason = "unavailable: connection reset".to_owned();
    let open = BreakerReport::Open { since: at(5), rest: Millis::seconds(20), reason: reason.clone() };
    assert_eq!(breaker.report(at(15)), open);
    assert_eq!(breaker.report(at(35)), BreakerReport::HalfOpen { since: at(5), reason });
}

#[tokio::test]
async fn a_server_that_fails_again_and_again_is_not_called_until_the_pause_is_over() {
    let (ill, well) = (Puppet::new(vec![plain("x")]), Puppet::new(vec![plain("x")]));
    ill.on_call(|_| async { not_done(FailureCategory::Unavailable) });
    let limits = CallLimits { breaker_failures: 3, ..CallLimits::default() };
    let entrants =
        vec![entrant("ill", &ill, ServerSettings::default()), entrant("well", &well, ServerSettings::default())];
    let fixture = RegistryFixture::with(entrants, &limits);
    for _ in 0..10 {
        assert!(matches!(fixture.call("ill.x", json!({})).await, CallOutcome::NotDone(_)));
        assert_eq!(fixture.call("well.x", json!({})).await, done(json!({"ok": true})), "the other is not affected");
    }
    assert_eq!((ill.calls(), well.calls()), (3, 10));
    fixture.pass(PAUSE);
    ill.on_call(|_| async { done(json!("back")) });
    for _ in 0..5 {
        assert_eq!(fixture.call("ill.x", json!({})).await, done(json!("back")));
    }
    assert_eq!(ill.calls(), 8);
}

/// Asks for a permit; an `Err` says for how long there is none, because the server is paused.
fn admit(fixture: &RegistryFixture, tool: &str) -> Result<CallPermit, Millis> {
    match fixture.registry.admit(&ToolName::new(tool), &applicant()) {
        Admission::Granted(permit) => Ok(permit),
        Admission::Paused(failure) => {
            assert_eq!(failure.category, FailureCategory::Unavailable);
            Err(failure.retry_after.expect("a pause ends"))
        }
        other => panic!("{other:?}"),
    }
}

async fn call_with(fixture: &RegistryFixture, permit: CallPermit) -> CallOutcome {
    let definition = fixture.registry.definition(&ToolName::new("s.x")).unwrap();
    match fixture.registry.call(call("s.x", definition, json!({})), permit).await {
        CallReturn::Outcome(outcome) => outcome,
        CallReturn::Drifted { .. } => panic!("drifted"),
    }
}

/// A server whose breaker opens at the first failure.
async fn failing() -> (Arc<Puppet>, RegistryFixture) {
    let puppet = Puppet::new(vec![plain("x")]);
    let limits = CallLimits { breaker_failures: 1, ..CallLimits::default() };
    let fixture = RegistryFixture::with(vec![entrant("s", &puppet, ServerSettings::default())], &limits);
    fixture.catalog().await;
    puppet.on_call(|_| async { not_done(FailureCategory::Unavailable) });
    let permit = admit(&fixture, "s.x").expect("nothing has failed so far");
    assert!(matches!(call_with(&fixture, permit).await, CallOutcome::NotDone(_)));
    (puppet, fixture)
}

#[tokio::test]
async fn there_is_no_permit_while_the_breaker_is_open_and_one_for_the_trial() {
    let (puppet, fixture) = failing().await;
    assert_eq!(admit(&fixture, "s.x").unwrap_err(), PAUSE);
    fixture.pass(Millis(PAUSE.0 - 1));
    assert_eq!(admit(&fixture, "s.x").unwrap_err(), Millis(1));
    fixture.pass(Millis(1));
    let trial = admit(&fixture, "s.x").expect("one call is tried");
    assert_eq!(admit(&fixture, "s.x").unwrap_err(), Millis::seconds(10), "and no second one beside it");
    // A permit that is not used leaves the trial to another call.
    drop(trial);
    let trial = admit(&fixture, "s.x").expect("the trial is free again");
    puppet.on_call(|_| async { done(json!("back")) });
    assert_eq!(call_with(&fixture, trial).await, done(json!("back")));
    assert!(admit(&fixture, "s.x").is_ok() && admit(&fixture, "s.x").is_ok());
}

#[tokio::test]
async fn a_call_with_a_permit_is_made_although_the_breaker_has_opened_since() {
    let (puppet, fixture) = failing().await;
    fixture.registry.reset("s");
    let [first, second] = [(); 2].map(|()| admit(&fixture, "s.x").expect("the breaker is closed"));
    assert!(matches!(call_with(&fixture, first).await, CallOutcome::NotDone(_)));
    assert!(admit(&fixture, "s.x").is_err(), "it is open");
    puppet.on_call(|_| async { done(json!("well")) });
    assert_eq!(call_with(&fixture, second).await, done(json!("well")));
}

/// A call that has waited long enough is recorded, and refused as long as the breaker is open.
#[tokio::test]
async fn a_permit_in_spite_of_the_pause_leads_to_a_refusal() {
    let (puppet, fixture) = failing().await;
    let Admission::Granted(permit) = fixture.registry.admit_paused(&ToolName::new("s.x"), &applicant()) else {
        panic!("there is room")
    };
    let CallOutcome::NotDone(failure) = call_with(&fixture, permit).await else { panic!("it was made") };
    assert_eq!((failure.category, failure.retry_after), (FailureCategory::Unavailable, Some(PAUSE)));
    assert_eq!(puppet.calls(), 1);
}

#[tokio::test]
async fn there_is_no_permit_while_a_connector_pauses() {
    let puppet = Puppet::new(vec![plain("x")]);
    let fixture = RegistryFixture::new(&[("s", &puppet)]);
    let failure = ToolFailure::new(FailureCategory::Unavailable, "it died of canary-9f2b77d1c0aa");
    *puppet.pause.lock().unwrap() = Some(ToolFailure { retry_after: Some(Millis(250)), ..failure });
    assert_eq!(admit(&fixture, "s.x").unwrap_err(), Millis(250));
    let Admission::Paused(failure) = fixture.registry.admit(&ToolName::new("s.x"), &applicant()) else { panic!() };
    assert!(!failure.message.contains("canary"), "{failure}");
    *puppet.pause.lock().unwrap() = None;
    assert!(admit(&fixture, "s.x").is_ok());
}
