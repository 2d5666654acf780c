//! A tool server: its connector, circuit breaker and tools.

use super::FailureView;
use rutter_core::text::spelled;
use rutter_core::time::calendar::utc;
use rutter_core::tool::report::{BreakerReport, ConnectorReport, ServerReport, ToolReport, ToolSummary};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Server")]
pub struct ServerView {
    pub server: String,
    pub trusted: bool,
    pub connector: ConnectorView,
    pub breaker: BreakerView,
    /// Why its tools could not be listed the last time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<TimedFailureView>,
    pub tools: Vec<ServerToolView>,
    /// Tools the operator has excluded.
    pub hidden: usize,
    /// Tools that are not offered, and why.
    pub left_out: Vec<ExcludedToolView>,
    /// Warnings for the operator.
    pub doubts: Vec<String>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Connector")]
pub struct ConnectorView {
    /// `idle`, `starting`, `ready` or `down`.
    pub state: String,
    /// Why it is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The last lines its process wrote, if it is down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_words: Option<Vec<String>>,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Breaker")]
pub struct BreakerView {
    /// `closed`, `open` or `half_open`.
    pub state: String,
    /// Failures in a row while it is closed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// How long it stays open, from `since` on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A failure, and when it happened.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "TimedFailure")]
pub struct TimedFailureView {
    pub at: String,
    pub failure: FailureView,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ExcludedTool")]
pub struct ExcludedToolView {
    pub name: String,
    pub reason: String,
}

#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ServerTool")]
pub struct ServerToolView {
    pub name: String,
    pub title: String,
    pub safety: String,
    pub safety_source: String,
    pub definition: String,
    pub stats: ToolStatsView,
}

/// Outcomes of a tool's calls since the process started.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "ToolStats")]
pub struct ToolStatsView {
    pub calls: u64,
    pub done: u64,
    pub not_done: u64,
    pub maybe: u64,
    pub in_flight: u64,
    /// The number of failures by category.
    pub errors: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<TimedFailureView>,
    /// Only of calls that reached the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency: Option<LatencyView>,
}

/// Upper bounds of percentiles.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Latency")]
pub struct LatencyView {
    pub p50_ms: u64,
    pub p95_ms: u64,
    pub p99_ms: u64,
}

impl ServerView {
    pub fn of(report: &ServerReport) -> ServerView {
        let left_out = report.left_out.iter();
        ServerView {
            server: report.server.clone(),
            trusted: report.trusted,
            connector: ConnectorView::of(&report.connector),
            breaker: BreakerView::of(&report.breaker),
            failure: report
                .failure
                .as_ref()
                .map(|failed| TimedFailureView { at: utc(failed.at), failure: FailureView::of(&failed.failure) }),
            tools: report.tools.iter().map(ServerToolView::of).collect(),
            hidden: report.hidden,
            left_out: left_out
                .map(|tool| ExcludedToolView { name: tool.name.clone(), reason: tool.reason.clone() })
                .collect(),
            doubts: report.doubts.clone(),
        }
    }
}

impl ConnectorView {
    fn of(connector: &ConnectorReport) -> ConnectorView {
        let state = |state: &str| ConnectorView { state: state.to_owned(), reason: None, last_words: None };
        match connector {
            ConnectorReport::Idle => state("idle"),
            ConnectorReport::Starting => state("starting"),
            ConnectorReport::Ready => state("ready"),
            ConnectorReport::Down { reason, last_words } => {
                ConnectorView { reason: Some(reason.clone()), last_words: Some(last_words.clone()), ..state("down") }
            }
        }
    }
}

impl BreakerView {
    fn of(breaker: &BreakerReport) -> BreakerView {
        let state = |state: &str| BreakerView {
            state: state.to_owned(),
            failures: None,
            since: None,
            rest_ms: None,
            reason: None,
        };
        match breaker {
            BreakerReport::Closed { failures } => BreakerView { failures: Some(*failures), ..state("closed") },
            BreakerReport::Open { since, rest, reason } => BreakerView {
                since: Some(utc(*since)),
                rest_ms: Some(rest.0),
                reason: Some(reason.clone()),
                ..state("open")
            },
            BreakerReport::HalfOpen { since, reason } => {
                BreakerView { since: Some(utc(*since)), reason: Some(reason.clone()), ..state("half_open") }
            }
        }
    }
}

impl ServerToolView {
    fn of(tool: &ToolReport) -> ServerToolView {
        ServerToolView {
            name: tool.name.to_string(),
            title: tool.title.clone(),
            safety: tool.safety.as_str().to_owned(),
            safety_source: spelled(&tool.safety_source),
            definition: tool.definition.to_string(),
            stats: ToolStatsView::of(&tool.stats),
        }
    }
}

impl ToolStatsView {
    fn of(stats: &ToolSummary) -> ToolStatsView {
        ToolStatsView {
            calls: stats.calls,
            done: stats.done,
            not_done: stats.not_done,
            maybe: stats.maybe,
            in_flight: stats.in_flight,
            errors: stats.errors.iter().map(|(category, count)| (category.as_str().to_owned(), *count)).collect(),
            last_error: stats
                .last_error
                .as_ref()
                .map(|failed| TimedFailureView { at: utc(failed.at), failure: FailureView::of(&failed.failure) }),
            latency: stats.latency.map(|latency| LatencyView {
                p50_ms: latency.p50_ms,
                p95_ms: latency.p95_ms,
                p99_ms: latency.p99_ms,
            }),
        }
    }
}
