//! Steering from a second process: pausing, resuming, cancelling, and a large plan that is paused in the middle.

use crate::answer::{Answer, questions, steps};
use crate::stage::{Kind, Stage, until};
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

/// Nothing is begun any more: what was under way has ended, and then the count stays as it is for a while.
fn stands_still(stage: &Stage) -> usize {
    until("what was under way has ended", || stage.count("call") == stage.count("effect"));
    let calls = stage.count("call");
    thread::sleep(Duration::from_secs(2));
    assert_eq!(stage.count("call"), calls, "something was begun during a pause");
    calls
}

#[test]
fn a_pause_from_another_process_begins_nothing_new_and_resuming_finishes() {
    let mut stage = Stage::new();
    stage.server("slow", Kind::Stdio, &[]);
    stage.tool("slow.work", json!({ "takes_ms": 300, "input": { "type": "object" } })).open();
    let steps: String = (0..20)
        .map(|step| format!("  - {{ id: s{step}, tool: slow.work, parameters: {{ n: {step} }} }}\n"))
        .collect();
    stage.write("plan.yaml", &format!("name: twenty\nmax_parallel: 2\nsteps:\n{steps}"));
    let run = stage.start(&["run", "plan.yaml", "--wait", "--json"]);
    let execution = run.execution();
    until("some of it is done", || stage.count("effect") >= 4);
    let pause = stage.rutter(&["exec", "pause", &execution, "--json"]);
    pause.ended(3, "paused");
    let calls = stands_still(&stage);
    assert!((4..20).contains(&calls), "{calls} calls");
    let again = stage.rutter(&["exec", "pause", &execution, "--json"]);
    assert_eq!(again.refused(), "execution.paused");

    let resume = stage.rutter(&["exec", "resume", &execution, "--no-wait", "--json"]);
    assert_eq!(resume.code, Some(0), "{resume:?}");
    run.wait().ended(0, "completed");
    assert_eq!((stage.count("call"), stage.count("effect")), (20, 20));
    stage.verify(&execution);
}

#[test]
fn a_thousand_steps_over_one_server_are_done_once_each_with_a_pause_in_between() {
    let mut stage = Stage::new();
    stage.server("many", Kind::Stdio, &[]);
    stage.tool("many.work", json!({ "takes_ms": 20, "input": { "type": "object" } }));
    stage.extra.insert("many".to_owned(), "concurrency = 64".to_owned());
    stage.open();
    let steps: String = (0..1000)
        .map(|step| format!("  - {{ id: s{step}, tool: many.work, parameters: {{ n: {step} }} }}\n"))
        .collect();
    stage.write("plan.yaml", &format!("name: thousand\nmax_parallel: 64\nsteps:\n{steps}"));
    let run = stage.start(&["run", "plan.yaml", "--wait", "--json"]);
    let execution = run.execution();
    until("a good part is done", || stage.count("effect") >= 300);
    stage.rutter(&["exec", "pause", &execution, "--json"]).ended(3, "paused");
    let calls = stands_still(&stage);
    assert!((300..1000).contains(&calls), "{calls} calls");
    assert_eq!(stage.rutter(&["exec", "resume", &execution, "--no-wait"]).code, Some(0));
    run.wait().ended(0, "completed");
    let mut done: Vec<u64> = stage
        .lines("effect", "many.work")
        .iter()
        .map(|line| line["arguments"]["n"].as_u64().unwrap())
        .collect();
    done.sort_unstable();
    assert_eq!(done, (0..1000).collect::<Vec<u64>>(), "each step once");
    stage.verify(&execution);
}

/// Cancels while the only call is under way; what the server saw of that, and how it ended.
fn cancel(kind: Kind, seen: &str, read_only: bool) -> (Stage, String, Answer, Value) {
    let mut stage = Stage::new();
    stage.server("long", kind, &[]);
    let safety = if read_only { "read_only" } else { "once" };
    stage.tool("long.work", json!({ "safety": safety, "input": { "type": "object" } }));
    stage.faults("long.work", json!(["hang_until_cancelled"])).open();
    stage.write("plan.yaml", "name: long\nsteps:\n  - { id: work, tool: long.work, timeout: 5m }\n  - { id: after, tool: long.work, depends_on: [work] }\n");
    let run = stage.start(&["run", "plan.yaml", "--json"]);
    let execution = run.execution();
    until("the call is under way", || stage.count("call") == 1);
    let cancelled = stage.rutter(&["exec", "cancel", &execution, "--reason", "enough", "--json"]);
    until("the tool hears of it", || !stage.lines(seen, "long.work").is_empty());
    let ended = run.wait();
    assert_eq!(stage.count("call"), 1, "nothing is begun after a cancel");
    let json = ended.json();
    (stage, execution, cancelled, json)
}

fn check_doubt(kind: Kind, seen: &str) {
    let (stage, execution, cancelled, json) = cancel(kind, seen, false);
    assert_eq!(json["status"], "waiting", "whether it happened is not known: {json}");
    assert_eq!(questions(&json, "doubt").len(), 1);
    cancelled.ended(3, "waiting");
    let resolve =
        ["exec", "resolve", &execution, "--not-done", "--evidence", "it was told to stop", "--json"];
    let ended = stage.rutter(&resolve).ended(1, "cancelled");
    assert_eq!(steps(&ended), ["work=failed", "after=cancelled"]);
    stage.verify(&execution);
}

#[test]
fn cancelling_tells_an_mcp_server_and_leaves_open_what_happened() {
    check_doubt(Kind::Stdio, "cancelled");
}

#[test]
fn cancelling_closes_the_connection_of_an_http_call_and_leaves_open_what_happened() {
    check_doubt(Kind::Http, "closed");
}

#[test]
fn cancelling_terminates_a_command_and_leaves_open_what_happened() {
    check_doubt(Kind::Command, "terminated");
}

#[test]
fn a_cancelled_read_leaves_nothing_open() {
    for (kind, seen) in [(Kind::Stdio, "cancelled"), (Kind::Http, "closed"), (Kind::Command, "terminated")] {
        let (stage, execution, cancelled, json) = cancel(kind, seen, true);
        assert_eq!(json["status"], "cancelled", "{kind:?}: {json}");
        cancelled.ended(1, "cancelled");
        stage.verify(&execution);
    }
}
