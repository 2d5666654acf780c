//! Validation of values and templates, and lookup of paths.

use super::*;
use proptest::prelude::*;
use serde_json::json;
use std::time::{Duration, Instant};

fn schema(value: Value) -> CompiledSchema {
    CompiledSchema::compile(&value).unwrap_or_else(|error| panic!("{value}: {error}"))
}

fn found(violations: Vec<SchemaViolation>) -> Vec<(String, String)> {
    let mut found: Vec<_> = violations.into_iter().map(|violation| (violation.pointer, violation.message)).collect();
    found.sort();
    found
}

fn expected(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(pointer, message)| ((*pointer).to_owned(), (*message).to_owned())).collect()
}

#[test]
fn every_keyword_has_words_of_its_own() {
    for (keyword, value, message) in [
        (json!({"maximum": 2}), json!(3), "expected at most 2"),
        (json!({"exclusiveMinimum": 2}), json!(2), "expected more than 2"),
        (json!({"exclusiveMaximum": 2}), json!(2), "expected less than 2"),
        (json!({"multipleOf": 2}), json!(3), "expected a multiple of 2"),
        (json!({"maxLength": 1}), json!("ab"), "expected at most 1 characters"),
        (json!({"minItems": 1}), json!([]), "expected at least 1 items"),
        (json!({"minProperties": 1}), json!({}), "expected at least 1 keys"),
        (json!({"maxProperties": 0}), json!({"a": 1}), "expected at most 0 keys"),
        (json!({"contains": {"type": "null"}}), json!([1]), "expected an item of another kind among these"),
        (json!({"prefixItems": [true], "unevaluatedItems": false}), json!([1, 2]), "expected fewer items"),
        (json!({"const": "a"}), json!("b"), "expected \"a\", found string"),
        (json!({"not": {"type": "string"}}), json!("a"), "this string is excluded"),
        (json!(false), json!(1), "nothing is allowed here"),
        (
            json!({"oneOf": [{"type": "integer"}, {"type": "number"}]}),
            json!(1),
            "expected to fit one alternative, fits several",
        ),
        (json!({"anyOf": [{"anyOf": [{"type": "null"}]}]}), json!(1), "this integer fits no alternative"),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"ab": 1}),
            "a key does not fit: expected at most 1 characters",
        ),
        (
            json!({"anyOf": [{"properties": {"a": true}, "additionalProperties": false}]}),
            json!({"b": 1}),
            "fits no alternative: unknown key \"b\"",
        ),
        (
            json!({"properties": {"amount": true}, "unevaluatedProperties": false}),
            json!({"amout": 1}),
            "unknown key \"amout\", did you mean \"amount\"?",
        ),
    ] {
        let found = found(schema(keyword.clone()).validate(&value));
        assert_eq!(found.iter().map(|(_, message)| message).collect::<Vec<_>>(), [message], "{keyword}");
    }
}

#[test]
fn violations_say_what_was_expected() {
    let schema = schema(json!({
        "type": "object",
        "required": ["id", "amount"],
        "additionalProperties": false,
        "properties": {
            "id": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"},
            "amount": {"type": "number", "minimum": 1, "maximum": 9},
            "kind": {"enum": ["a", "b"]},
            "tags": {"type": "array", "items": {"type": ["string", "null"]}, "maxItems": 2, "uniqueItems": true},
            "when": {"type": "string", "format": "date"},
            "either": {"anyOf": [{"type": "integer"}, {"type": "object", "required": ["x"]}]}
        }
    }));
    for (value, violations) in [
        (json!({"id": "ab", "amount": 1}), vec![]),
        (json!([]), vec![("", "expected object, found array")]),
        (json!({"id": "ab"}), vec![("", "\"amount\" is required")]),
        (
            json!({"id": "ab", "amout": 1, "amount": 2}),
            vec![("/amout", "unknown key \"amout\", did you mean \"amount\"?")],
        ),
        (json!({"id": "ab", "amount": 0}), vec![("/amount", "expected at least 1")]),
        (
            json!({"id": "1", "amount": "2"}),
            vec![
                ("/amount", "expected number, found string"),
                ("/id", "expected at least 2 characters"),
                ("/id", "expected text that matches \"^[a-z]+$\""),
            ],
        ),
        (json!({"id": "ab", "amount": 1, "kind": "c"}), vec![("/kind", "expected one of [\"a\",\"b\"], found string")]),
        (
            json!({"id": "ab", "amount": 1, "tags": ["x", "x", 3]}),
            vec![
                ("/tags", "expected at most 2 items"),
                ("/tags", "expected no item twice"),
                ("/tags/2", "expected null or string, found integer"),
            ],
        ),
        (json!({"id": "ab", "amount": 1, "when": "tomorrow"}), vec![("/when", "expected text in the format \"date\"")]),
        (
            json!({"id": "ab", "amount": 1, "either": {"y": 1}}),
            vec![("/either", "fits no alternative: expected integer, found object; or \"x\" is required")],
        ),
    ] {
        assert_eq!(found(schema.validate(&value)), expected(&violations), "{value}");
    }
}

