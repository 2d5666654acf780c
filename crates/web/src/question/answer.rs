//! Handles the answer to a question.

use super::field;
use crate::page::{self, FormRequest, PageResult};
use axum::extract::{Path, State};
use rutter_app::app::App;
use rutter_app::command::{Command, CommandArguments};
use rutter_app::error::AppError;
use rutter_app::rights::require_verb;
use rutter_app::verb::Verb;
use rutter_core::execution::view::{ExecutionSnapshot, PendingQuestion};
use rutter_core::id::ExecutionId;
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(crate) async fn answer(
    State(app): State<Arc<App>>,
    Path(execution): Path<String>,
    form_request: FormRequest,
) -> PageResult {
    let say = form_request.value("say").ok_or_else(|| wrong("the form has no action"))?;
    let (verb, arguments) = match say {
        "reply" => {
            // A tool's question is shown only to users who may answer it.
            require_verb(&form_request.request.principal, Verb::Reply)?;
            let view = app.view(&form_request.request.identity(&execution)).await?;
            (Verb::Reply, replied(&form_request, &view)?)
        }
        say => read(&form_request, say)?,
    };
    let command = Command {
        principal: form_request.request.principal.clone(),
        execution: ExecutionId::new(&execution),
        verb,
        arguments,
        reason: form_request.value("reason").map(str::to_owned),
        request_key: None,
        if_match: None,
    };
    app.perform(command).await?;
    Ok(page::redirect_with_flash(form_request.back(), notice(say, verb)))
}

fn wrong(message: &str) -> AppError {
    AppError::new("server.arguments", message)
}

fn notice(say: &str, verb: Verb) -> &'static str {
    match say {
        "approve" => "approved",
        "reject" => "rejected",
        "happened" | "not_happened" => "settled",
        _ => verb.row().notice,
    }
}

/// The command of a button.
fn read(form: &FormRequest, say: &str) -> Result<(Verb, CommandArguments), AppError> {
    let field = |name: &str| form.value(name).map(str::to_owned);
    let (verb, happened) = match say {
        "happened" => (Verb::Resolve, Some(true)),
        "not_happened" => (Verb::Resolve, Some(false)),
        "decline" => (Verb::Reply, None),
        say => (Verb::parse(say).ok_or_else(|| wrong("unknown answer"))?, None),
    };
    // `undo` on a failed step is an answer to its question; undoing the execution has its own button.
    let (verb, with) = match verb {
        Verb::Undo => (Verb::Answer, Some(Verb::Undo)),
        verb => (verb, form.value("with").and_then(Verb::parse)),
    };
    let result = form.value("result").map(serde_json::from_str::<Value>).transpose();
    let result = result.map_err(|error| wrong(&format!("the result must be JSON: {error}")))?;
    let arguments = CommandArguments {
        step: field("part"),
        happened,
        with,
        result,
        evidence: form.value("evidence").map(|evidence| json!(evidence)),
        call: field("call"),
        tool: field("tool"),
        definition: field("definition"),
        ..Default::default()
    };
    Ok((verb, arguments))
}

/// The reply to a tool's question, parsed by the question's schema.
fn replied(form: &FormRequest, view: &ExecutionSnapshot) -> Result<CommandArguments, AppError> {
    let part = form.value("part");
    let schema = view.questions.iter().find_map(|ask| match ask {
        PendingQuestion::Tool { part: asked, schema: Some(schema), .. } if part == Some(asked.to_string().as_str()) => {
            Some(schema)
        }
        _ => None,
    });
    let schema = schema.ok_or_else(|| AppError::new("execution.no_question", "the tool no longer asks this"))?;
    let reply: Map<String, Value> = match field::read(schema, |name| form.value(name))? {
        Value::Object(fields) => fields,
        _ => return Err(wrong("expected fields as the answer to a tool")),
    };
    Ok(CommandArguments { step: part.map(str::to_owned), reply: Some(reply), ..Default::default() })
}
