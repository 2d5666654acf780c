//! MCP tasks: only for clients that support them, valid after a restart, and accurate about the end.

use rutter_app::principal::{McpToolset, Principal};
use rutter_core::id::TenantId;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::{ClientEra, McpClient};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

fn taking_tickets() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

/// Supports tasks, and can show a form to its user.
fn asking() -> Value {
    json!({ "extensions": { "io.modelcontextprotocol/tasks": {} }, "elicitation": { "form": {} } })
}

async fn client(deck: &ServerFixture, capabilities: Value) -> McpClient {
    deck.client_with(ClientEra::Modern, &[McpToolset::Default], capabilities).await
}

fn note(id: &str) -> Value {
    json!({ "id": id, "tool": "memory.store", "parameters": { "text": id }, "cancellable": "irreversible" })
}

/// Enough notes that they are not done when the call is answered, and `last` at the end.
fn long_with(last: Value) -> Value {
    let mut steps: Vec<Value> = (0..200).map(|number| note(&format!("n{number}"))).collect();
    let mut last = last;
    last["depends_on"] = json!((0..200).map(|number| format!("n{number}")).collect::<Vec<String>>());
    steps.push(last);
    json!({ "name": "long", "steps": steps })
}

/// A step that fails.
fn failing() -> Value {
    let mut step = note("fails");
    step["parameters"]["expires_after"] = json!("soon");
    step
}

fn approved() -> Value {
    let mut step = note("gate");
    step["approval"] = json!({ "required": true });
    step
}

async fn begin(client: &mut McpClient, plan: Value, wait_seconds: u64) -> Value {
    let arguments = json!({ "plan": plan, "wait_seconds": wait_seconds });
    client.ask("tools/call", json!({ "name": "execute_plan", "arguments": arguments })).await.unwrap()
}

async fn ticket(client: &mut McpClient, id: &Value) -> Value {
    client.ask("tasks/get", json!({ "taskId": id })).await.unwrap()
}

