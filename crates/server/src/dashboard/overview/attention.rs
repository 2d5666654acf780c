//! Everything somebody should look at, the most pressing first.

use crate::dashboard::format::{Id, Look, Moment};
use crate::desk::Desk;
use crate::fault::Fault;
use crate::watch::alert::Alert;
use crate::watch::rule::Severity;
use futures::future::join_all;
use rutter_core::execution::Identity;
use rutter_core::id::TenantId;
use rutter_core::port::query::{Between, ExecutionFilter, ExecutionSummary, History, Page};
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::report::{BreakerReport, ConnectorReport, ServerReport};

/// Of each kind; the rest is behind the link.
const SHOWN: u32 = 6;

pub(super) struct Concern {
    pub(super) look: Look,
    pub(super) href: String,
    pub(super) title: String,
    pub(super) detail: String,
    pub(super) at: Option<Moment>,
}

pub(super) async fn concerns(desk: &Desk, tenant: &TenantId, now: Timestamp) -> Result<Vec<Concern>, Fault> {
    let mut concerns = store(desk).await?;
    concerns.extend(desk.engine.broken().into_iter().map(|(execution, why)| Concern {
        look: Look::like("failed", "broken"),
        href: Id::execution(execution.as_str()).href,
        title: format!("{execution} cannot go on"),
        detail: why,
        at: None,
    }));
    concerns.extend(questions(desk, tenant, now).await?);
    let alerts = desk.watch.firing(tenant);
    // What is the matter with executions stands here anyway.
    let alerts = alerts.iter().filter(|alert| alert.execution.is_none() && alert.acknowledged.is_none());
    let alerts: Vec<&Alert> = alerts.take(SHOWN as usize).collect();
    concerns.extend(alerts.iter().map(|alert| told(alert, now)));
    let reports = desk.tools.report();
    let untold = reports.iter().filter(|report| alerts.iter().all(|alert| alert.subject != report.server));
    concerns.extend(untold.filter_map(|server| server_in_trouble(server, now)));
    concerns.extend(failed(desk, tenant, now).await?);
    let counts = desk.outbox.counts(tenant, None).await?;
    concerns.extend((counts.dead > 0).then(|| Concern {
        look: Look::like("partial", "dead letters"),
        href: "/alerts#deliveries".to_owned(),
        title: format!("{} deliveries were given up", counts.dead),
        detail: "a webhook did not take them; they can be sent again".to_owned(),
        at: None,
    }));
    Ok(concerns)
}

/// Whether everything that happens can be written down.
async fn store(desk: &Desk) -> Result<Vec<Concern>, Fault> {
    let health = desk.proof.health().await?;
    let concern = |trouble: String| Concern {
        look: Look::like("failed", "store"),
        href: "/settings".to_owned(),
        title: "Nothing can be written".to_owned(),
        detail: trouble,
        at: None,
    };
    Ok(health.trouble.map(concern).into_iter().collect())
}

async fn questions(desk: &Desk, tenant: &TenantId, now: Timestamp) -> Result<Vec<Concern>, Fault> {
    let filter = ExecutionFilter { asking: true, ..ExecutionFilter::default() };
    let found = desk.query.executions(tenant, filter, Page::first(SHOWN)).await?;
    let looks = found.items.iter().map(|summary| async move {
        let identity = Identity { tenant: tenant.clone(), execution: summary.id.clone() };
        let view = desk.engine.view(&identity).await.ok()?;
        let ask = view.questions.first()?.to_string();
        Some(Concern {
            look: Look::of("waiting"),
            href: format!("{}#questions", Id::execution(summary.id.as_str()).href),
            title: summary.name.clone(),
            detail: ask,
            at: Some(Moment::of(view.last_at, now)),
        })
    });
    Ok(join_all(looks).await.into_iter().flatten().collect())
}

async fn failed(desk: &Desk, tenant: &TenantId, now: Timestamp) -> Result<Vec<Concern>, Fault> {
    let from = Some(Timestamp(now.0.saturating_sub_unsigned(Millis::hours(24).0)));
    let mut filter = History::Failed.filter();
    filter.statuses.retain(|status| matches!(status.as_str(), "failed" | "partial"));
    filter.opened = Between { from, until: None };
    let found = desk.query.executions(tenant, filter, Page::first(SHOWN)).await?;
    let concern = |summary: &ExecutionSummary| Concern {
        look: Look::of(summary.row.status.as_str()),
        href: Id::execution(summary.id.as_str()).href,
        title: summary.name.clone(),
        detail: format!("{} of {} steps settled", summary.row.settled, summary.row.total),
        at: Some(Moment::of(summary.row.last_at, now)),
    };
    Ok(found.items.iter().map(concern).collect())
}

fn told(alert: &Alert, now: Timestamp) -> Concern {
    let look = match alert.severity {
        Severity::Critical => Look::like("failed", "alert"),
        Severity::Warning => Look::like("retrying", "alert"),
        Severity::Info => Look::like("pending", "alert"),
    };
    Concern {
        look,
        href: "/alerts".to_owned(),
        title: alert.subject.clone(),
        detail: alert.text.clone(),
        at: Some(Moment::of(alert.since.0, now)),
    }
}

fn server_in_trouble(report: &ServerReport, now: Timestamp) -> Option<Concern> {
    let (word, detail, since) = match (&report.breaker, &report.connector) {
        (BreakerReport::Open { since, reason, .. }, _) => ("breaker open", reason.clone(), Some(*since)),
        (BreakerReport::HalfOpen { since, reason }, _) => ("on trial", reason.clone(), Some(*since)),
        (_, ConnectorReport::Down { reason, .. }) => ("down", reason.clone(), None),
        _ => return None,
    };
    Some(Concern {
        look: Look::like("in_doubt", word),
        href: "/tools".to_owned(),
        title: format!("server {}", report.server),
        detail,
        at: since.map(|since| Moment::of(since, now)),
    })
}
