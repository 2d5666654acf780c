//! What is known of every server and its tools, for people: who looks for a fault starts here.

use super::{Category, Failure, Safety, SafetySource};
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
    /// Why it could not say which tools it has, when it was last asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<ListFailure>,
    pub tools: Vec<ToolReport>,
    /// Tools the operator does not want to be offered.
    pub hidden: usize,
    pub left_out: Vec<LeftOut>,
    /// What somebody should look at: look-alikes, text nobody can see, settings for tools that are not there.
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
        /// What its process wrote last.
        last_words: Vec<String>,
    },
}

/// What people see of a breaker.
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
    pub failure: Failure,
}

/// A tool that is not offered, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
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

/// How the calls of a tool went since the start of the process.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ToolSummary {
    pub calls: u64,
    pub done: u64,
    pub not_done: u64,
    pub maybe: u64,
    pub in_flight: u64,
    pub errors: BTreeMap<Category, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
    /// Of calls that reached the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastError {
    pub at: Timestamp,
    pub failure: Failure,
}

/// Not more than this, for that share of the calls; a bit more than measured, never less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Latency {
    pub p50_ms: u64,
    pub p95_ms: u64,
    pub p99_ms: u64,
}