/// Polls until the task is no longer working.
async fn at_rest(client: &mut McpClient, id: &Value) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let found = ticket(client, id).await;
        if found["status"] != "working" {
            return found;
        }
        assert!(Instant::now() < deadline, "{found}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_call_is_answered_with_a_task_and_later_with_its_result() {
    let deck = ServerFixture::new().await;
    let mut client = client(&deck, taking_tickets()).await;
    let given = begin(&mut client, long_with(note("last")), 0).await;
    assert_eq!((&given["resultType"], &given["status"]), (&json!("task"), &json!("working")), "{given}");
    let id = &given["taskId"];
    assert!(id.as_str().unwrap().starts_with("exec_"));
    assert!(given["ttlMs"].as_u64().unwrap() >= 24 * 3_600_000);
    assert_eq!(given["pollIntervalMs"], 2_000);
    assert!(given["createdAt"].as_str().unwrap().ends_with('Z'), "{given}");

    let done = at_rest(&mut client, id).await;
    assert_eq!((&done["resultType"], &done["status"]), (&json!("complete"), &json!("completed")), "{done}");
    let content = &done["result"]["structuredContent"];
    assert_eq!((&content["status"], &content["execution_id"]), (&json!("completed"), id));
    let text: Value = serde_json::from_str(done["result"]["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(*content, text, "both are the same");
    // A call that ends within the wait needs no task.
    let plan = json!({ "name": "short", "steps": [note("only")] });
    let short = begin(&mut client, plan, 30).await;
    assert_eq!(short["structuredContent"]["status"], "completed", "{short}");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_clients_get_no_task() {
    let deck = ServerFixture::new().await;
    for (era, capabilities) in
        [(ClientEra::Legacy, taking_tickets()), (ClientEra::Legacy, json!({})), (ClientEra::Modern, json!({}))]
    {
        let mut client = deck.client_with(era, &[McpToolset::Default], capabilities.clone()).await;
        let given = begin(&mut client, long_with(note("last")), 0).await;
        let handle = &given["structuredContent"];
        assert!(handle["execution_id"].is_string() && given.get("taskId").is_none(), "{given}");
        if capabilities == json!({}) {
            let error = client.ask("tasks/get", json!({ "taskId": handle["execution_id"] })).await.unwrap_err();
            assert_eq!(error["code"], -32021, "{error}");
        }
    }
    // The agent must act itself, so it must not wait.
    let mut client = client(&deck, taking_tickets()).await;
    let arguments = json!({ "plan": { "name": "mine", "steps": [note("only")] }, "driver": "agent" });
    let given = client.ask("tools/call", json!({ "name": "execute_plan", "arguments": arguments })).await.unwrap();
    assert!(given["structuredContent"]["next"].as_str().unwrap().contains("record_step"), "{given}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_valid_after_a_restart() {
    let mut deck = ServerFixture::new().await;
    let id = {
        let mut client = client(&deck, asking()).await;
        let given = begin(&mut client, json!({ "name": "gated", "steps": [approved()] }), 30).await;
        assert_eq!(given["status"], "input_required", "{given}");
        given["taskId"].clone()
    };
    deck = deck.restarted().await;
    let mut client = client(&deck, asking()).await;
    let found = ticket(&mut client, &id).await;
    assert_eq!((&found["taskId"], &found["status"]), (&id, &json!("input_required")), "{found}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_user_of_the_client_answers_through_the_task() {
    let deck = ServerFixture::new().await;
    let mut client = client(&deck, asking()).await;
    let given = begin(&mut client, json!({ "name": "gated", "steps": [approved(), note("after")] }), 30).await;
    assert_eq!((&given["resultType"], &given["status"]), (&json!("task"), &json!("input_required")), "{given}");
    let id = &given["taskId"];
    let found = ticket(&mut client, id).await;
    let requests = found["inputRequests"].as_object().unwrap();
    let (key, request) = requests.iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    assert!(request["params"]["message"].as_str().unwrap().contains("memory.store"), "{request}");

    let unknown = json!({ "taskId": id, "inputResponses": { "unknown": { "ignored": true } } });
    client.ask("tasks/update", unknown).await.unwrap();
    let declined = json!({ "taskId": id, "inputResponses": { key: { "action": "decline" } } });
    client.ask("tasks/update", declined).await.unwrap();
    assert_eq!(ticket(&mut client, id).await["status"], "input_required", "a declined question stays open");
    let nonsense = json!({ "taskId": id, "inputResponses": { key: { "action": "accept", "content": {} } } });
    client.ask("tasks/update", nonsense).await.unwrap();
    assert_eq!(ticket(&mut client, id).await["status"], "input_required", "an answer that says nothing counts as none");

    let yes = json!({ "action": "accept", "content": { "approve": true, "reason": "looks right" } });
    let json = client.ask("tasks/update", json!({ "taskId": id, "inputResponses": { key: yes } })).await.unwrap();
    assert_eq!(json["resultType"], "complete");
    assert!(json.get("taskId").is_none(), "only an acknowledgement: {json}");
    let done = at_rest(&mut client, id).await;
    assert_eq!(done["result"]["structuredContent"]["status"], "completed", "{done}");
    let uri = format!("rutter://executions/{}/journal", id.as_str().unwrap());
    let journal = client.ask("resources/read", json!({ "uri": uri })).await.unwrap();
    let journal: Value = serde_json::from_str(journal["contents"][0]["text"].as_str().unwrap()).unwrap();
    let granted = journal["entries"].as_array().unwrap().iter().find(|entry| entry["kind"] == "approval_granted");
    assert_eq!(granted.unwrap()["actor"]["name"], "operator at tester");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_without_forms_is_told_who_must_act() {
    let deck = ServerFixture::new().await;
    let mut client = client(&deck, taking_tickets()).await;
    // Known at once: the agent gets the question instead of a task that nobody can answer.
    let at_once = begin(&mut client, json!({ "name": "gated", "steps": [approved()] }), 30).await;
    assert_eq!(at_once["structuredContent"]["status"], "waiting", "{at_once}");
    // Known later: the status message of the task says it.
    let given = begin(&mut client, long_with(approved()), 0).await;
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let found = ticket(&mut client, &given["taskId"]).await;
        assert_eq!(found["status"], "working", "{found}");
        if found["statusMessage"].as_str().unwrap().contains("only a person can answer") {
            break;
        }
        assert!(Instant::now() < deadline, "{found}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_during_a_task_is_decided_by_the_user_of_the_client() {
    let deck = ServerFixture::new().await;
    let mut client = client(&deck, asking()).await;
    let given = begin(&mut client, long_with(failing()), 0).await;
    let id = &given["taskId"];
    let first = at_rest(&mut client, id).await;
    assert_eq!(first["status"], "input_required", "{first}");
    let (key, request) = first["inputRequests"].as_object().unwrap().iter().next().unwrap();
    let choices = &request["params"]["requestedSchema"]["properties"]["answer"]["enum"];
    assert!(choices.as_array().unwrap().contains(&json!("stop")), "{request}");

    let retry = json!({ "action": "accept", "content": { "answer": "retry" } });
    client.ask("tasks/update", json!({ "taskId": id, "inputResponses": { key: retry } })).await.unwrap();
    let second = at_rest(&mut client, id).await;
    let again = second["inputRequests"].as_object().unwrap().keys().next().unwrap();
    assert_ne!(key, again, "failing again is another question");
    let stop = json!({ "action": "accept", "content": { "answer": "stop", "reason": "no use" } });
    client.ask("tasks/update", json!({ "taskId": id, "inputResponses": { again: stop } })).await.unwrap();
    let ended = at_rest(&mut client, id).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_ne!(ended["result"]["structuredContent"]["status"], "completed", "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_execution_is_a_completed_task_with_a_result() {
    let deck = ServerFixture::new().await;
    let mut client = client(&deck, taking_tickets()).await;
    let mut plan = long_with(failing());
    plan["on_failure"] = json!("cancel_all");
    let given = begin(&mut client, plan, 0).await;
    let ended = at_rest(&mut client, &given["taskId"]).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(ended["result"]["structuredContent"]["status"], "failed", "{ended}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_cancelled_once_and_only_by_its_owner() {
    let deck = ServerFixture::new().await;
    let mut client = client(&deck, asking()).await;
    let given = begin(&mut client, json!({ "name": "gated", "steps": [approved()] }), 30).await;
    let id = &given["taskId"];

    let stranger = Principal::local(TenantId::new("other"), "operator", [McpToolset::Default].into());
    let mut stranger = deck.client_of(ClientEra::Modern, stranger, asking()).await;
    for (asker, id) in [(&mut stranger, id), (&mut client, &json!("exec_none"))] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let error = asker.ask(method, json!({ "taskId": id, "inputResponses": {} })).await.unwrap_err();
            assert_eq!(error["code"], -32602, "{method}: {error}");
        }
    }
    for _ in 0..2 {
        let json = client.ask("tasks/cancel", json!({ "taskId": id })).await.unwrap();
        assert_eq!(json["resultType"], "complete");
    }
    let ended = at_rest(&mut client, id).await;
    assert_eq!(ended["status"], "cancelled", "{ended}");
    let seen = client.call("status", json!({ "execution_id": id })).await;
    assert_eq!((&seen["status"], &seen["done"]), (&json!("cancelled"), &json!(1)), "{seen}");
}
