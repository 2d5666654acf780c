//! Alerts, alert rules and silences.

use crate::reply::{ApiReply, ListReply};
use crate::request::ApiRequest;
use crate::route::{ApiRoute, Idempotency, NoParameters, RouteSpec};
use rutter_app::auth::AccessScope;
use rutter_app::error::AppError;
use rutter_core::port::query::ListPage;
use rutter_observe::watch::alert::{AlertRecord, AlertState};
use rutter_observe::watch::rule::{AlertRule, AlertRuleChange, NewAlertRule};
use rutter_observe::watch::silence::{AlertSilence, NewSilence};
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) fn routes() -> Vec<ApiRoute> {
    let made = Idempotency::Reply { without: None };
    let admin = |about: RouteSpec| about.scope(AccessScope::Admin).tag("alerts");
    vec![
        ApiRoute::new(RouteSpec::get("/alerts", "listAlerts", "Alerts, newest first"), alerts),
        ApiRoute::with_body(
            RouteSpec::post("/alerts/{id}/acknowledge", "acknowledgeAlert", "Acknowledge an alert")
                .refuses(&[409, 422]),
            acknowledge,
        ),
        ApiRoute::new(RouteSpec::get("/rules", "listRules", "Alert rules").tag("alerts"), rules),
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
        ApiRoute::new(RouteSpec::get("/silences", "listSilences", "Silences").tag("alerts"), silences),
        ApiRoute::with_body(
            RouteSpec::post("/silences", "createSilence", "Suppress notices for a while")
                .tag("alerts")
                .success(&[201])
                .refuses(&[422])
                .idempotency(made),
            create_silence,
        ),
        ApiRoute::new(
            RouteSpec::delete("/silences/{id}", "deleteSilence", "End a silence").tag("alerts"),
            delete_silence,
        ),
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
    let items = call.app().watch.alerts(&call.principal.tenant, state).await?;
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
    let (tenant, actor) = (&call.principal.tenant, call.principal.actor());
    Ok(ApiReply::ok(call.app().watch.acknowledge_alert(tenant, &actor, call.id(), &known.note).await?))
}

async fn rules(call: ApiRequest, _: NoParameters) -> Result<ApiReply<ListReply<AlertRule>>, AppError> {
    let items = call.app().watch.rules(&call.principal.tenant).await?;
    Ok(call.list(ListPage { items, next: None }))
}

async fn create_rule(call: ApiRequest, new: NewAlertRule) -> Result<ApiReply<AlertRule>, AppError> {
    let rule = call.app().watch.create_rule(&call.principal.tenant, &call.principal.actor(), new).await?;
    let location = format!("{}/rules/{}", crate::route::BASE, rule.id);
    Ok(ApiReply::created(rule, &location))
}

async fn change_rule(call: ApiRequest, change: AlertRuleChange) -> Result<ApiReply<AlertRule>, AppError> {
    let (watch, tenant) = (&call.app().watch, &call.principal.tenant);
    let rules = watch.rules(tenant).await?;
    let seen = rules.iter().find(|rule| rule.id == call.id()).ok_or_else(|| AppError::missing("rule", call.id()))?;
    call.check_if_match(&tag(seen))?;
    let changed = watch.update_rule(tenant, &call.principal.actor(), call.id(), change, Some(seen.version)).await?;
    let tag = tag(&changed);
    Ok(ApiReply::ok(changed).tag(&tag))
}

/// The ETag of a rule; lists have it as `version`.
fn tag(rule: &AlertRule) -> String {
    format!("\"{}\"", rule.version)
}

async fn delete_rule(call: ApiRequest, _: NoParameters) -> Result<ApiReply<()>, AppError> {
    call.app().watch.delete_rule(&call.principal.tenant, &call.principal.actor(), call.id()).await?;
    Ok(ApiReply::nothing())
}

async fn silences(call: ApiRequest, _: NoParameters) -> Result<ApiReply<ListReply<AlertSilence>>, AppError> {
    let items = call.app().watch.silences(&call.principal.tenant).await?;
    Ok(call.list(ListPage { items, next: None }))
}

async fn create_silence(call: ApiRequest, new: NewSilence) -> Result<ApiReply<AlertSilence>, AppError> {
    let silence = call.app().watch.silence(&call.principal.tenant, &call.principal.actor(), new).await?;
    let location = format!("{}/silences/{}", crate::route::BASE, silence.id);
    Ok(ApiReply::created(silence, &location))
}

async fn delete_silence(call: ApiRequest, _: NoParameters) -> Result<ApiReply<()>, AppError> {
    call.app().watch.delete_silence(&call.principal.tenant, &call.principal.actor(), call.id()).await?;
    Ok(ApiReply::nothing())
}
