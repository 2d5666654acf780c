//! The proxy: passes messages between the agent's pipes and the server's socket.
//!
//! When the server ends, a request that was not answered by then gets an error, which says that its outcome is unknown.
//! With the next request the proxy connects to the server that runs by then, or starts one, and initializes it as the
//! client did. A client that asks nothing starts nothing: the operator stopped the server.

use crate::daemon::ServerStarter;
use crate::socket::SocketRequest;
use rutter_app::limits::MESSAGE_BYTES_MAX;
use rutter_mcp::lines::{InputLine, LineReader};
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// Responses of the server may contain resources, and are trusted to end.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// A server that keeps ending without an answer is not restarted for ever.
const RESTARTS_MAX: u32 = 20;

pub(super) async fn run(starter: ServerStarter, greeting: SocketRequest) -> anyhow::Result<()> {
    let mut front = McpProxy::new(starter, greeting);
    let mut client = LineReader::new(BufReader::new(tokio::io::stdin()), MESSAGE_BYTES_MAX);
    let too_long = format!("expected a message of at most {MESSAGE_BYTES_MAX} bytes");
    let mut server = Some(front.connect().await?);
    loop {
        tokio::select! {
            line = client.next() => match line? {
                InputLine::Text(line) => {
                    if server.is_none() && front.needs_server(&line) {
                        server = Some(front.again().await?);
                    }
                    if front.pass(server.as_mut(), line).await.is_err() {
                        server = front.lost().await?;
                    }
                }
                InputLine::TooLong(id) => front.refuse(id, -32600, &too_long).await?,
                InputLine::End => return front.finish(server).await,
            },
            line = next_line(server.as_mut()) => match line {
                Ok(InputLine::Text(line)) => front.pass_back(line).await?,
                Ok(InputLine::TooLong(_)) => {}
                Ok(InputLine::End) | Err(_) => server = front.lost().await?,
            },
        }
    }
}

/// The next line of the server; none ever without one.
async fn next_line(server: Option<&mut ServerConnection>) -> std::io::Result<InputLine> {
    match server {
        Some(server) => server.reader.next().await,
        None => std::future::pending().await,
    }
}

struct ServerConnection {
    reader: LineReader<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

struct McpProxy {
    starter: ServerStarter,
    socket_request: SocketRequest,
    stdout: tokio::io::Stdout,
    /// The client's initialization messages, to repeat them to another server.
    introduction: Vec<Vec<u8>>,
    /// Requests without an answer, by their id.
    open: BTreeMap<String, Value>,
    /// The repeated initialization, whose response the client must not get.
    pending_request: Option<String>,
    restarts: u32,
}

impl McpProxy {
    fn new(starter: ServerStarter, greeting: SocketRequest) -> McpProxy {
        let stdout = tokio::io::stdout();
        let (introduction, open) = (Vec::new(), BTreeMap::new());
        McpProxy { starter, socket_request: greeting, stdout, introduction, open, pending_request: None, restarts: 0 }
    }

    async fn connect(&mut self) -> anyhow::Result<ServerConnection> {
        let starter = self.starter.clone();
        let stream = tokio::task::spawn_blocking(move || starter.connect()).await??;
        stream.set_nonblocking(true)?;
        let (reader, mut writer) = UnixStream::from_std(stream)?.into_split();
        writer.write_all(&line(serde_json::to_vec(&self.socket_request)?)).await?;
        Ok(ServerConnection { reader: LineReader::new(BufReader::new(reader), ANSWER_BYTES_MAX), writer })
    }

