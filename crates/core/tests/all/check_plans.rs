//! Checking plans: each mistake in `bad_plans/check_*` is reported exactly, every fix works, nothing panics.
//!
//! `UPDATE_GOLDENS=1` rewrites the expected findings; look at the difference before committing it.

use proptest::prelude::*;
use rutter_core::diagnostic::{Diagnostic, DiagnosticSeverity};
use rutter_core::plan::Driver;
use rutter_core::plan::check::{PlanCheck, read_and_check};
use rutter_core::plan::document::{DocumentFormat, PlanDocument};
use rutter_core::plan::patch::apply_patch;
use rutter_core::time::Timestamp;
use rutter_core::tool::ToolCatalog;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const NOW: Timestamp = Timestamp(1_700_000_000_000);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad_plans")
}

fn catalog() -> ToolCatalog {
    let text = fs::read(folder().join("catalog.json")).unwrap();
    ToolCatalog::from_json(&serde_json::from_slice(&text).unwrap()).unwrap()
}

/// Plans in files named `check_agent_…` are for the agent, all others for the server.
fn driver_of(path: &Path) -> Driver {
    let agent = path.file_name().unwrap().to_str().unwrap().starts_with("check_agent_");
    if agent { Driver::Agent } else { Driver::Server }
}

fn format_of(path: &Path) -> DocumentFormat {
    if path.extension().unwrap() == "json" { DocumentFormat::Json } else { DocumentFormat::Yaml }
}

fn bad_plans() -> Vec<PathBuf> {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let is_plan = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with("check_") && !name.ends_with(".expected.json")
    };
    let mut plans: Vec<PathBuf> = entries.filter(is_plan).collect();
    plans.sort();
    plans
}

fn findings(path: &Path, catalog: &ToolCatalog) -> Vec<Diagnostic> {
    let bytes = fs::read(path).unwrap();
    let PlanCheck { plan, diagnostics } = read_and_check(&bytes, format_of(path), catalog, driver_of(path), Some(NOW));
    let has_error = diagnostics.iter().any(|found| found.severity == DiagnosticSeverity::Error);
    assert_eq!(plan.is_none(), has_error, "{}: a plan if and only if there is no error", path.display());
    diagnostics
}

#[test]
fn every_mistake_in_a_bad_plan_is_reported() {
    let catalog = catalog();
    let plans = bad_plans();
    assert!(plans.len() >= 50, "only {} bad plans", plans.len());
    for path in plans {
        let found = findings(&path, &catalog);
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
    let catalog = catalog();
    let mut codes = BTreeSet::new();
    for path in bad_plans() {
        let Ok(document) = PlanDocument::read(&fs::read(&path).unwrap(), format_of(&path)) else { continue };
        let before = findings(&path, &catalog);
        for found in &before {
            let Some(fix) = &found.fix else { continue };
            let fixed = apply_patch(&document.value, fix).unwrap();
            let checked = read_and_check(
                fixed.to_string().as_bytes(),
                DocumentFormat::Json,
                &catalog,
                driver_of(&path),
                Some(NOW),
            );
            // Pointers shift when something is removed, so the finding is recognised by its message.
            let count = |all: &[Diagnostic]| {
                all.iter().filter(|other| (other.code, &other.message) == (found.code, &found.message)).count()
            };
            let gone = count(&checked.diagnostics) < count(&before);
            assert!(gone, "{}: {found:?} is still there after its fix", path.display());
            codes.insert(found.code);
        }
    }
    assert!(codes.len() >= 20, "only these codes have a fix: {codes:?}");
}

fn id() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "reserve", "a-b", "", "ä"]).prop_map(str::to_owned)
}

fn text() -> impl Strategy<Value = String> {
    let expressions = vec![
        "steps.a.result.x",
        "steps.b.status == 'completed'",
        "inputs.sku",
        "item",
        "key",
        "result.id",
        "parameters.sku",
        "steps[\"a-b\"].result[0]",
        "1 +",
        "none",
    ];
    let expression = prop::sample::select(expressions);
    prop_oneof![
        expression.clone().prop_map(str::to_owned),
        expression.clone().prop_map(|inside| format!("{{{{ {inside} }}}}")),
        expression.prop_map(|inside| format!("text {{{{ {inside} }}}} {{{{")),
        "\\PC{0,12}",
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-5_i64..1_000_000).prop_map(Value::from),
        any::<f64>().prop_map(|float| json!(float)),
        text().prop_map(Value::from),
        prop::sample::select(vec!["1s", "2h", "0ms"]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        let key = prop_oneof![id(), Just("secret".to_owned()), Just("sku".to_owned())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4).prop_map(|fields| fields.into_iter().collect()),
        ]
    })
}

/// A value of the right type, or any value.
fn near(right: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    prop_oneof![8 => right, 1 => value()].boxed()
}

