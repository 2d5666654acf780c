//! What went wrong, as whoever asked is told: a code, why, and what to do.

use rutter_core::execution::input::Refusal;
use rutter_core::port;
use rutter_core::port::error::React;
use rutter_engine::Error;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// Stable and documented in docs/errors.md.
    pub code: Cow<'static, str>,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The same request may succeed a little later.
    #[serde(default)]
    pub retryable: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<Value>>,
}

impl Fault {
    pub fn new(code: &'static str, message: impl Into<String>) -> Fault {
        Fault { code: code.into(), message: message.into(), hint: None, retryable: false, details: None }
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Fault {
        self.hint = Some(hint.into());
        self
    }

    pub fn missing(what: &'static str, id: &str) -> Fault {
        port::Error::NotFound { what, id: id.to_owned() }.into()
    }

    pub fn json(&self) -> Value {
        json!({ "error": self })
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        let fault = Fault::new(error.code(), error.to_string());
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
                Fault { details: Some(Box::new(details)), ..fault.hint(hint) }
            }
            Error::Secret => {
                fault.hint("write {\"secret\": \"name\"} in the plan; the operator names secrets")
            }
            Error::Busy { .. } => Fault { retryable: true, ..fault },
            Error::Undecided => {
                Fault { retryable: true, ..fault.hint("look with `status` before saying it again") }
            }
            Error::Closing => Fault { retryable: true, ..fault },
            Error::Broken { .. } => fault.hint("the operator must look: `rutter journal verify`"),
        }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        let fault = Fault::new(refusal.code, refusal.message);
        Fault { hint: refusal.hint, ..fault }
    }
}

impl From<port::Error> for Fault {
    fn from(error: port::Error) -> Fault {
        let retryable = error.react() == React::Retry;
        let hint = match &error {
            port::Error::NotFound { what: "plan", .. } => Some("find_plans finds plans"),
            port::Error::NotFound { what: "execution", .. } => Some("query_history lists executions"),
            port::Error::KeyReused { .. } => Some("another request needs another request_id"),
            _ => None,
        };
        Fault { retryable, hint: hint.map(str::to_owned), ..Fault::new(error.code(), error.to_string()) }
    }
}
