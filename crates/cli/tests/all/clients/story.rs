//! The session, and what must hold for every client.

use crate::clients::fixture::{ClientFixture, PATIENCE};
use crate::clients::installed::{clients, node, program};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Pipes,
    Http,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Era {
    Legacy,
    Modern,
}

#[test]
fn the_client_of_the_python_sdk_runs_its_session_over_pipes() {
    story("mcp", "auto", Era::Modern, Way::Pipes);
}

#[test]
fn the_client_of_the_python_sdk_runs_its_session_over_http() {
    story("mcp", "auto", Era::Modern, Way::Http);
}

#[test]
fn the_client_of_the_python_sdk_speaks_the_older_protocol_over_pipes() {
    story("mcp", "legacy", Era::Legacy, Way::Pipes);
}

#[test]
fn the_client_of_the_python_sdk_speaks_the_older_protocol_over_http() {
    story("mcp", "legacy", Era::Legacy, Way::Http);
}

#[test]
fn the_client_of_fastmcp_runs_its_session_over_pipes() {
    story("fastmcp", "auto", Era::Modern, Way::Pipes);
}

#[test]
fn the_client_of_fastmcp_runs_its_session_over_http() {
    story("fastmcp", "auto", Era::Modern, Way::Http);
}

#[test]
fn the_older_typescript_sdk_runs_its_session_over_pipes() {
    story("sdk", "legacy", Era::Legacy, Way::Pipes);
}

#[test]
fn the_older_typescript_sdk_runs_its_session_over_http() {
    story("sdk", "legacy", Era::Legacy, Way::Http);
}

#[test]
fn the_typescript_client_runs_its_session_over_pipes() {
    story("client", "auto", Era::Modern, Way::Pipes);
}

#[test]
fn the_typescript_client_runs_its_session_over_http() {
    story("client", "auto", Era::Modern, Way::Http);
}

#[test]
fn the_typescript_client_speaks_the_older_protocol_over_pipes() {
    story("client", "legacy", Era::Legacy, Way::Pipes);
}

#[test]
fn the_typescript_client_speaks_the_older_protocol_over_http() {
    story("client", "legacy", Era::Legacy, Way::Http);
}

fn story(library: &str, mode: &str, era: Era, way: Way) {
    let folder = clients();
    let mut fixture = ClientFixture::new();
    let mut command = match library {
        "mcp" | "fastmcp" => {
            let mut command = Command::new(folder.join("venv/bin/python"));
            command.arg(program("story.py"));
            command
        }
        _ => {
            let mut command = Command::new(node());
            command.arg(program("story.mjs")).arg(&folder);
            command
        }
    };
    command.args([library, mode]);
    match way {
        Way::Pipes => command.arg("stdio").args(fixture.front()),
        Way::Http => {
            let served = fixture.serve();
            command.args(["http", &served.url, &served.token_file])
        }
    };
    let facts = Facts(facts_of(command));
    check(&facts, era, way);
    let counted = |what: &str, tool: &str| fixture.count(what, tool);
    let loads = if way == Way::Pipes { 2 } else { 1 };
    assert_eq!((counted("call", "load"), counted("effect", "load")), (loads, loads), "{facts:#?}");
    assert_eq!((counted("call", "wait"), counted("cancelled", "wait")), (1, 1), "{facts:#?}");
    fixture.close();
}

