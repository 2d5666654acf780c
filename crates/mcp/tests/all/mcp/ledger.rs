//! Reading the journal page by page, and removing old history.

use crate::mcp::recording::{assert_fits, code};
use rutter_api::http::gate::RequestGate;
use rutter_api::http::{self, serve};
use rutter_app::auth::{AccessToken, Authenticator};
use rutter_app::principal::{McpToolset, PrincipalRole};
use rutter_core::actor::Actor;
use rutter_core::execution::input::{DecisionContext, ExecutionInput};
use rutter_core::execution::{Execution, ExecutionIdentity, opening};
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::journal::chain::HashChain;
use rutter_core::journal::payload::PayloadSalt;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Driver, Plan, check};
use rutter_core::port::journal::{ExecutionOpening, Journal, NewRevision, RevisionScope, SealedEntry};
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::ToolCatalog;
use rutter_engine::SystemClock;
use rutter_mcp::McpSurface;
use rutter_store::SqliteStore;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::{ClientEra, McpClient};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

fn tenant() -> TenantId {
    TenantId::new("default")
}

async fn reader(deck: &ServerFixture) -> McpClient {
    deck.client_with(ClientEra::Modern, &[McpToolset::Journal], json!({})).await
}

async fn plan(client: &mut McpClient, name: &str, steps: usize) -> Value {
    let step = |nth: usize| json!({ "id": format!("s{nth}"), "tool": "call", "parameters": {}, "cancellable": "irreversible" });
    let steps: Vec<Value> = (0..steps).map(step).collect();
    client.call("record_plan", json!({ "name": name, "description": "d", "steps": steps })).await["plan_id"].clone()
}

async fn begin(client: &mut McpClient, plan: &Value) -> String {
    let started = client.call("record_execution_start", json!({ "plan_id": plan })).await;
    started["execution_id"].as_str().unwrap().to_owned()
}

async fn note(client: &mut McpClient, execution: &str, description: &str, details: Value) {
    let action = json!({ "execution_id": execution, "action_type": "other", "description": description,
        "details": details });
    assert!(client.call("record_action", action).await.get("error").is_none());
}

