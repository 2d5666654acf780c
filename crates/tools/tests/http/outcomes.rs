//! How calls end when servers, sockets and callers do what they must not.

use crate::stage::*;
use rutter_core::time::Millis;
use rutter_core::tool::{Category, Outcome};
use rutter_tools::connector::{Connector, State};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

#[tokio::test]
async fn an_answer_of_json_is_the_result() {
    let stage = Stage::answering(json_answer("201 Created", &json!({"id": 7}))).await;
    let server = shop(&stage);
    assert_eq!(server.state(), State::Idle);
    assert_eq!(done(call(&server, "order", json!({"sku": "x"})).await), json!({"id": 7}));
    assert_eq!(server.state(), State::Ready);
    let seen = stage.last();
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/orders"));
    assert_eq!(seen.json(), json!({"sku": "x"}));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("accept-encoding"), Some("gzip"));
}

#[tokio::test]
async fn refusals_are_not_done_and_say_why() {
    for (status, category) in [
        ("400 Bad Request", Category::InvalidInput),
        ("401 Unauthorized", Category::Unauthorized),
        ("403 Forbidden", Category::Unauthorized),
        ("404 Not Found", Category::NotFound),
        ("405 Method Not Allowed", Category::InvalidInput),
        ("409 Conflict", Category::Conflict),
        ("413 Content Too Large", Category::InvalidInput),
        ("415 Unsupported Media Type", Category::InvalidInput),
        ("422 Unprocessable Content", Category::InvalidInput),
        ("429 Too Many Requests", Category::RateLimited),
    ] {
        let body = json!({"title": "no", "detail": "there is no stock\nleft"});
        let stage = Stage::answering(json_answer(status, &body)).await;
        let failure = not_done(call(&shop(&stage), "order", json!({})).await);
        assert_eq!(failure.category, category, "{status}");
        assert!(failure.message.ends_with(": there is no stock left"), "{}", failure.message);
    }
}

#[tokio::test]
async fn trouble_on_their_side_proves_nothing() {
    for (status, category) in [
        ("500 Internal Server Error", Category::ToolError),
        ("501 Not Implemented", Category::ToolError),
        ("502 Bad Gateway", Category::Unavailable),
        ("503 Service Unavailable", Category::Unavailable),
        ("504 Gateway Timeout", Category::Timeout),
        ("408 Request Timeout", Category::Timeout),
        ("418 I'm a teapot", Category::ToolError),
        ("302 Found", Category::Protocol),
    ] {
        let stage = Stage::answering(answer(status, &[], "")).await;
        assert_eq!(maybe(call(&shop(&stage), "order", json!({})).await).category, category, "{status}");
        assert_eq!(stage.effects(), 1);
    }
}

#[tokio::test]
async fn a_server_that_says_when_to_come_back_has_not_begun() {
    for (status, category) in
        [("429 Too Many Requests", Category::RateLimited), ("503 Service Unavailable", Category::Unavailable)]
    {
        for (header, span) in [
            ("retry-after: 7", Millis::seconds(7)),
            // The request was made at 08:49:37.
            ("retry-after: Sun, 06 Nov 1994 08:50:37 GMT", Millis::seconds(60)),
        ] {
            let stage = Stage::answering(answer(status, &[header], "")).await;
            let failure = not_done(call(&shop(&stage), "order", json!({})).await);
            assert_eq!((failure.category, failure.retry_after), (category, Some(span)), "{status} {header}");
        }
    }
}

#[tokio::test]
async fn nobody_listening_is_not_done() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let text =
        "[http.shop]\nbase = 'BASE'\nallow = ['127.0.0.1']\ntools.order = {method = 'POST', path = '/'}";
    let server = configured(&format!("http://{address}"), text);
    let failure = not_done(call(&server, "order", json!({})).await);
    assert_eq!(failure.category, Category::Unavailable);
    assert!(failure.message.to_lowercase().contains("refused"), "{}", failure.message);
    assert!(matches!(server.state(), State::Down { .. }));
}

#[tokio::test]
async fn a_name_without_addresses_is_not_done() {
    let text = "[http.shop]\nbase = 'https://nowhere.invalid'\ntools.order = {method = 'POST', path = '/'}";
    let failure = not_done(call(&configured("", text), "order", json!({})).await);
    assert_eq!(failure.category, Category::Unavailable);
    assert_eq!(failure.message, "nowhere.invalid could not be resolved");
}

