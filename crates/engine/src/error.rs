//! Why the engine could not do what it was asked for.

use rutter_core::execution::input::Refusal;
use rutter_core::plan::diagnostic::Diagnostic;
use rutter_core::port;
use rutter_core::time::Millis;
use rutter_core::tool::Failure;

#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] port::Error),
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The plan has mistakes; `absent` are servers that could not be asked for their tools.
    #[error("the plan has {} mistakes", .found.len())]
    Plan { found: Vec<Diagnostic>, absent: Vec<(String, Failure)> },
    #[error("the inputs hold what looks like a secret; it would stand in the journal")]
    Secret,
    #[error("too much is under way; try again in {retry_after}")]
    Busy { retry_after: Millis },
    #[error("the engine is being closed")]
    Closing,
    /// It was accepted and is on record; nobody has decided it yet.
    #[error("accepted, but not decided yet")]
    Undecided,
    #[error("execution {execution} cannot go on: {why}")]
    Broken { execution: String, why: String },
}

/// Codes of the engine's own, for the documentation to be compared with.
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
    /// Stable and documented in docs/errors.md.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Store(error) => error.code(),
            Error::Refused(refusal) => refusal.code,
            Error::Plan { .. } => "engine.plan",
            Error::Secret => "engine.secret",
            Error::Busy { .. } => "engine.busy",
            Error::Closing => "engine.closing",
            Error::Undecided => "engine.undecided",
            Error::Broken { .. } => "engine.broken",
        }
    }
}
