//! The inputs of a plan: how they are declared, which are refused, which may be missing.

use super::schema::{CompiledSchema, SchemaLookup, schema_at};
use crate::pointer;
use crate::wording::{guess, quoted};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// What a plan declares under `inputs`.
#[derive(Clone, Debug, PartialEq)]
pub struct InputDeclaration {
    /// JSON Schema of all inputs together.
    pub schema: Value,
    /// Whether the plan lists names with their schemas instead of writing that schema.
    pub is_shorthand: bool,
}

/// Keywords whose value is an object, so that only their name tells them from inputs. `items` and its kind are not among
/// them: inputs are never a list.
const OBJECT_KEYWORDS: [&str; 15] = [
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "dependentRequired",
    "not",
    "if",
    "then",
    "else",
    "default",
    "const",
];

/// The other keywords a schema of inputs may have.
const PLAIN_KEYWORDS: [&str; 26] = [
    "type",
    "required",
    "allOf",
    "anyOf",
    "oneOf",
    "enum",
    "title",
    "description",
    "examples",
    "example",
    "deprecated",
    "readOnly",
    "writeOnly",
    "nullable",
    "discriminator",
    "minProperties",
    "maxProperties",
    "id",
    "items",
    "prefixItems",
    "contains",
    "format",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "externalDocs",
];

impl InputDeclaration {
    pub fn read(fields: &Map<String, Value>) -> InputDeclaration {
        let is_shorthand = !fields.is_empty()
            && fields.values().all(Value::is_object)
            && !fields.keys().any(|key| key.starts_with('$') || OBJECT_KEYWORDS.contains(&key.as_str()));
        if is_shorthand {
            return InputDeclaration { schema: from_shorthand(fields), is_shorthand };
        }
        let mut schema = fields.clone();
        const DECLARING: [&str; 10] = [
            "properties",
            "patternProperties",
            "additionalProperties",
            "unevaluatedProperties",
            "allOf",
            "anyOf",
            "oneOf",
            "if",
            "dependentSchemas",
            "$ref",
        ];
        if !DECLARING.iter().any(|key| schema.contains_key(*key)) {
            schema.insert("properties".into(), json!({}));
        }
        InputDeclaration { schema: Value::Object(schema), is_shorthand }
    }

    /// The pointer within the plan's `inputs` of a pointer within the schema.
    pub fn source_pointer<'p>(&self, pointer: &'p str) -> &'p str {
        match self.is_shorthand {
            true => pointer.strip_prefix("/properties").unwrap_or(pointer),
            false => pointer,
        }
    }

    /// Names beside the keywords of the schema that are none: inputs declared in the wrong place, or misspelt keywords.
    pub fn stray_keywords(&self) -> impl Iterator<Item = &str> {
        let keys = self.schema.as_object().into_iter().flat_map(Map::keys).map(String::as_str);
        let is_known = |key: &str| keywords().any(|known| known == key);
        keys.filter(move |key| !key.starts_with('$') && !key.starts_with("x-") && !is_known(key))
    }
}

/// The keywords that a schema of inputs may have.
pub fn keywords() -> impl Iterator<Item = &'static str> + Clone {
    OBJECT_KEYWORDS.into_iter().chain(PLAIN_KEYWORDS)
}

/// Every listed input is required, unless it has a default or says `required: false`.
fn from_shorthand(fields: &Map<String, Value>) -> Value {
    let mut required: Vec<&str> = Vec::new();
    let mut properties = Map::new();
    for (name, schema) in fields {
        let mut schema = schema.clone();
        // In a property of its own, `required` is a list of names.
        let says = match schema.get("required") {
            Some(Value::Bool(says)) => Some(*says),
            _ => None,
        };
        if let (Some(schema), true) = (schema.as_object_mut(), says.is_some()) {
            schema.shift_remove("required");
        }
        if says.unwrap_or_else(|| schema.get("default").is_none()) {
            required.push(name);
        }
        properties.insert(name.clone(), schema);
    }
    json!({ "type": "object", "required": required, "properties": properties })
}

/// Inputs that a plan does not declare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownInputs {
    /// `unknown input "amuont"`
    pub message: String,
    /// `did you mean "amount"? The plan declares: amount, sku`
    pub hint: String,
}

