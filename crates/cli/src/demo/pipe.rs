//! An MCP client of a child process: one message per line, one request at a time.

use super::processes::DemoProcesses;
use anyhow::{Context, bail};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

const ANSWER_MAX: Duration = Duration::from_secs(60);
const ERA: &str = "2025-11-25";

#[derive(Debug)]
pub(crate) struct McpPipeClient {
    processes: DemoProcesses,
    pid: u32,
    stdin: ChildStdin,
    received: Receiver<String>,
    number: u64,
}

impl McpPipeClient {
    /// Starts the child and initializes the session.
    pub(crate) fn open(mut command: Command, processes: &DemoProcesses, name: &str) -> anyhow::Result<McpPipeClient> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
        let (sender, heard) = channel();
        // Ends with the child, after its last line.
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            for line in lines {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut pipe = McpPipeClient {
            processes: processes.clone(),
            pid: processes.add(child),
            stdin,
            received: heard,
            number: 0,
        };
        let client = json!({ "name": name, "version": env!("CARGO_PKG_VERSION") });
        pipe.ask("initialize", json!({ "protocolVersion": ERA, "capabilities": {}, "clientInfo": client }))?;
        pipe.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(pipe)
    }

    /// Calls a tool. A refusal is a result too, with `error` in it.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<Value> {
        let result = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))?;
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        serde_json::from_str(text).with_context(|| format!("{tool} answered {result}"))
    }

    /// Kills the child, as if the client had crashed.
    pub(crate) fn die(self) -> anyhow::Result<()> {
        Ok(self.processes.kill(self.pid)?)
    }

    fn ask(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        self.number += 1;
        let number = self.number;
        self.say(&json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params }))?;
        loop {
            let line = self.received.recv_timeout(ANSWER_MAX);
            let line = line.with_context(|| format!("{method} was not answered"))?;
            let mut message: Value = serde_json::from_str(&line)?;
            if message["id"] != number {
                continue;
            }
            if let Some(error) = message.get("error") {
                bail!("{method} was answered with {error}");
            }
            return Ok(message["result"].take());
        }
    }

    fn say(&mut self, message: &Value) -> anyhow::Result<()> {
        Ok(self.stdin.write_all(format!("{message}\n").as_bytes())?)
    }
}
