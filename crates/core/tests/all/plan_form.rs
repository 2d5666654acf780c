//! The JSON Schema of plans agrees with the reader: on every example, every bad plan, and on random changes.

use proptest::prelude::*;
use rutter_core::diagnostic::DiagnosticSeverity;
use rutter_core::plan::document::{DocumentFormat, PlanDocument};
use rutter_core::plan::draft::{PlanDraft, schema};
use rutter_core::plan::schema::CompiledSchema;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

static SCHEMA: LazyLock<CompiledSchema> = LazyLock::new(|| CompiledSchema::compile(&schema()).unwrap());

/// Codes of findings about a single field; the others compare fields, or exceed what a schema can express.
const PLAIN: &[&str] = &[
    "plan.unknown_field",
    "plan.missing_field",
    "plan.wrong_type",
    "plan.unknown_value",
    "plan.empty_field",
    "plan.duration",
    "plan.bad_id",
    "plan.tool_name",
];

fn read(path: &Path) -> Option<Value> {
    let format = if path.extension().unwrap() == "json" { DocumentFormat::Json } else { DocumentFormat::Yaml };
    PlanDocument::read(&fs::read(path).unwrap(), format).ok().map(|document| (*document.value).clone())
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn examples() -> Vec<(PathBuf, Value)> {
    let paths = ["../../examples", "../../examples/shapes", "../../examples/parcel"].into_iter().flat_map(files);
    let is_plan = |path: &PathBuf| {
        let kind = path.extension().and_then(|kind| kind.to_str());
        matches!(kind, Some("yaml" | "json")) && path.file_name().unwrap() != "tools.json"
    };
    paths.filter(is_plan).map(|path| (path.clone(), read(&path).unwrap())).collect()
}

/// The codes of the reader's errors.
fn errors(plan: &Value) -> Vec<&'static str> {
    let document = PlanDocument::read(plan.to_string().as_bytes(), DocumentFormat::Json).unwrap();
    let found = PlanDraft::read(&document, None).1;
    found.iter().filter(|found| found.severity == DiagnosticSeverity::Error).map(|found| found.code).collect()
}

/// Both accept or both refuse; if only the reader refuses, the error is not about a single field.
fn agree(plan: &Value) -> Result<(), String> {
    let (errors, violations) = (errors(plan), SCHEMA.validate(plan));
    if errors.is_empty() && !violations.is_empty() {
        return Err(format!("only the schema refuses: {violations:?}\n{plan:#}"));
    }
    if violations.is_empty() && errors.iter().any(|code| PLAIN.contains(code)) {
        return Err(format!("only the reader refuses: {errors:?}\n{plan:#}"));
    }
    Ok(())
}

#[test]
fn every_example_fits_the_schema() {
    let examples = examples();
    assert!(examples.len() >= 11, "only {} examples", examples.len());
    for (path, plan) in examples {
        assert_eq!(SCHEMA.validate(&plan), [], "{}", path.display());
        let wrapped = json!({ "plan": plan });
        assert_eq!(SCHEMA.validate(&wrapped), [], "{} in a field of its own", path.display());
    }
}

#[test]
fn bad_plans_are_refused_by_both_or_for_more_than_a_field_shows() {
    let mut refused = 0;
    for path in files("tests/bad_plans") {
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.ends_with(".expected.json") || name == "catalog.json" {
            continue;
        }
        let Some(plan) = read(&path) else { continue };
        agree(&plan).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
        refused += usize::from(!SCHEMA.validate(&plan).is_empty());
    }
    assert!(refused >= 30, "the schema refuses only {refused} bad plans");
}

/// Fields of some objects; the empty name replaces the value instead.
const NAMES: &[&str] =
    &["", "retry", "when", "probe", "approval", "for_each", "undo", "status", "cancellation", "budget", "step_number"];

static EXAMPLES: LazyLock<Vec<(PathBuf, Value)>> = LazyLock::new(examples);

/// The pointer of every value in a document.
fn places(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| {
            places(value, format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
        }),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(number, value)| places(value, format!("{at}/{number}"), found));
        }
        _ => {}
    }
    if !at.is_empty() {
        found.push(at);
    }
}

fn anything() -> impl Strategy<Value = Value> {
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(3),
        json!(2.5),
        json!(""),
        json!(" \t"),
        json!("x"),
        json!("a.b"),
        json!("30s"),
        json!("1m30s"),
        json!("compensate"),
        json!("irreversible"),
        json!([]),
        json!(["a"]),
        json!([1]),
        json!([{}]),
        json!({}),
        json!({ "tool": "a.b" }),
        json!({ "action": "cancel_all" }),
        json!({ "items": "inputs.x", "max_items": 2 }),
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn changed_examples_are_judged_alike(
        example in any::<prop::sample::Index>(),
        place in any::<prop::sample::Index>(),
        name in prop::sample::select(NAMES.to_vec()),
        value in anything(),
    ) {
        let (_, mut plan) = example.get(&EXAMPLES).clone();
        let mut found = Vec::new();
        places(&plan, String::new(), &mut found);
        let place = plan.pointer_mut(&found[place.index(found.len())]).unwrap();
        match place {
            // An additional field, known there or not.
            Value::Object(fields) if !name.is_empty() => drop(fields.insert(name.to_owned(), value)),
            place => *place = value,
        }
        prop_assert_eq!(agree(&plan), Ok(()));
    }
}
