//! The side of a call, what follows an attempt, late answers, and why steps are skipped.

use crate::id::StepId;
use crate::journal::payload::EventPayload;
use crate::time::Timestamp;
use crate::tool::ToolFailure;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The call of a part that an attempt makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallSide {
    Do,
    Fallback,
    Undo,
    Probe,
}

/// Why no probe settles a doubt, if the plan has none.
pub const NO_PROBE: &str = "the plan has no probe for it";

/// The follow-up of a closed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttemptFollowUp {
    RetryAt(Timestamp),
    FallBack,
    /// It may have taken effect and must not be repeated before that is known.
    InDoubt,
    GiveUp,
    /// Nothing was sent, because the tool is not the one the plan was checked with. It does not count as an attempt:
    /// the call is made once its tool is accepted, or is the old one again.
    Withdrawn,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LateAnswer<P = EventPayload> {
    Done(P),
    NotDone(ToolFailure),
    Maybe(ToolFailure),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// Its `when` is false.
    Condition,
    /// It reads the result of a step that has none.
    NeedsResultOf(StepId),
    /// It is the other branch of this step, which was not skipped by its `when`.
    ElseOf(StepId),
    /// The agent ended without doing it.
    LeftUndone,
}

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SkipReason::Condition => f.write_str("the condition is false"),
            SkipReason::NeedsResultOf(step) => write!(f, "{step} has no result"),
            SkipReason::ElseOf(step) => write!(f, "{step} was not skipped by its condition"),
            SkipReason::LeftUndone => f.write_str("the agent ended without it"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DoubtSource {
    Probe,
    LateAnswer,
    Person,
}
