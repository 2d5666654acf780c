//! Control from a second process: pausing, resuming, cancelling, and a large plan that is paused in the middle.

use crate::scenarios::answer::{Answer, questions, steps};
use crate::scenarios::fixture::{Kind, ScenarioFixture, until};
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

/// Nothing new starts: the calls in flight have ended, and then the count stays for a while.
fn stands_still(fixture: &ScenarioFixture) -> usize {
    until("the calls in flight have ended", || fixture.count("call") == fixture.count("effect"));
    let calls = fixture.count("call");
    thread::sleep(Duration::from_secs(2));
    assert_eq!(fixture.count("call"), calls, "something was started during a pause");
    calls
}

#[test]
fn a_pause_from_another_process_starts_nothing_new_and_resuming_finishes() {
    let mut fixture = ScenarioFixture::new();
    fixture.server("slow", Kind::Stdio, &[]);
    fixture.tool("slow.work", json!({ "takes_ms": 300, "input": { "type": "object" } })).open();
    let steps: String =
        (0..20).map(|step| format!("  - {{ id: s{step}, tool: slow.work, parameters: {{ n: {step} }} }}\n")).collect();
    fixture.write("plan.yaml", &format!("name: twenty\nmax_parallel: 2\nsteps:\n{steps}"));
    let run = fixture.start(&["run", "plan.yaml", "--wait", "--json"]);
    let execution = run.execution();
    until("some of it is done", || fixture.count("effect") >= 4);
    let pause = fixture.rutter(&["exec", "pause", &execution, "--json"]);
    pause.ended(3, "paused");
    let calls = stands_still(&fixture);
    assert!((4..20).contains(&calls), "{calls} calls");
    let again = fixture.rutter(&["exec", "pause", &execution, "--json"]);
    assert_eq!(again.refused(), "execution.paused");

    let resume = fixture.rutter(&["exec", "resume", &execution, "--no-wait", "--json"]);
    assert_eq!(resume.code, Some(0), "{resume:?}");
    run.wait().ended(0, "completed");
    assert_eq!((fixture.count("call"), fixture.count("effect")), (20, 20));
    fixture.verify(&execution);
}

#[test]
fn a_thousand_steps_over_one_server_are_done_once_each_with_a_pause_in_between() {
    let mut fixture = ScenarioFixture::new();
    fixture.server("many", Kind::Stdio, &[]);
    fixture.tool("many.work", json!({ "takes_ms": 20, "input": { "type": "object" } }));
    fixture.extra.insert("many".to_owned(), "concurrency = 64".to_owned());
    fixture.open();
    let steps: String = (0..1000)
        .map(|step| format!("  - {{ id: s{step}, tool: many.work, parameters: {{ n: {step} }} }}\n"))
        .collect();
    fixture.write("plan.yaml", &format!("name: thousand\nmax_parallel: 64\nsteps:\n{steps}"));
    let run = fixture.start(&["run", "plan.yaml", "--wait", "--json"]);
    let execution = run.execution();
    until("a good part is done", || fixture.count("effect") >= 300);
    fixture.rutter(&["exec", "pause", &execution, "--json"]).ended(3, "paused");
    let calls = stands_still(&fixture);
    assert!((300..1000).contains(&calls), "{calls} calls");
    assert_eq!(fixture.rutter(&["exec", "resume", &execution, "--no-wait"]).code, Some(0));
    run.wait().ended(0, "completed");
    let mut done: Vec<u64> =
        fixture.lines("effect", "many.work").iter().map(|line| line["arguments"]["n"].as_u64().unwrap()).collect();
    done.sort_unstable();
    assert_eq!(done, (0..1000).collect::<Vec<u64>>(), "each step once");
    fixture.verify(&execution);
}

/// Cancels during the only call; returns what the server saw of it, and the ending.
fn cancel(kind: Kind, seen: &str, read_only: bool) -> (ScenarioFixture, String, Answer, Value) {
    let mut fixture = ScenarioFixture::new();
    fixture.server("long", kind, &[]);
    let safety = if read_only { "read_only" } else { "once" };
    fixture.tool("long.work", json!({ "safety": safety, "input": { "type": "object" } }));
    fixture.faults("long.work", json!(["hang_until_cancelled"])).open();
    fixture.write("plan.yaml", "name: long\nsteps:\n  - { id: work, tool: long.work, timeout: 5m }\n  - { id: after, tool: long.work, depends_on: [work] }\n");
    let run = fixture.start(&["run", "plan.yaml", "--json"]);
    let execution = run.execution();
    until("the call is in flight", || fixture.count("call") == 1);
    let cancelled = fixture.rutter(&["exec", "cancel", &execution, "--reason", "enough", "--json"]);
    until("the tool is notified", || !fixture.lines(seen, "long.work").is_empty());
    let ended = run.wait();
    assert_eq!(fixture.count("call"), 1, "nothing is started after a cancel");
    let json = ended.json();
    (fixture, execution, cancelled, json)
}

fn check_doubt(kind: Kind, seen: &str) {
    let (fixture, execution, cancelled, json) = cancel(kind, seen, false);
    assert_eq!(json["status"], "waiting", "whether it happened is unknown: {json}");
    assert_eq!(questions(&json, "doubt").len(), 1);
    cancelled.ended(3, "waiting");
    let resolve = ["exec", "resolve", &execution, "--not-done", "--evidence", "it was told to stop", "--json"];
    let ended = fixture.rutter(&resolve).ended(1, "cancelled");
    assert_eq!(steps(&ended), ["work=failed", "after=cancelled"]);
    fixture.verify(&execution);
}

#[test]
fn cancelling_notifies_an_mcp_server_and_leaves_the_outcome_open() {
    check_doubt(Kind::Stdio, "cancelled");
}

#[test]
fn cancelling_closes_the_connection_of_an_http_call_and_leaves_the_outcome_open() {
    check_doubt(Kind::Http, "closed");
}

#[test]
fn cancelling_terminates_a_command_and_leaves_the_outcome_open() {
    check_doubt(Kind::Command, "terminated");
}

#[test]
fn a_cancelled_read_leaves_nothing_open() {
    for (kind, seen) in [(Kind::Stdio, "cancelled"), (Kind::Http, "closed"), (Kind::Command, "terminated")] {
        let (fixture, execution, cancelled, json) = cancel(kind, seen, true);
        assert_eq!(json["status"], "cancelled", "{kind:?}: {json}");
        cancelled.ended(1, "cancelled");
        fixture.verify(&execution);
    }
}
