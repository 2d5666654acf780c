//! Parameters in paths, queries, headers and bodies: seen by the server exactly as meant, or never sent.

use crate::http::fixture::*;
use percent_encoding::percent_decode_str;
use rutter_core::tool::{CallOutcome, FailureCategory};
use serde_json::json;

const TEXT: &str = r#"
    [http.shop]
    base = "BASE/v1/"
    allow = ["127.0.0.1"]
    [http.shop.tools.in_path]
    path = "/orders/{id}/lines"
    input = { type = "object", properties = { id = {} } }
    [http.shop.tools.in_query]
    path = "/orders"
    query = { q = "{id}", fixed = "a b&c", both = "<{id}>" }
    input = { type = "object", properties = { id = {} } }
    [http.shop.tools.in_header]
    path = "/orders"
    headers = { X-Id = "{id}" }
    input = { type = "object", properties = { id = {} } }
    [http.shop.tools.in_form]
    method = "POST"
    path = "/orders"
    body = "form"
    [http.shop.tools.in_json]
    method = "POST"
    path = "/orders"
"#;

const HOSTILE: [&str; 66] = [
    "plain",
    "a b",
    "a+b",
    "a%20b",
    "%2e%2e",
    "%2E%2E%2F",
    "..",
    ".",
    "...",
    "../",
    "../../admin",
    "a/../b",
    "a/./b",
    "/",
    "//",
    "//evil.example",
    "/etc/passwd",
    "\\",
    "..\\..\\x",
    "a\\b",
    "?",
    "?admin=true",
    "a?b",
    "#",
    "#fragment",
    "@",
    "user@evil.example",
    "user:password@evil.example",
    "http://evil.example/",
    "https:evil.example",
    ":80",
    ";a=b",
    "a&b=c",
    "a=b",
    "\r\n",
    "a\r\nX-Evil: 1",
    "a\nb",
    "a\rb",
    "a\r\n\r\nGET /evil HTTP/1.1\r\n\r\n",
    "\0",
    "a\0b",
    "\u{1}",
    "\u{7f}",
    "\t",
    "a\tb",
    "",
    " ",
    " a",
    "a ",
    "é",
    "日本",
    "🙂",
    "\u{202e}x",
    "\u{feff}",
    "\u{85}",
    "\u{2028}",
    "。。/",
    "．．／",
    "%00",
    "%",
    "%zz",
    "{id}",
    "{{id}}",
    "${secret:token}",
    "'; drop table x; --",
    "<script>",
];

/// Sends every hostile text, and checks how the server saw it, or that it was not sent.
async fn check(tool: &str, found: impl Fn(&Seen) -> String, may_be_sent: impl Fn(&str) -> bool) {
    let fixture = HttpFixture::answering(json_answer("200 OK", &json!({}))).await;
    let server = configured(&fixture.base(), TEXT);
    let mut sent = 0;
    for text in HOSTILE {
        match call(&server, tool, json!({"id": text})).await {
            CallOutcome::Done { .. } => {
                sent += 1;
                assert!(may_be_sent(text), "{tool}: {text:?} was sent");
                assert_eq!(found(&fixture.last()), text, "{tool}");
                assert_eq!(fixture.last().header("x-evil"), None);
            }
            CallOutcome::NotDone(failure) => {
                assert_eq!(failure.category, FailureCategory::InvalidInput);
                assert!(!may_be_sent(text), "{tool}: {text:?} was not sent: {failure}");
            }
            other => panic!("{text:?}: {other:?}"),
        }
        assert_eq!((fixture.effects(), fixture.connections()), (sent, sent), "{text:?}");
    }
    assert!(sent > 20);
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8().unwrap().into_owned()
}

#[tokio::test]
async fn a_slot_in_a_path_is_one_segment() {
    let found = |seen: &Seen| {
        let segments: Vec<&str> = seen.target.split('/').collect();
        let ["", "v1", "orders", id, "lines"] = segments[..] else { panic!("{}", seen.target) };
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte);
        assert!(id.bytes().all(plain), "{id}");
        decoded(id)
    };
    let dots = |segment: &str| {
        let plain = segment.to_lowercase().replace("%2e", ".");
        plain == "." || plain == ".."
    };
    let may_be_sent =
        |text: &str| !text.is_empty() && !text.contains(char::is_control) && !text.split(['/', '\\']).any(dots);
    check("in_path", found, may_be_sent).await;
}

