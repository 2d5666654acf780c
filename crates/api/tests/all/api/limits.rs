//! Rate limits.

use crate::api::harbour::{Harbour, notes, unhurried};
use rutter_api::ApiSettings;
use rutter_api::rate_limit::RequestRate;
use serde_json::json;

#[tokio::test]
async fn too_many_requests_are_refused_with_a_retry_after() {
    let slow = RequestRate { per_second: 1, burst: 3 };
    let harbour = Harbour::with("", ApiSettings { reads: slow, changes: slow, ..unhurried() }).await;
    let client = harbour.agent();
    let answers = {
        let mut answers = Vec::new();
        for _ in 0..8 {
            answers.push(client.get("/plans").await);
        }
        answers
    };
    let first = &answers[0];
    assert_eq!((first.status, first.header("ratelimit-limit"), first.header("ratelimit-remaining")), (200, "3", "2"));
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status != 200).collect();
    assert!(refused.len() >= 2, "eight at once exceed the burst of three and the refill");
    for answer in refused {
        answer.refused(429, "server.rate_limited");
        assert!(answer.header("retry-after").parse::<u64>().unwrap() >= 1);
        assert_eq!(answer.body["retryable"], true);
    }
    assert_eq!(harbour.operator().get("/plans").await.status, 200, "other principals are not limited");
    let changed = client.post("/plans", json!({ "plan": notes("a", 1) })).await;
    assert_eq!(changed.status, 201, "changes are counted separately: {}", changed.text);
    assert_eq!(harbour.nobody().get("/version").await.header("ratelimit-limit"), "");
}
