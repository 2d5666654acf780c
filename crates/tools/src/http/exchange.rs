//! One call: the request, the redirects it may follow, the response, and the outcome.

use super::request::{self, SlotValues};
use super::tool::HttpTool;
use super::{HttpServer, answer, meaning};
use crate::config::http::OutcomeVerdict;
use crate::connector::{ConnectorRequest, ConnectorState};
use crate::guard::{self, AddressRefusal};
use crate::registry::SecretResolver;
use reqwest::header::LOCATION;
use reqwest::{Method, Response};
use rutter_core::limits::PAYLOAD_BYTES_MAX;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use serde_json::{Map, Value};
use std::sync::Arc;

/// How much of an error response is read for quoting.
const QUOTED_BYTES_MAX: usize = 64 << 10;
const QUOTED_CHARS_MAX: usize = 300;
/// The fields in which APIs put their error messages, the most specific first.
const WORDS: [&str; 5] = ["detail", "message", "error_description", "error", "title"];

pub(super) struct HttpExchange<'a> {
    pub(super) server: &'a HttpServer,
    pub(super) tool: &'a HttpTool,
    pub(super) request: &'a ConnectorRequest,
}

/// A response, and whether a 303 redirect led to it: then the effect may stand whatever it says.
struct ExchangeResponse {
    response: Response,
    seen_other: bool,
}

impl HttpExchange<'_> {
    pub(super) async fn carry_out(&self) -> CallOutcome {
        let request = match self.build().await {
            Ok(request) => request,
            Err(failure) => return CallOutcome::NotDone(failure),
        };
        let ExchangeResponse { response, seen_other } = match self.send(request).await {
            Ok(answered) => answered,
            Err(outcome) => return outcome,
        };
        self.server.note(ConnectorState::Ready);
        match self.interpret(response).await {
            // The first response said that the result is elsewhere; that it is missing there proves nothing.
            CallOutcome::NotDone(failure) if seen_other => CallOutcome::Maybe(failure),
            outcome => outcome,
        }
    }

    async fn build(&self) -> Result<reqwest::Request, ToolFailure> {
        let none = Map::new();
        let parameters = match &*self.request.parameters {
            Value::Object(parameters) => parameters,
            Value::Null => &none,
            _ => {
                return Err(ToolFailure::new(FailureCategory::InvalidInput, "expected parameters as an object"));
            }
        };
        let filling = SlotValues { parameters, key: &self.request.key, vault: &self.server.vault };
        let built = request::build(self.tool, &self.server.base, &filling).await;
        built.map_err(|failure| self.server.vault.redactor().failure(failure))
    }

    async fn send(&self, mut request: reqwest::Request) -> Result<ExchangeResponse, CallOutcome> {
        let mut hops = self.tool.redirects;
        let mut seen_other = false;
        loop {
            let next = request.try_clone().filter(|_| hops > 0);
            self.server.guard.check(request.url()).map_err(|refused| self.refused(&refused))?;
            let sent = self.server.client.execute(request).await;
            let response = sent.map_err(|error| self.failed(&error))?;
            let Some(next) = next.and_then(|next| follow(&response, next)) else {
                return Ok(ExchangeResponse { response, seen_other });
            };
            seen_other |= next.method() == Method::GET && !self.tool.method.reads();
            hops -= 1;
            request = next;
        }
    }

    /// Turns a response into an outcome. Its status counts even when the rest of it is lost.
    async fn interpret(&self, mut response: Response) -> CallOutcome {
        let status = response.status().as_u16();
        let retry_after = meaning::retry_after(response.headers(), self.request.now);
        let (verdict, category) = meaning::of(status, retry_after.is_some(), &self.tool.outcome);
        if verdict == OutcomeVerdict::Done {
            return match self.result(&mut response).await {
                Ok(result) => CallOutcome::Done { result: Arc::new(result), cost_micros: 0 },
                Err(unusable) => {
                    let message = format!("{} answered {status}, but {unusable}", self.tool.shape);
                    CallOutcome::Maybe(self.failure(FailureCategory::Protocol, &message))
                }
            };
        }
        let mut message = format!("{} answered {}", self.tool.shape, response.status());
        if let Some(quoted) = self.quoted(&mut response).await {
            message.push_str(": ");
            message.push_str(&quoted);
        }
        let failure = ToolFailure { retry_after, ..ToolFailure::new(category, message) };
        if verdict == OutcomeVerdict::NotDone { CallOutcome::NotDone(failure) } else { CallOutcome::Maybe(failure) }
    }

    async fn result(&self, response: &mut Response) -> Result<Value, answer::UnusableResponse> {
        let content_type = answer::content_type(response);
        let status = response.status().as_u16();
        let bytes = answer::read(response, PAYLOAD_BYTES_MAX).await?;
        answer::result(self.tool, status, &content_type, &bytes)
    }

    /// The server's error message, for people. Redacted before it is cut: half of a secret would not be recognized.
    async fn quoted(&self, response: &mut Response) -> Option<String> {
        let content_type = answer::content_type(response);
        let bytes = answer::read(response, QUOTED_BYTES_MAX).await.ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let words = answer::is_json(&content_type).then(|| words(&text)).flatten().unwrap_or(text);
        let redactor = self.server.vault.redactor();
        let plain: String = redactor.text(&words).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let plain = plain.trim();
        if plain.is_empty() {
            return None;
        }
        let mut quoted: String = plain.chars().take(QUOTED_CHARS_MAX).collect();
        if quoted.len() < plain.len() {
            quoted.push('…');
        }
        Some(quoted)
    }

    /// The outcome without a response. Before a connection was ready nothing can have been sent, whatever the reason.
    fn failed(&self, error: &reqwest::Error) -> CallOutcome {
        let connected = guard::connected();
        if let Some(refused) = guard::refused(error)
            && !connected
        {
            return self.refused(refused);
        }
        let reason = innermost(error);
        if connected {
            let message = format!("{}: the connection broke before an answer: {reason}", self.tool.shape);
            return CallOutcome::Maybe(self.failure(FailureCategory::Unavailable, &message));
        }
        let late = if error.is_timeout() { "no connection in time" } else { "no connection" };
        let failure = self.failure(FailureCategory::Unavailable, &format!("{}: {late}: {reason}", self.tool.shape));
        self.server.note(ConnectorState::Down { reason: failure.message.clone(), stderr: Vec::new() });
        CallOutcome::NotDone(failure)
    }

    fn refused(&self, refused: &AddressRefusal) -> CallOutcome {
        let category = match refused {
            AddressRefusal::Unresolved { .. } | AddressRefusal::NoAddress { .. } => FailureCategory::Unavailable,
            _ => FailureCategory::Unauthorized,
        };
        let failure = self.failure(category, &refused.to_string());
        self.server.note(ConnectorState::Down { reason: failure.message.clone(), stderr: Vec::new() });
        if guard::connected() { CallOutcome::Maybe(failure) } else { CallOutcome::NotDone(failure) }
    }

    fn failure(&self, category: FailureCategory, message: &str) -> ToolFailure {
        ToolFailure::new(category, self.server.vault.redactor().text(message))
    }
}

