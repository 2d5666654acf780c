//! Plans of built-in tools only: their data is in the database, and in a backup of it.

use rutter_app::runtime::{Runtime, RuntimeOptions, ToolSource};
use rutter_core::id::TenantId;
use rutter_core::port::query::Pagination;
use rutter_core::port::register::RegisterKind;
use rutter_engine::SystemClock;
use rutter_tools::child::LauncherProgram;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

const PLAN: &str = r#"
name: housekeeping
steps:
  - { id: keep, tool: memory.store, parameters: { text: the harbour master is on watch, type: fact } }
  - { id: find, tool: memory.search, depends_on: [keep], parameters: { query: harbour } }
  - { id: remind, tool: timer.set, depends_on: [find], parameters: { name: tide, after: 1h, message: the tide turns } }
  - { id: due, tool: timer.list, depends_on: [remind] }
  - { id: tell, tool: notify.send, depends_on: [due], parameters: { channel: log, title: tide, message: soon } }
  - { id: past, tool: journal.executions, depends_on: [tell], parameters: { limit: 5 } }
  - { id: delivered, tool: notify.recent, depends_on: [past] }
  - id: entries
    tool: journal.entries
    depends_on: [delivered]
    parameters: { execution: "{{ steps.past.result.executions[0].id }}", limit: 50 }
"#;

#[test]
fn built_in_tools_store_find_remind_notify_and_query() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("plan.yaml"), PLAN).unwrap();
    let answer = run(directory.path(), &["run", "plan.yaml", "--json"]);
    assert_eq!(answer["status"], "completed", "{answer:#}");
    let result = |step: &str| {
        let steps = answer["steps"].as_array().unwrap();
        steps.iter().find(|found| found["id"] == step).unwrap()["result"].clone()
    };
    assert!(result("find").to_string().contains("harbour master"), "{}", result("find"));
    assert!(result("due").to_string().contains("tide"), "{}", result("due"));
    assert!(result("past").to_string().contains(answer["execution_id"].as_str().unwrap()));
    assert!(result("entries").to_string().contains("attempt_started"), "{}", result("entries"));
    assert!(result("delivered").to_string().contains("soon"), "{}", result("delivered"));

    // The next execution, in another process, finds the stored data.
    let again = run(directory.path(), &["run", "plan.yaml", "--json"]);
    assert_eq!(again["status"], "completed");
    assert_eq!(again["steps"][5]["result"]["executions"].as_array().map(Vec::len), Some(2));
}

const STORE: &str = r#"
name: store
steps:
  - { id: keep, tool: memory.store, parameters: { text: the gate code changed } }
  - { id: remind, tool: timer.set, parameters: { name: gate, after: 1h, message: close the gate, channel: hook } }
"#;

const FIND: &str = r#"
name: find
steps:
  - { id: memory, tool: memory.search, parameters: { query: gate } }
  - { id: timers, tool: timer.list }
"#;

#[tokio::test]
async fn a_restored_backup_has_memories_and_timers_and_the_timer_fires() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let settings = format!("[notify.hook]\nwebhook = {{ url = {url:?}, allow = [\"127.0.0.1\"] }}\n");
    fs::write(directory.join("rutter.toml"), &settings).unwrap();
    fs::write(directory.join("store.yaml"), STORE).unwrap();
    fs::write(directory.join("find.yaml"), FIND).unwrap();
    assert_eq!(run(directory, &["run", "store.yaml", "--json"])["status"], "completed");

    let backup = rutter(directory, &["db", "backup", "copy.db", "--dir", "data"]);
    assert!(backup.status.success(), "{backup:?}");
    fs::remove_dir_all(directory.join("data")).unwrap();
    let restore = ["db", "restore", "copy.db", "--dir", "restored", "--reason", "the disk broke"];
    let restore = rutter(directory, &restore);
    assert!(restore.status.success(), "{restore:?}");

    let found = rutter(directory, &["run", "find.yaml", "--json", "--dir", "restored"]);
    let found = json(&found);
    assert_eq!(found["status"], "completed", "{found:#}");
    assert_eq!(found["steps"][0]["result"]["memories"][0]["text"], "the gate code changed");
    assert_eq!(found["steps"][1]["result"]["timers"][0]["name"], "gate");
    assert_eq!(found["steps"][1]["result"]["timers"].as_array().map(Vec::len), Some(1));

    let body = fire(&directory.join("restored"), &settings, &listener).await;
    assert_eq!((&body["title"], &body["message"]), (&"gate".into(), &"close the gate".into()));
}

/// Runs the timers of a directory two hours later, until one was delivered; returns the delivered message.
async fn fire(data: &Path, settings: &str, listener: &TcpListener) -> Value {
    let later = SystemClock::system().now().plus(rutter_core::time::Millis::hours(2));
    let options = RuntimeOptions {
        tools: ToolSource::Config(toml_edit::de::from_str(settings).unwrap()),
        launcher: LauncherProgram { program: crate::fixture::RUTTER.into(), arguments: vec!["launch".into()] },
        clock: SystemClock::starting_at(later),
        ..RuntimeOptions::new(data)
    };
    let runtime = Runtime::open(options).await.unwrap();
    let (register, tenant) = (&runtime.app.register, TenantId::new("default"));
    let body = receive(listener).await;
    // The response has to reach the sender first.
    while register.count(&tenant, RegisterKind::Timer).await.unwrap() > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let delivered = register.list(&tenant, RegisterKind::Notification, Pagination::first(10)).await.unwrap();
    runtime.close().await;
    assert_eq!(delivered.items.len(), 1);
    assert_eq!(*delivered.items[0].value, body);
    body
}

/// Receives one POST and responds.
async fn receive(listener: &TcpListener) -> Value {
    let (stream, _) = listener.accept().await.unwrap();
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let answer = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream.shutdown().await.unwrap();
    serde_json::from_slice(&body).unwrap()
}

fn run(directory: &Path, arguments: &[&str]) -> Value {
    json(&rutter(directory, &[arguments, &["--dir", "data"]].concat()))
}

fn rutter(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(crate::fixture::RUTTER).args(arguments).current_dir(directory).output().unwrap()
}

fn json(output: &Output) -> Value {
    let answer = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&answer).unwrap_or_else(|error| {
        panic!("{error}: {answer}\n{}", String::from_utf8_lossy(&output.stderr));
    })
}
