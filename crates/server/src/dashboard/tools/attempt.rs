//! Trying a tool out: one call, on record like any other. Calls that may have an effect are asked for twice.

use super::{address, tool};
use crate::auth::{Scope, require};
use crate::dashboard::format;
use crate::dashboard::page::{self, Answer, Posted};
use crate::dashboard::question::field;
use crate::dashboard::shell::{Section, Shell};
use crate::deed::Caller;
use crate::deed::call::{NewCall, begin};
use crate::desk::Desk;
use crate::fault::Fault;
use askama::Template;
use axum::extract::{Path, State};
use rutter_core::tool::Safety;
use serde_json::{Map, Value};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "tool_confirm.html")]
struct Confirm {
    shell: Shell,
    name: String,
    href: String,
    safety: format::Look,
    parameters: String,
    reason: String,
}

pub(in crate::dashboard) async fn run(
    State(desk): State<Arc<Desk>>,
    Path(name): Path<String>,
    posted: Posted,
) -> Answer {
    let visitor = &posted.visitor;
    require(&visitor.guest, Scope::Admin)?;
    let tool = tool::find(&desk, &name).await?;
    let parameters = parameters(&posted, &tool.input)?;
    let reason = posted.said("reason").unwrap_or_default().to_owned();
    if tool.safety != Safety::ReadOnly && posted.said("confirm").is_none() {
        let shell = Shell::open(&desk, visitor, Section::Tools, format!("Call {name}?")).await?;
        let text = serde_json::to_string_pretty(&parameters).unwrap_or_default();
        let (href, safety) = (address(&tool.name), super::safety(tool.safety));
        return page::show(&Confirm { shell, name, href, safety, parameters: text, reason });
    }
    let caller = Caller {
        desk: Arc::clone(&desk),
        tenant: visitor.guest.tenant.clone(),
        actor: visitor.guest.actor(),
    };
    let identity = begin(&caller, NewCall { tool: name, parameters, reason }, None).await?;
    Ok(page::go(&format!("/executions/{}", format::encoded(identity.execution.as_str())), "started"))
}

/// From the fields, or as JSON where somebody wrote it.
fn parameters(posted: &Posted, schema: &Value) -> Result<Map<String, Value>, Fault> {
    let value = match posted.said("parameters") {
        Some(text) => serde_json::from_str(text).map_err(|error| {
            Fault::new("server.arguments", format!("the parameters must be JSON: {error}"))
        })?,
        None => field::read(schema, |name| posted.said(name))?,
    };
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(Fault::new("server.arguments", "the parameters must be a JSON object")),
    }
}
