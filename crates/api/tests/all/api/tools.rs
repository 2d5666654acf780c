//! Tools and servers: listed, shown, called, reset.

use crate::api::harbour::{Harbour, unhurried};
use rutter_app::auth::AccessScope;
use serde_json::json;

#[tokio::test]
async fn tools_are_listed_and_shown_with_their_schemas() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let all = client.get("/tools?server=memory").await.good();
    let names: Vec<&str> = all["items"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["memory.recent", "memory.search", "memory.store"]);
    let first = client.get("/tools?server=memory&limit=2").await.good();
    let next =
        client.get(&format!("/tools?server=memory&cursor={}", first["next_cursor"].as_str().unwrap())).await.good();
    assert_eq!(next["items"][0]["name"], "memory.store");
    assert!(next.get("next_cursor").is_none());
    let found = client.get("/tools?text=keep%20a%20text%20for%20later&limit=1").await.good();
    assert_eq!(found["items"][0]["name"], "memory.store");
    let tool = client.get("/tools/memory.store").await.good();
    assert_eq!(tool["input"]["required"], json!(["text"]));
    let missing = client.get("/tools/memory.stor").await;
    missing.refused(404, "store.not_found");
    assert!(missing.body["hint"].as_str().unwrap().contains("memory.store"));
    client.get("/tools/nothing").await.refused(404, "store.not_found");
    client.get("/tools?cursor=x").await.refused(400, "server.arguments");
}

#[tokio::test]
async fn a_tool_is_tried_out_as_a_plan_of_one_step() {
    let harbour = Harbour::new().await;
    let client = harbour.with_key("admin", &[AccessScope::Read, AccessScope::Admin]).await;
    let body = json!({ "parameters": { "text": "{{ not an expression }}" }, "reason": "curious" });
    let tried = client.post_with("/tools/memory.store/call", "idempotency-key", "t-1", body.clone()).await;
    assert_eq!((tried.status, &tried.body["status"]), (201, &json!("completed")), "{}", tried.text);
    let again = client.post_with("/tools/memory.store/call", "idempotency-key", "t-1", body).await;
    assert_eq!(again.body["execution_id"], tried.body["execution_id"]);
    client
        .post("/tools/memory.store/call", json!({ "parameters": {}, "reason": "x" }))
        .await
        .refused(422, "engine.plan");
    client.post("/tools/memory.nothing/call", json!({ "reason": "x" })).await.refused(404, "store.not_found");
    client
        .post("/tools/memory.store/call", json!({ "parameters": { "text": "x" }, "reason": " " }))
        .await
        .refused(400, "command.reason_missing");
}

#[tokio::test]
async fn the_breaker_of_a_failing_server_can_be_reset() {
    let config = "[http.depot]\nbase = \"http://127.0.0.1:1\"\nallow = [\"127.0.0.1\"]\n\
                  [http.depot.tools.fetch]\npath = \"/fetch\"\n";
    let harbour = Harbour::with(config, unhurried()).await;
    let operator = harbour.operator();
    let servers = operator.get("/servers").await.good();
    let depot = servers["items"].as_array().unwrap().iter().find(|server| server["server"] == "depot").unwrap();
    assert_eq!(depot["breaker"]["state"], "closed");
    assert_eq!(operator.post("/servers/depot/reset", json!({})).await.good()["is_reset"], true);
    operator.post("/servers/nowhere/reset", json!({})).await.refused(404, "store.not_found");
}
