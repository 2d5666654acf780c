//! What a schema says of a path, without a value at hand. In doubt it says nothing.

use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

/// What a schema says of a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Lookup {
    /// The schema of what is there; it stands by itself.
    Known(Value),
    /// It does not say.
    Unknown,
    /// It declares other keys and does not forbid this one.
    Undeclared { known_keys: Vec<String> },
    /// Nothing can be there.
    Missing { known_keys: Vec<String> },
}

/// A set of JSON types. Integers and other numbers are two members.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Types(u8);

const NAMES: [&str; 7] = ["null", "boolean", "integer", "fraction", "string", "array", "object"];

impl Types {
    pub const NONE: Types = Types(0);
    pub const ALL: Types = Types(0b111_1111);
    pub const NULL: Types = Types(1);
    pub const BOOLEAN: Types = Types(1 << 1);
    pub const INTEGER: Types = Types(1 << 2);
    pub const NUMBER: Types = Types(0b11 << 2);
    pub const STRING: Types = Types(1 << 4);
    pub const ARRAY: Types = Types(1 << 5);
    pub const OBJECT: Types = Types(1 << 6);

    /// The type that a schema calls by this name; an unknown name excludes nothing.
    pub fn named(name: &str) -> Types {
        match name {
            "null" => Types::NULL,
            "boolean" => Types::BOOLEAN,
            "integer" => Types::INTEGER,
            "number" => Types::NUMBER,
            "string" => Types::STRING,
            "array" => Types::ARRAY,
            "object" => Types::OBJECT,
            _ => Types::ALL,
        }
    }

    pub fn of(value: &Value) -> Types {
        match value {
            Value::Null => Types::NULL,
            Value::Bool(_) => Types::BOOLEAN,
            // 2.0 is an integer to JSON Schema.
            Value::Number(number) if number.as_f64().is_some_and(|float| float.fract() != 0.0) => {
                Types(Types::NUMBER.0 & !Types::INTEGER.0)
            }
            Value::Number(_) => Types::INTEGER,
            Value::String(_) => Types::STRING,
            Value::Array(_) => Types::ARRAY,
            Value::Object(_) => Types::OBJECT,
        }
    }

    pub fn and(self, other: Types) -> Types {
        Types(self.0 & other.0)
    }

    pub fn or(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn contains(self, other: Types) -> bool {
        self.and(other) == other
    }
}

impl fmt::Display for Types {
    /// `integer or string`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Types::ALL {
            return f.write_str("anything");
        }
        let is_number = self.contains(Types::NUMBER);
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

impl fmt::Debug for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The types a value that fits the schema can have; never too few.
pub fn types(schema: &Value) -> Types {
    Walk::new(schema).types(schema, 0)
}

/// What the schema says of the value at the path. A segment of digits is a position or a key.
pub fn schema_at(schema: &Value, path: &[String]) -> Lookup {
    let walk = Walk::new(schema);
    let mut current = Cow::Borrowed(schema);
    for segment in path {
        current = match walk.step(&current, segment, 0) {
            Found::Known(schema) => Cow::Owned(schema),
            Found::Silent | Found::Unknown => return Lookup::Unknown,
            Found::Undeclared(known_keys) => return Lookup::Undeclared { known_keys },
            Found::Missing(known_keys) => return Lookup::Missing { known_keys },
        };
    }
    Lookup::Known(walk.standing_alone(current.into_owned()))
}

/// What one part of a schema says of one segment.
enum Found {
    Known(Value),
    Missing(Vec<String>),
    /// Cannot be told.
    Unknown,
    Undeclared(Vec<String>),
    /// This part has nothing to say of it.
    Silent,
}

struct Walk<'s> {
    root: &'s Value,
    visits: Cell<usize>,
}

/// References and compositions within each other.
const NESTING_MAX: usize = 32;
const VISITS_MAX: usize = 10_000;
/// Known keys are for suggestions; more than this nobody reads.
const KEYS_MAX: usize = 200;

impl<'s> Walk<'s> {
    fn new(root: &'s Value) -> Walk<'s> {
        Walk { root, visits: Cell::new(0) }
    }

    fn is_spent(&self, depth: usize) -> bool {
        self.visits.set(self.visits.get() + 1);
        depth > NESTING_MAX || self.visits.get() > VISITS_MAX
    }

    fn types(&self, schema: &Value, depth: usize) -> Types {
        let Value::Object(map) = schema else {
            return if *schema == Value::Bool(false) { Types::NONE } else { Types::ALL };
        };
        if self.is_spent(depth) {
            return Types::ALL;
        }
        let mut types = match map.get("type") {
            Some(Value::String(name)) => Types::named(name),
            Some(Value::Array(names)) => names
                .iter()
                .map(|name| name.as_str().map_or(Types::ALL, Types::named))
                .fold(Types::NONE, Types::or),
            _ => Types::ALL,
        };
        if is_plain(map) {
            return types;
        }
        if let Some(Value::Array(options)) = map.get("enum") {
            types = types.and(options.iter().map(Types::of).fold(Types::NONE, Types::or));
        }
        if let Some(value) = map.get("const") {
            types = types.and(Types::of(value));
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
                    parts.iter().map(|part| self.types(part, depth + 1)).fold(Types::NONE, Types::or);
                types = types.and(either);
            }
        }
        types
    }

