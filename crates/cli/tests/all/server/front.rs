//! `rutter mcp` and the server behind it: started when needed, shared, outlived, replaced.

use crate::server::agent::Agent;
use crate::server::fixture::{PLAN, ServerFixture, end, ended, is_alive, output_text, servers_in, until};
use serde_json::{Value, json};
use std::time::Instant;

#[test]
fn an_agent_starts_a_server_if_none_runs_and_finds_it_the_next_time() {
    let fixture = ServerFixture::new();
    let mut first = Agent::start(&fixture, &[]);
    assert_eq!(first.introduce()["serverInfo"]["name"], "rutter");
    let owner = fixture.owner().expect("a process owns the database");
    assert_ne!(owner, first.child.id(), "not the agent's own process");
    first.leave();
    let began = Instant::now();
    let mut second = Agent::start(&fixture, &[]);
    second.introduce();
    println!("initialize with a running server: {} ms after the start of the process", began.elapsed().as_millis());
    assert_eq!(fixture.owner(), Some(owner), "the server stays");
    second.leave();
}

#[test]
fn agents_that_start_at_once_share_one_server() {
    for _ in 0..10 {
        let fixture = ServerFixture::new();
        let (mut one, mut other) = (Agent::start(&fixture, &[]), Agent::start(&fixture, &[]));
        one.introduce();
        other.introduce();
        let saved = one.call("save_plan", json!({ "plan": PLAN }));
        let found = other.call("save_plan", json!({ "plan": PLAN, "plan_id": saved["plan_id"] }));
        assert_eq!(found["revision"], saved["revision"], "the other knows the plan: {found}");
        until("one server is left", || servers_in(&fixture.path("")).len() == 1);
        one.leave();
        other.leave();
    }
}

#[test]
fn an_execution_continues_when_its_agent_is_killed() {
    let fixture = ServerFixture::new();
    let mut agent = Agent::start(&fixture, &[]);
    agent.introduce();
    agent.ask("tools/call", json!({ "name": "execute_plan", "arguments": { "plan": PLAN } }));
    until("the gate was called", || fixture.calls() == 1);
    agent.kill();
    fixture.open_the_gate();
    let execution = fixture.execution();
    until("it is completed", || fixture.status(&execution) == "completed");
    assert_eq!(fixture.calls(), 1);
}

#[test]
fn a_killed_server_is_replaced_and_open_requests_get_an_honest_error() {
    let fixture = ServerFixture::new();
    let mut agent = Agent::start(&fixture, &[]);
    agent.introduce();
    let arguments = json!({ "plan": PLAN, "wait_seconds": 45 });
    let open = agent.ask("tools/call", json!({ "name": "execute_plan", "arguments": arguments }));
    until("the gate was called", || fixture.calls() == 1);
    let owner = fixture.owner().unwrap();
    end(owner, "-KILL");
    let answer = agent.answer(open);
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("may have taken effect"), "{answer}");
    let execution = fixture.execution();
    let status = agent.call("status", json!({ "execution_id": execution }));
    assert_eq!(status["execution_id"], execution, "the next request finds a server: {status}");
    assert_ne!(fixture.owner(), Some(owner));
    fixture.open_the_gate();
    let ended = agent.call("status", json!({ "execution_id": execution, "wait_seconds": 45 }));
    assert_eq!(ended["status"], "completed", "{ended}");
    agent.leave();
}

#[test]
fn an_idle_agent_leaves_the_database_to_the_operator_who_stopped_the_server() {
    let fixture = ServerFixture::new();
    let mut agent = Agent::start(&fixture, &[]);
    agent.introduce();
    let mut servers = Vec::new();
    for _ in 0..3 {
        let owner = fixture.owner().expect("a server runs");
        let stopped = fixture.rutter(&["stop"]);
        assert_eq!(stopped.status.code(), Some(0), "{}", output_text(&stopped));
        until("it has stopped", || !is_alive(owner));
        // Worth no server, with or without one.
        agent.say(&json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }).to_string());
        agent.say(&json!({ "jsonrpc": "2.0", "id": 999, "result": {} }).to_string());
        let listed = fixture.rutter(&["exec", "list"]);
        assert_eq!(listed.status.code(), Some(0), "{}", output_text(&listed));
        assert_eq!(servers_in(&fixture.path("")), [0; 0], "nobody asked for a server");
        let server = fixture.command(&["serve", "--no-http"]).spawn().unwrap();
        let pid = server.id();
        servers.push(server);
        until("it owns the database", || fixture.owner() == Some(pid));
        until("it listens", || fixture.data.join("rutter.sock").exists());
        // The agent's session goes on there.
        agent.call("find_plans", json!({}));
        assert_eq!(servers_in(&fixture.path("")), [pid]);
    }
    assert_eq!(fixture.rutter(&["stop"]).status.code(), Some(0));
    for server in servers {
        let ended = ended(server);
        assert_eq!(ended.status.code(), Some(0), "{}", output_text(&ended));
    }
    agent.call("find_plans", json!({}));
    assert_eq!(servers_in(&fixture.path("")).len(), 1, "the next request starts one");
    agent.leave();
}

