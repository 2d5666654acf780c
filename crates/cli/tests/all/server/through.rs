//! Commands while the database is in use: they go to its owner, and end as they would here.

use crate::fixture::effects_script;
use crate::server::fixture::{ServerFixture, ended, output_text, until};
use serde_json::Value;
use std::fs;
use std::process::{Child, Output};
use std::time::{Duration, Instant};

/// A fixture with a server.
fn served() -> (ServerFixture, Child) {
    let fixture = ServerFixture::new();
    let server = fixture.command(&["serve", "--no-http"]).spawn().unwrap();
    until("the server listens", || fixture.data.join("rutter.sock").exists());
    (fixture, server)
}

fn close(fixture: &ServerFixture, server: Child) {
    fixture.rutter(&["stop"]);
    let server = ended(server);
    assert_eq!(server.status.code(), Some(0), "{}", output_text(&server));
}

#[test]
fn run_lets_the_server_execute_the_plan_and_follows_it() {
    let (fixture, server) = served();
    let running = fixture.command(&["run", "plan.yaml", "--json"]).spawn().unwrap();
    until("the gate was called", || fixture.calls() == 1);
    assert_eq!(fixture.owner(), Some(server.id()));
    fixture.open_the_gate();
    let ran = ended(running);
    assert_eq!(ran.status.code(), Some(0), "{}", output_text(&ran));
    let answer: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!((&answer["status"], &answer["steps"][0]["status"]), (&"completed".into(), &"completed".into()));
    assert!(answer["receipt"]["hash"].is_string(), "{answer}");
    assert_eq!(fixture.calls(), 1);

    let asking = fixture.rutter(&["run", "asking.yaml"]);
    assert_eq!(asking.status.code(), Some(3), "{}", output_text(&asking));
    assert!(output_text(&asking).contains("rutter exec approve"), "{}", output_text(&asking));
    close(&fixture, server);
}

#[test]
fn mistakes_in_a_plan_are_reported_alike_by_the_server_and_here() {
    let broken = "name: broken\nsteps:\n  - { id: a, tool: gate.pas }\n  - { id: b, tool: gate.pass, depends_on: [c] }\n  - { id: d, tool: gone.x }\n";
    let (fixture, server) = served();
    fs::write(fixture.path("broken.yaml"), broken).unwrap();
    for words in [&["run", "broken.yaml"][..], &["run", "broken.yaml", "--json"], &["plan", "save", "broken.yaml"]] {
        let there = fixture.rutter(words);
        assert_eq!(there.status.code(), Some(2), "{}", output_text(&there));
        assert!(output_text(&there).contains("plan.unknown_step"), "{}", output_text(&there));
        let here = fixture.rutter(&[words, &["--dir", "elsewhere"]].concat());
        assert_eq!(findings(&there), findings(&here), "{words:?}");
        assert!(output_text(&there).contains("server gone could not be asked"), "{}", output_text(&there));
    }
    close(&fixture, server);
}

/// The findings about the plan, without log messages.
fn findings(output: &Output) -> Vec<String> {
    output_text(output).lines().filter(|line| !line.trim_start().starts_with("WARN ")).map(str::to_owned).collect()
}

