//! The Tools page: every server with its tools, health, figures and errors.

pub(super) mod attempt;
pub(super) mod tool;

use super::format::{self, StatusBadge, TimeLabel};
use super::page::{self, FormRequest, PageRequest, PageResult};
use super::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::{Path, State};
use rutter_app::app::App;
use rutter_app::wording::span;
use rutter_core::id::ToolName;
use rutter_core::port::tools::ServerSelection;
use rutter_core::text::cut;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::report::{BreakerReport, ConnectorReport, LastToolError, ServerReport, ToolReport, ToolSummary};
use rutter_core::tool::{Safety, SafetySource};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Tools shown per server, unless only that server is listed.
const TOOLS_MAX: usize = 40;
const FOUND_MAX: usize = 500;
/// How long the page waits for servers to list their tools; slower ones appear later.
const ASK_MAX: Duration = Duration::from_secs(10);

#[derive(Template)]
#[template(path = "tools.html")]
struct ToolsPage {
    shell: PageShell,
    text: String,
    server: String,
    servers: Vec<ServerPanel>,
    /// All servers, whatever the filter.
    names: Vec<String>,
    /// Some servers have not listed their tools yet.
    has_idle: bool,
}

struct ServerPanel {
    name: String,
    href: String,
    trusted: bool,
    state: StatusBadge,
    breaker: StatusBadge,
    /// Why it does not work, newest reason first, and since when.
    trouble: Vec<(String, Option<TimeLabel>)>,
    /// Its last output before it went down.
    stderr: String,
    can_reset: bool,
    figures: CallFigures,
    rows: Vec<ToolTableRow>,
    /// How many more tools there are.
    more: usize,
    hidden: usize,
    left_out: Vec<(String, String)>,
    doubts: Vec<String>,
}

/// One tool as a row of the list.
struct ToolTableRow {
    name: String,
    href: String,
    title: String,
    safety: StatusBadge,
    source: &'static str,
    figures: CallFigures,
}

/// Figures of calls since this server started.
pub(super) struct CallFigures {
    pub(super) calls: String,
    /// A one-line summary.
    pub(super) words: String,
    pub(super) in_flight: u64,
    /// The error rate, as text.
    pub(super) errors: String,
    pub(super) has_errors: bool,
    pub(super) p50: String,
    pub(super) p95: String,
    pub(super) p99: String,
    pub(super) last_error: Option<(String, TimeLabel)>,
}

pub(super) async fn show(State(app): State<Arc<App>>, request: PageRequest) -> PageResult {
    let shell = PageShell::open(&app, &request, PageSection::Tools, "Tools").await?;
    let now = shell.now;
    let text = request.query_value("text").unwrap_or_default().to_owned();
    let server = request.query_value("server").unwrap_or_default().to_owned();
    let found: Option<BTreeSet<ToolName>> =
        (!text.trim().is_empty()).then(|| app.search_tools(&text, FOUND_MAX).into_iter().collect());
    let reports = app.servers();
    let filter = reports.iter().filter(|report| server.is_empty() || report.server == server);
    let most = if server.is_empty() { TOOLS_MAX } else { usize::MAX };
    let mut servers: Vec<ServerPanel> =
        filter.map(|report| ServerPanel::of(report, found.as_ref(), most, now)).collect();
    if found.is_some() {
        servers.retain(|server| !server.rows.is_empty());
    }
    let has_idle = reports.iter().any(|report| report.connector == ConnectorReport::Idle && report.tools.is_empty());
    let names = reports.into_iter().map(|report| report.server).collect();
    page::render(&ToolsPage { shell: shell.live("/api/v1/events"), text, server, servers, names, has_idle })
}

/// Lists the tools of every server again; starts servers that are not running.
pub(super) async fn ask(State(app): State<Arc<App>>, form: FormRequest) -> PageResult {
    let caller = form.request.principal;
    // A server that is starting continues to start when the wait is over.
    let asking = tokio::spawn(async move { app.catalog(&caller, ServerSelection::All).await });
    if let Ok(Ok(asked)) = tokio::time::timeout(ASK_MAX, asking).await {
        asked?;
    }
    Ok(page::redirect_with_flash("/tools", "asked"))
}

/// Closes the circuit breaker of a server.
pub(super) async fn reset(State(app): State<Arc<App>>, Path(server): Path<String>, form: FormRequest) -> PageResult {
    app.reset_breaker(&form.request.principal, &server)?;
    Ok(page::redirect_with_flash(form.back(), "reset"))
}

