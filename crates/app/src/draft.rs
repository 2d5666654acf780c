//! A plan from a list of tools, without a model: one step per tool in the order given, each after the one before.
//!
//! Parameters are filled from known values that fit; nothing is guessed. A required parameter without a value becomes
//! an input of the plan, so that the plan is valid as it is.

mod fill;
mod input;

use crate::error::AppError;
use fill::{DraftContext, ParameterFiller, ParameterSource};
use input::DraftInputs;
use rutter_core::id::ToolName;
use rutter_core::limits::{NAME_CHARS_MAX, PLAN_STEPS_MAX};
use rutter_core::text::first_chars;
use rutter_core::tool::{Tool, ToolCatalog};
use rutter_core::wording::guess;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::sync::Arc;

/// The longest name made from the request.
const NAME_FROM_REQUEST_CHARS: usize = 80;
/// The most suggestions for an unknown name.
const SUGGESTIONS_MAX: usize = 3;

/// A request for a plan.
#[derive(Debug)]
pub struct DraftRequest<'a> {
    pub request: &'a str,
    pub name: Option<&'a str>,
    /// In the order of the steps.
    pub tools: &'a [String],
    pub context: &'a Map<String, Value>,
}

/// A plan that has not been checked, and the sources of its parameters.
#[derive(Debug)]
pub struct DraftedPlan {
    pub plan: Value,
    pub filled: Vec<FilledParameter>,
    pub missing: Vec<MissingParameter>,
    /// Inputs for the execution: values from the context, otherwise a description of what is needed.
    pub inputs: Map<String, Value>,
}

/// A parameter that has a value, and its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FilledParameter {
    pub step: String,
    pub parameter: String,
    /// context.…, steps.…, key or schema
    pub from: String,
}

/// A parameter that is an input of the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct MissingParameter {
    pub step: String,
    pub parameter: String,
    pub input: String,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// Drafts a plan of tools that are all in the catalogue; [`unknown`] says which are not.
pub fn draft(wanted: &DraftRequest<'_>, catalog: &ToolCatalog) -> DraftedPlan {
    let mut inputs = DraftInputs::default();
    let mut drafted = DraftedPlan { plan: Value::Null, filled: Vec::new(), missing: Vec::new(), inputs: Map::new() };
    let context = DraftContext(wanted.context);
    let (mut before, mut taken): (Vec<(String, Arc<Tool>)>, _) = (Vec::new(), HashSet::new());
    let mut steps: Vec<Value> = Vec::with_capacity(wanted.tools.len());
    for tool in wanted.tools.iter().filter_map(|name| catalog.tools.get(name.as_str())) {
        let id = free_id(tool.name.as_str(), &mut taken);
        let mut parameters = Map::new();
        let filling = ParameterFiller { id: &id, tool, context: &context, before: &before };
        for property in fill::properties(&tool.input) {
            let step = || (id.clone(), property.name.clone());
            match filling.source(&property) {
                ParameterSource::Left => continue,
                ParameterSource::Value { value, from } => {
                    let (step, parameter) = step();
                    drafted.filled.push(FilledParameter { step, parameter, from });
                    parameters.insert(property.name.clone(), value);
                }
                ParameterSource::Input { given } => {
                    let (step, parameter) = step();
                    let input = inputs.declare(&id, &property);
                    let reference = json!(format!("{{{{ inputs.{input} }}}}"));
                    parameters.insert(property.name.clone(), reference);
                    let wanted = given.unwrap_or_else(|| json!(format!("<{}>", property.kind())));
                    drafted.inputs.insert(input.clone(), wanted);
                    let (kind, description) = (property.kind(), property.description());
                    drafted.missing.push(MissingParameter { step, parameter, input, kind, description });
                }
            }
        }
        let mut step = json!({ "id": id, "tool": tool.name, "parameters": parameters });
        if let Some((last, _)) = before.last() {
            step["depends_on"] = json!([last]);
        }
        steps.push(step);
        before.push((id, Arc::clone(tool)));
    }
    drafted.plan = plan(wanted, steps, inputs, &drafted);
    drafted
}

fn plan(wanted: &DraftRequest<'_>, steps: Vec<Value>, inputs: DraftInputs, drafted: &DraftedPlan) -> Value {
    let reasoning = format!(
        "Drafted without a model: the {} selected tools in the order given, each after the one before; {} parameters \
         were filled, {} are inputs.",
        steps.len(),
        drafted.filled.len(),
        drafted.missing.len()
    );
    let mut plan = json!({
        "name": wanted.name.map_or_else(|| name_of(wanted.request), str::to_owned),
        "goal": wanted.request,
        "request": wanted.request,
        "reasoning": reasoning,
        "metadata": {
            "plan_type": "sequential",
            "num_steps": steps.len(),
            "context_keys": wanted.context.keys().collect::<Vec<_>>(),
            "request": wanted.request,
        },
    });
    if let Some(schema) = inputs.into_schema() {
        plan["inputs"] = schema;
    }
    plan["steps"] = Value::Array(steps);
    plan
}