#[tokio::test]
async fn a_failed_handshake_is_not_done() {
    let stage = Stage::answering("this is not TLS, whatever it says").await;
    let text =
        "[http.shop]\nbase = 'BASE'\nallow = ['127.0.0.1']\ntools.order = {method = 'POST', path = '/'}";
    let server = configured(&format!("https://{}", stage.address), text);
    let mut request = request("order", json!({}));
    request.timeout = Duration::from_secs(2);
    assert_ne!(not_done(server.call(request).await).category, Category::ToolError);
    assert_eq!((stage.effects(), stage.connections()), (0, 1));
}

#[tokio::test]
async fn a_handshake_that_hangs_ends_with_the_connect_timeout_as_not_done() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text = "[http.shop]\nbase = 'BASE'\nallow = ['127.0.0.1']\ntimeout_connect = '100ms'\n\
                tools.order = {method = 'POST', path = '/'}";
    let server = configured(&format!("https://{}", listener.local_addr().unwrap()), text);
    let begun = Instant::now();
    let failure = not_done(call(&server, "order", json!({})).await);
    assert_eq!(failure.category, Category::Unavailable);
    assert!(failure.message.contains("no connection in time"), "{}", failure.message);
    assert!(begun.elapsed() < SOON);
}

#[tokio::test]
async fn a_socket_dropped_after_the_effect_leaves_a_question_and_one_effect() {
    let stage = Stage::answering("").await;
    let failure = maybe(call(&shop(&stage), "order", json!({})).await);
    assert_eq!(failure.category, Category::Unavailable);
    assert_eq!((stage.effects(), stage.connections()), (1, 1));
}

#[tokio::test]
async fn a_socket_dropped_before_reading_leaves_a_question_and_no_second_try() {
    let stage = Stage::start(|_| Act::CloseUnread).await;
    maybe(call(&shop(&stage), "order", json!({})).await);
    assert_eq!((stage.effects(), stage.connections()), (0, 1));
}

#[tokio::test]
async fn a_socket_dropped_in_the_middle_of_the_answer_leaves_a_question() {
    let stage = Stage::answering("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"id\":").await;
    let failure = maybe(call(&shop(&stage), "order", json!({})).await);
    assert!(failure.message.contains("middle of the answer"), "{}", failure.message);
    assert_eq!((stage.effects(), stage.connections()), (1, 1));
}

#[tokio::test]
async fn a_refusal_counts_even_when_its_text_is_lost() {
    let stage = Stage::answering("HTTP/1.1 409 Conflict\r\ncontent-length: 100\r\n\r\nhalf").await;
    assert_eq!(not_done(call(&shop(&stage), "order", json!({})).await).category, Category::Conflict);
}

#[tokio::test]
async fn a_server_that_stalls_ends_with_the_timeout_and_a_closed_connection() {
    let half = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{".to_vec();
    for sent in [Vec::new(), half] {
        let stage = Stage::start(move |_| Act::Stall(sent.clone())).await;
        let mut request = request("order", json!({}));
        request.timeout = Duration::from_millis(150);
        let failure = maybe(shop(&stage).call(request).await);
        assert_eq!(failure.category, Category::Timeout);
        assert!(failure.message.starts_with("no answer within 150ms"), "{}", failure.message);
        stage.until_hung_up().await;
        assert_eq!(stage.effects(), 1);
    }
}

#[tokio::test]
async fn headers_that_come_byte_by_byte_do_not_extend_the_timeout() {
    let stage =
        Stage::start(|_| Act::Drip(b"HTTP/1.1 200 OK\r\nx: ".to_vec(), Duration::from_millis(5))).await;
    let mut request = request("order", json!({}));
    request.timeout = Duration::from_millis(200);
    assert_eq!(maybe(shop(&stage).call(request).await).category, Category::Timeout);
    stage.until_hung_up().await;
}

#[tokio::test]
async fn endless_headers_are_not_collected() {
    let mut bytes = b"HTTP/1.1 200 OK\r\n".to_vec();
    for number in 0..200_000 {
        bytes.extend_from_slice(format!("x-{number}: {number}\r\n").as_bytes());
    }
    let stage = Stage::answering(bytes).await;
    maybe(call(&shop(&stage), "order", json!({})).await);
    assert_eq!(stage.connections(), 1);
}

#[tokio::test]
async fn cancelled_after_sending_closes_the_connection_and_leaves_a_question() {
    let stage = Stage::start(|_| Act::Stall(Vec::new())).await;
    let server = shop(&stage);
    let request = request("order", json!({}));
    let cancel = request.cancel.clone();
    let (outcome, ()) = tokio::join!(server.call(request), async {
        stage.until_effects(1).await;
        cancel.cancel();
    });
    assert_eq!(maybe(outcome).category, Category::Cancelled);
    stage.until_hung_up().await;
    assert_eq!(stage.effects(), 1);
}

#[tokio::test]
async fn cancelled_before_sending_is_not_done() {
    let stage = Stage::answering("").await;
    let request = request("order", json!({}));
    request.cancel.cancel();
    assert_eq!(not_done(shop(&stage).call(request).await).category, Category::Cancelled);
    assert_eq!(stage.connections(), 0);
}

#[tokio::test]
async fn cancelled_while_connecting_is_not_done() {
    // Connected, but the handshake of TLS never ends, so that the request is still ours.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let text =
        "[http.shop]\nbase = 'BASE'\nallow = ['127.0.0.1']\ntools.order = {method = 'POST', path = '/'}";
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
        (Category::Cancelled, "cancelled; nothing was sent")
    );
}

