//! `rutter serve` and `rutter stop`: when a server stops, and when it does not start.

use crate::server::fixture::{ServerFixture, ended, output_text, until};
use serde_json::Value;
use std::time::{Duration, Instant};

#[test]
fn stop_lets_calls_in_flight_end_and_then_stops_the_server() {
    let fixture = ServerFixture::new();
    let server = fixture.command(&["serve", "--no-http"]).spawn().unwrap();
    until("the server listens", || fixture.data.join("rutter.sock").exists());
    let running = fixture.command(&["run", "plan.yaml", "--json"]).spawn().unwrap();
    until("the gate was called", || fixture.calls() == 1);
    let stopped = fixture.json(&["stop", "--json"]);
    assert_eq!(stopped["pid"], server.id(), "{stopped}");
    fixture.open_the_gate();
    let server = ended(server);
    assert_eq!(server.status.code(), Some(0), "{}", output_text(&server));
    assert!(!fixture.data.join("rutter.sock").exists());
    let ran = ended(running);
    let answer: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(answer["status"], "completed", "{}", output_text(&ran));
    let again = fixture.rutter(&["stop", "--json"]);
    assert_eq!(again.status.code(), Some(2), "{}", output_text(&again));
    assert!(output_text(&again).contains("server.none"), "{}", output_text(&again));
}

#[test]
fn an_idle_server_stops_only_without_open_executions() {
    let fixture = ServerFixture::new();
    let mut server = fixture.command(&["serve", "--no-http", "--idle", "1"]).spawn().unwrap();
    until("the server listens", || fixture.data.join("rutter.sock").exists());
    // Its client is gone; only the execution keeps the server.
    let mut running = fixture.command(&["run", "plan.yaml"]).spawn().unwrap();
    until("the gate was called", || fixture.calls() == 1);
    running.kill().unwrap();
    running.wait().unwrap();
    let observed = Instant::now() + Duration::from_secs(4);
    while Instant::now() < observed {
        assert!(server.try_wait().unwrap().is_none(), "it abandoned an execution");
        std::thread::sleep(Duration::from_millis(20));
    }
    fixture.open_the_gate();
    let server = ended(server);
    assert_eq!(server.status.code(), Some(0), "{}", output_text(&server));
    assert_eq!(fixture.status(&fixture.execution()), "completed");
}

#[test]
fn a_timer_that_has_not_fired_keeps_an_idle_server() {
    let fixture = ServerFixture::new();
    let plan = "name: later\nsteps:\n  - id: set\n    tool: timer.set\n    parameters:\n      name: tea\n      after: 1h\n      message: tea\n";
    std::fs::write(fixture.path("later.yaml"), plan).unwrap();
    let ran = fixture.rutter(&["run", "later.yaml"]);
    assert_eq!(ran.status.code(), Some(0), "{}", output_text(&ran));
    let mut server = fixture.command(&["serve", "--no-http", "--idle", "1"]).spawn().unwrap();
    until("the server listens", || fixture.data.join("rutter.sock").exists());
    let observed = Instant::now() + Duration::from_secs(4);
    while Instant::now() < observed {
        assert!(server.try_wait().unwrap().is_none(), "the timer would not fire");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(fixture.rutter(&["stop"]).status.code(), Some(0));
    assert_eq!(ended(server).status.code(), Some(0));
}

#[test]
fn a_public_address_needs_configured_tokens() {
    let fixture = ServerFixture::new();
    std::fs::write(fixture.path("rutter.toml"), "dir = 'data'").unwrap();
    let refused = fixture.rutter(&["serve", "--listen", "0.0.0.0:0", "--json"]);
    assert_eq!(refused.status.code(), Some(2), "{}", output_text(&refused));
    assert!(output_text(&refused).contains("server.address"), "{}", output_text(&refused));
    // The variable must not bypass it.
    let output = fixture.command(&["serve"]).env("RUTTER_LISTEN", "0.0.0.0:0").spawn().unwrap();
    let refused = ended(output);
    assert_eq!(refused.status.code(), Some(2), "{}", output_text(&refused));
}

#[test]
fn a_token_cannot_have_the_name_of_the_socket_principal() {
    let fixture = ServerFixture::new();
    let settings = "dir = 'data'\n[server.tokens.local]\nrole = 'agent'\nenv = 'OTHER_TOKEN'\n";
    std::fs::write(fixture.path("rutter.toml"), settings).unwrap();
    let refused = fixture.rutter(&["serve"]);
    assert_eq!(refused.status.code(), Some(2), "{}", output_text(&refused));
    assert!(output_text(&refused).contains("server.tokens.local"), "{}", output_text(&refused));
}
