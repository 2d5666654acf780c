//! How an execution is limited, how it can deviate from its plan, and how it ends.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionLimit {
    Deadline,
    Calls,
    Cost,
    Time,
    Entries,
}

/// How an execution can deviate from its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deviation {
    Skipped,
    Duplicate,
    OutOfOrder,
    Undeclared,
    /// Started but never finished.
    Dangling,
    Unapproved,
    /// The operator's policy forbids the call.
    Forbidden,
    /// Another tool than the plan names.
    OtherTool,
    /// A call took effect after it was settled otherwise: twice, or although its step had failed.
    SecondEffect,
    /// The step was called with a result that was given by hand and corrected later.
    StaleResult,
    /// The tool answered late, with another result than the one that was given by hand.
    OtherResult,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionEnding {
    Completed,
    Partial,
    Failed,
    Cancelled,
    Compensated,
}

/// The effect of an attempt that was settled otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LateEffect {
    /// The only effect of its part.
    Only,
    /// An effect beside another one, or one that another attempt may still have.
    Second,
}
