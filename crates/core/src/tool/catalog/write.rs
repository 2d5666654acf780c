//! Writes a catalogue file. Reading it gives the same tools, with the same definitions.

use crate::tool::{Tool, ToolCatalog};
use serde_json::{Map, Value, json};

impl ToolCatalog {
    /// The file that [`ToolCatalog::from_json`] reads.
    pub fn to_json(&self) -> Value {
        let mut file = json!({ "tools": self.tools.values().map(|tool| row(tool)).collect::<Vec<Value>>() });
        if !self.unreachable.is_empty() {
            file["unreachable"] = json!(self.unreachable);
        }
        file
    }
}

fn row(tool: &Tool) -> Value {
    let mut row = Map::from_iter([
        ("name".to_owned(), json!(tool.name)),
        ("description".to_owned(), json!(tool.description)),
        ("safety".to_owned(), json!(tool.safety)),
        ("safety_source".to_owned(), json!(tool.safety_source)),
        ("definition".to_owned(), json!(tool.definition)),
    ]);
    if tool.input.is_object() {
        row.insert("inputSchema".to_owned(), (*tool.input).clone());
    }
    if let Some(output) = &tool.output {
        row.insert("outputSchema".to_owned(), (**output).clone());
    }
    if let Some(key) = &tool.key_parameter {
        row.insert("key_parameter".to_owned(), json!(key));
    }
    if tool.sends_key {
        row.insert("sends_key".to_owned(), true.into());
    }
    if let Some(grace) = tool.grace {
        row.insert("grace".to_owned(), json!(grace.to_string()));
    }
    if let Some(window) = tool.key_window {
        row.insert("key_window".to_owned(), json!(window.to_string()));
    }
    if !tool.attempts.is_empty() {
        row.insert("attempts".to_owned(), json!(tool.attempts));
    }
    Value::Object(row)
}
