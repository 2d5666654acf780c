//! Every server with its tools: whether it works, how fast, what went wrong last, and what it left out.

pub(super) mod attempt;
pub(super) mod tool;

use super::format::{self, Look, Moment};
use super::page::{self, Answer, Posted, Visitor};
use super::shell::{Section, Shell};
use crate::auth::{Scope, require};
use crate::desk::Desk;
use crate::fault::Fault;
use crate::words::span;
use askama::Template;
use axum::extract::{Path, State};
use rutter_core::id::ToolName;
use rutter_core::port::tools::Servers;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::report::{
    BreakerReport, ConnectorReport, LastError, ServerReport, ToolReport, ToolSummary,
};
use rutter_core::tool::{Safety, SafetySource};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Of one server, unless only that server is asked for.
const TOOLS_MAX: usize = 40;
const FOUND_MAX: usize = 500;
/// How long a page waits for servers that are asked; those that take longer are there the next time.
const ASK_MAX: Duration = Duration::from_secs(10);

#[derive(Template)]
#[template(path = "tools.html")]
struct Tools {
    shell: Shell,
    text: String,
    server: String,
    servers: Vec<Server>,
    /// Every server there is, whatever is searched for.
    names: Vec<String>,
    /// Some were never asked which tools they have.
    has_idle: bool,
}

struct Server {
    name: String,
    href: String,
    trusted: bool,
    state: Look,
    breaker: Look,
    /// Why it does not work, newest reason first, and since when.
    trouble: Vec<(String, Option<Moment>)>,
    /// What it wrote last before it went down.
    stderr: String,
    can_reset: bool,
    figures: Figures,
    rows: Vec<Row>,
    /// How many more there are.
    more: usize,
    hidden: usize,
    left_out: Vec<(String, String)>,
    doubts: Vec<String>,
}

/// One tool as a line of the list.
struct Row {
    name: String,
    href: String,
    title: String,
    safety: Look,
    source: &'static str,
    figures: Figures,
}

/// How calls went since this server started.
pub(super) struct Figures {
    pub(super) calls: String,
    /// All of it on one line.
    pub(super) words: String,
    pub(super) in_flight: u64,
    /// Calls that failed or may have, in words.
    pub(super) errors: String,
    pub(super) has_errors: bool,
    pub(super) p50: String,
    pub(super) p95: String,
    pub(super) p99: String,
    pub(super) last_error: Option<(String, Moment)>,
}

pub(super) async fn show(State(desk): State<Arc<Desk>>, visitor: Visitor) -> Answer {
    let shell = Shell::open(&desk, &visitor, Section::Tools, "Tools").await?;
    let now = shell.now;
    let text = visitor.asked("text").unwrap_or_default().to_owned();
    let server = visitor.asked("server").unwrap_or_default().to_owned();
    let found: Option<BTreeSet<ToolName>> =
        (!text.trim().is_empty()).then(|| desk.tools.search(&text, FOUND_MAX).into_iter().collect());
    let reports = desk.tools.report();
    let shown = reports.iter().filter(|report| server.is_empty() || report.server == server);
    let most = if server.is_empty() { TOOLS_MAX } else { usize::MAX };
    let mut servers: Vec<Server> =
        shown.map(|report| Server::of(report, found.as_ref(), most, now)).collect();
    if found.is_some() {
        servers.retain(|server| !server.rows.is_empty());
    }
    let has_idle =
        reports.iter().any(|report| report.connector == ConnectorReport::Idle && report.tools.is_empty());
    let names = reports.into_iter().map(|report| report.server).collect();
    page::show(&Tools { shell: shell.live("/api/v1/events"), text, server, servers, names, has_idle })
}

/// Asks every server which tools it has; those that were not started are.
pub(super) async fn ask(State(desk): State<Arc<Desk>>, posted: Posted) -> Answer {
    require(&posted.visitor.guest, Scope::Operate)?;
    let tools = Arc::clone(&desk.tools);
    // A server that is being started goes on with it when nobody waits any more.
    let asking = tokio::spawn(async move { tools.catalog(Servers::All).await });
    let _ = tokio::time::timeout(ASK_MAX, asking).await;
    Ok(page::go("/tools", "asked"))
}

/// Gives a server another chance at once.
pub(super) async fn reset(
    State(desk): State<Arc<Desk>>,
    Path(server): Path<String>,
    posted: Posted,
) -> Answer {
    require(&posted.visitor.guest, Scope::Admin)?;
    match desk.tools.reset(&server) {
        true => Ok(page::go(posted.back(), "reset")),
        false => Err(Fault::missing("server", &server).into()),
    }
}

