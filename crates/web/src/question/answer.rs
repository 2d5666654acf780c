//! Handles the answer to a question.

use super::{SAY, field};
use crate::page::{self, FormRequest, PageResult};
use axum::extract::{Path, State};
use rutter_app::app::App;
use rutter_app::command::CommandArguments;
use rutter_app::error::AppError;
use rutter_app::verb::Verb;
use rutter_core::execution::view::{ExecutionSnapshot, PendingQuestion};
use rutter_core::plan::document::read_exact;
use serde_json::{Map, Value, json};
use std::sync::Arc;

pub(crate) async fn answer(
    State(app): State<Arc<App>>,
    Path(execution): Path<String>,
    form_request: FormRequest,
) -> PageResult {
    let say = form_request.value(SAY).and_then(Verb::parse);
    let verb = say.ok_or_else(|| wrong("expected a verb in `say`"))?;
    let (verb, arguments) = match verb {
        Verb::Reply if form_request.value("decline") != Some("true") => {
            // A tool's question is shown only to users who may answer it.
            app.require_verb(&form_request.request.principal, Verb::Reply)?;
            let view = app.view(&form_request.request.identity(&execution)).await?;
            (verb, replied(&form_request, &view)?)
        }
        verb => read(&form_request, verb)?,
    };
    let notice = verb.row().notice;
    app.perform(form_request.command(&execution, verb, arguments)).await?;
    Ok(page::redirect_with_flash(form_request.back(), notice))
}

fn wrong(message: &str) -> AppError {
    AppError::new("server.arguments", message)
}

/// The command of a button.
fn read(form: &FormRequest, verb: Verb) -> Result<(Verb, CommandArguments), AppError> {
    // A card has the same hidden fields for all its buttons.
    let field = |name: &str, argument: &str| {
        form.value(name).filter(|_| verb.row().takes.contains(&argument)).map(str::to_owned)
    };
    let happened = match form.value("happened") {
        None => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => return Err(wrong("expected happened true or false")),
    };
    // `undo` on a failed step is an answer to its question; undoing the execution has its own button.
    let (verb, with) = match verb {
        Verb::Undo => (Verb::Answer, Some(Verb::Undo)),
        verb => (verb, form.value("with").and_then(Verb::parse)),
    };
    let (expire, expire_only) = match form.value("expire").filter(|_| verb == Verb::Resume) {
        None => (None, None),
        Some("true") => (Some(true), None),
        Some("false") => (Some(false), None),
        Some("chosen") => (Some(true), Some(form.values("expire_only").map(str::to_owned).collect())),
        Some(_) => return Err(wrong("expected expire true, false or chosen")),
    };
    let result = form.value("result").map(|text| read_exact::<Value>(text.as_bytes())).transpose();
    let result = result.map_err(|error| wrong(&format!("the result must be JSON: {error}")))?;
    let arguments = CommandArguments {
        step: field("part", "step"),
        happened,
        expire,
        expire_only,
        with,
        result,
        evidence: field("evidence", "evidence").map(|evidence| json!(evidence)),
        call: field("call", "call"),
        tool: field("tool", "tool"),
        definition: field("definition", "definition"),
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
