//! What a schema may be, so that compiling and using it stays quick.

use super::SchemaError;
use crate::limits;
use crate::plan::expression::json_bytes;
use serde_json::Value;
use std::collections::HashMap;

pub(super) const BACKTRACKS_MAX: usize = 10_000;
pub(super) const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Keywords below which everything is data.
const DATA: [&str; 5] = ["const", "enum", "default", "examples", "example"];
const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Refuses a schema that is too large, too deep, refers elsewhere, or grows too large by its references.
pub(super) fn check(schema: &Value) -> Result<(), SchemaError> {
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
    let reach = Reach { root: schema, known: HashMap::new() }.of(schema, 0);
    match reach > limits::SCHEMA_REACH_MAX {
        true => Err(wrong("", "the schema grows too large when its references are followed")),
        false => Ok(()),
    }
}

/// Counts the values a schema has when every reference is replaced by what it refers to.
struct Reach<'s> {
    root: &'s Value,
    /// By reference; a reference being followed right now counts as nothing, which ends cycles.
    known: HashMap<&'s str, usize>,
}

impl<'s> Reach<'s> {
    fn of(&mut self, value: &'s Value, depth: usize) -> usize {
        // A chain of references deeper than this is not written by hand.
        if depth > 4 * limits::DEPTH_MAX {
            return limits::SCHEMA_REACH_MAX + 1;
        }
        match value {
            Value::Array(items) => {
                items.iter().fold(1, |sum: usize, item| sum.saturating_add(self.of(item, depth + 1)))
            }
            Value::Object(map) => {
                let children = map.iter().filter(|(key, _)| *key != "$defs" && *key != "definitions");
                children.fold(1, |sum: usize, (key, child)| {
                    let reach = match child {
                        Value::String(target) if REFERENCES.contains(&key.as_str()) => {
                            self.target(target, depth)
                        }
                        _ => self.of(child, depth + 1),
                    };
                    sum.saturating_add(reach)
                })
            }
            _ => 1,
        }
    }

    fn target(&mut self, reference: &'s str, depth: usize) -> usize {
        if let Some(reach) = self.known.get(reference) {
            return *reach;
        }
        let Some(target) = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer)) else {
            return 1;
        };
        self.known.insert(reference, 0);
        let reach = self.of(target, depth + 1);
        self.known.insert(reference, reach);
        reach
    }
}

fn wrong(pointer: &str, message: impl Into<String>) -> SchemaError {
    SchemaError { pointer: pointer.to_owned(), message: message.into() }
}
