//! Servers that are reached over streamable HTTP, and what their refusals say about a call.

mod client;

use crate::config::mcp::McpHttpConfig;
use crate::tls;
use client::McpHttpClient;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::FixedInterval;
use rmcp::transport::streamable_http_client::{StreamableHttpClientTransportConfig, StreamableHttpError};
use rutter_core::time::Millis;
use rutter_core::tool::{FailureCategory, ToolFailure};
use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

/// Whether a request that failed can have reached the server's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestReach {
    Never,
    Perhaps,
}

pub(super) fn transport(
    http: &McpHttpConfig,
    answer_bytes_max: usize,
) -> Result<StreamableHttpClientTransport<McpHttpClient>, ToolFailure> {
    let requests = tls::client_builder()
        .connect_timeout(Duration::from_secs(10))
        // Requests go to the configured address, not to a proxy from the environment.
        .no_proxy()
        // The server may have closed an idle connection, and then it is unknown whether a call on it was read.
        .pool_max_idle_per_host(0)
        // A call must not be sent to an address that is not configured.
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .map_err(|error| ToolFailure::new(FailureCategory::Internal, format!("no HTTP client: {error}")))?;
    let mut headers = HashMap::new();
    for (name, value) in &http.headers {
        let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) else {
            return Err(ToolFailure::new(FailureCategory::Protocol, format!("the header {name:?} cannot be sent")));
        };
        headers.insert(name, value);
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(http.url.as_str())
        .custom_headers(headers)
        .max_concurrent_requests(POSTS_MAX)
        .max_sse_event_size(answer_bytes_max)
        // It would resend the call in a new session, although it may have been carried out in the old one.
        .reinit_on_expired_session(false);
    let mut retries = FixedInterval::default();
    retries.max_times = Some(3);
    config.retry_config = Arc::new(retries);
    Ok(StreamableHttpClientTransport::with_client(McpHttpClient { requests, answer_bytes_max }, config))
}

/// More than the concurrent calls of any server, so that none waits in the transport.
const POSTS_MAX: usize = 256;

/// Nothing listens at the address.
pub(super) fn is_unreachable(error: &(dyn Error + 'static)) -> bool {
    matches!(find(error), Some(StreamableHttpError::Client(client::Error::Request(error))) if error.is_connect())
}

/// The server wants other credentials, in either era.
pub(super) fn is_unauthorized(error: &(dyn Error + 'static)) -> bool {
    failure(error).is_some_and(|(_, failure)| failure.category == FailureCategory::Unauthorized)
}

/// The server does not know this session any more.
pub(super) fn is_stale(error: &(dyn Error + 'static)) -> bool {
    matches!(find(error), Some(StreamableHttpError::SessionExpired))
}

/// The meaning of a failed HTTP request; `None` for errors of another transport.
pub(super) fn failure(error: &(dyn Error + 'static)) -> Option<(RequestReach, ToolFailure)> {
    use RequestReach::{Never, Perhaps};
    use client::Error::{Request, Status, TooLarge, Unreadable};
    let error = find(error)?;
    let (reached, category, message) = match error {
        StreamableHttpError::Client(Request(error)) if error.is_connect() => {
            (Never, FailureCategory::Unavailable, "nothing answers at its address".to_owned())
        }
        StreamableHttpError::Client(Request(error)) if error.is_builder() => {
            (Never, FailureCategory::Protocol, "the request could not be made".to_owned())
        }
        StreamableHttpError::Client(Status { status, retry_after }) => {
            let (reached, category) = of_status(*status, retry_after.is_some());
            let mut failure = ToolFailure::new(category, format!("it answered with HTTP status {status}"));
            failure.retry_after = retry_after.as_deref().and_then(seconds);
            return Some((reached, failure));
        }
        StreamableHttpError::Client(error @ (TooLarge(_) | Unreadable)) => {
            (Perhaps, FailureCategory::Protocol, error.to_string())
        }
        StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
            (Never, FailureCategory::Unauthorized, "it does not accept the credentials; check `headers`".to_owned())
        }
        StreamableHttpError::SessionExpired => {
            (Never, FailureCategory::Unavailable, "the session has expired".to_owned())
        }
        _ => (Perhaps, FailureCategory::Unavailable, "the connection was lost".to_owned()),
    };
    Some((reached, ToolFailure::new(category, message)))
}

/// Some statuses are sent before anything is carried out; the others prove nothing.
fn of_status(status: u16, says_when: bool) -> (RequestReach, FailureCategory) {
    match status {
        401 | 403 => (RequestReach::Never, FailureCategory::Unauthorized),
        404 => (RequestReach::Never, FailureCategory::NotFound),
        405 | 413 | 415 => (RequestReach::Never, FailureCategory::Protocol),
        429 => (RequestReach::Never, FailureCategory::RateLimited),
        503 if says_when => (RequestReach::Never, FailureCategory::Unavailable),
        300..=399 => (RequestReach::Never, FailureCategory::Protocol),
        500..=599 => (RequestReach::Perhaps, FailureCategory::Unavailable),
        _ => (RequestReach::Perhaps, FailureCategory::Protocol),
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
