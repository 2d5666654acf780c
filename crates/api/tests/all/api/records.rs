//! Executions driven by an agent: recorded step by step, replanned, handed back.

use crate::api::harbour::{Harbour, approved, notes};
use serde_json::{Value, json};

async fn entries(client: &crate::api::harbour::Client, id: &str, kind: &str) -> usize {
    let found = client.get(&format!("/executions/{id}/journal?kinds={kind}")).await.good();
    found["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn an_agent_records_what_it_did() {
    let harbour = Harbour::new().await;
    let client = harbour.agent();
    let plan = json!({ "name": "mine", "steps": [
        { "id": "a", "tool": "agent.do", "cancellable": "reversible", "compensation": { "tool": "agent.undo" } },
        { "id": "b", "tool": "agent.do", "depends_on": ["a"], "cancellable": "irreversible" } ] });
    let started = client.post("/executions", json!({ "plan": plan, "driver": "agent" })).await.good();
    assert_eq!((&started["driver"], &started["status"]), (&json!("agent"), &json!("running")));
    let id = started["execution_id"].as_str().unwrap();
    let path = format!("/executions/{id}/records");
    let record = |body: Value| client.post(&path, body);

    let step = json!({ "step": { "step_id": "a", "status": "completed", "result": { "ok": true } } });
    for _ in 0..3 {
        let recorded = client.post_with(&path, "idempotency-key", "a-done", step.clone()).await;
        assert_eq!((recorded.status, &recorded.body["done"]), (201, &json!(1)), "{}", recorded.text);
    }
    assert_eq!(entries(&client, id, "attempt_succeeded").await, 1);
    let decided = json!({ "decision": { "action": "continue", "reason": "all is well" } });
    assert_eq!(record(decided).await.status, 201);
    let acted = json!({ "action": { "action_type": "notified", "description": "told the harbour master" } });
    assert_eq!(record(acted).await.status, 201);
    record(json!({ "action": { "action_type": "notified", "description": "x", "step_id": "z" } }))
        .await
        .refused(404, "execution.unknown_part");
    record(json!({ "step": { "step_id": "b", "status": "completed", "error": "x" } }))
        .await
        .refused(400, "server.arguments");
    record(json!({ "step": { "step_id": "b" } })).await.refused(400, "server.arguments");
    record(json!({ "leap": {} })).await.refused(400, "server.arguments");
    let failed = json!({ "step": { "step_id": "b", "status": "failed", "error": "no wind" } });
    let json = record(failed).await.good();
    assert_eq!(json["questions"][0]["kind"], "failure", "{json}");
    let stop = json!({ "decision": { "action": "stop", "reason": "no wind" } });
    let stopped = record(stop).await.good();
    assert_eq!(stopped["status"], "cancelled");
    let undone = json!({ "compensation": { "step_id": "a", "reason": "not wanted", "action_taken": "undid it" } });
    assert_eq!(record(undone.clone()).await.status, 201);
    assert_eq!(entries(&client, id, "compensation_recorded").await, 1);
    assert_eq!(record(undone).await.status, 409, "it is already undone");
}

#[tokio::test]
async fn an_agent_that_looks_gives_a_sign_of_life_once_in_half_of_its_lease() {
    let harbour = Harbour::new().await;
    let agent = harbour.agent();
    let plan = json!({ "name": "mine", "agent_timeout": "4s", "steps": [{ "id": "a", "tool": "agent.do" }] });
    let started = agent.post("/executions", json!({ "plan": plan, "driver": "agent" })).await.good();
    let id = started["execution_id"].as_str().unwrap();
    let path = format!("/executions/{id}");
    let etag = agent.get(&path).await.header("etag").to_owned();
    assert_eq!(entries(&agent, id, "agent_seen").await, 0, "its lease has just begun");
    tokio::time::sleep(std::time::Duration::from_millis(2_100)).await;
    let operator = harbour.operator();
    operator.get(&path).await.good();
    assert_eq!(entries(&operator, id, "agent_seen").await, 0, "another person's look says nothing of the agent");
    for _ in 0..2 {
        // Also where the answer would have been "unchanged".
        agent.get_with(&path, "if-none-match", &etag).await;
        assert_eq!(entries(&operator, id, "agent_seen").await, 1);
    }
}

#[tokio::test]
async fn another_plan_is_shown_as_a_diff_and_then_followed() {
    let harbour = Harbour::new().await;
    let client = harbour.operator();
    let execution = client.execute(&approved("ask")).await;
    let id = execution["execution_id"].as_str().unwrap();
    let path = format!("/executions/{id}/replan");
    let plan = notes("ask", 2);
    client.post(&path, json!({ "plan": plan, "reason": " " })).await.refused(400, "command.reason_missing");
    let dry = client.post(&path, json!({ "plan": plan, "reason": "no money", "dry_run": true })).await.good();
    assert_eq!(dry["is_applied"], false);
    assert!(dry["diff"].as_array().unwrap().contains(&json!("- pay")), "{dry}");
    let stale = json!({ "plan": plan, "reason": "no money" });
    client.post_with(&path, "if-match", "\"1\"", stale.clone()).await.refused(412, "server.precondition");
    let changed = client.post_with(&path, "idempotency-key", "replan-1", stale.clone()).await.good();
    assert_eq!((&changed["is_applied"], &changed["revision"]), (&json!(true), &json!(2)));
    let done = client.get(&format!("/executions/{id}?wait=45")).await.good();
    assert_eq!((&done["status"], &done["plan"]["revision"]), (&json!("completed"), &json!(2)));
    assert_eq!(entries(&client, id, "replanned").await, 1);
    let again = client.post_with(&path, "idempotency-key", "replan-1", stale.clone()).await.good();
    assert_eq!((&again["is_applied"], &again["revision"]), (&json!(true), &json!(2)), "also after the end");
    let mut other = stale.clone();
    other["reason"] = json!("another one");
    let refused = client.post_with(&path, "idempotency-key", "replan-1", other).await;
    assert!(refused.text.contains(id), "{}", refused.text);
    refused.refused(409, "store.key_reused");
    let plan_id = done["plan"]["id"].as_str().or(done["plan"]["plan_id"].as_str()).unwrap();
    let saved = client.get(&format!("/plans/{plan_id}")).await.good();
    assert_eq!(
        (entries(&client, id, "replanned").await, &saved["revision"]),
        (1, &json!(1)),
        "the saved plan stays as it is"
    );
    let more = client.post(&path, json!({ "plan": notes("ask", 3), "reason": "more" })).await.good();
    assert_eq!((&more["is_applied"], &more["revision"]), (&json!(true), &json!(3)), "an ended execution goes on");
    client
        .post(&path, json!({ "plan": { "name": "x", "steps": [] }, "reason": "x" }))
        .await
        .refused(422, "engine.plan");
}
