//! Everything that needs attention, most urgent first.

use crate::format::{IdentifierLink, StatusBadge, TimeLabel};
use futures::future::join_all;
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::principal::Principal;
use rutter_app::rights::{Operation, may};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::TenantId;
use rutter_core::port::query::{ExecutionFilter, ExecutionSummary, HistoryFilter, Pagination, TimeRange};
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::report::{BreakerReport, ConnectorReport, ServerReport};
use rutter_observe::watch::alert::AlertRecord;
use rutter_observe::watch::rule::AlertSeverity;

/// Items of each kind; the link leads to the rest.
const ITEMS_PER_KIND: u32 = 6;

pub(super) struct AttentionItem {
    pub(super) look: StatusBadge,
    pub(super) href: String,
    pub(super) title: String,
    pub(super) detail: String,
    pub(super) at: Option<TimeLabel>,
}

pub(super) async fn concerns(app: &App, caller: &Principal, now: Timestamp) -> Result<Vec<AttentionItem>, AppError> {
    let tenant = &caller.tenant;
    let mut concerns = store(app).await?;
    concerns.extend(app.broken().into_iter().map(|(execution, why)| AttentionItem {
        look: StatusBadge::like("failed", "broken"),
        href: IdentifierLink::execution(execution.as_str()).href,
        title: format!("{execution} cannot continue"),
        detail: why,
        at: None,
    }));
    concerns.extend(questions(app, tenant, now).await?);
    let alerts = app.firing(caller)?;
    // Problems of executions are listed separately.
    let alerts = alerts.iter().filter(|alert| alert.execution.is_none() && alert.acknowledged.is_none());
    let alerts: Vec<&AlertRecord> = alerts.take(ITEMS_PER_KIND as usize).collect();
    concerns.extend(alerts.iter().map(|alert| alert_item(alert, now)));
    let reports = app.servers();
    let untold = reports.iter().filter(|report| alerts.iter().all(|alert| alert.subject != report.server));
    concerns.extend(untold.filter_map(|server| server_in_trouble(server, now)));
    concerns.extend(failed(app, tenant, now).await?);
    if may(caller, Operation::ReadWebhooks) {
        let counts = app.delivery_counts(caller, None).await?;
        concerns.extend((counts.dead > 0).then(|| AttentionItem {
            look: StatusBadge::like("partial", "deliveries"),
            href: "/alerts#deliveries".to_owned(),
            title: format!("{} deliveries failed permanently", counts.dead),
            detail: "webhooks did not accept them; they can be sent again".to_owned(),
            at: None,
        }));
    }
    Ok(concerns)
}

/// A store that is read-only.
async fn store(app: &App) -> Result<Vec<AttentionItem>, AppError> {
    let health = app.health().await?;
    let concern = |trouble: String| AttentionItem {
        look: StatusBadge::like("failed", "store"),
        href: "/settings".to_owned(),
        title: "The database is read-only".to_owned(),
        detail: trouble,
        at: None,
    };
    Ok(health.trouble.map(concern).into_iter().collect())
}

async fn questions(app: &App, tenant: &TenantId, now: Timestamp) -> Result<Vec<AttentionItem>, AppError> {
    let filter = ExecutionFilter { asking: true, ..ExecutionFilter::default() };
    let found = app.query.executions(tenant, filter, Pagination::first(ITEMS_PER_KIND)).await?;
    let looks = found.items.iter().map(|summary| async move {
        let identity = ExecutionIdentity { tenant: tenant.clone(), execution: summary.id.clone() };
        let view = app.view(&identity).await.ok()?;
        let ask = view.questions.first()?.to_string();
        Some(AttentionItem {
            look: StatusBadge::of("waiting"),
            href: format!("{}#questions", IdentifierLink::execution(summary.id.as_str()).href),
            title: summary.name.clone(),
            detail: ask,
            at: Some(TimeLabel::of(view.last_at, now)),
        })
    });
    Ok(join_all(looks).await.into_iter().flatten().collect())
}

async fn failed(app: &App, tenant: &TenantId, now: Timestamp) -> Result<Vec<AttentionItem>, AppError> {
    let from = Some(Timestamp(now.0.saturating_sub_unsigned(Millis::hours(24).0)));
    let mut filter = HistoryFilter::Failed.filter();
    filter.statuses.retain(|status| matches!(status.as_str(), "failed" | "partial" | "compensated"));
    filter.opened = TimeRange { from, until: None };
    let found = app.query.executions(tenant, filter, Pagination::first(ITEMS_PER_KIND)).await?;
    let concern = |summary: &ExecutionSummary| AttentionItem {
        look: StatusBadge::of(summary.row.status.as_str()),
        href: IdentifierLink::execution(summary.id.as_str()).href,
        title: summary.name.clone(),
        detail: summary.row.summary(),
        at: Some(TimeLabel::of(summary.row.last_at, now)),
    };
    Ok(found.items.iter().map(concern).collect())
}

fn alert_item(alert: &AlertRecord, now: Timestamp) -> AttentionItem {
    let look = match alert.severity {
        AlertSeverity::Critical => StatusBadge::like("failed", "alert"),
        AlertSeverity::Warning => StatusBadge::like("retrying", "alert"),
        AlertSeverity::Info => StatusBadge::like("pending", "alert"),
    };
    AttentionItem {
        look,
        href: "/alerts".to_owned(),
        title: alert.subject.clone(),
        detail: alert.text.clone(),
        at: Some(TimeLabel::of(alert.since.0, now)),
    }
}

fn server_in_trouble(report: &ServerReport, now: Timestamp) -> Option<AttentionItem> {
    let (word, detail, since) = match (&report.breaker, &report.connector) {
        (BreakerReport::Open { since, reason, .. }, _) => ("breaker open", reason.clone(), Some(*since)),
        (BreakerReport::HalfOpen { since, reason }, _) => ("breaker half open", reason.clone(), Some(*since)),
        (_, ConnectorReport::Down { reason, .. }) => ("down", reason.clone(), None),
        _ => return None,
    };
    Some(AttentionItem {
        look: StatusBadge::like("in_doubt", word),
        href: "/tools".to_owned(),
        title: format!("server {}", report.server),
        detail,
        at: since.map(|since| TimeLabel::of(since, now)),
    })
}