fn assert_small(answer: &Value) {
    let bytes = answer.to_string().len();
    assert!(bytes <= 8 << 10, "{bytes} bytes");
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_entries_are_read_page_by_page_without_loss_or_duplicates() {
    let deck = ServerFixture::new().await;
    let mut client = reader(&deck).await;
    let plan = plan(&mut client, "long", 1).await;
    let execution = begin(&mut client, &plan).await;
    for nth in 0..500 {
        note(&mut client, &execution, &format!("number {nth}"), json!({ "nth": nth })).await;
    }
    let ask = json!({ "execution_id": execution, "include_events": true, "limit": 100 });
    let (mut seen, mut pages, mut cursor) = (Vec::new(), 0, None);
    loop {
        let mut ask = ask.clone();
        if let Some(cursor) = cursor {
            ask["cursor"] = cursor;
        }
        let page = client.call("query_ledger", ask).await;
        assert_small(&page);
        assert_fits(&mut client, "query_ledger", &page).await;
        seen.extend(page["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()));
        let rest = format!("rutter://executions/{execution}/journal?after={}", seen.last().unwrap());
        assert_eq!(page["resource_uri"], json!(rest));
        pages += 1;
        cursor = page.get("next_cursor").cloned();
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, (1..=502).collect::<Vec<u64>>(), "opened, started and all that was recorded");
    assert!(pages >= 6, "a page holds at most a hundred");

    for after in [0, 1, 250, 501] {
        let page = json!({ "execution_id": execution, "after_seq": after, "limit": 3 });
        let page = client.call("query_ledger", page).await;
        let seen: Vec<u64> =
            page["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(seen, (after + 1..=502.min(after + 3)).collect::<Vec<u64>>());
    }
    for after in [502, 503, 5_000] {
        let page = client.call("query_ledger", json!({ "execution_id": execution, "after_seq": after })).await;
        assert_eq!((page["events"].as_array().unwrap().len(), page.get("next_cursor")), (0, None), "{page}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_values_are_shortened_and_the_answer_stays_small() {
    let deck = ServerFixture::new().await;
    let mut client = reader(&deck).await;
    let plan = plan(&mut client, "long name ".repeat(12).trim_end(), 300).await;
    let execution = begin(&mut client, &plan).await;
    let long = "é".repeat(1_900);
    for details in [json!(long), json!({ "a": { "b": [long, long] } }), json!({ "keys": vec![long.clone(); 40] })] {
        note(&mut client, &execution, &long, details).await;
    }
    let failed = json!({ "execution_id": execution, "step_id": "s0", "status": "failed", "error": long });
    client.call("record_step", failed).await;
    let mut ask = json!({ "execution_id": execution, "include_events": true, "include_step_details": true });
    let (mut count, mut seen) = (0, BTreeSet::new());
    loop {
        let page = client.call("query_ledger", ask.clone()).await;
        assert_small(&page);
        count += page["events"].as_array().unwrap().len();
        seen.extend(page["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()));
        assert!(page["summary"].as_str().unwrap().contains("are in the resource"), "{page}");
        assert_eq!(page["steps"][0]["failure_policy"]["action"], "manual_decision");
        match page.get("next_cursor") {
            Some(cursor) => ask["cursor"] = cursor.clone(),
            None => break,
        }
    }
    assert_eq!((count, seen.len()), (8, 8), "each of them once");
    for _ in 0..20 {
        begin(&mut client, &plan).await;
    }
    let ask = json!({ "include_plans": true, "include_step_details": true, "limit": 100 });
    let page = client.call("query_history", ask).await;
    assert_small(&page);
    assert!(page["next_cursor"].is_string() && page["total"] == 21, "{page}");
}

/// Every execution of a list, over all pages.
async fn all(client: &mut McpClient, ask: Value) -> (Vec<String>, u64) {
    let (mut ask, mut found, mut total) = (ask, Vec::new(), None);
    loop {
        let page = client.call("query_history", ask.clone()).await;
        assert_small(&page);
        let ids = page["executions"].as_array().unwrap().iter();
        found.extend(ids.map(|item| item["execution_id"].as_str().unwrap().to_owned()));
        let count = page["total"].as_u64().unwrap();
        assert_eq!(*total.get_or_insert(count), count, "every page says the same");
        match page.get("next_cursor") {
            Some(cursor) => ask["cursor"] = cursor.clone(),
            None => return (found, count),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_and_fifty_executions_are_listed_without_loss_or_duplicates() {
    let deck = ServerFixture::new().await;
    let mut client = reader(&deck).await;
    let plan = plan(&mut client, "many", 1).await;
    let mut opened = Vec::new();
    for nth in 0..250 {
        let execution = begin(&mut client, &plan).await;
        // Every third is completed, every fifth of the others stopped.
        if nth % 3 == 0 {
            let done = json!({ "execution_id": execution, "step_id": "s0", "status": "completed" });
            assert_eq!(client.call("record_step", done).await["status"], "completed");
        } else if nth % 5 == 0 {
            let stop = json!({ "execution_id": execution, "action": "stop", "reason": "five" });
            assert_eq!(client.call("record_decision", stop).await["status"], "cancelled");
        }
        opened.push(execution);
    }
    opened.reverse();
    let rest = |keep: &dyn Fn(usize) -> bool| -> Vec<String> {
        opened.iter().enumerate().filter(|(at, _)| keep(249 - at)).map(|(_, id)| id.clone()).collect()
    };
    let done = rest(&|nth| nth % 3 == 0);
    let stopped = rest(&|nth| nth % 3 != 0 && nth % 5 == 0);
    let open = rest(&|nth| nth % 3 != 0 && nth % 5 != 0);
    for (ask, expected) in [
        (json!({}), &opened),
        (json!({ "query_type": "all", "limit": 100 }), &opened),
        (json!({ "query_type": "recent", "limit": 7 }), &opened),
        (json!({ "query_type": "completed", "limit": 13 }), &done),
        (json!({ "query_type": "failed" }), &stopped),
        (json!({ "query_type": "incomplete", "limit": 50 }), &open),
        (json!({ "status_filter": ["cancelled"], "limit": 3 }), &stopped),
        (json!({ "query_type": "failed", "status_filter": ["completed"] }), &Vec::new()),
        (json!({ "text": "five" }), &stopped),
        (json!({ "text": "five", "query_type": "completed" }), &Vec::new()),
    ] {
        let (found, total) = all(&mut client, ask.clone()).await;
        assert_eq!((&found, total), (expected, expected.len() as u64), "{ask}");
    }
    for offset in [0, 1, 100, 249] {
        let page = client.call("query_history", json!({ "offset": offset, "limit": 5 })).await;
        let ids: Vec<&str> =
            page["executions"].as_array().unwrap().iter().map(|item| item["execution_id"].as_str().unwrap()).collect();
        assert_eq!(ids, opened[offset..250.min(offset + 5)]);
        assert_eq!((&page["offset"], &page["limit"], &page["total"]), (&json!(offset), &json!(5), &json!(250)));
        assert_fits(&mut client, "query_history", &page).await;
    }
    let beyond = client.call("query_history", json!({ "offset": 250 })).await;
    assert_eq!((&beyond["executions"], &beyond["total"]), (&json!([]), &json!(250)));
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_that_make_no_sense_are_refused_by_name() {
    let deck = ServerFixture::new().await;
    let mut client = reader(&deck).await;
    let plan = plan(&mut client, "one", 1).await;
    let execution = begin(&mut client, &plan).await;
    for (tool, ask, expected) in [
        ("query_history", json!({ "limit": 0 }), "limit is 1 to 100"),
        ("query_history", json!({ "limit": 101 }), "limit is 1 to 100"),
        ("query_history", json!({ "limit": 1.5 }), "at limit"),
        ("query_history", json!({ "offset": -1 }), "at offset"),
        ("query_history", json!({ "offset": 1, "cursor": "x1.1" }), "either offset or cursor"),
        ("query_history", json!({ "cursor": "nonsense" }), "not a cursor"),
        ("query_history", json!({ "query_type": "old" }), "at query_type"),
        ("query_history", json!({ "status_filter": ["done"] }), "there is no status \"done\""),
        ("query_history", json!({ "status": "completed" }), "status"),
        ("query_ledger", json!({ "execution_id": execution, "limit": 101 }), "limit is 1 to 100"),
        ("query_ledger", json!({ "execution_id": execution, "after_seq": 1, "cursor": "j1.1" }), "either after_seq"),
        ("query_ledger", json!({ "execution_id": execution, "cursor": "x1.1" }), "not a cursor"),
        ("query_ledger", json!({ "execution_id": "exec_nowhere" }), "there is no execution"),
        ("query_ledger", json!({}), "execution_id"),
        ("cleanup_history", json!({ "cleanup_type": "all_old", "older_than_days": 0 }), "older_than_days is 1 to 365"),
        (
            "cleanup_history",
            json!({ "cleanup_type": "all_old", "older_than_days": 366 }),
            "older_than_days is 1 to 365",
        ),
        ("cleanup_history", json!({ "cleanup_type": "all_old", "older_than_days": 1.5 }), "at older_than_days"),
        ("cleanup_history", json!({ "cleanup_type": "everything" }), "at cleanup_type"),
    ] {
        let refused = client.call(tool, ask.clone()).await;
        let message = refused["error"]["message"].as_str().unwrap_or_else(|| panic!("{tool} {ask}: {refused}"));
        assert!(message.contains(expected), "{tool} {ask}: {message}");
    }
}

/// A server whose database contains old executions.
struct Aged {
    deck: ServerFixture,
}

const DAY: Millis = Millis::hours(24);

impl Aged {
    /// Executions by age in days, and whether they have ended.
    async fn with(executions: &[(i64, bool)]) -> Aged {
        let (folder, clock) = (tempfile::tempdir().unwrap(), SystemClock::system());
        let options = rutter_store::SqliteOptions {
            reserve_bytes: 0,
            ..rutter_store::SqliteOptions::new(folder.path(), Arc::new(move || clock.now()))
        };
        let store = Arc::new(SqliteStore::open(options).unwrap());
        let text = json!({ "name": "old", "inputs": { "of": {} }, "steps": [ { "id": "a", "tool": "agent.call", "parameters": {},
            "cancellable": "irreversible" } ] });
        let bytes = text.to_string().into_bytes();
        let checked = check::read_and_check(&bytes, DocumentFormat::Json, &ToolCatalog::default(), Driver::Agent, None);
        let plan = checked.plan.unwrap();
        for (id, days) in [("plan_used", 100), ("plan_unused", 100), ("plan_young", 0)] {
            let at = Timestamp(clock.now().0 - days * DAY.0 as i64);
            let (id, actor) = (PlanId::new(id), Actor::agent("author"));
            let new = NewRevision {
                tenant: tenant(),
                id,
                plan: Arc::clone(&plan),
                expected: None,
                scope: RevisionScope::Plan,
                actor,
                at,
            };
            store.save(new).await.unwrap();
        }
        for (nth, (days, is_done)) in executions.iter().enumerate() {
            let at = Timestamp(clock.now().0 - days * DAY.0 as i64 - nth as i64);
            write(&store, &plan, &format!("exec_{days}_{is_done}"), at, *is_done).await;
        }
        drop(store);
        Aged { deck: ServerFixture::open(folder, "").await }
    }

    async fn left(&self) -> u64 {
        self.deck.app.query.totals(&tenant()).await.unwrap().executions.values().sum()
    }
}

async fn write(store: &SqliteStore, plan: &Arc<Plan>, id: &str, at: Timestamp, is_done: bool) {
    let identity = ExecutionIdentity { tenant: tenant(), execution: ExecutionId::new(id) };
    let (actor, inputs) = (Actor::agent("author"), Arc::new(json!({ "of": id })));
    let opened = opening::opening(plan, 1, Driver::Agent, inputs, &identity.execution, actor.clone(), at).unwrap();
    let mut execution = Execution::open(identity.clone(), &opened).unwrap();
    let mut records = vec![opened];
    let end = execution.plan().steps[0].id.clone();
    let end = ExecutionInput::RecordFinished { part: rutter_core::id::PartId::whole(end), result: Arc::new(json!(id)) };
    for input in [Some(ExecutionInput::Start), is_done.then_some(end)].into_iter().flatten() {
        records.extend(execution.decide(&actor, input, DecisionContext { now: at, room: 0 }).unwrap().records);
    }
    let mut chain = HashChain::new(identity.tenant.clone(), identity.execution.clone());
    let mut salts = 0u128;
    let mut salt = || {
        salts += 1;
        PayloadSalt(salts.to_be_bytes())
    };
    let entries = records.iter().map(|record| SealedEntry::seal(&mut chain, record, &mut salt).unwrap()).collect();
    let row = execution.row();
    let plan = PlanId::new("plan_used");
    store.open(ExecutionOpening { identity, plan, request: None, worker: None, entries, row }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn only_old_ended_executions_are_removed_and_only_without_dry_run() {
    let aged = Aged::with(&[(90, true), (60, true), (5, true), (90, false)]).await;
    let mut client = reader(&aged.deck).await;
    let json = client.call("cleanup_history", json!({ "cleanup_type": "all_old" })).await;
    assert_eq!((&json["dry_run"], &json["items_to_delete"]), (&json!(true), &json!(2)), "{json}");
    assert_fits(&mut client, "cleanup_history", &json).await;
    assert_eq!(aged.left().await, 4, "nothing is removed by default");
    let failed = json!({ "cleanup_type": "failed_old", "dry_run": false, "include_events": true });
    assert_eq!(client.call("cleanup_history", failed).await["items_deleted"], 0);

    let payloads = json!({ "cleanup_type": "completed_old", "older_than_days": 80, "dry_run": false });
    let erased = client.call("cleanup_history", payloads).await;
    assert_eq!((&erased["items_found"], &erased["items_deleted"]), (&json!(1), &json!(1)), "{erased}");
    assert!(erased["payloads"].as_u64().unwrap() >= 2 && erased["bytes"].as_u64().unwrap() > 0, "{erased}");
    let story = json!({ "execution_id": "exec_90_true", "include_events": true });
    let story = client.call("query_ledger", story).await;
    assert_eq!(story["status"], "completed", "the events stay: {story}");
    assert_eq!(story["events"][0]["event"]["inputs"], json!({ "erased": true }));

    let whole = json!({ "cleanup_type": "all_old", "dry_run": false, "include_events": true, "reason": "the law" });
    let gone = client.call("cleanup_history", whole.clone()).await;
    assert_eq!((&gone["items_deleted"], &gone["dry_run"]), (&json!(2), &json!(false)), "{gone}");
    assert_fits(&mut client, "cleanup_history", &gone).await;
    assert_eq!(aged.left().await, 2, "the recent one and the unfinished one stay");
    assert_eq!(code(&client.call("query_ledger", json!({ "execution_id": "exec_90_true" })).await), "store.not_found");
    assert_eq!(client.call("cleanup_history", whole).await["items_deleted"], 0, "once more changes nothing");
    let own = client.call("query_history", json!({ "query_type": "incomplete" })).await;
    assert_eq!(own["executions"][0]["execution_id"], "exec_90_false");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_plans_without_executions_are_counted_and_not_removed() {
    let aged = Aged::with(&[(90, true)]).await;
    let mut client = reader(&aged.deck).await;
    for dry_run in [true, false] {
        let counted = json!({ "cleanup_type": "orphaned_plans", "dry_run": dry_run });
        let counted = client.call("cleanup_history", counted).await;
        assert_eq!((&counted["items_found"], &counted["items_to_delete"]), (&json!(1), &json!(0)), "{counted}");
        assert!(counted["summary"].as_str().unwrap().contains("part of the ledger"), "{counted}");
    }
    assert_eq!(aged.deck.app.query.totals(&tenant()).await.unwrap().plans, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http_only_an_operator_removes_history() {
    let aged = Aged::with(&[(90, true)]).await;
    let secrets = [
        ("agent", PrincipalRole::Agent, "agent-token-of-enough-characters"),
        ("operator", PrincipalRole::Operator, "operator-token-of-enough-characters"),
    ];
    let tokens = secrets.iter().map(|(name, role, secret)| AccessToken::new(name, *role, secret)).collect();
    let (app, closing) = (&aged.deck.app, CancellationToken::new());
    let clock = Arc::new(|| SystemClock::system().now());
    let auth = Authenticator::open(app.register.clone(), tenant(), clock, tokens).await.unwrap();
    let door = Arc::new(RequestGate::new(Vec::new(), auth));
    let routes = rutter_mcp::http::routes(McpSurface::behind_gate(Arc::clone(app)), &closing);
    let pages = http::guarded_router([http::mcp(routes, Arc::clone(&door))], door);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/mcp?toolset=journal", listener.local_addr().unwrap());
    tokio::spawn(serve(listener, pages, closing.clone()));
    let version = "2026-07-28";
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "cleanup_history", "arguments": { "cleanup_type": "all_old", "dry_run": false, "include_events": true },
        "_meta": { "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientInfo": { "name": "tester", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {} } } });
    for ((_, role, secret), expected) in secrets.into_iter().zip(["server.not_allowed", "items_deleted"]) {
        let browser = rutter_tools::tls::client_builder().no_proxy().build().unwrap();
        let request = browser.post(&address).json(&body).bearer_auth(secret);
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.header("mcp-protocol-version", version).header("mcp-method", "tools/call");
        let answer = request.header("mcp-name", "cleanup_history").send().await.unwrap().text().await.unwrap();
        assert!(answer.contains(expected), "{role:?}: {answer}");
        assert_eq!(aged.left().await, if role == PrincipalRole::Operator { 0 } else { 1 });
    }
    closing.cancel();
}
