//! Raw access to the server over both transports: bytes into a pipe, bytes into a socket, and the responses.

use crate::clients::fixture::{ClientFixture, Served};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long an expected response may take.
pub const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

impl Era {
    pub const ALL: [Era; 2] = [Era::Legacy, Era::Modern];

    /// A request as a client of this era writes it.
    pub fn request(self, id: Value, method: &str, mut params: Value) -> Value {
        if self == Era::Modern {
            params["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": { "name": "hostile", "version": "1" },
            });
        }
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }
}

pub fn introduction(id: Value) -> Value {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "hostile", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params })
}

/// `rutter mcp`, with its output as it is written.
pub struct Pipes {
    process: Child,
    stdin: ChildStdin,
    heard: Receiver<Value>,
}

impl Pipes {
    /// Connects; clients of the older era have to initialize by [`Pipes::begin`].
    pub fn open(fixture: &ClientFixture) -> Pipes {
        Pipes::open_with(fixture, &[])
    }

    /// The same with more options.
    pub fn open_with(fixture: &ClientFixture, options: &[&str]) -> Pipes {
        let words = fixture.front();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(options).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut process = command.spawn().unwrap();
        let (stdin, stdout) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let (say, heard) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let line = line.unwrap();
                let message = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?} is not JSON"));
                if say.send(message).is_err() {
                    return;
                }
            }
        });
        Pipes { process, stdin, heard }
    }

    pub fn begin(&mut self, era: Era) {
        let id = json!("begin");
        match era {
            Era::Legacy => {
                self.send(introduction(id.clone()).to_string().as_bytes());
                self.answer(&id);
                self.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
            }
            Era::Modern => drop(self.ask(era, id, "tools/list", json!({}))),
        }
    }

    pub fn send(&mut self, line: &[u8]) {
        self.stdin.write_all(line).unwrap();
        self.stdin.write_all(b"\n").unwrap();
        self.stdin.flush().unwrap();
    }

    pub fn ask(&mut self, era: Era, id: Value, method: &str, params: Value) -> Value {
        self.send(era.request(id.clone(), method, params).to_string().as_bytes());
        self.answer(&id)
    }

    /// The next response with this id; others are skipped.
    pub fn answer(&mut self, id: &Value) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let message = self.hear(deadline).unwrap_or_else(|| panic!("no answer to {id}"));
            if message["id"] == *id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// The next message, whatever it is.
    pub fn hear(&mut self, deadline: Instant) -> Option<Value> {
        match self.heard.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => panic!("rutter mcp has ended"),
        }
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A response over HTTP.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub session: Option<String>,
    pub body: String,
}

impl Reply {
    /// The messages in it, whether they came as a stream or alone.
    pub fn messages(&self) -> Vec<Value> {
        let events = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let alone = serde_json::from_str(&self.body).ok();
        events.filter_map(|data| serde_json::from_str(data).ok()).chain(alone).collect()
    }

    pub fn answer(&self, id: &Value) -> Option<Value> {
        self.messages().into_iter().find(|message| message["id"] == *id && message.get("method").is_none())
    }
}

/// Sends bytes over their own connection. `None` if it was closed without a response.
pub fn exchange(address: &str, bytes: &[u8], hang_up: bool) -> Option<Reply> {
    exchange_over(TcpStream::connect(address).unwrap(), bytes, hang_up)
}

/// The same with a server that may be gone.
pub fn exchange_if_reached(address: &str, bytes: &[u8]) -> Option<Reply> {
    exchange_over(TcpStream::connect(address).ok()?, bytes, false)
}

fn exchange_over(mut stream: TcpStream, bytes: &[u8], hang_up: bool) -> Option<Reply> {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    // The server may close while we still write.
    let _ = stream.write_all(bytes);
    if hang_up {
        let _ = stream.shutdown(std::net::Shutdown::Write);
    }
    let mut answer = Vec::new();
    let mut piece = [0; 64 << 10];
    let deadline = Instant::now() + PATIENCE;
    loop {
        // A stream that is only kept alive is not a response.
        assert!(Instant::now() < deadline, "no end of the answer to {}", beginning(bytes));
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("no answer to {}: {error}", beginning(bytes)),
        }
    }
    read(&answer)
}

