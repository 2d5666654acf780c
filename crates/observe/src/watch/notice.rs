//! Notices of alerts: always in the log, to webhooks through the outbox, and by commands of the operator.

use super::WatchService;
use super::alert::AlertRecord;
use super::cloud_event::CloudEvent;
use super::condition::AlertKind;
use super::rule::{AlertRule, AlertSeverity};
use super::webhook::{ALERT, WebhookView};
use rutter_core::id::TenantId;
use rutter_core::limits::DELIVERIES_MAX;
use rutter_core::port;

/// Puts the notices for webhooks into the outbox. Idempotent: each notice has its own id.
pub async fn enqueue_notices(
    watch: &WatchService,
    tenant: &TenantId,
    alert_records: &[&AlertRecord],
    rules: &[AlertRule],
) -> Result<(), port::Error> {
    if alert_records.is_empty() {
        return Ok(());
    }
    let webhooks = watch.stored_webhooks(tenant).await?;
    let webhooks: Vec<WebhookView> =
        webhooks.into_iter().map(|stored| stored.webhook).filter(|webhook| webhook.enabled).collect();
    let mut deliveries = Vec::new();
    for alert in alert_records {
        let rule = rules.iter().find(|rule| rule.id == alert.rule);
        let event = CloudEvent::alert(tenant.as_str(), alert, watch);
        let takers = webhooks.iter().filter(|webhook| is_subscribed(webhook, alert, rule));
        deliveries.extend(takers.map(|webhook| event.to(&webhook.id, watch.now())));
    }
    for some in deliveries.chunks(DELIVERIES_MAX) {
        watch.ports.outbox.put(tenant, None, some.to_vec()).await?;
    }
    watch.outbox_changed.send_replace(());
    Ok(())
}

fn is_subscribed(webhook: &WebhookView, alert: &AlertRecord, rule: Option<&AlertRule>) -> bool {
    // A webhook that receives nothing cannot be notified about itself.
    let is_itself = alert.kind == AlertKind::DeadLetters && alert.subject == webhook.id;
    let is_named = match rule.and_then(|rule| rule.webhooks.as_ref()) {
        Some(ids) => ids.contains(&webhook.id),
        None => webhook.wants(ALERT) && webhook.wants_plan(alert.plan.as_ref()),
    };
    is_named && !is_itself
}

pub fn log(alert: &AlertRecord) {
    let AlertRecord { id, rule, subject, text, execution, notices, .. } = alert;
    let summary = alert.execution_state.as_ref().map(|state| state.summary.as_str());
    if !alert.is_firing() {
        tracing::info!(alert = id, rule, subject, execution, summary, "over: {text}");
        return;
    }
    match alert.severity {
        AlertSeverity::Info => tracing::info!(alert = id, rule, subject, execution, summary, notices, "{text}"),
        AlertSeverity::Warning => tracing::warn!(alert = id, rule, subject, execution, summary, notices, "{text}"),
        AlertSeverity::Critical => tracing::error!(alert = id, rule, subject, execution, summary, notices, "{text}"),
    }
}

/// A command that was run for an alert, and has ended.
pub struct CommandEnded {
    /// As it was when the command was started.
    pub alert: AlertRecord,
    pub command: String,
}

pub async fn run_command(watch: &WatchService, tenant: &TenantId, alert: AlertRecord, command: String) -> CommandEnded {
    let body = CloudEvent::alert(tenant.as_str(), &alert.with_cause(), watch).body;
    if let Err(error) = watch.ports.alert_commands.run(&command, body).await {
        tracing::warn!(alert = alert.id, rule = alert.rule, command, error, "an alert command failed");
    }
    CommandEnded { alert, command }
}
