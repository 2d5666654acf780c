//! Looks up the schema of a path, without a value. When unsure, the answer is "unknown".

use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

/// The result of looking up a path in a schema.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaLookup {
    /// The schema of the value at the path, including its definitions.
    Known(Value),
    /// The schema does not say.
    Unknown,
    /// The schema declares other keys and does not forbid this one.
    Undeclared { known_keys: Vec<String> },
    /// There can be no value.
    Missing { known_keys: Vec<String> },
}

/// A set of JSON types. Integers and other numbers are two members.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JsonTypeSet(u8);

const NAMES: [&str; 7] = ["null", "boolean", "integer", "fraction", "string", "array", "object"];

impl JsonTypeSet {
    pub const NONE: JsonTypeSet = JsonTypeSet(0);
    pub const ALL: JsonTypeSet = JsonTypeSet(0b111_1111);
    pub const NULL: JsonTypeSet = JsonTypeSet(1);
    pub const BOOLEAN: JsonTypeSet = JsonTypeSet(1 << 1);
    pub const INTEGER: JsonTypeSet = JsonTypeSet(1 << 2);
    pub const NUMBER: JsonTypeSet = JsonTypeSet(0b11 << 2);
    pub const STRING: JsonTypeSet = JsonTypeSet(1 << 4);
    pub const ARRAY: JsonTypeSet = JsonTypeSet(1 << 5);
    pub const OBJECT: JsonTypeSet = JsonTypeSet(1 << 6);

    /// The type with this name in a schema; an unknown name excludes nothing.
    pub fn named(name: &str) -> JsonTypeSet {
        match name {
            "null" => JsonTypeSet::NULL,
            "boolean" => JsonTypeSet::BOOLEAN,
            "integer" => JsonTypeSet::INTEGER,
            "number" => JsonTypeSet::NUMBER,
            "string" => JsonTypeSet::STRING,
            "array" => JsonTypeSet::ARRAY,
            "object" => JsonTypeSet::OBJECT,
            _ => JsonTypeSet::ALL,
        }
    }

    pub fn of(value: &Value) -> JsonTypeSet {
        match value {
            Value::Null => JsonTypeSet::NULL,
            Value::Bool(_) => JsonTypeSet::BOOLEAN,
            // 2.0 is an integer to JSON Schema.
            Value::Number(number) if number.as_f64().is_some_and(|float| float.fract() != 0.0) => {
                JsonTypeSet(JsonTypeSet::NUMBER.0 & !JsonTypeSet::INTEGER.0)
            }
            Value::Number(_) => JsonTypeSet::INTEGER,
            Value::String(_) => JsonTypeSet::STRING,
            Value::Array(_) => JsonTypeSet::ARRAY,
            Value::Object(_) => JsonTypeSet::OBJECT,
        }
    }

    pub fn and(self, other: JsonTypeSet) -> JsonTypeSet {
        JsonTypeSet(self.0 & other.0)
    }

    pub fn or(self, other: JsonTypeSet) -> JsonTypeSet {
        JsonTypeSet(self.0 | other.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn contains(self, other: JsonTypeSet) -> bool {
        self.and(other) == other
    }
}

impl fmt::Display for JsonTypeSet {
    /// `integer or string`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == JsonTypeSet::ALL {
            return f.write_str("anything");
        }
        let is_number = self.contains(JsonTypeSet::NUMBER);
        let mut names: Vec<&str> = Vec::new();
        for (bit, name) in NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0) {
            match bit {
                2 if is_number => names.push("number"),
                3 if is_number => {}
                3 => names.push("number"),
                _ => names.push(name),
            }
        }
        f.write_str(if names.is_empty() { "nothing".to_owned() } else { names.join(" or ") }.as_str())
    }
}

impl fmt::Debug for JsonTypeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The types that valid values can have; possibly too many, never too few.
pub fn types(schema: &Value) -> JsonTypeSet {
    SchemaLookupWalk::new(schema).types(schema, 0)
}

/// Looks up the schema of the value at the path. A segment of digits is a position or a key.
pub fn schema_at(schema: &Value, path: &[String]) -> SchemaLookup {
    let walk = SchemaLookupWalk::new(schema);
    let mut current = Cow::Borrowed(schema);
    for segment in path {
        current = match walk.step(&current, segment, 0) {
            SegmentLookup::Known(schema) => Cow::Owned(schema),
            SegmentLookup::Silent | SegmentLookup::Unknown => return SchemaLookup::Unknown,
            SegmentLookup::Undeclared(known_keys) => return SchemaLookup::Undeclared { known_keys },
            SegmentLookup::Missing(known_keys) => return SchemaLookup::Missing { known_keys },
        };
    }
    SchemaLookup::Known(walk.standing_alone(current.into_owned()))
}

/// The result of looking up one segment in one part of a schema.
enum SegmentLookup {
    Known(Value),
    Missing(Vec<String>),
    /// Cannot be known.
    Unknown,
    Undeclared(Vec<String>),
    /// This part does not apply to it.
    Silent,
}

