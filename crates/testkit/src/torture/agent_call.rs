//! A call that the agent makes itself: a request to the server `bay`, which the program calls too. Its header tells the
//! calls of the two apart.

use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Shorter than some answers take.
const ANSWER_MAX: Duration = Duration::from_millis(700);
/// How long it listens for an answer that it has given up.
const LATE_MAX: Duration = Duration::from_millis(400);

/// What an agent is to call next, as the program said.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DueCall {
    pub(super) tool: String,
    /// A step, or an item of one.
    pub(super) part: String,
    pub(super) parameters: Value,
}

/// What the agent knows about its call.
#[derive(Clone, Debug)]
pub(super) enum AgentCallOutcome {
    Done(Value),
    /// It had no effect.
    Refused(String),
    /// It may have happened.
    Unknown(String),
}

/// An answer that may still come.
#[derive(Debug)]
pub(super) struct AwaitedAnswer(TcpStream);

impl AwaitedAnswer {
    /// The result, if it comes now.
    pub(super) fn late(mut self) -> Option<Value> {
        self.0.set_read_timeout(Some(LATE_MAX)).ok()?;
        match read(&response_of(&mut self.0).ok()?) {
            AgentCallOutcome::Done(result) => Some(result),
            AgentCallOutcome::Refused(_) | AgentCallOutcome::Unknown(_) => None,
        }
    }
}

impl DueCall {
    /// Reads `call TOOL for step PART with PARAMETERS` and `call TOOL with PARAMETERS to undo step PART`.
    pub(super) fn read(text: &str) -> Option<DueCall> {
        let (_, text) = text.split_once("call ")?;
        let (head, tail) = text.split_once(" with ")?;
        let mut values = serde_json::Deserializer::from_str(tail).into_iter::<Value>();
        let parameters = values.next()?.ok()?;
        let rest = &tail[values.byte_offset()..];
        let (tool, part) = match head.split_once(" for step ") {
            Some(forward) => forward,
            None => (head, rest.strip_prefix(" to undo step ")?.split_once(',')?.0),
        };
        Some(DueCall { tool: tool.to_owned(), part: part.to_owned(), parameters })
    }

    /// The tool, if the agent has it too.
    pub(super) fn own_tool(&self) -> Option<&str> {
        self.tool.strip_prefix("bay.")
    }

    /// Makes the call. `who` marks it in the tools' log; a tool with keys takes it once.
    pub(super) fn make(&self, port: &str, who: &str) -> (AgentCallOutcome, Option<AwaitedAnswer>) {
        let key = format!("agent-{}-{}", self.parameters["tag"], self.part).replace('"', "");
        let tool = self.own_tool().unwrap_or_default();
        let body = self.parameters.to_string();
        let head = [
            format!("POST /{tool} HTTP/1.1"),
            format!("Host: 127.0.0.1:{port}"),
            format!("X-Life: {who}"),
            format!("Idempotency-Key: {key}"),
            format!("Content-Length: {}", body.len()),
            "Connection: close".to_owned(),
        ];
        let request = format!("{}\r\n\r\n{body}", head.join("\r\n"));
        let Ok(mut stream) = TcpStream::connect(format!("127.0.0.1:{port}")) else {
            return (AgentCallOutcome::Refused("not reached".to_owned()), None);
        };
        let sent = stream.set_read_timeout(Some(ANSWER_MAX)).and_then(|()| stream.write_all(request.as_bytes()));
        match sent.and_then(|()| response_of(&mut stream)) {
            Ok(response) => (read(&response), None),
            Err(error) => (AgentCallOutcome::Unknown(error.to_string()), Some(AwaitedAnswer(stream))),
        }
    }

    /// Whether it may be made again without knowing what became of it.
    pub(super) fn is_repeatable(&self) -> bool {
        !self.tool.ends_with("once")
    }
}

fn response_of(stream: &mut TcpStream) -> std::io::Result<String> {
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

fn read(response: &str) -> AgentCallOutcome {
    let status = response.split(' ').nth(1).unwrap_or_default();
    let body = response.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok());
    match (status, body) {
        ("200", Some(result)) => AgentCallOutcome::Done(result),
        ("", _) | ("200", None) => AgentCallOutcome::Unknown("the connection was dropped".to_owned()),
        (status, _) => AgentCallOutcome::Refused(format!("status {status}")),
    }
}