#[tokio::test]
async fn a_slot_in_a_query_is_one_value() {
    let found = |seen: &Seen| {
        let (path, query) = seen.target.split_once('?').unwrap();
        assert_eq!(path, "/v1/orders");
        let pairs: Vec<(&str, &str)> = query.split('&').map(|pair| pair.split_once('=').unwrap()).collect();
        let [("both", both), ("fixed", "a%20b%26c"), ("q", q)] = pairs[..] else { panic!("{query}") };
        assert_eq!(decoded(both), format!("<{}>", decoded(q)));
        decoded(q)
    };
    check("in_query", found, |_| true).await;
}

#[tokio::test]
async fn a_slot_in_a_header_is_visible_or_not_sent() {
    let found = |seen: &Seen| {
        assert_eq!(seen.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("x-id")).count(), 1);
        seen.header("x-id").unwrap().to_owned()
    };
    let may_be_sent = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && text.trim() == text;
    check("in_header", found, may_be_sent).await;
}

#[tokio::test]
async fn a_parameter_in_a_form_is_one_value() {
    let found = |seen: &Seen| {
        let body = std::str::from_utf8(&seen.body).unwrap();
        let pairs: Vec<(String, String)> = url::form_urlencoded::parse(&seen.body).into_owned().collect();
        let [(name, value)] = &pairs[..] else { panic!("{body}") };
        assert_eq!(name, "id");
        assert_eq!(seen.header("content-type"), Some("application/x-www-form-urlencoded"));
        value.clone()
    };
    check("in_form", found, |_| true).await;
}

#[tokio::test]
async fn a_parameter_in_json_is_one_value() {
    check("in_json", |seen| seen.json()["id"].as_str().unwrap().to_owned(), |_| true).await;
}

#[tokio::test]
async fn values_of_other_types_are_written_plainly_or_refused() {
    let fixture = HttpFixture::answering(json_answer("200 OK", &json!({}))).await;
    let server = configured(&fixture.base(), TEXT);
    for (value, target) in [(json!(7), "7"), (json!(1.5), "1.5"), (json!(true), "true"), (json!(-1), "-1")] {
        done(call(&server, "in_path", json!({"id": value})).await);
        assert_eq!(fixture.last().target, format!("/v1/orders/{target}/lines"));
    }
    let sent = fixture.effects();
    for value in [json!(null), json!([1]), json!({"a": 1})] {
        not_done(call(&server, "in_path", json!({"id": value})).await);
    }
    not_done(call(&server, "in_path", json!({})).await);
    not_done(call(&server, "in_header", json!({"id": ["a", "b"]})).await);
    not_done(call(&server, "in_form", json!({"id": {"a": 1}})).await);
    not_done(call(&server, "in_path", json!({"id": "x".repeat(9_000)})).await);
    not_done(call(&server, "in_header", json!({"id": "x".repeat(9_000)})).await);
    assert_eq!(fixture.effects(), sent);
}

#[tokio::test]
async fn missing_parameters_are_left_out_and_lists_are_repeated() {
    let text = "[http.shop]\nbase = 'BASE'\nallow = ['127.0.0.1']\n[http.shop.tools.find]\npath = '/'\n\
                query = {tag = '{tag}'}\nheaders = {X-Tag = '{one}'}\n\
                input = '{\"properties\": {\"tag\": {}, \"one\": {}}}'";
    let fixture = HttpFixture::answering(json_answer("200 OK", &json!({}))).await;
    let server = configured(&fixture.base(), text);
    for (parameters, target) in [
        (json!({}), "/"),
        (json!({"tag": null}), "/"),
        (json!({"tag": []}), "/"),
        (json!({"tag": ["a", 2]}), "/?tag=a&tag=2"),
    ] {
        done(call(&server, "find", parameters).await);
        assert_eq!(fixture.last().target, target);
        assert_eq!(fixture.last().header("x-tag"), None);
    }
}

#[tokio::test]
async fn the_body_holds_what_was_named_and_the_header_the_key() {
    let text = "[http.shop]\nbase = 'BASE'\nallow = ['127.0.0.1']\n[http.shop.tools.order]\nmethod = 'PUT'\n\
                path = '/orders/{id}'\nbody = ['sku']\nidempotency_header = 'Idempotency-Key'\n\
                input = '{\"properties\": {\"id\": {}, \"sku\": {}}}'";
    let fixture = HttpFixture::answering(json_answer("200 OK", &json!({}))).await;
    let server = configured(&fixture.base(), text);
    done(call(&server, "order", json!({"id": 1, "sku": {"a": [1]}})).await);
    let seen = fixture.last();
    assert_eq!((seen.target.as_str(), seen.json()), ("/orders/1", json!({"sku": {"a": [1]}})));
    assert_eq!(seen.header("idempotency-key"), Some("key-1"));
}
