//! Commands to an execution: who may send them, and under which conditions.

use crate::api::harbour::{Harbour, approved, notes};
use rutter_app::auth::AccessScope;
use serde_json::{Value, json};

#[tokio::test]
async fn only_a_person_approves_and_only_the_call_they_saw() {
    let harbour = Harbour::new().await;
    let (agent, operator) = (harbour.agent(), harbour.operator());
    let execution = agent.execute(&approved("ask")).await;
    let yes = json!({ "action": "approve", "reason": "looks right", "wait_seconds": 45 });
    agent.signal(&execution, yes.clone()).await.refused(403, "server.not_allowed");
    let without = json!({ "action": "approve" });
    operator.signal(&execution, without).await.refused(400, "command.reason_missing");
    let mut other = yes.clone();
    other["call"] = json!("0".repeat(64));
    operator.signal(&execution, other).await.refused(409, "execution.other_call");
    let mut exact = yes;
    exact["call"] = execution["questions"][0]["call"].clone();
    let done = operator.signal(&execution, exact).await.good();
    assert_eq!(done["status"], "completed");
    let entries = agent.get(&format!("/executions/{}/journal", done["execution_id"].as_str().unwrap())).await.good();
    let granted =
        entries["items"].as_array().unwrap().iter().find(|entry| entry["kind"] == "approval_granted").unwrap();
    assert_eq!(granted["actor"], json!({ "party": "person", "name": "operator" }));
    assert!(granted["text"].as_str().unwrap().contains("looks right"), "{granted}");
}

#[tokio::test]
async fn a_signal_is_refused_when_the_execution_has_changed() {
    let harbour = Harbour::new().await;
    let operator = harbour.operator();
    let execution = operator.execute(&approved("ask")).await;
    let id = execution["execution_id"].as_str().unwrap();
    let tag = operator.get(&format!("/executions/{id}")).await.header("etag").to_owned();
    let path = format!("/executions/{id}/signals");
    let pause = json!({ "action": "pause", "reason": "tea" });
    operator.post_with(&path, "if-match", "\"0\"", pause.clone()).await.refused(412, "server.precondition");
    let paused = operator.post_with(&path, "if-match", &tag, pause.clone()).await.good();
    assert_eq!(paused["status"], "paused");
    operator.post_with(&path, "if-match", &tag, pause.clone()).await.refused(412, "server.precondition");
    operator.post(&path, pause).await.refused(409, "execution.paused");
    let resumed = operator.post_with(&path, "if-match", "*", json!({ "action": "resume" })).await.good();
    assert_eq!(resumed["status"], "waiting");
}

#[tokio::test]
async fn every_action_reaches_the_execution() {
    let harbour = Harbour::new().await;
    let (agent, operator) = (harbour.agent(), harbour.operator());
    let failing = json!({ "name": "fails", "steps": [
        { "id": "keep", "tool": "memory.store", "parameters": { "text": "x" }, "cancellable": "irreversible" },
        { "id": "get", "tool": "memory.store", "depends_on": ["keep"], "cancellable": "irreversible",
            "parameters": { "text": "y", "expires_after": "a while" } } ] });
    let held = |client: crate::api::harbour::Client, failing: Value| async move { client.execute(&failing).await };
    for (signal, status) in [
        (json!({ "action": "skip", "step_id": "get", "reason": "not needed" }), "partial"),
        (
            json!({ "action": "resolve", "step_id": "get", "reason": "by hand", "result": { "text": "x" },
            "evidence": "seen" }),
            "completed",
        ),
        (json!({ "action": "answer", "with": "stop", "reason": "enough" }), "failed"),
        (json!({ "action": "answer", "with": "continue", "reason": "go on" }), "partial"),
        (json!({ "action": "cancel", "reason": "enough" }), "cancelled"),
        (json!({ "action": "kill", "reason": "enough" }), "cancelled"),
        (json!({ "action": "retry", "step_id": "get", "reason": "perhaps" }), "waiting"),
        (json!({ "action": "take_over", "reason": "I can" }), "waiting"),
    ] {
        let execution = held(agent.clone(), failing.clone()).await;
        assert_eq!(execution["status"], "waiting", "{execution}");
        assert_eq!(execution["questions"][0]["kind"], "failure");
        let mut signal = signal;
        signal["wait_seconds"] = json!(20);
        let json = operator.signal(&execution, signal.clone()).await.good();
        assert_eq!(json["status"], status, "{signal} led to {json}");
    }
    let execution = held(agent.clone(), failing).await;
    for wrong in [
        json!({ "action": "answer" }),
        json!({ "action": "accept_tool", "reason": "x" }),
        json!({ "action": "skip", "reason": "x", "step_id": "a[" }),
        json!({ "action": "approve", "reason": "x", "call": "short" }),
        json!({ "action": "explode" }),
    ] {
        operator.signal(&execution, wrong).await.refused(400, "server.arguments");
    }
    for action in ["cancel", "kill", "undo", "compensate", "stop", "skip", "resolve", "settle", "reject", "deny"] {
        let without = json!({ "action": action, "reason": " " });
        operator.signal(&execution, without).await.refused(400, "command.reason_missing");
    }
    operator.signal(&execution, json!({ "action": "reply" })).await.refused(409, "execution.no_question");
    operator
        .signal(&execution, json!({ "action": "undo", "reason": "x", "steps": ["keep"] }))
        .await
        .refused(409, "execution.not_ended");
    let nowhere = json!({ "execution_id": "exec_nowhere" });
    operator.signal(&nowhere, json!({ "action": "pause" })).await.refused(404, "store.not_found");
}

