//! A server with the tools of a shop, which take real effects, counted in a file, and fail on demand.

use super::fixture::ServerFixture;
use super::mcp_client::McpClient;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct ShopFixture {
    pub deck: ServerFixture,
    folder: TempDir,
}

impl ShopFixture {
    /// The tools of the shop, and their faults: the next fault for each call, the last one stays.
    pub async fn with(faults: Value) -> ShopFixture {
        ShopFixture::beside(faults, "").await
    }

    /// The same, with more lines of configuration.
    pub async fn beside(faults: Value, config: &str) -> ShopFixture {
        let folder = tempfile::tempdir().unwrap();
        let text = json!({ "type": "object", "properties": { "what": { "type": "string" } } });
        let world = json!({
            "tools": {
                "shop.reserve": { "kind": "once", "input": text, "description": "Reserve goods in the store" },
                "shop.release": { "kind": "once", "description": "Release reserved goods" },
                "shop.charge": { "kind": "once", "description": "Charge a card" },
                "shop.invoice": { "kind": "once", "description": "Charge by invoice instead of a card" },
                "shop.refund": { "kind": "once", "description": "Give money back" },
                "shop.mail": { "kind": "once", "input": text, "description": "Send a letter" },
                "shop.slow": { "kind": "once", "takes_ms": 2000, "description": "Take a while" },
                "shop.look": { "kind": "read", "description": "Look at something" },
            },
            "faults": faults,
        });
        fs::write(folder.path().join("world.json"), world.to_string()).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/servers/effects.py");
        let script = script.canonicalize().unwrap();
        let mode = ["stdio", "--server", "shop", "--world", "world.json", "--log", "effects.log"];
        let arguments: Vec<String> = ["-I", "-S", script.to_str().unwrap()].map(str::to_owned).into();
        let arguments = json!([arguments, mode.map(str::to_owned).to_vec()].concat());
        let program = json!(python());
        let server = format!(
            "[servers.shop]\ncommand = {program}\nargs = {arguments}\ncwd = {}\ntrust = true\n{config}",
            json!(folder.path())
        );
        ShopFixture { deck: ServerFixture::with(&server).await, folder }
    }

    /// How often a tool took effect.
    pub fn effects(&self, tool: &str) -> usize {
        self.lines().iter().filter(|line| line["effect"] == tool).count()
    }

    /// The tools that took effect, in that order.
    pub fn history(&self) -> Vec<String> {
        let lines = self.lines();
        lines.iter().filter_map(|line| Some(line["effect"].as_str()?.to_owned())).collect()
    }

    /// With which arguments a tool took effect.
    pub fn arguments(&self, tool: &str) -> Vec<Value> {
        let lines = self.lines();
        lines.iter().filter(|line| line["effect"] == tool).map(|line| line["arguments"].clone()).collect()
    }

    /// Waits until a tool was called this many times, whatever the results.
    pub async fn called(&self, tool: &str, times: usize) {
        let deadline = Instant::now() + PATIENCE;
        while self.lines().iter().filter(|line| line["call"] == tool).count() < times {
            assert!(Instant::now() < deadline, "{tool} was not called {times} times");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.path().join("effects.log")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// Starts a plan and returns its state once it ended or waits.
pub async fn execute(client: &mut McpClient, plan: &Value) -> Value {
    client.call("execute_plan", json!({ "plan": plan, "wait_seconds": 45 })).await
}

/// Sends a control command, and asserts that it was not refused.
pub async fn steer(client: &mut McpClient, execution: &Value, mut arguments: Value) -> Value {
    arguments["execution_id"] = execution["execution_id"].clone();
    arguments["wait_seconds"] = json!(45);
    let answer = client.call("control", arguments).await;
    assert!(answer.get("error").is_none(), "{answer}");
    answer
}

/// Reserves, charges and sends a mail; the reservation can be released.
pub fn order(charge: &str) -> Value {
    json!({ "name": "order", "goal": "Sell one", "steps": [
        { "id": "reserve", "tool": "shop.reserve", "cancellable": "reversible",
          "compensation": { "tool": "shop.release", "parameters": {} } },
        { "id": "charge", "tool": charge, "depends_on": ["reserve"], "cancellable": "irreversible" },
        { "id": "mail", "tool": "shop.mail", "depends_on": ["charge"], "cancellable": "irreversible" } ] })
}

/// The interpreter itself: the one in the PATH may be a script that searches for it each time.
fn python() -> PathBuf {
    let named = std::env::var_os("RUTTER_PYTHON").unwrap_or_else(|| "python3".into());
    let output = Command::new(named).args(["-c", "import sys; print(sys.executable)"]).output();
    let output = output.expect("these tests need python3 in the PATH, or its path in RUTTER_PYTHON");
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim()).canonicalize().unwrap()
}
