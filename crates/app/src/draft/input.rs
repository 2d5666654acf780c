//! The inputs of a drafted plan: required parameters without a value.

use super::fill::ToolParameter;
use rutter_core::plan::schema::{CompiledSchema, JsonTypeSet, types};
use serde_json::{Map, Value, json};

#[derive(Default)]
pub struct DraftInputs(Map<String, Value>);

impl DraftInputs {
    /// Declares an input for one parameter: two steps may need different values under one name.
    pub fn declare(&mut self, step: &str, property: &ToolParameter) -> String {
        let plain: String = property.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let begins = plain.starts_with(|c: char| c.is_ascii_alphabetic());
        let mut name = if begins { plain.clone() } else { format!("{step}_{plain}") };
        let mut number = 1;
        while self.0.contains_key(&name) {
            name = if number == 1 { format!("{step}_{plain}") } else { format!("{step}_{plain}_{number}") };
            number += 1;
        }
        self.0.insert(name.clone(), schema_of(property));
        name
    }

    pub fn into_schema(self) -> Option<Value> {
        if self.0.is_empty() {
            return None;
        }
        let required: Vec<&String> = self.0.keys().collect();
        let required = json!(required);
        Some(json!({
            "type": "object", "required": required, "properties": self.0, "additionalProperties": false,
        }))
    }
}

/// The tool's own schema of the parameter. If it has references it cannot be moved, and only its types remain.
fn schema_of(property: &ToolParameter) -> Value {
    let text = property.schema.to_string();
    let can_move = !text.contains("\"$ref\"") && !text.contains("\"$dynamicRef\"");
    let mut schema = match CompiledSchema::compile(&property.schema) {
        Ok(_) if can_move && property.schema.is_object() => property.schema.clone(),
        _ => of_types(types(&property.schema)),
    };
    if let Value::Object(fields) = &mut schema {
        fields.remove("$defs");
        fields.remove("default");
        let description = property.description();
        if !description.is_empty() {
            fields.insert("description".to_owned(), json!(description));
        }
    }
    schema
}

fn of_types(types: JsonTypeSet) -> Value {
    let names = ["null", "boolean", "number", "integer", "string", "array", "object"];
    let mut names: Vec<&str> = names.into_iter().filter(|name| types.contains(JsonTypeSet::named(name))).collect();
    if names.contains(&"number") {
        names.retain(|name| *name != "integer");
    }
    match names.as_slice() {
        _ if types == JsonTypeSet::ALL => json!({}),
        [] => json!({}),
        [only] => json!({ "type": only }),
        _ => json!({ "type": names }),
    }
}