impl ServerPanel {
    fn of(report: &ServerReport, found: Option<&BTreeSet<ToolName>>, most: usize, now: Timestamp) -> ServerPanel {
        let fits = |tool: &&ToolReport| found.is_none_or(|found| found.contains(&tool.name));
        let tools: Vec<&ToolReport> = report.tools.iter().filter(fits).collect();
        let mut trouble = Vec::new();
        let breaker = match &report.breaker {
            BreakerReport::Closed { failures: 0 } => StatusBadge::like("completed", "closed"),
            BreakerReport::Closed { failures } => {
                let calls = if *failures == 1 { "call" } else { "calls" };
                trouble.push((format!("the last {failures} {calls} failed; after more the breaker opens"), None));
                StatusBadge::like("waiting", "closed")
            }
            BreakerReport::Open { since, rest, reason } => {
                let rest = span(*rest);
                trouble.push((format!("not called for {rest}: {reason}"), Some(TimeLabel::of(*since, now))));
                StatusBadge::like("failed", "open")
            }
            BreakerReport::HalfOpen { since, reason } => {
                let message = format!("the next call decides whether it closes: {reason}");
                trouble.push((message, Some(TimeLabel::of(*since, now))));
                StatusBadge::like("waiting", "half open")
            }
        };
        let (state, stderr) = match &report.connector {
            ConnectorReport::Idle => (StatusBadge::like("skipped", "not started"), String::new()),
            ConnectorReport::Starting => (StatusBadge::like("running", "starting"), String::new()),
            ConnectorReport::Ready => (StatusBadge::like("completed", "ready"), String::new()),
            ConnectorReport::Down { reason, last_words } => {
                trouble.push((reason.clone(), None));
                (StatusBadge::like("failed", "down"), last_words.join("\n"))
            }
        };
        if let Some(failure) = &report.failure {
            let message = format!("its tools could not be listed: {}", failure.failure);
            trouble.push((message, Some(TimeLabel::of(failure.at, now))));
        }
        ServerPanel {
            name: report.server.clone(),
            href: format!("/tools{}", format::query(&[("server".to_owned(), report.server.clone())])),
            trusted: report.trusted,
            can_reset: !matches!(report.breaker, BreakerReport::Closed { failures: 0 }),
            state,
            breaker,
            trouble,
            stderr,
            figures: CallFigures::of_all(&report.tools, now),
            more: tools.len().saturating_sub(most),
            rows: tools.into_iter().take(most).map(|tool| ToolTableRow::of(tool, now)).collect(),
            hidden: report.hidden,
            left_out: report.left_out.iter().map(|left| (left.name.clone(), left.reason.clone())).collect(),
            doubts: report.doubts.clone(),
        }
    }
}

impl ToolTableRow {
    fn of(report: &ToolReport, now: Timestamp) -> ToolTableRow {
        ToolTableRow {
            name: report.name.to_string(),
            href: address(&report.name),
            title: report.title.clone(),
            safety: safety(report.safety),
            source: source(report.safety_source),
            figures: CallFigures::of(&report.stats, now),
        }
    }
}

impl CallFigures {
    pub(super) fn of(stats: &ToolSummary, now: Timestamp) -> CallFigures {
        let wrong = stats.not_done + stats.maybe;
        let ended = stats.done + wrong;
        let ms = |ms: Option<u64>| ms.map_or_else(|| "–".to_owned(), |ms| span(Millis(ms)));
        let errors = match (wrong, ended) {
            (0, 0) => "–".to_owned(),
            (wrong, ended) => format!("{:.1} %", wrong as f64 * 100.0 / ended as f64),
        };
        let p95 = ms(stats.latency.map(|latency| latency.p95_ms));
        CallFigures {
            calls: format::count(stats.calls),
            words: match stats.calls {
                0 => "not called yet".to_owned(),
                1 => format!("1 call, {errors} errors, p95 {p95}"),
                calls => format!("{} calls, {errors} errors, p95 {p95}", format::count(calls)),
            },
            in_flight: stats.in_flight,
            errors,
            has_errors: wrong > 0,
            p50: ms(stats.latency.map(|latency| latency.p50_ms)),
            p95,
            p99: ms(stats.latency.map(|latency| latency.p99_ms)),
            last_error: stats.last_error.as_ref().map(|last| last_error_text(last, now)),
        }
    }

    /// All tools of a server together. Percentiles cannot be added, so those of the slowest tool are shown.
    fn of_all(tools: &[ToolReport], now: Timestamp) -> CallFigures {
        let mut all = ToolSummary::default();
        for ToolReport { stats, .. } in tools {
            all.calls += stats.calls;
            all.done += stats.done;
            all.not_done += stats.not_done;
            all.maybe += stats.maybe;
            all.in_flight += stats.in_flight;
            all.latency = all.latency.into_iter().chain(stats.latency).max_by_key(|latency| latency.p95_ms);
            let last = all.last_error.take().into_iter().chain(stats.last_error.clone());
            all.last_error = last.max_by_key(|last| last.at);
        }
        CallFigures::of(&all, now)
    }
}

fn last_error_text(last: &LastToolError, now: Timestamp) -> (String, TimeLabel) {
    (cut(&last.failure.to_string(), 300), TimeLabel::of(last.at, now))
}

pub(super) fn address(tool: &ToolName) -> String {
    format!("/tools/{}", format::encoded(tool.as_str()))
}

pub(super) fn safety(safety: Safety) -> StatusBadge {
    match safety {
        Safety::ReadOnly => StatusBadge::like("completed", "read-only"),
        Safety::Idempotent => StatusBadge::like("running", "idempotent"),
        Safety::Once => StatusBadge::like("waiting", "once"),
    }
}

pub(super) fn source(source: SafetySource) -> &'static str {
    match source {
        SafetySource::Configured => "set by the operator",
        SafetySource::TrustedHint => "declared by the server, which is trusted",
        SafetySource::Unknown => "not declared, so the strictest applies",
    }
}
