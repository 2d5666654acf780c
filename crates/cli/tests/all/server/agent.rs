//! An agent: `rutter mcp` as a child, spoken to in raw JSON-RPC, with all its output.

use crate::server::fixture::{PATIENCE, ServerFixture};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Instant;

pub struct Agent {
    pub child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    /// Everything it wrote to stdout.
    pub heard: Vec<String>,
    last: u64,
}

impl Agent {
    pub fn start(fixture: &ServerFixture, words: &[&str]) -> Agent {
        Agent::start_with(fixture, words, &[])
    }

    pub fn start_with(fixture: &ServerFixture, words: &[&str], variables: &[(&str, &str)]) -> Agent {
        let mut command = fixture.command(&[&["mcp"], words].concat());
        command.stdin(Stdio::piped()).envs(variables.iter().copied());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Agent { child, stdin, lines, heard: Vec::new(), last: 0 }
    }

    /// Initializes the session, and returns the server's information.
    pub fn introduce(&mut self) -> Value {
        let about = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } });
        let answer = self.request("initialize", about);
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
        answer["result"].clone()
    }

    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(id)
    }

    /// Calls a tool and returns its structured answer.
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert!(answer["result"]["isError"] != true && answer["error"].is_null(), "{answer:#}");
        answer["result"]["structuredContent"].clone()
    }

    /// Sends a request without waiting.
    pub fn ask(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let id = self.last;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        id
    }

    pub fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub fn answer(&mut self, id: u64) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("no response to {id}; received {:?}", self.heard));
            let message: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("not JSON: {line}"));
            self.heard.push(line);
            if message["id"] == id {
                return message;
            }
        }
    }

    /// Ends as clients do, by closing its input; returns all its output.
    pub fn leave(mut self) -> Vec<String> {
        drop(self.stdin.take());
        crate::server::fixture::until("the agent's process ends", || self.child.try_wait().unwrap().is_some());
        let rest: Vec<String> = self.lines.iter().collect();
        self.heard.extend(rest);
        std::mem::take(&mut self.heard)
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
