//! Starting a plan from its page, with the inputs the form was made for.

use super::find;
use crate::auth::{Scope, require};
use crate::dashboard::format;
use crate::dashboard::page::{self, Answer, Posted};
use crate::dashboard::question::field;
use crate::desk::Desk;
use crate::fault::Fault;
use axum::extract::{Path, State};
use rutter_core::plan::Driver;
use rutter_engine::Start;
use serde_json::{Value, json};
use std::sync::Arc;

pub(in crate::dashboard) async fn run(
    State(desk): State<Arc<Desk>>,
    Path(address): Path<String>,
    posted: Posted,
) -> Answer {
    let guest = &posted.visitor.guest;
    require(guest, Scope::Operate)?;
    let saved = find(&desk, &guest.tenant, &address).await?;
    let start = Start {
        tenant: guest.tenant.clone(),
        plan: saved.summary.id.clone(),
        revision: Some(saved.summary.revision),
        inputs: Arc::new(inputs(&posted, saved.plan.inputs.as_deref())?),
        driver: match posted.said("driver") {
            Some("agent") => Driver::Agent,
            _ => Driver::Server,
        },
        actor: guest.actor(),
        request: None,
    };
    let started = desk.engine.start(start).await?;
    Ok(page::go(&format!("/executions/{}", format::encoded(started.execution.as_str())), "started"))
}

/// From the fields, or as JSON where somebody wrote it.
fn inputs(posted: &Posted, schema: Option<&Value>) -> Result<Value, Fault> {
    match (posted.said("inputs"), schema) {
        (Some(text), _) => serde_json::from_str(text)
            .map_err(|error| Fault::new("server.arguments", format!("the inputs must be JSON: {error}"))),
        (None, Some(schema)) => field::read(schema, |name| posted.said(name)),
        (None, None) => Ok(json!({})),
    }
}