    fn step(&self, schema: &Value, segment: &str, depth: usize) -> Found {
        let Value::Object(map) = schema else { return Found::Silent };
        if self.is_spent(depth) {
            return Found::Unknown;
        }
        let types = self.types(schema, depth);
        if types == Types::OBJECT && is_plain(map) {
            return property(map, segment);
        }
        if !types.is_empty() && types.and(Types::OBJECT.or(Types::ARRAY)).is_empty() {
            return Found::Missing(Vec::new());
        }
        let position = segment.parse::<usize>().ok();
        let own = match position {
            Some(position) if types.contains(Types::ARRAY) && !types.contains(Types::OBJECT) => {
                item(map, position)
            }
            Some(position) if map.contains_key("items") || map.contains_key("prefixItems") => {
                item(map, position)
            }
            None if !types.is_empty() && !types.contains(Types::OBJECT) => Found::Missing(Vec::new()),
            _ => property(map, segment),
        };
        let mut all = vec![own];
        if ["$ref", "$dynamicRef", "$recursiveRef"].iter().any(|key| map.contains_key(*key)) {
            all.push(self.target(map).map_or(Found::Unknown, |target| self.step(target, segment, depth + 1)));
        }
        all.extend(list(map, "allOf").iter().map(|part| self.step(part, segment, depth + 1)));
        for key in ["anyOf", "oneOf"] {
            let parts = list(map, key);
            if !parts.is_empty() {
                all.push(either(parts.iter().map(|part| self.step(part, segment, depth + 1)).collect()));
            }
        }
        if ["if", "dependentSchemas"].iter().any(|key| map.contains_key(*key)) {
            all.push(Found::Unknown);
        }
        both(all)
    }

    fn target(&self, map: &Map<String, Value>) -> Option<&'s Value> {
        let reference = map.get("$ref")?.as_str()?;
        self.root.pointer(reference.strip_prefix('#')?)
    }

    /// Adds the definitions that references within it may need.
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

/// Whether a schema speaks of nothing but its type and its properties, as most do. Looking at its few keys costs less
/// than asking for every keyword it might have.
fn is_plain(map: &Map<String, Value>) -> bool {
    const PLAIN: [&str; 8] = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "description",
        "title",
        "$schema",
        "default",
    ];
    map.keys().all(|key| PLAIN.contains(&key.as_str()))
}

fn list<'v>(map: &'v Map<String, Value>, key: &str) -> &'v [Value] {
    map.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn property(map: &Map<String, Value>, key: &str) -> Found {
    let properties = map.get("properties").and_then(Value::as_object);
    if let Some(schema) = properties.and_then(|properties| properties.get(key)) {
        return Found::Known(schema.clone());
    }
    if map
        .get("patternProperties")
        .is_some_and(|patterns| patterns.as_object().is_none_or(|map| !map.is_empty()))
    {
        return Found::Unknown;
    }
    let known = || properties.into_iter().flatten().map(|(key, _)| key.clone()).take(KEYS_MAX).collect();
    match (map.get("additionalProperties"), properties) {
        (Some(Value::Bool(false)), _) => Found::Missing(known()),
        (Some(schema @ Value::Object(_)), _) => Found::Known(schema.clone()),
        (Some(_), _) => Found::Unknown,
        (None, Some(_)) => Found::Undeclared(known()),
        (None, None) => Found::Silent,
    }
}

fn item(map: &Map<String, Value>, position: usize) -> Found {
    let items = map.get("items");
    let leading = map.get("prefixItems").or(items).and_then(Value::as_array);
    if let Some(schema) = leading.and_then(|leading| leading.get(position)) {
        return Found::Known(schema.clone());
    }
    let rest = match items {
        Some(Value::Array(_)) => map.get("additionalItems"),
        other => other,
    };
    match rest {
        Some(Value::Bool(false)) => Found::Missing(Vec::new()),
        Some(schema @ Value::Object(_)) => Found::Known(schema.clone()),
        _ => Found::Silent,
    }
}

/// All parts hold at once.
fn both(parts: Vec<Found>) -> Found {
    let mut known = Vec::new();
    let (mut missing, mut undeclared, mut is_unknown) = (None, None, false);
    for part in parts {
        match part {
            Found::Known(schema) => known.push(schema),
            Found::Missing(keys) => merge(&mut missing, keys),
            Found::Undeclared(keys) => merge(&mut undeclared, keys),
            Found::Unknown => is_unknown = true,
            Found::Silent => {}
        }
    }
    match (known.len(), missing) {
        (0, Some(keys)) => Found::Missing(keys),
        (0, None) if is_unknown => Found::Unknown,
        (0, None) => undeclared.map_or(Found::Silent, Found::Undeclared),
        (1, _) => Found::Known(known.remove(0)),
        _ => Found::Known(json!({ "allOf": known })),
    }
}

/// One of the parts holds.
fn either(parts: Vec<Found>) -> Found {
    let mut known = Vec::new();
    let (mut missing, mut undeclared, mut is_open) = (None, None, false);
    for part in parts {
        match part {
            Found::Known(schema) => known.push(schema),
            Found::Missing(keys) => merge(&mut missing, keys),
            Found::Undeclared(keys) => merge(&mut undeclared, keys),
            Found::Unknown | Found::Silent => is_open = true,
        }
    }
    match known.is_empty() {
        false if is_open || undeclared.is_some() => {
            known.push(Value::Bool(true));
            Found::Known(json!({ "anyOf": known }))
        }
        false => Found::Known(json!({ "anyOf": known })),
        true if is_open => Found::Unknown,
        true => match (undeclared, missing) {
            (mut keys @ Some(_), more) => {
                merge(&mut keys, more.unwrap_or_default());
                Found::Undeclared(keys.unwrap_or_default())
            }
            (None, Some(keys)) => Found::Missing(keys),
            (None, None) => Found::Unknown,
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
