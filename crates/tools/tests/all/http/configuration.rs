//! The HTTP configuration: mistakes are reported with their location, and a changed request changes its definition.

use crate::http::fixture::*;
use rutter_core::tool::Safety;
use rutter_tools::connector::Connector;
use serde_json::{Map, Value, json};

const GOOD: &str = r#"
    [http.shop]
    base = "https://api.example.com/v1"
    headers = { Authorization = "Bearer ${secret:token}" }
    [http.shop.tools.order]
    description = "Orders."
    method = "POST"
    path = "/orders/{id}"
    input = { type = "object", properties = { id = { type = "string" } } }
    [secrets]
    token = { env = "TOKEN" }
"#;

#[test]
fn mistakes_are_reported_with_their_location() {
    let with = |from: &str, to: &str| GOOD.replace(from, to);
    for (text, place, message) in [
        (with("https://", "http://"), "http.shop.base", "use https"),
        (with("api.example.com", "10.0.0.1"), "http.shop.base", "private"),
        (with("api.example.com", "u:p@api.example.com"), "http.shop.base", "user or password"),
        (with("/v1\"", "/v1?a=b\""), "http.shop.base", "`?`"),
        (with("headers =", "allow = ['not a host']\nheaders ="), "http.shop.allow", "expected a host"),
        (with("headers =", "timeout_connect = '31s'\nheaders ="), "http.shop.timeout_connect", "at most 30s"),
        (with("/orders/{id}", "orders"), "http.shop.tools.order.path", "begins with `/`"),
        (with("/orders/{id}", "/orders?id={id}"), "http.shop.tools.order.path", "under `query`"),
        (with("/orders/{id}", "/a/../{id}"), "http.shop.tools.order.path", "`..`"),
        (with("/orders/{id}", "/a/%2E%2e/{id}"), "http.shop.tools.order.path", "`..`"),
        (with("/orders/{id}", "/orders/{id"), "http.shop.tools.order.path", "without `}`"),
        (with("/orders/{id}", "/orders/id}"), "http.shop.tools.order.path", "without `{`"),
        (with("/orders/{id}", "/orders/{}"), "http.shop.tools.order.path", "expected a name"),
        (with("/orders/{id}", "/${secret:token}"), "http.shop.tools.order.path", "a secret cannot"),
        (with("/orders/{id}", "/orders/{other}"), "http.shop.tools.order.input", "\"other\""),
        (with("secret:token", "secret:tokken"), "http.shop.tools.order.headers.Authorization", "tokken"),
        (with("Authorization", "Host"), "http.shop.tools.order.headers.Host", "set by the connection"),
        (with("Authorization", "'a b'"), "http.shop.tools.order.headers.a b", "not a header"),
        (with("Bearer", "Bear\\ner"), "http.shop.tools.order.headers.Authorization", "visible"),
        (with("description", "redirects = 4\ndescription"), "http.shop.tools.order.redirects", "at most 3"),
        (with("description", "result = 'a'\ndescription"), "http.shop.tools.order.result", "JSON pointer"),
        (with("description", "body = ['x']\ndescription"), "http.shop.tools.order.input", "\"x\""),
        (with("description", "key_parameter = 'k'\ndescription"), "http.shop.tools.order.input", "\"k\""),
        (with("description", "outcome = {200 = 'conflict'}\ndescription"), "http.shop.tools.order.outcome", "2xx"),
    ] {
        let error = try_configured("", &text).unwrap_err();
        assert!(error.contains(&format!("{place}: ")) && error.contains(message), "{place} {message}: {error}");
    }
    try_configured("", GOOD).unwrap();
}