    /// The server is gone: sends an error for every open request, and connects to another server if one still waits.
    async fn lost(&mut self) -> anyhow::Result<Option<ServerConnection>> {
        let introduced = self.introduced();
        for (key, id) in std::mem::take(&mut self.open) {
            if introduced.as_ref() == Some(&key) {
                // The client has no response to this one yet, so it gets the next server's.
                self.open.insert(key, id);
                continue;
            }
            let message = "engine.closing: the server ended before it replied. The request may have taken effect: \
                           check with `status`, or repeat it with the same request_id";
            self.tell(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32603, "message": message } })).await?;
        }
        match self.open.is_empty() {
            true => Ok(None),
            false => Ok(Some(self.again().await?)),
        }
    }

    /// The id of the client's initialization.
    fn introduced(&self) -> Option<String> {
        Some(MessageEnvelope::read(self.introduction.first()?)?.id?.to_string())
    }

    /// Whether a message is worth a server: a request is. A notification, or the answer to a server that is gone, is not.
    fn needs_server(&mut self, text: &[u8]) -> bool {
        let Some(MessageEnvelope { id: Some(_), method: Some(method) }) = MessageEnvelope::read(text) else {
            return false;
        };
        if method == "initialize" {
            // This one takes the place of an earlier one, and is passed on itself.
            self.introduction.clear();
        }
        true
    }

    /// Connects to another server, and initializes it as the client did.
    async fn again(&mut self) -> anyhow::Result<ServerConnection> {
        self.restarts += 1;
        anyhow::ensure!(self.restarts <= RESTARTS_MAX, "the server ended {RESTARTS_MAX} times");
        let introduced = self.introduced();
        let mut server = self.connect().await?;
        for statement in &self.introduction {
            server.writer.write_all(&line(statement.clone())).await?;
        }
        self.pending_request = introduced.filter(|key| !self.open.contains_key(key));
        Ok(server)
    }

    /// From the client to the server, if there is one.
    async fn pass(&mut self, server: Option<&mut ServerConnection>, text: Vec<u8>) -> std::io::Result<()> {
        if text.iter().all(u8::is_ascii_whitespace) {
            return Ok(());
        }
        if let Some(MessageEnvelope { id, method: Some(method) }) = MessageEnvelope::read(&text) {
            if method == "initialize" {
                self.introduction = vec![text.clone()];
            } else if method == "notifications/initialized" {
                self.introduction.push(text.clone());
            }
            if let (Some(id), true) = (id, server.is_some()) {
                self.open.insert(id.to_string(), id);
            }
        }
        match server {
            Some(server) => server.writer.write_all(&line(text)).await,
            None => Ok(()),
        }
    }

    /// From the server to the client.
    async fn pass_back(&mut self, text: Vec<u8>) -> std::io::Result<()> {
        if let Some(MessageEnvelope { id: Some(id), method: None }) = MessageEnvelope::read(&text) {
            let key = id.to_string();
            self.open.remove(&key);
            if self.pending_request.as_ref() == Some(&key) {
                self.pending_request = None;
                return Ok(());
            }
            self.restarts = 0;
        }
        self.stdout.write_all(&line(text)).await?;
        self.stdout.flush().await
    }

    /// The client has closed its end: passes on the server's remaining messages.
    async fn finish(mut self, server: Option<ServerConnection>) -> anyhow::Result<()> {
        let Some(mut server) = server else { return Ok(()) };
        server.writer.shutdown().await?;
        while let Ok(InputLine::Text(line)) = server.reader.next().await {
            self.pass_back(line).await?;
        }
        Ok(())
    }

    async fn refuse(&mut self, id: Option<Value>, code: i32, message: &str) -> std::io::Result<()> {
        self.tell(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })).await
    }

    async fn tell(&mut self, message: &Value) -> std::io::Result<()> {
        self.stdout.write_all(&line(message.to_string().into_bytes())).await?;
        self.stdout.flush().await
    }
}

fn line(mut text: Vec<u8>) -> Vec<u8> {
    text.push(b'\n');
    text
}

/// The fields the proxy reads; the rest is between client and server.
#[derive(Debug, Deserialize)]
struct MessageEnvelope<'a> {
    id: Option<Value>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
}

impl MessageEnvelope<'_> {
    fn read(line: &[u8]) -> Option<MessageEnvelope<'_>> {
        serde_json::from_slice(line).ok()
    }
}