#[tokio::test]
async fn closing_ends_calls_under_way_and_refuses_new_ones() {
    let stage = Stage::start(|_| Act::Stall(Vec::new())).await;
    let server = shop(&stage);
    let (outcome, ()) = tokio::join!(server.call(request("order", json!({}))), async {
        stage.until_effects(1).await;
        server.close().await;
    });
    assert_eq!(maybe(outcome).category, Category::Cancelled);
    not_done(call(&server, "order", json!({})).await);
    assert_eq!(stage.effects(), 1);
}

#[tokio::test]
async fn calls_at_once_do_not_share_what_they_know() {
    let stage = Stage::start(|seen| match seen {
        Some(seen) if seen.json()["id"] == 0 => Act::Stall(Vec::new()),
        Some(seen) => Act::Send(json_answer("200 OK", &seen.json())),
        None => Act::Send(Vec::new()),
    })
    .await;
    let server = shop(&stage);
    let mut first = request("order", json!({"id": 0}));
    first.timeout = Duration::from_secs(2);
    let rest = futures::future::join_all((1..50).map(|id| call(&server, "order", json!({"id": id}))));
    let (first, rest) = tokio::join!(server.call(first), rest);
    assert_eq!(maybe(first).category, Category::Timeout);
    for (id, outcome) in (1..50).zip(rest) {
        assert_eq!(done(outcome), json!({"id": id}));
    }
    assert_eq!((stage.effects(), stage.connections()), (50, 50));
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
        let stage = Stage::answering(json_answer(status, &json!({"a": 1}))).await;
        call(&configured(&stage.base(), text), "order", json!({})).await
    };
    assert_eq!(done(outcome("404 Not Found").await), json!({"a": 1}));
    assert_eq!(maybe(outcome("409 Conflict").await).category, Category::Conflict);
    assert_eq!(not_done(outcome("500 Oops").await).category, Category::Unavailable);
    assert_eq!(maybe(outcome("502 Oops").await).category, Category::Unavailable);
    assert_eq!(not_done(outcome("402 Pay").await).category, Category::Unauthorized);
    assert_eq!(not_done(outcome("403 No").await).category, Category::Conflict);
    assert_eq!(maybe(outcome("202 Later").await).category, Category::ToolError);
    assert_eq!(done(outcome("200 OK").await), json!({"a": 1}));
}

#[tokio::test]
async fn a_ticket_or_an_unknown_tool_sends_nothing() {
    let stage = Stage::answering("").await;
    let server = shop(&stage);
    let mut with_ticket = request("order", json!({}));
    with_ticket.ticket = Some("t".to_owned());
    maybe(server.call(with_ticket).await);
    assert_eq!(not_done(call(&server, "other", json!({})).await).category, Category::NotFound);
    assert!(matches!(call(&server, "order", json!([1])).await, Outcome::NotDone(_)));
    assert_eq!(stage.connections(), 0);
}