/// Refuses a request that no plan can be made of; lists all unknown tools at once, each with suggestions.
pub fn refuse(
    wanted: &DraftRequest<'_>,
    catalog: &ToolCatalog,
    search: &dyn Fn(&str) -> Vec<ToolName>,
) -> Result<(), AppError> {
    if wanted.request.trim().is_empty() {
        return Err(AppError::new("server.arguments", "request is empty; describe what the plan is for"));
    }
    let count = wanted.tools.len();
    if count == 0 {
        return Err(AppError::new("server.arguments", "selected_tools is empty; a plan has at least one step")
            .hint("find_tools finds tools by words"));
    }
    if count > PLAN_STEPS_MAX {
        let message = format!("{count} tools are selected, the limit is {PLAN_STEPS_MAX}");
        return Err(AppError::new("server.arguments", message));
    }
    let strangers: Vec<Value> = unknown(wanted, catalog)
        .into_iter()
        .map(|name| json!({ "tool": name, "suggestions": suggestions(name, catalog, search) }))
        .collect();
    if strangers.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = strangers.iter().filter_map(|stranger| stranger["tool"].as_str()).collect();
    if names.iter().all(|name| catalog.is_unreachable(name)) {
        let missing = names.iter().filter(|name| catalog.beside(name).next().is_some()).copied();
        let missing = match missing.collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => none,
            missing => format!(", and had no {missing} when they last listed their tools"),
        };
        let message = format!("the servers of {} cannot be reached{missing}; nothing was saved", names.join(", "));
        let error = AppError::new("tool.unreachable", message).hint("try again when they can be reached");
        let named = |server: &str| names.iter().any(|name| name.split_once('.').is_some_and(|(of, _)| of == server));
        let unreachable: Map<String, Value> = (catalog.unreachable.iter())
            .filter(|(server, _)| named(server))
            .map(|(server, why)| (server.clone(), json!(why)))
            .collect();
        // What such a server offered last is known, and a name may be misspelt.
        let details = json!({ "unreachable": unreachable, "unknown": strangers });
        return Err(AppError { retryable: true, details: Some(Box::new(details)), ..error });
    }
    let error =
        AppError::new("server.arguments", format!("there are no tools {}; nothing was saved", names.join(", ")))
            .hint("details.unknown has near names; find_tools finds tools by words");
    Err(AppError { details: Some(Box::new(json!({ "unknown": strangers }))), ..error })
}

/// The selected tools that are not in the catalogue, each once.
pub fn unknown<'a>(wanted: &DraftRequest<'a>, catalog: &ToolCatalog) -> Vec<&'a str> {
    let mut unknown: Vec<&str> = Vec::new();
    for name in wanted.tools {
        if !catalog.tools.contains_key(name.as_str()) && !unknown.contains(&name.as_str()) {
            unknown.push(name);
        }
    }
    unknown
}

fn suggestions(name: &str, catalog: &ToolCatalog, search: &dyn Fn(&str) -> Vec<ToolName>) -> Vec<String> {
    if catalog.is_unreachable(name) && catalog.beside(name).next().is_some() {
        // What the server had when it was last reached: another server does not know better.
        let near = guess(name, catalog.beside(name)).into_iter().map(|near| near.word().to_owned());
        return near.take(SUGGESTIONS_MAX).collect();
    }
    let known = || catalog.tools.keys().map(ToolName::as_str);
    let last = name.rsplit('.').next().unwrap_or(name);
    let mut near: Vec<String> = guess(name, known()).into_iter().map(|near| near.word().to_owned()).collect();
    near.extend(known().filter(|known| known.rsplit('.').next() == Some(last)).map(str::to_owned));
    near.extend(search(&name.replace(['.', '_', '-', '/'], " ")).iter().map(ToString::to_string));
    let mut seen = HashSet::new();
    near.retain(|name| seen.insert(name.clone()));
    near.truncate(SUGGESTIONS_MAX);
    near
}

/// The first words of the request, on one line.
fn name_of(request: &str) -> String {
    let line: String = request.split_whitespace().collect::<Vec<_>>().join(" ");
    first_chars(&line, NAME_FROM_REQUEST_CHARS).to_owned()
}

/// The tool's own name as a unique step id.
fn free_id(tool: &str, taken: &mut HashSet<String>) -> String {
    let last = tool.rsplit('.').next().unwrap_or(tool);
    let plain: String = last.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    let begins = plain.starts_with(|c: char| c.is_ascii_alphabetic());
    // An expression would read a dash as a minus sign.
    let plain = if begins { plain } else { format!("step_{plain}") }.replace('-', "_");
    let stem = first_chars(&plain, NAME_CHARS_MAX - 5);
    let mut free = stem.to_owned();
    let mut number = 2;
    while !taken.insert(free.clone()) {
        free = format!("{stem}_{number}");
        number += 1;
    }
    free
}
