//! Answers tools' questions with any fitting value, and omits fields that have a default.

use rutter_core::port::tools::{CallReporter, PortFuture, ToolProgress};
use rutter_core::tool::{CallOutcome, Elicitation};
use serde_json::{Map, Value, json};

pub(super) struct ScriptedPerson;

impl CallReporter for ScriptedPerson {
    fn accepted(&self, _ticket: String) -> PortFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn ask(&self, question: Elicitation) -> PortFuture<'_, Option<Value>> {
        let none = Map::new();
        let properties = question.schema["properties"].as_object().unwrap_or(&none);
        let left_to_us = properties.iter().filter(|(_, property)| property.get("default").is_none());
        let message = left_to_us.map(|(name, property)| (name.clone(), fitting(property))).collect();
        Box::pin(std::future::ready(Some(Value::Object(message))))
    }

    fn progress(&self, _progress: ToolProgress) {}

    fn late(&self, _outcome: CallOutcome) {}
}

/// A value of a property's type.
pub(super) fn fitting(property: &Value) -> Value {
    match property["type"].as_str() {
        Some("number" | "integer") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        _ => json!("text"),
    }
}
