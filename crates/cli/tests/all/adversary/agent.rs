//! The agent's connection: every tool call over pipes or HTTP, in either era, and its own answers to forms.

use crate::clients::fixture::ClientFixture;
use crate::hostile::wire::{Era, Line, PATIENCE, Pipes, Reply, exchange_if_reached, with_headers};
use rutter_testkit::chance::SeededRandom;
use serde_json::{Map, Value, json};
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Pipes,
    Http,
}

enum Connection {
    Pipes(Pipes),
    Http(Line),
}

pub struct Agent {
    connection: Connection,
    era: Era,
    /// The agent's token, for the HTTP API.
    api: Line,
    /// A key instead of the token that every agent has.
    key: Option<String>,
    number: u64,
}

/// A form that the agent answered itself, in the name of its user.
pub struct AnsweredForm {
    pub message: String,
    pub is_yes: bool,
}

impl Agent {
    pub fn open(fixture: &ClientFixture, transport: Transport, era: Era, key: Option<String>) -> Agent {
        let api = line(fixture, key.as_deref());
        let connection = match transport {
            Transport::Pipes => Connection::Pipes(Pipes::open_with(fixture, &["--toolset", "default,journal,admin"])),
            Transport::Http => Connection::Http(api.clone()),
        };
        let mut agent = Agent { connection, era, api, key, number: 0 };
        if era == Era::Legacy {
            agent.introduce();
        }
        agent
    }

    /// Finds the server again after a restart. Over pipes, the program at their other end does.
    pub fn reconnect(&mut self, fixture: &ClientFixture) {
        self.api = line(fixture, self.key.as_deref());
        if let Connection::Http(line) = &mut self.connection {
            *line = self.api.clone();
            if self.era == Era::Legacy {
                self.introduce();
            }
        }
    }

    fn introduce(&mut self) {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "agent", "version": "1" } });
        let message = json!({ "jsonrpc": "2.0", "id": "begin", "method": "initialize", "params": params });
        let initialized = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        match &mut self.connection {
            Connection::Pipes(pipes) => {
                pipes.send(message.to_string().as_bytes());
                pipes.answer(&json!("begin"));
                pipes.send(initialized);
            }
            Connection::Http(line) => {
                let reply = line.post(Era::Legacy, message.to_string().as_bytes()).unwrap();
                line.session = Some(reply.session.unwrap_or_else(|| panic!("no session: {}", reply.body)));
                line.post(Era::Legacy, initialized);
            }
        }
    }

    /// Calls a tool; forms that the client is asked are answered by the agent. Returns the answer or the error.
    pub fn call(&mut self, random: &mut SeededRandom, tool: &str, arguments: &Value) -> (Value, Vec<AnsweredForm>) {
        let mut forms = Vec::new();
        let mut params = json!({ "name": tool, "arguments": arguments });
        let mut result = self.request(random, "tools/call", params.clone(), &mut forms);
        // In the newer era forms are the result; the call is repeated with the answers.
        if let Some(asked) = result["inputRequests"].as_object() {
            let mut answers = Map::new();
            for (key, request) in asked {
                let (form, answer) = answer_form(random, &request["params"]);
                forms.push(form);
                answers.insert(key.clone(), answer);
            }
            params["requestState"] = result["requestState"].clone();
            params["inputResponses"] = Value::Object(answers);
            result = self.request(random, "tools/call", params, &mut forms);
        }
        (content(&result), forms)
    }

    /// Any request. The result, or the error of the protocol.
    pub fn request(
        &mut self,
        random: &mut SeededRandom,
        method: &str,
        params: Value,
        forms: &mut Vec<AnsweredForm>,
    ) -> Value {
        self.number += 1;
        let id = json!(self.number);
        let mut message = self.era.request(id.clone(), method, params);
        if self.era == Era::Modern {
            pretend(random, &mut message["params"]["_meta"]);
        }
        let bytes = message.to_string();
        let answer = match &mut self.connection {
            Connection::Http(line) => {
                let lost = || json!({ "error": { "lost": bytes } });
                line.post_if_reached(self.era, bytes.as_bytes()).map_or_else(lost, |reply| {
                    let odd = || json!({ "error": { "status": reply.status, "body": reply.body } });
                    reply.answer(&id).unwrap_or_else(odd)
                })
            }
            Connection::Pipes(pipes) => {
                pipes.send(bytes.as_bytes());
                let deadline = Instant::now() + 3 * PATIENCE;
                loop {
                    let message = pipes.hear(deadline).unwrap_or_else(|| panic!("no answer to {bytes}"));
                    if message["method"] == "elicitation/create" {
                        let (form, answer) = answer_form(random, &message["params"]);
                        forms.push(form);
                        let reply = json!({ "jsonrpc": "2.0", "id": message["id"], "result": answer });
                        pipes.send(reply.to_string().as_bytes());
                    } else if message["id"] == id && message.get("method").is_none() {
                        break message;
                    }
                }
            }
        };
        match answer.get("result") {
            Some(result) => result.clone(),
            None => json!({ "error": answer["error"] }),
        }
    }

    /// A request to the HTTP API with the agent's token.
    pub fn http(&self, method: &str, path: &str, body: Option<&Value>) -> Option<Reply> {
        http(&self.api, method, path, body)
    }
}

