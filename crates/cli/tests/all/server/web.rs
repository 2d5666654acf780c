//! HTTP: who has access and who does not, in raw HTTP.

use crate::server::fixture::{OTHER_TOKEN, ServerFixture, ended, output_text};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::Duration;

struct Served {
    fixture: ServerFixture,
    server: Option<Child>,
    address: String,
    agent: String,
    operator: String,
}

struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Served {
    fn new() -> Served {
        let fixture = ServerFixture::new();
        let mut server = fixture.command(&["serve", "--json"]).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        let address = answer["http"].as_str().unwrap().trim_start_matches("http://").to_owned();
        let token = |name: &str| fs::read_to_string(fixture.data.join(name)).unwrap().trim().to_owned();
        let (agent, operator) = (token("agent.token"), token("operator.token"));
        Served { fixture, server: Some(server), address, agent, operator }
    }

    /// One request over its own connection.
    fn post(&self, path: &str, headers: &[(&str, &str)], message: &Value) -> Response {
        let body = message.to_string();
        let mut text = format!("POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Type: application/json\r\n");
        text += "Accept: application/json, text/event-stream\r\n";
        if !headers.iter().any(|(name, _)| *name == "Host") {
            text += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            text += &format!("{name}: {value}\r\n");
        }
        text += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Response { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn introduce(&self, token: &str) -> Response {
        self.post("/mcp", &[("Authorization", &format!("Bearer {token}"))], &introduction())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let stopped = self.fixture.rutter(&["stop"]);
        let server = ended(self.server.take().expect("it is awaited once"));
        if !std::thread::panicking() {
            assert!(server.status.success(), "{} {}", output_text(&stopped), output_text(&server));
        }
    }
}

fn introduction() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } })
}

fn call(tool: &str, arguments: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}

#[test]
fn access_needs_a_token_and_a_known_host_name() {
    let served = Served::new();
    let with = |name: &'static str, value: &str| {
        vec![("Authorization", format!("Bearer {}", served.agent)), (name, value.to_owned())]
    };
    let port = served.address.rsplit(':').next().unwrap();
    for (headers, status, code) in [
        (vec![], 401, "server.unauthorized"),
        (vec![("Authorization", "Bearer wrong".to_owned())], 401, "server.unauthorized"),
        (with("Host", "evil.example"), 403, "server.host"),
        (with("Origin", "https://evil.example"), 403, "server.origin"),
        (with("Origin", "null"), 403, "server.origin"),
    ] {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let response = served.post("/mcp", &headers, &introduction());
        assert_eq!(response.status, status, "{headers:?} {}", response.body);
        assert!(response.body.contains(code), "{headers:?} {}", response.body);
    }
    for headers in [with("Host", &format!("localhost:{port}")), with("Origin", &format!("http://127.0.0.1:{port}"))] {
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let response = served.post("/mcp", &headers, &introduction());
        assert_eq!(response.status, 200, "{headers:?} {}", response.body);
    }
}

#[test]
fn an_agent_cannot_clean_up_and_an_operator_can() {
    let served = Served::new();
    let mut answers = Vec::new();
    for token in [&served.agent, &served.operator] {
        let introduced = served.introduce(token);
        let session = session_of(&introduced);
        let headers = [("Authorization", format!("Bearer {token}")), ("Mcp-Session-Id", session)];
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let request = call("cleanup_history", json!({ "cleanup_type": "all_old", "dry_run": false }));
        answers.push(served.post("/mcp?toolset=admin", &headers, &request));
    }
    assert!(answers[0].body.contains("server.not_allowed"), "{}", answers[0].body);
    assert!(!answers[1].body.contains("server.not_allowed"), "{}", answers[1].body);
    assert!(answers[1].body.contains("items_deleted"), "{}", answers[1].body);
}

#[test]
fn a_session_belongs_to_its_token() {
    let served = Served::new();
    let session = session_of(&served.introduce(OTHER_TOKEN));
    let request = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    for (token, status) in [(served.agent.as_str(), 404), (OTHER_TOKEN, 200)] {
        let authorization = format!("Bearer {token}");
        let headers = [("Authorization", authorization.as_str()), ("Mcp-Session-Id", session.as_str())];
        let response = served.post("/mcp", &headers, &request);
        assert_eq!(response.status, status, "{}", response.body);
    }
}

fn session_of(response: &Response) -> String {
    assert_eq!(response.status, 200, "{}", response.body);
    let line = response.head.lines().find(|line| line.to_ascii_lowercase().starts_with("mcp-session-id:"));
    line.expect("a session header").split_once(':').unwrap().1.trim().to_owned()
}
