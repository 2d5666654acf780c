//! Servers that are reached over streamable HTTP, and what their refusals say about a call.

mod client;

use crate::config::mcp::Http;
use client::Client;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::FixedInterval;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rutter_core::time::Millis;
use rutter_core::tool::{Category, Failure};
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// Whether a request that failed can have reached the server's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reached {
    Never,
    Perhaps,
}

pub(super) fn transport(
    http: &Http,
    answer_bytes_max: usize,
) -> Result<StreamableHttpClientTransport<Client>, Failure> {
    let requests = reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(10))
        // What is sent goes where it is configured to go, whatever the environment says.
        .no_proxy()
        // An idle connection may have been closed by the server, and whether a call on it was read nobody can tell.
        .pool_max_idle_per_host(0)
        // A call must not be made at an address nobody configured.
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| {
            Failure::new(Category::Internal, format!("no HTTP client could be made: {error}"))
        })?;
    let mut headers = HashMap::new();
    for (name, value) in &http.headers {
        let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
            return Err(Failure::new(Category::Protocol, format!("the header {name:?} cannot be sent")));
        };
        headers.insert(name, value);
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(http.url.as_str())
        .custom_headers(headers)
        .max_concurrent_requests(POSTS_MAX)
        .max_sse_event_size(answer_bytes_max)
        // It would send the call again in a new session, and nobody knows whether it was carried out in the old one.
        .reinit_on_expired_session(false);
    let mut retries = FixedInterval::default();
    retries.max_times = Some(3);
    config.retry_config = Arc::new(retries);
    Ok(StreamableHttpClientTransport::with_client(Client { requests, answer_bytes_max }, config))
}

/// More than the calls at once a server is ever given, so that none waits in the transport.
const POSTS_MAX: usize = 256;

/// Nobody listens at the address.
pub(super) fn is_unreachable(error: &(dyn Error + 'static)) -> bool {
    matches!(find(error), Some(StreamableHttpError::Client(client::Error::Request(error))) if error.is_connect())
}

/// The server wants other credentials, whichever way it is greeted.
pub(super) fn is_unauthorized(error: &(dyn Error + 'static)) -> bool {
    failure(error).is_some_and(|(_, failure)| failure.category == Category::Unauthorized)
}

/// The server does not know this session any more.
pub(super) fn is_stale(error: &(dyn Error + 'static)) -> bool {
    matches!(find(error), Some(StreamableHttpError::SessionExpired))
}

/// What a request that failed over HTTP says; `None` for errors of another transport.
pub(super) fn failure(error: &(dyn Error + 'static)) -> Option<(Reached, Failure)> {
    use Reached::{Never, Perhaps};
    use client::Error::{Request, Status, TooLarge, Unreadable};
    let error = find(error)?;
    let (reached, category, message) = match error {
        StreamableHttpError::Client(Request(error)) if error.is_connect() => {
            (Never, Category::Unavailable, "nobody answers at its address".to_owned())
        }
        StreamableHttpError::Client(Request(error)) if error.is_builder() => {
            (Never, Category::Protocol, "the request could not be made".to_owned())
        }
        StreamableHttpError::Client(Status { status, retry_after }) => {
            let (reached, category) = of_status(*status, retry_after.is_some());
            let mut failure = Failure::new(category, format!("it answered with HTTP status {status}"));
            failure.retry_after = retry_after.as_deref().and_then(seconds);
            return Some((reached, failure));
        }
        StreamableHttpError::Client(error @ (TooLarge(_) | Unreadable)) => {
            (Perhaps, Category::Protocol, error.to_string())
        }
        StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
            (Never, Category::Unauthorized, "it does not accept the credentials; check `headers`".to_owned())
        }
        StreamableHttpError::SessionExpired => {
            (Never, Category::Unavailable, "it has forgotten the session".to_owned())
        }
        _ => (Perhaps, Category::Unavailable, "the connection was lost".to_owned()),
    };
    Some((reached, Failure::new(category, message)))
}

/// These statuses are given before anything is carried out; any other proves nothing.
fn of_status(status: u16, says_when: bool) -> (Reached, Category) {
    match status {
        401 | 403 => (Reached::Never, Category::Unauthorized),
        404 => (Reached::Never, Category::NotFound),
        405 | 413 | 415 => (Reached::Never, Category::Protocol),
        429 => (Reached::Never, Category::RateLimited),
        503 if says_when => (Reached::Never, Category::Unavailable),
        300..=399 => (Reached::Never, Category::Protocol),
        500..=599 => (Reached::Perhaps, Category::Unavailable),
        _ => (Reached::Perhaps, Category::Protocol),
    }
}

fn seconds(text: &str) -> Option<Millis> {
    text.trim().parse().ok().map(|seconds: u64| Millis(seconds.saturating_mul(1_000)))
}

fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a StreamableHttpError<client::Error>> {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        current = error.source();
    }
    None
}