#[test]
fn a_server_started_for_a_client_waits_for_a_database_that_is_still_locked() {
    let fixture = ServerFixture::new();
    std::fs::create_dir_all(&fixture.data).unwrap();
    let lock = std::fs::File::create(fixture.data.join("rutter.lock")).unwrap();
    lock.lock().unwrap();
    let mut agent = Agent::start(&fixture, &[]);
    until("the server waits for the database", || servers_in(&fixture.path("")).len() == 1);
    // Longer than a client waits for a server that gave up.
    std::thread::sleep(std::time::Duration::from_secs(4));
    lock.unlock().unwrap();
    assert_eq!(agent.introduce()["serverInfo"]["name"], "rutter");
    agent.leave();
}

#[test]
fn an_embedded_server_owns_the_database_and_a_second_one_learns_the_owner() {
    let fixture = ServerFixture::new();
    let mut first = Agent::start(&fixture, &["--embedded"]);
    first.introduce();
    let pid = first.child.id();
    assert_eq!(fixture.owner(), Some(pid));
    let second = fixture.rutter(&["mcp", "--embedded"]);
    assert_eq!(second.status.code(), Some(2), "{}", output_text(&second));
    assert!(second.stdout.is_empty(), "{}", output_text(&second));
    let message = String::from_utf8_lossy(&second.stderr).into_owned();
    assert!(message.contains("store.locked") && message.contains(&pid.to_string()), "{message}");
    // Other commands reach it like a server.
    let saved = fixture.json(&["plan", "save", "plan.yaml", "--json"]);
    assert_eq!(saved["ok"], true, "{saved}");
    first.leave();
    until("the database is free", || fixture.owner().is_none());
}

#[test]
fn nothing_but_the_protocol_is_written_to_stdout() {
    for words in [&[][..], &["--embedded"]] {
        let fixture = ServerFixture::new();
        let mut agent = Agent::start_with(&fixture, words, &[("RUTTER_LOG", "debug")]);
        agent.introduce();
        agent.request("tools/list", json!({}));
        agent.say("this is not JSON");
        agent.request("no/such/method", json!({}));
        agent.request("tools/call", json!({ "name": "no_such_tool", "arguments": {} }));
        agent.call("execute_plan", json!({ "plan": PLAN, "wait_seconds": 0 }));
        fixture.open_the_gate_when_called();
        let heard = agent.leave();
        assert!(heard.len() >= 5, "{heard:?}");
        for line in heard {
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{words:?}: {line}"));
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
        }
    }
}

#[test]
fn a_failed_start_is_reported_on_stderr_only() {
    let fixture = ServerFixture::new();
    std::fs::write(&fixture.data, "a file where the directory should be").unwrap();
    for words in [&["mcp"][..], &["mcp", "--embedded"]] {
        let output = fixture.rutter(words);
        assert!(!output.status.success(), "{}", output_text(&output));
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{}", output_text(&output));
    }
    std::fs::remove_file(&fixture.data).unwrap();
    std::fs::write(fixture.path("rutter.toml"), "dirr = 'x'").unwrap();
    let output = fixture.rutter(&["mcp"]);
    assert_eq!(output.status.code(), Some(2), "{}", output_text(&output));
    assert!(output.stdout.is_empty() && output_text(&output).contains("did you mean"), "{}", output_text(&output));
}

#[test]
fn a_very_long_data_directory_works() {
    let fixture = ServerFixture::with_data(&format!("{}/{}", "a".repeat(120), "b".repeat(120)));
    let mut agent = Agent::start(&fixture, &[]);
    agent.introduce();
    let saved = fixture.json(&["plan", "save", "plan.yaml", "--json"]);
    assert_eq!(saved["ok"], true, "{saved}");
    agent.leave();
    let stopped = fixture.rutter(&["stop"]);
    assert_eq!(stopped.status.code(), Some(0), "{}", output_text(&stopped));
    until("the server is gone", || fixture.owner().is_none());
}

impl ServerFixture {
    /// For executions without a waiting client: they end before their process does.
    fn open_the_gate_when_called(&self) {
        until("the gate was called", || self.calls() > 0);
        self.open_the_gate();
    }
}
