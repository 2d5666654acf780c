//! Over HTTP: who is authenticated, and the page on which a person answers.

use reqwest::redirect::Policy;
use reqwest::{Client, Response, StatusCode};
use rutter_api::http::gate::RequestGate;
use rutter_api::http::{guarded_router, mcp, serve};
use rutter_app::auth::{AccessToken, Authenticator};
use rutter_app::principal::PrincipalRole;
use rutter_core::id::TenantId;
use rutter_core::port::query::Pagination;
use rutter_engine::SystemClock;
use rutter_mcp::McpSurface;
use rutter_testkit::server::fixture::ServerFixture;
use rutter_testkit::server::mcp_client::ClientEra;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

const AGENT: &str = "agent-token-of-enough-characters";
const OPERATOR: &str = "operator-token-of-enough-characters";

/// A listener on its own port, and its address.
async fn harbour(deck: &ServerFixture) -> (String, CancellationToken) {
    let tokens = vec![
        AccessToken::new("agent", PrincipalRole::Agent, AGENT),
        AccessToken::new("operator", PrincipalRole::Operator, OPERATOR),
    ];
    let clock = SystemClock::system();
    let (register, tenant) = (deck.app.register.clone(), TenantId::new("default"));
    let auth = Authenticator::open(register, tenant, Arc::new(move || clock.now()), tokens).await.unwrap();
    let door = Arc::new(RequestGate::new(Vec::new(), Arc::clone(&auth)));
    let closing = CancellationToken::new();
    let surface = McpSurface::behind_gate(Arc::clone(&deck.app));
    let rooms =
        [mcp(rutter_mcp::http::routes(surface, &closing), Arc::clone(&door)), rutter_web::router(&deck.app, auth)];
    let pages = guarded_router(rooms, door);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let link = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(serve(listener, pages, closing.clone()));
    (link, closing)
}

fn browser() -> Client {
    rutter_tools::tls::client_builder().redirect(Policy::none()).no_proxy().build().unwrap()
}

async fn text(response: Response) -> (StatusCode, String) {
    let status = response.status();
    (status, response.text().await.unwrap())
}

/// The session cookie of a response, in the form it is sent back.
fn chip(entered: &Response) -> String {
    let chip = entered.headers()["set-cookie"].to_str().unwrap();
    assert!(chip.contains("HttpOnly") && chip.contains("SameSite=Strict"), "{chip}");
    chip.split(';').next().unwrap().to_owned()
}