fn call() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
    let tools = vec!["inventory.reserve", "payments.charge", "payments.find", "ledger.read", "mail.confirm", "no.tool"];
    let tool = near(prop::sample::select(tools).prop_map(Value::from));
    let names = prop::sample::select(vec!["sku", "amount", "idempotency_key", "password", "x"]);
    let parameters = prop::collection::vec((names, value()), 0..4);
    let parameters = near(parameters.prop_map(|fields| fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()));
    (tool, parameters).prop_map(|(tool, parameters)| vec![("tool", tool), ("parameters", parameters)])
}

fn with(call: Vec<(&'static str, Value)>, extra: Vec<(&'static str, Value)>) -> Value {
    call.into_iter().chain(extra).map(|(name, value)| (name.to_owned(), value)).collect()
}

fn step() -> impl Strategy<Value = Value> {
    let ids = || prop::collection::vec(id().prop_map(Value::from), 0..3).prop_map(Value::from);
    let probe = (call(), text()).prop_map(|(call, happened)| with(call, vec![("happened", happened.into())]));
    let probe = probe.boxed();
    let undo = (call(), near(probe.clone())).prop_map(|(call, probe)| with(call, vec![("probe", probe)]));
    let undo = undo.boxed();
    let extra = prop::collection::vec(
        prop_oneof![
            near(ids()).prop_map(|value| ("depends_on", value)),
            near(text().prop_map(Value::from)).prop_map(|value| ("when", value)),
            near(text().prop_map(Value::from)).prop_map(|value| ("for_each", value)),
            near(undo.clone()).prop_map(|value| ("compensation", value)),
            near(probe).prop_map(|value| ("probe", value)),
            near(undo).prop_map(|value| ("fallback", value)),
            near(prop::sample::select(vec!["reversible", "irreversible"]).prop_map(Value::from))
                .prop_map(|value| ("cancellable", value)),
            near(ids().prop_map(|ids| json!({"action": "cancel_dependent", "propagate_to": ids})))
                .prop_map(|value| ("failure_policy", value)),
            near(Just(json!({"max_attempts": 3, "initial": "2m", "on": ["timeout"]})))
                .prop_map(|value| ("retry", value)),
            value().prop_map(|value| ("output", value)),
            value().prop_map(|value| ("timeout", value)),
            value().prop_map(|value| ("total_timeout", value)),
        ],
        0..6,
    );
    (near(id().prop_map(Value::from)), call(), extra).prop_map(|(id, call, mut extra)| {
        extra.push(("id", id));
        with(call, extra)
    })
}

fn plan() -> impl Strategy<Value = Value> {
    let steps = near(prop::collection::vec(near(step()), 0..6).prop_map(Value::from));
    let inputs = near(Just(json!({"type": "object", "properties": {"sku": {"type": "string"}}})));
    (steps, inputs, value(), any::<[bool; 3]>()).prop_map(|(steps, inputs, other, [with_inputs, wide, late])| {
        let mut plan = json!({"name": "p", "steps": steps});
        let fields = [(with_inputs, "inputs", inputs), (wide, "max_parallel", json!(3)), (late, "deadline", other)];
        for (_, name, value) in fields.into_iter().filter(|(wanted, ..)| *wanted) {
            plan[name] = value;
        }
        plan
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn checking_never_panics_and_fixes_always_apply(plan in plan(), agent in any::<bool>()) {
        let driver = if agent { Driver::Agent } else { Driver::Server };
        let catalog = catalog();
        let checked = read_and_check(plan.to_string().as_bytes(), DocumentFormat::Json, &catalog, driver, Some(NOW));
        let has_error = checked.diagnostics.iter().any(|found| found.severity == DiagnosticSeverity::Error);
        prop_assert_eq!(checked.plan.is_none(), has_error);
        for found in &checked.diagnostics {
            if let Some(fix) = &found.fix {
                prop_assert!(apply_patch(&plan, fix).is_ok(), "{:?}", found);
            }
        }
        if let Some(plan) = checked.plan {
            let preview = rutter_core::preview::preview(&plan);
            prop_assert_eq!(preview.what_if.len(), plan.steps.len());
            prop_assert!(rutter_core::plan::diff::diff(&plan, &plan).is_empty());
        }
    }
}

/// What a reader copies passes the check.
#[test]
fn every_plan_in_the_documents_passes_the_check() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let mut plans = 0;
    for page in pages.chain([root.join("README.md")]).filter(|page| page.extension().is_some_and(|end| end == "md")) {
        let text = fs::read_to_string(&page).unwrap();
        for block in text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            if !block.lines().any(|line| line == "steps:") {
                continue;
            }
            let bytes = block.as_bytes();
            let checked =
                read_and_check(bytes, DocumentFormat::Yaml, &ToolCatalog::default(), Driver::Agent, Some(NOW));
            assert!(checked.plan.is_some(), "{}: {:#?}", page.display(), checked.diagnostics);
            plans += 1;
        }
    }
    assert!(plans >= 2, "{plans}");
}
