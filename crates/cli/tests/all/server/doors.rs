//! A server with all surfaces: HTTP, MCP, the dashboard, and the command line.

use crate::server::fixture::{ServerFixture, ended, output_text, until};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::Duration;

/// A plan that completes, and cannot be undone.
pub const COMPLETING: &str = "completing.yaml";
/// One that waits for an approval.
pub const ASKING: &str = "asking.yaml";
/// One with a step that fails and waits for a decision.
pub const FAILING: &str = "failing.yaml";
/// One with a step that may have happened.
pub const DOUBTFUL: &str = "doubtful.yaml";
/// One with a step that fails and ends the execution.
pub const ENDING: &str = "ending.yaml";
/// One of whose items the second fails, as long as the tool is broken, and waits for a decision.
pub const ITEMS: &str = "items.yaml";
/// The same, where the failure ends the execution.
pub const ITEMS_ENDING: &str = "items-ending.yaml";

const MORE_SETTINGS: &str = r#"
[commands.gate.tools.fail]
description = "Fails"
argv = ["/bin/sh", "-c", "exit 3"]
result = "text"
safety = "read_only"
[commands.gate.tools.break]
description = "Fails, and may have taken effect"
argv = ["/bin/sh", "-c", "exit 3"]
result = "text"
[commands.gate.tools.pick]
description = "Fails for a broken word, until it is mended"
argv = ["/bin/sh", "-c", "test \"$0\" != broken || test -e mended || exit 3; echo \"$0\"", "{word}"]
input = { type = "object", required = ["word"], properties = { word = { type = "string" } } }
result = "text"
safety = "read_only"
[server]
changes_per_second = 0
reads_per_second = 0
"#;

const ITEM_STEPS: &str = r#"
name: items
goal: see how it ends
steps:
  - { id: a, tool: gate.pick, for_each: "['whole', 'broken']", parameters: { word: "{{ item }}" }, retry: { max_attempts: 1 } }
  - { id: b, tool: gate.pick, depends_on: [a], parameters: { word: after } }
"#;

const FORM: &str = "application/x-www-form-urlencoded";

/// A principal with some rights, at every surface.
pub struct Key {
    pub rights: &'static str,
    secret: String,
    /// `None` for those without access to MCP.
    mcp_session: Option<String>,
    cookie: String,
    csrf: String,
}

impl Key {
    pub fn bearer(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.secret)
    }
}

/// A server with all surfaces, and the program.
pub struct Served {
    pub fixture: ServerFixture,
    server: Option<Child>,
    pub address: String,
}

pub struct Response {
    pub status: u16,
    head: String,
    pub body: String,
}

impl Response {
    fn header(&self, name: &str) -> &str {
        let found = self.head.lines().filter_map(|line| line.split_once(':'));
        let found = found.into_iter().find(|(one, _)| one.eq_ignore_ascii_case(name));
        found.unwrap_or_else(|| panic!("no {name}: {} {}", self.head, self.body)).1.trim()
    }
}

impl Served {
    pub fn new() -> Served {
        let fixture = ServerFixture::new();
        let settings = fs::read_to_string(fixture.path("rutter.toml")).unwrap();
        fs::write(fixture.path("rutter.toml"), settings + MORE_SETTINGS).unwrap();
        for (file, tool) in [(COMPLETING, "ask"), (FAILING, "fail"), (DOUBTFUL, "break")] {
            let step = format!("{{ id: only, tool: gate.{tool}, retry: {{ max_attempts: 1 }} }}");
            fs::write(fixture.path(file), format!("name: one\ngoal: see how it ends\nsteps:\n  - {step}\n")).unwrap();
        }
        let failing = fs::read_to_string(fixture.path(FAILING)).unwrap();
        for (file, plan) in [(ENDING, failing + "on_failure: cancel_all\n"), (ITEMS, ITEM_STEPS.to_owned())] {
            fs::write(fixture.path(file), plan).unwrap();
        }
        fs::write(fixture.path(ITEMS_ENDING), format!("{ITEM_STEPS}on_failure: cancel_all\n")).unwrap();
        let mut server = fixture.command(&["serve", "--json"]).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        let address = answer["http"].as_str().unwrap().trim_start_matches("http://").to_owned();
        Served { fixture, server: Some(server), address }
    }

    /// Executes a plan as far as it goes.
    pub fn execution(&self, plan: &str, status: &str) -> String {
        let answer = self.fixture.json(&["run", plan, "--json"]);
        assert_eq!(answer["status"], status, "{answer}");
        answer["execution_id"].as_str().unwrap().to_owned()
    }

