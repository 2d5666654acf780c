//! Checks calls against the catalogue: the tool, its safety, and its parameters.

use super::call_site::{CallPurpose, CallSite, sites};
use super::expression_site::ExpressionRole;
use super::scope::lookup;
use super::sketch::PlanSketch;
use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::id::ToolName;
use crate::plan::schema::{CompiledSchema, SchemaLookup};
use crate::plan::{Driver, Step};
use crate::pointer;
use crate::tool::{Safety, SafetySource, Tool, beside};
use crate::wording::{SpellingGuess, quoted};
use serde_json::{Map, Value};
use std::collections::HashMap;

pub(super) fn check(sketch: &PlanSketch<'_>, driver: Driver, found: &mut Vec<Diagnostic>) {
    let mut schemas = InputSchemas::default();
    for (draft, step) in sketch.draft.steps.iter().zip(&sketch.steps) {
        for site in sites(draft, step) {
            secrets(&site, found);
            let Some(tool) = sketch.tool(site.call) else {
                // An empty name was already reported as missing.
                if driver == Driver::Server && !site.draft.tool.is_empty() {
                    found.push(unreachable(sketch, &site).unwrap_or_else(|| unknown_tool(sketch, &site)));
                }
                continue;
            };
            if driver == Driver::Server {
                found.extend(last_known(sketch, &site));
            }
            safety(tool, &site, found);
            if !sketch.broken.contains(&site.draft.pointer)
                && let Some(schema) = schemas.input(tool, &site, found)
            {
                parameters(sketch, step, &site, tool, schema, found);
            }
        }
    }
}

/// The input schemas of the tools, compiled on first use.
#[derive(Default)]
struct InputSchemas<'a>(HashMap<&'a ToolName, Option<CompiledSchema>>);

impl<'a> InputSchemas<'a> {
    fn input(&mut self, tool: &'a Tool, site: &CallSite<'_>, found: &mut Vec<Diagnostic>) -> Option<&CompiledSchema> {
        let compile = || {
            let refused = |error| {
                let message = format!("the input schema of {} cannot be used: {error}", tool.name);
                found.push(
                    Diagnostic::warning("lint.unusable_schema", site.tool_pointer(), message)
                        .hint("parameters of this tool are not checked before they are sent"),
                );
            };
            CompiledSchema::compile(&tool.input).map_err(refused).ok()
        };
        self.0.entry(&tool.name).or_insert_with(compile).as_ref()
    }
}

/// A tool that may exist: its server could never be asked, or has another list of tools by now.
fn unreachable(sketch: &PlanSketch<'_>, site: &CallSite<'_>) -> Option<Diagnostic> {
    let (server, why) = sketch.unreachable(&site.draft.tool)?;
    let tool = quoted(&site.draft.tool);
    let known = beside(&site.draft.tool, sketch.tools.keys().map(ToolName::as_str));
    if known.clone().next().is_some() {
        let message = format!(
            "there was no tool {tool} when server {server:?}, which cannot be reached now, last listed its tools: {why}"
        );
        let near = sketch.guess(&site.draft.tool, known);
        let near = near.map(|near| format!("did you mean {:?}? if not, ", near.word())).unwrap_or_default();
        let hint = format!("{near}check the plan again when the server can be reached");
        return Some(Diagnostic::error("tool.unreachable", site.tool_pointer(), message).hint(hint));
    }
    let message = format!("whether there is a tool {tool} is not known: server {server:?} cannot be reached: {why}");
    let hint = "check the plan again when the server can be reached; the name may be right";
    Some(Diagnostic::error("tool.unreachable", site.tool_pointer(), message).hint(hint))
}

fn last_known(sketch: &PlanSketch<'_>, site: &CallSite<'_>) -> Option<Diagnostic> {
    let (server, why) = sketch.unreachable(&site.draft.tool)?;
    let message = format!("server {server:?} cannot be reached now: {why}");
    let hint = "the call was checked against the definition the tool had last";
    Some(Diagnostic::warning("tool.unreachable", site.tool_pointer(), message).hint(hint))
}

fn unknown_tool(sketch: &PlanSketch<'_>, site: &CallSite<'_>) -> Diagnostic {
    let path = site.tool_pointer();
    let message = format!("there is no tool {}", quoted(&site.draft.tool));
    let found = Diagnostic::error("plan.unknown_tool", path.as_str(), message);
    match sketch.guess(&site.draft.tool, sketch.tools.keys().map(ToolName::as_str)) {
        None => found.hint("look the name up in the list of tools"),
        Some(SpellingGuess::Vague(near)) => found.hint(format!("did you mean {near:?}?")),
        // No fix: a prefix can turn a tool into its opposite, as in reserve and unreserve.
        Some(SpellingGuess::Clear(near)) if is_tail(near, &site.draft.tool) => {
            found.hint(format!("did you mean {near:?}?"))
        }
        Some(SpellingGuess::Clear(near)) => {
            let fix = PatchOperation::Replace { path, value: near.into() };
            found.hint(format!("did you mean {near:?}?")).fix(vec![fix])
        }
    }
}

