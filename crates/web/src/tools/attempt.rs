//! Calls a tool from its page, journaled like any other call. Calls that may have an effect need confirmation.

use super::{address, tool};
use crate::format;
use crate::page::{self, FormRequest, PageResult};
use crate::question::field;
use crate::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::{Path, State};
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::rights::Operation;
use rutter_app::tool_calls::{NewToolCall, begin};
use rutter_core::plan::document::read_exact;
use rutter_core::tool::Safety;
use serde_json::{Map, Value};
use std::sync::Arc;

#[derive(Template)]
#[template(path = "tool_confirm.html")]
struct ConfirmToolCallPage {
    shell: PageShell,
    name: String,
    href: String,
    safety: format::StatusBadge,
    parameters: String,
    reason: String,
    /// The key of the form, which this one continues.
    request: String,
}

pub(crate) async fn run(State(app): State<Arc<App>>, Path(name): Path<String>, form: FormRequest) -> PageResult {
    let request = &form.request;
    app.require(&request.principal, Operation::CallTool)?;
    let tool = tool::find(&app, &request.principal, &name).await?;
    let parameters = parameters(&form, &tool.input)?;
    let reason = form.value("reason").unwrap_or_default().to_owned();
    if tool.safety != Safety::ReadOnly && form.value("confirm").is_none() {
        let shell = PageShell::open(&app, request, PageSection::Tools, format!("Call {name}?")).await?;
        let text = serde_json::to_string_pretty(&parameters).unwrap_or_default();
        let (href, safety) = (address(&tool.name), super::safety(tool.safety));
        let request = form.value("request").map_or_else(|| shell.form_key(), str::to_owned);
        return page::render(&ConfirmToolCallPage { shell, name, href, safety, parameters: text, reason, request });
    }
    let call = NewToolCall { tool: name, parameters, reason: Some(reason) };
    let identity = begin(&app, &request.principal, call, form.value("request").map(str::to_owned)).await?;
    Ok(page::redirect_with_flash(&format!("/executions/{}", format::encoded(identity.execution.as_str())), "started"))
}

/// The parameters, from the fields or as JSON.
fn parameters(form: &FormRequest, schema: &Value) -> Result<Map<String, Value>, AppError> {
    let value = match form.value("parameters") {
        Some(text) => read_exact(text.as_bytes())
            .map_err(|error| AppError::new("server.arguments", format!("the parameters must be JSON: {error}")))?,
        None => field::read(schema, |name| form.value(name))?,
    };
    match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(AppError::new("server.arguments", "the parameters must be a JSON object")),
    }
}