/// The facts that a client prints until it ends.
fn facts_of(mut command: Command) -> Vec<Value> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > deadline {
            child.kill().unwrap();
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let (message, complained) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{:?}\n{message}\n{complained}", output.status);
    message.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[derive(Debug)]
struct Facts(Vec<Value>);

impl Facts {
    #[track_caller]
    fn of(&self, name: &str) -> &Value {
        let found = self.0.iter().find(|fact| fact["fact"] == name);
        found.unwrap_or_else(|| panic!("there is no fact {name}: {self:#?}"))
    }
}

fn check(facts: &Facts, era: Era, way: Way) {
    let connected = facts.of("connected");
    assert_eq!(connected["server"], "rutter");
    let protocol = connected["protocol"].as_str().unwrap();
    assert_eq!(protocol >= "2026-07-28" && protocol != "unknown", era == Era::Modern, "{protocol}");
    let tools = facts.of("tools")["names"].as_array().unwrap();
    for tool in ["save_plan", "execute_plan", "status", "control", "query_ledger"] {
        assert!(tools.contains(&json!(tool)), "{tool} is not among {tools:?}");
    }
    check_plan(facts);
    match way {
        Way::Pipes => check_questions(facts),
        Way::Http => check_nobody_is_asked(facts),
    }
    check_watching(facts);
    check_pages(facts);
    assert_eq!(facts.0.last().unwrap()["fact"], "end");
}

fn check_plan(facts: &Facts) {
    let refused = &facts.of("refused")["error"];
    assert_eq!(refused["code"], "engine.plan", "{refused}");
    let found = &refused["details"]["diagnostics"][0];
    assert_eq!((&found["pointer"], &found["code"]), (&json!("/steps/0/tool"), &json!("plan.unknown_tool")));
    assert!(refused.to_string().contains("dock.load"), "the right name is suggested: {refused}");
    assert_eq!(facts.of("saved")["revision"], 1);
    assert_eq!(facts.of("executed")["status"], "completed");
    let reports = facts.of("executed")["progress"].as_array().unwrap();
    assert!(!reports.is_empty(), "progress is reported while the call is open");
    let far: Vec<f64> = reports.iter().map(|report| report[0].as_f64().unwrap()).collect();
    assert!(far.is_sorted_by(|before, after| before < after), "{far:?}");
    let status = facts.of("status");
    assert_eq!((&status["status"], &status["steps"][0]["status"]), (&json!("completed"), &json!("completed")));
}

fn check_questions(facts: &Facts) {
    let asked: Vec<&Value> = facts.0.iter().filter(|fact| fact["fact"] == "asked").collect();
    let [first, second] = asked.as_slice() else { panic!("two questions were expected: {asked:#?}") };
    assert_eq!((&first["says"], &second["says"]), (&json!("accept"), &json!("decline")));
    assert!(first["message"].as_str().unwrap().contains("dock.load"), "{first}");
    assert_eq!(facts.of("approved")["status"], "completed");
    let declined = facts.of("declined");
    assert_eq!((&declined["status"], &declined["questions"]), (&json!("waiting"), &json!(1)));
    assert_eq!(facts.of("withdrawn")["status"], "cancelled");
}

/// The token of an agent does not speak for a person: its client is not asked, and the execution waits.
fn check_nobody_is_asked(facts: &Facts) {
    assert!(!facts.0.iter().any(|fact| fact["fact"] == "asked"), "{facts:#?}");
    assert_eq!(facts.of("approved")["status"], "waiting");
    let declined = facts.of("declined");
    assert_eq!((&declined["status"], &declined["questions"]), (&json!("waiting"), &json!(1)));
    assert_eq!(facts.of("withdrawn")["status"], "cancelled");
}

fn check_watching(facts: &Facts) {
    let watched = facts.of("watched");
    let uri = json!(format!("rutter://executions/{}", watched["execution_id"].as_str().unwrap()));
    let seen = watched["seen"].as_array().unwrap();
    assert!(seen.iter().all(|change| change[0] == uri), "{seen:?}");
    assert_eq!(seen.last().unwrap()[1], "cancelled");
}

fn check_pages(facts: &Facts) {
    let prompts = facts.of("prompts")["names"].as_array().unwrap();
    assert!(prompts.contains(&json!("plan_goal")), "{prompts:?}");
    let prompt = facts.of("prompt")["text"].as_str().unwrap();
    assert!(prompt.contains("load every crate") && prompt.contains("dock.load"), "{prompt}");
    assert!(facts.of("guide")["text"].as_str().unwrap().len() > 500);
    let first = &facts.of("executed")["execution_id"];
    let completed: Vec<&Value> = facts.0.iter().filter(|fact| fact["fact"] == "completed").collect();
    assert_eq!(completed.len(), 2);
    for fact in completed {
        assert!(fact["values"].as_array().unwrap().contains(first), "{fact}");
    }
    let ledger = &facts.of("ledger")["ledger"];
    assert_eq!((&ledger["execution_id"], &ledger["status"]), (first, &json!("completed")), "{ledger}");
    assert!(ledger["events"].as_array().unwrap().len() >= 4, "{ledger}");
}
