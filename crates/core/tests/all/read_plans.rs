//! Reading plans: each mistake in `bad_plans/read_*` is reported exactly, and nothing panics.
//!
//! `UPDATE_GOLDENS=1` rewrites the expected findings; look at the difference before committing it.

use proptest::prelude::*;
use rutter_core::diagnostic::Diagnostic;
use rutter_core::plan::document::{DocumentFormat, PlanDocument};
use rutter_core::plan::draft::PlanDraft;
use rutter_core::plan::patch::apply_patch;
use rutter_core::pointer;
use rutter_core::time::Timestamp;
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn findings(bytes: &[u8], format: DocumentFormat) -> Vec<Diagnostic> {
    match PlanDocument::read(bytes, format) {
        Err(findings) => findings,
        Ok(document) => PlanDraft::read(&document, Some(NOW)).1,
    }
}

fn bad_plans() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad_plans");
    let mut plans: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            name.starts_with("read_") && !name.ends_with(".expected.json")
        })
        .collect();
    plans.sort();
    plans
}

fn format_of(path: &Path) -> DocumentFormat {
    if path.extension().unwrap() == "json" { DocumentFormat::Json } else { DocumentFormat::Yaml }
}

#[test]
fn every_mistake_in_a_bad_plan_is_reported() {
    let plans = bad_plans();
    assert!(plans.len() >= 45, "only {} bad plans", plans.len());
    for path in plans {
        let found = findings(&fs::read(&path).unwrap(), format_of(&path));
        assert!(!found.is_empty(), "{} has no findings", path.display());
        let found = serde_json::to_value(found).unwrap();
        let expected_path = path.with_extension("expected.json");
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            fs::write(&expected_path, format!("{found:#}\n")).unwrap();
        }
        let expected: Value = serde_json::from_slice(&fs::read(&expected_path).unwrap()).unwrap();
        assert_eq!(found, expected, "{}", path.display());
    }
}

#[test]
fn fixes_remove_their_findings() {
    let mut fixes = 0;
    for path in bad_plans() {
        let Ok(document) = PlanDocument::read(&fs::read(&path).unwrap(), format_of(&path)) else { continue };
        for found in PlanDraft::read(&document, Some(NOW)).1 {
            let Some(fix) = &found.fix else { continue };
            let fixed = apply_patch(&document.value, fix).unwrap();
            let left = findings(fixed.to_string().as_bytes(), DocumentFormat::Json);
            let same = |left: &Diagnostic| (left.code, &left.pointer) == (found.code, &found.pointer);
            assert!(!left.iter().any(same), "{}: {found:?} is still there", path.display());
            fixes += 1;
        }
    }
    assert!(fixes >= 10, "only {fixes} fixes were tried");
}

/// Checks invariants of any text: no panic, findings point into it, fixes can be applied.
fn check_any(bytes: &[u8], format: DocumentFormat) {
    let document = match PlanDocument::read(bytes, format) {
        Ok(document) => document,
        Err(findings) => {
            assert!(!findings.is_empty());
            for place in findings.iter().filter_map(|found| found.place) {
                assert!(place.start <= place.end && place.end <= bytes.len(), "{findings:?}");
            }
            return;
        }
    };
    for pointer in pointers(&document.value) {
        let span = document.spans.value(&pointer).unwrap();
        assert!(bytes.get(span.clone()).is_some(), "{pointer} is at {span:?}");
    }
    let (draft, findings) = PlanDraft::read(&document, Some(NOW));
    assert_eq!(draft.is_some(), document.value.is_object());
    for found in findings {
        assert!(document.value.pointer(&found.pointer).is_some(), "{found:?}");
        if let Some(fix) = found.fix {
            apply_patch(&document.value, &fix).unwrap();
        }
    }
}

fn pointers(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((at, value)) = open.pop() {
        match value {
            Value::Array(items) => {
                open.extend(items.iter().enumerate().map(|(index, value)| (pointer::item(&at, index), value)));
            }
            Value::Object(fields) => {
                open.extend(fields.iter().map(|(name, value)| (pointer::field(&at, name), value)));
            }
            _ => {}
        }
        found.push(at);
    }
    found
}

