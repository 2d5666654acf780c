//! `rutter serve` and `rutter stop`: when a server ends, and when it does not begin.

use crate::stage::{Stage, ended, told, until};
use serde_json::Value;
use std::time::{Duration, Instant};

#[test]
fn stop_lets_what_is_under_way_end_and_then_ends_the_server() {
    let stage = Stage::new();
    let server = stage.command(&["serve", "--no-http"]).spawn().unwrap();
    until("the server listens", || stage.data.join("rutter.sock").exists());
    let running = stage.command(&["run", "plan.yaml", "--json"]).spawn().unwrap();
    until("the gate was called", || stage.calls() == 1);
    let stopped = stage.json(&["stop", "--json"]);
    assert_eq!(stopped["pid"], server.id(), "{stopped}");
    stage.open_the_gate();
    let server = ended(server);
    assert_eq!(server.status.code(), Some(0), "{}", told(&server));
    assert!(!stage.data.join("rutter.sock").exists());
    let ran = ended(running);
    let answer: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(answer["status"], "completed", "{}", told(&ran));
    let again = stage.rutter(&["stop", "--json"]);
    assert_eq!(again.status.code(), Some(2), "{}", told(&again));
    assert!(told(&again).contains("server.none"), "{}", told(&again));
}

#[test]
fn an_idle_server_ends_only_when_nothing_is_under_way() {
    let stage = Stage::new();
    let mut server = stage.command(&["serve", "--no-http", "--idle", "1"]).spawn().unwrap();
    until("the server listens", || stage.data.join("rutter.sock").exists());
    // Whoever started it is gone; only the execution keeps the server.
    let mut running = stage.command(&["run", "plan.yaml"]).spawn().unwrap();
    until("the gate was called", || stage.calls() == 1);
    running.kill().unwrap();
    running.wait().unwrap();
    let observed = Instant::now() + Duration::from_secs(4);
    while Instant::now() < observed {
        assert!(server.try_wait().unwrap().is_none(), "it left an execution alone");
        std::thread::sleep(Duration::from_millis(20));
    }
    stage.open_the_gate();
    let server = ended(server);
    assert_eq!(server.status.code(), Some(0), "{}", told(&server));
    assert_eq!(stage.status(&stage.execution()), "completed");
}

#[test]
fn a_timer_that_has_not_fired_keeps_an_idle_server() {
    let stage = Stage::new();
    let plan = "name: later\nsteps:\n  - id: set\n    tool: timer.set\n    parameters:\n      name: tea\n      after: 1h\n      message: tea\n";
    std::fs::write(stage.path("later.yaml"), plan).unwrap();
    let ran = stage.rutter(&["run", "later.yaml"]);
    assert_eq!(ran.status.code(), Some(0), "{}", told(&ran));
    let mut server = stage.command(&["serve", "--no-http", "--idle", "1"]).spawn().unwrap();
    until("the server listens", || stage.data.join("rutter.sock").exists());
    let observed = Instant::now() + Duration::from_secs(4);
    while Instant::now() < observed {
        assert!(server.try_wait().unwrap().is_none(), "nobody would be there when the timer is due");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(stage.rutter(&["stop"]).status.code(), Some(0));
    assert_eq!(ended(server).status.code(), Some(0));
}

#[test]
fn an_address_others_can_reach_needs_tokens_that_somebody_chose() {
    let stage = Stage::new();
    std::fs::write(stage.path("rutter.toml"), "dir = 'data'").unwrap();
    let refused = stage.rutter(&["serve", "--listen", "0.0.0.0:0", "--json"]);
    assert_eq!(refused.status.code(), Some(2), "{}", told(&refused));
    assert!(told(&refused).contains("server.address"), "{}", told(&refused));
    // The variable is no way around it.
    let output = stage.command(&["serve"]).env("RUTTER_LISTEN", "0.0.0.0:0").spawn().unwrap();
    let refused = ended(output);
    assert_eq!(refused.status.code(), Some(2), "{}", told(&refused));
}

#[test]
fn a_token_cannot_have_the_name_of_whoever_comes_over_the_socket() {
    let stage = Stage::new();
    let settings = "dir = 'data'\n[server.tokens.local]\nrole = 'agent'\nenv = 'OTHER_TOKEN'\n";
    std::fs::write(stage.path("rutter.toml"), settings).unwrap();
    let refused = stage.rutter(&["serve"]);
    assert_eq!(refused.status.code(), Some(2), "{}", told(&refused));
    assert!(told(&refused).contains("server.tokens.local"), "{}", told(&refused));
}
