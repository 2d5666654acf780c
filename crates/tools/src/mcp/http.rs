//! Servers that are reached over streamable HTTP, and what their refusals say about a call.

use crate::config::mcp::Http;
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

pub(super) fn transport(http: &Http) -> Result<StreamableHttpClientTransport<reqwest::Client>, Failure> {
    let client = reqwest::Client::builder()
        .connect_timeout(Duration::from_secs(10))
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
        // It would send the call again in a new session, and nobody knows whether it was carried out in the old one.
        .reinit_on_expired_session(false);
    let mut retries = FixedInterval::default();
    retries.max_times = Some(3);
    config.retry_config = Arc::new(retries);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// More than the calls at once a server is ever given, so that none waits in the transport.
const POSTS_MAX: usize = 256;

/// Nobody listens at the address.
pub(super) fn is_unreachable(error: &(dyn Error + 'static)) -> bool {
    matches!(find(error), Some(StreamableHttpError::Client(error)) if error.is_connect())
}

/// What a request that failed over HTTP says; `None` for errors of another transport.
pub(super) fn failure(error: &(dyn Error + 'static)) -> Option<(Reached, Failure)> {
    use Reached::{Never, Perhaps};
    let error = find(error)?;
    let (reached, category, message) = match error {
        StreamableHttpError::Client(error) if error.is_connect() => {
            (Never, Category::Unavailable, "nobody answers at its address".to_owned())
        }
        StreamableHttpError::Client(error) if error.is_builder() => {
            (Never, Category::Protocol, "the request could not be made".to_owned())
        }
        StreamableHttpError::Client(error) if error.is_timeout() => {
            (Perhaps, Category::Timeout, "it did not answer in time".to_owned())
        }
        StreamableHttpError::HttpStatus(refusal) => {
            let (reached, category) = of_status(refusal.status, refusal.retry_after.is_some());
            let mut failure =
                Failure::new(category, format!("it answered with HTTP status {}", refusal.status));
            failure.retry_after = refusal.retry_after.as_deref().and_then(seconds);
            return Some((reached, failure));
        }
        StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
            (Never, Category::Unauthorized, "it does not accept the credentials; check `headers`".to_owned())
        }
        StreamableHttpError::SessionExpired => {
            (Never, Category::Unavailable, "it has forgotten the session".to_owned())
        }
        StreamableHttpError::ReservedHeaderConflict(name) => {
            (Never, Category::Protocol, format!("the header `{name}` belongs to the protocol; remove it"))
        }
        // All that is left of other statuses is this text; the body behind it is not repeated.
        StreamableHttpError::UnexpectedServerResponse(text) => match status_in(text) {
            Some(status) => {
                let (reached, category) = of_status(status, false);
                (reached, category, format!("it answered with HTTP status {status}"))
            }
            None => (Perhaps, Category::Protocol, "its answer could not be read".to_owned()),
        },
        _ => (Perhaps, Category::Unavailable, format!("the request failed: {error}")),
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

fn status_in(text: &str) -> Option<u16> {
    text.strip_prefix("HTTP ")?.get(..3)?.parse().ok()
}

fn seconds(text: &str) -> Option<Millis> {
    text.trim().parse().ok().map(|seconds: u64| Millis(seconds.saturating_mul(1_000)))
}

fn find<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a StreamableHttpError<reqwest::Error>> {
    let mut current = Some(error);
    while let Some(error) = current {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        current = error.source();
    }
    None
}
