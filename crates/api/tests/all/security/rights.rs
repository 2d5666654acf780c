//! Scopes: every operation with every kind of key, valid and invalid.

use crate::security::harbour::{Answer, Harbour, owner, tenant};
use crate::security::routes::{Entry, Route, all, counted};
use rutter_app::auth::AccessScope;
use rutter_app::auth::key::NewApiKey;
use rutter_core::journal::event::Event;
use rutter_core::port::query::{EntryFilter, Pagination};
use rutter_core::time::Millis;
use serde_json::json;

struct Somebody {
    name: &'static str,
    secret: Option<String>,
    scopes: Vec<AccessScope>,
}

async fn everybody(harbour: &Harbour) -> Vec<Somebody> {
    let mut everybody = Vec::new();
    for (name, scopes) in [
        ("looks", vec![AccessScope::Read]),
        ("operates", vec![AccessScope::Operate]),
        ("approves", vec![AccessScope::Approve]),
        ("administers", vec![AccessScope::Admin]),
        ("looks and operates", vec![AccessScope::Read, AccessScope::Operate]),
        ("looks and administers", vec![AccessScope::Read, AccessScope::Admin]),
        ("does all", AccessScope::ALL.to_vec()),
    ] {
        let (_, secret) = harbour.key(name, &scopes).await;
        everybody.push(Somebody { name, secret: Some(secret), scopes });
    }
    let (revoked, secret) = harbour.key("revoked", &AccessScope::ALL).await;
    harbour.auth.revoke(&owner(), &revoked.id).await.unwrap();
    everybody.push(Somebody { name: "revoked", secret: Some(secret), scopes: Vec::new() });
    let new = NewApiKey { name: "expired".to_owned(), scopes: AccessScope::ALL.into(), expires_in: Some(Millis(1)) };
    let (_, secret) = harbour.auth.create(&owner(), new).await.unwrap();
    harbour.time.pass(Millis(1));
    everybody.push(Somebody { name: "expired", secret: Some(secret), scopes: Vec::new() });
    everybody.push(Somebody { name: "nobody", secret: None, scopes: Vec::new() });
    everybody
}

async fn ask(harbour: &Harbour, route: &Route, somebody: &Somebody) -> Answer {
    let bearer = somebody.secret.as_ref().map(|secret| format!("Bearer {secret}"));
    let mut headers = vec![("Content-Type", "application/json")];
    headers.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));
    let body = if route.method == "GET" { "" } else { "{}" };
    harbour.ask(&harbour.request(&route.method, &route.path, &headers, body)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_requires_its_scope() {
    let harbour = Harbour::new().await;
    let everybody = everybody(&harbour).await;
    let mut cases = 0;
    for route in &all() {
        let Entry::Both(scope) = route.entry else { continue };
        for somebody in &everybody {
            let answer = ask(&harbour, route, somebody).await;
            let is_known = !somebody.scopes.is_empty();
            // Every operation needs read as well.
            let missing = [AccessScope::Read, scope].into_iter().find(|scope| !somebody.scopes.contains(scope));
            match (is_known, missing) {
                (false, _) => assert_eq!(answer.status, 401, "{} {route:?} {answer:?}", somebody.name),
                (true, Some(missing)) => {
                    assert_eq!(answer.status, 403, "{} {route:?} {answer:?}", somebody.name);
                    assert!(answer.body.contains(missing.as_str()), "it names the scope: {answer:?}");
                }
                (true, None) => {
                    assert!(!matches!(answer.status, 0 | 401 | 403 | 500..), "{} {route:?} {answer:?}", somebody.name);
                }
            }
            cases += 1;
        }
    }
    counted("operations and keys", cases);
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_requires_read_and_admin_for_the_admin_toolset() {
    let harbour = Harbour::new().await;
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "tester", "version": "1" } } });
    let message = message.to_string();
    let mut cases = 0;
    for bits in 0..16_u8 {
        let scopes: Vec<AccessScope> =
            AccessScope::ALL.into_iter().filter(|scope| bits & (1 << *scope as u8) != 0).collect();
        if scopes.is_empty() {
            continue;
        }
        let (_, secret) = harbour.key(&format!("key {bits}"), &scopes).await;
        for toolset in ["default", "journal", "admin"] {
            let bearer = format!("Bearer {secret}");
            let accept = "application/json, text/event-stream";
            let headers =
                [("Authorization", bearer.as_str()), ("Content-Type", "application/json"), ("Accept", accept)];
            let path = format!("/mcp?toolset={toolset}");
            let answer = harbour.ask(&harbour.request("POST", &path, &headers, &message)).await;
            let has = |scope| scopes.contains(&scope);
            let may = has(AccessScope::Read) && (toolset != "admin" || has(AccessScope::Admin));
            assert_eq!(answer.status, if may { 200 } else { 403 }, "{scopes:?} {toolset} {answer:?}");
            cases += 1;
        }
    }
    counted("keys and toolsets", cases);
}

