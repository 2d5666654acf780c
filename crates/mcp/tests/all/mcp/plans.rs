//! Saving and executing plans, for legacy and modern clients.

use rutter_app::principal::McpToolset;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::ClientEra;
use serde_json::{Value, json};

fn note(text: &str) -> Value {
    json!({ "name": "note", "steps": [
        { "id": "keep", "tool": "memory.store", "parameters": { "text": text }, "cancellable": "irreversible" } ] })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_saved_executed_and_inspected_in_both_eras() {
    let deck = ServerFixture::new().await;
    for era in [ClientEra::Legacy, ClientEra::Modern] {
        let mut client = deck.client(era).await;
        let saved = client.call("save_plan", json!({ "plan": note("one") })).await;
        assert_eq!(saved["revision"], 1, "{saved}");
        let done = client.call("execute_plan", json!({ "plan_id": saved["plan_id"] })).await;
        assert_eq!(done["status"], "completed", "{done}");
        let seen = client.call("status", json!({ "execution_id": done["execution_id"] })).await;
        assert_eq!((&seen["done"], &seen["total"]), (&json!(1), &json!(1)));
        assert!(!client.notices.is_empty(), "progress was reported");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_at_the_client_approves_in_both_eras() {
    let deck = ServerFixture::new().await;
    let mut plan = note("two");
    plan["steps"][0]["approval"] = json!({ "required": true });
    let forms = json!({ "elicitation": { "form": {} } });
    let yes = json!({ "action": "accept", "content": { "approve": true, "reason": "looks right" } });

    let mut legacy = deck.client_with(ClientEra::Legacy, &[McpToolset::Default], forms.clone()).await;
    let call = legacy.send("tools/call", json!({ "name": "execute_plan", "arguments": { "plan": plan } })).await;
    let question = legacy.asked().await;
    assert_eq!(question["method"], "elicitation/create");
    legacy.reply(&question["id"], yes.clone()).await;
    let done = legacy.answer(call).await.unwrap();
    assert_eq!(done["structuredContent"]["status"], "completed", "{done}");

    let mut modern = deck.client_with(ClientEra::Modern, &[McpToolset::Default], forms).await;
    let call = json!({ "name": "execute_plan", "arguments": { "plan": plan } });
    let asked = modern.ask("tools/call", call.clone()).await.unwrap();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let keys: Vec<String> = asked["inputRequests"].as_object().unwrap().keys().cloned().collect();
    let mut again = call;
    again["requestState"] = asked["requestState"].clone();
    again["inputResponses"] = json!({ &keys[0]: yes });
    let done = modern.ask("tools/call", again).await.unwrap();
    assert_eq!(done["structuredContent"]["status"], "completed", "{done}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_forms_the_execution_waits_and_says_who_must_act() {
    let deck = ServerFixture::new().await;
    let mut plan = note("three");
    plan["steps"][0]["approval"] = json!({ "required": true });
    let mut client = deck.client(ClientEra::Modern).await;
    let waiting = client.call("execute_plan", json!({ "plan": plan })).await;
    assert_eq!(waiting["status"], "waiting");
    let how = waiting["questions"][0]["person"].as_str().unwrap();
    assert!(how.starts_with("rutter exec approve exec_"), "{how}");
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_in_a_plan_are_reported_at_once_and_change_nothing() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let plan = json!({ "name": "wrong", "steps": [
        { "id": "a", "tool": "memory.stor", "parameters": {} }, { "id": "a", "tool": "memory.recent", "parameters": {} } ] });
    let refused = client.call("save_plan", json!({ "plan": plan })).await;
    assert_eq!(refused["error"]["code"], "engine.plan");
    assert!(refused["error"]["details"]["diagnostics"].as_array().unwrap().len() >= 2, "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_plan_saved_twice_is_one_plan_until_it_has_a_newer_revision() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let first = client.call("save_plan", json!({ "plan": note("one") })).await;
    let again = client.call("save_plan", json!({ "plan": note("one") })).await;
    assert_eq!((&again["plan_id"], &again["revision"]), (&first["plan_id"], &json!(1)), "{again}");
    let changed = json!({ "plan": note("two"), "plan_id": first["plan_id"] });
    assert_eq!(client.call("save_plan", changed).await["revision"], 2);
    let other = client.call("save_plan", json!({ "plan": note("one") })).await;
    assert_ne!(other["plan_id"], first["plan_id"], "the old text does not become the newest revision");
    let asked = json!({ "plan": note("one"), "request_id": "r-1" });
    let stored = client.call("save_plan", asked.clone()).await;
    assert_eq!(client.call("save_plan", asked).await["plan_id"], stored["plan_id"]);
    let reused = client.call("save_plan", json!({ "plan": note("two"), "request_id": "r-1" })).await;
    assert_eq!(reused["error"]["code"], "store.key_reused", "{reused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_of_more_than_45_seconds_is_refused_before_anything_starts() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let wait = |seconds: u64| json!({ "plan": note("patience"), "wait_seconds": seconds });
    let refused = client.call("execute_plan", wait(46)).await;
    assert_eq!(refused["error"]["code"], "server.arguments", "{refused}");
    assert_eq!(client.call("query_history", json!({})).await["total"], 0);
    for seconds in [44, 45] {
        let done = client.call("execute_plan", wait(seconds)).await;
        assert_eq!(done["status"], "completed", "{done}");
        let id = done["execution_id"].clone();
        for tool in ["status", "control"] {
            let asked = json!({ "execution_id": id, "action": "pause", "wait_seconds": 46 });
            let asked = if tool == "status" { json!({ "execution_id": id, "wait_seconds": 46 }) } else { asked };
            assert_eq!(client.call(tool, asked).await["error"]["code"], "server.arguments");
        }
    }
}
