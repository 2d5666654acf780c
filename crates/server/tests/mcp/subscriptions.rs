//! Watching a real execution: every change is heard of, not every change is told, and nothing is left running.

use crate::deck::{Client, Deck, Era};
use rutter_core::actor::Actor;
use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, TenantId};
use rutter_engine::control::Control;
use rutter_server::guest::{Guest, Toolset};
use rutter_server::http::door::Door;
use rutter_server::http::{router, serve};
use rutter_server::mcp::Surface;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const UPDATED: &str = "notifications/resources/updated";
const LIST_CHANGED: &str = "notifications/resources/list_changed";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

/// A step that waits for a person, and so many after it.
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
async fn waiting(client: &mut Client, count: usize) -> String {
    let waiting = client.call("execute_plan", json!({ "plan": gated(count) })).await;
    assert_eq!(waiting["status"], "waiting", "{waiting}");
    waiting["execution_id"].as_str().unwrap().to_owned()
}

async fn approve(deck: &Deck, execution: &str) {
    let identity = Identity { tenant: TenantId::new("default"), execution: ExecutionId::new(execution) };
    let control = Control::Approve { part: None, call: None };
    let operator = Actor::person("operator");
    deck.desk.engine.control(&identity, operator, control, "fine".to_owned(), None).await.unwrap();
}

