//! How fast and how much one may ask.

use crate::harbour::{Harbour, notes, unhurried};
use rutter_server::api::Settings;
use rutter_server::api::pace::Rate;
use serde_json::json;

#[tokio::test]
async fn whoever_asks_too_fast_hears_when_to_come_again() {
    let slow = Rate { per_second: 1, burst: 3 };
    let harbour = Harbour::with("", Settings { look: slow, change: slow, ..unhurried() }).await;
    let client = harbour.agent();
    let answers = {
        let mut answers = Vec::new();
        for _ in 0..8 {
            answers.push(client.get("/plans").await);
        }
        answers
    };
    let first = &answers[0];
    assert_eq!(
        (first.status, first.header("ratelimit-limit"), first.header("ratelimit-remaining")),
        (200, "3", "2")
    );
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status != 200).collect();
    assert!(refused.len() >= 2, "eight at once are more than three and what time brought");
    for answer in refused {
        answer.refused(429, "server.rate_limited");
        assert!(answer.header("retry-after").parse::<u64>().unwrap() >= 1);
        assert_eq!(answer.body["retryable"], true);
    }
    assert_eq!(harbour.operator().get("/plans").await.status, 200, "others are not held up");
    let changed = client.post("/plans", json!({ "plan": notes("a", 1) })).await;
    assert_eq!(changed.status, 201, "changing is counted apart: {}", changed.text);
    assert_eq!(harbour.nobody().get("/version").await.header("ratelimit-limit"), "");
}
