//! The errors of the engine.

use rutter_core::diagnostic::{self, Diagnostic, DiagnosticSeverity};
use rutter_core::execution::input::Refusal;
use rutter_core::port;
use rutter_core::time::Millis;
use rutter_core::tool::ToolFailure;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] port::Error),
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The plan has mistakes; `absent` are servers whose tools could not be listed.
    #[error("{}", plan_message(.found))]
    Plan { found: Vec<Diagnostic>, absent: Vec<(String, ToolFailure)> },
    #[error("the inputs contain what looks like a secret; it would be written to the journal")]
    Secret,
    #[error("too many executions or requests are waiting; try again in {retry_after}")]
    Busy { retry_after: Millis },
    #[error("the engine is shutting down")]
    Closing,
    /// The command is stored; the execution has not decided it yet.
    #[error("accepted, but not decided yet")]
    Undecided,
    #[error("execution {execution} cannot continue: {why}")]
    Broken { execution: String, why: String },
}

/// The engine's own codes, for a test that compares them with the documentation.
pub const CODES: &[&str] = &[
    "engine.plan",
    "engine.secret",
    "engine.busy",
    "engine.closing",
    "engine.undecided",
    "engine.broken",
    "engine.unreadable",
    "engine.changed",
];

impl Error {
    /// The plan may be right: all that is wrong with it is that servers cannot be reached.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Error::Plan { found, .. } if is_unreachable(found))
    }

    /// Stable and documented in docs/errors.md.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Store(error) => error.code(),
            Error::Refused(refusal) => refusal.code,
            Error::Plan { .. } if self.is_unreachable() => "tool.unreachable",
            Error::Plan { .. } => "engine.plan",
            Error::Secret => "engine.secret",
            Error::Busy { .. } => "engine.busy",
            Error::Closing => "engine.closing",
            Error::Undecided => "engine.undecided",
            Error::Broken { .. } => "engine.broken",
        }
    }
}

fn is_unreachable(found: &[Diagnostic]) -> bool {
    let mut errors = found.iter().filter(|found| found.severity == DiagnosticSeverity::Error).peekable();
    errors.peek().is_some() && errors.all(|found| found.code == "tool.unreachable")
}

fn plan_message(found: &[Diagnostic]) -> String {
    match is_unreachable(found) {
        true => "the plan cannot be checked now: servers of its tools cannot be reached".to_owned(),
        false => format!("the plan has {}", diagnostic::count(found).unwrap_or_default()),
    }
}
