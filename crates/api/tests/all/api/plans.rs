//! Plans: saved, found, compared, checked.

use crate::api::harbour::{Harbour, approved, notes};
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_plan_is_saved_found_and_read_back() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let mut plan = notes("ropes", 3);
    plan["tags"] = json!(["deck"]);
    let saved = client.post("/plans", json!({ "plan": plan })).await;
    assert_eq!(saved.status, 201, "{}", saved.text);
    let id = saved.body["plan_id"].as_str().unwrap();
    assert_eq!(saved.header("location"), format!("/api/v1/plans/{id}"));
    assert_eq!((&saved.body["revision"], &saved.body["steps_count"]), (&json!(1), &json!(3)));

    let again = client.post("/plans", json!({ "plan": plan })).await;
    assert_eq!((again.status, &again.body["plan_id"]), (200, &saved.body["plan_id"]), "the same source is saved once");

    let json = client.get(&format!("/plans/{id}")).await.good();
    assert_eq!((&json["name"], &json["tags"], &json["steps"]), (&json!("ropes"), &json!(["deck"]), &json!(3)));
    assert_eq!(serde_json::from_str::<serde_json::Value>(json["source"].as_str().unwrap()).unwrap(), plan);
    assert_eq!(json["tools"], json!(["memory.store"]));
    assert!(json["saved_at"].as_str().unwrap().ends_with('Z'));

    for (query, count) in [("name=ropes", 1), ("tag=deck", 1), ("text=numbers", 1), ("name=sails", 0)] {
        let found = client.get(&format!("/plans?{query}")).await.good();
        assert_eq!(found["items"].as_array().unwrap().len(), count, "{query}");
    }
    client.get("/plans/plan_nowhere").await.refused(404, "store.not_found");
}

#[tokio::test]
async fn revisions_are_listed_and_compared() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let id = client.post("/plans", json!({ "plan": notes("log", 1) })).await.good()["plan_id"].clone();
    for steps in 2..=25 {
        let saved = client.post("/plans", json!({ "plan": notes("log", steps), "plan_id": id })).await;
        assert_eq!((saved.status, &saved.body["revision"]), (201, &json!(steps)));
    }
    let stale = json!({ "plan": notes("log", 9), "plan_id": id, "expected_revision": 3 });
    client.post("/plans", stale).await.refused(409, "store.conflict");
    let path = format!("/plans/{}", id.as_str().unwrap());

    let first = client.get(&format!("{path}/revisions")).await;
    let link = first.header("link").to_owned();
    let first = first.good();
    let next = link.strip_prefix('<').unwrap().split('>').next().unwrap();
    let rest = client.get(next).await.good();
    let revisions = |page: &serde_json::Value| -> Vec<u64> {
        page["items"].as_array().unwrap().iter().map(|item| item["revision"].as_u64().unwrap()).collect()
    };
    let all = [revisions(&first), revisions(&rest)].concat();
    assert_eq!(all, (1..=25).rev().collect::<Vec<u64>>());
    assert!(rest.get("next_cursor").is_none());

    let third = client.get(&format!("{path}/revisions/3")).await.good();
    assert_eq!((&third["revision"], &third["steps"]), (&json!(3), &json!(3)));
    client.get(&format!("{path}/revisions/99")).await.refused(404, "store.not_found");
    client.get(&format!("{path}/revisions/x")).await.refused(404, "store.not_found");

    let diff = client.get(&format!("{path}/diff?from=2&to=4")).await.good();
    assert_eq!(diff["added"], json!(["s2", "s3"]));
    assert_eq!(diff["unchanged"], json!(["s0", "s1"]));
    let newest = client.get(&format!("{path}/diff")).await.good();
    assert_eq!((&newest["from"], &newest["to"], &newest["added"]), (&json!(24), &json!(25), &json!(["s24"])));
    client.get(&format!("{path}/diff?from=0x1")).await.refused(400, "server.arguments");
}

#[tokio::test]
async fn mistakes_are_reported_at_once_and_nothing_is_saved() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let wrong = json!({ "name": "wrong", "steps": [
        { "id": "a", "tool": "memory.stor", "parameters": { "text": "x" } },
        { "id": "b", "tool": "memory.store", "depends_on": ["c"], "parameters": { "text": 1 } } ] });
    let refused = client.post("/plans", json!({ "plan": wrong })).await;
    refused.refused(422, "engine.plan");
    let found = refused.body["details"]["diagnostics"].as_array().unwrap();
    assert!(found.len() >= 3, "{}", refused.text);
    let checked = client.post("/plans/check", json!({ "plan": wrong })).await.good();
    assert_eq!(checked["is_accepted"], false);
    assert_eq!(checked["diagnostics"].as_array().unwrap().len(), found.len());
    assert_eq!(client.get("/plans").await.good()["items"], json!([]));

    let good = client.post("/plans/check", json!({ "plan": notes("x", 1) })).await.good();
    assert_eq!(good["is_accepted"], true);
    let dry = client.post("/plans", json!({ "plan": notes("x", 1), "dry_run": true })).await;
    assert_eq!((dry.status, dry.body.get("plan_id")), (200, None));
    assert_eq!(client.get("/plans").await.good()["items"], json!([]));
}

