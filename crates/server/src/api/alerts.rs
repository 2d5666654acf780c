//! Alerts, the rules they come from, and what nobody is told for a while.

use crate::api::call::Call;
use crate::api::reply::{List, Reply};
use crate::api::route::{About, Keyed, Nothing, Route};
use crate::auth::Scope;
use crate::fault::Fault;
use crate::watch::alert::{Alert, AlertState};
use crate::watch::rule::{NewRule, Rule, RuleChange};
use crate::watch::silence::{NewSilence, Silence};
use rutter_core::port::query::Listing;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) fn routes() -> Vec<Route> {
    let made = Keyed::Reply { without: None };
    let admin = |about: About| about.scope(Scope::Admin).tag("alerts");
    vec![
        Route::new(
            About::get("/alerts", "listAlerts", "What somebody was, or is to be, told; newest first"),
            alerts,
        ),
        Route::with_body(
            About::post("/alerts/{id}/acknowledge", "acknowledgeAlert", "Say that somebody knows")
                .refuses(&[409, 422]),
            acknowledge,
        ),
        Route::new(About::get("/rules", "listRules", "When somebody is told").tag("alerts"), rules),
        Route::with_body(
            admin(About::post("/rules", "createRule", "Have somebody told"))
                .success(&[201])
                .refuses(&[422])
                .keyed(made),
            create_rule,
        ),
        Route::with_body(
            admin(About::patch("/rules/{id}", "changeRule", "Change what is named; the rest stays"))
                .refuses(&[409, 412, 422]),
            change_rule,
        ),
        Route::new(
            admin(About::delete(
                "/rules/{id}",
                "deleteRule",
                "Remove a rule; one of Rutter's own is then as it came",
            ))
            .success(&[204]),
            delete_rule,
        ),
        Route::new(
            About::get("/silences", "listSilences", "What nobody is told for a while").tag("alerts"),
            silences,
        ),
        Route::with_body(
            About::post("/silences", "createSilence", "Have nobody told for a while")
                .tag("alerts")
                .success(&[201])
                .refuses(&[422])
                .keyed(made),
            create_silence,
        ),
        Route::new(
            About::delete("/silences/{id}", "deleteSilence", "End a silence").tag("alerts"),
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

async fn alerts(call: Call, query: AlertsQuery) -> Result<Reply<List<Alert>>, Fault> {
    let state = match query.state.as_deref() {
        None => None,
        Some("firing") => Some(AlertState::Firing),
        Some("resolved") => Some(AlertState::Resolved),
        Some(_) => return Err(Fault::new("server.arguments", "state is firing or resolved")),
    };
    let items = call.desk().watch.alerts(&call.guest.tenant, state).await?;
    Ok(call.list(Listing { items, next: None }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AlertNote {
    /// For those who come after.
    #[serde(default)]
    note: String,
}

async fn acknowledge(call: Call, known: AlertNote) -> Result<Reply<Alert>, Fault> {
    let (tenant, actor) = (&call.guest.tenant, call.guest.actor());
    Ok(Reply::ok(call.desk().watch.acknowledge_alert(tenant, &actor, call.id(), &known.note).await?))
}

async fn rules(call: Call, _: Nothing) -> Result<Reply<List<Rule>>, Fault> {
    let items = call.desk().watch.rules(&call.guest.tenant).await?;
    Ok(call.list(Listing { items, next: None }))
}

async fn create_rule(call: Call, new: NewRule) -> Result<Reply<Rule>, Fault> {
    let rule = call.desk().watch.create_rule(&call.guest.tenant, &call.guest.actor(), new).await?;
    let location = format!("{}/rules/{}", crate::api::BASE, rule.id);
    Ok(Reply::created(rule, &location))
}

async fn change_rule(call: Call, change: RuleChange) -> Result<Reply<Rule>, Fault> {
    let (watch, tenant) = (&call.desk().watch, &call.guest.tenant);
    let rules = watch.rules(tenant).await?;
    let seen =
        rules.iter().find(|rule| rule.id == call.id()).ok_or_else(|| Fault::missing("rule", call.id()))?;
    call.expects(&tag(seen))?;
    let changed =
        watch.update_rule(tenant, &call.guest.actor(), call.id(), change, Some(seen.version)).await?;
    let tag = tag(&changed);
    Ok(Reply::ok(changed).tag(&tag))
}

/// What stands in a list as `version`.
fn tag(rule: &Rule) -> String {
    format!("\"{}\"", rule.version)
}

async fn delete_rule(call: Call, _: Nothing) -> Result<Reply<()>, Fault> {
    call.desk().watch.delete_rule(&call.guest.tenant, &call.guest.actor(), call.id()).await?;
    Ok(Reply::nothing())
}

async fn silences(call: Call, _: Nothing) -> Result<Reply<List<Silence>>, Fault> {
    let items = call.desk().watch.silences(&call.guest.tenant).await?;
    Ok(call.list(Listing { items, next: None }))
}

async fn create_silence(call: Call, new: NewSilence) -> Result<Reply<Silence>, Fault> {
    let silence = call.desk().watch.silence(&call.guest.tenant, &call.guest.actor(), new).await?;
    let location = format!("{}/silences/{}", crate::api::BASE, silence.id);
    Ok(Reply::created(silence, &location))
}

async fn delete_silence(call: Call, _: Nothing) -> Result<Reply<()>, Fault> {
    call.desk().watch.delete_silence(&call.guest.tenant, &call.guest.actor(), call.id()).await?;
    Ok(Reply::nothing())
}
