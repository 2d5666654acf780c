//! Alerts, alert rules and silences.

use crate::idempotent_replies::Idempotency;
use crate::reply::{ApiReply, ListReply};
use crate::request::ApiRequest;
use crate::route::{ApiRoute, NoParameters, RouteSpec};
use rutter_app::error::AppError;
use rutter_app::rights::Operation;
use rutter_core::port::query::ListPage;
use rutter_observe::watch::alert::{AlertRecord, AlertState};
use rutter_observe::watch::rule::{AlertRule, AlertRuleChange, NewAlertRule};
use rutter_observe::watch::silence::{AlertSilence, NewSilence};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) fn routes() -> Vec<ApiRoute> {
    let made = Idempotency::Reply { without: None };
    let read = |about: RouteSpec| about.right(Operation::ReadAlerts).tag("alerts");
    let admin = |about: RouteSpec| about.right(Operation::ChangeAlertRules).tag("alerts");
    let silence = |about: RouteSpec| about.right(Operation::SilenceAlerts).tag("alerts");
    vec![
        ApiRoute::new(read(RouteSpec::get("/alerts", "listAlerts", "Alerts, newest first")), alerts),
        ApiRoute::with_body(
            RouteSpec::post("/alerts/{id}/acknowledge", "acknowledgeAlert", "Acknowledge an alert")
                .right(Operation::AcknowledgeAlert)
                .refuses(&[409, 422]),
            acknowledge,
        ),
        ApiRoute::new(read(RouteSpec::get("/rules", "listRules", "Alert rules")), rules),
        ApiRoute::with_body(
            admin(RouteSpec::post("/rules", "createRule", "Create an alert rule"))
                .success(&[201])
                .refuses(&[422])
                .idempotency(made),
            create_rule,
        ),
        ApiRoute::with_body(
            admin(RouteSpec::patch("/rules/{id}", "changeRule", "Change the given fields of a rule"))
                .refuses(&[409, 412, 422]),
            change_rule,
        ),
        ApiRoute::new(
            admin(RouteSpec::delete(
                "/rules/{id}",
                "deleteRule",
                "Remove a rule; a built-in one is reset to its defaults",
            ))
            .success(&[204]),
            delete_rule,
        ),
        ApiRoute::new(read(RouteSpec::get("/silences", "listSilences", "Silences")), silences),
        ApiRoute::with_body(
            silence(RouteSpec::post("/silences", "createSilence", "Suppress notices for a while"))
                .success(&[201])
                .refuses(&[422])
                .idempotency(made),
            create_silence,
        ),
        ApiRoute::new(silence(RouteSpec::delete("/silences/{id}", "deleteSilence", "End a silence")), delete_silence),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AlertsQuery {
    /// firing or resolved
    state: Option<String>,
}

async fn alerts(call: ApiRequest, query: AlertsQuery) -> Result<ApiReply<ListReply<AlertRecord>>, AppError> {
    let state = match query.state.as_deref() {
        None => None,
        Some("firing") => Some(AlertState::Firing),
        Some("resolved") => Some(AlertState::Resolved),
        Some(_) => return Err(AppError::new("server.arguments", "state is firing or resolved")),
    };
    let items = call.app().alerts(&call.principal, state).await?;
    Ok(call.list(ListPage { items, next: None }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AlertNote {
    /// A note for others.
    #[serde(default)]
    note: String,
}

async fn acknowledge(call: ApiRequest, known: AlertNote) -> Result<ApiReply<AlertRecord>, AppError> {
    Ok(ApiReply::ok(call.app().acknowledge_alert(&call.principal, call.id(), &known.note).await?))
}

async fn rules(call: ApiRequest, _: NoParameters) -> Result<ApiReply<ListReply<AlertRule>>, AppError> {
    let items = call.app().alert_rules(&call.principal).await?;
    Ok(call.list(ListPage { items, next: None }))
}

async fn create_rule(call: ApiRequest, new: NewAlertRule) -> Result<ApiReply<AlertRule>, AppError> {
    let rule = call.app().create_alert_rule(&call.principal, new).await?;
    let location = format!("{}/rules/{}", crate::route::BASE, rule.id);
    Ok(ApiReply::created(rule, &location))
}

async fn change_rule(call: ApiRequest, change: AlertRuleChange) -> Result<ApiReply<AlertRule>, AppError> {
    let (app, caller) = (call.app(), &call.principal);
    let rules = app.alert_rules(caller).await?;
    let seen = rules.iter().find(|rule| rule.id == call.id()).ok_or_else(|| AppError::missing("rule", call.id()))?;
    call.check_if_match(&tag(seen))?;
    let changed = app.change_alert_rule(caller, call.id(), change, Some(seen.version)).await?;
    let tag = tag(&changed);
    Ok(ApiReply::ok(changed).tag(&tag))
}

/// The ETag of a rule; lists have it as `version`.
fn tag(rule: &AlertRule) -> String {
    format!("\"{}\"", rule.version)
}

async fn delete_rule(call: ApiRequest, _: NoParameters) -> Result<ApiReply<()>, AppError> {
    call.app().delete_alert_rule(&call.principal, call.id()).await?;
    Ok(ApiReply::nothing())
}

async fn silences(call: ApiRequest, _: NoParameters) -> Result<ApiReply<ListReply<AlertSilence>>, AppError> {
    let items = call.app().silences(&call.principal).await?;
    Ok(call.list(ListPage { items, next: None }))
}

async fn create_silence(call: ApiRequest, new: NewSilence) -> Result<ApiReply<AlertSilence>, AppError> {
    let silence = call.app().silence(&call.principal, new).await?;
    let location = format!("{}/silences/{}", crate::route::BASE, silence.id);
    Ok(ApiReply::created(silence, &location))
}

async fn delete_silence(call: ApiRequest, _: NoParameters) -> Result<ApiReply<()>, AppError> {
    call.app().end_silence(&call.principal, call.id()).await?;
    Ok(ApiReply::nothing())
}