fn line(fixture: &ClientFixture, key: Option<&str>) -> Line {
    let line = Line::to(fixture.served());
    Line { token: key.map_or(line.token, str::to_owned), ..line }
}

/// `None` if the server is gone, or was before it had answered.
pub fn http(line: &Line, method: &str, path: &str, body: Option<&Value>) -> Option<Reply> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let headers = [
        ("Host", line.address.as_str()),
        ("Authorization", &format!("Bearer {}", line.token)),
        ("Content-Type", "application/json"),
        ("Connection", "close"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let bytes = with_headers(&format!("{method} {path} HTTP/1.1"), &headers, body.as_bytes());
    let reply = exchange_if_reached(&line.address, &bytes)?;
    let is_whole = reply.status == 204 || serde_json::from_str::<Value>(&reply.body).is_ok();
    is_whole.then_some(reply)
}

/// What a modern client says about itself with every request.
fn pretend(random: &mut SeededRandom, meta: &mut Value) {
    let name = "io.modelcontextprotocol/clientInfo";
    match random.below(8) {
        0 => drop(meta.as_object_mut().map(|fields| fields.shift_remove(name))),
        1 => meta[name] = json!({ "name": "operator", "version": "1" }),
        2 => meta[name] = json!({ "name": "", "version": "1" }),
        _ => meta[name] = json!({ "name": "agent", "version": "1" }),
    }
    let capabilities = match random.below(10) {
        0 => json!({ "elicitation": { "form": {} }, "extensions": { "io.modelcontextprotocol/tasks": {} } }),
        1 => json!({}),
        _ => json!({ "elicitation": { "form": {} } }),
    };
    meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
}

/// The agent answers for its user: mostly yes to everything.
fn answer_form(random: &mut SeededRandom, params: &Value) -> (AnsweredForm, Value) {
    let message = params["message"].as_str().unwrap_or_default().to_owned();
    if random.percent(25) {
        let action = *random.pick(&["decline", "cancel"]);
        return (AnsweredForm { message, is_yes: false }, json!({ "action": action }));
    }
    let is_yes = random.percent(80);
    let content = json!({ "approve": is_yes, "reason": "the user said so", "happened": false, "evidence": "seen",
        "accept": is_yes, "answer": "retry" });
    (AnsweredForm { message, is_yes }, json!({ "action": "accept", "content": content }))
}

/// The structured answer of a tool, the error in its text, or the result as it is.
fn content(result: &Value) -> Value {
    let text = || serde_json::from_str(result["content"][0]["text"].as_str()?).ok();
    result.get("structuredContent").cloned().or_else(text).unwrap_or_else(|| result.clone())
}
