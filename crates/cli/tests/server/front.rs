//! `rutter mcp` and the server behind it: started when needed, shared, outlived, replaced.

use crate::agent::Agent;
use crate::stage::{PLAN, Stage, end, servers_in, told, until};
use serde_json::{Value, json};
use std::time::Instant;

#[test]
fn an_agent_starts_a_server_where_there_is_none_and_finds_it_the_next_time() {
    let stage = Stage::new();
    let mut first = Agent::start(&stage, &[]);
    assert_eq!(first.introduce()["serverInfo"]["name"], "rutter");
    let owner = stage.owner().expect("somebody has the database");
    assert_ne!(owner, first.child.id(), "not the agent's own process");
    first.leave();
    let began = Instant::now();
    let mut second = Agent::start(&stage, &[]);
    second.introduce();
    println!(
        "initialize with the server up: {} ms after the start of the process",
        began.elapsed().as_millis()
    );
    assert_eq!(stage.owner(), Some(owner), "the server stays");
    second.leave();
}

#[test]
fn agents_that_start_at_once_share_one_server() {
    for _ in 0..10 {
        let stage = Stage::new();
        let (mut one, mut other) = (Agent::start(&stage, &[]), Agent::start(&stage, &[]));
        one.introduce();
        other.introduce();
        let saved = one.call("save_plan", json!({ "plan": PLAN }));
        let found = other.call("save_plan", json!({ "plan": PLAN, "plan_id": saved["plan_id"] }));
        assert_eq!(found["revision"], saved["revision"], "the other knows the plan: {found}");
        until("one server is left", || servers_in(&stage.path("")).len() == 1);
        one.leave();
        other.leave();
    }
}

#[test]
fn an_execution_goes_on_when_its_agent_is_killed() {
    let stage = Stage::new();
    let mut agent = Agent::start(&stage, &[]);
    agent.introduce();
    agent.ask("tools/call", json!({ "name": "execute_plan", "arguments": { "plan": PLAN } }));
    until("the gate was called", || stage.calls() == 1);
    agent.kill();
    stage.open_the_gate();
    let execution = stage.execution();
    until("it is completed", || stage.status(&execution) == "completed");
    assert_eq!(stage.calls(), 1);
}

#[test]
fn a_killed_server_is_replaced_and_what_was_open_is_answered_truthfully() {
    let stage = Stage::new();
    let mut agent = Agent::start(&stage, &[]);
    agent.introduce();
    let arguments = json!({ "plan": PLAN, "wait_seconds": 45 });
    let open = agent.ask("tools/call", json!({ "name": "execute_plan", "arguments": arguments }));
    until("the gate was called", || stage.calls() == 1);
    let owner = stage.owner().unwrap();
    end(owner, "-KILL");
    let answer = agent.answer(open);
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("may have been done"), "{answer}");
    let execution = stage.execution();
    let status = agent.call("status", json!({ "execution_id": execution }));
    assert_eq!(status["execution_id"], execution, "the next request finds a server: {status}");
    assert_ne!(stage.owner(), Some(owner));
    stage.open_the_gate();
    let ended = agent.call("status", json!({ "execution_id": execution, "wait_seconds": 45 }));
    assert_eq!(ended["status"], "completed", "{ended}");
    agent.leave();
}

#[test]
fn one_that_is_embedded_has_the_database_and_a_second_one_is_told_who() {
    let stage = Stage::new();
    let mut first = Agent::start(&stage, &["--embedded"]);
    first.introduce();
    let pid = first.child.id();
    assert_eq!(stage.owner(), Some(pid));
    let second = stage.rutter(&["mcp", "--embedded"]);
    assert_eq!(second.status.code(), Some(2), "{}", told(&second));
    assert!(second.stdout.is_empty(), "{}", told(&second));
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(said.contains("store.locked") && said.contains(&pid.to_string()), "{said}");
    // Others reach it, as they reach a server.
    let saved = stage.json(&["plan", "save", "plan.yaml", "--json"]);
    assert_eq!(saved["ok"], true, "{saved}");
    first.leave();
    until("the database is free", || stage.owner().is_none());
}

#[test]
fn nothing_but_the_protocol_is_written_to_stdout() {
    for words in [&[][..], &["--embedded"]] {
        let stage = Stage::new();
        let mut agent = Agent::start_with(&stage, words, &[("RUTTER_LOG", "debug")]);
        agent.introduce();
        agent.request("tools/list", json!({}));
        agent.say("this is no JSON");
        agent.request("no/such/method", json!({}));
        agent.request("tools/call", json!({ "name": "no_such_tool", "arguments": {} }));
        agent.call("execute_plan", json!({ "plan": PLAN, "wait_seconds": 0 }));
        stage.open_the_gate_when_called();
        let heard = agent.leave();
        assert!(heard.len() >= 5, "{heard:?}");
        for line in heard {
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{words:?}: {line}"));
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
        }
    }
}

#[test]
fn a_start_that_fails_says_so_on_stderr_alone() {
    let stage = Stage::new();
    std::fs::write(&stage.data, "a file where the directory should be").unwrap();
    for words in [&["mcp"][..], &["mcp", "--embedded"]] {
        let output = stage.rutter(words);
        assert!(!output.status.success(), "{}", told(&output));
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{}", told(&output));
    }
    std::fs::remove_file(&stage.data).unwrap();
    std::fs::write(stage.path("rutter.toml"), "dirr = 'x'").unwrap();
    let output = stage.rutter(&["mcp"]);
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert!(output.stdout.is_empty() && told(&output).contains("did you mean"), "{}", told(&output));
}

#[test]
fn a_very_long_data_directory_works() {
    let stage = Stage::with_data(&format!("{}/{}", "a".repeat(120), "b".repeat(120)));
    let mut agent = Agent::start(&stage, &[]);
    agent.introduce();
    let saved = stage.json(&["plan", "save", "plan.yaml", "--json"]);
    assert_eq!(saved["ok"], true, "{saved}");
    agent.leave();
    let stopped = stage.rutter(&["stop"]);
    assert_eq!(stopped.status.code(), Some(0), "{}", told(&stopped));
    until("the server is gone", || stage.owner().is_none());
}

impl Stage {
    /// For executions nobody waits for: they come to their end before the process that has them does.
    fn open_the_gate_when_called(&self) {
        until("the gate was called", || self.calls() > 0);
        self.open_the_gate();
    }
}
