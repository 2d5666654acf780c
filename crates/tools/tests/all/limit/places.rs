//! How many calls at once: just below each limit, at it and above it.

use crate::limit::crowd::{Crowd, TestWaiter, acquire, admit, limits, plain, settings};
use rutter_core::port::tools::{Admission, CallPermit};
use rutter_tools::config::{CallLimits, ToolSettings};
use rutter_tools::limit::CallLimiter;
use std::sync::Arc;

/// Admits one after the other until no permit is free.
fn fill(limiter: &CallLimiter, waiters: &[Arc<TestWaiter>], tool: &str) -> Vec<CallPermit> {
    waiters.iter().map_while(|waiter| acquire(limiter, tool, waiter)).collect()
}

#[test]
fn a_limit_of_zero_is_refused() {
    let read = |text: &str| toml_edit::de::from_str::<CallLimits>(text);
    for key in ["calls", "calls_per_tenant", "calls_per_server", "breaker_failures"] {
        let message = read(&format!("{key} = 0")).unwrap_err().to_string();
        assert!(message.contains("expected at least 1, got 0"), "{message}");
        assert!(read(&format!("{key} = 1")).is_ok());
    }
}

#[tokio::test]
async fn every_limit_holds_by_itself() {
    let wide = 100;
    let narrow = ToolSettings { concurrency: Some(3), ..ToolSettings::default() };
    let table = [
        (plain(3, wide, wide), "all"),
        (plain(wide, 3, wide), "a tenant"),
        (plain(wide, wide, 3), "a server"),
        (CallLimiter::new(&limits(wide, wide, wide), settings(None, narrow)), "a tool"),
    ];
    for (limiter, which) in table {
        let crowd = Crowd::default();
        let waiters = crowd.many("a", 50);
        let mut permits = fill(&limiter, &waiters, "s.t");
        assert_eq!((permits.len(), limiter.occupied()), (3, 3), "{which}");
        assert_eq!(crowd.woken(), Vec::<String>::new(), "{which}");
        // The waiter that found no permit is queued, and gets the one that becomes free.
        assert_eq!(limiter.queued(), 1, "{which}");
        permits.pop();
        assert_eq!(crowd.woken(), ["a3"], "{which}");
        assert_eq!((limiter.occupied(), limiter.queued()), (3, 0), "{which}");
    }
}

#[tokio::test]
async fn limits_hold_only_for_their_own() {
    let crowd = Crowd::default();
    let limiter = plain(10, 4, 2);
    let (of_a, of_b) = (crowd.many("a", 50), crowd.many("b", 50));
    let first = fill(&limiter, &of_a, "s.t");
    assert_eq!(first.len(), 2, "the server is full");
    let second = fill(&limiter, &of_a, "other.t");
    assert_eq!(second.len(), 2, "another server is not");
    assert_eq!(fill(&limiter, &of_a, "third.t").len(), 0, "now the tenant is at its limit");
    let third = fill(&limiter, &of_b, "third.t");
    assert_eq!(third.len(), 2, "another tenant is not");
    assert_eq!(fill(&limiter, &of_b, "s.t2").len(), 0, "tools of a server share its limit");
    assert_eq!(limiter.occupied(), 6);
}

#[tokio::test]
async fn one_freed_permit_helps_one_waiter_at_each_limit_and_no_more() {
    let crowd = Crowd::default();
    let limiter = plain(100, 1, 1);
    let permit_of_a = acquire(&limiter, "s.t", &crowd.one("a", 0, "a")).unwrap();
    // One waits for the tenant's limit only, one for the server's only, and one behind each.
    let waiters = [("other.t", "a"), ("other2.t", "a"), ("s.t", "b"), ("s.t", "c")]
        .map(|(tool, tenant)| (tool, crowd.one(tenant, 0, &format!("{tool} of {tenant}"))));
    for (tool, waiter) in &waiters {
        assert!(acquire(&limiter, tool, waiter).is_none());
    }
    drop(permit_of_a);
    assert_eq!(crowd.woken(), ["other.t of a", "s.t of b"]);
    assert_eq!(limiter.queued(), 2);
}

#[tokio::test]
async fn a_waiter_that_asks_repeatedly_is_queued_once() {
    let crowd = Crowd::default();
    let limiter = plain(1, 1, 1);
    let first = acquire(&limiter, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let second = crowd.one("a", 0, "second");
    for _ in 0..10 {
        assert!(matches!(admit(&limiter, "s.t", &second), Admission::Later));
    }
    assert_eq!(limiter.queued(), 1);
    drop(first);
    assert_eq!(second.woken(), 1);
    let permit_of_second = acquire(&limiter, "s.t", &second).unwrap();
    assert!(acquire(&limiter, "s.t", &second).is_none(), "one grant is one permit");
    drop(permit_of_second);
    assert_eq!(second.woken(), 2, "it was queued again");
}

#[tokio::test]
async fn fifty_thousand_are_queued_and_the_next_is_told_to_wait() {
    let crowd = Crowd::default();
    let limiter = plain(1, 1, 1);
    let _permit = acquire(&limiter, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let waiters = crowd.many("a", 50_001);
    for waiter in &waiters[..50_000] {
        assert!(matches!(admit(&limiter, "s.t", waiter), Admission::Later));
    }
    assert!(matches!(admit(&limiter, "s.t", &waiters[50_000]), Admission::After(_)));
    assert!(matches!(admit(&limiter, "s.t", &waiters[0]), Admission::Later), "a queued waiter may stay");
}
