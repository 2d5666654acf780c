//! The tools of the scenarios, one of each kind.

use rutter_core::hash::Hash;
use rutter_core::id::ToolName;
use rutter_core::tool::{Safety, SafetySource, Tool, ToolCatalog};
use serde_json::json;
use std::sync::Arc;

/// Name, safety, and the parameter that takes an idempotency key.
const TOOLS: &[(&str, Safety, Option<&str>)] = &[
    ("t.read", Safety::ReadOnly, None),
    ("t.find", Safety::ReadOnly, None),
    ("t.set", Safety::Idempotent, None),
    ("t.once", Safety::Once, None),
    ("t.other", Safety::Once, None),
    ("t.keyed", Safety::Once, Some("key")),
    ("t.undo", Safety::Idempotent, None),
    ("t.undo_once", Safety::Once, None),
];

pub fn catalog() -> ToolCatalog {
    let tools = TOOLS.iter().map(|(name, safety, key)| {
        let tool = Tool {
            name: ToolName::new(name),
            description: String::new(),
            input: Arc::new(json!({"type": "object"})),
            output: None,
            safety: *safety,
            safety_source: SafetySource::Configured,
            key_parameter: key.map(str::to_owned),
            sends_key: false,
            grace: None,
            key_window: None,
            attempts: Default::default(),
            definition: Hash::of(&[name.as_bytes()]),
        };
        (tool.name.clone(), Arc::new(tool))
    });
    ToolCatalog { tools: tools.collect(), ..ToolCatalog::default() }
}
