//! So many calls per span: below the rate, at it and above it, on a clock that the test moves.

use crate::crowd::{Crowd, Somebody, berth, limits, settings};
use rutter_core::port::tools::Berth;
use rutter_core::time::Millis;
use rutter_tools::config::{Rate, ToolSettings};
use rutter_tools::limit::Quay;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const FIVE_A_SECOND: Rate = Rate { calls: 5, per: Millis::seconds(1) };

fn quay(server: Option<Rate>, tool: Option<Rate>) -> Quay {
    let tool = ToolSettings { rate: tool, ..ToolSettings::default() };
    Quay::new(&limits(10_000, 10_000, 10_000), settings(server, tool))
}

fn admitted(quay: &Quay, tool: &str, everybody: &[Arc<Somebody>]) -> Vec<Berth> {
    everybody.iter().filter_map(|somebody| berth(quay, tool, somebody)).collect()
}

#[test]
fn rates_are_written_as_people_say_them() {
    let read = |text: &str| serde_json::from_value::<Rate>(serde_json::json!(text));
    for (text, calls, seconds) in [("5/s", 5, 1), ("100/m", 100, 60), (" 20 / h ", 20, 3_600)] {
        assert_eq!(read(text).unwrap(), Rate { calls, per: Millis::seconds(seconds) });
    }
    for text in ["", "5", "0/s", "-1/s", "5/d", "s/5", "5 per s", "99999999999/s"] {
        let message = read(text).unwrap_err().to_string();
        assert!(message.contains("expected a rate such as `5/s`"), "{text}: {message}");
    }
}

#[tokio::test(start_paused = true)]
async fn as_many_at_once_as_the_rate_says_and_then_one_by_one() {
    for quay in [quay(Some(FIVE_A_SECOND), None), quay(None, Some(FIVE_A_SECOND))] {
        let crowd = Crowd::default();
        let everybody = crowd.many("a", 8);
        let berths = admitted(&quay, "s.t", &everybody);
        assert_eq!(berths.len(), 5);
        drop(berths);
        assert_eq!(crowd.woken(), Vec::<String>::new(), "free places do not help against a rate");
        sleep(Duration::from_millis(190)).await;
        assert_eq!(crowd.woken(), Vec::<String>::new());
        sleep(Duration::from_millis(20)).await;
        assert_eq!(crowd.woken(), ["a5"], "woken by time alone, and only one");
        sleep(Duration::from_millis(200)).await;
        assert_eq!(crowd.woken(), ["a6"]);
        assert!(berth(&quay, "s.t", &everybody[5]).is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn over_a_minute_no_more_calls_are_made_than_the_rate_allows() {
    let quay = quay(None, Some(FIVE_A_SECOND));
    let crowd = Crowd::default();
    let everybody = crowd.many("a", 1_000);
    let mut made = admitted(&quay, "s.t", &everybody).len();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        sleep(Duration::from_millis(50)).await;
        for name in crowd.woken() {
            let at: usize = name[1..].parse().unwrap();
            made += usize::from(berth(&quay, "s.t", &everybody[at]).is_some());
        }
    }
    assert!((300..=305).contains(&made), "{made} calls in a minute at five a second");
}

#[tokio::test(start_paused = true)]
async fn a_call_that_the_servers_rate_forbids_does_not_use_up_the_tools() {
    let slow = Rate { calls: 1, per: Millis::seconds(10) };
    let quay = quay(Some(slow), Some(Rate { calls: 2, per: Millis::seconds(1_000) }));
    let crowd = Crowd::default();
    let everybody = crowd.many("a", 3);
    assert_eq!(admitted(&quay, "s.t", &everybody).len(), 1);
    // Asked often meanwhile; the second of the tool's two calls must still be there when the server is ready.
    for _ in 0..90 {
        sleep(Duration::from_millis(100)).await;
        assert!(berth(&quay, "s.t", &everybody[1]).is_none());
    }
    sleep(Duration::from_millis(1_010)).await;
    assert_eq!(crowd.woken(), ["a1"]);
    assert!(berth(&quay, "s.t", &everybody[1]).is_some());
    sleep(Duration::from_secs(400)).await;
    assert_eq!(crowd.woken(), Vec::<String>::new(), "the tool's own rate is used up now");
    sleep(Duration::from_secs(110)).await;
    assert_eq!(crowd.woken(), ["a2"]);
}

#[tokio::test(start_paused = true)]
async fn a_rate_holds_up_only_its_own_tool() {
    let quay = quay(None, Some(Rate { calls: 1, per: Millis::hours(1) }));
    let crowd = Crowd::default();
    assert_eq!(admitted(&quay, "s.t", &crowd.many("a", 50)).len(), 1);
    assert_eq!(admitted(&quay, "s.other", &crowd.many("a", 50)).len(), 50);
}