fn safety(tool: &Tool, site: &CallSite<'_>, found: &mut Vec<Diagnostic>) {
    if let Some(statement) = site.draft.safety.filter(|message_text| *message_text < tool.safety) {
        let path = format!("{}/safety", site.draft.pointer);
        let message = format!(
            "the plan calls {} {}, and it is {}: a plan may only be stricter",
            tool.name,
            statement.as_str(),
            tool.safety.as_str()
        );
        let fix = PatchOperation::Remove { path: path.clone() };
        found.push(Diagnostic::error("plan.safety_loosened", path, message).fix(vec![fix]));
    }
    let is_probe = matches!(site.purpose, CallPurpose::Probe | CallPurpose::UndoProbe);
    if is_probe && site.call.safety != Safety::ReadOnly {
        let message = format!("a probe must only read, and {} is {}", tool.name, site.call.safety.as_str());
        found.push(Diagnostic::error("plan.probe_not_read_only", site.tool_pointer(), message).hint(probe_hint(tool)));
    }
}

/// Names the settings that would make a tool fit for a probe.
fn probe_hint(tool: &Tool) -> String {
    let (server, name) = tool.name.as_str().split_once('.').unwrap_or_default();
    match tool.safety_source {
        SafetySource::Unknown => format!(
            "if it only reads, the operator can say so: `safety = \"read_only\"` under [servers.{server}.tools.{name}], or \
             `trust = true` for a server whose hints are true; in a catalogue file `safety` or `trusted_servers`"
        ),
        SafetySource::Configured | SafetySource::TrustedHint => {
            "probe with a tool that is known to be read_only".to_owned()
        }
    }
}

fn parameters(
    sketch: &PlanSketch<'_>,
    step: &Step,
    site: &CallSite<'_>,
    tool: &Tool,
    schema: &CompiledSchema,
    found: &mut Vec<Diagnostic>,
) {
    let known = |path: &[String]| match lookup(sketch, step, ExpressionRole::Parameters(site.purpose), site, path) {
        SchemaLookup::Known(schema) => Some(schema),
        _ => None,
    };
    for violation in schema.validate_template(&site.call.parameters, &known) {
        let given = site.draft.fields();
        let top = pointer::names(&violation.pointer).unwrap_or_default();
        let missing = violation.message.strip_suffix(" is required").map(|name| name.trim_matches('"'));
        let declared = tool.input.get("properties").and_then(Value::as_object);
        found.push(match (top.as_slice(), missing, declared) {
            ([], Some(name), _) if !given.contains_key(name) => missing_parameter(site, tool, name),
            ([name], _, Some(declared)) if !declared.contains_key(name) => {
                unknown_parameter(sketch, site, tool, name, declared)
            }
            _ => {
                let at = format!("{}{}", site.parameters_pointer(), violation.pointer);
                let subject = top.last().map_or_else(|| "this".to_owned(), |name| quoted(name));
                let message = format!("{subject} does not fit {}: {}", tool.name, violation.message);
                Diagnostic::error("plan.bad_parameter", at, message)
            }
        });
    }
}

/// Whether the last part of one name ends with the last part of the other.
fn is_tail(a: &str, b: &str) -> bool {
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_lowercase();
    let (a, b) = (last(a), last(b));
    a.ends_with(&b) || b.ends_with(&a)
}

fn missing_parameter(site: &CallSite<'_>, tool: &Tool, name: &str) -> Diagnostic {
    let message = format!("{} needs the parameter {}", tool.name, quoted(name));
    let found = Diagnostic::error("plan.missing_parameter", site.draft.pointer.as_str(), message);
    let property = tool.input.get("properties").and_then(|properties| properties.get(name));
    let ready = property.and_then(|schema| schema.get("default").or_else(|| schema.get("const")));
    match (ready, property.and_then(|schema| schema.get("type")).and_then(Value::as_str)) {
        (Some(value), _) => found.fix(vec![site.set_parameter(name, value.clone())]),
        (None, Some(kind)) => found.hint(format!("expected {kind}")),
        (None, None) => found,
    }
}

fn unknown_parameter(
    sketch: &PlanSketch<'_>,
    site: &CallSite<'_>,
    tool: &Tool,
    name: &str,
    declared: &Map<String, Value>,
) -> Diagnostic {
    let path = pointer::field(&site.parameters_pointer(), name);
    let message = format!("{} has no parameter {}", tool.name, quoted(name));
    let found = Diagnostic::error("plan.unknown_parameter", path.as_str(), message);
    let free = declared.keys().map(String::as_str).filter(|known| !site.draft.fields().contains_key(*known));
    let value = site.draft.fields().get(name).cloned().unwrap_or_default();
    match sketch.guess(name, free) {
        Some(SpellingGuess::Clear(near)) => found
            .hint(format!("did you mean {near:?}?"))
            .fix(vec![PatchOperation::Remove { path }, site.set_parameter(near, value)]),
        Some(SpellingGuess::Vague(near)) => found.hint(format!("did you mean {near:?}?")),
        None => found.hint("remove it").fix(vec![PatchOperation::Remove { path }]),
    }
}

/// Reports `{"secret": …}` without a text in it; an invalid name is found when parameters are compiled.
fn secrets(site: &CallSite<'_>, found: &mut Vec<Diagnostic>) {
    let is_bad = |value: &Value| match value {
        Value::Object(fields) => fields.len() == 1 && fields.get("secret").is_some_and(|name| !name.is_string()),
        _ => false,
    };
    site.for_each_parameter(&|_, value| is_bad(value), &mut |at, _, value| {
        if is_bad(value) {
            let message = "a secret is referred to by its name, as text";
            found.push(
                Diagnostic::error("plan.secret", format!("{at}/secret"), message)
                    .hint("write {\"secret\": \"payments_token\"}"),
            );
        }
    });
}
