//! Servers that are silent, die, babble, lie or hang: each costs its own calls, within their time, and nothing else.

use crate::mcp::fixture::*;
use rutter_core::time::Millis;
use rutter_core::tool::{CallOutcome, FailureCategory};
use rutter_tools::connector::{Connector, ConnectorState};
use rutter_tools::mcp::McpLimits;
use serde_json::json;
use std::time::{Duration, Instant};

#[test]
fn an_unused_server_is_not_started() {
    let one = scripted("honest");
    assert_eq!(one.server.state(), ConnectorState::Idle);
    assert!(one.roster.0.lock().unwrap().0.is_empty());
}

#[tokio::test]
async fn a_healthy_server_is_called_and_gets_only_the_environment_it_may_have() {
    let one = scripted("honest");
    assert_eq!(one.server.state(), ConnectorState::Idle);
    assert_eq!(text_of(&done(one.call("work", json!({"text": "a"})).await)), "worked");
    assert_eq!(one.server.state(), ConnectorState::Ready);
    assert_eq!(one.traces("effects"), ["a"]);

    let seen = done(one.call("environment", json!({})).await);
    for name in seen["names"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        // The rest is what an interpreter, and what starts it, set for themselves.
        let known = ["PATH", "HOME", "LANG", "TMPDIR", "USER", "EXTRA"].contains(&name)
            || ["LC_CTYPE", "PWD", "OLDPWD", "SHLVL", "_"].contains(&name)
            || name.contains("PYENV");
        assert!(known, "the child got {name}");
    }
    assert_eq!(seen["cwd"].as_str().unwrap(), one.folder.path().canonicalize().unwrap().to_str().unwrap());
}

#[tokio::test]
async fn a_tools_own_error_is_not_done_and_protocol_errors_go_by_their_code() {
    let one = scripted("honest");
    let failure = not_done(one.call("fail", json!({})).await, FailureCategory::ToolError);
    assert_eq!(failure.message, "the disk is full");
    not_done(one.call("error", json!({"code": -32601})).await, FailureCategory::NotFound);
    not_done(one.call("error", json!({"code": -32602})).await, FailureCategory::InvalidInput);
    maybe(one.call("error", json!({"code": -32603})).await, FailureCategory::Internal);
    maybe(one.call("error", json!({"code": -32000})).await, FailureCategory::ToolError);
    not_done(one.call("work", json!([])).await, FailureCategory::InvalidInput);
    assert!(one.traces("effects").is_empty());
}

