//! Every way a program can end, and what is said about its effect.

use super::bench::{Bench, call, done, eventually, lives, maybe, not_done, request};
use rutter_core::tool::{Category, Outcome};
use rutter_tools::connector::Connector;
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn results_are_read_as_declared() {
    let bench = Bench::new();
    let server = bench.shell("printf 'a\\nb\\n'", "");
    assert_eq!(done(call(&server, json!({})).await), "a\nb");
    let path = bench.script("lines.sh", "#!/bin/sh\nprintf 'a\\nb\\n'\n");
    let server = bench.server(&format!(
        "[tools.go]\nargv = ['{0}']\ndescription = 'x'\nresult = 'lines'\n\
         [tools.json]\nargv = ['{0}']\ndescription = 'x'",
        path.display()
    ));
    assert_eq!(done(call(&server, json!({})).await), json!(["a", "b"]));
    let mut as_json = request(json!({}));
    as_json.tool = "json".to_owned();
    let (category, message) = maybe(server.call(as_json).await);
    assert!(category == Category::Protocol && message.contains("did not write JSON"), "{message}");
}

#[tokio::test]
async fn exit_codes_mean_what_the_table_says_and_otherwise_leave_it_open() {
    let bench = Bench::new();
    let table = "input = { type = 'object', properties = { code = {} } }\n\
                 exit = { 3 = { not_done = 'not_found' }, 4 = { maybe = 'unavailable' }, 5 = 'done' }";
    let path = bench.script("exit.sh", "#!/bin/sh\necho out; echo one >&2; echo two >&2; exit $1\n");
    let server = bench.server(&format!(
        "[tools.go]\nargv = ['{}', '{{code}}']\ndescription = 'x'\nresult = 'text'\n{table}",
        path.display()
    ));
    assert_eq!(done(call(&server, json!({ "code": 0 })).await), "out");
    assert_eq!(done(call(&server, json!({ "code": 5 })).await), "out");
    assert_eq!(not_done(call(&server, json!({ "code": 3 })).await).0, Category::NotFound);
    assert_eq!(maybe(call(&server, json!({ "code": 4 })).await).0, Category::Unavailable);
    let (category, message) = maybe(call(&server, json!({ "code": 7 })).await);
    assert_eq!(category, Category::ToolError);
    assert_eq!(message, "the program ended with exit code 7; it last said: one | two");
    assert_eq!(maybe(call(&server, json!({ "code": 125 })).await).0, Category::ToolError);
}

#[tokio::test]
async fn a_program_that_cannot_be_started_had_no_effect() {
    let bench = Bench::new();
    let path = bench.script("broken", "#!/no/such/interpreter\n");
    let server = bench.server(&format!("[tools.go]\nargv = ['{}']\ndescription = 'x'", path.display()));
    let (category, message) = not_done(call(&server, json!({})).await);
    assert!(category == Category::Unavailable && message.contains("No such file"), "{message}");
    let server = bench.shell("echo never", "read = ['/no/such/directory']");
    let (_, message) = not_done(call(&server, json!({})).await);
    assert!(message.contains("/no/such/directory"), "{message}");
}

#[tokio::test]
async fn a_timeout_leaves_it_open_and_the_program_dead() {
    let bench = Bench::new();
    let server = bench.shell("echo $$ > pid; exec sleep 1000", "");
    let mut call = request(json!({}));
    call.timeout = Duration::from_millis(300);
    let (category, message) = maybe(server.call(call).await);
    assert_eq!(category, Category::Timeout, "{message}");
    let pid = std::fs::read_to_string(bench.cwd().join("pid")).unwrap().trim().parse().unwrap();
    assert!(!lives(pid));
}

#[tokio::test]
async fn a_program_that_ignores_the_request_to_end_is_killed() {
    let bench = Bench::new();
    let server =
        bench.shell("trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done", "timeout = '300ms'");
    let started = Instant::now();
    let (category, _) = maybe(call(&server, json!({})).await);
    assert_eq!(category, Category::Timeout);
    let took = started.elapsed();
    assert!(took >= Duration::from_millis(600), "it was given its grace: {took:?}");
    let pid = std::fs::read_to_string(bench.cwd().join("pid")).unwrap().trim().parse().unwrap();
    assert!(!lives(pid));
}

/// Cancels once the program has said in a file that it is there.
async fn cancel_when_started(bench: &Bench, script: &str, more: &str) -> Outcome {
    let server = bench.shell(script, more);
    let call = request(json!({}));
    let cancel = call.cancel.clone();
    let started = bench.cwd().join("started");
    let _ = std::fs::remove_file(&started);
    let (outcome, ()) = tokio::join!(server.call(call), async {
        eventually("the program starts", || started.exists()).await;
        cancel.cancel();
    });
    outcome
}

#[tokio::test]
async fn a_cancelled_call_is_what_the_program_makes_of_it() {
    let bench = Bench::new();
    let waits = "touch started; while :; do sleep 0.02; done";
    let outcome = cancel_when_started(&bench, waits, "").await;
    assert_eq!(maybe(outcome).0, Category::Cancelled);
    let outcome =
        cancel_when_started(&bench, &format!("trap 'echo finished; exit 0' TERM; {waits}"), "").await;
    assert_eq!(done(outcome), "finished");
    let table = "exit = { 9 = { not_done = 'cancelled' } }";
    let outcome = cancel_when_started(&bench, &format!("trap 'exit 9' TERM; {waits}"), table).await;
    assert_eq!(not_done(outcome).0, Category::Cancelled);
}

#[tokio::test]
async fn a_call_cancelled_before_it_began_had_no_effect() {
    let bench = Bench::new();
    let server = bench.shell("touch started", "");
    let call = request(json!({}));
    call.cancel.cancel();
    assert_eq!(not_done(server.call(call).await).0, Category::Cancelled);
    assert!(!bench.cwd().join("started").exists());
}

#[tokio::test]
async fn closing_ends_what_is_running() {
    let bench = Bench::new();
    let server = bench.shell("touch started; exec sleep 1000", "");
    let started = bench.cwd().join("started");
    let (outcome, ()) = tokio::join!(call(&server, json!({})), async {
        eventually("the program starts", || started.exists()).await;
        server.close().await;
    });
    assert_eq!(maybe(outcome).0, Category::Cancelled);
    assert_eq!(not_done(call(&server, json!({})).await).0, Category::Cancelled);
}
