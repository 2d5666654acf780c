//! JSON Schemas that every client understands: no references, no integer formats, no null.

use rmcp::model::JsonObject;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use schemars::{JsonSchema, Schema};
use serde_json::{Value, json};
use std::sync::Arc;

/// For arguments.
pub fn portable<T: JsonSchema>() -> Arc<JsonObject> {
    portable_with::<T>(SchemaSettings::draft2020_12())
}

/// For results: fields that may be absent are not required.
pub fn portable_answer<T: JsonSchema>() -> Arc<JsonObject> {
    portable_with::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// The schema of a result without descriptions, since every prompt carries it; the reference has them. The required
/// fields are omitted: every result has `summary` and `next`.
pub fn terse(schema: &JsonObject) -> Arc<JsonObject> {
    let mut schema = Schema::from(schema.clone());
    let remark = |schema: &mut Schema| {
        schema.remove("description");
    };
    RecursiveTransform(remark).transform(&mut schema);
    let mut object = schema.as_object().cloned().unwrap_or_default();
    object.insert("required".to_owned(), json!(["summary", "next"]));
    Arc::new(object)
}

fn portable_with<T: JsonSchema>(settings: SchemaSettings) -> Arc<JsonObject> {
    let settings = settings.with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(simplify).transform(&mut schema);
    let mut object = schema.as_object().cloned().unwrap_or_default();
    object.remove("title");
    object.remove("description");
    Arc::new(object)
}

fn simplify(schema: &mut Schema) {
    // `true` accepts anything, which some clients cannot read.
    if schema.as_bool() == Some(true) {
        *schema = Schema::default();
    }
    let Some(object) = schema.as_object_mut() else { return };
    let is_number =
        |format: &str| format.starts_with("uint") || format.starts_with("int") || matches!(format, "float" | "double");
    if object.get("format").and_then(Value::as_str).is_some_and(is_number) {
        object.remove("format");
    }
    // Defaults that are obvious cost tokens in every prompt.
    if object.get("default").is_some_and(goes_without_saying) {
        object.remove("default");
    }
    if object.get("additionalProperties").is_some_and(goes_without_saying_of_others) {
        object.remove("additionalProperties");
    }
    if object.get("minimum").is_some_and(|least| *least == 0) {
        object.remove("minimum");
    }
    if let Some(Value::Array(types)) = object.get("type") {
        let types: Vec<Value> = types.iter().filter(|name| *name != "null").cloned().collect();
        if let [only] = types.as_slice() {
            object.insert("type".to_owned(), only.clone());
        }
    }
    if let Some(Value::Array(options)) = object.get_mut("enum") {
        options.retain(|option| !option.is_null());
    }
    // An optional enumeration: the value, or null.
    let alone = |options: &Value| {
        let some: Vec<&Value> = options.as_array()?.iter().filter(|option| option["type"] != "null").collect();
        match some.as_slice() {
            [Value::Object(only)] => Some(only.clone()),
            _ => None,
        }
    };
    if let Some(only) = object.get("anyOf").and_then(alone) {
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}

/// The default is empty: null, false, or an empty list or object.
fn goes_without_saying(default: &Value) -> bool {
    match default {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_u64() == Some(0),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(true) | Value::String(_) => false,
    }
}

/// Additional properties of any type are the default.
fn goes_without_saying_of_others(schema: &Value) -> bool {
    *schema == Value::Bool(true) || schema.as_object().is_some_and(|fields| fields.is_empty())
}
