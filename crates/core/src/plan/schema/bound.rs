//! Limits of a schema, so that compiling and using it stays fast.

use super::SchemaError;
use crate::limits;
use crate::plan::expression::json_bytes;
use serde_json::Value;
use std::collections::HashMap;

pub(super) const PATTERN_BYTES_MAX: usize = 256 << 10;

/// Keywords whose content is data, not schemas.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "example"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Refuses a schema that is too large, too deep, has external references, or grows too large when references
/// are followed. Returns the number of recursive references.
pub(super) fn check(schema: &Value) -> Result<usize, SchemaError> {
    if json_bytes(schema, limits::SCHEMA_BYTES_MAX).is_none() {
        return Err(wrong("", format!("the schema has more than {} bytes", limits::SCHEMA_BYTES_MAX)));
    }
    let mut nodes = 0;
    let mut open = vec![(schema, String::new(), 0, false)];
    while let Some((value, pointer, depth, is_data)) = open.pop() {
        nodes += 1;
        if depth > limits::DEPTH_MAX {
            return Err(wrong(&pointer, format!("more than {} levels of nesting", limits::DEPTH_MAX)));
        }
        if nodes > limits::SCHEMA_NODES_MAX {
            return Err(wrong("", format!("the schema has more than {} values", limits::SCHEMA_NODES_MAX)));
        }
        match value {
            Value::Array(items) => {
                let children = items.iter().enumerate();
                open.extend(children.map(|(at, item)| (item, format!("{pointer}/{at}"), depth + 1, is_data)));
            }
            Value::Object(map) => {
                for (key, child) in map {
                    let at = format!("{pointer}/{}", super::escape(key));
                    if !is_data
                        && REFERENCES.contains(&key.as_str())
                        && child.as_str().is_some_and(|target| !target.starts_with('#'))
                    {
                        return Err(wrong(&at, "expected a reference within the schema, beginning with #"));
                    }
                    open.push((child, at, depth + 1, is_data || DATA.contains(&key.as_str())));
                }
            }
            _ => {}
        }
    }
    let reach = SchemaReachWalk { root: schema, known: HashMap::new() }.reach(schema, 0);
    match reach.values > limits::SCHEMA_REACH_MAX {
        true => Err(wrong("", "the schema grows too large when its references are followed")),
        false => Ok(reach.recursions),
    }
}

/// The nesting depth of a value.
pub(super) fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => open.extend(map.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    deepest
}

/// The size of a schema with every reference replaced by its target.
#[derive(Clone, Copy)]
struct SchemaReach {
    values: usize,
    /// The number of recursive references.
    recursions: usize,
}

impl SchemaReach {
    fn plus(self, other: SchemaReach) -> SchemaReach {
        SchemaReach {
            values: self.values.saturating_add(other.values),
            recursions: self.recursions.saturating_add(other.recursions),
        }
    }
}

struct SchemaReachWalk<'s> {
    root: &'s Value,
    /// By reference; `None` while it is being followed.
    known: HashMap<&'s str, Option<SchemaReach>>,
}

impl<'s> SchemaReachWalk<'s> {
    fn reach(&mut self, value: &'s Value, depth: usize) -> SchemaReach {
        let one = SchemaReach { values: 1, recursions: 0 };
        // No sensible schema has a longer chain of references.
        if depth > 4 * limits::DEPTH_MAX {
            return SchemaReach { values: limits::SCHEMA_REACH_MAX + 1, ..one };
        }
        match value {
            Value::Array(items) => items.iter().fold(one, |sum, item| sum.plus(self.reach(item, depth + 1))),
            Value::Object(map) => {
                let children = map.iter().filter(|(key, _)| *key != "$defs" && *key != "definitions");
                children.fold(one, |sum, (key, child)| match child {
                    Value::String(target) if REFERENCES.contains(&key.as_str()) => sum.plus(self.target(target, depth)),
                    _ => sum.plus(self.reach(child, depth + 1)),
                })
            }
            _ => one,
        }
    }

    fn target(&mut self, reference: &'s str, depth: usize) -> SchemaReach {
        match self.known.get(reference) {
            Some(Some(reach)) => return *reach,
            Some(None) => return SchemaReach { values: 1, recursions: 1 },
            None => {}
        }
        let Some(target) = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) else {
            // An anchor can be anywhere, also further up.
            return SchemaReach { values: 1, recursions: 1 };
        };
        self.known.insert(reference, None);
        let reach = self.reach(target, depth + 1);
        self.known.insert(reference, Some(reach));
        reach
    }
}

fn wrong(pointer: &str, message: impl Into<String>) -> SchemaError {
    SchemaError { pointer: pointer.to_owned(), message: message.into() }
}
