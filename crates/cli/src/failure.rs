//! The error of a command: a stable code, a message, a hint and the exit code.

use crate::exit::CommandExit;
use crate::printable::printable;
use crate::table::{CellColor, wrapped};
use rutter_app::error::AppError;
use rutter_core::port::Error;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;

/// A request that a command refuses. Codes are documented in docs/errors.md.
#[derive(Debug)]
pub(crate) struct CommandRefusal {
    code: Cow<'static, str>,
    message: String,
    hint: Option<String>,
    /// What the check found in a plan, one line each.
    findings: Vec<String>,
}

impl CommandRefusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> CommandRefusal {
        CommandRefusal { code: code.into(), message: message.into(), hint: None, findings: Vec::new() }
    }

    /// From an error of the application.
    pub(crate) fn of(error: AppError) -> CommandRefusal {
        CommandRefusal::from_answer(&json!({ "error": error }))
    }

    /// From the reply of another process.
    pub(crate) fn from_answer(answer: &Value) -> CommandRefusal {
        let text = |name: &str| answer["error"][name].as_str().map(str::to_owned);
        let found = answer["error"]["details"]["diagnostics"].as_array();
        let findings: Vec<String> = found.into_iter().flatten().map(finding).collect();
        CommandRefusal {
            code: text("code").map_or(Cow::Borrowed("command.wire"), Cow::Owned),
            message: text("message").unwrap_or_default(),
            // The hint of a plan with findings says where a program finds them.
            hint: text("hint").filter(|_| findings.is_empty()).map(for_the_command_line),
            findings,
        }
    }

    pub(crate) fn code(&self) -> &str {
        &self.code
    }

    pub(crate) fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    pub(crate) fn with_hint(self, hint: impl Into<String>) -> CommandRefusal {
        CommandRefusal { hint: Some(hint.into()), ..self }
    }
}

impl fmt::Display for CommandRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CommandRefusal {}

impl From<AppError> for CommandRefusal {
    fn from(error: AppError) -> CommandRefusal {
        CommandRefusal::of(error)
    }
}

/// Hints of the application about saved plans are for agents: they name tools.
fn for_the_command_line(hint: String) -> String {
    match hint.starts_with("find_plans ") {
        true => "`rutter plan list` lists the saved plans, `rutter plan save FILE` saves one".to_owned(),
        false => hint,
    }
}

/// A finding of the check as one line: there is no text of a file to show it in.
fn finding(found: &Value) -> String {
    let text = |name: &str| found[name].as_str().unwrap_or_default();
    let hint = found["hint"].as_str().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{}[{}] {}: {}{hint}", text("severity"), text("code"), text("pointer"), text("message"))
}

/// An error as it is printed.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    code: Option<Cow<'static, str>>,
    message: String,
    hint: Option<String>,
    findings: Vec<String>,
    pub(crate) exit: CommandExit,
}

impl CommandFailure {
    pub(crate) fn of(error: &anyhow::Error) -> CommandFailure {
        let message = format!("{error:#}");
        if let Some(refusal) = error.downcast_ref::<CommandRefusal>() {
            let (code, hint) = (Some(refusal.code.clone()), refusal.hint.clone());
            let findings = refusal.findings.clone();
            return CommandFailure { exit: exit_of_code(&refusal.code), code, message, hint, findings };
        }
        match error.downcast_ref::<Error>() {
            Some(error) => {
                let hint = hint(error).map(str::to_owned);
                CommandFailure {
                    code: Some(error.code().into()),
                    message,
                    hint,
                    findings: Vec::new(),
                    exit: exit(error),
                }
            }
            None => {
                CommandFailure { code: None, message, hint: None, findings: Vec::new(), exit: CommandExit::Internal }
            }
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
        // Coloured after the layout: escape sequences take no columns.
        let mut text = text.replacen(&title, &CellColor::Red.on(&title), 1) + "\n";
        for finding in &self.findings {
            text.push_str(&format!("{}\n", wrapped(&printable(finding), 2)));
        }
        if let Some(hint) = &self.hint {
            text.push_str(&format!("\n{}\n", wrapped(&printable(hint), 0)));
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        let mut json =
            json!({ "ok": false, "error": { "code": self.code, "message": self.message, "hint": self.hint } });
        if !self.findings.is_empty() {
            json["error"]["findings"] = json!(self.findings);
        }
        json
    }
}

/// What the user can do about it.
fn hint(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::Locked { .. } => {
            "only one process at a time may change a database: stop that one, or let it do this; \
             verify, export, show, tail, stats and backup work at the same time"
        }
        Error::NotFound { what: "database", .. } => {
            "set its directory with --dir, RUTTER_DIR or rutter.toml; `rutter db migrate` creates a new one"
        }
        Error::NotFound { what: "execution", .. } => "`rutter journal tail` shows the latest executions",
        Error::NotFound { what: "plan", .. } => "`rutter plan list` lists the saved plans",
        Error::Schema { .. } => "it was written by a later version of this program: use that version",
        Error::Corrupt(_) => {
            "copy the directory, run `rutter journal verify`, and restore a backup \
             with `rutter db restore`"
        }
        Error::ReadOnly(_) => "run `rutter journal verify`, and check who may write to the directory",
        Error::DiskFull(_) => "free disk space, then try again",
        Error::Unknown(_) => "check with `rutter journal tail` whether it was written before trying again",
        Error::TooBroad(_) => "narrow the request",
        Error::Overloaded => "try again in a moment",
        Error::Engine { .. } => "build the program with its bundled SQLite",
        Error::Fenced { .. }
        | Error::Conflict { .. }
        | Error::NotFound { .. }
        | Error::KeyReused { .. }
        | Error::InUse { .. }
        | Error::Limit { .. }
        | Error::Invalid(_)
        | Error::Io(_)
        | Error::Closed => return None,
    })
}

/// The same for an error of the store that passed through the application.
fn exit_of_code(code: &str) -> CommandExit {
    match code {
        "store.corrupt" => CommandExit::Differs,
        "store.fenced" | "store.overloaded" | "store.disk_full" | "store.read_only" | "store.unknown" | "store.io"
        | "store.closed" | "store.engine" => CommandExit::Internal,
        _ => CommandExit::Refused,
    }
}

fn exit(error: &Error) -> CommandExit {
    match error {
        Error::Corrupt(_) => CommandExit::Differs,
        Error::Conflict { .. }
        | Error::NotFound { .. }
        | Error::KeyReused { .. }
        | Error::InUse { .. }
        | Error::Limit { .. }
        | Error::Invalid(_)
        | Error::TooBroad(_)
        | Error::Locked { .. }
        | Error::Schema { .. } => CommandExit::Refused,
        Error::Fenced { .. }
        | Error::Overloaded
        | Error::DiskFull(_)
        | Error::ReadOnly(_)
        | Error::Unknown(_)
        | Error::Io(_)
        | Error::Closed
        | Error::Engine { .. } => CommandExit::Internal,
    }
}
