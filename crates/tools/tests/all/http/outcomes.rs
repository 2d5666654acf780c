//! How calls end when servers, sockets and callers misbehave.

use crate::http::fixture::*;
use rutter_core::time::Millis;
use rutter_core::tool::{CallOutcome, FailureCategory};
use rutter_tools::connector::{Connector, ConnectorState};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

#[tokio::test]
async fn an_answer_of_json_is_the_result() {
    let fixture = HttpFixture::answering(json_answer("201 Created", &json!({"id": 7}))).await;
    let server = shop(&fixture);
    assert_eq!(server.state(), ConnectorState::Idle);
    assert_eq!(done(call(&server, "order", json!({"sku": "x"})).await), json!({"id": 7}));
    assert_eq!(server.state(), ConnectorState::Ready);
    let seen = fixture.last();
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/orders"));
    assert_eq!(seen.json(), json!({"sku": "x"}));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("accept-encoding"), Some("gzip"));
}

#[tokio::test]
async fn refusals_are_not_done_and_say_why() {
    for (status, category) in [
        ("400 Bad Request", FailureCategory::InvalidInput),
        ("401 Unauthorized", FailureCategory::Unauthorized),
        ("403 Forbidden", FailureCategory::Unauthorized),
        ("404 Not Found", FailureCategory::NotFound),
        ("405 Method Not Allowed", FailureCategory::InvalidInput),
        ("409 Conflict", FailureCategory::Conflict),
        ("413 Content Too Large", FailureCategory::InvalidInput),
        ("415 Unsupported Media Type", FailureCategory::InvalidInput),
        ("422 Unprocessable Content", FailureCategory::InvalidInput),
        ("429 Too Many Requests", FailureCategory::RateLimited),
    ] {
        let body = json!({"title": "no", "detail": "there is no stock\nleft"});
        let fixture = HttpFixture::answering(json_answer(status, &body)).await;
        let failure = not_done(call(&shop(&fixture), "order", json!({})).await);
        assert_eq!(failure.category, category, "{status}");
        assert!(failure.message.ends_with(": there is no stock left"), "{}", failure.message);
    }
}

#[tokio::test]
async fn server_errors_prove_nothing() {
    for (status, category) in [
        ("500 Internal Server Error", FailureCategory::ToolError),
        ("501 Not Implemented", FailureCategory::ToolError),
        ("502 Bad Gateway", FailureCategory::Unavailable),
        ("503 Service Unavailable", FailureCategory::Unavailable),
        ("504 Gateway Timeout", FailureCategory::Timeout),
        ("408 Request Timeout", FailureCategory::Timeout),
        ("418 I'm a teapot", FailureCategory::ToolError),
        ("302 Found", FailureCategory::Protocol),
    ] {
        let fixture = HttpFixture::answering(answer(status, &[], "")).await;
        assert_eq!(maybe(call(&shop(&fixture), "order", json!({})).await).category, category, "{status}");
        assert_eq!(fixture.effects(), 1);
    }
}

#[tokio::test]
async fn a_server_that_sends_retry_after_has_not_begun() {
    for (status, category) in [
        ("429 Too Many Requests", FailureCategory::RateLimited),
        ("503 Service Unavailable", FailureCategory::Unavailable),
    ] {
        for (header, span) in [
            ("retry-after: 7", Millis::seconds(7)),
            // The request was made at 08:49:37.
            ("retry-after: Sun, 06 Nov 1994 08:50:37 GMT", Millis::seconds(60)),
        ] {
            let fixture = HttpFixture::answering(answer(status, &[header], "")).await;
            let failure = not_done(call(&shop(&fixture), "order", json!({})).await);
            assert_eq!((failure.category, failure.retry_after), (category, Some(span)), "{status} {header}");
        }
    }
}

#[tokio::test]
async fn a_refused_connection_is_not_done() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let text = "[http.shop]\nbase = 'BASE'\nallow = ['127.0.0.1']\ntools.order = {method = 'POST', path = '/'}";
    let server = configured(&format!("http://{address}"), text);
    let failure = not_done(call(&server, "order", json!({})).await);
    assert_eq!(failure.category, FailureCategory::Unavailable);
    assert!(failure.message.to_lowercase().contains("refused"), "{}", failure.message);
    assert!(matches!(server.state(), ConnectorState::Down { .. }));
}

#[tokio::test]
async fn a_name_without_addresses_is_not_done() {
    let text = "[http.shop]\nbase = 'https://nowhere.invalid'\ntools.order = {method = 'POST', path = '/'}";
    let failure = not_done(call(&configured("", text), "order", json!({})).await);
    assert_eq!(failure.category, FailureCategory::Unavailable);
    assert_eq!(failure.message, "nowhere.invalid could not be resolved");
}