#[tokio::test]
async fn a_silent_server_costs_its_start_time_and_others_go_on_meanwhile() {
    let healthy = scripted("honest");
    done(healthy.call("work", json!({})).await);
    let silent = scripted_with("silent", McpLimits { start: Duration::from_secs(5), ..patience() });
    let began = Instant::now();
    let (listed, calls) = tokio::join!(silent.server.list(), async {
        let mut calls = 0;
        while began.elapsed() < Duration::from_secs(1) {
            done(healthy.call("work", json!({})).await);
            calls += 1;
        }
        calls
    });
    let failure = listed.unwrap_err();
    assert!(failure.message.contains("did not answer the handshake in time"), "{failure}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert!(calls > 0, "the healthy server made only {calls} calls");
    // It was tried in both eras, and nothing of it is left.
    assert_eq!(silent.traces("starts").len(), 2);
    until(|| silent.roster.0.lock().unwrap().1.len() == 2).await;
}

#[tokio::test]
async fn a_server_that_dies_at_once_is_paused_for_longer_each_time() {
    let dying = scripted("dies");
    let failure = dying.server.list().await.unwrap_err();
    assert!(failure.message.contains("no licence found"), "{failure}");
    let ConnectorState::Down { reason, stderr } = dying.server.state() else { panic!("{:?}", dying.server.state()) };
    assert!(reason.contains("exit status: 3"), "{reason}");
    assert_eq!(stderr, ["no licence found"]);

    let mut pauses = Vec::new();
    while pauses.len() < 5 {
        let refusal = not_done(dying.call("work", json!({})).await, FailureCategory::Unavailable);
        let pause = refusal.retry_after.unwrap();
        pauses.push(pause);
        // Whoever asks for a permit is told so before a call is recorded.
        let told = dying.server.pause();
        assert!(told.is_none_or(|told| told.retry_after <= Some(pause) && told.message == refusal.message));
        // Refused without a start while the pause lasts.
        let starts = dying.traces("starts").len();
        not_done(dying.call("work", json!({})).await, FailureCategory::Unavailable);
        assert!(dying.traces("starts").len() == starts || pause < Millis(20));
        tokio::time::sleep(Duration::from_millis(pause.0 + 1)).await;
        assert!(dying.server.pause().is_none(), "the pause is over");
        _ = dying.server.list().await;
    }
    assert!(pauses[0] <= Millis(50) && pauses[4] > Millis(200) && pauses[4] <= Millis(400), "{pauses:?}");
}

#[tokio::test]
async fn a_call_is_maybe_when_its_server_dies_of_it_and_the_next_one_finds_it_started_again() {
    for mode in ["dies-at-call", "dies-mid-line"] {
        let dying = scripted(mode);
        let mut changes = dying.server.changes();
        dying.server.list().await.unwrap();
        let category = if mode == "dies-mid-line" { FailureCategory::Protocol } else { FailureCategory::Unavailable };
        let failure = maybe(dying.call("work", json!({})).await, category);
        assert!(failure.message.contains("exit status: 7"), "{failure}");
        if mode == "dies-at-call" {
            assert!(failure.message.contains("out of memory"), "{failure}");
        }
        assert_eq!(dying.traces("effects").len(), 1);
        until(|| matches!(dying.server.state(), ConnectorState::Down { .. })).await;
        let deadline = Instant::now() + SOON;
        while dying.server.list().await.is_err() {
            assert!(Instant::now() < deadline);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(changes.has_changed().unwrap(), "a restart may bring other definitions");
        changes.mark_unchanged();
        assert_eq!(dying.traces("starts").len(), 2, "the era was known at the second start");
        assert_eq!(dying.traces("effects").len(), 1, "a call was repeated");
    }
}

#[tokio::test]
async fn noise_is_ignored_and_counted() {
    let noisy = scripted("noisy");
    assert_eq!(text_of(&done(noisy.call("work", json!({})).await)), "worked");
    assert_eq!(noisy.server.list().await.unwrap().len(), 2);
    assert!(noisy.server.noise() >= 10, "{}", noisy.server.noise());
    assert_eq!(noisy.traces("starts").len(), 1);
}

#[tokio::test]
async fn stderr_is_kept_to_its_last_lines() {
    let noisy = scripted("noisy");
    noisy.server.list().await.unwrap();
    let pid: u32 = noisy.traces("starts")[0].parse().unwrap();
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid.try_into().unwrap()).unwrap(),
        rustix::process::Signal::KILL,
    )
    .unwrap();
    until(|| matches!(noisy.server.state(), ConnectorState::Down { .. })).await;
    let ConnectorState::Down { stderr, .. } = noisy.server.state() else { panic!() };
    assert_eq!(stderr.len(), 200);
    assert_eq!(stderr[199], "chatter 299");
}

