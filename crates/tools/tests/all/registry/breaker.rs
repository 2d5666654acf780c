//! When the circuit breaker opens, for how long, and what closes it.

use crate::registry::fixture::{Puppet, RegistryFixture, done, entrant, not_done, plain};
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::report::BreakerReport;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use rutter_tools::config::{CallLimits, ServerSettings};
use rutter_tools::registry::breaker::CircuitBreaker;
use serde_json::json;

const PAUSE: Millis = Millis::seconds(30);

fn at(seconds: i64) -> Timestamp {
    Timestamp(seconds * 1_000)
}

fn ends(breaker: &CircuitBreaker, now: Timestamp, outcome: &CallOutcome) {
    breaker.enter(now).unwrap().ended(outcome, now);
}

fn ill() -> CallOutcome {
    CallOutcome::Maybe(ToolFailure::new(FailureCategory::Unavailable, "connection reset"))
}

/// After how long it lets a call through again, if it does not now.
fn closed_for(breaker: &CircuitBreaker, now: Timestamp) -> Option<Millis> {
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
            let breaker = CircuitBreaker::new(3, PAUSE);
            (0..3).for_each(|_| ends(&breaker, at(0), &outcome));
            assert_eq!(closed_for(&breaker, at(0)).is_some(), counts, "{outcome:?}");
        }
    }
}

#[test]
fn it_opens_at_so_many_failures_in_a_row_and_not_before() {
    for failures_max in [1, 2, 5] {
        let breaker = CircuitBreaker::new(failures_max, PAUSE);
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
        let breaker = CircuitBreaker::new(2, PAUSE);
        ends(&breaker, at(0), &ill());
        ends(&breaker, at(0), &outcome);
        ends(&breaker, at(0), &ill());
        assert_eq!(closed_for(&breaker, at(0)).is_none(), is_anew, "{outcome:?}");
    }
}

#[test]
fn after_the_pause_one_call_is_tried_and_no_second_one_beside_it() {
    let breaker = CircuitBreaker::new(1, PAUSE);
    ends(&breaker, at(0), &ill());
    assert_eq!(closed_for(&breaker, Timestamp(29_999)), Some(Millis(1)));
    let trial = breaker.enter(at(30)).unwrap();
    assert_eq!(closed_for(&breaker, at(30)), Some(Millis::seconds(1)));
    trial.ended(&done(json!(1)), at(31));
    assert_eq!(breaker.report(at(31)), BreakerReport::Closed { failures: 0 });
}

#[test]
fn pauses_double_up_to_five_minutes_and_begin_anew_once_it_was_well() {
    let breaker = CircuitBreaker::new(1, PAUSE);
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
    let breaker = CircuitBreaker::new(1, PAUSE);
    ends(&breaker, at(0), &ill());
    drop(breaker.enter(at(30)).unwrap());
    breaker.enter(at(30)).unwrap().ended(&not_done(FailureCategory::Cancelled), at(30));
    let third = breaker.enter(at(30)).unwrap();
    third.ended(&not_done(FailureCategory::ToolError), at(31));
    assert_eq!(breaker.report(at(31)), BreakerReport::Closed { failures: 0 }, "it answered");
}

#[test]
fn calls_from_before_it_opened_neither_close_nor_prolong_it() {
    let breaker = CircuitBreaker::new(1, PAUSE);
    let [well, bad, last] = [(); 3].map(|()| breaker.enter(at(0)).unwrap());
    last.ended(&ill(), at(0));
    well.ended(&done(json!(1)), at(10));
    bad.ended(&ill(), at(20));
    assert_eq!(closed_for(&breaker, at(20)), Some(Millis::seconds(10)));
}

#[test]
fn a_clock_that_is_set_back_does_not_prolong_the_pause() {
    let breaker = CircuitBreaker::new(1, PAUSE);
    ends(&breaker, at(100_000), &ill());
    assert_eq!(closed_for(&breaker, at(50)), Some(PAUSE));
    assert_eq!(closed_for(&breaker, at(80)), None);
}

#[test]
fn the_report_shows_since_when_and_why() {
    let breaker = CircuitBreaker::new(1, PAUSE);
    assert_eq!(breaker.report(at(0)), BreakerReport::Closed { failures: 0 });
    ends(&breaker, at(5), &ill());
    let failure = breaker.enter(at(15)).map(drop).unwrap_err();
    assert_eq!(
        failure.message,
        "the circuit breaker is open for 10s, after 1 failures in a row, \
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
