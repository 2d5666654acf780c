//! Commands that find the database taken: they go to whoever has it, and end as they would have here.

use crate::stage::{Stage, ended, told, until};
use serde_json::Value;
use std::fs;
use std::process::{Child, Output};

/// A stage with a server.
fn served() -> (Stage, Child) {
    let stage = Stage::new();
    let server = stage.command(&["serve", "--no-http"]).spawn().unwrap();
    until("the server listens", || stage.data.join("rutter.sock").exists());
    (stage, server)
}

fn close(stage: &Stage, server: Child) {
    stage.rutter(&["stop"]);
    let server = ended(server);
    assert_eq!(server.status.code(), Some(0), "{}", told(&server));
}

#[test]
fn run_has_the_server_carry_it_out_and_follows_it() {
    let (stage, server) = served();
    let running = stage.command(&["run", "plan.yaml", "--json"]).spawn().unwrap();
    until("the gate was called", || stage.calls() == 1);
    assert_eq!(stage.owner(), Some(server.id()));
    stage.open_the_gate();
    let ran = ended(running);
    assert_eq!(ran.status.code(), Some(0), "{}", told(&ran));
    let answer: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(
        (&answer["status"], &answer["steps"][0]["status"]),
        (&"completed".into(), &"completed".into())
    );
    assert!(answer["receipt"]["hash"].is_string(), "{answer}");
    assert_eq!(stage.calls(), 1);

    let asking = stage.rutter(&["run", "asking.yaml"]);
    assert_eq!(asking.status.code(), Some(3), "{}", told(&asking));
    assert!(told(&asking).contains("rutter exec approve"), "{}", told(&asking));
    close(&stage, server);
}

#[test]
fn a_plan_with_mistakes_is_told_alike_by_the_server_and_here() {
    let broken = "name: broken\nsteps:\n  - { id: a, tool: gate.pas }\n  - { id: b, tool: gate.pass, depends_on: [c] }\n  - { id: d, tool: gone.x }\n";
    let (stage, server) = served();
    fs::write(stage.path("broken.yaml"), broken).unwrap();
    for words in
        [&["run", "broken.yaml"][..], &["run", "broken.yaml", "--json"], &["plan", "save", "broken.yaml"]]
    {
        let there = stage.rutter(words);
        assert_eq!(there.status.code(), Some(2), "{}", told(&there));
        assert!(told(&there).contains("plan.unknown_step"), "{}", told(&there));
        let here = stage.rutter(&[words, &["--dir", "elsewhere"]].concat());
        assert_eq!(findings(&there), findings(&here), "{words:?}");
        assert!(told(&there).contains("server gone could not be asked"), "{}", told(&there));
    }
    close(&stage, server);
}

/// What was said of the plan, without what a process says of itself.
fn findings(output: &Output) -> Vec<String> {
    told(output).lines().filter(|line| !line.trim_start().starts_with("WARN ")).map(str::to_owned).collect()
}

#[test]
fn other_tools_than_the_servers_are_refused() {
    let (stage, server) = served();
    let other = "dir = 'data'\n[commands.other.tools.x]\ndescription = 'x'\nargv = ['/bin/true']\n";
    fs::write(stage.path("other.toml"), other).unwrap();
    fs::write(stage.path("list.json"), r#"{ "mcpServers": { "x": { "command": "x" } } }"#).unwrap();
    for words in [["--config", "other.toml"], ["--mcp-config", "list.json"]] {
        let refused = stage.rutter(&[&["run", "plan.yaml", "--json"], &words[..]].concat());
        assert_eq!(refused.status.code(), Some(2), "{}", told(&refused));
        assert!(told(&refused).contains("rutter stop"), "{}", told(&refused));
    }
    // The same settings by another way are the same tools.
    fs::copy(stage.path("rutter.toml"), stage.path("same.toml")).unwrap();
    let saved = stage.json(&["plan", "save", "plan.yaml", "--json", "--config", "same.toml"]);
    assert_eq!(saved["ok"], true, "{saved}");
    assert_eq!(stage.calls(), 0);
    close(&stage, server);
}

#[test]
fn plans_are_kept_listed_and_shown_beside_a_server_and_without_one() {
    let (stage, server) = served();
    let there = stage.json(&["plan", "save", "plan.yaml", "--id", "plan_slow", "--json"]);
    assert_eq!((&there["plan_id"], &there["revision"]), (&"plan_slow".into(), &1.into()), "{there}");
    assert_eq!(stage.json(&["plan", "list", "--json"])["plan_id"], "plan_slow");
    close(&stage, server);

    fs::write(stage.path("plan.yaml"), fs::read_to_string(stage.path("plan.yaml")).unwrap() + "# changed\n")
        .unwrap();
    let here = stage.json(&["plan", "save", "plan.yaml", "--id", "plan_slow", "--json"]);
    assert_eq!((&here["revision"], &here["is_new"]), (&2.into(), &true.into()), "{here}");
    let again = stage.json(&["plan", "save", "plan.yaml", "--id", "plan_slow", "--json"]);
    assert_eq!((&again["revision"], &again["is_new"]), (&2.into(), &false.into()), "{again}");
    let newest = stage.rutter(&["plan", "show", "plan_slow"]);
    assert_eq!(newest.stdout, fs::read(stage.path("plan.yaml")).unwrap());
    let first = stage.json(&["plan", "show", "plan_slow", "--revision", "1", "--json"]);
    assert_eq!(first["source"], crate::stage::PLAN);
    let missing = stage.rutter(&["plan", "show", "plan_fast", "--json"]);
    assert_eq!(missing.status.code(), Some(2), "{}", told(&missing));
    assert!(told(&missing).contains("rutter plan list"), "{}", told(&missing));
    // The settings file that names the directory is enough to find everything.
    fs::rename(stage.path("rutter.toml"), stage.path("named.toml")).unwrap();
    let found = stage.json(&["plan", "list", "--json", "--config", "named.toml"]);
    assert_eq!(found["plan_id"], "plan_slow");
    let listed = stage.rutter(&["exec", "list", "--config", "named.toml"]);
    assert_eq!(listed.status.code(), Some(0), "{}", told(&listed));
}
