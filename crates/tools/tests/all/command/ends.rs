//! Every way a program can end, and the outcome of its call.

use super::fixture::{CommandFixture, call, done, eventually, lives, maybe, not_done, request};
use rutter_core::tool::{CallOutcome, FailureCategory};
use rutter_tools::connector::Connector;
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn results_are_read_as_declared() {
    let fixture = CommandFixture::new();
    let server = fixture.shell("printf 'a\\nb\\n'", "");
    assert_eq!(done(call(&server, json!({})).await), "a\nb");
    let path = fixture.script("lines.sh", "#!/bin/sh\nprintf 'a\\nb\\n'\n");
    let server = fixture.server(&format!(
        "[tools.go]\nargv = ['{0}']\ndescription = 'x'\nresult = 'lines'\n\
         [tools.json]\nargv = ['{0}']\ndescription = 'x'",
        path.display()
    ));
    assert_eq!(done(call(&server, json!({})).await), json!(["a", "b"]));
    let mut as_json = request(json!({}));
    as_json.tool = "json".to_owned();
    let (category, message) = maybe(server.call(as_json).await);
    assert!(category == FailureCategory::Protocol && message.contains("did not write JSON"), "{message}");
}

#[tokio::test]
async fn exit_codes_mean_what_is_configured_and_others_leave_a_doubt() {
    let fixture = CommandFixture::new();
    let table = "input = { type = 'object', properties = { code = {} } }\n\
                 exit = { 3 = { not_done = 'not_found' }, 4 = { maybe = 'unavailable' }, 5 = 'done' }";
    let path = fixture.script("exit.sh", "#!/bin/sh\necho out; echo one >&2; echo two >&2; exit $1\n");
    let server = fixture.server(&format!(
        "[tools.go]\nargv = ['{}', '{{code}}']\ndescription = 'x'\nresult = 'text'\n{table}",
        path.display()
    ));
    assert_eq!(done(call(&server, json!({ "code": 0 })).await), "out");
    assert_eq!(done(call(&server, json!({ "code": 5 })).await), "out");
    assert_eq!(not_done(call(&server, json!({ "code": 3 })).await).0, FailureCategory::NotFound);
    assert_eq!(maybe(call(&server, json!({ "code": 4 })).await).0, FailureCategory::Unavailable);
    let (category, message) = maybe(call(&server, json!({ "code": 7 })).await);
    assert_eq!(category, FailureCategory::ToolError);
    assert_eq!(message, "the program ended with exit code 7; it last wrote: one | two");
    assert_eq!(maybe(call(&server, json!({ "code": 125 })).await).0, FailureCategory::ToolError);
}

#[tokio::test]
async fn a_program_that_cannot_be_started_had_no_effect() {
    let fixture = CommandFixture::new();
    let path = fixture.script("broken", "#!/no/such/interpreter\n");
    let server = fixture.server(&format!("[tools.go]\nargv = ['{}']\ndescription = 'x'", path.display()));
    let (category, message) = not_done(call(&server, json!({})).await);
    assert!(category == FailureCategory::Unavailable && message.contains("No such file"), "{message}");
    let server = fixture.shell("echo never", "read = ['/no/such/directory']");
    let (_, message) = not_done(call(&server, json!({})).await);
    assert!(message.contains("/no/such/directory"), "{message}");
}

#[tokio::test]
async fn a_timeout_leaves_a_doubt_and_the_program_dead() {
    let fixture = CommandFixture::new();
    let server = fixture.shell("echo $$ > pid; exec sleep 1000", "");
    let mut call = request(json!({}));
    call.timeout = Duration::from_millis(300);
    let (category, message) = maybe(server.call(call).await);
    assert_eq!(category, FailureCategory::Timeout, "{message}");
    let pid = std::fs::read_to_string(fixture.cwd().join("pid")).unwrap().trim().parse().unwrap();
    assert!(!lives(pid));
}

#[tokio::test]
async fn a_program_that_ignores_the_request_to_end_is_killed() {
    let fixture = CommandFixture::new();
    let server = fixture.shell("trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done", "timeout = '300ms'");
    let started = Instant::now();
    let (category, _) = maybe(call(&server, json!({})).await);
    assert_eq!(category, FailureCategory::Timeout);
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(600), "it had its grace period: {took:?}");
    let pid = std::fs::read_to_string(fixture.cwd().join("pid")).unwrap().trim().parse().unwrap();
    assert!(!lives(pid));
}

/// Cancels once a file shows that the program has started.
async fn cancel_when_started(fixture: &CommandFixture, script: &str, more: &str) -> CallOutcome {
    let server = fixture.shell(script, more);
    let call = request(json!({}));
    let cancel = call.cancel.clone();
    let started = fixture.cwd().join("started");
    let _ = std::fs::remove_file(&started);
    let (outcome, ()) = tokio::join!(server.call(call), async {
        eventually("the program starts", || started.exists()).await;
        cancel.cancel();
    });
    outcome
}

#[tokio::test]
async fn the_program_decides_the_outcome_of_a_cancelled_call() {
    let fixture = CommandFixture::new();
    let waits = "touch started; while :; do sleep 0.02; done";
    let outcome = cancel_when_started(&fixture, waits, "").await;
    assert_eq!(maybe(outcome).0, FailureCategory::Cancelled);
    let outcome = cancel_when_started(&fixture, &format!("trap 'echo finished; exit 0' TERM; {waits}"), "").await;
    assert_eq!(done(outcome), "finished");
    let table = "exit = { 9 = { not_done = 'cancelled' } }";
    let outcome = cancel_when_started(&fixture, &format!("trap 'exit 9' TERM; {waits}"), table).await;
    assert_eq!(not_done(outcome).0, FailureCategory::Cancelled);
}

#[tokio::test]
async fn a_call_cancelled_before_it_began_had_no_effect() {
    let fixture = CommandFixture::new();
    let server = fixture.shell("touch started", "");
    let call = request(json!({}));
    call.cancel.cancel();
    assert_eq!(not_done(server.call(call).await).0, FailureCategory::Cancelled);
    assert!(!fixture.cwd().join("started").exists());
}

#[tokio::test]
async fn closing_ends_running_programs() {
    let fixture = CommandFixture::new();
    let server = fixture.shell("touch started; exec sleep 1000", "");
    let started = fixture.cwd().join("started");
    let (outcome, ()) = tokio::join!(call(&server, json!({})), async {
        eventually("the program starts", || started.exists()).await;
        server.close().await;
    });
    assert_eq!(maybe(outcome).0, FailureCategory::Cancelled);
    assert_eq!(not_done(call(&server, json!({})).await).0, FailureCategory::Cancelled);
}
