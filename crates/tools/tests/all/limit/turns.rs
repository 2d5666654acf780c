//! Who is next: tenants in turns, within a tenant by priority and then by arrival.

use crate::limit::crowd::{Crowd, TestWaiter, acquire, plain};
use rutter_core::port::tools::CallPermit;
use rutter_tools::limit::CallLimiter;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Releases one permit after the other, each time to the waiter that is woken, until the queue is empty.
fn serve(
    limiter: &CallLimiter,
    crowd: &Crowd,
    mut held: CallPermit,
    waiters: &HashMap<String, (&str, Arc<TestWaiter>)>,
) -> Vec<String> {
    let mut served = Vec::new();
    loop {
        drop(held);
        let woken = crowd.woken();
        assert!(woken.len() <= 1, "one freed permit woke {woken:?}");
        let Some(name) = woken.into_iter().next() else { return served };
        let (tool, waiter) = &waiters[&name];
        held = acquire(limiter, tool, waiter).unwrap();
        served.push(name);
    }
}

fn enqueue_all<'a>(
    limiter: &CallLimiter,
    line: impl IntoIterator<Item = (&'a str, String, Arc<TestWaiter>)>,
) -> HashMap<String, (&'a str, Arc<TestWaiter>)> {
    let stand = |(tool, name, waiter): (&'a str, String, Arc<TestWaiter>)| {
        assert!(acquire(limiter, tool, &waiter).is_none());
        (name, (tool, waiter))
    };
    line.into_iter().map(stand).collect()
}

#[tokio::test]
async fn a_tenant_with_one_waiter_does_not_wait_for_a_tenant_with_a_thousand() {
    let crowd = Crowd::default();
    let limiter = plain(1, 1, 1);
    let held = acquire(&limiter, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let thousand = crowd.many("a", 1_000).into_iter().enumerate();
    let mut line: Vec<_> = thousand.map(|(at, waiter)| ("s.t", format!("a{at}"), waiter)).collect();
    line.push(("s.t", "b".to_owned(), crowd.one("b", 0, "b")));
    let waiters = enqueue_all(&limiter, line);
    let served = serve(&limiter, &crowd, held, &waiters);
    assert_eq!(served.len(), 1_001);
    assert_eq!(served[..3], ["a0", "b", "a1"]);
    assert_eq!(served[1_000], "a999");
}

#[tokio::test]
async fn tenants_take_turns_over_all_tools_when_only_the_total_is_short() {
    let crowd = Crowd::default();
    let limiter = plain(1, 10, 10);
    let held = acquire(&limiter, "s.t", &crowd.one("z", 0, "first")).unwrap();
    // One tenant asks for three tools, the other for one: both get every second permit.
    let line = [("x.t", "a0"), ("y.t", "a1"), ("z.t", "a2"), ("x.t", "b0"), ("x.t", "b1"), ("x.t", "b2")];
    let line = line.map(|(tool, name)| (tool, name.to_owned(), crowd.one(&name[..1], 0, name)));
    let waiters = enqueue_all(&limiter, line);
    assert_eq!(serve(&limiter, &crowd, held, &waiters), ["a0", "b0", "a1", "b1", "a2", "b2"]);
}

#[tokio::test]
async fn within_a_tenant_priority_comes_before_time_also_across_tools() {
    let crowd = Crowd::default();
    let limiter = plain(1, 10, 10);
    let held = acquire(&limiter, "s.t", &crowd.one("z", 0, "first")).unwrap();
    let line =
        [("x.t", 0, "low"), ("x.t", 5, "high"), ("y.t", 9, "higher"), ("y.t", 0, "low too"), ("x.t", -3, "last")];
    let line = line.map(|(tool, priority, name)| (tool, name.to_owned(), crowd.one("a", priority, name)));
    let waiters = enqueue_all(&limiter, line);
    assert_eq!(serve(&limiter, &crowd, held, &waiters), ["higher", "high", "low", "low too", "last"]);
}

#[tokio::test]
async fn a_high_priority_does_not_help_against_other_tenants() {
    let crowd = Crowd::default();
    let limiter = plain(1, 1, 1);
    let held = acquire(&limiter, "s.t", &crowd.one("z", 0, "first")).unwrap();
    let line = [("a", 0, "a0"), ("b", 100, "b0"), ("b", 100, "b1"), ("a", 0, "a1")];
    let line = line.map(|(tenant, priority, name)| ("s.t", name.to_owned(), crowd.one(tenant, priority, name)));
    let waiters = enqueue_all(&limiter, line);
    assert_eq!(serve(&limiter, &crowd, held, &waiters), ["a0", "b0", "a1", "b1"]);
}

/// The cost of one grant while so many are queued, by the best of a few measurements.
fn cost_of_a_grant(waiting: usize, tenants: usize) -> Duration {
    let crowd = Crowd::default();
    let limiter = plain(8, 4, 8);
    let mut held: Vec<CallPermit> = (0..8)
        .map(|at| acquire(&limiter, "s.t", &crowd.one(&format!("first {}", at % 2), 0, "first")).unwrap())
        .collect();
    let waiters: HashMap<String, Arc<TestWaiter>> = (0..waiting)
        .map(|at| (format!("{at}"), crowd.one(&format!("tenant {}", at % tenants), 0, &format!("{at}"))))
        .collect();
    for waiter in waiters.values() {
        assert!(acquire(&limiter, "s.t", waiter).is_none());
    }
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        for _ in 0..50 {
            drop(held.pop());
            let woken = crowd.woken();
            assert_eq!(woken.len(), 1, "one freed permit wakes one");
            held.push(acquire(&limiter, "s.t", &waiters[&woken[0]]).unwrap());
        }
        best = best.min(began.elapsed() / 50);
    }
    best
}

#[tokio::test]
async fn a_grant_costs_the_same_however_many_are_queued() {
    for tenants in [1, 7, 100_000] {
        let few = cost_of_a_grant(300, tenants);
        let many = cost_of_a_grant(10_000, tenants);
        println!("{tenants} tenants: a grant takes {few:?} of 300, {many:?} of 10,000");
        assert!(many < few * 8 + Duration::from_micros(50), "{few:?} with 300, {many:?} with 10,000 queued");
    }
}