#[tokio::test]
async fn what_a_verb_does_not_take_is_refused_and_nothing_happens() {
    let harbour = Harbour::new().await;
    let operator = harbour.operator();
    let execution = operator.execute(&approved("ask")).await;
    let refused = [
        json!({ "action": "approve", "reason": "yes", "with": "stop" }),
        json!({ "action": "cancel", "reason": "only one step", "step_id": "ask" }),
        json!({ "action": "kill", "reason": "at once", "undo": true }),
        json!({ "action": "undo", "reason": "no step fits", "steps": [] }),
        json!(["pause", null]),
    ];
    for signal in refused {
        operator.signal(&execution, signal).await.refused(400, "server.arguments");
    }
    let unseen = json!({ "action": "kill", "reason": "\u{200b} \u{202e}" });
    operator.signal(&execution, unseen).await.refused(400, "command.reason_missing");
    let id = execution["execution_id"].as_str().unwrap();
    let now = operator.get(&format!("/executions/{id}")).await.good();
    assert_eq!((&now["status"], &now["last_at"]), (&json!("waiting"), &execution["last_at"]), "{now}");
}

#[tokio::test]
async fn one_key_is_one_signal() {
    let harbour = Harbour::new().await;
    let operator = harbour.operator();
    let execution = operator.execute(&approved("ask")).await;
    let id = execution["execution_id"].as_str().unwrap();
    let path = format!("/executions/{id}/signals");
    let pause = json!({ "action": "pause", "reason": "tea" });
    let asking = (0..50).map(|_| {
        let (operator, path, pause) = (operator.clone(), path.clone(), pause.clone());
        tokio::spawn(async move { operator.post_with(&path, "idempotency-key", "tea-1", pause).await })
    });
    for answer in asking.collect::<Vec<_>>() {
        answer.await.unwrap().good();
    }
    let entries = operator.get(&format!("/executions/{id}/journal?kinds=paused")).await.good();
    assert_eq!(entries["items"].as_array().unwrap().len(), 1);
    let resume = json!({ "action": "resume" });
    operator.post_with(&path, "idempotency-key", "tea-1", resume).await.refused(409, "store.key_reused");
}

#[tokio::test]
async fn scopes_are_checked_on_every_route() {
    let harbour = Harbour::new().await;
    let reader = harbour.with_key("reader", &[AccessScope::Read]).await;
    let execution = harbour.agent().execute(&notes("a", 1)).await;
    let id = execution["execution_id"].as_str().unwrap();
    reader.get(&format!("/executions/{id}")).await.good();
    for (path, body) in [
        ("/plans".to_owned(), json!({ "plan": notes("a", 1) })),
        ("/executions".to_owned(), json!({ "plan": notes("a", 1) })),
        (format!("/executions/{id}/signals"), json!({ "action": "pause" })),
        (format!("/executions/{id}/replan"), json!({ "plan": notes("a", 1), "reason": "x" })),
        (format!("/executions/{id}/records"), json!({ "decision": { "action": "end", "reason": "x" } })),
        ("/ledger/checkpoints".to_owned(), json!({})),
        ("/history/cleanup".to_owned(), json!({ "cleanup_type": "all_old" })),
        ("/tools/memory.store/call".to_owned(), json!({ "parameters": { "text": "x" }, "reason": "x" })),
        ("/servers/memory/reset".to_owned(), json!({})),
    ] {
        reader.post(&path, body.clone()).await.refused(403, "server.not_allowed");
        harbour.nobody().post(&path, body).await.refused(401, "server.unauthorized");
    }
    let agent = harbour.agent();
    agent.post("/history/cleanup", json!({ "cleanup_type": "all_old" })).await.refused(403, "server.not_allowed");
    let anybody = harbour.nobody();
    for path in ["/version", "/readyz", "/openapi.json", "/api/docs", "/api/docs/errors"] {
        assert_eq!(anybody.get(path).await.status, 200, "{path}");
    }
    for path in ["/plans", "/executions", "/events", "/journal", "/ledger", "/tools", "/questions", "/me"] {
        anybody.get(path).await.refused(401, "server.unauthorized");
    }
    let me = reader.get("/me").await.good();
    assert_eq!((&me["name"], &me["scopes"], &me["party"]), (&json!("reader"), &json!(["read"]), &json!("agent")));
}
