//! The inputs of a drafted plan: what its tools need and nobody gave.

use super::fill::Property;
use rutter_core::plan::schema::{Schema, Types, types};
use serde_json::{Map, Value, json};

#[derive(Default)]
pub(super) struct Inputs(Map<String, Value>);

impl Inputs {
    /// Declares an input of its own for a parameter: two steps may want different things under one name.
    pub(super) fn declare(&mut self, step: &str, property: &Property) -> String {
        let plain: String =
            property.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
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

    pub(super) fn into_schema(self) -> Option<Value> {
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

/// The tool's own schema of the parameter. One that refers to others cannot be moved, so only its types are kept.
fn schema_of(property: &Property) -> Value {
    let text = property.schema.to_string();
    let can_move = !text.contains("\"$ref\"") && !text.contains("\"$dynamicRef\"");
    let mut schema = match Schema::compile(&property.schema) {
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

fn of_types(types: Types) -> Value {
    let names = ["null", "boolean", "number", "integer", "string", "array", "object"];
    let mut names: Vec<&str> = names.into_iter().filter(|name| types.contains(Types::named(name))).collect();
    if names.contains(&"number") {
        names.retain(|name| *name != "integer");
    }
    match names.as_slice() {
        _ if types == Types::ALL => json!({}),
        [] => json!({}),
        [only] => json!({ "type": only }),
        _ => json!({ "type": names }),
    }
}