#[test]
fn messages_do_not_repeat_the_data() {
    let schema = schema(json!({"properties": {
        "a": {"const": 1}, "b": {"enum": [1]}, "c": {"pattern": "^x$"}, "d": {"type": "integer"}, "e": {"not": {}},
        "f": {"maxLength": 1}, "g": {"format": "uuid"}, "h": {"anyOf": [{"type": "null"}, {"const": 2}]}
    }}));
    let text = "very private";
    let value = json!({"a": text, "b": text, "c": text, "d": text, "e": text, "f": text, "g": text, "h": text});
    let violations = schema.validate(&value);
    assert_eq!(violations.len(), 8);
    assert!(violations.iter().all(|violation| !violation.message.contains("private")), "{violations:?}");
}

#[test]
fn a_template_is_refused_only_if_no_value_can_fix_it() {
    let parameters = json!({
        "type": "object",
        "required": ["amount"],
        "additionalProperties": false,
        "properties": {
            "amount": {"type": "number", "minimum": 1},
            "note": {"type": "string", "maxLength": 3},
            "count": {"$ref": "#/$defs/count"},
            "kind": {"enum": ["a", "b"]},
            "codes": {"type": "array", "items": {"type": "integer"}, "maxItems": 2},
            "target": {"oneOf": [
                {"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}},
                {"type": "null"}
            ]},
            "any": {},
            "when": {
                "if": {"properties": {"kind": {"const": "x"}}},
                "then": {"required": ["x"]},
                "else": {"required": ["y"]}
            }
        },
        "$defs": {"count": {"type": "integer"}}
    });
    let schema = schema(parameters);
    let known = |path: &[String]| match path.join(".").as_str() {
        "inputs.text" => Some(json!({"type": "string"})),
        "inputs.number" => Some(json!({"type": "number"})),
        "inputs.integer" => Some(json!({"type": "integer"})),
        "inputs.either" => Some(json!({"type": ["string", "integer"]})),
        "inputs.object" => Some(json!({"type": "object"})),
        _ => None,
    };
    for (template, violations) in [
        // Known values are validated fully.
        (json!({"amount": 1}), vec![]),
        (json!({"amount": 0, "note": "{{ inputs.text }}"}), vec![("/amount", "expected at least 1")]),
        (json!({"note": "{{ inputs.text }}"}), vec![("", "\"amount\" is required")]),
        (
            json!({"amount": "{{ inputs.number }}", "nota": "{{ inputs.text }}"}),
            vec![("/nota", "unknown key \"nota\", did you mean \"note\"?")],
        ),
        // Holes by type.
        (json!({"amount": "{{ inputs.number }}", "count": "{{ inputs.integer }}"}), vec![]),
        (json!({"amount": "{{ inputs.integer }}", "count": "{{ inputs.number }}"}), vec![]),
        (json!({"amount": "{{ inputs.either }}"}), vec![]),
        (json!({"amount": "{{ inputs.unknown }}"}), vec![]),
        (json!({"amount": "{{ inputs.text }}"}), vec![("/amount", "expected number, but inputs.text is string")]),
        (json!({"amount": "{{ key }}"}), vec![("/amount", "expected number, but key is string")]),
        (json!({"amount": "{{ inputs.text | int }}"}), vec![]),
        (
            json!({"amount": "{{ inputs.number ~ '' }}"}),
            vec![("/amount", "expected number, but `inputs.number ~ ''` is string")],
        ),
        (json!({"amount": "EUR {{ inputs.number }}"}), vec![("/amount", "expected number, but text is string")]),
        (
            json!({"amount": 1, "count": "{{ inputs.text }}"}),
            vec![("/count", "expected integer, but inputs.text is string")],
        ),
        (
            json!({"amount": 1, "codes": [1, "{{ inputs.text }}"]}),
            vec![("/codes/1", "expected integer, but inputs.text is string")],
        ),
        (
            json!({"amount": 1, "codes": ["{{ inputs.integer }}", "x"]}),
            vec![("/codes/1", "expected integer, found string")],
        ),
        (json!({"amount": 1, "codes": ["{{ inputs.integer }}", 1, 2]}), vec![("/codes", "expected at most 2 items")]),
        (json!({"amount": 1, "note": "{{ inputs.text }} and more"}), vec![]),
        (json!({"amount": 1, "kind": "{{ inputs.text }}"}), vec![]),
        (
            json!({"amount": 1, "kind": "{{ inputs.object }}"}),
            vec![("/kind", "expected string, but inputs.object is object")],
        ),
        // Alternatives.
        (json!({"amount": 1, "target": {"id": "{{ inputs.text }}"}}), vec![]),
        (json!({"amount": 1, "target": "{{ inputs.object }}"}), vec![]),
        (
            json!({"amount": 1, "target": {"name": "{{ inputs.text }}"}}),
            vec![("/target", "fits no alternative: \"id\" is required; or expected null, found object")],
        ),
        (
            json!({"amount": 1, "target": "{{ inputs.integer }}"}),
            vec![("/target", "expected null or object, but inputs.integer is integer")],
        ),
        // Errors that depend on an unknown condition.
        (json!({"amount": 1, "when": {"kind": "{{ inputs.text }}", "x": 1}}), vec![]),
        // Secrets are text.
        (json!({"amount": 1, "note": {"secret": "long_name"}, "any": {"secret": "s"}}), vec![]),
        (json!({"amount": {"secret": "s"}}), vec![("/amount", "expected number, but a secret is string")]),
    ] {
        let compiled = ParameterTemplate::compile(Arc::new(template.clone())).unwrap();
        assert_eq!(found(schema.validate_template(&compiled, &known)), expected(&violations), "{template}");
    }
}

#[test]
fn a_schema_says_what_is_at_a_path() {
    let root = json!({
        "type": "object",
        "properties": {
            "id": {"type": "string"},
            "list": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}},
            "pair": {"prefixItems": [{"type": "null"}], "items": false},
            "ref": {"$ref": "#/$defs/node"},
            "all": {"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "number"}}}]},
            "any": {"anyOf": [{"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}, {"type": "null"}]},
            "map": {"type": "object", "additionalProperties": {"type": "boolean"}},
            "open": {"type": "object", "properties": {"a": true}, "additionalProperties": true},
            "pattern": {"properties": {"a": true}, "patternProperties": {"^x": {}}},
            "free": {},
            "numbered": {"type": "object", "properties": {"0": {"type": "string"}}}
        },
        "$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}, "value": {"type": "integer"}}}}
    });
    let keys = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    for (path, expected) in [
        ("id", Ok(JsonTypeSet::STRING)),
        ("list.3.n", Ok(JsonTypeSet::INTEGER)),
        ("pair.0", Ok(JsonTypeSet::NULL)),
        ("ref.next.next.value", Ok(JsonTypeSet::INTEGER)),
        ("all.b", Ok(JsonTypeSet::NUMBER)),
        ("any.a", Ok(JsonTypeSet::STRING)),
        ("map.whatever", Ok(JsonTypeSet::BOOLEAN)),
        ("numbered.0", Ok(JsonTypeSet::STRING)),
        ("id.deeper", Err(SchemaLookup::Missing { known_keys: vec![] })),
        ("list.0.m", Err(SchemaLookup::Missing { known_keys: keys(&["n"]) })),
        ("list.n", Err(SchemaLookup::Missing { known_keys: vec![] })),
        ("pair.1", Err(SchemaLookup::Missing { known_keys: vec![] })),
        ("any.b", Err(SchemaLookup::Missing { known_keys: keys(&["a"]) })),
        ("all.c", Err(SchemaLookup::Undeclared { known_keys: keys(&["a", "b"]) })),
        ("ref.nxt", Err(SchemaLookup::Undeclared { known_keys: keys(&["next", "value"]) })),
        ("open.b", Err(SchemaLookup::Unknown)),
        ("pattern.xyz", Err(SchemaLookup::Unknown)),
        ("free.any.thing", Err(SchemaLookup::Unknown)),
    ] {
        let path: Vec<String> = path.split('.').map(str::to_owned).collect();
        let result = match schema_at(&root, &path) {
            SchemaLookup::Known(schema) => Ok(types(&schema)),
            other => Err(other),
        };
        assert_eq!(result, expected, "{path:?}");
    }
    assert_eq!(schema_at(&json!(true), &["a".to_owned()]), SchemaLookup::Unknown);
}

#[test]
fn types_are_never_too_few() {
    for (schema, expected) in [
        (json!({}), "anything"),
        (json!(true), "anything"),
        (json!(false), "nothing"),
        (json!({"type": "number"}), "number"),
        (json!({"type": ["null", "integer"]}), "null or integer"),
        (json!({"enum": ["a", 1, null]}), "null or integer or string"),
        (json!({"const": 1.5}), "number"),
        (json!({"const": 2.0}), "integer"),
        (json!({"anyOf": [{"type": "string"}, {"type": "array"}]}), "string or array"),
        (json!({"allOf": [{"type": ["string", "null"]}, {"type": ["string", "object"]}]}), "string"),
        (json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}}), "object"),
        (json!({"$ref": "#"}), "anything"),
        (json!({"$ref": "#/nowhere"}), "anything"),
        (json!({"type": "strange"}), "anything"),
    ] {
        assert_eq!(types(&schema).to_string(), expected, "{schema}");
    }
}

