//! A plan of built-in tools alone: nothing is configured, and what they do is on the disk.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const PLAN: &str = r#"
name: housekeeping
steps:
  - { id: keep, tool: memory.store, parameters: { text: the harbour master is on watch, type: fact } }
  - { id: find, tool: memory.search, depends_on: [keep], parameters: { query: harbour } }
  - { id: remind, tool: timer.set, depends_on: [find], parameters: { name: tide, after: 1h, message: the tide turns } }
  - { id: due, tool: timer.list, depends_on: [remind] }
  - { id: tell, tool: notify.send, depends_on: [due], parameters: { channel: log, title: tide, message: soon } }
  - { id: past, tool: journal.executions, depends_on: [tell], parameters: { limit: 5 } }
  - id: entries
    tool: journal.entries
    depends_on: [past]
    parameters: { execution: "{{ steps.past.result.executions[0].id }}", limit: 50 }
"#;

#[test]
fn built_in_tools_keep_find_remind_tell_and_look_back() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("plan.yaml"), PLAN).unwrap();
    let told = run(directory.path(), &["run", "plan.yaml", "--json"]);
    assert_eq!(told["status"], "completed", "{told:#}");
    let result = |step: &str| {
        let steps = told["steps"].as_array().unwrap();
        steps.iter().find(|found| found["id"] == step).unwrap()["result"].clone()
    };
    assert!(result("find").to_string().contains("harbour master"), "{}", result("find"));
    assert!(result("due").to_string().contains("tide"), "{}", result("due"));
    assert!(result("past").to_string().contains(told["execution_id"].as_str().unwrap()));
    assert!(result("entries").to_string().contains("attempt_started"), "{}", result("entries"));
    let log = find(directory.path(), "notifications.log");
    assert!(log.contains("soon"), "{log}");

    // What was kept is there for the next execution, in another process.
    let again = run(directory.path(), &["run", "plan.yaml", "--json"]);
    assert_eq!(again["status"], "completed");
    assert_eq!(again["steps"][5]["result"]["executions"].as_array().map(Vec::len), Some(2));
}

fn run(directory: &Path, arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_rutter"))
        .args(arguments)
        .arg("--dir")
        .arg(directory.join("data"))
        .current_dir(directory)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&told).unwrap_or_else(|error| {
        panic!("{error}: {told}\n{}", String::from_utf8_lossy(&output.stderr));
    })
}

/// The text of a file with that name, somewhere beneath.
fn find(directory: &Path, name: &str) -> String {
    let mut open = vec![directory.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.file_name().is_some_and(|found| found == name) {
                return fs::read_to_string(path).unwrap();
            }
        }
    }
    panic!("there is no {name}");
}