struct SchemaLookupWalk<'s> {
    root: &'s Value,
    lookups: Cell<usize>,
}

/// Nesting of references and compositions.
const NESTING_MAX: usize = 32;
const LOOKUPS_MAX: usize = 10_000;
/// The most known keys returned; they are only for suggestions.
const KEYS_MAX: usize = 200;

impl<'s> SchemaLookupWalk<'s> {
    fn new(root: &'s Value) -> SchemaLookupWalk<'s> {
        SchemaLookupWalk { root, lookups: Cell::new(0) }
    }

    fn is_spent(&self, depth: usize) -> bool {
        self.lookups.set(self.lookups.get() + 1);
        depth > NESTING_MAX || self.lookups.get() > LOOKUPS_MAX
    }

    fn types(&self, schema: &Value, depth: usize) -> JsonTypeSet {
        let Value::Object(map) = schema else {
            return if *schema == Value::Bool(false) { JsonTypeSet::NONE } else { JsonTypeSet::ALL };
        };
        if self.is_spent(depth) {
            return JsonTypeSet::ALL;
        }
        let mut types = match map.get("type") {
            Some(Value::String(name)) => JsonTypeSet::named(name),
            Some(Value::Array(names)) => names
                .iter()
                .map(|name| name.as_str().map_or(JsonTypeSet::ALL, JsonTypeSet::named))
                .fold(JsonTypeSet::NONE, JsonTypeSet::or),
            _ => JsonTypeSet::ALL,
        };
        if is_plain(map) {
            return types;
        }
        if let Some(Value::Array(options)) = map.get("enum") {
            types = types.and(options.iter().map(JsonTypeSet::of).fold(JsonTypeSet::NONE, JsonTypeSet::or));
        }
        if let Some(value) = map.get("const") {
            types = types.and(JsonTypeSet::of(value));
        }
        if let Some(target) = self.target(map) {
            types = types.and(self.types(target, depth + 1));
        }
        for part in list(map, "allOf") {
            types = types.and(self.types(part, depth + 1));
        }
        for key in ["anyOf", "oneOf"] {
            let parts = list(map, key);
            if !parts.is_empty() {
                let either =
                    parts.iter().map(|part| self.types(part, depth + 1)).fold(JsonTypeSet::NONE, JsonTypeSet::or);
                types = types.and(either);
            }
        }
        types
    }

    fn step(&self, schema: &Value, segment: &str, depth: usize) -> SegmentLookup {
        let Value::Object(map) = schema else { return SegmentLookup::Silent };
        if self.is_spent(depth) {
            return SegmentLookup::Unknown;
        }
        let types = self.types(schema, depth);
        if types == JsonTypeSet::OBJECT && is_plain(map) {
            return property(map, segment);
        }
        if !types.is_empty() && types.and(JsonTypeSet::OBJECT.or(JsonTypeSet::ARRAY)).is_empty() {
            return SegmentLookup::Missing(Vec::new());
        }
        let position = segment.parse::<usize>().ok();
        let own = match position {
            Some(position) if types.contains(JsonTypeSet::ARRAY) && !types.contains(JsonTypeSet::OBJECT) => {
                item(map, position)
            }
            Some(position) if map.contains_key("items") || map.contains_key("prefixItems") => item(map, position),
            None if !types.is_empty() && !types.contains(JsonTypeSet::OBJECT) => SegmentLookup::Missing(Vec::new()),
            _ => property(map, segment),
        };
        let mut all = vec![own];
        if ["$ref", "$dynamicRef", "$recursiveRef"].iter().any(|key| map.contains_key(*key)) {
            all.push(self.target(map).map_or(SegmentLookup::Unknown, |target| self.step(target, segment, depth + 1)));
        }
        all.extend(list(map, "allOf").iter().map(|part| self.step(part, segment, depth + 1)));
        for key in ["anyOf", "oneOf"] {
            let parts = list(map, key);
            if !parts.is_empty() {
                all.push(either(parts.iter().map(|part| self.step(part, segment, depth + 1)).collect()));
            }
        }
        if ["if", "dependentSchemas"].iter().any(|key| map.contains_key(*key)) {
            all.push(SegmentLookup::Unknown);
        }
        both(all)
    }

    fn target(&self, map: &Map<String, Value>) -> Option<&'s Value> {
        let reference = map.get("$ref")?.as_str()?;
        self.root.pointer(reference.strip_prefix('#')?)
    }

    /// Adds the definitions that its references may need.
    fn standing_alone(&self, mut schema: Value) -> Value {
        if let (Value::Object(map), Value::Object(root)) = (&mut schema, self.root) {
            for key in ["$defs", "definitions"] {
                if let Some(definitions) = root.get(key).filter(|_| !map.contains_key(key)) {
                    map.insert(key.to_owned(), definitions.clone());
                }
            }
        }
        schema
    }
}

