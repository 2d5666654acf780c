//! One scrape: counters, and gauges read at that moment.

use super::counts::{MetricCounts, OTHER, VALUES_MAX};
use super::text::{MetricKind, MetricsText};
use super::{DeliveryOutcome, ServerMetrics};
use crate::insight::TenantInsight;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::TenantId;
use rutter_core::port::outbox::{DeliveryCounts, DeliveryOutbox};
use rutter_core::port::proof::{LedgerProof, StoreHealth};
use rutter_core::port::query::{StoreQuery, StoreTotals};
use rutter_core::port::tools::ToolGateway;
use rutter_core::tool::report::{BreakerReport, ConnectorReport, ServerReport};
use rutter_engine::Engine;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// Where gauges are read from.
#[derive(Clone, Copy)]
pub struct MetricSources<'a> {
    pub tenant: &'a TenantId,
    pub engine: &'a Engine,
    pub query: &'a dyn StoreQuery,
    pub proof: &'a dyn LedgerProof,
    pub outbox: &'a dyn DeliveryOutbox,
    pub tools: &'a dyn ToolGateway,
    pub insight: Option<&'a TenantInsight>,
}

impl std::fmt::Debug for MetricSources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MetricSources").field("tenant", self.tenant).finish_non_exhaustive()
    }
}

impl ServerMetrics {
    /// The response body. Sources that fail are left out and counted as errors.
    pub async fn render(&self, sources: MetricSources<'_>) -> String {
        let MetricSources { tenant, engine, query, proof, outbox, tools, insight } = sources;
        let (totals, health, deliveries) =
            futures::join!(query.totals(tenant), proof.health(), outbox.counts(tenant, None));
        let errors = [totals.is_err(), health.is_err(), deliveries.is_err()];
        let errors = errors.into_iter().filter(|is_error| *is_error).count();
        let mut page = MetricsText::default();
        self.write_process(&mut page, errors);
        write_engine(&mut page, engine);
        write_counts(&mut page, &self.counts());
        if let Ok(totals) = &totals {
            write_totals(&mut page, totals, insight);
        }
        if let Ok(health) = &health {
            write_health(&mut page, health);
        }
        write_queues(&mut page, engine, health.as_ref().ok(), deliveries.as_ref().ok());
        if let Ok(deliveries) = &deliveries {
            write_deliveries(&mut page, deliveries);
        }
        write_servers(&mut page, &tools.report());
        self.write_surfaces(&mut page);
        page.text()
    }

    fn write_process(&self, page: &mut MetricsText, errors: usize) {
        let mut build = page.family("rutter_build_info", MetricKind::Gauge, "The running version.");
        build.sample(&[("version", self.version)], 1.0);
        let started = self.started_at.0 as f64 / 1_000.0;
        let help = "When the process started, in seconds since 1970.";
        page.single("process_start_time_seconds", MetricKind::Gauge, help, started);
        let help = "Sources that could not be read for this scrape.";
        page.single("rutter_scrape_errors", MetricKind::Gauge, help, errors as f64);
    }

    fn write_surfaces(&self, page: &mut MetricsText) {
        let help = "Readers of event streams.";
        let readers = self.readers.load(Ordering::Relaxed) as f64;
        page.single("rutter_event_stream_readers", MetricKind::Gauge, help, readers);
        let mut spans = page.family("rutter_trace_spans_total", MetricKind::Counter, "Spans by outcome.");
        spans.sample(&[("result", "sent")], self.spans_sent.load(Ordering::Relaxed) as f64);
        spans.sample(&[("result", "dropped")], self.spans_dropped.load(Ordering::Relaxed) as f64);
    }
}

fn write_engine(page: &mut MetricsText, engine: &Engine) {
    let seconds = |ms: i64| ms as f64 / 1_000.0;
    let help = "By how much the wall clock was set ahead while the process ran.";
    let followed_ms = engine.clock().followed_ms();
    page.single("rutter_clock_followed_seconds_total", MetricKind::Counter, help, seconds(followed_ms));
    let help = "By how much the wall clock is behind the recorded time; 0 within two seconds.";
    let behind_ms = engine.clock().behind().unwrap_or(0);
    page.single("rutter_clock_behind_seconds", MetricKind::Gauge, help, seconds(behind_ms));
    let help = "Executions in memory.";
    page.single("rutter_executions_live", MetricKind::Gauge, help, engine.active_count() as f64);
    let help = "Executions this process cannot run because their journal is invalid.";
    page.single("rutter_executions_broken", MetricKind::Gauge, help, engine.broken().len() as f64);
}

