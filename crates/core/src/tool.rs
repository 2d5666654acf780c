//! Tools, how safe their calls are, and how a call ends.

pub mod catalog;
pub mod report;

use crate::hash::Hash;
use crate::id::ToolName;
use crate::time::Millis;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Whether a call can be repeated. Ordered from the safest to the least safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Safety {
    /// No effect at all.
    ReadOnly,
    /// Repeating it with the same arguments changes nothing more.
    Idempotent,
    /// Every call may have its own effect. The default for tools of unknown safety.
    Once,
}

impl Safety {
    pub fn as_str(self) -> &'static str {
        match self {
            Safety::ReadOnly => "read_only",
            Safety::Idempotent => "idempotent",
            Safety::Once => "once",
        }
    }
}

/// One tool as the registry knows it when a plan is checked. A saved plan includes the tools it calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    pub name: ToolName,
    pub description: String,
    /// JSON Schema of the parameters; `true` when the tool declares none.
    pub input: Arc<Value>,
    /// JSON Schema of the result, where the tool declares one.
    pub output: Option<Arc<Value>>,
    pub safety: Safety,
    /// Where the safety comes from, for the guarantee card: `configured`, `trusted hint`, `unknown`.
    pub safety_source: SafetySource,
    /// The parameter in which the tool honours an idempotency key, by operator configuration.
    pub key_parameter: Option<String>,
    /// Hash of the definition as served; a plan pins it.
    pub definition: Hash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SafetySource {
    /// The operator configured it.
    Configured,
    /// The server's annotation, on a server the operator trusts.
    TrustedHint,
    /// Neither the operator nor a trusted server declared it.
    Unknown,
}

/// The tools a plan may name. Ordered, so that messages and hashes are deterministic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCatalog {
    pub tools: BTreeMap<ToolName, Arc<Tool>>,
}

/// How a call ended, as far as can be known.
#[derive(Clone, Debug, PartialEq)]
pub enum CallOutcome {
    /// It took effect and returned this.
    Done { result: Arc<Value>, cost_micros: u64 },
    /// It certainly had no effect.
    NotDone(ToolFailure),
    /// It may or may not have had its effect.
    Maybe(ToolFailure),
}

/// Why a call failed. Plain data: it goes into the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFailure {
    pub category: FailureCategory,
    pub message: String,
    /// The tool asked not to be called again before this has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Millis>,
}

impl ToolFailure {
    pub fn new(category: FailureCategory, message: impl Into<String>) -> ToolFailure {
        ToolFailure { category, message: message.into(), retry_after: None }
    }
}

impl fmt::Display for ToolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.category.as_str(), self.message)
    }
}

/// The kinds of failure a retry rule can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCategory {
    InvalidInput,
    Unauthorized,
    NotFound,
    Conflict,
    RateLimited,
    Unavailable,
    Timeout,
    Cancelled,
    ToolError,
    Protocol,
    Internal,
}

impl FailureCategory {
    pub const ALL: [FailureCategory; 11] = [
        FailureCategory::InvalidInput,
        FailureCategory::Unauthorized,
        FailureCategory::NotFound,
        FailureCategory::Conflict,
        FailureCategory::RateLimited,
        FailureCategory::Unavailable,
        FailureCategory::Timeout,
        FailureCategory::Cancelled,
        FailureCategory::ToolError,
        FailureCategory::Protocol,
        FailureCategory::Internal,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            FailureCategory::InvalidInput => "invalid_input",
            FailureCategory::Unauthorized => "unauthorized",
            FailureCategory::NotFound => "not_found",
            FailureCategory::Conflict => "conflict",
            FailureCategory::RateLimited => "rate_limited",
            FailureCategory::Unavailable => "unavailable",
            FailureCategory::Timeout => "timeout",
            FailureCategory::Cancelled => "cancelled",
            FailureCategory::ToolError => "tool_error",
            FailureCategory::Protocol => "protocol",
            FailureCategory::Internal => "internal",
        }
    }
}

/// A question a tool asks during a call. Its text comes from the tool and is untrusted.
#[derive(Clone, Debug, PartialEq)]
pub struct Elicitation {
    pub message: String,
    /// JSON Schema of a flat object.
    pub schema: Arc<Value>,
}
