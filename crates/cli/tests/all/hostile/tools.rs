//! Invalid calls of a tool, made from its own input schema.

use serde_json::{Map, Value, json};

/// The parameters of each call, and whether it must be refused.
pub fn calls(tool: &Value) -> Vec<(Value, bool)> {
    let schema = &tool["inputSchema"];
    let needs = schema["required"].as_array().is_some_and(|required| !required.is_empty());
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let every = |value: &dyn Fn(&Value) -> Value| -> Value {
        properties.iter().map(|(name, about)| (name.clone(), value(about))).collect::<Map<_, _>>().into()
    };
    let large = "x".repeat(1 << 20);
    let deep = (0..100).fold(json!({}), |inner, _| json!({ "a": inner }));
    let plan = json!({ "name": "deep", "steps": [{ "id": "a", "tool": "dock.load", "parameters": deep }] });
    let text = "[".repeat(10_000);
    let with_plan = |plan: Value| match properties.contains_key("plan") {
        true => json!({ "plan": plan }),
        false => json!({ "plan_of_mine": plan }),
    };
    let calls = [
        (None, needs),
        (Some(json!({})), needs),
        (Some(json!({ "no_such_argument": 1 })), true),
        (Some(every(&wrong_type)), true),
        (Some(every(&|_| json!(null))), needs),
        (Some(every(&|about| if is_number(about) { json!(u64::MAX) } else { json!(1e308) })), true),
        (Some(json!({ text_of(&properties): large })), needs),
        (Some(with_plan(plan)), true),
        (Some(with_plan(json!(text))), true),
    ];
    let name = &tool["name"];
    let call = |(arguments, must_fail): (Option<Value>, bool)| match arguments {
        Some(arguments) => (json!({ "name": name, "arguments": arguments }), must_fail),
        None => (json!({ "name": name }), must_fail),
    };
    calls.into_iter().map(call).collect()
}

/// The name of a string argument.
fn text_of(properties: &Map<String, Value>) -> &str {
    properties.iter().find(|(_, about)| is_text(about)).map_or("none", |(name, _)| name)
}

fn is_number(about: &Value) -> bool {
    about["type"] == "integer" || about["type"] == "number"
}

fn is_text(about: &Value) -> bool {
    about["type"] == "string"
}

fn wrong_type(about: &Value) -> Value {
    if is_text(about) { json!({ "text": 7 }) } else { json!("neither number, list nor object") }
}