fn write_counts(page: &mut MetricsText, counts: &MetricCounts) {
    let help = "Executions opened or ended, by status.";
    let mut family = page.family("rutter_executions_total", MetricKind::Counter, help);
    for status in ["opened", "completed", "partial", "failed", "cancelled", "compensated"] {
        let count = counts.executions.get(status).copied().unwrap_or(0);
        family.sample(&[("status", status)], count as f64);
    }
    let help = "From the start of an execution to its end.";
    let mut family = page.family("rutter_execution_duration_seconds", MetricKind::Histogram, help);
    let times = &counts.execution_time;
    family.histogram(&[], &times.buckets(), times.count, times.sum());

    let help = "Steps by outcome and by the tool called last.";
    let mut family = page.family("rutter_steps_total", MetricKind::Counter, help);
    for (tool, of) in &counts.tools {
        for (status, count) in &of.steps {
            family.sample(&[("tool", tool), ("status", status)], *count as f64);
        }
    }
    let help = "Attempts by tool, kind of call and outcome.";
    let mut family = page.family("rutter_attempts_total", MetricKind::Counter, help);
    for (tool, of) in &counts.tools {
        for ((side, outcome), count) in &of.attempts {
            family.sample(&[("tool", tool), ("side", side), ("outcome", outcome)], *count as f64);
        }
    }
    let help = "From the first attempt of a step to its completion.";
    let mut family = page.family("rutter_step_duration_seconds", MetricKind::Histogram, help);
    for (tool, of) in counts.tools.iter().filter(|(_, of)| of.step_time.count > 0) {
        let times = &of.step_time;
        family.histogram(&[("tool", tool)], &times.buckets(), times.count, times.sum());
    }

    let help = "How late retries and expiries came after they were due.";
    let mut family = page.family("rutter_timer_lag_seconds", MetricKind::Histogram, help);
    let times = &counts.timer_lag;
    family.histogram(&[], &times.buckets(), times.count, times.sum());
    page.single("rutter_replans_total", MetricKind::Counter, "Executions that were replanned.", counts.replans as f64);
    let mut family = page.family("rutter_approvals_total", MetricKind::Counter, "Approvals by outcome.");
    for result in ["asked", "granted", "denied", "expired"] {
        let count = counts.approvals.get(result).copied().unwrap_or(0);
        family.sample(&[("result", result)], count as f64);
    }
    let help = "Acts refused for lack of a right, by the scope they need.";
    let mut family = page.family("rutter_refusals_total", MetricKind::Counter, help);
    for scope in ["operate", "approve", "admin"] {
        let count = counts.refusals.get(scope).copied().unwrap_or(0);
        family.sample(&[("scope", scope)], count as f64);
    }
    let help = "Webhook delivery attempts, by result.";
    let mut family = page.family("rutter_webhook_deliveries_total", MetricKind::Counter, help);
    for delivered in DeliveryOutcome::ALL {
        let count = counts.deliveries.get(&delivered).copied().unwrap_or(0);
        family.sample(&[("result", delivered.as_str())], count as f64);
    }
    let mut family =
        page.family("rutter_http_requests_total", MetricKind::Counter, "Requests by route and status code.");
    for ((route, code), count) in &counts.requests {
        family.sample(&[("route", route), ("code", &code.to_string())], *count as f64);
    }
    let help = "Updates that were not counted because too many came at once.";
    page.single("rutter_metrics_missed_total", MetricKind::Counter, help, counts.missed as f64);
}

fn write_totals(page: &mut MetricsText, totals: &StoreTotals, insight: Option<&TenantInsight>) {
    let mut family = page.family("rutter_executions", MetricKind::Gauge, "Stored executions, by status.");
    for status in ExecutionStatus::ALL {
        let count = totals.executions.get(status.as_str()).copied().unwrap_or(0);
        family.sample(&[("status", status.as_str())], count as f64);
    }
    page.single("rutter_plans", MetricKind::Gauge, "Stored plans.", totals.plans as f64);
    let help = "Entries ever written to the ledger.";
    page.single("rutter_ledger_entries", MetricKind::Gauge, help, totals.entries as f64);
    if let Some(insight) = insight {
        let behind = totals.entries.saturating_sub(insight.position());
        let help = "Entries that analytics have not counted yet.";
        page.single("rutter_analytics_lag_entries", MetricKind::Gauge, help, behind as f64);
    }
}