#[test]
fn other_tools_than_the_servers_are_refused() {
    let (fixture, server) = served();
    let other = "dir = 'data'\n[commands.other.tools.x]\ndescription = 'x'\nargv = ['/bin/true']\n";
    fs::write(fixture.path("other.toml"), other).unwrap();
    fs::write(fixture.path("list.json"), r#"{ "mcpServers": { "x": { "command": "x" } } }"#).unwrap();
    for words in [["--config", "other.toml"], ["--mcp-config", "list.json"]] {
        let refused = fixture.rutter(&[&["run", "plan.yaml", "--json"], &words[..]].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", output_text(&refused));
        assert!(output_text(&refused).contains("rutter stop"), "{}", output_text(&refused));
    }
    // The same settings from another file are the same tools.
    fs::copy(fixture.path("rutter.toml"), fixture.path("same.toml")).unwrap();
    let saved = fixture.json(&["plan", "save", "plan.yaml", "--json", "--config", "same.toml"]);
    assert_eq!(saved["ok"], true, "{saved}");
    assert_eq!(fixture.calls(), 0);
    close(&fixture, server);
}

#[test]
fn plans_are_saved_listed_and_printed_with_a_server_and_without_one() {
    let (fixture, server) = served();
    let unknown = fixture.rutter(&["plan", "save", "plan.yaml", "--id", "plan_slow", "--json"]);
    assert!(output_text(&unknown).contains("store.not_found"), "nobody chooses an id: {}", output_text(&unknown));
    let there = fixture.json(&["plan", "save", "plan.yaml", "--json"]);
    assert_eq!(there["revision"], 1, "{there}");
    let id = there["plan_id"].as_str().unwrap();
    assert_eq!(fixture.json(&["plan", "list", "--json"])["plan_id"], id);
    close(&fixture, server);

    // A comment alone makes no revision: the content is the same.
    let text = fs::read_to_string(fixture.path("plan.yaml")).unwrap();
    fs::write(fixture.path("plan.yaml"), format!("{text}# changed\n")).unwrap();
    let same = fixture.json(&["plan", "save", "plan.yaml", "--id", id, "--json"]);
    assert_eq!((&same["revision"], &same["is_new"]), (&1.into(), &false.into()), "{same}");
    fs::write(fixture.path("plan.yaml"), format!("{text}description: changed\n")).unwrap();
    let here = fixture.json(&["plan", "save", "plan.yaml", "--id", id, "--json"]);
    assert_eq!((&here["revision"], &here["is_new"]), (&2.into(), &true.into()), "{here}");
    let again = fixture.json(&["plan", "save", "plan.yaml", "--id", id, "--json"]);
    assert_eq!((&again["revision"], &again["is_new"]), (&2.into(), &false.into()), "{again}");
    let newest = fixture.rutter(&["plan", "show", id]);
    assert_eq!(newest.stdout, fs::read(fixture.path("plan.yaml")).unwrap());
    let first = fixture.json(&["plan", "show", id, "--revision", "1", "--json"]);
    assert_eq!(first["source"], crate::server::fixture::PLAN);
    let missing = fixture.rutter(&["plan", "show", "plan_fast", "--json"]);
    assert_eq!(missing.status.code(), Some(2), "{}", output_text(&missing));
    assert!(output_text(&missing).contains("rutter plan list"), "{}", output_text(&missing));
    // The settings file with the directory is enough to find everything.
    fs::rename(fixture.path("rutter.toml"), fixture.path("named.toml")).unwrap();
    let found = fixture.json(&["plan", "list", "--json", "--config", "named.toml"]);
    assert_eq!(found["plan_id"], id);
    let listed = fixture.rutter(&["exec", "list", "--config", "named.toml"]);
    assert_eq!(listed.status.code(), Some(0), "{}", output_text(&listed));
}

#[test]
fn large_inputs_pass_from_a_file_and_the_limit_is_named() {
    let (fixture, server) = served();
    let plan = "name: big\ninputs: { s: { type: string } }\nsteps: [{ id: a, tool: journal.executions }]\n";
    fs::write(fixture.path("big.yaml"), plan).unwrap();
    for (bytes, code) in [(4_000_000, 0), (4_300_000, 2)] {
        fs::write(fixture.path("inputs.json"), format!("{{\"s\": \"{}\"}}", "x".repeat(bytes))).unwrap();
        for elsewhere in [&[][..], &["--dir", "elsewhere"]] {
            let ran = fixture.rutter(&[&["run", "big.yaml", "--inputs-file", "inputs.json"], elsewhere].concat());
            assert_eq!(ran.status.code(), Some(code), "{}", output_text(&ran));
            assert_eq!(output_text(&ran).contains("more than 4194304 bytes"), code == 2, "{}", output_text(&ran));
        }
    }
    close(&fixture, server);
}

#[test]
fn plans_are_checked_against_the_last_known_tools_of_a_server_that_is_down() {
    let fixture = ServerFixture::new();
    let world = serde_json::json!({ "tools": { "t.get": { "kind": "read", "description": "Get one" } }, "faults": {} });
    fs::write(fixture.path("world.json"), world.to_string()).unwrap();
    let python = crate::scenarios::fixture::python().display().to_string();
    let script = "test ! -e down && exec \"$0\" \"$@\"";
    let arguments = ["-c", script, &python, &effects_script(), "stdio", "--server", "t", "--world", "world.json"];
    let arguments = [&arguments[..], &["--log", "log"]].concat();
    let settings = format!("dir = 'data'\n[servers.t]\ncommand = '/bin/sh'\nargs = {arguments:?}\n");
    fs::write(fixture.path("rutter.toml"), settings).unwrap();
    let plan = |tool: &str| format!("name: get\nsteps: [{{ id: a, tool: {tool} }}]\n");
    fs::write(fixture.path("get.yaml"), plan("t.get")).unwrap();
    fs::write(fixture.path("set.yaml"), plan("t.set")).unwrap();
    let check = |file: &str| fixture.rutter(&["plan", "check", file]);
    fs::write(fixture.path("down"), "").unwrap();
    assert_eq!(check("get.yaml").status.code(), Some(2), "it was never reached");
    fs::remove_file(fixture.path("down")).unwrap();
    assert_eq!(fixture.rutter(&["plan", "save", "get.yaml"]).status.code(), Some(0));

    fs::write(fixture.path("down"), "").unwrap();
    for is_served in [false, true] {
        let server = is_served.then(|| fixture.command(&["serve", "--no-http"]).spawn().unwrap());
        until("the server listens", || !is_served || fixture.data.join("rutter.sock").exists());
        let known = check("get.yaml");
        assert_eq!(known.status.code(), Some(0), "{}", output_text(&known));
        assert!(output_text(&known).contains("warning[tool.unreachable]"), "{}", output_text(&known));
        assert_eq!(fixture.rutter(&["plan", "preview", "get.yaml"]).status.code(), Some(0));
        let unknown = check("set.yaml");
        assert_eq!(unknown.status.code(), Some(2), "{}", output_text(&unknown));
        // It may have been added since.
        assert!(output_text(&unknown).contains("error[tool.unreachable]"), "{}", output_text(&unknown));
        server.into_iter().for_each(|server| close(&fixture, server));
    }
}

/// The refusals of calls by hand that are on record.
fn refused_calls(fixture: &ServerFixture) -> Vec<String> {
    let tail = fixture.rutter(&["journal", "tail", "--kind", "act_refused", "--json"]);
    let text = String::from_utf8(tail.stdout).unwrap();
    text.lines().filter(|line| line.contains("call_tool")).map(str::to_owned).collect()
}

#[test]
fn a_refused_call_by_hand_is_on_record_with_a_server_and_without() {
    let fixture = ServerFixture::new();
    let settings = fs::read_to_string(fixture.path("rutter.toml")).unwrap();
    let policy = "[[policy]]\nname = \"by plan\"\ntools = [\"gate.ask\"]\ndeny = \"never by hand\"\n";
    fs::write(fixture.path("rutter.toml"), format!("{settings}{policy}")).unwrap();
    let refused = |fixture: &ServerFixture| {
        let output = fixture.rutter(&["tools", "call", "gate.ask"]);
        assert_eq!(output.status.code(), Some(2), "{}", output_text(&output));
        assert!(!output_text(&output).contains("could not be recorded"), "{}", output_text(&output));
    };
    refused(&fixture);
    let alone = refused_calls(&fixture);
    assert_eq!(alone.len(), 1, "{alone:?}");
    assert!(alone[0].contains("command.forbidden") && alone[0].contains("never by hand"), "{alone:?}");
    let server = fixture.command(&["serve", "--no-http"]).spawn().unwrap();
    until("the server listens", || fixture.data.join("rutter.sock").exists());
    refused(&fixture);
    assert_eq!(refused_calls(&fixture).len(), 2, "the server has recorded it before the answer");
    close(&fixture, server);
    assert_eq!(fixture.calls(), 0);
}

#[test]
fn the_tools_of_servers_that_answer_are_listed_though_another_one_hangs() {
    let fixture = ServerFixture::new();
    let settings = fs::read_to_string(fixture.path("rutter.toml")).unwrap();
    let silent = "[servers.silent]\ncommand = \"/bin/sleep\"\nargs = [\"600\"]\n";
    fs::write(fixture.path("rutter.toml"), format!("{settings}{silent}")).unwrap();
    let began = Instant::now();
    let listed = fixture.rutter(&["tools", "list", "--json"]);
    assert!(began.elapsed() < Duration::from_secs(30), "it took {:?}", began.elapsed());
    assert_eq!(listed.status.code(), Some(1), "{}", output_text(&listed));
    assert!(output_text(&listed).contains("server silent could not be asked"), "{}", output_text(&listed));
    let catalog: Value = serde_json::from_slice(&listed.stdout).unwrap();
    let names: Vec<&str> =
        catalog["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains(&"gate.pass"), "{names:?}");
    let silent: Vec<&String> = catalog["unreachable"].as_object().unwrap().keys().collect();
    assert_eq!(silent, ["gone", "silent"]);
    // The file is a catalogue that plans are checked against.
    fs::write(fixture.path("tools.json"), &listed.stdout).unwrap();
    let checked = fixture.rutter(&["plan", "check", "plan.yaml", "--tools", "tools.json"]);
    assert_eq!(checked.status.code(), Some(0), "{}", output_text(&checked));
}
