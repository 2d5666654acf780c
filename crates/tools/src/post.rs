//! Sends one request to somebody else's server, past the guard: how events leave for webhooks.
//!
//! The name is resolved once, every address is checked, the connection goes to a checked one. Nothing is taken from the
//! environment, no redirect is followed, and nothing is sent twice by itself.

use crate::guard::{self, Guard, Refused, Resolver};
use crate::http::meaning;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response};
use rutter_core::port::outbox::{Parcel, Post, Receipt};
use rutter_core::port::tools::Reply;
use rutter_core::time::Timestamp;
use std::sync::Arc;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// What may be sent at once.
pub const BODY_BYTES_MAX: usize = 256 << 10;
/// What is read of an answer; nobody needs more to see what went wrong.
const ANSWER_BYTES_MAX: usize = 2 << 10;
const ANSWER_CHARS_MAX: usize = 300;
const URL_CHARS_MAX: usize = 2_048;

pub struct Carrier {
    guard: Guard,
    client: Client,
}

impl Carrier {
    /// `allow` lists the hosts, addresses and networks inside that may be sent to, also without TLS.
    pub fn new(allow: &[String], resolver: Arc<dyn Resolver>) -> Result<Carrier, Refused> {
        let guard = Guard::new(allow, resolver)?;
        let client =
            guard::client(&guard, CONNECT_TIMEOUT).map_err(|error| Refused::Url(error.to_string()))?;
        Ok(Carrier { guard, client })
    }

    async fn carry(&self, parcel: Parcel) -> Receipt {
        if parcel.body.len() > BODY_BYTES_MAX {
            return refused(&format!("the body is larger than {BODY_BYTES_MAX} bytes"));
        }
        let url = match self.guard.url(&parcel.url) {
            Ok(url) => url,
            Err(error) => return refused(&error),
        };
        let Some(headers) = headers(&parcel.headers) else { return refused(&"a header cannot be sent") };
        let timeout = Duration::from_millis(parcel.timeout.0);
        let request = self.client.post(url).headers(headers).timeout(timeout).body(parcel.body);
        match request.send().await {
            Ok(response) => answered(response).await,
            Err(error) => match guard::refused(&error) {
                // A name that cannot be resolved now may be resolved later.
                Some(why @ (Refused::Unresolved { .. } | Refused::NoAddress { .. })) => {
                    Receipt::Failed { why: why.to_string() }
                }
                Some(why) => refused(why),
                None => Receipt::Failed { why: why(&error) },
            },
        }
    }
}

impl Post for Carrier {
    fn check(&self, url: &str) -> Result<(), String> {
        if url.chars().count() > URL_CHARS_MAX {
            return Err(format!("a URL has at most {URL_CHARS_MAX} characters"));
        }
        self.guard.url(url).map(|_| ()).map_err(|refused| refused.to_string())
    }

    fn send(&self, parcel: Parcel) -> Reply<'_, Receipt> {
        Box::pin(guard::while_connecting(self.carry(parcel)))
    }
}

impl std::fmt::Debug for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Carrier").field("guard", &self.guard).finish_non_exhaustive()
    }
}

fn refused(why: &dyn std::fmt::Display) -> Receipt {
    Receipt::Refused { why: why.to_string() }
}

fn headers(pairs: &[(String, String)]) -> Option<HeaderMap> {
    let pair = |(name, value): &(String, String)| {
        Some((HeaderName::from_bytes(name.as_bytes()).ok()?, HeaderValue::from_str(value).ok()?))
    };
    pairs.iter().map(pair).collect()
}

/// The status counts even when the rest of the answer is lost.
async fn answered(mut response: Response) -> Receipt {
    let status = response.status().as_u16();
    // A date without the server's own clock beside it says nothing that could be relied on.
    let retry_after = meaning::retry_after(response.headers(), Timestamp(i64::MAX));
    let mut bytes = Vec::new();
    while bytes.len() < ANSWER_BYTES_MAX {
        let Ok(Some(chunk)) = response.chunk().await else { break };
        bytes.extend_from_slice(&chunk[..chunk.len().min(ANSWER_BYTES_MAX - bytes.len())]);
    }
    let text = String::from_utf8_lossy(&bytes);
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = text.trim().chars().take(ANSWER_CHARS_MAX).collect();
    Receipt::Answered { status, retry_after, text }
}

/// The cause at the bottom of it; what lies above repeats the URL, which may hold a secret.
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
