//! So many calls per span: below the rate, at it and above it, on a clock that the test moves.

use crate::limit::crowd::{Crowd, TestWaiter, acquire, limits, settings};
use rutter_core::port::tools::CallPermit;
use rutter_core::time::Millis;
use rutter_tools::config::{CallRate, ToolSettings};
use rutter_tools::limit::CallLimiter;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const FIVE_A_SECOND: CallRate = CallRate { calls: 5, per: Millis::seconds(1) };

fn limiter_with(server: Option<CallRate>, tool: Option<CallRate>) -> CallLimiter {
    let tool = ToolSettings { rate: tool, ..ToolSettings::default() };
    CallLimiter::new(&limits(10_000, 10_000, 10_000), settings(server, tool))
}

fn admitted(limiter: &CallLimiter, tool: &str, waiters: &[Arc<TestWaiter>]) -> Vec<CallPermit> {
    waiters.iter().filter_map(|waiter| acquire(limiter, tool, waiter)).collect()
}

#[test]
fn rates_are_read_from_text() {
    let read = |text: &str| serde_json::from_value::<CallRate>(serde_json::json!(text));
    for (text, calls, seconds) in [("5/s", 5, 1), ("100/m", 100, 60), (" 20 / h ", 20, 3_600)] {
        assert_eq!(read(text).unwrap(), CallRate { calls, per: Millis::seconds(seconds) });
    }
    for text in ["", "5", "0/s", "-1/s", "5/d", "s/5", "5 per s", "99999999999/s"] {
        let message = read(text).unwrap_err().to_string();
        assert!(message.contains("expected a rate such as `5/s`"), "{text}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_up_to_the_rate_and_then_one_by_one() {
    for limiter in [limiter_with(Some(FIVE_A_SECOND), None), limiter_with(None, Some(FIVE_A_SECOND))] {
        let crowd = Crowd::default();
        let waiters = crowd.many("a", 8);
        let permits = admitted(&limiter, "s.t", &waiters);
        assert_eq!(permits.len(), 5);
        drop(permits);
        assert_eq!(crowd.woken(), Vec::<String>::new(), "free permits do not help against a rate");
        sleep(Duration::from_millis(190)).await;
        assert_eq!(crowd.woken(), Vec::<String>::new());
        sleep(Duration::from_millis(20)).await;
        assert_eq!(crowd.woken(), ["a5"], "woken by time alone, and only one");
        sleep(Duration::from_millis(200)).await;
        assert_eq!(crowd.woken(), ["a6"]);
        assert!(acquire(&limiter, "s.t", &waiters[5]).is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn over_a_minute_no_more_calls_are_made_than_the_rate_allows() {
    let limiter = limiter_with(None, Some(FIVE_A_SECOND));
    let crowd = Crowd::default();
    let waiters = crowd.many("a", 1_000);
    let mut made = admitted(&limiter, "s.t", &waiters).len();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(50)).await;
        for name in crowd.woken() {
            let at: usize = name[1..].parse().unwrap();
            made += usize::from(acquire(&limiter, "s.t", &waiters[at]).is_some());
        }
    }
    assert!((300..=305).contains(&made), "{made} calls in a minute at five a second");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_servers_rate_forbids_does_not_use_up_the_tools() {
    let slow = CallRate { calls: 1, per: Millis::seconds(10) };
    let limiter = limiter_with(Some(slow), Some(CallRate { calls: 2, per: Millis::seconds(1_000) }));
    let crowd = Crowd::default();
    let waiters = crowd.many("a", 3);
    assert_eq!(admitted(&limiter, "s.t", &waiters).len(), 1);
    // Asked often meanwhile; the second of the tool's two calls must still be there when the server is ready.
    for _ in 0..90 {
        sleep(Duration::from_millis(100)).await;
        assert!(acquire(&limiter, "s.t", &waiters[1]).is_none());
    }
    sleep(Duration::from_millis(1_010)).await;
    assert_eq!(crowd.woken(), ["a1"]);
    assert!(acquire(&limiter, "s.t", &waiters[1]).is_some());
    sleep(Duration::from_secs(400)).await;
    assert_eq!(crowd.woken(), Vec::<String>::new(), "the tool's own rate is used up now");
    sleep(Duration::from_secs(110)).await;
    assert_eq!(crowd.woken(), ["a2"]);
}

#[tokio::test(start_paused = true)]
async fn a_rate_delays_only_its_own_tool() {
    let limiter = limiter_with(None, Some(CallRate { calls: 1, per: Millis::hours(1) }));
    let crowd = Crowd::default();
    assert_eq!(admitted(&limiter, "s.t", &crowd.many("a", 50)).len(), 1);
    assert_eq!(admitted(&limiter, "s.other", &crowd.many("a", 50)).len(), 50);
}
