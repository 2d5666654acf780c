//! Form fields generated from the JSON Schema of an object, and the object parsed from the form. Nested values are
//! typed as JSON.

use rutter_app::error::AppError;
use rutter_core::plan::document::ambiguities;
use serde_json::{Map, Number, Value, json};

/// The prefix of every generated field, so that none can pass for a field of the page.
pub(super) const PREFIX: &str = "field.";

#[derive(Clone, Debug, PartialEq)]
pub struct FormField {
    /// The name in the form, with the prefix.
    pub name: String,
    pub label: String,
    pub description: String,
    /// `text`, `number`, `checkbox`, `select` or `json`.
    pub kind: &'static str,
    pub choices: Vec<String>,
    pub value: String,
    pub required: bool,
}

/// The fields of a schema, in its order.
pub(crate) fn of(schema: &Value) -> Vec<FormField> {
    let required = |name: &str| {
        let required = schema["required"].as_array();
        required.is_some_and(|names| names.iter().any(|known| known == name))
    };
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let field = |(name, about): (&String, &Value)| {
        let choices: Vec<String> = about["enum"].as_array().into_iter().flatten().map(plain).collect();
        FormField {
            name: format!("{PREFIX}{name}"),
            label: about["title"].as_str().unwrap_or(name).to_owned(),
            description: about["description"].as_str().unwrap_or_default().to_owned(),
            kind: match about["type"].as_str() {
                _ if !choices.is_empty() => "select",
                Some("boolean") => "checkbox",
                Some("number" | "integer") => "number",
                Some("object" | "array") => "json",
                Some("string") => "text",
                // Any value, or one of several types.
                _ => "json",
            },
            choices,
            value: about.get("default").map(plain).unwrap_or_default(),
            required: required(name),
        }
    };
    properties.iter().map(field).collect()
}

/// The object that the fields describe. Empty fields are omitted.
pub(crate) fn read<'a>(schema: &Value, message: impl Fn(&str) -> Option<&'a str>) -> Result<Value, AppError> {
    let mut object = Map::new();
    for (name, about) in schema["properties"].as_object().into_iter().flatten() {
        let typed = message(&format!("{PREFIX}{name}"));
        let kind = about["type"].as_str().unwrap_or_default();
        let wrong = |expected: &str| AppError::new("server.arguments", format!("{name} must be {expected}"));
        if let Some(found) = typed.filter(|_| kind != "string").and_then(|typed| ambiguities(typed.as_bytes()).pop()) {
            let at = if found.pointer.is_empty() { String::new() } else { format!(" at {}", found.pointer) };
            return Err(AppError::new("server.arguments", format!("{name}: {}{at}", found.message)));
        }
        let value = match (kind, typed) {
            ("boolean", typed) => json!(typed.is_some()),
            (_, None) => continue,
            ("integer", Some(typed)) => {
                json!(typed.trim().parse::<i64>().map_err(|_| wrong("a whole number"))?)
            }
            ("number", Some(typed)) => {
                let number = typed.trim().parse().ok().and_then(Number::from_f64);
                Value::Number(number.ok_or_else(|| wrong("a number"))?)
            }
            ("string", Some(typed)) => json!(typed),
            ("object" | "array", Some(typed)) => serde_json::from_str(typed).map_err(|_| wrong("JSON"))?,
            // Text that is not JSON is taken as a string.
            (_, Some(typed)) => serde_json::from_str(typed).unwrap_or_else(|_| json!(typed)),
        };
        object.insert(name.clone(), value);
    }
    Ok(Value::Object(object))
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parsed_form_matches_its_schema() {
        let schema = json!({ "type": "object", "required": ["seat"], "properties": {
            "seat": { "type": "string", "enum": ["aisle", "window"], "title": "Seat" },
            "bags": { "type": "integer" }, "weight": { "type": "number" },
            "insured": { "type": "boolean" }, "note": { "type": "string" } } });
        let fields = of(&schema);
        let kinds: Vec<_> = fields.iter().map(|field| (field.name.as_str(), field.kind, field.required)).collect();
        assert_eq!(
            kinds,
            [
                ("field.seat", "select", true),
                ("field.bags", "number", false),
                ("field.weight", "number", false),
                ("field.insured", "checkbox", false),
                ("field.note", "text", false),
            ]
        );
        let typed = [("field.seat", "aisle"), ("field.bags", "2"), ("field.weight", "7.5")];
        let message = |name: &str| typed.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let object = json!({ "seat": "aisle", "bags": 2, "weight": 7.5, "insured": false });
        assert_eq!(read(&schema, message).unwrap(), object);
        let refused = read(&schema, |name| (name == "field.bags").then_some("two"));
        assert_eq!(refused.unwrap_err().message, "bags must be a whole number");
    }

    /// Every kind of field is as strict as a request.
    #[test]
    fn what_two_programs_could_read_differently_is_refused() {
        for (kind, typed) in [
            ("integer", "9007199254740993"),
            ("number", "9007199254740993"),
            ("object", r#"{"a":1,"a":2}"#),
            ("array", "[9007199254740993]"),
            ("", "9007199254740993"),
        ] {
            let schema = json!({ "properties": { "x": { "type": kind } } });
            let refused = read(&schema, |_| Some(typed)).unwrap_err();
            assert_eq!(refused.code, "server.arguments", "{kind} {typed}");
            assert!(refused.message.starts_with("x: "), "{}", refused.message);
        }
        let schema = json!({ "properties": { "x": { "type": "string" } } });
        assert_eq!(read(&schema, |_| Some("9007199254740993")).unwrap(), json!({ "x": "9007199254740993" }));
    }
}
