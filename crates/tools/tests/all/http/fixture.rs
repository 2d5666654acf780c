//! A server on a real socket that counts what it did and misbehaves on demand, and calls of it.

use crate::fixture::SilentReporter;
pub use crate::fixture::{SOON, done, maybe, not_done, until};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, PartId, StepId, TenantId};
use rutter_core::journal::event::CallSide;
use rutter_core::port::tools::ToolCallId;
use rutter_core::time::Timestamp;
use rutter_core::tool::CallOutcome;
use rutter_tools::config::Config;
use rutter_tools::connector::{Connector, ConnectorRequest};
use rutter_tools::guard::SystemResolver;
use rutter_tools::http::HttpServer;
use rutter_tools::secret::SecretVault;
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// What one connection does.
pub enum Act {
    /// Close without reading anything.
    CloseUnread,
    /// Read the request and carry it out, then send these bytes and close.
    Send(Vec<u8>),
    /// Carry it out and send these bytes one by one, each after a pause, for ever.
    Drip(Vec<u8>, Duration),
    /// Carry it out, send these bytes, and then nothing until the other side closes.
    Stall(Vec<u8>),
}

#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    pub target: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

type Script = dyn Fn(Option<&Seen>) -> Act + Send + Sync;

pub struct HttpFixture {
    pub address: SocketAddr,
    inner: Arc<Inner>,
    accepting: tokio::task::JoinHandle<()>,
}

struct Inner {
    seen: Mutex<Vec<Seen>>,
    connections: AtomicUsize,
    hung_up: AtomicUsize,
    script: Box<Script>,
}

impl HttpFixture {
    /// The script is asked first with nothing, where it may close the connection unread, and then with the request.
    pub async fn start(script: impl Fn(Option<&Seen>) -> Act + Send + Sync + 'static) -> HttpFixture {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let inner = Arc::new(Inner {
            seen: Mutex::default(),
            connections: AtomicUsize::new(0),
            hung_up: AtomicUsize::new(0),
            script: Box::new(script),
        });
        let shared = Arc::clone(&inner);
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                shared.connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(Arc::clone(&shared).serve(stream));
            }
        });
        HttpFixture { address, inner, accepting }
    }

    pub async fn answering(bytes: impl Into<Vec<u8>>) -> HttpFixture {
        let bytes = bytes.into();
        HttpFixture::start(move |_| Act::Send(bytes.clone())).await
    }

    /// How many requests took effect.
    pub fn effects(&self) -> usize {
        self.inner.seen.lock().unwrap().len()
    }

    pub fn connections(&self) -> usize {
        self.inner.connections.load(Ordering::SeqCst)
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.inner.seen.lock().unwrap().clone()
    }

    pub fn last(&self) -> Seen {
        self.seen().pop().unwrap()
    }

    pub async fn until_effects(&self, count: usize) {
        until(|| self.effects() >= count).await;
    }

    /// Waits until the other side has closed a connection that stalled.
    pub async fn until_hung_up(&self) {
        until(|| self.inner.hung_up.load(Ordering::SeqCst) > 0).await;
    }

    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for HttpFixture {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Inner {
    async fn serve(self: Arc<Self>, mut stream: TcpStream) {
        if let Act::CloseUnread = (self.script)(None) {
            return;
        }
        let Some(seen) = read_request(&mut stream).await else { return };
        self.seen.lock().unwrap().push(seen.clone());
        match (self.script)(Some(&seen)) {
            Act::CloseUnread => {}
            Act::Send(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.shutdown().await;
                // Until the other side has read it: closing with something unread would cut it off.
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
            Act::Drip(bytes, pause) => {
                for byte in bytes.iter().cycle() {
                    if stream.write_all(&[*byte]).await.is_err() {
                        break;
                    }
                    tokio::time::sleep(pause).await;
                }
                self.hung_up.fetch_add(1, Ordering::SeqCst);
            }
            Act::Stall(bytes) => {
                let _ = stream.write_all(&bytes).await;
                let _ = stream.read_to_end(&mut Vec::new()).await;
                self.hung_up.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(':').unwrap())
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect();
    let mut seen = Seen { method, target, headers, body: bytes.split_off(end + 4) };
    let length: usize = seen.header("content-length").map_or(0, |length| length.parse().unwrap());
    while seen.body.len() < length {
        if stream.read_buf(&mut seen.body).await.ok()? == 0 {
            return None;
        }
    }
    Some(seen)
}

pub fn answer(status: &str, headers: &[&str], body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut bytes = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len()).into_bytes();
    for header in headers {
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(b"\r\n");
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

pub fn json_answer(status: &str, body: &Value) -> Vec<u8> {
    answer(status, &["content-type: application/json"], body.to_string())
}

/// Reads `[http.shop]` and what belongs to it; `BASE` stands for the address of the fixture.
pub fn configured(base: &str, text: &str) -> HttpServer {
    try_configured(base, text).unwrap()
}

pub fn try_configured(base: &str, text: &str) -> Result<HttpServer, String> {
    let config = config(base, text)?;
    let vault = Arc::new(SecretVault::new(config.secrets.clone(), Arc::new(|_| None)));
    with_vault(&config, vault)
}

pub fn config(base: &str, text: &str) -> Result<Config, String> {
    let text = text.replace("BASE", base);
    toml_edit::de::from_str(&text).map_err(|error| error.to_string())
}

pub fn with_vault(config: &Config, vault: Arc<SecretVault>) -> Result<HttpServer, String> {
    let server = HttpServer::new("shop", &config.http["shop"], Arc::new(SystemResolver), vault);
    server.map_err(|error| error.to_string())
}

/// One tool, `order`, which posts its parameters.
pub fn shop(fixture: &HttpFixture) -> HttpServer {
    configured(
        &fixture.base(),
        r#"
        [http.shop]
        base = "BASE"
        allow = ["127.0.0.1"]
        [http.shop.tools.order]
        method = "POST"
        path = "/orders"
        "#,
    )
}

pub fn request(tool: &str, parameters: Value) -> ConnectorRequest {
    let identity = ExecutionIdentity { tenant: TenantId::new("t"), execution: ExecutionId::new("exec_1") };
    ConnectorRequest {
        id: ToolCallId { identity, part: PartId::whole(StepId::new("a")), side: CallSide::Do, attempt: 1 },
        tool: tool.to_owned(),
        parameters: Arc::new(parameters),
        key: "key-1".to_owned(),
        timeout: SOON,
        now: Timestamp(784_111_777_000),
        cancel: CancellationToken::new(),
        connection: None,
        declares_output: false,
        ticket: None,
        continuation: None,
        reporter: Arc::new(SilentReporter),
    }
}

pub async fn call(server: &HttpServer, tool: &str, parameters: Value) -> CallOutcome {
    server.call(request(tool, parameters)).await
}