/// Whether a schema has only its type and its properties, as most do. Checking its few keys is cheaper than looking up
/// every possible keyword.
fn is_plain(map: &Map<String, Value>) -> bool {
    const PLAIN: [&str; 8] =
        ["type", "properties", "required", "additionalProperties", "description", "title", "$schema", "default"];
    map.keys().all(|key| PLAIN.contains(&key.as_str()))
}

fn list<'v>(map: &'v Map<String, Value>, key: &str) -> &'v [Value] {
    map.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn property(map: &Map<String, Value>, key: &str) -> SegmentLookup {
    let properties = map.get("properties").and_then(Value::as_object);
    if let Some(schema) = properties.and_then(|properties| properties.get(key)) {
        return SegmentLookup::Known(schema.clone());
    }
    if map.get("patternProperties").is_some_and(|patterns| patterns.as_object().is_none_or(|map| !map.is_empty())) {
        return SegmentLookup::Unknown;
    }
    let known = || properties.into_iter().flatten().map(|(key, _)| key.clone()).take(KEYS_MAX).collect();
    match (map.get("additionalProperties"), properties) {
        (Some(Value::Bool(false)), _) => SegmentLookup::Missing(known()),
        (Some(schema @ Value::Object(_)), _) => SegmentLookup::Known(schema.clone()),
        (Some(_), _) => SegmentLookup::Unknown,
        (None, _) if map.get("unevaluatedProperties").is_some_and(|rest| *rest != Value::Bool(false)) => {
            SegmentLookup::Unknown
        }
        (None, Some(_)) => SegmentLookup::Undeclared(known()),
        (None, None) => SegmentLookup::Silent,
    }
}

fn item(map: &Map<String, Value>, position: usize) -> SegmentLookup {
    let items = map.get("items");
    let leading = map.get("prefixItems").or(items).and_then(Value::as_array);
    if let Some(schema) = leading.and_then(|leading| leading.get(position)) {
        return SegmentLookup::Known(schema.clone());
    }
    let rest = match items {
        Some(Value::Array(_)) => map.get("additionalItems"),
        other => other,
    };
    match rest {
        Some(Value::Bool(false)) => SegmentLookup::Missing(Vec::new()),
        Some(schema @ Value::Object(_)) => SegmentLookup::Known(schema.clone()),
        _ => SegmentLookup::Silent,
    }
}

/// Combines parts that all apply.
fn both(parts: Vec<SegmentLookup>) -> SegmentLookup {
    let mut known = Vec::new();
    let (mut missing, mut undeclared, mut is_unknown) = (None, None, false);
    for part in parts {
        match part {
            SegmentLookup::Known(schema) => known.push(schema),
            SegmentLookup::Missing(keys) => merge(&mut missing, keys),
            SegmentLookup::Undeclared(keys) => merge(&mut undeclared, keys),
            SegmentLookup::Unknown => is_unknown = true,
            SegmentLookup::Silent => {}
        }
    }
    match (known.len(), missing) {
        (0, Some(keys)) => SegmentLookup::Missing(keys),
        (0, None) if is_unknown => SegmentLookup::Unknown,
        (0, None) => undeclared.map_or(SegmentLookup::Silent, SegmentLookup::Undeclared),
        (1, _) => SegmentLookup::Known(known.remove(0)),
        _ => SegmentLookup::Known(json!({ "allOf": known })),
    }
}

/// Combines parts of which one applies.
fn either(parts: Vec<SegmentLookup>) -> SegmentLookup {
    let mut known = Vec::new();
    let (mut missing, mut undeclared, mut is_open) = (None, None, false);
    // Alternatives that only demand keys, such as `{"required": ["a"]}`, declare none.
    if parts.iter().all(|part| matches!(part, SegmentLookup::Silent)) {
        return SegmentLookup::Silent;
    }
    for part in parts {
        match part {
            SegmentLookup::Known(schema) => known.push(schema),
            SegmentLookup::Missing(keys) => merge(&mut missing, keys),
            SegmentLookup::Undeclared(keys) => merge(&mut undeclared, keys),
            SegmentLookup::Unknown | SegmentLookup::Silent => is_open = true,
        }
    }
    match known.is_empty() {
        false if is_open || undeclared.is_some() => {
            known.push(Value::Bool(true));
            SegmentLookup::Known(json!({ "anyOf": known }))
        }
        false => SegmentLookup::Known(json!({ "anyOf": known })),
        true if is_open => SegmentLookup::Unknown,
        true => match (undeclared, missing) {
            (mut keys @ Some(_), more) => {
                merge(&mut keys, more.unwrap_or_default());
                SegmentLookup::Undeclared(keys.unwrap_or_default())
            }
            (None, Some(keys)) => SegmentLookup::Missing(keys),
            (None, None) => SegmentLookup::Unknown,
        },
    }
}

fn merge(keys: &mut Option<Vec<String>>, more: Vec<String>) {
    let keys = keys.get_or_insert_with(Vec::new);
    for key in more {
        if keys.len() < KEYS_MAX && !keys.contains(&key) {
            keys.push(key);
        }
    }
}
