//! Telling somebody of an alert: always in the log, by webhooks through the outbox, by commands of the operator's.

use super::Watch;
use super::alert::Alert;
use super::cloud_event::CloudEvent;
use super::matter::Concern;
use super::rule::{Rule, Severity};
use super::webhook::{ALERT, Webhook};
use rutter_core::id::TenantId;
use rutter_core::limits::DELIVERIES_MAX;
use rutter_core::port;

/// Puts what webhooks are told into the outbox. Doing so twice changes nothing: each notice has its own id.
pub(super) async fn put(
    watch: &Watch,
    tenant: &TenantId,
    told: &[&Alert],
    rules: &[Rule],
) -> Result<(), port::Error> {
    if told.is_empty() {
        return Ok(());
    }
    let webhooks = watch.kept_webhooks(tenant).await?;
    let webhooks: Vec<Webhook> =
        webhooks.into_iter().map(|kept| kept.webhook).filter(|webhook| webhook.enabled).collect();
    let mut deliveries = Vec::new();
    for alert in told {
        let rule = rules.iter().find(|rule| rule.id == alert.rule);
        let event = CloudEvent::alert(tenant.as_str(), alert, watch);
        let takers = webhooks.iter().filter(|webhook| is_told(webhook, alert, rule));
        deliveries.extend(takers.map(|webhook| event.to(&webhook.id, watch.now())));
    }
    for some in deliveries.chunks(DELIVERIES_MAX) {
        watch.ports.outbox.put(tenant, None, some.to_vec()).await?;
    }
    watch.to_send.send_replace(());
    Ok(())
}

fn is_told(webhook: &Webhook, alert: &Alert, rule: Option<&Rule>) -> bool {
    // A receiver that gets nothing cannot be told so.
    let is_itself = alert.kind == Concern::DeadLetters && alert.subject == webhook.id;
    let is_named = match rule.and_then(|rule| rule.webhooks.as_ref()) {
        Some(ids) => ids.contains(&webhook.id),
        None => webhook.wants(ALERT) && webhook.wants_plan(alert.plan.as_ref()),
    };
    is_named && !is_itself
}

pub(super) fn log(alert: &Alert) {
    let Alert { id, rule, subject, text, execution, notices, .. } = alert;
    if !alert.is_firing() {
        tracing::info!(alert = id, rule, subject, execution, "over: {text}");
        return;
    }
    match alert.severity {
        Severity::Info => tracing::info!(alert = id, rule, subject, execution, notices, "{text}"),
        Severity::Warning => tracing::warn!(alert = id, rule, subject, execution, notices, "{text}"),
        Severity::Critical => tracing::error!(alert = id, rule, subject, execution, notices, "{text}"),
    }
}

/// A command that was started for an alert, and has ended.
pub(super) struct Rung {
    pub alert: String,
    pub command: String,
}

pub(super) async fn ring(watch: &Watch, tenant: &TenantId, alert: Alert, command: String) -> Rung {
    let body = CloudEvent::alert(tenant.as_str(), &alert, watch).body;
    if let Err(error) = watch.ports.bell.ring(&command, body).await {
        tracing::warn!(alert = alert.id, rule = alert.rule, command, error, "a command for alerts failed");
    }
    Rung { alert: alert.id, command }
}
