//! How many calls at once: just below each limit, at it and above it.

use crate::crowd::{Crowd, Somebody, admit, berth, limits, plain, settings};
use rutter_core::port::tools::{Admission, Berth};
use rutter_tools::config::{Limits, ToolSettings};
use rutter_tools::limit::Quay;
use std::sync::Arc;

/// Admits one after the other until there is no room.
fn fill(quay: &Quay, everybody: &[Arc<Somebody>], tool: &str) -> Vec<Berth> {
    everybody.iter().map_while(|somebody| berth(quay, tool, somebody)).collect()
}

#[test]
fn a_limit_of_zero_is_refused() {
    let read = |text: &str| toml_edit::de::from_str::<Limits>(text);
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
        (Quay::new(&limits(wide, wide, wide), settings(None, narrow)), "a tool"),
    ];
    for (quay, which) in table {
        let crowd = Crowd::default();
        let everybody = crowd.many("a", 50);
        let mut berths = fill(&quay, &everybody, "s.t");
        assert_eq!((berths.len(), quay.occupied()), (3, 3), "{which}");
        assert_eq!(crowd.woken(), Vec::<String>::new(), "{which}");
        // The one that found no room stands in line, and gets the place that becomes free.
        assert_eq!(quay.standing(), 1, "{which}");
        berths.pop();
        assert_eq!(crowd.woken(), ["a3"], "{which}");
        assert_eq!((quay.occupied(), quay.standing()), (3, 0), "{which}");
    }
}

#[tokio::test]
async fn limits_hold_only_for_their_own() {
    let crowd = Crowd::default();
    let quay = plain(10, 4, 2);
    let (of_a, of_b) = (crowd.many("a", 50), crowd.many("b", 50));
    let first = fill(&quay, &of_a, "s.t");
    assert_eq!(first.len(), 2, "the server is full");
    let second = fill(&quay, &of_a, "other.t");
    assert_eq!(second.len(), 2, "another server is not");
    assert_eq!(fill(&quay, &of_a, "third.t").len(), 0, "now the tenant is at its limit");
    let third = fill(&quay, &of_b, "third.t");
    assert_eq!(third.len(), 2, "another tenant is not");
    assert_eq!(fill(&quay, &of_b, "s.t2").len(), 0, "tools of a server share its places");
    assert_eq!(quay.occupied(), 6);
}

#[tokio::test]
async fn one_freed_place_can_help_one_at_each_limit_and_no_more() {
    let crowd = Crowd::default();
    let quay = plain(100, 1, 1);
    let berth_of_a = berth(&quay, "s.t", &crowd.one("a", 0, "a")).unwrap();
    // One waits for the tenant's place only, one for the server's only, and one behind each.
    let everybody = [("other.t", "a"), ("other2.t", "a"), ("s.t", "b"), ("s.t", "c")]
        .map(|(tool, tenant)| (tool, crowd.one(tenant, 0, &format!("{tool} of {tenant}"))));
    for (tool, somebody) in &everybody {
        assert!(berth(&quay, tool, somebody).is_none());
    }
    drop(berth_of_a);
    assert_eq!(crowd.woken(), ["other.t of a", "s.t of b"]);
    assert_eq!(quay.standing(), 2);
}

#[tokio::test]
async fn who_asks_again_and_again_stands_in_line_once() {
    let crowd = Crowd::default();
    let quay = plain(1, 1, 1);
    let first = berth(&quay, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let second = crowd.one("a", 0, "second");
    for _ in 0..10 {
        assert!(matches!(admit(&quay, "s.t", &second), Admission::Later));
    }
    assert_eq!(quay.standing(), 1);
    drop(first);
    assert_eq!(second.woken(), 1);
    let berth_of_second = berth(&quay, "s.t", &second).unwrap();
    assert!(berth(&quay, "s.t", &second).is_none(), "one grant is one berth");
    drop(berth_of_second);
    assert_eq!(second.woken(), 2, "it stood in line again");
}

#[tokio::test]
async fn fifty_thousand_stand_in_line_and_the_next_is_sent_away() {
    let crowd = Crowd::default();
    let quay = plain(1, 1, 1);
    let _berth = berth(&quay, "s.t", &crowd.one("a", 0, "first")).unwrap();
    let everybody = crowd.many("a", 50_001);
    for somebody in &everybody[..50_000] {
        assert!(matches!(admit(&quay, "s.t", somebody), Admission::Later));
    }
    assert!(matches!(admit(&quay, "s.t", &everybody[50_000]), Admission::After(_)));
    assert!(matches!(admit(&quay, "s.t", &everybody[0]), Admission::Later), "who stands there may stay");
}