#[test]
fn references_to_elsewhere_are_refused() {
    for schema in [
        json!({"$ref": "https://example.com/schema.json"}),
        json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}}),
        json!({"$ref": "other.json#/a"}),
        json!({"$dynamicRef": "http://example.com"}),
    ] {
        let error = CompiledSchema::compile(&schema).unwrap_err();
        assert_eq!(error.message, "expected a reference within the schema, beginning with #", "{schema}");
    }
    // Data that looks like a reference is data.
    assert!(CompiledSchema::compile(&json!({"const": {"$ref": "https://example.com"}})).is_ok());
    assert!(CompiledSchema::compile(&json!({"type": "strange"})).is_err());
}

#[test]
fn patterns_that_look_around_are_not_checked_and_do_no_harm() {
    let schema = schema(json!({
        "properties": {"a": {"type": "string", "pattern": "^(?!x)"}, "b": {"pattern": "^y"}},
        "patternProperties": {"(?<=z)k": {"type": "null"}},
        "additionalProperties": false
    }));
    let violations = schema.validate(&json!({"a": "x", "b": "x", "zk": 1}));
    assert_eq!(found(violations), expected(&[("/b", "expected text that matches \"^y\"")]));
    assert!(CompiledSchema::compile(&json!({"pattern": "["})).is_err());
}

