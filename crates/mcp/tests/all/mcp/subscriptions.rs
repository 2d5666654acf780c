//! Subscriptions to a real execution: the last change is always notified, notifications are limited, and no task leaks.

use rutter_api::http::gate::RequestGate;
use rutter_api::http::{guarded_router, serve};
use rutter_app::principal::{McpToolset, Principal};
use rutter_app::verb::Verb;
use rutter_core::id::TenantId;
use rutter_mcp::McpSurface;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::{ClientEra, McpClient};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const UPDATED: &str = "notifications/resources/updated";
const LIST_CHANGED: &str = "notifications/resources/list_changed";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// A step that waits for a person, and `count` steps after it.
fn gated(count: usize) -> Value {
    let step = |id: String| json!({ "id": id, "tool": "memory.store", "parameters": { "text": id }, "cancellable": "irreversible" });
    let mut steps = vec![step("gate".to_owned())];
    steps[0]["approval"] = json!({ "required": true });
    for number in 0..count {
        let mut next = step(format!("n{number}"));
        next["depends_on"] = json!([steps.last().unwrap()["id"]]);
        steps.push(next);
    }
    json!({ "name": "gated", "steps": steps })
}

/// An execution that waits for a person.
async fn waiting(client: &mut McpClient, count: usize) -> String {
    let waiting = client.call("execute_plan", json!({ "plan": gated(count) })).await;
    assert_eq!(waiting["status"], "waiting", "{waiting}");
    waiting["execution_id"].as_str().unwrap().to_owned()
}

async fn approve(deck: &ServerFixture, execution: &str) {
    deck.command(execution, Verb::Approve, "fine").await;
}

