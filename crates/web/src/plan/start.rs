//! Starts a plan from its page, with the inputs of the form.

use super::find;
use crate::format;
use crate::page::{self, FormRequest, PageResult};
use crate::question::field;
use axum::extract::{Path, State};
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::rights::Operation;
use rutter_app::start::NewExecution;
use rutter_core::plan::Driver;
use rutter_core::plan::document::read_exact;
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) async fn run(State(app): State<Arc<App>>, Path(address): Path<String>, form: FormRequest) -> PageResult {
    let principal = &form.request.principal;
    app.require(principal, Operation::StartExecution)?;
    let saved = find(&app, &principal.tenant, &address).await?;
    let new = NewExecution {
        plan: saved.summary.id.clone(),
        revision: Some(saved.summary.revision),
        inputs: Arc::new(inputs(&form, saved.plan.inputs.as_deref())?),
        driver: match form.value("driver") {
            Some("agent") => Driver::Agent,
            _ => Driver::Server,
        },
        request_key: form.value("request").map(str::to_owned),
    };
    let started = app.start(principal, new).await?;
    Ok(page::redirect_with_flash(&format!("/executions/{}", format::encoded(started.execution.as_str())), "started"))
}

/// The inputs, from the fields or as JSON.
fn inputs(form: &FormRequest, schema: Option<&Value>) -> Result<Value, AppError> {
    match (form.value("inputs"), schema) {
        (Some(text), _) => read_exact(text.as_bytes())
            .map_err(|error| AppError::new("server.arguments", format!("the inputs must be JSON: {error}"))),
        (None, Some(schema)) => field::read(schema, |name| form.value(name)),
        (None, None) => Ok(json!({})),
    }
}
