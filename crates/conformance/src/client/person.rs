//! Answers what tools ask: whatever fits, and nothing where the form has a default.

use rutter_core::port::tools::{Elicitation, Progress, Reply, Reporter};
use serde_json::{Map, Value, json};

pub(super) struct Person;

impl Reporter for Person {
    fn accepted(&self, _ticket: String) -> Reply<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn ask(&self, question: Elicitation) -> Reply<'_, Option<Value>> {
        let none = Map::new();
        let properties = question.schema["properties"].as_object().unwrap_or(&none);
        let left_to_us = properties.iter().filter(|(_, property)| property.get("default").is_none());
        let said = left_to_us.map(|(name, property)| (name.clone(), fitting(property))).collect();
        Box::pin(std::future::ready(Some(Value::Object(said))))
    }

    fn progress(&self, _progress: Progress) {}
}

/// A value of the type a property has.
pub(super) fn fitting(property: &Value) -> Value {
    match property["type"].as_str() {
        Some("number" | "integer") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        _ => json!("text"),
    }
}