const FIELDS: &[&str] = &[
    "name",
    "goal",
    "description",
    "request",
    "reasoning",
    "tags",
    "metadata",
    "inputs",
    "max_parallel",
    "deadline",
    "budget",
    "on_failure",
    "defaults",
    "steps",
    "id",
    "tool",
    "parameters",
    "depends_on",
    "cancellable",
    "compensation",
    "probe",
    "timeout",
    "total_timeout",
    "retry",
    "approval",
    "when",
    "for_each",
    "fallback",
    "failure_policy",
    "safety",
    "priority",
    "output",
    "max_attempts",
    "backoff",
    "initial",
    "factor",
    "max",
    "jitter",
    "on",
    "required",
    "expires",
    "items",
    "max_items",
    "action",
    "propagate_to",
    "reason",
    "happened",
    "result",
    "step_number",
    "tool_name",
    "selected_tools",
    "status",
    "error",
    "created_at",
    "updated_at",
    "plan_id",
    "plan",
    "cancellation",
    "dependsOn",
    "a/b~c",
    "",
];

fn near_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-5i64..2_000).prop_map(Value::from),
        (-1e9..1e9).prop_map(Value::from),
        proptest::sample::select(vec![
            "a",
            "s.t",
            "30s",
            "0s",
            "99d",
            "",
            " ",
            "{{ steps.a }}",
            "once",
            "fixed",
            "cancel_all",
            "bad id",
            "ünï"
        ])
        .prop_map(Value::from),
        ".{0,8}".prop_filter_map("NUL is refused earlier", |text| (!text.contains('\0')).then(|| Value::from(text))),
    ];
    let key = prop_oneof![9 => proptest::sample::select(FIELDS).prop_map(str::to_owned), 1 => "[a-zA-Z_~/]{0,6}"];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            3 => proptest::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn near_plans() -> impl Strategy<Value = Value> {
    (near_values(), proptest::collection::vec(near_values(), 0..4), any::<u8>()).prop_map(|(mut plan, steps, kind)| {
        if kind > 20
            && let Value::Object(fields) = &mut plan
        {
            fields.insert("steps".to_owned(), json!(steps));
        }
        if kind > 240 { json!({"plan": plan}) } else { plan }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn anything_like_a_plan_is_read_without_panic(plan in near_plans()) {
        check_any(plan.to_string().as_bytes(), DocumentFormat::Json);
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        check_any(&bytes, DocumentFormat::Json);
        check_any(&bytes, DocumentFormat::Yaml);
    }

    #[test]
    fn any_text_of_the_signs_of_yaml_is_read_without_panic(text in "[-a{}\\[\\]:,&*!|>'\"%#?~<0-9.e \n\t\u{e9}\u{feff}]{0,80}") {
        check_any(text.as_bytes(), DocumentFormat::Json);
        check_any(text.as_bytes(), DocumentFormat::Yaml);
    }

    #[test]
    fn every_span_of_json_holds_its_value(value in near_values(), pretty in any::<bool>()) {
        let text = if pretty { format!("{value:#}") } else { value.to_string() };
        let document = PlanDocument::read(text.as_bytes(), DocumentFormat::Json).unwrap();
        prop_assert_eq!(&*document.value, &value);
        for pointer in pointers(&value) {
            let cut = &text[document.spans.value(&pointer).unwrap()];
            prop_assert_eq!(Some(&serde_json::from_str::<Value>(cut).unwrap()), value.pointer(&pointer));
            let name = pointer::names(&pointer).unwrap().pop();
            if let Some(key) = document.spans.key(&pointer) {
                prop_assert_eq!(serde_json::from_str::<String>(&text[key]).ok(), name);
            }
        }
    }

    #[test]
    fn json_is_yaml_too(value in near_values()) {
        let text = value.to_string();
        // JSON leaves some characters unescaped that YAML requires to be escaped.
        prop_assume!(!text.chars().any(|c| c.is_control() || ('\u{fef0}'..='\u{ffff}').contains(&c)));
        let document = PlanDocument::read(text.as_bytes(), DocumentFormat::Yaml).unwrap();
        prop_assert_eq!(&*document.value, &value);
    }
}
