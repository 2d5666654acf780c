//! What went wrong, for whoever asked: a code that stays, what happened, what to do about it, and how the program ends.

use crate::Exit;
use crate::table::{Paint, wrapped};
use crate::terminal::printable;
use rutter_core::port::Error;
use rutter_server::fault::Fault;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;

/// Something that was asked for and that a command does not do. Codes are documented in docs/errors.md.
#[derive(Debug)]
pub(crate) struct Refusal {
    code: Cow<'static, str>,
    message: String,
    hint: Option<String>,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { code: code.into(), message: message.into(), hint: None }
    }

    /// As another process told it.
    pub(crate) fn told(answer: &Value) -> Refusal {
        let text = |name: &str| answer["error"][name].as_str().map(str::to_owned);
        Refusal {
            code: text("code").map_or(Cow::Borrowed("command.wire"), Cow::Owned),
            message: text("message").unwrap_or_default(),
            hint: text("hint"),
        }
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Refusal {
        Refusal { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Refusal {
        Refusal { code: fault.code, message: fault.message, hint: fault.hint }
    }
}

/// An error as it is told.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Option<Cow<'static, str>>,
    message: String,
    hint: Option<String>,
    pub(crate) exit: Exit,
}

impl Failure {
    pub(crate) fn of(error: &anyhow::Error) -> Failure {
        let message = format!("{error:#}");
        if let Some(refusal) = error.downcast_ref::<Refusal>() {
            let (code, hint) = (Some(refusal.code.clone()), refusal.hint.clone());
            return Failure { code, message, hint, exit: Exit::Refused };
        }
        match error.downcast_ref::<Error>() {
            Some(error) => {
                let hint = hint(error).map(str::to_owned);
                Failure { code: Some(error.code().into()), message, hint, exit: exit(error) }
            }
            None => Failure { code: None, message, hint: None, exit: Exit::Internal },
        }
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// For people: the hint follows the error after a blank line.
    pub(crate) fn text(&self) -> String {
        let code = self.code.as_ref().map(|code| format!("[{code}]")).unwrap_or_default();
        let title = format!("error{code}");
        let text = wrapped(&format!("{title}: {}", printable(&self.message)), 0);
        // Painted when it is laid out: what paints takes no room.
        let mut text = text.replacen(&title, &Paint::Red.on(&title), 1) + "\n";
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\n{}\n", wrapped(&printable(hint), 0)));
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "ok": false, "error": { "code": self.code, "message": self.message, "hint": self.hint } })
    }
}

/// What somebody can do about it.
fn hint(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::Locked { .. } => {
            "one process at a time may change a database: stop that one, or let it do what you want; \
             verify, export, show, tail, stats and backup work beside it"
        }
        Error::NotFound { what: "database", .. } => {
            "name its directory with --dir, RUTTER_DIR or rutter.toml; `rutter db migrate` makes a new one"
        }
        Error::NotFound { what: "execution", .. } => {
            "`rutter journal tail` names the executions something happened to last"
        }
        Error::NotFound { what: "plan", .. } => "`rutter plan list` names the plans that are kept",
        Error::Schema { .. } => "a later version of this program wrote it: use that one",
        Error::Corrupt(_) => {
            "keep a copy of the directory, see what `rutter journal verify` says, and begin again from a backup \
             with `rutter db restore`"
        }
        Error::ReadOnly(_) => "look with `rutter journal verify`, and at who may write to the directory",
        Error::DiskFull(_) => "make room, then try again",
        Error::Unknown(_) => "look with `rutter journal tail` whether it was written before trying again",
        Error::TooBroad(_) => "ask for less",
        Error::Overloaded => "try again in a moment",
        Error::Engine { .. } => "build the program with the SQLite that comes with it",
        Error::Fenced { .. }
        | Error::Conflict { .. }
        | Error::NotFound { .. }
        | Error::KeyReused { .. }
        | Error::Limit { .. }
        | Error::Invalid(_)
        | Error::Io(_)
        | Error::Closed => return None,
    })
}

fn exit(error: &Error) -> Exit {
    match error {
        Error::Corrupt(_) => Exit::Differs,
        Error::Conflict { .. }
        | Error::NotFound { .. }
        | Error::KeyReused { .. }
        | Error::Limit { .. }
        | Error::Invalid(_)
        | Error::TooBroad(_)
        | Error::Locked { .. }
        | Error::Schema { .. } => Exit::Refused,
        Error::Fenced { .. }
        | Error::Overloaded
        | Error::DiskFull(_)
        | Error::ReadOnly(_)
        | Error::Unknown(_)
        | Error::Io(_)
        | Error::Closed
        | Error::Engine { .. } => Exit::Internal,
    }
}