/// Schemas made to take long, with a value each.
fn hostile() -> Vec<(Value, Value)> {
    let doubling = |keyword: &str| {
        let mut definitions = serde_json::Map::new();
        for level in 0..60 {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            definitions.insert(format!("d{level}"), json!({ keyword: [next, next] }));
        }
        definitions.insert("d60".to_owned(), json!({"type": "string"}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    };
    let nest =
        |levels: usize, wrap: &dyn Fn(Value) -> Value, core: Value| (0..levels).fold(core, |inner, _| wrap(inner));
    let deep_list = nest(60, &|inner| json!([inner]), json!(1));
    let deep_object = nest(60, &|inner| json!({"a": inner}), json!(1));
    let long = "a".repeat(50_000);
    let mut cases = vec![
        (json!({"$ref": "#"}), json!(1)),
        (json!({"allOf": [{"$ref": "#"}]}), json!(1)),
        (json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}), json!(1)),
        (json!({"not": {"$ref": "#"}}), json!(1)),
        (json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}), json!(1)),
        (json!({"items": {"$ref": "#"}, "type": "array"}), deep_list.clone()),
        (
            json!({"anyOf": [{"items": {"$ref": "#"}, "type": "array"}, {"items": {"$ref": "#"}, "minItems": 9}]}),
            deep_list.clone(),
        ),
        (json!({"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]}), deep_list.clone()),
        (
            json!({"oneOf": [{"properties": {"a": {"$ref": "#"}}}, {"properties": {"a": {"$ref": "#"}}}]}),
            deep_object.clone(),
        ),
        (json!({"not": {"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}}), deep_object.clone()),
        (
            json!({"if": {"properties": {"a": {"$ref": "#"}}}, "then": {"properties": {"a": {"$ref": "#"}}}, "else": {"properties": {"a": {"$ref": "#"}}}}),
            deep_object.clone(),
        ),
        (json!({"unevaluatedProperties": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}), deep_object.clone()),
        (
            json!({"$dynamicAnchor": "n", "properties": {"a": {"anyOf": [{"$dynamicRef": "#n"}, {"$dynamicRef": "#n"}]}}}),
            deep_object.clone(),
        ),
        (
            json!({"additionalProperties": {"$ref": "#"}, "patternProperties": {"a": {"$ref": "#"}}, "properties": {"a": {"$ref": "#"}}}),
            deep_object.clone(),
        ),
        (json!({"contains": {"$ref": "#"}, "items": {"$ref": "#"}}), deep_list.clone()),
        (
            nest(
                30,
                &|inner| json!({"anyOf": [inner.clone(), {"not": {}}], "not": {"not": {}}}),
                json!({"type": "null"}),
            ),
            json!(1),
        ),
        (nest(70, &|inner| json!({"properties": {"a": inner}}), json!(true)), deep_object),
        (json!({"uniqueItems": true}), json!((0..5_000).map(|n| json!({"n": n})).collect::<Vec<_>>())),
        (json!({"enum": (0..5_000).collect::<Vec<_>>()}), json!("x")),
        (json!({"required": (0..5_000).map(|n| format!("k{n}")).collect::<Vec<_>>()}), json!({})),
        (json!({"items": {"type": "string"}}), json!((0..50_000).collect::<Vec<_>>())),
        (json!({"multipleOf": 1e-300}), json!(1e300)),
        (json!({"const": "x".repeat(300_000)}), json!(1)),
        (
            json!({"properties": (0..30_000).map(|n| (format!("k{n}"), json!(true))).collect::<serde_json::Map<_, _>>()}),
            json!({}),
        ),
    ];
    for pattern in [
        "^(a+)+$",
        "(a|aa)+$",
        "^(([a-z])+.)+[A-Z]([a-z])+$",
        "(.*)*x",
        "(x+x+)+y",
        "^(?=(a+))\\1+b$",
        "(a{1000}){1000}",
        "((((a{99}){99}){99}){99})",
        "(?:a?){500}a{500}",
        "\\w{1000}\\w{1000}",
        "[",
        "(?<!a+)b",
    ] {
        cases.push((json!({"pattern": pattern}), json!(long)));
        cases.push((json!({"patternProperties": {pattern: true}, "additionalProperties": false}), json!({&long: 1})));
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        cases.push((doubling(keyword), json!(1)));
    }
    cases
}

#[test]
fn hostile_schemas_are_quick() {
    let cases = hostile();
    assert!(cases.len() >= 30);
    // Debug builds and busy machines are slower, but exponential time would exceed any such limit.
    let patience = Duration::from_secs(60);
    for (schema, value) in cases {
        let start = Instant::now();
        let text: String = schema.to_string().chars().take(120).collect();
        let outcome = match CompiledSchema::compile(&schema) {
            Ok(compiled) => format!("{} violations", compiled.validate(&value).len()),
            Err(error) => error.message,
        };
        let _ = (types(&schema), schema_at(&schema, &["a".to_owned(), "a".to_owned()]));
        assert!(start.elapsed() < patience, "{:?} {outcome}: {text}", start.elapsed());
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let words = ["string", "object", "#", "#/$defs/a", "#/properties/a", "^a+$", "date", "a"];
    let keys = [
        "type",
        "properties",
        "a",
        "$ref",
        "$defs",
        "allOf",
        "anyOf",
        "oneOf",
        "items",
        "not",
        "if",
        "then",
        "required",
        "enum",
        "const",
        "additionalProperties",
        "pattern",
        "format",
        "minimum",
        "prefixItems",
        "$id",
        "$schema",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        prop::sample::select(words.to_vec()).prop_map(Value::from),
        ".{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((prop::sample::select(keys.to_vec()), inner), 0..6).prop_map(|pairs| {
                Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_is_a_schema_or_refused(schema in any_json(), value in any_json()) {
        let _ = types(&schema);
        let _ = schema_at(&schema, &["a".to_owned(), "0".to_owned()]);
        if let Ok(compiled) = CompiledSchema::compile(&schema) {
            let _ = compiled.validate(&value);
            if let Ok(template) = ParameterTemplate::compile(Arc::new(json!({"a": "{{ inputs.a }}", "b": value}))) {
                let _ = compiled.validate_template(&template, &|_| Some(schema.clone()));
            }
        }
    }

    /// The type of every valid value is among the types of the schema.
    #[test]
    fn a_valid_value_has_an_admitted_type(schema in any_json(), value in any_json()) {
        if let Ok(compiled) = CompiledSchema::compile(&schema) && compiled.validate(&value).is_empty() {
            let admitted = types(&schema);
            prop_assert!(admitted.contains(JsonTypeSet::of(&value)), "{schema} admits {admitted}, not {value}");
        }
    }
}
