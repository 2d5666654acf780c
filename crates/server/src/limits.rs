//! Every limit of the surfaces, by name.

use std::time::Duration;

/// One message, whichever way it comes.
pub const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// How large an answer is meant to be; what does not fit is left to a resource, and the answer says so.
pub const ANSWER_BYTES: usize = 8 << 10;
/// How long one call may wait for an execution: clients give up after a minute.
pub const WAIT_MAX: Duration = Duration::from_secs(45);
pub const WAIT_DEFAULT: Duration = Duration::from_secs(20);
/// How long a person at the client may take to answer; after that the question stays open.
pub const PERSON_MAX: Duration = Duration::from_secs(300);
/// How long a question that travels with its call may stay unanswered.
pub const QUESTION_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Requests under way at the same time, all guests together.
pub const REQUESTS_MAX: usize = 512;
/// Connections over the socket at the same time.
pub const CONNECTIONS_MAX: usize = 128;
/// Items on one page of a list.
pub const PAGE_MAX: u32 = 100;
/// Subscriptions that are listened to at the same time, all guests together.
pub const LISTENERS_MAX: usize = 1_024;
/// Resources one connection may watch at the same time.
pub const RESOURCES_WATCHED_MAX: usize = 100;
/// Executions of one connection of which it is told that they need somebody; the oldest is forgotten first.
pub const EXECUTIONS_KNOWN_MAX: usize = 100;
/// How long a ticket is good at least, from the beginning of its execution on.
pub const TICKET_TTL: Duration = Duration::from_secs(7 * 24 * 3600);
/// Webhooks of one tenant.
pub const WEBHOOKS_MAX: usize = 100;
/// Patterns of one webhook.
pub const WEBHOOK_PATTERNS_MAX: usize = 50;
/// Names in one list of a webhook or a rule: plans, webhooks, commands.
pub const WEBHOOK_NAMES_MAX: usize = 100;
/// Rules that operators added or changed.
pub const RULES_MAX: usize = 100;
/// Silences that are not over.
pub const SILENCES_MAX: usize = 100;
/// Items on one page of a list over HTTP when no number is named.
pub const PAGE_DEFAULT: u32 = 50;
/// The body of a request over HTTP: a plan of the greatest length, written as text in JSON, and what is around it.
pub const BODY_BYTES_MAX: usize = 4 << 20;
/// Streams of events that are open at the same time, all guests together: whoever watches leaves room for whoever acts.
pub const STREAMS_MAX: usize = HTTP_CONNECTIONS_MAX / 2;
/// Streams of events one guest may have open, unless the settings say otherwise.
pub const STREAMS_PER_GUEST: usize = 10;
/// The newest entries of the ledger that are kept in memory for whoever follows it.
pub const LIVE_ENTRIES_MAX: usize = 8_192;
/// How long the answer to a request with a key is kept.
pub const REPLY_AGE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Guests whose pace is remembered at the same time.
pub const PACED_GUESTS_MAX: usize = 10_000;
/// Keys there may be, those that are good no more among them.
pub const KEYS_MAX: usize = 1_000;
pub const KEY_NAME_CHARS_MAX: usize = 128;
/// Sessions of browsers; the one that was silent longest ends for a new one.
pub const SESSIONS_MAX: usize = 1_000;
/// Links that wait to be opened.
pub const LINKS_MAX: u32 = 50;
/// Connections over HTTP at the same time.
pub const HTTP_CONNECTIONS_MAX: usize = 1_024;
/// How long a request's head may take to arrive, and a connection stay silent between requests.
pub const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a request's body may take to arrive.
pub const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// How long somebody may take nothing of what is sent to them.
pub const STALL_TIME_MAX: Duration = Duration::from_secs(30);
/// Names and values of all headers of a request.
pub const HEAD_BYTES_MAX: usize = 64 << 10;
pub const HEADERS_MAX: usize = 100;
pub const URL_BYTES_MAX: usize = 8 << 10;
/// What a form may hold.
pub const FORM_BYTES_MAX: usize = 1 << 20;