#[tokio::test]
async fn a_line_that_is_too_long_ends_the_calls_in_flight_at_once() {
    let long = scripted("long-line");
    let waiting = long.call("wait", json!({}));
    let breaking = async {
        long.trace_appears("waiting").await;
        long.call("work", json!({})).await
    };
    let began = Instant::now();
    let (waited, broke) = tokio::join!(waiting, breaking);
    for outcome in [waited, broke] {
        let failure = maybe(outcome, FailureCategory::Protocol);
        assert!(failure.message.contains("more than 16777216 bytes"), "{failure}");
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(long.traces("effects").len(), 1);
    until(|| matches!(long.server.state(), ConnectorState::Down { .. })).await;
    let deadline = Instant::now() + SOON;
    while long.server.list().await.is_err() {
        assert!(Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_malformed_tool_costs_only_itself() {
    let malformed = scripted("malformed");
    let tools = malformed.server.list().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["work", "wait"]);
    let keys: Vec<&String> = tools[0].definition.keys().collect();
    assert_eq!(keys, ["description", "inputSchema"]);
    let left_out = malformed.server.left_out();
    assert_eq!(left_out.len(), 5, "{left_out:#?}");
    assert!(left_out[0].starts_with("tool `null`: its definition cannot be read"), "{left_out:#?}");
}

#[tokio::test]
async fn a_changed_definition_is_announced() {
    let changing = scripted("changes");
    let before = changing.server.list().await.unwrap();
    let mut changes = changing.server.changes();
    done(changing.call("work", json!({})).await);
    tokio::time::timeout(SOON, changes.changed()).await.unwrap().unwrap();
    let after = changing.server.list().await.unwrap();
    assert_ne!(before[0].definition, after[0].definition);
}

#[tokio::test]
async fn a_second_answer_and_an_answer_to_no_request_change_nothing() {
    let twice = scripted("twice");
    for _ in 0..3 {
        assert_eq!(text_of(&done(twice.call("work", json!({})).await)), "first");
    }
    until(|| twice.server.noise() == 3).await;
    let (again, ear, _) = request("work", json!({}));
    done(twice.server.call(again).await);
    until(|| ear.late.lock().unwrap().len() == 1).await;
    let second = ear.late.lock().unwrap().remove(0);
    assert_ne!(text_of(&done(second)), "first", "it is reported for the journal");
    let wrong = scripted("wrong-id");
    assert_eq!(text_of(&done(wrong.call("work", json!({})).await)), "worked");
    assert_eq!(wrong.server.noise(), 1);
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_maybe_and_not_waited_for() {
    let unreadable = scripted("unreadable");
    maybe(unreadable.call("work", json!({})).await, FailureCategory::Protocol);
    assert_eq!(unreadable.traces("effects").len(), 1);
}

#[tokio::test]
async fn all_pages_are_listed_and_endless_ones_are_cut() {
    let many = scripted("many");
    let tools = many.server.list().await.unwrap();
    assert_eq!(tools.len(), 5_000);
    assert_eq!(tools[4_999].name, "tool4999");
    let endless = scripted("endless");
    assert_eq!(endless.server.list().await.unwrap().len(), 100);
    assert_eq!(endless.server.left_out(), ["everything after page 100"]);
}

#[tokio::test]
async fn a_server_that_exits_on_an_unknown_request_gets_the_legacy_handshake_from_then_on() {
    let old = scripted("exits-on-unknown");
    done(old.call("work", json!({})).await);
    assert_eq!(old.traces("starts").len(), 2);
    let pid: i32 = old.traces("starts")[1].parse().unwrap();
    let pid = rustix::process::Pid::from_raw(pid).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    until(|| matches!(old.server.state(), ConnectorState::Down { .. })).await;
    tokio::time::sleep(patience().pause_max).await;
    done(old.call("work", json!({})).await);
    assert_eq!(old.traces("starts").len(), 3, "the modern handshake was tried again");
}

#[tokio::test]
async fn a_server_that_ignores_an_unknown_request_gets_the_legacy_handshake_in_time() {
    let old = scripted_with("ignores-unknown", McpLimits { start: Duration::from_secs(6), ..patience() });
    let began = Instant::now();
    done(old.call("work", json!({})).await);
    assert!(began.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_downstream() {
    let one = scripted("honest");
    let (request, _, cancel) = request("wait", json!({}));
    let (outcome, ()) = tokio::join!(one.server.call(request), async {
        one.trace_appears("waiting").await;
        cancel.cancel();
    });
    maybe(outcome, FailureCategory::Cancelled);
    one.trace_appears("cancelled").await;
    done(one.call("work", json!({})).await);
    assert_eq!(one.traces("starts").len(), 1);
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_maybe_even_if_the_server_ignores_its_cancellation() {
    let deaf = scripted("deaf-to-cancel");
    deaf.server.list().await.unwrap();
    let (mut request, ..) = request("wait", json!({}));
    request.timeout = Duration::from_millis(500);
    let began = Instant::now();
    maybe(deaf.server.call(request).await, FailureCategory::Timeout);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    done(deaf.call("work", json!({})).await);
}

#[tokio::test]
async fn an_answer_that_comes_just_after_the_cancellation_counts() {
    let late = scripted_with("late", McpLimits { cancel: SOON, ..patience() });
    let (request, _, cancel) = request("wait", json!({}));
    let (outcome, ()) = tokio::join!(late.server.call(request), async {
        late.trace_appears("waiting").await;
        cancel.cancel();
    });
    assert_eq!(text_of(&done(outcome)), "done before it was cancelled");
    assert_eq!(late.traces("effects"), ["late"]);
}

#[tokio::test]
async fn an_answer_that_comes_after_the_wait_for_it_is_reported() {
    let late = scripted_with("later", McpLimits { cancel: Duration::ZERO, ..patience() });
    let (request, ear, cancel) = request("wait", json!({}));
    let (outcome, ()) = tokio::join!(late.server.call(request), async {
        late.trace_appears("waiting").await;
        cancel.cancel();
    });
    maybe(outcome, FailureCategory::Cancelled);
    std::fs::write(late.folder.path().join("answer"), "now").unwrap();
    until(|| !ear.late.lock().unwrap().is_empty()).await;
    let answer = ear.late.lock().unwrap().remove(0);
    assert_eq!(text_of(&done(answer)), "done before it was cancelled");
}

#[tokio::test]
async fn a_call_that_never_left_is_not_done_though_its_time_is_up() {
    let deaf = scripted("deaf");
    // The server does not read the pipe: the first call fills it, the second one waits behind it.
    let (mut first, ..) = request("work", json!({"text": "x".repeat(1_000_000)}));
    let (mut second, ..) = request("work", json!({}));
    first.timeout = Duration::from_secs(5);
    second.timeout = Duration::from_secs(5);
    let (first, second) = tokio::join!(biased; deaf.server.call(first), deaf.server.call(second));
    maybe(first, FailureCategory::Timeout);
    not_done(second, FailureCategory::Timeout);
    assert!(deaf.traces("effects").is_empty());
}

#[tokio::test]
async fn a_program_that_is_not_there_is_not_done() {
    let mut one = scripted("honest");
    let child =
        rutter_tools::config::mcp::McpChildConfig { command: "no-such-program".to_owned(), ..Default::default() };
    let server = rutter_tools::config::mcp::McpServerConfig::new(rutter_tools::config::mcp::McpTransport::Child(child));
    one.server = rutter_tools::mcp::McpServer::new("gone", &server, launcher(one.roster.clone()));
    let failure = not_done(one.call("work", json!({})).await, FailureCategory::Unavailable);
    assert!(failure.message.contains("could not start `no-such-program`"), "{failure}");
}

#[tokio::test]
async fn descendants_of_a_child_die_with_it() {
    let family = scripted("grandchild");
    family.server.list().await.unwrap();
    let grandchild: u32 = family.traces("grandchild")[0].parse().unwrap();
    assert!(is_alive(grandchild));
    family.server.close().await;
    until(|| !is_alive(grandchild)).await;
    let (born, gone) = family.roster.0.lock().unwrap().clone();
    assert_eq!(born, gone);
    not_done(family.call("work", json!({})).await, FailureCategory::Unavailable);
    assert_eq!(family.traces("starts").len(), 1, "a closed server was started again");
}

#[tokio::test]
async fn descendants_die_when_the_child_dies_or_the_server_is_dropped() {
    let family = scripted("grandchild");
    family.server.list().await.unwrap();
    let grandchild: u32 = family.traces("grandchild")[0].parse().unwrap();
    let child: i32 = family.traces("starts")[0].parse().unwrap();
    let child = rustix::process::Pid::from_raw(child).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
    until(|| !is_alive(grandchild)).await;

    let family = scripted("grandchild");
    family.server.list().await.unwrap();
    let grandchild: u32 = family.traces("grandchild")[0].parse().unwrap();
    drop(family.server);
    until(|| !is_alive(grandchild)).await;
}

#[tokio::test]
async fn calls_in_flight_end_when_the_server_is_closed() {
    let one = scripted("honest");
    let (outcome, ()) = tokio::join!(one.call("wait", json!({})), async {
        one.trace_appears("waiting").await;
        one.server.close().await;
    });
    assert!(matches!(outcome, CallOutcome::Maybe(_)), "{outcome:?}");
}

#[tokio::test]
async fn progress_is_passed_on() {
    let one = scripted("progress");
    let (request, ear, _) = request("work", json!({}));
    done(one.server.call(request).await);
    until(|| ear.progress.lock().unwrap().len() == 2).await;
}

#[tokio::test]
async fn a_question_during_a_call_is_put_to_its_caller() {
    let one = scripted("honest");
    let answer = Some(json!({"yes": true}));
    let (asking, ear, _) = request_with("ask", json!({}), RecordingReporter { answer, ..RecordingReporter::default() });
    let result = done(one.server.call(asking).await);
    assert_eq!(result, json!({"action": "accept", "content": {"yes": true}}));
    let asked = ear.asked.lock().unwrap()[0].clone();
    assert_eq!(asked.message, "sure?");
    assert_eq!(asked.schema["properties"]["yes"]["type"], "boolean");
    // Without an answer: declined.
    assert_eq!(done(one.call("ask", json!({})).await)["action"], "decline");
}

#[tokio::test]
async fn an_ambiguous_question_is_declined() {
    let one = scripted("honest");
    let answer = Some(json!({"yes": true}));
    let (waiting, other_ear, cancel) =
        request_with("wait", json!({}), RecordingReporter { answer: answer.clone(), ..RecordingReporter::default() });
    let (asking, ear, _) = request_with("ask", json!({}), RecordingReporter { answer, ..RecordingReporter::default() });
    let (_, result) = tokio::join!(one.server.call(waiting), async {
        one.trace_appears("waiting").await;
        let result = done(one.server.call(asking).await);
        cancel.cancel();
        result
    });
    assert_eq!(result["action"], "decline");
    assert!(ear.asked.lock().unwrap().is_empty() && other_ear.asked.lock().unwrap().is_empty());
}