#[tokio::test]
async fn a_failed_handshake_is_not_done() {
    let fixture = HttpFixture::answering("this is not TLS, whatever it says").await;
    let text = "[http.shop]\nbase = 'BASE'\nallow = ['127.0.0.1']\ntools.order = {method = 'POST', path = '/'}";
    let server = configured(&format!("https://{}", fixture.address), text);
    let mut request = request("order", json!({}));
    request.timeout = Duration::from_secs(2);
    assert_ne!(not_done(server.call(request).await).category, FailureCategory::ToolError);
    assert_eq!((fixture.effects(), fixture.connections()), (0, 1));
}

#[tokio::test]
async fn a_handshake_that_hangs_ends_with_the_connect_timeout_as_not_done() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = "[http.shop]\nbase = 'BASE'\nallow = ['127.0.0.1']\ntimeout_connect = '100ms'\n\
                tools.order = {method = 'POST', path = '/'}";
    let server = configured(&format!("https://{}", listener.local_addr().unwrap()), text);
    let begun = Instant::now();
    let failure = not_done(call(&server, "order", json!({})).await);
    assert_eq!(failure.category, FailureCategory::Unavailable);
    assert!(failure.message.contains("no connection in time"), "{}", failure.message);
    assert!(begun.elapsed() < SOON);
}

#[tokio::test]
async fn a_socket_dropped_after_the_effect_leaves_a_doubt_and_one_effect() {
    let fixture = HttpFixture::answering("").await;
    let failure = maybe(call(&shop(&fixture), "order", json!({})).await);
    assert_eq!(failure.category, FailureCategory::Unavailable);
    assert_eq!((fixture.effects(), fixture.connections()), (1, 1));
}

#[tokio::test]
async fn a_socket_dropped_before_reading_leaves_a_doubt_and_no_second_try() {
    let fixture = HttpFixture::start(|_| Act::CloseUnread).await;
    maybe(call(&shop(&fixture), "order", json!({})).await);
    assert_eq!((fixture.effects(), fixture.connections()), (0, 1));
}

#[tokio::test]
async fn a_socket_dropped_in_the_middle_of_the_answer_leaves_a_doubt() {
    let fixture = HttpFixture::answering("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"id\":").await;
    let failure = maybe(call(&shop(&fixture), "order", json!({})).await);
    assert!(failure.message.contains("middle of the answer"), "{}", failure.message);
    assert_eq!((fixture.effects(), fixture.connections()), (1, 1));
}

#[tokio::test]
async fn a_refusal_counts_even_when_its_text_is_lost() {
    let fixture = HttpFixture::answering("HTTP/1.1 409 Conflict\r\ncontent-length: 100\r\n\r\nhalf").await;
    assert_eq!(not_done(call(&shop(&fixture), "order", json!({})).await).category, FailureCategory::Conflict);
}

#[tokio::test]
async fn a_server_that_stalls_ends_with_the_timeout_and_a_closed_connection() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{".to_vec();
    for sent in [Vec::new(), half] {
        let fixture = HttpFixture::start(move |_| Act::Stall(sent.clone())).await;
        let mut request = request("order", json!({}));
        request.timeout = Duration::from_millis(150);
        let failure = maybe(shop(&fixture).call(request).await);
        assert_eq!(failure.category, FailureCategory::Timeout);
        assert!(failure.message.starts_with("no answer within 150ms"), "{}", failure.message);
        fixture.until_hung_up().await;
        assert_eq!(fixture.effects(), 1);
    }
}

#[tokio::test]
async fn headers_that_come_byte_by_byte_do_not_extend_the_timeout() {
    let fixture = HttpFixture::start(|_| Act::Drip(b"HTTP/1.1 200 OK\r\nx: ".to_vec(), Duration::from_millis(5))).await;
    let mut request = request("order", json!({}));
    request.timeout = Duration::from_millis(200);
    assert_eq!(maybe(shop(&fixture).call(request).await).category, FailureCategory::Timeout);
    fixture.until_hung_up().await;
}

#[tokio::test]
async fn endless_headers_are_not_collected() {
    let mut bytes = b"HTTP/1.1 200 OK\r\n".to_vec();
    for number in 0..200_000 {
        bytes.extend_from_slice(format!("x-{number}: {number}\r\n").as_bytes());
    }
    let fixture = HttpFixture::answering(bytes).await;
    maybe(call(&shop(&fixture), "order", json!({})).await);
    assert_eq!(fixture.connections(), 1);
}

#[tokio::test]
async fn cancelled_after_sending_closes_the_connection_and_leaves_a_doubt() {
    let fixture = HttpFixture::start(|_| Act::Stall(Vec::new())).await;
    let server = shop(&fixture);
    let request = request("order", json!({}));
    let cancel = request.cancel.clone();
    let (outcome, ()) = tokio::join!(server.call(request), async {
        fixture.until_effects(1).await;
        cancel.cancel();
    });
    assert_eq!(maybe(outcome).category, FailureCategory::Cancelled);
    fixture.until_hung_up().await;
    assert_eq!(fixture.effects(), 1);
}

