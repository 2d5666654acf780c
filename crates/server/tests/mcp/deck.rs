//! A server with a database in a temporary directory, and clients that speak raw JSON-RPC to it.

use crate::ground::Ground;
use rmcp::ServiceExt;
use rutter_core::id::TenantId;
use rutter_server::desk::{Desk, Parts, Settings};
use rutter_server::guest::{Guest, Toolset};
use rutter_server::mcp::Surface;
use rutter_server::mcp::pipes::Pipes;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

pub struct Deck {
    pub desk: Arc<Desk>,
    pub folder: TempDir,
}

/// How a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

impl Deck {
    /// With the built-in tools alone.
    pub async fn new() -> Deck {
        Deck::with("").await
    }

    /// With the tools that some lines of rutter.toml name.
    pub async fn with(config: &str) -> Deck {
        Deck::open(tempfile::tempdir().unwrap(), config).await
    }

    /// Ends this process's part and begins again with what is on disk.
    pub async fn restarted(self) -> Deck {
        self.restarted_with("").await
    }

    /// The same, with other tools.
    pub async fn restarted_with(self, config: &str) -> Deck {
        let Deck { desk, folder } = self;
        desk.engine.close().await;
        // Connections let go of the database a little after their clients.
        for _ in 0..2_000 {
            if Arc::strong_count(&desk) == 1 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        drop(desk);
        Deck::open(folder, config).await
    }

    async fn open(folder: TempDir, config: &str) -> Deck {
        let Ground { clock, store, tooling, engine, post } = Ground::lay(folder.path(), config).await;
        let settings = Settings { ask_at_client: true };
        let desk = Desk::open(Parts {
            engine,
            store,
            tools: tooling.registry,
            post,
            bell: tooling.bells,
            collector: None,
            clock,
            tokens: Vec::new(),
            settings,
            seal: [7; 32],
        })
        .await
        .unwrap();
        Deck { desk, folder }
    }

    /// A client of the default toolset that has introduced itself, and cannot ask its user anything.
    pub async fn client(&self, era: Era) -> Client {
        self.client_with(era, &[Toolset::Default], json!({})).await
    }

    pub async fn client_with(&self, era: Era, toolsets: &[Toolset], capabilities: Value) -> Client {
        let tenant = TenantId::new("default");
        let guest = Guest::local(tenant, "operator", toolsets.iter().copied().collect());
        self.client_of(era, guest, capabilities).await
    }

    pub async fn client_of(&self, era: Era, guest: Guest, capabilities: Value) -> Client {
        let (near, far) = tokio::io::duplex(1 << 20);
        let surface = Surface::of(Arc::clone(&self.desk), guest);
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(far);
            if let Ok(service) = surface.serve(Pipes::new(BufReader::new(reader), writer)).await {
                let _ = service.waiting().await;
            }
        });
        let (reader, writer) = tokio::io::split(near);
        let reader = BufReader::new(reader);
        let mut client = Client {
            reader,
            writer,
            era,
            capabilities,
            number: 0,
            notices: Vec::new(),
            early: VecDeque::new(),
        };
        if era == Era::Legacy {
            let introduction = json!({ "protocolVersion": "2025-11-25", "capabilities": client.capabilities,
                "clientInfo": { "name": "tester", "version": "1" } });
            client.ask("initialize", introduction).await.unwrap();
            client.notify("notifications/initialized", json!({})).await;
        }
        client
    }
}

/// Speaks JSON-RPC by hand, so that tests see what is really on the wire.
pub struct Client {
    reader: BufReader<ReadHalf<DuplexStream>>,
    writer: WriteHalf<DuplexStream>,
    era: Era,
    capabilities: Value,
    number: u64,
    /// Notifications heard so far.
    pub notices: Vec<Value>,
    early: VecDeque<Value>,
}

impl Client {
    /// The result, or the error of the protocol.
    pub async fn ask(&mut self, method: &str, params: Value) -> Result<Value, Value> {
        let id = self.send(method, params).await;
        self.answer(id).await
    }

    /// What a tool answers: its structured content, or `{"error": …}` as the text of a refusal says.
    pub async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await.unwrap();
        let text = result["content"][0]["text"].as_str().unwrap_or("null");
        let text: Value = serde_json::from_str(text).unwrap();
        if result["isError"] == true {
            assert!(result.get("structuredContent").is_none(), "errors are text: {result}");
            return text;
        }
        assert_eq!(result["structuredContent"], text, "both say the same");
        text
    }

    pub async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.number += 1;
        if self.era == Era::Modern {
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

    /// Answers a request of the server's.
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

    /// The first notification of a kind that was not taken yet.
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

    /// The next request of the server's, such as an elicitation.
    pub async fn asked(&mut self) -> Value {
        loop {
            let message = match self.early.pop_front() {
                Some(message) => message,
                None => self.hear().await,
            };
            match (message.get("id"), message.get("method")) {
                (Some(_), Some(_)) => return message,
                (None, _) => self.notices.push(message),
                _ => panic!("an answer to nothing: {message}"),
            }
        }
    }

    pub async fn hear(&mut self) -> Value {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line);
        let read = tokio::time::timeout(Duration::from_secs(60), read).await;
        assert!(read.expect("the server says something").unwrap() > 0, "the server went away");
        serde_json::from_str(&line).unwrap()
    }

    pub async fn write(&mut self, message: &Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
}