fn beginning(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned()
}

fn read(answer: &[u8]) -> Option<Reply> {
    let end = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let header = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim().to_owned())
    };
    let body = &answer[end + 4..];
    let body = match header("transfer-encoding") {
        Some(_) => unchunked(body),
        None => body.to_vec(),
    };
    Some(Reply { status, session: header("mcp-session-id"), body: String::from_utf8_lossy(&body).into_owned() })
}

fn unchunked(body: &[u8]) -> Vec<u8> {
    let mut reader = BufReader::new(body);
    let mut all = Vec::new();
    loop {
        let mut size = String::new();
        reader.read_line(&mut size).unwrap();
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { return all };
        let mut chunk = vec![0; size + 2];
        if size == 0 || reader.read_exact(&mut chunk).is_err() {
            return all;
        }
        all.extend_from_slice(&chunk[..size]);
    }
}

/// How to connect over HTTP.
#[derive(Clone, Debug)]
pub struct Line {
    pub address: String,
    pub token: String,
    pub session: Option<String>,
}

impl Line {
    pub fn open(fixture: &mut ClientFixture) -> Line {
        Line::to(fixture.serve())
    }

    /// A line to a server that runs.
    pub fn to(served: &Served) -> Line {
        let address = served.url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        let token = std::fs::read_to_string(&served.token_file).unwrap().trim().to_owned();
        Line { address, token, session: None }
    }

    /// A session, as the older era has them.
    pub fn begin(&mut self) {
        let reply = self.post(Era::Legacy, introduction(json!("begin")).to_string().as_bytes()).unwrap();
        self.session = Some(reply.session.unwrap_or_else(|| panic!("no session: {}", reply.body)));
        let initialized = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(self.post(Era::Legacy, initialized).unwrap().status, 202);
    }

    /// Headers as a well-behaved client would send them with this body.
    pub fn headers(&self, era: Era, body: &[u8]) -> Vec<(String, String)> {
        let mut headers = vec![
            ("Host".to_owned(), self.address.clone()),
            ("Authorization".to_owned(), format!("Bearer {}", self.token)),
            ("Content-Type".to_owned(), "application/json".to_owned()),
            ("Accept".to_owned(), "application/json, text/event-stream".to_owned()),
            ("Connection".to_owned(), "close".to_owned()),
        ];
        let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        match (era, &self.session) {
            (Era::Legacy, Some(session)) => {
                add("Mcp-Session-Id", session);
                add("MCP-Protocol-Version", "2025-11-25");
            }
            (Era::Legacy, None) => {}
            (Era::Modern, _) => {
                add("MCP-Protocol-Version", "2026-07-28");
                let message: Value = serde_json::from_slice(body).unwrap_or_default();
                let text = |value: &Value| value.as_str().filter(|text| is_header(text)).map(str::to_owned);
                if let Some(method) = text(&message["method"]) {
                    add("Mcp-Method", &method);
                }
                if let Some(name) = text(&message["params"]["name"]).or(text(&message["params"]["uri"])) {
                    add("Mcp-Name", &name);
                }
            }
        }
        headers
    }

    pub fn post(&self, era: Era, body: &[u8]) -> Option<Reply> {
        exchange(&self.address, &with_headers("POST /mcp HTTP/1.1", &self.headers(era, body), body), false)
    }

    /// The same to a server that may be gone.
    pub fn post_if_reached(&self, era: Era, body: &[u8]) -> Option<Reply> {
        exchange_if_reached(&self.address, &with_headers("POST /mcp HTTP/1.1", &self.headers(era, body), body))
    }

    pub fn ask(&self, era: Era, id: Value, method: &str, params: Value) -> Value {
        let reply = self.post(era, era.request(id.clone(), method, params).to_string().as_bytes()).unwrap();
        reply.answer(&id).unwrap_or_else(|| panic!("{reply:?}"))
    }
}

fn is_header(text: &str) -> bool {
    text.len() < 1000 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// A whole request with its length.
pub fn with_headers(first: &str, headers: &[(String, String)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{first}\r\n").into_bytes();
    for (name, value) in headers {
        bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    bytes.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
    bytes.extend_from_slice(body);
    bytes
}
