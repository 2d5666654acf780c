//! An MCP client that speaks JSON-RPC by hand, so that tests see the actual messages.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

/// The protocol version that a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEra {
    Legacy,
    Modern,
}

/// A client over an in-memory connection.
#[derive(Debug)]
pub struct McpClient {
    pub(super) reader: BufReader<ReadHalf<DuplexStream>>,
    pub(super) writer: WriteHalf<DuplexStream>,
    pub(super) era: ClientEra,
    pub(super) capabilities: Value,
    pub(super) number: u64,
    /// Notifications received so far.
    pub notices: Vec<Value>,
    pub(super) early: VecDeque<Value>,
}

impl McpClient {
    /// Sends a request and returns the result, or the protocol error.
    pub async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// Calls a tool and returns its structured content, or `{"error": …}` from the text of a refusal.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await.unwrap();
        let text = result["content"][0]["text"].as_str().unwrap_or("null");
        let text: Value = serde_json::from_str(text).unwrap();
        if result["isError"] == true {
            assert!(result.get("structuredContent").is_none(), "errors are text: {result}");
            return text;
        }
        assert_eq!(result["structuredContent"], text, "both have the same content");
        text
    }

    pub async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.number += 1;
        if self.era == ClientEra::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
                "io.modelcontextprotocol/clientInfo": { "name": "tester", "version": "1" },
                "progressToken": self.number,
            });
        } else if params.is_object() {
            params["_meta"]["progressToken"] = json!(self.number);
        }
        let id = self.number;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        id
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Answers a request of the server.
    pub async fn reply(&mut self, id: &Value, result: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "result": result })).await;
    }

    pub async fn answer(&mut self, id: u64) -> Result<Value, Value> {
        loop {
            let message = self.hear().await;
            if message["id"] == id && message.get("method").is_none() {
                return match message.get("error") {
                    Some(error) => Err(error.clone()),
                    None => Ok(message["result"].clone()),
                };
            }
            match message.get("id") {
                Some(_) => self.early.push_back(message),
                None => self.notices.push(message),
            }
        }
    }

    /// The next notification of a kind.
    pub async fn notice(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.notices.iter().position(|notice| notice["method"] == method) {
                return self.notices.remove(at);
            }
            let message = self.hear().await;
            match message.get("id") {
                Some(_) => self.early.push_back(message),
                None => self.notices.push(message),
            }
        }
    }

    /// The next request of the server, such as an elicitation.
    pub async fn asked(&mut self) -> Value {
        loop {
            let message = match self.early.pop_front() {
                Some(message) => message,
                None => self.hear().await,
            };
            match (message.get("id"), message.get("method")) {
                (Some(_), Some(_)) => return message,
                (None, _) => self.notices.push(message),
                _ => panic!("an unexpected response: {message}"),
            }
        }
    }

    pub async fn hear(&mut self) -> Value {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line);
        let read = tokio::time::timeout(Duration::from_secs(60), read).await;
        assert!(read.expect("the server sends something").unwrap() > 0, "the server closed the connection");
        serde_json::from_str(&line).unwrap()
    }

    pub async fn write(&mut self, message: &Value) {
        self.write_line(&message.to_string()).await;
    }

    /// Writes a line exactly as it is.
    pub async fn write_line(&mut self, line: &str) {
        self.writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }
}