/// Acts that were refused, with their codes, in order.
async fn refusals(harbour: &Harbour) -> Vec<(String, String)> {
    harbour.deck.app.refusals.flush().await;
    let filter = EntryFilter { kinds: vec!["act_refused".to_owned()], ..EntryFilter::default() };
    let entries = harbour.deck.app.query.entries(&tenant(), filter, Pagination::first(100)).await.unwrap();
    let refused = entries.items.into_iter().rev().map(|entry| match entry.record.event {
        Event::ActRefused { act, code, .. } => (act, code),
        other => panic!("{other:?}"),
    });
    refused.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_and_missing_secrets_and_the_sessions_of_others_are_on_record() {
    let harbour = Harbour::new().await;
    let (_, one) = harbour.key("one", &[AccessScope::Read]).await;
    let (_, other) = harbour.key("other", &[AccessScope::Read]).await;
    let introduction = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "tester", "version": "1" } } });
    let introduced = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let mcp = async |secret: Option<&str>, session: Option<&str>| {
        let bearer = secret.map(|secret| format!("Bearer {secret}"));
        let accept = "application/json, text/event-stream";
        let mut headers = vec![("Content-Type", "application/json"), ("Accept", accept)];
        headers.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));
        headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
        let body = if session.is_some() { &introduced } else { &introduction };
        harbour.ask(&harbour.request("POST", "/mcp", &headers, &body.to_string())).await
    };
    let begun = mcp(Some(one.as_str()), None).await;
    let session = begun.header("mcp-session-id").unwrap_or_else(|| panic!("{begun:?}"));
    assert_eq!(mcp(Some(one.as_str()), Some(session)).await.status, 202);
    assert!(refusals(&harbour).await.is_empty(), "nothing was refused so far");
    assert_eq!(mcp(None, None).await.status, 401);
    assert_eq!(mcp(Some("rutter_unknown"), None).await.status, 401);
    assert_eq!(harbour.get("/api/v1/me", &[]).await.status, 401);
    assert_eq!(mcp(Some(other.as_str()), Some(session)).await.status, 404);
    assert_eq!(mcp(Some(other.as_str()), Some("made-up")).await.status, 404);
    let expected = [
        ("authenticate", "server.unauthorized"),
        ("authenticate", "server.unauthorized"),
        ("authenticate", "server.unauthorized"),
        // Only the session of another is a matter for the record, not one that nobody has.
        ("use_session", "server.session"),
    ];
    let expected = expected.map(|(act, code)| (act.to_owned(), code.to_owned()));
    assert_eq!(refusals(&harbour).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_has_the_scopes_of_its_key() {
    let harbour = Harbour::new().await;
    let routes = all();
    let pages = routes.iter().filter(|route| route.entry == Entry::Browsers && route.method == "GET");
    // Confirmation pages require the scope of the action.
    let pages = pages.filter(|route| route.path != "/nothing" && !route.path.ends_with("/confirm"));
    let pages: Vec<&Route> = pages.collect();
    let mut cases = 0;
    for (name, scopes) in
        [("looks", vec![AccessScope::Read]), ("approves", vec![AccessScope::Approve, AccessScope::Admin])]
    {
        let (_, secret) = harbour.key(name, &scopes).await;
        let (cookie, csrf) = harbour.session(&secret).await;
        let may_look = scopes.contains(&AccessScope::Read);
        for route in &pages {
            let answer = harbour.get(&route.path, &[("Cookie", &cookie), ("Accept", "text/html")]).await;
            // Webhooks and what they got are for administrators.
            let is_admins =
                ["/alerts/webhooks/", "/alerts/deliveries/"].iter().any(|page| route.path.starts_with(page));
            let expected = if may_look && !is_admins { &[200, 303, 404][..] } else { &[403] };
            assert!(expected.contains(&answer.status), "{name} {route:?} {answer:?}");
            cases += 1;
        }
        for path in ["/journal/sign", "/executions/bulk"] {
            let answer = harbour.post(path, &[("Cookie", &cookie)], &format!("csrf={csrf}")).await;
            assert_eq!(answer.status, 403, "{name} {path} {answer:?}");
            cases += 1;
        }
    }
    counted("sessions and pages", cases);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_ids_and_ids_of_others_look_the_same() {
    let harbour = Harbour::new().await;
    let (view, secret) = harbour.key("looks", &[AccessScope::Read]).await;
    let other = "f".repeat(64);
    let guesses = [
        format!("rutter_{}_{other}", view.id),
        format!("rutter_000000000000_{other}"),
        format!("rutter_agent_{other}"),
        format!("{}x", secret),
        secret.to_uppercase(),
    ];
    let mut answers = Vec::new();
    for guess in &guesses {
        let answer = harbour.get("/api/v1/me", &[("Authorization", &format!("Bearer {guess}"))]).await;
        answers.push((answer.status, answer.body));
    }
    assert!(answers.iter().all(|answer| *answer == answers[0] && answer.0 == 401), "{answers:?}");
    counted("guesses", guesses.len());
}
