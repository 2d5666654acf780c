//! Sends webhooks: one request to an external server, through the guard.
//!
//! The name is resolved once, every address is checked, the connection goes to a checked one. Nothing is taken from the
//! environment, no redirect is followed, and nothing is retried here.

use crate::guard::{self, AddressGuard, AddressRefusal, Resolver};
use crate::http::meaning;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response};
use rutter_core::port::outbox::{HttpSender, OutgoingRequest, SendOutcome};
use rutter_core::port::tools::PortFuture;
use rutter_core::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The largest body.
pub const BODY_BYTES_MAX: usize = 256 << 10;
/// How much of a response is read: enough to see what went wrong.
const ANSWER_BYTES_MAX: usize = 2 << 10;
const ANSWER_CHARS_MAX: usize = 300;
const URL_CHARS_MAX: usize = 2_048;

pub struct GuardedHttpSender {
    guard: AddressGuard,
    client: Client,
}

impl GuardedHttpSender {
    /// `allow` lists the internal hosts, addresses and networks that may be reached, also without TLS.
    pub fn new(allow: &[String], resolver: Arc<dyn Resolver>) -> Result<GuardedHttpSender, AddressRefusal> {
        let guard = AddressGuard::new(allow, resolver)?;
        let client = guard::client(&guard, CONNECT_TIMEOUT).map_err(|error| AddressRefusal::Url(error.to_string()))?;
        Ok(GuardedHttpSender { guard, client })
    }

    async fn send_once(&self, delivery: OutgoingRequest) -> SendOutcome {
        if delivery.body.len() > BODY_BYTES_MAX {
            return refused(&format!("the body is larger than {BODY_BYTES_MAX} bytes"));
        }
        let url = match self.guard.url(&delivery.url) {
            Ok(url) => url,
            Err(error) => return refused(&error),
        };
        let Some(headers) = headers(&delivery.headers) else { return refused(&"a header cannot be sent") };
        let timeout = Duration::from_millis(delivery.timeout.0);
        let request = self.client.post(url).headers(headers).timeout(timeout).body(delivery.body);
        match request.send().await {
            Ok(response) => answered(response).await,
            Err(error) => match guard::refused(&error) {
                // A name that cannot be resolved now may be resolved later.
                Some(why @ (AddressRefusal::Unresolved { .. } | AddressRefusal::NoAddress { .. })) => {
                    SendOutcome::Failed { why: why.to_string() }
                }
                Some(why) => refused(why),
                None => SendOutcome::Failed { why: why(&error) },
            },
        }
    }
}

impl HttpSender for GuardedHttpSender {
    fn check(&self, url: &str) -> Result<(), String> {
        if url.chars().count() > URL_CHARS_MAX {
            return Err(format!("a URL has at most {URL_CHARS_MAX} characters"));
        }
        self.guard.url(url).map(|_| ()).map_err(|refused| refused.to_string())
    }

    fn send(&self, delivery: OutgoingRequest) -> PortFuture<'_, SendOutcome> {
        Box::pin(guard::while_connecting(self.send_once(delivery)))
    }
}

impl std::fmt::Debug for GuardedHttpSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuardedHttpSender").field("guard", &self.guard).finish_non_exhaustive()
    }
}

fn refused(why: &dyn std::fmt::Display) -> SendOutcome {
    SendOutcome::Refused { why: why.to_string() }
}

fn headers(pairs: &[(String, String)]) -> Option<HeaderMap> {
    let pair = |(name, value): &(String, String)| {
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?))
    };
    pairs.iter().map(pair).collect()
}

/// The status counts even when the rest of the answer is lost.
async fn answered(mut response: Response) -> SendOutcome {
    let status = response.status().as_u16();
    // A date cannot be relied on without the server's own clock beside it.
    let retry_after = meaning::retry_after(response.headers(), Timestamp(i64::MAX));
    let mut bytes = Vec::new();
    while bytes.len() < ANSWER_BYTES_MAX {
        let Ok(Some(chunk)) = response.chunk().await else { break };
        bytes.extend_from_slice(&chunk[..chunk.len().min(ANSWER_BYTES_MAX - bytes.len())]);
    }
    let text = String::from_utf8_lossy(&bytes);
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = text.trim().chars().take(ANSWER_CHARS_MAX).collect();
    SendOutcome::Answered { status, retry_after, text }
}

/// The innermost cause; the outer ones repeat the URL, which may hold a secret.
fn why(error: &reqwest::Error) -> String {
    let mut innermost: Option<&dyn std::error::Error> = None;
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        innermost = Some(error);
        source = error.source();
    }
    let reason = innermost.map_or_else(|| "no reason given".to_owned(), ToString::to_string);
    match (guard::connected(), error.is_timeout()) {
        (false, true) => format!("no connection in time: {reason}"),
        (false, false) => format!("no connection: {reason}"),
        (true, true) => format!("no answer in time: {reason}"),
        (true, false) => format!("the connection broke before an answer: {reason}"),
    }
}
