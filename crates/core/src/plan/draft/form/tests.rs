//! The schema and the reader know the same fields, object by object.

use super::schema;
use crate::plan::document::{DocumentFormat, PlanDocument};
use crate::plan::draft::PlanDraft;
use crate::plan::draft::reader::ASKED;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The fields the reader asked for, by pointer.
fn asked(plan: &Value) -> BTreeMap<String, BTreeSet<&'static str>> {
    ASKED.take();
    let document = PlanDocument::read(plan.to_string().as_bytes(), DocumentFormat::Json).unwrap();
    let (_, found) = PlanDraft::read(&document, None);
    assert_eq!(found, [], "the plan has no mistakes");
    ASKED.take().into_iter().map(|(pointer, names)| (pointer, names.into_iter().collect())).collect()
}

fn declared(of: &str) -> BTreeSet<String> {
    schema()["$defs"][of]["properties"].as_object().unwrap().keys().cloned().collect()
}

fn compare(plan: &Value, objects: &[(&str, &str)]) {
    let asked = asked(plan);
    let pointers: BTreeSet<&str> = asked.keys().map(String::as_str).collect();
    assert_eq!(pointers, objects.iter().map(|(pointer, _)| *pointer).collect(), "every object is compared");
    for (pointer, of) in objects {
        let read: BTreeSet<String> = asked[*pointer].iter().map(|name| (*name).to_owned()).collect();
        assert_eq!(read, declared(of), "the reader asks for the first, the schema has the second: {of}");
    }
}

#[test]
fn schema_and_reader_know_the_same_fields() {
    let retry = json!({ "max_attempts": 2 });
    let probe = json!({ "tool": "a.b", "happened": "true", "retry": retry });
    let undo = json!({ "tool": "a.b", "probe": probe });
    let plan = json!({
        "name": "n", "goal": "g", "budget": { "calls": 3 }, "defaults": { "retry": retry },
        "steps": [{
            "id": "a", "tool": "a.b", "retry": retry, "for_each": { "items": "inputs.list" },
            "fallback": { "tool": "a.b", "compensation": undo }, "compensation": undo, "probe": probe,
            "approval": { "required": true }, "failure_policy": { "action": "cancel_all" },
        }],
    });
    compare(
        &plan,
        &[
            ("", "plan"),
            ("/budget", "budget"),
            ("/defaults", "defaults"),
            ("/defaults/retry", "retry"),
            ("/steps/0", "step"),
            ("/steps/0/retry", "retry"),
            ("/steps/0/for_each", "for_each"),
            ("/steps/0/fallback", "fallback"),
            ("/steps/0/fallback/compensation", "compensation"),
            ("/steps/0/fallback/compensation/probe", "probe"),
            ("/steps/0/fallback/compensation/probe/retry", "retry"),
            ("/steps/0/compensation", "compensation"),
            ("/steps/0/compensation/probe", "probe"),
            ("/steps/0/compensation/probe/retry", "retry"),
            ("/steps/0/probe", "probe"),
            ("/steps/0/probe/retry", "retry"),
            ("/steps/0/approval", "approval"),
            ("/steps/0/failure_policy", "failure_policy"),
        ],
    );
}

#[test]
fn schema_and_reader_know_the_same_fields_of_numbered_plans() {
    let plan = json!({ "request": "r", "steps": [{ "step_number": 1, "tool_name": "a.b" }] });
    compare(&plan, &[("", "numbered_plan"), ("/steps/0", "numbered_step")]);
}

#[test]
fn everything_is_described() {
    for (name, of) in schema()["$defs"].as_object().unwrap() {
        let Some(properties) = of.get("properties") else { continue };
        assert!(of["description"].as_str().is_some_and(|text| text.ends_with('.')), "{name}");
        for (field, schema) in properties.as_object().unwrap() {
            let text = schema["description"].as_str().unwrap_or_default();
            assert!(text.ends_with('.'), "{name}.{field}: {text:?}");
        }
    }
}
