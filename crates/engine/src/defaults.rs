//! Defaults of a plan for inputs that are missing.

use serde_json::{Map, Value};
use std::sync::Arc;

/// Fills in the schema's defaults for missing inputs, also within nested objects.
pub(crate) fn filled(schema: &Value, inputs: &Arc<Value>) -> Arc<Value> {
    let mut whole = match &**inputs {
        Value::Object(fields) => fields.clone(),
        _ => return Arc::clone(inputs),
    };
    fill(schema, &mut whole);
    Arc::new(Value::Object(whole))
}

fn fill(schema: &Value, fields: &mut Map<String, Value>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        match (fields.get_mut(name), property.get("default")) {
            (Some(Value::Object(inner)), _) => fill(property, inner),
            (None, Some(default)) => drop(fields.insert(name.clone(), default.clone())),
            (Some(_), _) | (None, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_what_is_missing_is_filled_in() {
        let schema = json!({ "properties": {
            "notes": { "default": "" },
            "size": { "properties": { "x": { "default": 1 }, "y": {} } },
            "far": { "properties": { "x": { "default": 1 } } },
        }});
        let inputs = Arc::new(json!({ "size": { "y": 2 }, "other": null }));
        let expected = json!({ "notes": "", "size": { "x": 1, "y": 2 }, "other": null });
        assert_eq!(*filled(&schema, &inputs), expected);
        let json = Arc::new(json!({ "notes": null }));
        assert_eq!(*filled(&schema, &json), json!({ "notes": null }), "null was given");
        assert_eq!(*filled(&json!(true), &json), *json);
    }
}
