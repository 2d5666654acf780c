//! The log of the process while a real plan is executed, as a program reads it.

use crate::fixture::RUTTER;
use serde_json::Value;
use std::fs;
use std::process::{Command, Stdio};

const PLAN: &str = r#"{ "name": "lines", "goal": "Say what happens", "on_failure": "cancel_all", "steps": [
  { "id": "keep", "tool": "memory.store", "cancellable": "irreversible",
    "parameters": { "text": "not for the log \u001b[2J" } },
  { "id": "look", "tool": "journal.plan", "depends_on": ["keep"], "parameters": { "id": "plan_none" } } ] }"#;

/// Executes the plan and returns the lines on stderr that are JSON, and those that are not.
fn run(format: &str) -> (Vec<Value>, Vec<String>) {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("plan.json"), PLAN).unwrap();
    let output = Command::new(RUTTER)
        .args(["run", "plan.json", "--json"])
        .current_dir(place.path())
        .env_clear()
        .env("HOME", place.path())
        .env("USER", "operator")
        .env("RUTTER_LISTEN", "127.0.0.1:0")
        .env("RUTTER_LOG", "rutter_engine=debug")
        .env("RUTTER_LOG_FORMAT", format)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    let (json, text): (Vec<&str>, Vec<&str>) = message.lines().partition(|line| line.starts_with('{'));
    let json = json.into_iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    (json, text.into_iter().map(str::to_owned).collect())
}

fn has(line: &Value, fields: &[&str]) -> bool {
    fields.iter().all(|field| line.get(field).is_some())
}

#[test]
fn json_lines_name_the_execution_step_and_attempt() {
    let (lines, _) = run("json");
    let named = |message: &str| lines.iter().filter(|line| line["message"] == message).collect::<Vec<_>>();
    assert!(lines.iter().all(|line| has(line, &["at", "level", "target", "message"])), "{lines:#?}");
    let attempts = named("attempt");
    assert_eq!(attempts.len(), 2, "{lines:#?}");
    let fields = ["execution", "step", "attempt", "side", "tool", "worker", "elapsed_ms", "outcome"];
    assert!(attempts.iter().all(|line| has(line, &fields)), "{attempts:#?}");
    assert_eq!((&attempts[0]["step"], &attempts[0]["tool"]), (&"keep".into(), &"memory.store".into()));
    assert!(attempts[0].get("error.code").is_none() && attempts[1].get("error.code").is_some(), "{attempts:#?}");
    let ended = named("ended");
    assert_eq!(ended.len(), 1, "{lines:#?}");
    let fields = ["execution", "plan", "worker", "epoch", "seq", "elapsed_ms", "outcome", "summary"];
    assert!(has(ended[0], &fields), "{ended:#?}");
    assert_eq!((&ended[0]["plan_name"], &ended[0]["status"]), (&"lines".into(), &"failed".into()), "{ended:#?}");
    assert!(ended[0]["plan"].as_str().unwrap().starts_with("plan_"), "{ended:#?}");
    assert!(ended[0]["cause"].as_str().unwrap().starts_with("look failed (not_found: "), "{ended:#?}");
    let summary = ended[0]["summary"].as_str().unwrap_or_default();
    assert!(summary.starts_with("failed") && summary.contains("look"), "the log says why it failed: {ended:#?}");
    let appends = named("append");
    assert!(!appends.is_empty(), "{lines:#?}");
    assert!(appends.iter().all(|line| has(line, &["execution", "worker", "epoch", "seq", "elapsed_ms"])));
    assert!(lines.iter().all(|line| !line.to_string().contains("not for the log")), "{lines:#?}");
}

#[test]
fn lines_for_people_stay_text() {
    let (json, text) = run("text");
    assert!(json.is_empty(), "{json:?}");
    assert!(text.iter().any(|line| line.contains("attempt") && line.contains("memory.store")), "{text:?}");
}
