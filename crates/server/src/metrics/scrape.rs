//! One answer to a monitoring system: what was counted, and how things stand at this moment.

use super::counts::{Counts, OTHER, VALUES_MAX};
use super::text::{Kind, Page};
use super::{Delivered, Metrics};
use crate::insight::Insight;
use rutter_core::execution::view::Status;
use rutter_core::id::TenantId;
use rutter_core::port::outbox::{DeliveryCounts, Outbox};
use rutter_core::port::proof::{Health, Proof};
use rutter_core::port::query::{Query, Totals};
use rutter_core::port::tools::Tools;
use rutter_core::tool::report::{BreakerReport, ConnectorReport, ServerReport};
use rutter_engine::Engine;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

/// Whom to ask how things stand.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    pub tenant: &'a TenantId,
    pub engine: &'a Engine,
    pub query: &'a dyn Query,
    pub proof: &'a dyn Proof,
    pub outbox: &'a dyn Outbox,
    pub tools: &'a dyn Tools,
    pub insight: Option<&'a Insight>,
}

impl std::fmt::Debug for Sources<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").field("tenant", self.tenant).finish_non_exhaustive()
    }
}

impl Metrics {
    /// The body of an answer. What could not be asked is left out, and counted as an error.
    pub async fn render(&self, sources: Sources<'_>) -> String {
        let Sources { tenant, engine, query, proof, outbox, tools, insight } = sources;
        let (totals, health, deliveries) =
            futures::join!(query.totals(tenant), proof.health(), outbox.counts(tenant, None));
        let errors = [totals.is_err(), health.is_err(), deliveries.is_err()];
        let errors = errors.into_iter().filter(|is_error| *is_error).count();
        let mut page = Page::default();
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

    fn write_process(&self, page: &mut Page, errors: usize) {
        let mut build = page.family("rutter_build_info", Kind::Gauge, "The version that runs.");
        build.sample(&[("version", self.version)], 1.0);
        let started = self.started_at.0 as f64 / 1_000.0;
        let help = "When the process started, in seconds since 1970.";
        page.single("process_start_time_seconds", Kind::Gauge, help, started);
        let help = "Sources that could not be asked for this answer.";
        page.single("rutter_scrape_errors", Kind::Gauge, help, errors as f64);
    }

    fn write_surfaces(&self, page: &mut Page) {
        let help = "Readers of event streams.";
        let readers = self.readers.load(Ordering::Relaxed) as f64;
        page.single("rutter_event_stream_readers", Kind::Gauge, help, readers);
        let mut spans =
            page.family("rutter_trace_spans_total", Kind::Counter, "Spans by what became of them.");
        spans.sample(&[("result", "sent")], self.spans_sent.load(Ordering::Relaxed) as f64);
        spans.sample(&[("result", "dropped")], self.spans_dropped.load(Ordering::Relaxed) as f64);
    }
}

fn write_engine(page: &mut Page, engine: &Engine) {
    let help = "Executions in memory.";
    page.single("rutter_executions_live", Kind::Gauge, help, engine.live() as f64);
    let help = "Executions this process cannot carry on because their journal does not fit the rules.";
    page.single("rutter_executions_broken", Kind::Gauge, help, engine.broken().len() as f64);
}

fn write_counts(page: &mut Page, counts: &Counts) {
    let help = "Executions that were opened, or ended, by status.";
    let mut family = page.family("rutter_executions_total", Kind::Counter, help);
    for status in ["opened", "completed", "partial", "failed", "cancelled", "compensated"] {
        let count = counts.executions.get(status).copied().unwrap_or(0);
        family.sample(&[("status", status)], count as f64);
    }
    let help = "From the opening of an execution to its end.";
    let mut family = page.family("rutter_execution_duration_seconds", Kind::Histogram, help);
    let times = &counts.execution_time;
    family.histogram(&[], &times.buckets(), times.count, times.sum());

    let help = "Steps by what became of them, and by the tool that was called last.";
    let mut family = page.family("rutter_steps_total", Kind::Counter, help);
    for (tool, of) in &counts.tools {
        for (status, count) in &of.steps {
            family.sample(&[("tool", tool), ("status", status)], *count as f64);
        }
    }
    let help = "Attempts by the call they made and how they ended.";
    let mut family = page.family("rutter_attempts_total", Kind::Counter, help);
    for (tool, of) in &counts.tools {
        for ((side, outcome), count) in &of.attempts {
            family.sample(&[("tool", tool), ("side", side), ("outcome", outcome)], *count as f64);
        }
    }
    let help = "From the first attempt of a step to its completion.";
    let mut family = page.family("rutter_step_duration_seconds", Kind::Histogram, help);
    for (tool, of) in counts.tools.iter().filter(|(_, of)| of.step_time.count > 0) {
        let times = &of.step_time;
        family.histogram(&[("tool", tool)], &times.buckets(), times.count, times.sum());
    }

    let help = "How late retries and expiries came after they were due.";
    let mut family = page.family("rutter_timer_lag_seconds", Kind::Histogram, help);
    let times = &counts.timer_lag;
    family.histogram(&[], &times.buckets(), times.count, times.sum());
    page.single(
        "rutter_replans_total",
        Kind::Counter,
        "Executions that got another plan.",
        counts.replans as f64,
    );
    let mut family =
        page.family("rutter_approvals_total", Kind::Counter, "Approvals by what became of them.");
    for result in ["asked", "granted", "denied", "expired"] {
        let count = counts.approvals.get(result).copied().unwrap_or(0);
        family.sample(&[("result", result)], count as f64);
    }
    let help = "Tries to deliver to a webhook, by result.";
    let mut family = page.family("rutter_webhook_deliveries_total", Kind::Counter, help);
    for delivered in Delivered::ALL {
        let count = counts.deliveries.get(&delivered).copied().unwrap_or(0);
        family.sample(&[("result", delivered.as_str())], count as f64);
    }
    let mut family =
        page.family("rutter_http_requests_total", Kind::Counter, "Requests by route and answer.");
    for ((route, code), count) in &counts.requests {
        family.sample(&[("route", route), ("code", &code.to_string())], *count as f64);
    }
    let help = "Records that were not counted here because there were too many at once.";
    page.single("rutter_metrics_missed_total", Kind::Counter, help, counts.missed as f64);
}

fn write_totals(page: &mut Page, totals: &Totals, insight: Option<&Insight>) {
    let mut family = page.family("rutter_executions", Kind::Gauge, "Executions on record, by status.");
    for status in Status::ALL {
        let count = totals.executions.get(status.as_str()).copied().unwrap_or(0);
        family.sample(&[("status", status.as_str())], count as f64);
    }
    page.single("rutter_plans", Kind::Gauge, "Plans on record.", totals.plans as f64);
    let help = "Entries ever written to the ledger.";
    page.single("rutter_ledger_entries", Kind::Gauge, help, totals.entries as f64);
    if let Some(insight) = insight {
        let behind = totals.entries.saturating_sub(insight.place());
        let help = "Entries that the analytics have not counted yet.";
        page.single("rutter_analytics_lag_entries", Kind::Gauge, help, behind as f64);
    }
}

fn write_health(page: &mut Page, health: &Health) {
    let help = "1 when nothing can be written.";
    let trouble = f64::from(u8::from(health.trouble.is_some()));
    page.single("rutter_store_trouble", Kind::Gauge, help, trouble);
    let help = "Free bytes where the database is.";
    page.single("rutter_disk_free_bytes", Kind::Gauge, help, health.free_bytes as f64);
    page.single("rutter_database_bytes", Kind::Gauge, "Size of the database.", health.database_bytes as f64);
    let help = "From asking the store to write to being on disk.";
    let mut family = page.family("rutter_journal_append_seconds", Kind::Histogram, help);
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
    page: &mut Page,
    engine: &Engine,
    health: Option<&Health>,
    deliveries: Option<&DeliveryCounts>,
) {
    let mut family = page.family("rutter_queue_depth", Kind::Gauge, "What waits for its turn, by queue.");
    family.sample(&[("queue", "executions")], engine.backlog() as f64);
    if let Some(health) = health {
        family.sample(&[("queue", "journal")], health.queue as f64);
    }
    if let Some(deliveries) = deliveries {
        family.sample(&[("queue", "webhooks")], deliveries.pending as f64);
    }
}

fn write_deliveries(page: &mut Page, deliveries: &DeliveryCounts) {
    let mut family = page.family("rutter_webhook_deliveries", Kind::Gauge, "Deliveries on record, by state.");
    let DeliveryCounts { pending, delivered, dead } = *deliveries;
    for (state, count) in [("pending", pending), ("delivered", delivered), ("dead", dead)] {
        family.sample(&[("state", state)], count as f64);
    }
}

fn write_servers(page: &mut Page, servers: &[ServerReport]) {
    // Reports are in the order of names, so the same servers have a label each time.
    let shown = servers.iter().take(VALUES_MAX);
    let help = "Breaker of a tool server: 0 closed, 1 half open, 2 open.";
    let mut family = page.family("rutter_breaker_state", Kind::Gauge, help);
    for server in shown.clone() {
        let state = match server.breaker {
            BreakerReport::Closed { .. } => 0.0,
            BreakerReport::HalfOpen { .. } => 1.0,
            BreakerReport::Open { .. } => 2.0,
        };
        family.sample(&[("server", &server.server)], state);
    }
    let mut family = page.family("rutter_tool_server_up", Kind::Gauge, "0 when a tool server is down.");
    for server in shown {
        let is_down = matches!(server.connector, ConnectorReport::Down { .. });
        family.sample(&[("server", &server.server)], f64::from(u8::from(!is_down)));
    }
    let mut family = page.family("rutter_tool_calls_in_flight", Kind::Gauge, "Calls under way, by tool.");
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
