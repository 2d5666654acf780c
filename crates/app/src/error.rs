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

impl AppError {
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
        match error {
            Error::Store(error) => error.into(),
            Error::Refused(refusal) => refusal.into(),
            Error::Plan { found, absent } => {
                let absent: Vec<Value> = absent
                    .into_iter()
                    .map(|(server, failure)| json!({ "server": server, "why": failure.to_string() }))
                    .collect();
                let details = json!({ "diagnostics": found, "servers_not_reached": absent });
                let hint = "correct what `details.diagnostics` names (each has a pointer into the plan, some a `fix` \
                            as JSON Patch) and send the plan again; nothing was saved";
                AppError { details: Some(Box::new(details)), ..app_error.hint(hint) }
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
            port::Error::NotFound { what: "plan", .. } => Some("find_plans finds plans"),
            port::Error::NotFound { what: "execution", .. } => Some("query_history lists executions"),
            port::Error::KeyReused { .. } => Some("another request needs another request_id"),
            _ => None,
        };
        AppError { retryable, hint: hint.map(str::to_owned), ..AppError::new(error.code(), error.to_string()) }
    }
}