async fn waiting(deck: &ServerFixture) -> String {
    let plan = json!({ "name": "a <b>plan</b>", "steps": [ { "id": "keep", "tool": "memory.store",
        "parameters": { "text": "<script>alert(1)</script>" }, "cancellable": "irreversible",
        "approval": { "required": true } } ] });
    let mut client = deck.client(ClientEra::Modern).await;
    let waiting = client.call("execute_plan", json!({ "plan": plan })).await;
    assert_eq!(waiting["status"], "waiting", "{waiting}");
    waiting["execution_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_with_the_operators_token_approves_on_the_page_and_an_agent_cannot() {
    let deck = ServerFixture::new().await;
    let (link, closing) = harbour(&deck).await;
    let execution = waiting(&deck).await;
    let (browser, asked) = (browser(), format!("{link}/ask/{execution}"));
    let page = format!("{link}/executions/{execution}");

    let (status, body) = text(browser.get(&asked).send().await.unwrap()).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert!(!body.contains("memory.store"), "nothing is shown before signing in");
    let link = &link;
    let enter = |token: &str| {
        let fields = [("secret", token.to_owned()), ("next", format!("/ask/{execution}"))];
        browser.post(format!("{link}/enter")).form(&fields).send()
    };
    let entered = enter("nonsense").await.unwrap();
    assert_eq!(entered.status(), StatusCode::UNAUTHORIZED);
    assert!(entered.headers().get("set-cookie").is_none());
    let agents = chip(&enter(AGENT).await.unwrap());
    let (status, body) = text(browser.get(&page).header("cookie", &agents).send().await.unwrap()).await;
    assert_eq!(status, StatusCode::OK);
    assert!(body.contains("needs the scope approve") && !body.contains("value=\"approve\""), "{body}");

    let entered = enter(OPERATOR).await.unwrap();
    assert_eq!(entered.status(), StatusCode::SEE_OTHER);
    assert_eq!(entered.headers()["location"], format!("/ask/{execution}"));
    let chip = chip(&entered);
    let led = browser.get(&asked).header("cookie", &chip).send().await.unwrap();
    assert_eq!(led.headers()["location"], format!("/executions/{execution}#questions"));
    let (status, body) = text(browser.get(&page).header("cookie", &chip).send().await.unwrap()).await;
    assert_eq!(status, StatusCode::OK);
    assert!(body.contains("memory.store") && !body.contains("<script>"), "shown, escaped: {body}");

    let first = Pagination::first(1);
    let view = deck.app.query.executions(&TenantId::new("default"), Default::default(), first).await.unwrap();
    assert_eq!(view.items[0].row.status.as_str(), "waiting");
    let call = body.split("name=\"call\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let csrf = body.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let items = [("csrf", csrf), ("part", "keep"), ("call", call), ("say", "approve"), ("reason", "looks right")];
    let blind = browser.post(format!("{page}/answer")).header("cookie", &chip).form(&items[1..]);
    assert_eq!(blind.send().await.unwrap().status(), StatusCode::FORBIDDEN, "only our own page can answer");
    let foreign = browser.post(format!("{page}/answer")).header("cookie", &chip);
    let foreign = foreign.header("origin", "http://elsewhere.example").form(&items).send().await.unwrap();
    assert_eq!(foreign.status(), StatusCode::FORBIDDEN, "a page from elsewhere cannot answer");
    let answered = browser.post(format!("{page}/answer")).header("cookie", &chip).form(&items);
    assert_eq!(answered.send().await.unwrap().status(), StatusCode::SEE_OTHER);
    let mut client = deck.client(ClientEra::Modern).await;
    let done = client.call("status", json!({ "execution_id": execution, "wait_seconds": 30 })).await;
    assert_eq!(done["status"], "completed", "{done}");
    let again = browser.post(format!("{page}/answer")).header("cookie", &chip).form(&items);
    assert_eq!(again.send().await.unwrap().status(), StatusCode::CONFLICT, "an approval counts once");
    closing.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_token_or_with_a_foreign_host_are_refused() {
    let deck = ServerFixture::new().await;
    let (link, closing) = harbour(&deck).await;
    let mcp = format!("{link}/mcp");
    let list = |host: Option<&str>, origin: Option<&str>, token: Option<&str>| {
        let version = "2026-07-28";
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {} });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": meta } });
        let mut request = browser().post(&mcp).json(&body).header("accept", "application/json, text/event-stream");
        request = request.header("mcp-protocol-version", version).header("mcp-method", "tools/list");
        for (name, value) in [("host", host), ("origin", origin)] {
            if let Some(value) = value {
                request = request.header(name, value);
            }
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        async move { text(request.send().await.unwrap()).await }
    };
    assert_eq!(list(None, None, None).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(list(None, None, Some("wrong")).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(list(Some("rutter.example"), None, Some(AGENT)).await.0, StatusCode::FORBIDDEN);
    assert_eq!(list(None, Some("http://elsewhere.example"), Some(AGENT)).await.0, StatusCode::FORBIDDEN);
    assert_eq!(list(None, Some("null"), Some(AGENT)).await.0, StatusCode::FORBIDDEN);
    let other_port = list(None, Some("http://127.0.0.1:1"), Some(AGENT)).await;
    assert_eq!(other_port.0, StatusCode::FORBIDDEN, "another program's page on this machine");
    let (status, body) = list(None, Some(&link), Some(AGENT)).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert!(body.contains("execute_plan"));
    closing.cancel();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_belongs_to_the_principal_that_opened_it() {
    let deck = ServerFixture::new().await;
    let (link, closing) = harbour(&deck).await;
    let send = |token: &str, session: Option<&str>, message: Value| {
        let mut request = browser().post(format!("{link}/mcp")).json(&message).bearer_auth(token);
        request = request.header("accept", "application/json, text/event-stream");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        request.send()
    };
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": { "name": "tester", "version": "1" } } });
    let begun = send(AGENT, None, hello).await.unwrap();
    let session = begun.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    drop(begun);
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(send(AGENT, Some(&session), initialized).await.unwrap().status(), StatusCode::ACCEPTED);
    assert_eq!(send(AGENT, Some(&session), list.clone()).await.unwrap().status(), StatusCode::OK);
    assert_eq!(send(OPERATOR, Some(&session), list).await.unwrap().status(), StatusCode::NOT_FOUND);
    closing.cancel();
}
