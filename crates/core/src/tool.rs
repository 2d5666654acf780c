//! Tools, how safe their calls are, and how a call ends.

pub mod attempts;
pub mod catalog;
pub mod report;

use crate::hash::Hash;
use crate::id::ToolName;
use crate::limits::{KEY_WINDOW_DEFAULT, TIMEOUT_MAX};
use crate::text::quoted;
use crate::time::Millis;
use attempts::AttemptSettings;
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
    /// Every call is sent with its key, beside the parameters: in a header of a request.
    #[serde(default, skip_serializing_if = "is_false")]
    pub sends_key: bool,
    /// How long a call may act on after its time is up: its process is killed then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace: Option<Millis>,
    /// How long the tool remembers a key, by operator configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_window: Option<Millis>,
    /// By operator configuration.
    #[serde(default, skip_serializing_if = "AttemptSettings::is_empty")]
    pub attempts: AttemptSettings,
    /// Hash of the definition as served; a plan pins it.
    pub definition: Hash,
}

impl Tool {
    /// This tool with the stricter of its settings and those of `now`. What is no promise of the operator, such as the
    /// timeout of a plan that gives none, stays.
    pub fn tightened(&self, now: &Tool) -> Tool {
        let mut tool = self.clone();
        if now.safety > tool.safety {
            (tool.safety, tool.safety_source) = (now.safety, now.safety_source);
        }
        // A key in another parameter is not honoured any more.
        tool.key_parameter = tool.key_parameter.filter(|key| now.key_parameter.as_ref() == Some(key));
        // No promises: how its calls are made now.
        (tool.sends_key, tool.grace) = (now.sends_key, now.grace);
        let window = |tool: &Tool| tool.key_window.unwrap_or(KEY_WINDOW_DEFAULT);
        if window(now) < window(&tool) {
            tool.key_window = Some(window(now));
        }
        let longest = |tool: &Tool| tool.attempts.timeout_max.unwrap_or(TIMEOUT_MAX);
        if longest(now) < longest(&tool) {
            tool.attempts.timeout_max = now.attempts.timeout_max;
            tool.attempts.timeout = tool.attempts.timeout.map(|timeout| timeout.min(longest(now)));
        }
        tool
    }
}

fn is_false(value: &bool) -> bool {
    !value
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
    /// Servers that cannot be reached now, and why. Their tools are as last known, or not known at all.
    pub unreachable: BTreeMap<String, String>,
}

impl ToolCatalog {
    /// Whether the server of a tool cannot be reached now.
    pub fn is_unreachable(&self, tool: &str) -> bool {
        tool.split_once('.').is_some_and(|(server, _)| self.unreachable.contains_key(server))
    }

    /// The tools of the same server as this one, as far as they are known.
    pub fn beside<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a str> + Clone {
        beside(tool, self.tools.keys().map(ToolName::as_str))
    }
}

/// Of these tools, those of the same server as this one.
pub fn beside<'a>(
    tool: &'a str,
    tools: impl Iterator<Item = &'a str> + Clone,
) -> impl Iterator<Item = &'a str> + Clone {
    let server = tool.split_once('.').map(|(server, _)| server);
    tools.filter(move |other| server.is_some() && other.split_once('.').map(|(server, _)| server) == server)
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

/// JSON Schema of the result of an MCP tool that declares none: the text of its answer. Plans are checked with it; the
/// tool itself promised nothing.
pub fn undeclared_output() -> Value {
    serde_json::json!({
        "type": "object",
        "required": ["text", "content"],
        "properties": {
            "text": {"type": "string", "description": "all text of the answer"},
            "content": {"type": "array", "items": {"type": "object"}, "description": "the parts of the answer"},
            "json": {"description": "the text as JSON, where it is an object or a list"},
        },
    })
}

/// How the message of [`ToolFailure::answered`] begins.
const ANSWERED: &str = "the tool answered, but ";

impl ToolFailure {
    pub fn new(category: FailureCategory, message: impl Into<String>) -> ToolFailure {
        ToolFailure { category, message: message.into(), retry_after: None }
    }

    /// The tool answered, but its result cannot be used: whatever it was to do, it has done.
    pub fn answered(why: &str) -> ToolFailure {
        ToolFailure::new(FailureCategory::Protocol, format!("{ANSWERED}{why}"))
    }

    /// Whether the tool says with it that it has done its work.
    pub fn is_answer(&self) -> bool {
        self.category == FailureCategory::Protocol && self.message.starts_with(ANSWERED)
    }

    /// Whether it says only that an answer was no longer waited for.
    pub fn is_impatience(&self) -> bool {
        matches!(self.category, FailureCategory::Timeout | FailureCategory::Cancelled)
    }

    /// Returns the category, and the message as data: on one line, in quotation marks, cut to `chars_max`.
    pub fn quoted(&self, chars_max: usize) -> String {
        match self.message.is_empty() {
            true => self.category.as_str().to_owned(),
            false => format!("{}: {}", self.category.as_str(), quoted(&self.message, chars_max)),
        }
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
    /// What the connector needs to continue the call with the answer, also in another process. Without it a question
    /// ends with the connection it came over.
    pub continuation: Option<Arc<Value>>,
}