fn write_health(page: &mut MetricsText, health: &StoreHealth) {
    let help = "1 when the store is read-only.";
    let trouble = f64::from(u8::from(health.trouble.is_some()));
    page.single("rutter_store_trouble", MetricKind::Gauge, help, trouble);
    let help = "Free bytes on the disk of the database.";
    page.single("rutter_disk_free_bytes", MetricKind::Gauge, help, health.free_bytes as f64);
    page.single("rutter_database_bytes", MetricKind::Gauge, "Size of the database.", health.database_bytes as f64);
    let help = "From a write request to its commit on disk.";
    let mut family = page.family("rutter_journal_append_seconds", MetricKind::Histogram, help);
    let seconds = |micros: u64| match micros {
        u64::MAX => f64::INFINITY,
        micros => micros as f64 / 1_000_000.0,
    };
    let buckets: Vec<(f64, u64)> =
        health.append_micros.iter().map(|(bound, count)| (seconds(*bound), *count)).collect();
    let count = buckets.last().map_or(0, |(_, count)| *count);
    family.histogram(&[], &buckets, count, health.append_micros_sum as f64 / 1_000_000.0);
}

fn write_queues(
    page: &mut MetricsText,
    engine: &Engine,
    health: Option<&StoreHealth>,
    deliveries: Option<&DeliveryCounts>,
) {
    let mut family = page.family("rutter_queue_depth", MetricKind::Gauge, "Waiting items, by queue.");
    family.sample(&[("queue", "executions")], engine.backlog() as f64);
    if let Some(health) = health {
        family.sample(&[("queue", "journal")], health.queue as f64);
    }
    if let Some(deliveries) = deliveries {
        family.sample(&[("queue", "webhooks")], deliveries.pending as f64);
    }
}

fn write_deliveries(page: &mut MetricsText, deliveries: &DeliveryCounts) {
    let mut family = page.family("rutter_webhook_deliveries", MetricKind::Gauge, "Stored deliveries, by state.");
    let DeliveryCounts { pending, delivered, dead } = *deliveries;
    for (state, count) in [("pending", pending), ("delivered", delivered), ("dead", dead)] {
        family.sample(&[("state", state)], count as f64);
    }
}

fn write_servers(page: &mut MetricsText, servers: &[ServerReport]) {
    // Reports are sorted by name, so the same servers have a label each time.
    let take = servers.iter().take(VALUES_MAX);
    let help = "Circuit breaker of a tool server: 0 closed, 1 half open, 2 open.";
    let mut family = page.family("rutter_breaker_state", MetricKind::Gauge, help);
    for server in take.clone() {
        let state = match server.breaker {
            BreakerReport::Closed { .. } => 0.0,
            BreakerReport::HalfOpen { .. } => 1.0,
            BreakerReport::Open { .. } => 2.0,
        };
        family.sample(&[("server", &server.server)], state);
    }
    let mut family = page.family("rutter_tool_server_up", MetricKind::Gauge, "0 when a tool server is down.");
    for server in take {
        let is_down = matches!(server.connector, ConnectorReport::Down { .. });
        family.sample(&[("server", &server.server)], f64::from(u8::from(!is_down)));
    }
    let mut family = page.family("rutter_tool_calls_in_flight", MetricKind::Gauge, "Calls in flight, by tool.");
    let mut named = BTreeSet::new();
    let mut rest = 0;
    for tool in servers.iter().flat_map(|server| &server.tools) {
        if named.len() < VALUES_MAX {
            named.insert(tool.name.as_str());
            family.sample(&[("tool", tool.name.as_str())], tool.stats.in_flight as f64);
        } else {
            rest += tool.stats.in_flight;
        }
    }
    if named.len() == VALUES_MAX {
        family.sample(&[("tool", OTHER)], rest as f64);
    }
}
