//! How responses become results, and responses beyond the limits.

use crate::http::fixture::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use rutter_core::limits::PAYLOAD_BYTES_MAX;
use rutter_core::tool::{CallOutcome, FailureCategory};
use serde_json::{Value, json};
use std::io::Write;

const JSON: &str = "content-type: application/json";
const GZIP: &str = "content-encoding: gzip";

async fn outcome_of(bytes: Vec<u8>) -> CallOutcome {
    let fixture = HttpFixture::answering(bytes).await;
    call(&shop(&fixture), "order", json!({})).await
}

#[tokio::test]
async fn every_kind_of_answer_has_a_result() {
    for (headers, body, result) in [
        (vec![JSON], &b"[1, 2]"[..], json!([1, 2])),
        (vec!["content-type: application/problem+json; charset=utf-8"], b"{\"a\":1}", json!({"a": 1})),
        (vec![], b"{\"a\":1}", json!({"a": 1})),
        (vec![], b"plain", json!({"status": 200, "text": "plain"})),
        (vec!["content-type: text/plain"], b"17", json!({"status": 200, "text": "17"})),
        (vec!["content-type: text/html"], b"<p>", json!({"status": 200, "text": "<p>"})),
        (vec!["content-type: image/png"], b"\xff\xd8", json!({"status": 200, "base64": "/9g="})),
        (vec![JSON], b"", json!({})),
        (vec![JSON], b" \n", json!({})),
    ] {
        assert_eq!(done(outcome_of(answer("200 OK", &headers, body)).await), result);
    }
}

#[tokio::test]
async fn invalid_json_leaves_a_doubt() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for body in ["{", "{\"a\":", "<html>", "{} {}", &deep] {
        let failure = maybe(outcome_of(answer("200 OK", &[JSON], body)).await);
        assert_eq!(failure.category, FailureCategory::Protocol, "{body:.40}");
    }
}

#[tokio::test]
async fn the_result_is_where_the_operator_says() {
    let text = "[http.shop]\nbase = 'BASE'\nallow = ['127.0.0.1']\n\
                tools.order = {method = 'POST', path = '/', result = '/data/0'}";
    let fixture = HttpFixture::answering(json_answer("200 OK", &json!({"data": [{"id": 1}]}))).await;
    assert_eq!(done(call(&configured(&fixture.base(), text), "order", json!({})).await), json!({"id": 1}));
    let fixture = HttpFixture::answering(json_answer("200 OK", &json!({"data": []}))).await;
    let failure = maybe(call(&configured(&fixture.base(), text), "order", json!({})).await);
    assert!(failure.message.contains("/data/0"), "{}", failure.message);
}

#[tokio::test]
async fn an_answer_may_be_as_large_as_the_limit_and_no_larger() {
    let text = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    let whole = done(outcome_of(answer("200 OK", &[JSON], text(PAYLOAD_BYTES_MAX))).await);
    assert_eq!(whole.as_str().map(str::len), Some(PAYLOAD_BYTES_MAX - 2));
    let failure = maybe(outcome_of(answer("200 OK", &[JSON], text(PAYLOAD_BYTES_MAX + 1))).await);
    assert!(failure.message.contains("larger than 16777216 bytes"), "{}", failure.message);
}

#[tokio::test]
async fn an_answer_without_an_end_is_not_collected() {
    let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    for _ in 0..320 {
        bytes.extend_from_slice(b"10000\r\n");
        bytes.extend_from_slice(&[b'x'; 0x10000]);
        bytes.extend_from_slice(b"\r\n");
    }
    assert!(maybe(outcome_of(bytes).await).message.contains("larger than"));
}

#[tokio::test]
async fn compressed_answers_are_decompressed() {
    let value: Value = (0..20_000).map(|number| json!({"number": number})).collect();
    let packed = gzip(value.to_string().as_bytes());
    assert_eq!(done(outcome_of(answer("200 OK", &[JSON, GZIP], &packed)).await), value);
    let zeros = gzip(&[b' '; 60_000]);
    assert!(zeros.len() < 600, "more than 100:1, and small enough to be allowed");
    assert_eq!(done(outcome_of(answer("200 OK", &[JSON, GZIP], &zeros)).await), json!({}));
}

#[tokio::test]
async fn an_answer_without_a_body_may_state_an_encoding() {
    let text = "[http.shop]\nbase = 'BASE'\nallow = ['127.0.0.1']\ntools.look = {method = 'HEAD', path = '/'}";
    let bytes = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 500\r\n\r\n";
    let fixture = HttpFixture::answering(bytes).await;
    assert_eq!(done(call(&configured(&fixture.base(), text), "look", json!({})).await), json!({}));
    assert_eq!(fixture.last().method, "HEAD");
    assert_eq!(done(outcome_of(answer("204 No Content", &[GZIP], "")).await), json!({}));
}

#[tokio::test]
async fn decompression_bombs_are_detected_early() {
    let failure = maybe(outcome_of(answer("200 OK", &[JSON, GZIP], gzip(&vec![b' '; 32 << 20]))).await);
    assert!(failure.message.contains("100 times"), "{}", failure.message);
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_below_the_ratio_too() {
    let mut noise: u32 = 1;
    let mut bytes = Vec::with_capacity(PAYLOAD_BYTES_MAX + 2);
    while bytes.len() <= PAYLOAD_BYTES_MAX {
        noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        bytes.extend_from_slice(format!("{noise:08x}{:64}", "").as_bytes());
    }
    let packed = gzip(&bytes);
    assert!(packed.len() * 100 > bytes.len());
    let failure = maybe(outcome_of(answer("200 OK", &[GZIP], packed)).await);
    assert!(failure.message.contains("larger than"), "{}", failure.message);
}

#[tokio::test]
async fn damaged_or_unknown_encodings_leave_a_doubt() {
    let whole = gzip(b"{\"a\": 1}");
    let cut = &whole[..whole.len() - 3];
    let mut bent = whole.clone();
    bent[12] ^= 0xff;
    for (encoding, body) in [(GZIP, cut), (GZIP, &bent[..]), (GZIP, b"no gzip"), ("content-encoding: br", &whole[..])] {
        let failure = maybe(outcome_of(answer("200 OK", &[JSON, encoding], body)).await);
        assert_eq!(failure.category, FailureCategory::Protocol);
    }
}

#[tokio::test]
async fn a_refusal_is_quoted_in_part_only() {
    let failure = not_done(outcome_of(answer("400 Bad", &[], "é\u{1b}[31m".repeat(1_000))).await);
    assert!(failure.message.chars().count() < 450 && failure.message.ends_with('…'), "{}", failure.message);
    assert!(!failure.message.contains('\u{1b}'));
    let failure = not_done(outcome_of(answer("400 Bad", &[], "x".repeat(65_537))).await);
    assert!(failure.message.ends_with("answered 400 Bad Request"), "{}", failure.message);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
