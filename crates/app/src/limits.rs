//! Every limit of the surfaces, by name.

use crate::error::AppError;
use std::time::Duration;

/// The size of one message, on any transport.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// The target size of an answer; longer content is left to a resource, and the answer says so.
pub const ANSWER_BYTES: usize = 8 << 10;
/// How long one call may wait for an execution: clients give up after a minute.
pub const WAIT_MAX: Duration = Duration::from_secs(45);
pub const WAIT_DEFAULT: Duration = Duration::from_secs(20);
/// How long a person at the client may take to answer; after that the question stays open.
pub const PERSON_MAX: Duration = Duration::from_secs(300);
/// How long a question sent back with its call may stay unanswered.
pub const QUESTION_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Concurrent requests, of all principals together.
pub const REQUESTS_MAX: usize = 512;
/// Concurrent connections over the socket.
pub const CONNECTIONS_MAX: usize = 128;
/// Items on one page of a list.
pub const PAGE_MAX: u32 = 100;
/// Concurrent subscriptions, of all principals together.
pub const LISTENERS_MAX: usize = 1_024;
/// Resources that one connection may watch.
pub const RESOURCES_WATCHED_MAX: usize = 100;
/// Executions of which one connection is notified when they wait for a person; the oldest is dropped first.
pub const EXECUTIONS_KNOWN_MAX: usize = 100;
/// How long a ticket is valid at least, from the start of its execution.
pub const TICKET_TTL: Duration = Duration::from_secs(7 * 24 * 3600);
/// Items on one page of a list over HTTP, by default.
pub const PAGE_DEFAULT: u32 = 50;
/// The body of an HTTP request: a plan of the maximum length, as text in JSON, and the rest of the request.
pub const BODY_BYTES_MAX: usize = 4 << 20;
/// A file of plans to import.
pub const IMPORT_BYTES_MAX: usize = 64 << 20;
/// Open event streams of all principals together: the rest of the connections stays free for commands.
pub const STREAMS_MAX: usize = HTTP_CONNECTIONS_MAX / 2;
/// Open event streams of one principal, unless configured otherwise.
pub const STREAMS_PER_PRINCIPAL: usize = 10;
/// How long the response to a request with a key is stored.
pub const REPLY_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Principals whose request rate is tracked.
pub const RATE_LIMITED_PRINCIPALS_MAX: usize = 10_000;
/// Refusals of one principal that get an entry of their own, per minute; the others get one entry together.
pub const REFUSALS_PER_MINUTE: u64 = 20;
/// Keys in all, including revoked and expired ones.
pub const KEYS_MAX: usize = 1_000;
pub const KEY_NAME_CHARS_MAX: usize = 128;
/// Browser sessions; the one idle longest ends when there is a new one.
pub const SESSIONS_MAX: usize = 1_000;
/// Sign-in links that were not opened yet.
pub const LINKS_MAX: u32 = 50;
/// Concurrent connections over HTTP.
pub const HTTP_CONNECTIONS_MAX: usize = 1_024;
/// How long a request's head may take to arrive, and how long a connection may be idle between requests.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a request's body may take to arrive.
pub const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a client may read nothing of a response.
pub const STALL_TIME_MAX: Duration = Duration::from_secs(30);
/// Names and values of all headers of a request.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
pub const HEADERS_MAX: usize = 100;
pub const URL_BYTES_MAX: usize = 8 << 10;
/// The size of a form.
pub const FORM_BYTES_MAX: usize = 1 << 20;

/// The time to wait that was asked for, in seconds, or the default.
pub fn wait_time(seconds: Option<u64>, default: Duration) -> Result<Duration, AppError> {
    match seconds.map(Duration::from_secs) {
        Some(time) if time > WAIT_MAX => {
            let message = format!("expected a wait of at most {} s, not {}", WAIT_MAX.as_secs(), time.as_secs());
            Err(AppError::new("server.arguments", message).hint("ask for the status again to wait longer"))
        }
        time => Ok(time.unwrap_or(default)),
    }
}

/// The size of a page that was asked for, or the default.
pub fn page_limit(given: Option<u32>, default: u32) -> Result<u32, AppError> {
    match given.unwrap_or(default) {
        limit @ 1..=PAGE_MAX => Ok(limit),
        limit => Err(AppError::new("server.arguments", format!("limit is 1 to {PAGE_MAX}, this is {limit}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_the_limit_is_refused_and_nothing_is_the_default() {
        assert_eq!(wait_time(None, WAIT_DEFAULT), Ok(WAIT_DEFAULT));
        assert_eq!(wait_time(Some(45), WAIT_DEFAULT), Ok(WAIT_MAX));
        assert_eq!(page_limit(None, PAGE_DEFAULT), Ok(PAGE_DEFAULT));
        assert_eq!(page_limit(Some(PAGE_MAX), 1), Ok(PAGE_MAX));
        let refused =
            [wait_time(Some(46), WAIT_DEFAULT).err(), page_limit(Some(0), 1).err(), page_limit(Some(101), 1).err()];
        assert!(refused.iter().all(|error| error.as_ref().is_some_and(|error| error.code == "server.arguments")));
    }
}