/// Reads after every update, until the execution has ended: there is an update after the last change, or this hangs.
/// Returns how many there were, and how many changes.
async fn updates_until_the_end(client: &mut Client, uri: &str) -> (usize, u64) {
    let mut updates = 0;
    loop {
        let update = client.notice(UPDATED).await;
        assert_eq!(update["params"]["uri"], uri);
        updates += 1;
        let result = client.ask("resources/read", json!({ "uri": uri })).await.unwrap();
        let execution: Value = serde_json::from_str(result["contents"][0]["text"].as_str().unwrap()).unwrap();
        if execution["status"] == "completed" {
            let journal =
                client.ask("resources/read", json!({ "uri": format!("{uri}/journal") })).await.unwrap();
            let journal: Value =
                serde_json::from_str(journal["contents"][0]["text"].as_str().unwrap()).unwrap();
            return (updates, journal["entries_in_all"].as_u64().unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watched_execution_is_told_of_until_its_end_in_both_eras() {
    let deck = Deck::new().await;
    for era in [Era::Legacy, Era::Modern] {
        let mut client = deck.client(era).await;
        let id = waiting(&mut client, 60).await;
        let uri = format!("rutter://executions/{id}");
        match era {
            Era::Legacy => {
                client.ask("resources/subscribe", json!({ "uri": uri })).await.unwrap();
            }
            Era::Modern => {
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
async fn what_was_left_is_not_told_of_any_more() {
    let deck = Deck::new().await;
    let mut client = deck.client(Era::Legacy).await;
    let (left, kept) = (waiting(&mut client, 0).await, waiting(&mut client, 0).await);
    for id in [&left, &kept] {
        client
            .ask("resources/subscribe", json!({ "uri": format!("rutter://executions/{id}") }))
            .await
            .unwrap();
    }
    client
        .ask("resources/unsubscribe", json!({ "uri": format!("rutter://executions/{left}") }))
        .await
        .unwrap();
    approve(&deck, &left).await;
    approve(&deck, &kept).await;
    updates_until_the_end(&mut client, &format!("rutter://executions/{kept}")).await;
    let about_left = client.notices.iter().filter(|notice| notice.to_string().contains(&left)).count();
    assert_eq!(about_left, 0, "{:?}", client.notices);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_execution_changes_the_list_in_both_eras() {
    let deck = Deck::new().await;
    let mut legacy = deck.client(Era::Legacy).await;
    let mut modern = deck.client(Era::Modern).await;
    modern.send("subscriptions/listen", json!({ "notifications": { "resourcesListChanged": true } })).await;
    modern.notice(ACKNOWLEDGED).await;
    // The newer era is told once at the beginning, since it may have missed something.
    modern.notice(LIST_CHANGED).await;
    // An answer says that the loop of the older era runs.
    legacy.ask("ping", json!({})).await.unwrap();
    let mut other = deck.client(Era::Modern).await;
    waiting(&mut other, 0).await;
    legacy.notice(LIST_CHANGED).await;
    modern.notice(LIST_CHANGED).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_a_hundred_resources_are_refused() {
    let deck = Deck::new().await;
    let mut legacy = deck.client(Era::Legacy).await;
    let id = waiting(&mut legacy, 0).await;
    let uri = |number: usize| format!("rutter://executions/{id}/journal?after={number}");
    for number in 1..=100 {
        legacy.ask("resources/subscribe", json!({ "uri": uri(number) })).await.unwrap();
    }
    // The same once more takes no place.
    legacy.ask("resources/subscribe", json!({ "uri": uri(7) })).await.unwrap();
    let refused = legacy.ask("resources/subscribe", json!({ "uri": uri(101) })).await.unwrap_err();
    assert!(refused["message"].as_str().unwrap().contains("at most 100 resources"), "{refused}");
    legacy.ask("resources/unsubscribe", json!({ "uri": uri(7) })).await.unwrap();
    legacy.ask("resources/subscribe", json!({ "uri": uri(101) })).await.unwrap();

    let mut modern = deck.client(Era::Modern).await;
    let uris: Vec<String> = (1..=150).map(uri).collect();
    modern.send("subscriptions/listen", json!({ "notifications": { "resourceSubscriptions": uris } })).await;
    let accepted = modern.notice(ACKNOWLEDGED).await;
    let accepted = accepted["params"]["notifications"]["resourceSubscriptions"].as_array().unwrap().len();
    assert_eq!(accepted, 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_exists_and_changes_can_be_watched() {
    let deck = Deck::new().await;
    let mut client = deck.client(Era::Legacy).await;
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
async fn a_line_is_told_to_whoever_asked_for_lines_when_somebody_is_needed() {
    let deck = Deck::new().await;
    let mut client = deck.client(Era::Legacy).await;
    client.ask("logging/setLevel", json!({ "level": "info" })).await.unwrap();
    let mut plan = gated(0);
    // Long enough that the answer comes before the question.
    let before = (0..100).map(|number| {
        let id = format!("b{number}");
        json!({ "id": id, "tool": "memory.store", "parameters": { "text": id }, "cancellable": "irreversible" })
    });
    plan["steps"][0]["depends_on"] =
        json!((0..100).map(|number| format!("b{number}")).collect::<Vec<String>>());
    plan["steps"].as_array_mut().unwrap().extend(before);
    let running = client.call("execute_plan", json!({ "plan": plan, "wait_seconds": 0 })).await;
    let line = client.notice("notifications/message").await;
    assert_eq!(line["params"]["level"], "info");
    assert_eq!(line["params"]["data"]["execution_id"], running["execution_id"]);
    assert!(
        line["params"]["data"]["message"].as_str().unwrap().contains("a person must approve gate"),
        "{line}"
    );

    // Whoever wants errors only hears nothing of it: the update that comes later proves that it would have come.
    client.ask("logging/setLevel", json!({ "level": "error" })).await.unwrap();
    let id = waiting(&mut client, 0).await;
    let uri = format!("rutter://executions/{id}");
    client.ask("resources/subscribe", json!({ "uri": uri })).await.unwrap();
    approve(&deck, &id).await;
    updates_until_the_end(&mut client, &uri).await;
    assert!(client.notices.iter().all(|notice| notice["method"] != "notifications/message"));
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_a_stream_tells_until_it_is_closed() {
    let deck = Deck::new().await;
    let mut client = deck.client(Era::Modern).await;
    let id = waiting(&mut client, 0).await;
    let uri = format!("rutter://executions/{id}");
    let guest = Guest::local(TenantId::new("default"), "operator", [Toolset::Default].into());
    let closing = CancellationToken::new();
    let surface = Surface::at_the_door(Arc::clone(&deck.desk));
    let routes = router(surface, Arc::new(Door::open_for(guest)), &closing);
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
    let program = reqwest::Client::builder().no_proxy().build().unwrap();
    let request = program
        .post(&link)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "subscriptions/listen")
        .body(wish.to_string());
    let mut stream = request.send().await.unwrap();
    let mut heard = String::new();
    // The one at the beginning, and one for the approval.
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
async fn nothing_is_left_running_when_connections_end() {
    let deck = Deck::new().await;
    let mut first = deck.client(Era::Modern).await;
    let id = waiting(&mut first, 0).await;
    let uri = format!("rutter://executions/{id}");
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    let mut clients = Vec::new();
    for number in 0..20 {
        let era = if number % 2 == 0 { Era::Legacy } else { Era::Modern };
        let mut client = deck.client(era).await;
        match era {
            Era::Legacy => {
                client.ask("resources/subscribe", json!({ "uri": uri })).await.unwrap();
            }
            Era::Modern => {
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
    // One that only stops listening keeps its connection.
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