    /// The same over HTTP, without a process of its own.
    pub fn execution_over_http(&self, key: &Key, plan: &str, status: &str) -> String {
        let plan = fs::read_to_string(self.fixture.path(plan)).unwrap();
        let body = json!({ "plan": plan, "wait_seconds": 30 }).to_string();
        let response = self.post("/api/v1/executions", &key.bearer(), "application/json", &body);
        let answer: Value = serde_json::from_str(&response.body).unwrap();
        assert_eq!(answer["status"], status, "{answer}");
        answer["execution_id"].as_str().unwrap().to_owned()
    }

    /// What an execution has become once it has ended.
    pub fn ended(&self, key: &Key, execution: &str) -> Value {
        let mut view = Value::Null;
        until("the execution ends", || {
            view = self.get(key, &format!("/api/v1/executions/{execution}"));
            ["completed", "partial", "failed", "cancelled"].iter().any(|status| view["status"] == *status)
        });
        view
    }

    pub fn key(&self, rights: &'static str) -> Key {
        let name = rights.replace(',', "-");
        let made = self.fixture.json(&["key", "create", "--name", &name, "--scope", rights, "--json"]);
        let secret = made["secret"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned();
        let introduction = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": { "protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" } } });
        let bearer = format!("Authorization: Bearer {secret}\r\n");
        let introduced = self.post("/mcp", &bearer, "application/json", &introduction.to_string());
        let mcp_session = (introduced.status == 200).then(|| introduced.header("mcp-session-id").to_owned());
        let entered = self.post("/enter", "", FORM, &format!("secret={secret}"));
        let cookie = entered.header("set-cookie").split(';').next().unwrap().to_owned();
        let mut key = Key { rights, secret, mcp_session, cookie, csrf: String::new() };
        let page = self.page(&key, "/help");
        let csrf = page.split("name=\"csrf\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
        let csrf = csrf.unwrap_or_else(|| panic!("no token in {page}")).to_owned();
        key.csrf = csrf;
        key
    }

    /// The result of an MCP tool.
    pub fn tool(&self, key: &Key, tool: &str, arguments: Value) -> Value {
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": { "name": tool, "arguments": arguments } });
        let session = key.mcp_session.iter().map(|id| format!("Mcp-Session-Id: {id}\r\n"));
        let headers = key.bearer() + &session.collect::<String>();
        let response = self.post("/mcp", &headers, "application/json", &call.to_string());
        if response.status != 200 {
            return serde_json::from_str(&response.body).unwrap();
        }
        let message = message_of(&response.body);
        let text = message["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{message}"));
        serde_json::from_str(text).unwrap()
    }

    /// Sends a form as a page of the dashboard would.
    pub fn form(&self, key: &Key, path: &str, fields: &str) -> Response {
        let headers = format!("Cookie: {}\r\nOrigin: http://{}\r\n", key.cookie, self.address);
        self.post(path, &headers, FORM, &format!("csrf={}&{fields}", key.csrf))
    }

    pub fn page(&self, key: &Key, path: &str) -> String {
        let headers = format!("Cookie: {}\r\nAccept: text/html\r\n", key.cookie);
        let page = self.ask("GET", path, &headers, "");
        assert_eq!(page.status, 200, "{path}: {}", page.body);
        page.body
    }

    pub fn get(&self, key: &Key, path: &str) -> Value {
        let answer = self.ask("GET", path, &key.bearer(), "");
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        serde_json::from_str(&answer.body).unwrap()
    }

    pub fn post(&self, path: &str, headers: &str, kind: &str, body: &str) -> Response {
        let accept = "Accept: application/json, text/event-stream, text/html\r\n";
        self.ask("POST", path, &format!("{headers}{accept}Content-Type: {kind}\r\n"), body)
    }

    /// One request over its own connection.
    fn ask(&self, method: &str, path: &str, headers: &str, body: &str) -> Response {
        let (address, length) = (&self.address, body.len());
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let text = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Response { status, head: head.to_owned(), body: body.to_owned() }
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

/// The response in a body that is JSON, or a stream of events.
fn message_of(body: &str) -> Value {
    let lines = body.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
    let found = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut found = found.filter(|message| message.get("result").is_some());
    found.next().unwrap_or_else(|| panic!("no answer in {body}"))
}
