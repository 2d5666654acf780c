//! Finding plans and tools, previewing, and replanning.

use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::{ClientEra, McpClient};
use rutter_testkit::server::shop::{ShopFixture, execute, order, steer};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn note(name: &str, goal: &str, tag: &str) -> Value {
    json!({ "name": name, "goal": goal, "tags": [tag], "steps": [
        { "id": "keep", "tool": "memory.store", "parameters": { "text": "x" }, "cancellable": "irreversible" } ] })
}

async fn names(client: &mut McpClient, filter: Value) -> Vec<String> {
    let found = client.call("find_plans", filter).await;
    let plans = found["plans"].as_array().cloned().unwrap_or_default();
    plans.iter().map(|plan| plan["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn plans_are_found_by_words_name_and_tag_and_page_by_page() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Legacy).await;
    client.call("save_plan", json!({ "plan": note("alpha", "Ship tea to Bremen", "tea") })).await;
    let stored = client.call("save_plan", json!({ "plan": note("beta", "Ship coffee", "coffee") })).await;
    let next = json!({ "plan": note("beta", "Ship more coffee", "coffee"), "plan_id": stored["plan_id"] });
    client.call("save_plan", next).await;
    assert_eq!(names(&mut client, json!({ "text": "bremen" })).await, ["alpha"]);
    assert_eq!(names(&mut client, json!({ "name": "beta" })).await, ["beta"], "the newest revision only");
    assert_eq!(names(&mut client, json!({ "tag": "tea" })).await, ["alpha"]);
    assert!(names(&mut client, json!({ "text": "rum" })).await.is_empty());
    let first = client.call("find_plans", json!({ "limit": 1 })).await;
    assert_eq!(first["plans"][0]["name"], "beta", "{first}");
    let rest = json!({ "limit": 1, "cursor": first["cursor"] });
    assert_eq!(names(&mut client, rest).await, ["alpha"]);
    let one = client.call("find_plans", json!({ "plan_id": stored["plan_id"] })).await;
    assert_eq!(one["plan"]["revision"], 2, "{one}");
    assert!(one["plan"]["source"].as_str().unwrap().contains("Ship more coffee"));
    let none = client.call("find_plans", json!({ "plan_id": "plan_none" })).await;
    assert_eq!(none["error"]["code"], "store.not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_are_found_by_words_and_unreachable_servers_are_named() {
    let gone = "[servers.gone]\ncommand = \"/nonexistent/program\"\n";
    let shop = ShopFixture::beside(json!({}), gone).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let found = client.call("find_tools", json!({ "query": "reserve goods", "limit": 3 })).await;
    assert_eq!(found["tools"][0]["name"], "shop.reserve", "{found}");
    assert_eq!(found["tools"][0]["safety"], "once");
    assert!(found["servers_not_reached"]["gone"].is_string(), "{found}");
    let mine = client.call("find_tools", json!({ "server": "shop", "limit": 2 })).await;
    assert_eq!((mine["tools"].as_array().unwrap().len(), &mine["more"]), (2, &json!(6)), "{mine}");
    let one = client.call("find_tools", json!({ "name": "memory.store" })).await;
    assert!(one["tools"][0]["input"]["properties"]["text"].is_object(), "{one}");
    let listed = client.call("find_tools", json!({ "query": "store text", "server": "memory" })).await;
    let tools = listed["tools"].as_array().unwrap();
    let store = tools.iter().find(|tool| tool["name"] == "memory.store").expect("it is listed");
    assert_eq!(store["required"]["text"], "string", "{listed}");
    let typo = client.call("find_tools", json!({ "name": "shop.reserv" })).await;
    assert_eq!(typo["error"]["hint"], "did you mean shop.reserve?", "{typo}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_shows_what_can_be_undone_and_what_a_failure_leads_to() {
    let shop = ShopFixture::with(json!({})).await;
    let mut client = shop.deck.client(ClientEra::Legacy).await;
    let json = client.call("preview", json!({ "plan": order("shop.charge") })).await;
    assert_eq!(json["point_of_no_return"]["step"], "charge", "{json}");
    assert_eq!(json["steps"][0]["undo"], "undoable");
    assert_eq!(json["steps"][1]["guarantee"], "at_most_once");
    assert_eq!(json["steps"][1]["what_if"]["ends"], "waits_for_decision");
    assert_eq!(json["forecast"]["text"], "no history of reserve, charge, mail", "{json}");
    let one = client.call("preview", json!({ "plan": order("shop.charge"), "step": "charge" })).await;
    assert_eq!(one["steps"][0]["what_if"]["completed"], json!(["reserve"]), "{one}");
    assert_eq!(one["steps"][0]["what_if"]["held"], json!(["mail"]));
    let both = json!({ "plan": order("shop.charge"), "plan_id": "plan_x" });
    assert_eq!(client.call("preview", both).await["error"]["code"], "server.arguments");
    assert!(shop.history().is_empty(), "a preview calls nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_forecast_comes_from_the_journal() {
    let shop = ShopFixture::with(json!({ "shop.charge": [null, "fail", "fail", null] })).await;
    let closing = CancellationToken::new();
    let beside = tokio::spawn(Arc::clone(&shop.deck.app).run(closing.clone()));
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let saved = client.call("save_plan", json!({ "plan": order("shop.charge") })).await;
    let id = &saved["plan_id"];
    for _ in 0..3 {
        let begun = client.call("execute_plan", json!({ "plan_id": id, "wait_seconds": 45 })).await;
        if begun["status"] == "waiting" {
            let json = client.call("preview", json!({ "execution_id": begun["execution_id"] })).await;
            assert!(json.get("forecast").is_none(), "a step has failed: {json}");
            steer(&mut client, &begun, json!({ "action": "stop", "reason": "enough" })).await;
        }
    }
    let forecast = loop {
        let answer = client.call("preview", json!({ "plan_id": id })).await;
        if answer["forecast"]["ended"] == 3 {
            break answer["forecast"].clone();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(forecast["completed"], 1, "{forecast}");
    let risk = &forecast["riskiest"];
    assert_eq!((&risk["step"], &risk["tries"]), (&json!("charge"), &json!(3)), "{forecast}");
    let risk = risk["chance_percent"].as_f64().unwrap();
    assert!((45.0..70.0).contains(&risk), "two of three failed: {forecast}");
    assert!(forecast["chance_percent"].as_f64().unwrap() < 100.0 - risk, "{forecast}");
    assert!(forecast["expected_ms"].is_u64(), "{forecast}");

    // An unsaved plan, with steps that other plans have executed.
    let other = json!({ "name": "another", "steps": [{ "id": "pay", "tool": "shop.charge" }] });
    let value = client.call("preview", json!({ "plan": other })).await;
    assert_eq!(value["forecast"]["ended"], 0, "{value}");
    assert_eq!(value["forecast"]["riskiest"]["step"], "pay", "{value}");
    closing.cancel();
    beside.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replan_keeps_completed_steps_and_their_compensations() {
    for era in [ClientEra::Legacy, ClientEra::Modern] {
        let shop = ShopFixture::with(json!({ "shop.charge": ["fail"] })).await;
        let mut client = shop.deck.client(era).await;
        let waiting = execute(&mut client, &order("shop.charge")).await;
        let id = &waiting["execution_id"];

        let brief = client.call("replan", json!({ "execution_id": id, "reason": "card refused" })).await;
        assert_eq!(brief["is_applied"], false, "{brief}");
        assert_eq!(brief["brief"]["keep_as_they_are"], json!(["reserve"]), "{brief}");
        assert_eq!(brief["brief"]["failed"][0]["step"], "charge");
        let instead = brief["brief"]["failed"][0]["instead"].as_array().unwrap();
        assert!(instead.contains(&json!("shop.invoice")), "{brief}");

        let mut plan = order("shop.charge");
        plan["steps"][1]["id"] = json!("bill");
        plan["steps"][1]["tool"] = json!("shop.invoice");
        plan["steps"][2]["depends_on"] = json!(["bill"]);
        let asked = json!({ "execution_id": id, "plan": plan, "reason": "card refused", "dry_run": true,
            "completed_steps": ["reserve", "mail"], "failed_steps": ["charge"] });
        let json = client.call("replan", asked).await;
        assert_eq!(json["is_applied"], false, "{json}");
        let diff: Vec<&str> = json["diff"].as_array().unwrap().iter().map(|line| line.as_str().unwrap()).collect();
        assert!(diff.contains(&"- charge") && diff.contains(&"+ bill"), "{json}");
        assert_eq!(json["contradictions"].as_array().unwrap().len(), 1, "{json}");

        let mut changed = plan.clone();
        changed["steps"][0]["tool"] = json!("shop.look");
        changed["steps"][0].as_object_mut().unwrap().remove("compensation");
        changed["steps"][0]["cancellable"] = json!("irreversible");
        let wrong = json!({ "execution_id": id, "plan": changed, "reason": "rewrite the past" });
        let refused = client.call("replan", wrong).await;
        assert_eq!(refused["error"]["code"], "replan.completed_changed", "{refused}");

        let asked = json!({ "execution_id": id, "plan": plan, "reason": "card refused", "request_id": "again-1",
            "new_information": { "card": "expired" } });
        let applied = client.call("replan", asked.clone()).await;
        assert_eq!((&applied["is_applied"], &applied["revision"]), (&json!(true), &json!(2)), "{applied}");
        let same = client.call("replan", asked).await;
        assert_eq!(same["revision"], 2, "asked twice, done once: {same}");
        let done = client.call("status", json!({ "execution_id": id, "wait_seconds": 45 })).await;
        assert_eq!(done["status"], "completed", "{done}");
        assert_eq!(shop.history(), ["reserve", "invoice", "mail"]);
        let answer = client.call("status", json!({ "execution_id": id, "brief": true })).await;
        assert!(answer["brief"].as_str().unwrap().contains("expired"), "{answer}");
        steer(&mut client, &waiting, json!({ "action": "compensate", "reason": "sold elsewhere" })).await;
        assert_eq!(shop.history()[3..], ["release"], "the compensation of a completed step is kept");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replan_by_plan_id_needs_one_execution_and_lists_that_do_not_overlap() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["fail"] })).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let saved = client.call("save_plan", json!({ "plan": order("shop.charge") })).await;
    let id = &saved["plan_id"];
    let none = client.call("replan", json!({ "plan_id": id, "reason": "none yet" })).await;
    assert_eq!(none["error"]["code"], "store.not_found", "{none}");
    let first = client.call("execute_plan", json!({ "plan_id": id, "wait_seconds": 45 })).await;
    let one = client.call("replan", json!({ "plan_id": id, "reason": "card refused" })).await;
    assert_eq!(one["execution_id"], first["execution_id"], "{one}");
    let both = json!({ "plan_id": id, "reason": "x", "completed_steps": ["charge"], "failed_steps": ["charge"] });
    let overlap = client.call("replan", both).await;
    assert_eq!(overlap["error"]["code"], "server.arguments", "{overlap}");
    client.call("execute_plan", json!({ "plan_id": id, "wait_seconds": 45 })).await;
    let several = client.call("replan", json!({ "plan_id": id, "reason": "which?" })).await;
    assert_eq!(several["error"]["code"], "server.arguments", "{several}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_answers_does_not_hide_the_tools_of_others() {
    // It reads everything and never answers, until its input is closed.
    let silent = "[servers.silent]\ncommand = \"sh\"\nargs = [\"-c\", \"cat > /dev/null\"]\n";
    let shop = ShopFixture::beside(json!({}), silent).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let found = client.call("find_tools", json!({ "query": "reserve goods" })).await;
    assert_eq!(found["tools"][0]["name"], "shop.reserve", "{found}");
    assert!(!found["servers_not_reached"].as_object().unwrap().is_empty(), "{found}");
}
