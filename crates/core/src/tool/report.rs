//! The state of every server and its tools, for operators who look for a fault.

use super::{FailureCategory, Safety, SafetySource, ToolFailure};
use crate::hash::Hash;
use crate::id::ToolName;
use crate::time::{Millis, Timestamp};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerReport {
    pub server: String,
    pub trusted: bool,
    pub connector: ConnectorReport,
    pub breaker: BreakerReport,
    /// Why its tools could not be listed the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<ListFailure>,
    pub tools: Vec<ToolReport>,
    /// Tools the operator has excluded.
    pub hidden: usize,
    pub left_out: Vec<ExcludedTool>,
    /// Warnings for the operator: look-alike names, hidden text, settings for tools that do not exist.
    pub doubts: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ConnectorReport {
    Idle,
    Starting,
    Ready,
    Down {
        reason: String,
        /// The last lines its process wrote.
        last_words: Vec<String>,
    },
}

/// The state of a circuit breaker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum BreakerReport {
    Closed {
        failures: u32,
    },
    Open {
        since: Timestamp,
        rest: Millis,
        reason: String,
    },
    /// The next call is a trial, or one is under way.
    HalfOpen {
        since: Timestamp,
        reason: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ListFailure {
    pub at: Timestamp,
    pub failure: ToolFailure,
}

/// A tool that is not offered, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExcludedTool {
    pub name: String,
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ToolReport {
    pub name: ToolName,
    pub title: String,
    pub safety: Safety,
    pub safety_source: SafetySource,
    pub definition: Hash,
    pub stats: ToolSummary,
}

/// Outcomes of a tool's calls since the process started.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ToolSummary {
    pub calls: u64,
    pub done: u64,
    pub not_done: u64,
    pub maybe: u64,
    pub in_flight: u64,
    pub errors: BTreeMap<FailureCategory, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastToolError>,
    /// Only of calls that reached the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyPercentiles>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastToolError {
    pub at: Timestamp,
    pub failure: ToolFailure,
}

/// Upper bounds of the latency percentiles: slightly more than measured, never less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LatencyPercentiles {
    pub p50_ms: u64,
    pub p95_ms: u64,
    pub p99_ms: u64,
}
