//! The reference of Rutter's MCP tools, generated from the table of tools.

use super::{code, row};
use crate::tools::all;
use rmcp::model::{JsonObject, Tool as Offer};
use rutter_app::principal::McpToolset;
use serde_json::Value;

const OPENING: &str = "\
# MCP tools

For authors of agents and MCP clients: every tool that Rutter offers over MCP, with its arguments and answers.

Generated from the tools; `UPDATE_GOLDENS=1 cargo test -p rutter-mcp references` regenerates it. A \
refusal is a tool result with `isError` and the text `{\"error\": {code, message, hint, retryable, details}}`; the codes \
are in [errors.md](errors.md). Hints are true of the tool itself.
";

/// The tool reference as Markdown.
pub fn tools() -> String {
    let mut text = OPENING.to_owned();
    for toolset in McpToolset::ALL {
        let names: Vec<String> = all()
            .iter()
            .filter(|tool| tool.toolsets.contains(&toolset))
            .map(|tool| format!("[`{0}`](#{0})", tool.name))
            .collect();
        if !names.is_empty() {
            text.push_str(&format!("\nToolset `{toolset}`: {}.\n", names.join(", ")));
        }
    }
    for tool in all() {
        let offer = tool.offer();
        let toolsets: Vec<String> = tool.toolsets.iter().map(|toolset| code(toolset.as_str())).collect();
        text.push_str(&format!("\n## {}\n\n", tool.name));
        text.push_str(&format!("{}\n\n", offer.description.as_deref().unwrap_or_default()));
        text.push_str(&format!("Toolsets: {}. Hints: {}.\n", toolsets.join(", "), hints(&offer)));
        text.push_str(&fields("argument", &offer.input_schema));
        text.push_str(&fields("answer", &tool.output));
    }
    text
}

fn hints(offer: &Offer) -> String {
    let Some(hints) = &offer.annotations else { return "none".to_owned() };
    let items = [
        (hints.read_only_hint, "read-only"),
        (hints.destructive_hint, "destructive"),
        (hints.idempotent_hint, "idempotent"),
        (hints.open_world_hint, "reaches other systems"),
    ];
    let lines: Vec<&str> = items.into_iter().filter(|(hint, _)| *hint == Some(true)).map(|(_, word)| word).collect();
    if lines.is_empty() { "every call adds something".to_owned() } else { lines.join(", ") }
}

fn fields(what: &str, schema: &JsonObject) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return String::new() };
    if properties.is_empty() {
        return String::new();
    }
    let mut text = format!("\n| {what} | type | meaning |\n|---|---|---|\n");
    let required = schema.get("required").and_then(Value::as_array);
    for (name, value) in properties {
        let is_required = required.is_some_and(|required| required.iter().any(|required| required == name));
        let mut meaning = value["description"].as_str().unwrap_or_default().to_owned();
        if what == "argument" && is_required {
            meaning = format!("Required. {meaning}").trim_end().to_owned();
        }
        if let Some(default) = value.get("default") {
            meaning = format!("{meaning} Default `{default}`.").trim_start().to_owned();
        }
        text.push_str(&row(&[code(name), kind(value), meaning]));
    }
    text
}

fn kind(value: &Value) -> String {
    let words = |words: &[Value]| {
        words.iter().map(|word| code(word.as_str().unwrap_or_default())).collect::<Vec<_>>().join(", ")
    };
    // An enumeration whose values have descriptions of their own.
    let constants =
        |either: &[Value]| -> Option<Vec<Value>> { either.iter().map(|of| of.get("const").cloned()).collect() };
    if let Some(Value::Array(choices)) = value.get("enum") {
        return words(choices);
    }
    for either in ["oneOf", "anyOf"] {
        let Some(Value::Array(either)) = value.get(either) else { continue };
        return match constants(either) {
            Some(constants) => words(&constants),
            None => either.iter().map(kind).collect::<Vec<_>>().join(" or "),
        };
    }
    match value.get("type") {
        Some(Value::String(name)) if name == "array" => {
            format!("list of {}", value.get("items").map_or("anything".to_owned(), kind))
        }
        Some(Value::String(name)) => name.clone(),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    }
}