/// The inputs whose names the plan does not declare, if any.
pub fn undeclared(schema: Option<&Value>, inputs: &Value) -> Option<UnknownInputs> {
    const NAMES_MAX: usize = 20;
    let mut declared: Vec<String> = Vec::new();
    let mut unknown: Vec<&str> = Vec::new();
    for name in inputs.as_object().into_iter().flat_map(Map::keys) {
        let looked_up = schema.map(|schema| schema_at(schema, std::slice::from_ref(name)));
        match looked_up {
            Some(SchemaLookup::Known(_) | SchemaLookup::Unknown) => continue,
            Some(SchemaLookup::Undeclared { known_keys } | SchemaLookup::Missing { known_keys }) => {
                declared = known_keys;
            }
            None => {}
        }
        unknown.push(name);
    }
    let first = unknown.first()?;
    let meant = unknown.iter().find_map(|name| guess(name, declared.iter().map(String::as_str)));
    let list = match declared.is_empty() {
        true => "the plan declares no inputs".to_owned(),
        false => {
            let more = if declared.len() > NAMES_MAX { ", …" } else { "" };
            let names: Vec<&str> = declared.iter().take(NAMES_MAX).map(String::as_str).collect();
            format!("the plan declares: {}{more}", names.join(", "))
        }
    };
    let message = match unknown.len() {
        1 => format!("unknown input {}", quoted(first)),
        _ => {
            let names: Vec<String> = unknown.iter().take(NAMES_MAX).map(|name| quoted(name)).collect();
            format!("unknown inputs {}", names.join(", "))
        }
    };
    let hint = meant.map_or(list.clone(), |meant| format!("did you mean {:?}? {list}", meant.word()));
    Some(UnknownInputs { message, hint })
}

/// Fills in the schema's defaults for missing inputs, also within nested objects.
pub fn filled(schema: &Value, inputs: &Arc<Value>) -> Arc<Value> {
    let mut whole = match &**inputs {
        Value::Object(fields) => fields.clone(),
        _ => return Arc::clone(inputs),
    };
    fill(schema, &mut whole);
    Arc::new(Value::Object(whole))
}

fn fill(schema: &Value, fields: &mut Map<String, Value>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        if let (false, Some(default)) = (fields.contains_key(name), property.get("default")) {
            fields.insert(name.clone(), default.clone());
        }
        if let Some(Value::Object(inner)) = fields.get_mut(name) {
            fill(property, inner);
        }
    }
}

/// A default that the schema of its own input refuses, so that no execution can begin without the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfitDefault {
    /// The input's name, within nested inputs `outer.inner`.
    pub name: String,
    /// Of the default within the schema.
    pub pointer: String,
    pub message: String,
}

/// The defaults that do not fit the schema beside them. What several inputs say about each other is not compared.
pub fn unfit_defaults(schema: &Value) -> Vec<UnfitDefault> {
    let Some(Value::Object(mut whole)) = with_defaults(schema) else { return Vec::new() };
    let mut inputs = blank(&whole);
    fill(&Value::Object(whole.clone()), &mut inputs);
    // Defaults may refer to definitions.
    let is_shared = |name: &str| name.starts_with('$') || name == "definitions";
    let shared = schema.as_object().into_iter().flatten().filter(|(name, _)| is_shared(name) && *name != "$ref");
    whole.extend(shared.map(|(name, value)| (name.clone(), value.clone())));
    let whole = Value::Object(whole);
    let Ok(compiled) = CompiledSchema::compile(&whole) else { return Vec::new() };
    let mut found: Vec<UnfitDefault> = Vec::new();
    for violation in compiled.validate(&Value::Object(inputs)) {
        let Some((names, pointer)) = default_above(&whole, &violation.pointer) else { continue };
        if found.iter().all(|earlier| earlier.pointer != pointer) {
            found.push(UnfitDefault { name: names.join("."), pointer, message: violation.message });
        }
    }
    found
}

/// Only the properties that have a default, or lead to one.
fn with_defaults(schema: &Value) -> Option<Value> {
    let properties = schema.get("properties")?.as_object()?;
    let kept = properties.iter().filter_map(|(name, property)| match property.get("default") {
        Some(_) => Some((name.clone(), property.clone())),
        None => Some((name.clone(), with_defaults(property)?)),
    });
    let kept: Map<String, Value> = kept.collect();
    (!kept.is_empty()).then(|| json!({ "properties": kept }))
}

/// Empty objects where properties lead to a default.
fn blank(schema: &Map<String, Value>) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let leading = properties.filter(|(_, property)| property.get("default").is_none());
    leading.filter_map(|(name, inner)| Some((name.clone(), Value::Object(blank(inner.as_object()?))))).collect()
}

/// The names of the input whose default has the violation, and where the schema has that default.
fn default_above(schema: &Value, violation: &str) -> Option<(Vec<String>, String)> {
    let (mut names, mut pointer, mut current) = (Vec::new(), String::new(), schema);
    for name in pointer::names(violation)? {
        current = current.get("properties")?.get(&name)?;
        pointer = pointer::field(&format!("{pointer}/properties"), &name);
        names.push(name);
        if current.get("default").is_some() {
            return Some((names, format!("{pointer}/default")));
        }
    }
    None
}

