//! Who is next: tenants in turns, within a tenant by priority and then by who came first.

use crate::crowd::{Crowd, Somebody, berth, plain};
use rutter_core::port::tools::Berth;
use rutter_tools::limit::Quay;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Lets go of one berth after the other, each time giving the place to who is woken, until nobody stands in line.
fn serve(
    quay: &Quay,
    crowd: &Crowd,
    mut held: Berth,
    everybody: &HashMap<String, (&str, Arc<Somebody>)>,
) -> Vec<String> {
    let mut served = Vec::new();
    loop {
        drop(held);
        let woken = crowd.woken();
        assert!(woken.len() <= 1, "one freed place woke {woken:?}");
        let Some(name) = woken.into_iter().next() else { return served };
        let (tool, somebody) = &everybody[&name];
        held = berth(quay, tool, somebody).unwrap();
        served.push(name);
    }
}

fn stand<'a>(
    quay: &Quay,
    line: impl IntoIterator<Item = (&'a str, String, Arc<Somebody>)>,
) -> HashMap<String, (&'a str, Arc<Somebody>)> {
    let stand = |(tool, name, somebody): (&'a str, String, Arc<Somebody>)| {
        assert!(berth(quay, tool, &somebody).is_none());
        (name, (tool, somebody))
    };
    line.into_iter().map(stand).collect()
}

#[tokio::test]
async fn a_tenant_with_one_applicant_does_not_wait_for_a_tenant_with_a_thousand() {
    let crowd = Crowd::default();
    let quay = plain(1, 1, 1);
    let held = berth(&quay, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let thousand = crowd.many("a", 1_000).into_iter().enumerate();
    let mut line: Vec<_> = thousand.map(|(at, somebody)| ("s.t", format!("a{at}"), somebody)).collect();
    line.push(("s.t", "b".to_owned(), crowd.one("b", 0, "b")));
    let everybody = stand(&quay, line);
    let served = serve(&quay, &crowd, held, &everybody);
    assert_eq!(served.len(), 1_001);
    assert_eq!(served[..3], ["a0", "b", "a1"]);
    assert_eq!(served[1_000], "a999");
}

#[tokio::test]
async fn tenants_take_turns_over_all_tools_when_only_the_total_is_short() {
    let crowd = Crowd::default();
    let quay = plain(1, 10, 10);
    let held = berth(&quay, "s.t", &crowd.one("z", 0, "first")).unwrap();
    // One tenant asks for three tools, the other for one: both get every second place.
    let line = [("x.t", "a0"), ("y.t", "a1"), ("z.t", "a2"), ("x.t", "b0"), ("x.t", "b1"), ("x.t", "b2")];
    let line = line.map(|(tool, name)| (tool, name.to_owned(), crowd.one(&name[..1], 0, name)));
    let everybody = stand(&quay, line);
    assert_eq!(serve(&quay, &crowd, held, &everybody), ["a0", "b0", "a1", "b1", "a2", "b2"]);
}

#[tokio::test]
async fn within_a_tenant_priority_comes_before_time_also_across_tools() {
    let crowd = Crowd::default();
    let quay = plain(1, 10, 10);
    let held = berth(&quay, "s.t", &crowd.one("z", 0, "first")).unwrap();
    let line = [
        ("x.t", 0, "low"),
        ("x.t", 5, "high"),
        ("y.t", 9, "higher"),
        ("y.t", 0, "low too"),
        ("x.t", -3, "last"),
    ];
    let line = line.map(|(tool, priority, name)| (tool, name.to_owned(), crowd.one("a", priority, name)));
    let everybody = stand(&quay, line);
    assert_eq!(serve(&quay, &crowd, held, &everybody), ["higher", "high", "low", "low too", "last"]);
}

#[tokio::test]
async fn a_high_priority_does_not_help_against_other_tenants() {
    let crowd = Crowd::default();
    let quay = plain(1, 1, 1);
    let held = berth(&quay, "s.t", &crowd.one("z", 0, "first")).unwrap();
    let line = [("a", 0, "a0"), ("b", 100, "b0"), ("b", 100, "b1"), ("a", 0, "a1")];
    let line =
        line.map(|(tenant, priority, name)| ("s.t", name.to_owned(), crowd.one(tenant, priority, name)));
    let everybody = stand(&quay, line);
    assert_eq!(serve(&quay, &crowd, held, &everybody), ["a0", "b0", "a1", "b1"]);
}

/// What one grant costs while so many stand in line, by the best of a few measurements.
fn cost_of_a_grant(waiting: usize, tenants: usize) -> Duration {
    let crowd = Crowd::default();
    let quay = plain(8, 4, 8);
    let mut held: Vec<Berth> = (0..8)
        .map(|at| berth(&quay, "s.t", &crowd.one(&format!("first {}", at % 2), 0, "first")).unwrap())
        .collect();
    let everybody: HashMap<String, Arc<Somebody>> = (0..waiting)
        .map(|at| (format!("{at}"), crowd.one(&format!("tenant {}", at % tenants), 0, &format!("{at}"))))
        .collect();
    for somebody in everybody.values() {
        assert!(berth(&quay, "s.t", somebody).is_none());
    }
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let began = Instant::now();
        for _ in 0..50 {
            drop(held.pop());
            let woken = crowd.woken();
            assert_eq!(woken.len(), 1, "one freed place wakes one");
            held.push(berth(&quay, "s.t", &everybody[&woken[0]]).unwrap());
        }
        best = best.min(began.elapsed() / 50);
    }
    best
}

#[tokio::test]
async fn a_grant_costs_the_same_however_many_stand_in_line() {
    for tenants in [1, 7, 100_000] {
        let few = cost_of_a_grant(300, tenants);
        let many = cost_of_a_grant(10_000, tenants);
        println!("{tenants} tenants: a grant takes {few:?} of 300, {many:?} of 10,000");
        assert!(many < few * 8 + Duration::from_micros(50), "{few:?} with 300, {many:?} with 10,000 in line");
    }
}