impl Server {
    fn of(report: &ServerReport, found: Option<&BTreeSet<ToolName>>, most: usize, now: Timestamp) -> Server {
        let fits = |tool: &&ToolReport| found.is_none_or(|found| found.contains(&tool.name));
        let tools: Vec<&ToolReport> = report.tools.iter().filter(fits).collect();
        let mut trouble = Vec::new();
        let breaker = match &report.breaker {
            BreakerReport::Closed { failures: 0 } => Look::like("completed", "closed"),
            BreakerReport::Closed { failures } => {
                let calls = if *failures == 1 { "call" } else { "calls" };
                trouble.push((format!("the last {failures} {calls} failed; more, and it rests"), None));
                Look::like("waiting", "closed")
            }
            BreakerReport::Open { since, rest, reason } => {
                let rest = span(*rest);
                trouble.push((format!("it rests for {rest}: {reason}"), Some(Moment::of(*since, now))));
                Look::like("failed", "open")
            }
            BreakerReport::HalfOpen { since, reason } => {
                trouble.push((format!("the next call is a trial: {reason}"), Some(Moment::of(*since, now))));
                Look::like("waiting", "on trial")
            }
        };
        let (state, stderr) = match &report.connector {
            ConnectorReport::Idle => (Look::like("skipped", "not started"), String::new()),
            ConnectorReport::Starting => (Look::like("running", "starting"), String::new()),
            ConnectorReport::Ready => (Look::like("completed", "ready"), String::new()),
            ConnectorReport::Down { reason, last_words } => {
                trouble.push((reason.clone(), None));
                (Look::like("failed", "down"), last_words.join("\n"))
            }
        };
        if let Some(failure) = &report.failure {
            let said = format!("it could not say which tools it has: {}", failure.failure);
            trouble.push((said, Some(Moment::of(failure.at, now))));
        }
        Server {
            name: report.server.clone(),
            href: format!("/tools{}", format::query(&[("server".to_owned(), report.server.clone())])),
            trusted: report.trusted,
            can_reset: !matches!(report.breaker, BreakerReport::Closed { failures: 0 }),
            state,
            breaker,
            trouble,
            stderr,
            figures: Figures::of_all(&report.tools, now),
            more: tools.len().saturating_sub(most),
            rows: tools.into_iter().take(most).map(|tool| Row::of(tool, now)).collect(),
            hidden: report.hidden,
            left_out: report.left_out.iter().map(|left| (left.name.clone(), left.reason.clone())).collect(),
            doubts: report.doubts.clone(),
        }
    }
}

impl Row {
    fn of(report: &ToolReport, now: Timestamp) -> Row {
        Row {
            name: report.name.to_string(),
            href: address(&report.name),
            title: report.title.clone(),
            safety: safety(report.safety),
            source: source(report.safety_source),
            figures: Figures::of(&report.stats, now),
        }
    }
}

impl Figures {
    pub(super) fn of(stats: &ToolSummary, now: Timestamp) -> Figures {
        let wrong = stats.not_done + stats.maybe;
        let ended = stats.done + wrong;
        let ms = |ms: Option<u64>| ms.map_or_else(|| "–".to_owned(), |ms| span(Millis(ms)));
        let errors = match (wrong, ended) {
            (0, 0) => "–".to_owned(),
            (wrong, ended) => format!("{:.1} %", wrong as f64 * 100.0 / ended as f64),
        };
        let p95 = ms(stats.latency.map(|latency| latency.p95_ms));
        Figures {
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
            last_error: stats.last_error.as_ref().map(|last| said(last, now)),
        }
    }

    /// All tools of a server together. Times cannot be added up, so that the slowest tool speaks for all.
    fn of_all(tools: &[ToolReport], now: Timestamp) -> Figures {
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
        Figures::of(&all, now)
    }
}

fn said(last: &LastError, now: Timestamp) -> (String, Moment) {
    (crate::words::cut(&last.failure.to_string(), 300), Moment::of(last.at, now))
}

pub(super) fn address(tool: &ToolName) -> String {
    format!("/tools/{}", format::encoded(tool.as_str()))
}

pub(super) fn safety(safety: Safety) -> Look {
    match safety {
        Safety::ReadOnly => Look::like("completed", "read only"),
        Safety::Idempotent => Look::like("running", "idempotent"),
        Safety::Once => Look::like("waiting", "once"),
    }
}

pub(super) fn source(source: SafetySource) -> &'static str {
    match source {
        SafetySource::Configured => "the operator said so",
        SafetySource::TrustedHint => "the server says so, and is trusted",
        SafetySource::Unknown => "nobody said anything that counts",
    }
}
