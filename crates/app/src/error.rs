//! The error a caller gets: a code, a message and a hint.

use rutter_core::execution::input::Refusal;
use rutter_core::port;
use rutter_core::port::error::ErrorReaction;
use rutter_engine::Error;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
#[error("{message} ({code})")]
pub struct AppError {
    /// Stable and documented in docs/errors.md.
    pub code: Cow<'static, str>,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The same request may succeed later.
    #[serde(default)]
    pub retryable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Value>>,
}

/// What kind of error it is, from which every surface takes its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is malformed, or lacks something.
    Invalid,
    Unauthorized,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    /// Not possible in the present state.
    Conflict,
    PreconditionFailed,
    TooLarge,
    UnsupportedMedia,
    /// Well-formed, but its content is not accepted.
    Unacceptable,
    RateLimited,
    /// The same request may succeed later.
    Unavailable,
    Internal,
}

impl AppError {
    pub fn kind(&self) -> ErrorKind {
        let area = self.code.split('.').next().unwrap_or_default();
        match self.code.as_ref() {
            "server.arguments" | "command.reason_missing" | "store.invalid" | "store.too_broad" => ErrorKind::Invalid,
            "server.unauthorized" => ErrorKind::Unauthorized,
            "server.not_allowed"
            | "server.host"
            | "server.origin"
            | "execution.not_a_person"
            | "execution.not_the_approver"
            | "execution.not_proven" => ErrorKind::Forbidden,
            "store.not_found" | "server.session" | "server.no_route" | "execution.unknown_part" => ErrorKind::NotFound,
            "server.method" => ErrorKind::MethodNotAllowed,
            "store.conflict"
            | "store.key_reused"
            | "store.in_use"
            | "server.stale_question"
            | "server.plan_ambiguous"
            | "server.plan_archived"
            | "server.plan_name_taken" => ErrorKind::Conflict,
            "server.precondition" | "engine.changed" => ErrorKind::PreconditionFailed,
            "server.too_large" => ErrorKind::TooLarge,
            "server.media_type" => ErrorKind::UnsupportedMedia,
            "server.rate_limited" => ErrorKind::RateLimited,
            "engine.plan"
            | "engine.secret"
            | "store.limit"
            | "execution.inputs"
            | "execution.text_too_long"
            | "execution.too_large"
            | "execution.answer_invalid"
            | "execution.evidence_missing"
            | "execution.result_invalid"
            | "execution.result_missing"
            | "execution.unknown_tool" => ErrorKind::Unacceptable,
            "store.overloaded" | "store.disk_full" | "store.read_only" | "store.closed" | "store.fenced"
            | "tool.unreachable" | "engine.busy" | "engine.closing" | "engine.undecided" | "server.busy" => {
                ErrorKind::Unavailable
            }
            _ if matches!(area, "execution" | "replan") => ErrorKind::Conflict,
            _ => ErrorKind::Internal,
        }
    }

    pub fn new(code: &'static str, message: impl Into<String>) -> AppError {
        AppError { code: code.into(), message: message.into(), hint: None, retryable: false, details: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> AppError {
        self.hint = Some(hint.into());
        self
    }

    pub fn missing(what: &'static str, id: &str) -> AppError {
        port::Error::NotFound { what, id: id.to_owned() }.into()
    }

    pub fn json(&self) -> Value {
        json!({ "error": self })
    }
}

impl From<Error> for AppError {
    fn from(error: Error) -> AppError {
        let app_error = AppError::new(error.code(), error.to_string());
        let is_unreachable = error.is_unreachable();
        match error {
            Error::Store(error) => error.into(),
            Error::Refused(refusal) => refusal.into(),
            Error::Plan { found, absent } => {
                let absent: Vec<Value> = absent
                    .into_iter()
                    .map(|(server, failure)| json!({ "server": server, "why": failure.to_string() }))
                    .collect();
                let details = json!({ "diagnostics": found, "servers_not_reached": absent });
                let hint = match is_unreachable {
                    true => {
                        "send the plan again when the servers that `details.diagnostics` names can be reached, or \
                         correct the name of a tool that it says was not there; nothing was saved"
                    }
                    false => {
                        "correct what `details.diagnostics` names (each has a pointer into the plan, some a `fix` as \
                         JSON Patch) and send the plan again; nothing was saved"
                    }
                };
                AppError { details: Some(Box::new(details)), retryable: is_unreachable, ..app_error.hint(hint) }
            }
            Error::Secret => {
                app_error.hint("write {\"secret\": \"name\"} in the plan; the operator configures secrets")
            }
            Error::Busy { .. } => AppError { retryable: true, ..app_error },
            Error::Undecided => {
                AppError { retryable: true, ..app_error.hint("check with `status` before sending it again") }
            }
            Error::Closing => AppError { retryable: true, ..app_error },
            Error::Broken { .. } => app_error.hint("ask the operator to run `rutter journal verify`"),
        }
    }
}

impl From<rutter_observe::Error> for AppError {
    fn from(error: rutter_observe::Error) -> AppError {
        match error {
            rutter_observe::Error::Refused(refusal) => refusal.into(),
            rutter_observe::Error::Store(error) => error.into(),
        }
    }
}

impl From<Refusal> for AppError {
    fn from(refusal: Refusal) -> AppError {
        let error = AppError::new(refusal.code, refusal.message);
        AppError { hint: refusal.hint, ..error }
    }
}

impl From<port::Error> for AppError {
    fn from(error: port::Error) -> AppError {
        let retryable = error.reaction() == ErrorReaction::Retry;
        let hint = match &error {
            port::Error::NotFound { what: "plan", .. } => {
                Some("list them with find_plans, GET /api/v1/plans or `rutter plan list`")
            }
            port::Error::NotFound { what: "execution", .. } => {
                Some("list them with query_history, GET /api/v1/executions or `rutter exec list`")
            }
            port::Error::KeyReused { .. } => Some(KEY_REUSED_HINT),
            port::Error::InUse { .. } => Some("let its executions end, or cancel them; `archive` works at once"),
            _ => None,
        };
        AppError { retryable, hint: hint.map(str::to_owned), ..AppError::new(error.code(), error.to_string()) }
    }
}

/// Must not lead an agent to do a thing twice: what the first request did comes first.
const KEY_REUSED_HINT: &str = "look at what the first request with this key did before sending anything again; a new \
                               key makes this a second, separate request";
