//! A server that hangs in one call is restarted, and what it was doing goes by its safety.

use crate::mcp::fixture::{done, until};
use crate::mcp::fixture::{maybe, patience, request, scripted_with, text_of};
use rutter_core::tool::FailureCategory;
use rutter_tools::connector::Connector;
use rutter_tools::mcp::McpLimits;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_server_that_answers_no_ping_after_a_timeout_is_restarted() {
    let limits = McpLimits { ping: Duration::from_millis(500), ..patience() };
    let scripted = scripted_with("hangs", limits);
    let (mut hanging, ..) = request("hang", json!({}));
    hanging.timeout = Duration::from_millis(300);
    // Another call is in flight: it is lost with the process, long before its own timeout.
    let (other, ..) = request("wait", json!({"seconds": 60}));
    let other = scripted.server.call(other);
    let hanging = async {
        scripted.trace_appears("waiting").await;
        scripted.server.call(hanging).await
    };
    let (other, hung) = tokio::join!(other, hanging);
    maybe(hung, FailureCategory::Timeout);
    maybe(other, FailureCategory::Unavailable);
    // The next call goes to a new process.
    until(|| scripted.traces("starts").len() == 1 && scripted.roster.0.lock().unwrap().1.len() == 1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let result = done(scripted.call("work", json!({})).await);
    assert_eq!(text_of(&result), "worked");
    assert_eq!(scripted.traces("starts").len(), 2);
    scripted.server.close().await;
}

#[tokio::test]
async fn a_server_that_is_only_slow_in_one_call_is_left_alone() {
    let limits = McpLimits { ping: Duration::from_secs(10), ..patience() };
    let scripted = scripted_with("plain", limits);
    assert_eq!(text_of(&done(scripted.call("work", json!({})).await)), "worked", "it is started");
    let (mut slow, ..) = request("wait", json!({"seconds": 60}));
    slow.timeout = Duration::from_millis(200);
    maybe(scripted.server.call(slow).await, FailureCategory::Timeout);
    assert_eq!(text_of(&done(scripted.call("work", json!({})).await)), "worked");
    assert_eq!(scripted.traces("starts").len(), 1);
    scripted.server.close().await;
}
