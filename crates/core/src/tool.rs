//! What is known of tools, and how a call of one ends.

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

/// What repeating a call does. Ordered from harmless to careful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Safety {
    /// No effect at all.
    ReadOnly,
    /// Repeating it with the same arguments changes nothing more.
    Idempotent,
    /// Every call may have its own effect. What is unknown counts as this.
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

/// One tool as the registry knows it when a plan is checked. A saved plan keeps the ones it calls.
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
    /// The operator said so.
    Configured,
    /// The server's annotation, on a server the operator trusts.
    TrustedHint,
    /// Nobody said anything that counts.
    Unknown,
}

/// The tools a plan may name. Ordered, so that messages and hashes do not depend on luck.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolCatalog {
    pub tools: BTreeMap<ToolName, Arc<Tool>>,
}

/// How a call ended, as far as anyone can tell.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It took effect, and this came back.
    Done { result: Arc<Value>, cost_micros: u64 },
    /// It certainly had no effect.
    NotDone(Failure),
    /// It may or may not have had its effect.
    Maybe(Failure),
}

/// Why a call did not end well. Plain data: it goes into the journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    pub category: Category,
    pub message: String,
    /// The tool asked not to be called again before this has passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Millis>,
}

impl Failure {
    pub fn new(category: Category, message: impl Into<String>) -> Failure {
        Failure { category, message: message.into(), retry_after: None }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.category.as_str(), self.message)
    }
}

/// The kinds of failure a retry rule can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
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

impl Category {
    pub const ALL: [Category; 11] = [
        Category::InvalidInput,
        Category::Unauthorized,
        Category::NotFound,
        Category::Conflict,
        Category::RateLimited,
        Category::Unavailable,
        Category::Timeout,
        Category::Cancelled,
        Category::ToolError,
        Category::Protocol,
        Category::Internal,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Category::InvalidInput => "invalid_input",
            Category::Unauthorized => "unauthorized",
            Category::NotFound => "not_found",
            Category::Conflict => "conflict",
            Category::RateLimited => "rate_limited",
            Category::Unavailable => "unavailable",
            Category::Timeout => "timeout",
            Category::Cancelled => "cancelled",
            Category::ToolError => "tool_error",
            Category::Protocol => "protocol",
            Category::Internal => "internal",
        }
    }
}
