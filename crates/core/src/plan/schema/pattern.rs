//! Removes patterns that cannot be matched in linear time, such as look-around.

use super::build;
use jsonschema::PatternOptions;
use serde_json::{Value, json};

/// The schema without the patterns that need a backtracking engine; `None` if there are none.
/// Such patterns are then not checked here, but only by the tool itself.
pub(super) fn without_unsupported(schema: &Value) -> Option<Value> {
    let mut rest = schema.clone();
    strip(&mut rest).then_some(rest)
}

/// The depth is bounded by an earlier check.
fn strip(value: &mut Value) -> bool {
    match value {
        Value::Array(items) => items.iter_mut().fold(false, |found, item| strip(item) | found),
        Value::Object(map) => {
            let mut found = false;
            if map.get("pattern").and_then(Value::as_str).is_some_and(is_unsupported) {
                map.shift_remove("pattern");
                found = true;
            }
            if let Some(Value::Object(patterns)) = map.get_mut("patternProperties") {
                let before = patterns.len();
                patterns.retain(|pattern, _| !is_unsupported(pattern));
                if patterns.len() < before {
                    // It is no longer known which keys are additional.
                    map.shift_remove("additionalProperties");
                    map.shift_remove("unevaluatedProperties");
                    found = true;
                }
            }
            map.values_mut().fold(found, |found, child| strip(child) | found)
        }
        _ => false,
    }
}

/// Whether a pattern is valid, but not supported by the linear engine.
fn is_unsupported(pattern: &str) -> bool {
    let schema = json!({ "pattern": pattern });
    let backtracking = PatternOptions::fancy_regex().size_limit(super::bound::PATTERN_BYTES_MAX);
    build(&schema).is_err() && jsonschema::options().offline().with_pattern_options(backtracking).build(&schema).is_ok()
}