/// The request a redirect asks for, unless it leads to another origin or would repeat an unsafe request.
fn follow(response: &Response, mut next: reqwest::Request) -> Option<reqwest::Request> {
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    let reads = matches!(*next.method(), Method::GET | Method::HEAD);
    match response.status().as_u16() {
        307 | 308 => {}
        301..=303 if reads => {}
        303 => {
            *next.method_mut() = Method::GET;
            *next.body_mut() = None;
            next.headers_mut().remove(reqwest::header::CONTENT_TYPE);
        }
        _ => return None,
    }
    let url = response.url().join(location).ok()?;
    let here = response.url().origin();
    if url.origin() != here {
        return None;
    }
    *next.url_mut() = url;
    Some(next)
}

/// The message of a JSON error, if it is in one of the usual fields.
fn words(text: &str) -> Option<String> {
    let value: Value = serde_json::from_str(text).ok()?;
    let inner = value.get("error").filter(|error| error.is_object()).unwrap_or(&value);
    WORDS.iter().find_map(|key| inner.get(key)?.as_str()).map(str::to_owned)
}

/// The innermost cause; the outer ones repeat the URL, which may hold secrets.
fn innermost(error: &reqwest::Error) -> String {
    let mut innermost: Option<&dyn std::error::Error> = None;
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        innermost = Some(error);
        source = error.source();
    }
    innermost.map_or_else(|| "no reason given".to_owned(), ToString::to_string)
}