#[tokio::test]
async fn cancelled_before_sending_is_not_done() {
    let fixture = HttpFixture::answering("").await;
    let request = request("order", json!({}));
    request.cancel.cancel();
    assert_eq!(not_done(shop(&fixture).call(request).await).category, FailureCategory::Cancelled);
    assert_eq!(fixture.connections(), 0);
}

#[tokio::test]
async fn cancelled_while_connecting_is_not_done() {
    // Connected, but the TLS handshake never ends, so that the request was not sent yet.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = "[http.shop]\nbase = 'BASE'\nallow = ['127.0.0.1']\ntools.order = {method = 'POST', path = '/'}";
    let server = configured(&format!("https://{}", listener.local_addr().unwrap()), text);
    let request = request("order", json!({}));
    let cancel = request.cancel.clone();
    let (outcome, ()) = tokio::join!(server.call(request), async {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.flush().await.unwrap();
        cancel.cancel();
    });
    let failure = not_done(outcome);
    assert_eq!(
        (failure.category, failure.message.as_str()),
        (FailureCategory::Cancelled, "cancelled; nothing was sent")
    );
}

#[tokio::test]
async fn closing_ends_calls_in_flight_and_refuses_new_ones() {
    let fixture = HttpFixture::start(|_| Act::Stall(Vec::new())).await;
    let server = shop(&fixture);
    let (outcome, ()) = tokio::join!(server.call(request("order", json!({}))), async {
        fixture.until_effects(1).await;
        server.close().await;
    });
    assert_eq!(maybe(outcome).category, FailureCategory::Cancelled);
    not_done(call(&server, "order", json!({})).await);
    assert_eq!(fixture.effects(), 1);
}

#[tokio::test]
async fn calls_at_once_do_not_share_what_they_know() {
    let fixture = HttpFixture::start(|seen| match seen {
        Some(seen) if seen.json()["id"] == 0 => Act::Stall(Vec::new()),
        Some(seen) => Act::Send(json_answer("200 OK", &seen.json())),
        None => Act::Send(Vec::new()),
    })
    .await;
    let server = shop(&fixture);
    let mut first = request("order", json!({"id": 0}));
    first.timeout = Duration::from_secs(2);
    let rest = futures::future::join_all((1..50).map(|id| call(&server, "order", json!({"id": id}))));
    let (first, rest) = tokio::join!(server.call(first), rest);
    assert_eq!(maybe(first).category, FailureCategory::Timeout);
    for (id, outcome) in (1..50).zip(rest) {
        assert_eq!(done(outcome), json!({"id": id}));
    }
    assert_eq!((fixture.effects(), fixture.connections()), (50, 50));
}

#[tokio::test]
async fn the_operator_says_what_statuses_mean() {
    let text = r#"
        [http.shop]
        base = "BASE"
        allow = ["127.0.0.1"]
        [http.shop.tools.order]
        method = "DELETE"
        path = "/orders"
        outcome = { 404 = "done", 409 = "maybe", 5xx = "not_done unavailable", 502 = "maybe", 402 = "not_done unauthorized", 403 = "conflict", 202 = "maybe" }
    "#;
    let outcome = async |status: &str| {
        let fixture = HttpFixture::answering(json_answer(status, &json!({"a": 1}))).await;
        call(&configured(&fixture.base(), text), "order", json!({})).await
    };
    assert_eq!(done(outcome("404 Not Found").await), json!({"a": 1}));
    assert_eq!(maybe(outcome("409 Conflict").await).category, FailureCategory::Conflict);
    assert_eq!(not_done(outcome("500 Oops").await).category, FailureCategory::Unavailable);
    assert_eq!(maybe(outcome("502 Oops").await).category, FailureCategory::Unavailable);
    assert_eq!(not_done(outcome("402 Pay").await).category, FailureCategory::Unauthorized);
    assert_eq!(not_done(outcome("403 No").await).category, FailureCategory::Conflict);
    assert_eq!(maybe(outcome("202 Later").await).category, FailureCategory::ToolError);
    assert_eq!(done(outcome("200 OK").await), json!({"a": 1}));
}

#[tokio::test]
async fn a_ticket_or_an_unknown_tool_sends_nothing() {
    let fixture = HttpFixture::answering("").await;
    let server = shop(&fixture);
    let mut with_ticket = request("order", json!({}));
    with_ticket.ticket = Some("t".to_owned());
    maybe(server.call(with_ticket).await);
    assert_eq!(not_done(call(&server, "other", json!({})).await).category, FailureCategory::NotFound);
    assert!(matches!(call(&server, "order", json!([1])).await, CallOutcome::NotDone(_)));
    assert_eq!(fixture.connections(), 0);
}
