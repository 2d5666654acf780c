//! The agent's connection: MCP over the pipes of `rutter mcp`, one request at a time. When the process is killed, the
//! connection ends in the middle of a request.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{ChildStdin, ChildStdout};

const ERA: &str = "2025-11-25";

#[derive(Debug)]
pub(super) struct AgentPipe {
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    number: u64,
}

/// The process is gone: whether it performed the last request is unknown.
#[derive(Debug)]
pub(super) struct ConnectionLost;

#[derive(Clone, Debug)]
pub(super) enum ToolReply {
    Done(Value),
    Refused { code: String, message: String },
}

impl AgentPipe {
    pub(super) fn new(stdin: ChildStdin, stdout: ChildStdout) -> AgentPipe {
        AgentPipe { stdin, lines: BufReader::new(stdout).lines(), number: 0 }
    }

    /// Initializes the session under the agent's name.
    pub(super) fn introduce(&mut self, name: &str) -> Result<(), ConnectionLost> {
        let client = json!({ "name": name, "version": "1" });
        self.ask("initialize", json!({ "protocolVersion": ERA, "capabilities": {}, "clientInfo": client }))?;
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
    }

    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<ToolReply, ConnectionLost> {
        let answer = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))?;
        let result = &answer["result"];
        if result["isError"] == false || result.get("structuredContent").is_some_and(|_| result["isError"] != true) {
            return Ok(ToolReply::Done(result["structuredContent"].clone()));
        }
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        let error = serde_json::from_str::<Value>(text).map(|answer| answer["error"].clone()).unwrap_or_default();
        let code = error["code"].as_str().unwrap_or("protocol").to_owned();
        Ok(ToolReply::Refused { code, message: answer.to_string() })
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, ConnectionLost> {
        self.number += 1;
        let id = self.number;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let line = self.lines.next().and_then(Result::ok).ok_or(ConnectionLost)?;
            // The last line of a killed process may be cut off.
            let message: Value = serde_json::from_str(&line).map_err(|_| ConnectionLost)?;
            if message["id"] == id {
                return Ok(message);
            }
        }
    }

    fn say(&mut self, message: &Value) -> Result<(), ConnectionLost> {
        writeln!(self.stdin, "{message}").map_err(|_| ConnectionLost)
    }
}