#[test]
fn unknown_keys_and_values_are_refused_where_they_are() {
    for (line, message) in [
        ("colour = 1", "unknown field `colour`"),
        ("method = 'FETCH'", "unknown variant `FETCH`"),
        ("body = 'xml'", "expected `json`, `form`, `none`"),
        ("body = [1]", "names of parameters"),
        ("input = 'not json'", "JSON Schema"),
        ("input = '[]'", "as an object"),
        ("outcome = {70 = 'done'}", "expected a status"),
        ("outcome = {9xx = 'done'}", "expected a status"),
        ("outcome = {404 = 'perhaps'}", "expected `done`"),
        ("outcome = {404 = 'done conflict'}", "expected `done`"),
        ("outcome = {404 = 'maybe not_done'}", "expected `done`"),
        ("outcome = {404 = ''}", "expected `done`"),
        ("rate = '5'", "expected a rate"),
        ("safety = 'sometimes'", "unknown variant"),
    ] {
        let text = format!("[http.shop]\nbase = 'https://a.example'\n[http.shop.tools.order]\npath = '/'\n{line}\n");
        let error = config("", &text).unwrap_err();
        assert!(error.contains(message) && error.contains("line 5"), "{line}: {error}");
    }
    let error = config("", "[http.shop]\nbase = 'https://a.example'\ntrust = true\n").unwrap_err();
    assert!(error.contains("line 3") && error.contains("unknown field `trust`"), "{error}");
}

#[tokio::test]
async fn a_changed_request_has_another_definition() {
    let original = definition(GOOD).await;
    assert_eq!(original, definition(GOOD).await);
    // Saved plans pin this text: it does not depend on how our types are called.
    let meant = definition(&GOOD.replace("description", "outcome = {404 = 'done'}\ndescription")).await;
    let pinned = "Orders.\n\nSends POST https://api.example.com/v1/orders/{id} (request 6794c4c556f2).";
    assert_eq!(meant["description"], pinned);
    assert_eq!(original["inputSchema"]["properties"], json!({"id": {"type": "string"}}));
    assert_eq!(original["annotations"], json!({"readOnlyHint": false}));
    let description = original["description"].as_str().unwrap();
    assert!(description.starts_with("Orders.\n\nSends POST https://api.example.com/v1/orders/{id} (request "));
    for (from, to) in [
        ("POST", "PUT"),
        ("/orders/{id}", "/order/{id}"),
        ("api.example.com", "api.example.org"),
        ("Bearer", "Basic"),
        ("description", "query = {a = '{id}'}\ndescription"),
        ("description", "headers = {a = '{id}'}\ndescription"),
        ("description", "body = ['id']\ndescription"),
        ("description", "body = 'form'\ndescription"),
        ("description", "result = '/a'\ndescription"),
        ("description", "redirects = 1\ndescription"),
        ("description", "outcome = {404 = 'done'}\ndescription"),
        ("description", "idempotency_header = 'Key'\ndescription"),
        ("description", "output = {type = 'object'}\ndescription"),
        ("string", "integer"),
        ("Orders.", "Orders!"),
    ] {
        assert_ne!(original, definition(&GOOD.replace(from, to)).await, "{from} -> {to}");
    }
    for (from, to) in [
        ("headers =", "timeout_connect = '3s'\nheaders ="),
        ("description", "rate = '5/s'\ndescription"),
        ("description", "body = 'json'\ndescription"),
    ] {
        assert_eq!(original, definition(&GOOD.replace(from, to)).await, "{from} -> {to}");
    }
}

#[tokio::test]
async fn methods_and_keys_determine_the_safety() {
    let annotations = async |text: &str| definition(text).await["annotations"].clone();
    assert_eq!(annotations(&GOOD.replace("POST", "GET")).await, json!({"readOnlyHint": true}));
    let keyed = GOOD.replace("description", "idempotency_header = 'Key'\ndescription");
    assert_eq!(annotations(&keyed).await, json!({"readOnlyHint": false, "idempotentHint": true}));
    let text = GOOD.replace("description", "safety = 'idempotent'\nhidden = true\nrate = '5/s'\ndescription");
    let common = config("", &text).unwrap().http["shop"].common();
    assert!(common.trust && common.tools["order"].hidden);
    assert_eq!(common.tools["order"].safety, Some(Safety::Idempotent));
    assert_eq!(common.tools["order"].rate.unwrap().calls, 5);
}

async fn definition(text: &str) -> Map<String, Value> {
    let served = try_configured("", text).unwrap().list().await.unwrap();
    assert_eq!(served.len(), 1);
    served[0].definition.clone()
}