/// Reads after every update until the execution has ended; hangs if there is no update after the last change.
/// Returns the number of updates and of changes.
async fn updates_until_the_end(client: &mut McpClient, uri: &str) -> (usize, u64) {
    let mut updates = 0;
    loop {
        let update = client.notice(UPDATED).await;
        assert_eq!(update["params"]["uri"], uri);
        updates += 1;
        let result = client.ask("resources/read", json!({ "uri": uri })).await.unwrap();
        let execution: Value = serde_json::from_str(result["contents"][0]["text"].as_str().unwrap()).unwrap();
        if execution["status"] == "completed" {
            let journal = client.ask("resources/read", json!({ "uri": format!("{uri}/journal") })).await.unwrap();
            let journal: Value = serde_json::from_str(journal["contents"][0]["text"].as_str().unwrap()).unwrap();
            return (updates, journal["entries_in_all"].as_u64().unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscribed_execution_is_notified_until_its_end_in_both_eras() {
    let deck = ServerFixture::new().await;
    for era in [ClientEra::Legacy, ClientEra::Modern] {
        let mut client = deck.client(era).await;
        let id = waiting(&mut client, 60).await;
        let uri = format!("rutter://executions/{id}");
        match era {
            ClientEra::Legacy => {
                client.ask("resources/subscribe", json!({ "uri": uri })).await.unwrap();
            }
            ClientEra::Modern => {
                let wish = json!({ "notifications": { "resourceSubscriptions": [uri, "rutter://guide"] } });
                let listening = client.send("subscriptions/listen", wish).await;
                let acknowledged = client.notice(ACKNOWLEDGED).await;
                let accepted = &acknowledged["params"]["notifications"];
                assert_eq!(accepted["resourceSubscriptions"], json!([uri]), "the guide does not change");
                let first = client.notice(UPDATED).await;
                let subscription = &first["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
                assert_eq!(*subscription, listening, "{first}");
            }
        }
        approve(&deck, &id).await;
        let (updates, changes) = updates_until_the_end(&mut client, &uri).await;
        assert!(changes > 120, "{changes}");
        assert!((updates as u64) < changes / 2, "{updates} updates for {changes} changes");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsubscribed_resource_is_not_notified() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Legacy).await;
    let (left, stored) = (waiting(&mut client, 0).await, waiting(&mut client, 0).await);
    for id in [&left, &stored] {
        client.ask("resources/subscribe", json!({ "uri": format!("rutter://executions/{id}") })).await.unwrap();
    }
    client.ask("resources/unsubscribe", json!({ "uri": format!("rutter://executions/{left}") })).await.unwrap();
    approve(&deck, &left).await;
    approve(&deck, &stored).await;
    updates_until_the_end(&mut client, &format!("rutter://executions/{stored}")).await;
    let about_left = client.notices.iter().filter(|notice| notice.to_string().contains(&left)).count();
    assert_eq!(about_left, 0, "{:?}", client.notices);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_execution_changes_the_list_in_both_eras() {
    let deck = ServerFixture::new().await;
    let mut legacy = deck.client(ClientEra::Legacy).await;
    let mut modern = deck.client(ClientEra::Modern).await;
    modern.send("subscriptions/listen", json!({ "notifications": { "resourcesListChanged": true } })).await;
    modern.notice(ACKNOWLEDGED).await;
    // Modern clients are notified once at the beginning, since they may have missed something.
    modern.notice(LIST_CHANGED).await;
    // The response shows that the loop for legacy clients runs.
    legacy.ask("ping", json!({})).await.unwrap();
    let mut other = deck.client(ClientEra::Modern).await;
    waiting(&mut other, 0).await;
    legacy.notice(LIST_CHANGED).await;
    modern.notice(LIST_CHANGED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_a_hundred_resources_are_refused() {
    let deck = ServerFixture::new().await;
    let mut legacy = deck.client(ClientEra::Legacy).await;
    let id = waiting(&mut legacy, 0).await;
    let uri = |number: usize| format!("rutter://executions/{id}/journal?after={number}");
    for number in 1..=100 {
        legacy.ask("resources/subscribe", json!({ "uri": uri(number) })).await.unwrap();
    }
    // A repeated subscription takes no permit.
    legacy.ask("resources/subscribe", json!({ "uri": uri(7) })).await.unwrap();
    let refused = legacy.ask("resources/subscribe", json!({ "uri": uri(101) })).await.unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("at most 100 resources"), "{refused}");
    legacy.ask("resources/unsubscribe", json!({ "uri": uri(7) })).await.unwrap();
    legacy.ask("resources/subscribe", json!({ "uri": uri(101) })).await.unwrap();

    let mut modern = deck.client(ClientEra::Modern).await;
    let uris: Vec<String> = (1..=150).map(uri).collect();
    modern.send("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": uris } })).await;
    let accepted = modern.notice(ACKNOWLEDGED).await;
    let accepted = accepted["params"]["notifications"]["resourceSubscriptions"].as_array().unwrap().len();
    assert_eq!(accepted, 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_existing_executions_can_be_subscribed_to() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Legacy).await;
    for (uri, code) in [
        ("rutter://executions/exec_none", -32002),
        ("test://elsewhere", -32002),
        ("rutter://guide", -32602),
        ("rutter://plans/plan_none", -32602),
    ] {
        let error = client.ask("resources/subscribe", json!({ "uri": uri })).await.unwrap_err();
        assert_eq!(error["code"], code, "{uri}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_want_log_messages_get_one_when_a_person_is_needed() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Legacy).await;
    client.ask("logging/setLevel", json!({ "level": "info" })).await.unwrap();
    let mut plan = gated(0);
    // Enough steps that the response comes before the question.
    let before = (0..100).map(|number| {
        let id = format!("b{number}");
        json!({ "id": id, "tool": "memory.store", "parameters": { "text": id }, "cancellable": "irreversible" })
    });
    plan["steps"][0]["depends_on"] = json!((0..100).map(|number| format!("b{number}")).collect::<Vec<String>>());
    plan["steps"].as_array_mut().unwrap().extend(before);
    let running = client.call("execute_plan", json!({ "plan": plan, "wait_seconds": 0 })).await;
    let line = client.notice("notifications/message").await;
    assert_eq!(line["params"]["level"], "info");
    assert_eq!(line["params"]["data"]["execution_id"], running["execution_id"]);
    assert!(line["params"]["data"]["message"].as_str().unwrap().contains("a person must approve gate"), "{line}");

    // A client that wants only errors gets no message: the later update shows that it would have arrived.
    client.ask("logging/setLevel", json!({ "level": "error" })).await.unwrap();
    let id = waiting(&mut client, 0).await;
    let uri = format!("rutter://executions/{id}");
    client.ask("resources/subscribe", json!({ "uri": uri })).await.unwrap();
    approve(&deck, &id).await;
    updates_until_the_end(&mut client, &uri).await;
    assert!(client.notices.iter().all(|notice| notice["method"] != "notifications/message"));
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_a_stream_notifies_until_it_is_closed() {
    let deck = ServerFixture::new().await;
    let mut client = deck.client(ClientEra::Modern).await;
    let id = waiting(&mut client, 0).await;
    let uri = format!("rutter://executions/{id}");
    let principal = Principal::local(TenantId::new("default"), "operator", [McpToolset::Default].into());
    let closing = CancellationToken::new();
    let surface = McpSurface::behind_gate(Arc::clone(&deck.app));
    let routes = rutter_mcp::http::routes(surface, &closing).layer(axum::Extension(principal));
    let routes = guarded_router([routes], Arc::new(RequestGate::new(Vec::new(), Arc::clone(&deck.app.auth))));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let link = format!("http://{}/mcp", listener.local_addr().unwrap());
    let server = tokio::spawn(serve(listener, routes, closing.clone()));
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();

    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "tester", "version": "1" },
    });
    let params = json!({ "notifications": { "resourceSubscriptions": [uri] }, "_meta": meta });
    let wish = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params });
    let program = rutter_tools::tls::client_builder().no_proxy().build().unwrap();
    let request = program
        .post(&link)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "subscriptions/listen")
        .body(wish.to_string());
    let mut stream = request.send().await.unwrap();
    let mut heard = String::new();
    // One at the beginning, and one for the approval.
    for updates in 1..=2 {
        while heard.matches(UPDATED).count() < updates {
            let chunk = tokio::time::timeout(Duration::from_secs(60), stream.chunk()).await;
            let chunk = chunk.expect("the server says something").unwrap().expect("the stream goes on");
            heard.push_str(&String::from_utf8_lossy(&chunk));
        }
        if updates == 1 {
            approve(&deck, &id).await;
        }
    }
    assert!(heard.contains(ACKNOWLEDGED), "{heard}");
    drop((stream, program));
    let deadline = Instant::now() + Duration::from_secs(60);
    while alive() > before {
        assert!(Instant::now() < deadline, "{} are left of {before}", alive());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    closing.cancel();
    server.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_task_is_left_when_connections_end() {
    let deck = ServerFixture::new().await;
    let mut first = deck.client(ClientEra::Modern).await;
    let id = waiting(&mut first, 0).await;
    let uri = format!("rutter://executions/{id}");
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    let mut clients = Vec::new();
    for number in 0..20 {
        let era = if number % 2 == 0 { ClientEra::Legacy } else { ClientEra::Modern };
        let mut client = deck.client(era).await;
        match era {
            ClientEra::Legacy => {
                client.ask("resources/subscribe", json!({ "uri": uri })).await.unwrap();
            }
            ClientEra::Modern => {
                let wish = json!({ "notifications": { "resourceSubscriptions": [uri], "resourcesListChanged": true } });
                client.send("subscriptions/listen", wish).await;
                client.notice(ACKNOWLEDGED).await;
            }
        }
        clients.push(client);
    }
    assert!(alive() >= before + 40, "each has a loop beside its connection: {} {before}", alive());
    drop(clients);
    let deadline = Instant::now() + Duration::from_secs(60);
    while alive() > before {
        assert!(Instant::now() < deadline, "{} are left of {before}", alive());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    // A client that only stops listening keeps its connection.
    let wish = json!({ "notifications": { "resourceSubscriptions": [uri] } });
    let listening = first.send("subscriptions/listen", wish).await;
    first.notice(ACKNOWLEDGED).await;
    first.notify("notifications/cancelled", json!({ "requestId": listening })).await;
    while alive() > before {
        assert!(Instant::now() < deadline, "{} are left of {before}", alive());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(first.call("status", json!({ "execution_id": id })).await["status"], "waiting");
}