#[tokio::test]
async fn bodies_and_queries_are_validated_strictly() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    client.post("/plans", json!({ "plan": notes("x", 1), "plam_id": "y" })).await.refused(400, "server.arguments");
    client.post("/plans", json!([1])).await.refused(400, "server.arguments");
    client.get("/plans?nmae=x").await.refused(400, "server.arguments");
    client.get("/plans?limit=0").await.refused(400, "server.arguments");
    client.get("/plans?limit=101").await.refused(400, "server.arguments");
    client.get("/plans?limit=many").await.refused(400, "server.arguments");
    client.get("/plans?cursor=nonsense").await.refused(400, "store.invalid");
    let post = || client.request(reqwest::Method::POST, "/plans");
    let heard = crate::api::harbour::heard;
    heard(post().header("content-type", "application/json").body("{")).await.refused(400, "server.arguments");
    heard(post().header("content-type", "text/plain").body("{}")).await.refused(415, "server.media_type");
    heard(post().body("{}")).await.refused(415, "server.media_type");
    let large = "x".repeat(5 << 20);
    let large = heard(post().header("content-type", "application/json").body(large)).await;
    large.refused(413, "server.arguments");
    // Without a Content-Length, the size is counted while the body arrives.
    let pieces = futures::stream::iter((0..5).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1 << 20])));
    let streamed = reqwest::Body::wrap_stream(pieces);
    let streamed = heard(post().header("content-type", "application/json").body(streamed)).await;
    streamed.refused(413, "server.too_large");
    let put = heard(client.request(reqwest::Method::PUT, "/plans")).await;
    put.refused(405, "server.method");
    assert_eq!(put.header("allow"), "POST, GET");
    client.get("/plaans").await.refused(404, "server.no_route");
}

#[tokio::test]
async fn a_preview_shows_what_can_be_undone() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let id = client.post("/plans", json!({ "plan": notes("x", 2) })).await.good()["plan_id"].clone();
    let preview = client.get(&format!("/plans/{}/preview", id.as_str().unwrap())).await.good();
    assert_eq!(preview["point_of_no_return"]["step"], "s0");
    assert_eq!(preview["critical_path"], json!(["s0", "s1"]));
    assert_eq!(preview["steps"][1]["what_if"]["completed"], json!(["s0"]));
}

#[tokio::test]
async fn a_forecast_comes_from_history_and_is_empty_without_one() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let id = client.post("/plans", json!({ "plan": notes("x", 2) })).await.good()["plan_id"].clone();
    let path = format!("/plans/{}/preview", id.as_str().unwrap());
    let ahead = client.get(&path).await.good()["forecast"].clone();
    assert_eq!(
        ahead,
        json!({ "text": "no history of s0, s1", "ended": 0, "completed": 0,
        "unknown_steps": ["s0", "s1"] })
    );

    let execution = client.execute(&notes("x", 2)).await["execution_id"].clone();
    let ahead = loop {
        let ahead = client.get(&path).await.good()["forecast"].clone();
        if ahead["completed"] == 1 {
            break ahead;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let chance = ahead["chance_percent"].as_f64().unwrap();
    assert!((60.0..99.0).contains(&chance), "{ahead}");
    assert!(ahead["expected_ms"].as_u64() <= ahead["p95_ms"].as_u64() && ahead["p95_ms"].is_u64(), "{ahead}");
    assert!(ahead.get("riskiest").is_none(), "nothing has failed: {ahead}");
    let text = ahead["text"].as_str().unwrap();
    assert!(text.starts_with("completes in ") && text.ends_with("1 of 1 executions completed before"), "{text}");
    let ended = client.get(&format!("/executions/{}/preview", execution.as_str().unwrap())).await.good();
    assert!(ended.get("forecast").is_none(), "{ended}");

    // Its tool has a history, its approval does not.
    let waiting = client.execute(&approved("y")).await;
    assert_eq!(waiting["status"], "waiting", "{waiting}");
    let path = format!("/executions/{}/preview", waiting["execution_id"].as_str().unwrap());
    let ahead = client.get(&path).await.good()["forecast"].clone();
    assert_eq!((&ahead["ended"], &ahead["untimed_approvals"]), (&json!(0), &json!(["pay"])), "{ahead}");
    assert!(ahead["text"].as_str().unwrap().starts_with("completes from here in "), "{ahead}");
}