/// The first names of the path whose value an execution may lack although its inputs fit: neither required nor with a
/// default. `None` where the schema does not tell.
pub fn optional_part<'p>(schema: &Value, path: &'p [String]) -> Option<&'p [String]> {
    const CONDITIONAL: [&str; 8] =
        ["$ref", "allOf", "anyOf", "oneOf", "if", "dependentRequired", "dependentSchemas", "dependencies"];
    let mut current = schema;
    for (at, name) in path.iter().enumerate() {
        let fields = current.as_object()?;
        let property = fields.get("properties")?.get(name)?;
        let required = fields.get("required").and_then(Value::as_array);
        let is_required = required.is_some_and(|names| names.iter().any(|required| required == name));
        if !is_required && property.get("default").is_none() {
            let may_be_required = CONDITIONAL.iter().any(|key| fields.contains_key(*key));
            return (!may_be_required).then(|| &path[..=at]);
        }
        current = property;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(inputs: Value) -> InputDeclaration {
        InputDeclaration::read(inputs.as_object().expect("an object"))
    }

    #[test]
    fn names_with_schemas_are_read_as_properties() {
        let short = read(json!({
            "amount": { "type": "number" },
            "note": { "type": "string", "default": "" },
            "size": { "type": "integer", "required": false },
            "kind": { "default": "a", "required": true },
            "items": { "type": "array" },
            "title": { "type": "object", "required": ["x"], "properties": { "x": {} } },
        }));
        assert!(short.is_shorthand);
        let expected = json!({
            "type": "object",
            "required": ["amount", "kind", "items", "title"],
            "properties": {
                "amount": { "type": "number" },
                "note": { "type": "string", "default": "" },
                "size": { "type": "integer" },
                "kind": { "default": "a" },
                "items": { "type": "array" },
                "title": { "type": "object", "required": ["x"], "properties": { "x": {} } },
            },
        });
        assert_eq!(short.schema, expected);
        assert_eq!(short.source_pointer("/properties/amount/type"), "/amount/type");
    }

    #[test]
    fn a_json_schema_stays_what_it_is() {
        for schema in [
            json!({ "type": "object", "properties": { "a": {} } }),
            json!({ "properties": { "a": {} } }),
            json!({ "$ref": "#/$defs/a", "$defs": { "a": {} } }),
            json!({ "additionalProperties": { "type": "number" } }),
            json!({ "anyOf": [{ "properties": { "a": {} } }] }),
        ] {
            assert_eq!(read(schema.clone()), InputDeclaration { schema, is_shorthand: false });
        }
        assert_eq!(read(json!({})).schema, json!({ "properties": {} }));
        assert_eq!(read(json!({ "type": "object" })).schema, json!({ "type": "object", "properties": {} }));
    }

    #[test]
    fn names_beside_keywords_are_found() {
        let stray = |inputs: Value| read(inputs).stray_keywords().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(stray(json!({ "type": "object", "amount": { "type": "number" } })), ["amount"]);
        assert_eq!(stray(json!({ "type": "object", "propertis": {} })), ["propertis"]);
        assert_eq!(stray(json!({ "amount": "number" })), ["amount"]);
        let none: [&str; 0] = [];
        assert_eq!(stray(json!({ "type": "object", "x-order": 1, "$comment": "", "properties": {} })), none);
        assert_eq!(stray(json!({ "amount": {} })), none);
    }

    #[test]
    fn undeclared_inputs_are_named() {
        let schema = json!({ "type": "object", "properties": { "amount": {}, "sku": {} } });
        let found = |schema: Option<&Value>, inputs: Value| {
            undeclared(schema, &inputs).map(|found| format!("{}; {}", found.message, found.hint))
        };
        let expected = "unknown input \"amuont\"; did you mean \"amount\"? the plan declares: amount, sku";
        assert_eq!(found(Some(&schema), json!({ "amuont": 1, "sku": 1 })).as_deref(), Some(expected));
        let expected = "unknown inputs \"x\", \"y\"; the plan declares: amount, sku";
        assert_eq!(found(Some(&schema), json!({ "x": 1, "y": 1 })).as_deref(), Some(expected));
        assert_eq!(found(Some(&schema), json!({ "amount": 1 })), None);
        let expected = "unknown input \"x\"; the plan declares no inputs";
        assert_eq!(found(None, json!({ "x": 1 })).as_deref(), Some(expected));
        assert_eq!(
            found(Some(&read(json!({ "type": "object" })).schema), json!({ "x": 1 })).as_deref(),
            Some(expected)
        );
        assert_eq!(found(None, json!({})), None);
        assert_eq!(found(None, json!(null)), None);
    }

    #[test]
    fn a_schema_can_allow_any_name() {
        for open in [
            json!({ "properties": { "a": {} }, "additionalProperties": true }),
            json!({ "properties": { "a": {} }, "additionalProperties": { "type": "number" } }),
            json!({ "properties": { "a": {} }, "patternProperties": { "^x": {} } }),
            json!({ "properties": { "a": {} }, "unevaluatedProperties": { "type": "number" } }),
            json!({ "allOf": [{ "properties": { "x": {} } }], "properties": { "a": {} } }),
            json!({ "$ref": "#/$defs/all", "$defs": { "all": { "properties": { "x": {} } } } }),
        ] {
            assert_eq!(undeclared(Some(&open), &json!({ "x": 1 })), None, "{open}");
        }
        for closed in [
            json!({ "properties": { "a": {} }, "additionalProperties": false }),
            json!({ "properties": { "a": {}, "b": {} }, "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] }),
            json!({ "allOf": [{ "properties": { "b": {} } }], "properties": { "a": {} } }),
        ] {
            assert!(undeclared(Some(&closed), &json!({ "x": 1 })).is_some(), "{closed}");
        }
    }

    #[test]
    fn only_what_is_missing_is_filled_in() {
        let schema = json!({ "properties": {
            "notes": { "default": "" },
            "size": { "properties": { "x": { "default": 1 }, "y": {} } },
            "far": { "properties": { "x": { "default": 1 } } },
            "near": { "default": { "y": 1 }, "properties": { "x": { "default": 1 } } },
        }});
        let inputs = Arc::new(json!({ "size": { "y": 2 }, "other": null }));
        let expected = json!({ "notes": "", "size": { "x": 1, "y": 2 }, "near": { "x": 1, "y": 1 }, "other": null });
        assert_eq!(*filled(&schema, &inputs), expected);
        let json = Arc::new(json!({ "notes": null, "near": 1 }));
        assert_eq!(*filled(&schema, &json), *json, "null was given");
        assert_eq!(*filled(&json!(true), &json), *json);
    }

    #[test]
    fn a_default_must_fit_its_own_schema() {
        let found = |schema: Value| {
            unfit_defaults(&schema).into_iter().map(|found| (found.name, found.pointer)).collect::<Vec<_>>()
        };
        let at = |name: &str, pointer: &str| vec![(name.to_owned(), pointer.to_owned())];
        for (properties, expected) in [
            (json!({ "a": { "type": "number", "default": "x" }, "b": {} }), at("a", "/properties/a/default")),
            (json!({ "a": { "enum": ["x", "y"], "default": "z" } }), at("a", "/properties/a/default")),
            (json!({ "a": { "$ref": "#/$defs/n", "default": "x" } }), at("a", "/properties/a/default")),
            (
                json!({ "a": { "default": { "b": 1 }, "required": ["c"] }, "d": { "type": "null", "default": null } }),
                at("a", "/properties/a/default"),
            ),
            (
                json!({ "a": { "required": ["z"], "properties": { "b/c": { "type": "string", "default": 1 } } } }),
                at("a.b/c", "/properties/a/properties/b~1c/default"),
            ),
            // The inner default completes the outer one.
            (json!({ "a": { "default": {}, "required": ["b"], "properties": { "b": { "default": 1 } } } }), Vec::new()),
            (json!({ "a": { "type": "number", "default": 1 } }), Vec::new()),
            (json!({ "a": { "$ref": "#/$defs/n", "default": 1 } }), Vec::new()),
        ] {
            let schema = json!({ "type": "object", "$defs": { "n": { "type": "number" } }, "required": ["other"],
                "properties": properties });
            assert_eq!(found(schema.clone()), expected, "{schema}");
        }
        // Which inputs are given decides.
        let either = json!({ "properties": { "a": { "default": "x" } }, "oneOf": [{ "required": ["b"] }, false] });
        assert_eq!(found(either), []);
    }

    #[test]
    fn an_input_is_optional_unless_required_or_with_a_default() {
        let schema = json!({ "required": ["a", "c"], "properties": {
            "a": { "properties": { "b": {} } }, "c": { "required": ["d"], "properties": { "d": {} } },
            "e": { "default": 1 }, "f": {},
        }});
        for (path, optional) in [
            ("a", None),
            ("a.b", Some("a.b")),
            ("c.d", None),
            ("e", None),
            ("f.g", Some("f")),
            ("z", None),
            ("c.z", None),
        ] {
            let names: Vec<String> = path.split('.').map(str::to_owned).collect();
            let found = optional_part(&schema, &names).map(|part| part.join("."));
            assert_eq!(found.as_deref(), optional, "{path}");
        }
        let either = json!({ "properties": { "a": {} }, "anyOf": [{ "required": ["a"] }] });
        assert_eq!(optional_part(&either, &["a".to_owned()]), None);
    }
}
