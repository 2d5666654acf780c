//! What agents are told about questions that people answer: where they look, and never the command that answers.

use rutter_app::command::{Command, CommandArguments};
use rutter_app::principal::Principal;
use rutter_app::runtime::RuntimeOptions;
use rutter_app::verb::Verb;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::time::Millis;
use rutter_engine::SystemClock;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::installation::options;
use rutter_testkit::server::mcp_client::{ClientEra, McpClient};
use rutter_testkit::server::shop::{ShopFixture, execute, order};
use serde_json::{Value, json};
use std::time::Duration;

const ERAS: [ClientEra; 2] = [ClientEra::Legacy, ClientEra::Modern];
/// The one command that agents may pass on: it shows what waits.
const LIST: &str = "rutter exec list --asking";

fn gated() -> Value {
    json!({ "name": "gated", "steps": [ { "id": "keep", "tool": "memory.store", "parameters": { "text": "x" },
        "cancellable": "irreversible", "approval": { "required": true } } ] })
}

fn question<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    status["questions"].as_array()?.iter().find(|question| question["kind"] == kind)
}

/// Waits until a question of this kind is open.
async fn asked(client: &mut McpClient, execution: &Value, kind: &str) -> Value {
    for _ in 0..3_000 {
        let status = client.call("status", json!({ "execution_id": execution })).await;
        if question(&status, kind).is_some() {
            return status;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("there is no question of the kind {kind}");
}

/// Everything that an agent can learn about an execution, and the refusals of what it may not do.
async fn told(client: &mut McpClient, id: &Value) -> Vec<String> {
    let execution = json!({ "execution_id": id });
    let mut texts = Vec::new();
    texts.push(client.call("status", json!({ "execution_id": id, "brief": true })).await.to_string());
    texts.push(client.call("status", json!({ "execution_id": id, "include_step_details": true })).await.to_string());
    texts.push(client.call("query_ledger", json!({ "execution_id": id, "include_events": true })).await.to_string());
    texts.push(client.call("summarize", execution.clone()).await.to_string());
    for action in ["approve", "reject", "accept_tool"] {
        let control = json!({ "execution_id": id, "action": action, "reason": "x" });
        texts.push(client.call("control", control).await.to_string());
    }
    for prompt in ["handle_failure", "take_over"] {
        let asked = client.ask("prompts/get", json!({ "name": prompt, "arguments": execution })).await;
        texts.push(asked.unwrap().to_string());
    }
    let id = id.as_str().unwrap();
    for uri in [format!("rutter://executions/{id}"), format!("rutter://executions/{id}/journal")] {
        texts.push(client.ask("resources/read", json!({ "uri": uri })).await.unwrap().to_string());
    }
    texts
}

/// Asserts that no answer has a command, and that the first one says where people look.
async fn tells_the_place_only(client: &mut McpClient, waiting: &Value, kind: &str) {
    let question = question(waiting, kind).unwrap_or_else(|| panic!("nobody asks about a {kind}: {waiting}"));
    let id = &waiting["execution_id"];
    let refused = json!({ "execution_id": id, "action": "resolve", "happened": true, "evidence": "x", "reason": "x" });
    let mut texts = vec![waiting.to_string()];
    texts.extend(told(client, id).await);
    if kind != "failure" {
        texts.push(client.call("control", refused).await.to_string());
    }
    for text in &texts {
        let others = text.replace(LIST, "");
        assert!(!others.contains("rutter exec") && !others.contains("--call"), "{kind}: {text}");
    }
    assert!(question["person"].as_str().unwrap().contains(LIST), "{kind}: {waiting}");
    let is_for_people_only = kind != "failure";
    assert_eq!(waiting["next"].as_str().unwrap().contains(LIST), is_for_people_only, "{kind}: {waiting}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval() {
    for era in ERAS {
        let deck = ServerFixture::new().await;
        let mut client = deck.client(era).await;
        let waiting = execute(&mut client, &gated()).await;
        tells_the_place_only(&mut client, &waiting, "approval").await;
        let guide = client.ask("resources/read", json!({ "uri": "rutter://guide" })).await.unwrap().to_string();
        for command in ["exec approve", "exec reject", "exec resolve", "exec accept-tool", "exec reply", "key create"] {
            assert!(!guide.contains(command), "{command}: {guide}");
        }
        deck.app.set_link("http://127.0.0.1:7117");
        let waiting = client.call("status", json!({ "execution_id": waiting["execution_id"] })).await;
        let page = format!("http://127.0.0.1:7117/executions/{}", waiting["execution_id"].as_str().unwrap());
        assert!(waiting["next"].as_str().unwrap().contains(&page), "{waiting}");
        assert!(waiting["questions"][0]["person"].as_str().unwrap().contains(&page), "{waiting}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_doubt() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["commit_then_drop"] })).await;
    for era in ERAS {
        let mut client = shop.deck.client(era).await;
        let waiting = execute(&mut client, &order("shop.charge")).await;
        tells_the_place_only(&mut client, &waiting, "doubt").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["fail"] })).await;
    for era in ERAS {
        let mut client = shop.deck.client(era).await;
        let waiting = execute(&mut client, &order("shop.charge")).await;
        tells_the_place_only(&mut client, &waiting, "failure").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replan_that_weakens_the_plan() {
    let deck = ServerFixture::new().await;
    for era in ERAS {
        let mut client = deck.client(era).await;
        let id = execute(&mut client, &gated()).await["execution_id"].clone();
        let mut weaker = gated();
        weaker["steps"][0].as_object_mut().unwrap().remove("approval");
        let replan = json!({ "execution_id": id, "plan": weaker, "reason": "nobody is there" });
        let answer = client.call("replan", replan).await.to_string();
        assert!(!answer.replace(LIST, "").contains("rutter exec"), "{answer}");
        let waiting = asked(&mut client, &id, "replan").await;
        tells_the_place_only(&mut client, &waiting, "replan").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_changed() {
    let api = |description: &str| {
        format!(
            "[http.shop]\nbase = \"http://127.0.0.1:9\"\nallow = [\"127.0.0.1\"]\n\
             [http.shop.tools.look]\ndescription = \"{description}\"\nmethod = \"GET\"\npath = \"/\"\n"
        )
    };
    let deck = ServerFixture::with(&api("looks")).await;
    let plan = json!({ "name": "look", "steps": [{ "id": "look", "tool": "shop.look" }] });
    let saved = deck.client(ClientEra::Modern).await.call("save_plan", json!({ "plan": plan })).await;
    let deck = deck.restarted_with(&api("looks, and tells everybody")).await;
    for era in ERAS {
        let mut client = deck.client(era).await;
        let call = json!({ "plan_id": saved["plan_id"], "wait_seconds": 45 });
        let waiting = client.call("execute_plan", call).await;
        tells_the_place_only(&mut client, &waiting, "drift").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold() {
    let deck = ServerFixture::new().await;
    let mut plan = gated();
    plan["steps"][0]["approval"]["expires"] = json!("2h");
    let id = execute(&mut deck.client(ClientEra::Modern).await, &plan).await["execution_id"].clone();
    let folder = deck.close().await;
    let clock = SystemClock::starting_at(SystemClock::system().now().plus(Millis::hours(72)));
    let options = RuntimeOptions { clock, ..options(folder.path(), "") };
    let deck = ServerFixture::open_with(folder, options).await;
    for era in ERAS {
        let mut client = deck.client(era).await;
        let waiting = asked(&mut client, &id, "hold").await;
        tells_the_place_only(&mut client, &waiting, "hold").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_effect() {
    let shop = ShopFixture::with(json!({ "shop.charge": ["late:2.5", null] })).await;
    let mut client = shop.deck.client(ClientEra::Modern).await;
    let mut plan = order("shop.charge");
    plan["steps"][1]["timeout"] = json!("1s");
    let id = execute(&mut client, &plan).await["execution_id"].clone();
    let settled = Command {
        principal: Principal::owner(TenantId::new("default"), "operator"),
        execution: ExecutionId::new(id.as_str().unwrap()),
        verb: Verb::Resolve,
        arguments: CommandArguments {
            happened: Some(false),
            evidence: Some(json!("it is not on the statement")),
            ..CommandArguments::default()
        },
        reason: None,
        request_key: None,
        if_match: None,
    };
    shop.deck.app.perform(settled).await.unwrap();
    for era in ERAS {
        let mut client = shop.deck.client(era).await;
        let waiting = asked(&mut client, &id, "second_effect").await;
        tells_the_place_only(&mut client, &waiting, "second_effect").await;
    }
}
