//! The preview of the documentation's order plan, and its diff to a later revision, exactly.
//!
//! `UPDATE_GOLDENS=1` rewrites the expected files; look at the difference before committing it.

use rutter_core::plan::check::read_and_check;
use rutter_core::plan::diff::diff;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Driver, Plan};
use rutter_core::preview::{GuaranteeKind, UndoCoverage, preview, what_if};
use rutter_core::tool::ToolCatalog;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn plan(name: &str) -> Arc<Plan> {
    let catalog = fs::read(tests().join("bad_plans/catalog.json")).unwrap();
    let catalog = ToolCatalog::from_json(&serde_json::from_slice(&catalog).unwrap()).unwrap();
    let text = fs::read(tests().join("previews").join(name)).unwrap();
    let checked = read_and_check(&text, DocumentFormat::Yaml, &catalog, Driver::Server, None);
    checked.plan.unwrap_or_else(|| panic!("{name}: {:#?}", checked.diagnostics))
}

#[track_caller]
fn compare(found: Value, name: &str) {
    let path = tests().join("previews").join(name);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, format!("{found:#}\n")).unwrap();
    }
    let expected: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(found, expected, "{name}");
}

#[test]
fn the_order_is_previewed_exactly() {
    compare(serde_json::to_value(preview(&plan("order.yaml"))).unwrap(), "order.preview.json");
}

#[test]
fn a_revision_is_compared_by_meaning() {
    let diff = diff(&plan("order.yaml"), &plan("order_next.yaml"));
    let lines = diff.lines();
    compare(json!({"diff": diff, "lines": lines}), "order.diff.json");
}

#[test]
fn a_revision_is_compared_backwards_too() {
    let back = diff(&plan("order_next.yaml"), &plan("order.yaml"));
    assert_eq!((back.added.len(), back.removed.len()), (1, 2));
    assert_eq!(back.added[0].as_str(), "mail");
}

#[test]
fn a_plan_does_not_differ_from_itself() {
    let diff = diff(&plan("order.yaml"), &plan("order.yaml"));
    assert!(diff.is_empty() && diff.lines().is_empty());
    assert_eq!(diff.unchanged.len(), 3);
}

#[test]
fn one_step_can_be_asked_about_alone() {
    let plan = plan("order.yaml");
    let all = preview(&plan);
    for alone in &all.what_if {
        assert_eq!(what_if(&plan, alone.step.as_str()).as_ref(), Some(alone));
    }
    assert_eq!(what_if(&plan, "missing"), None);
}

#[test]
fn the_point_of_no_return_is_the_first_effect_that_cannot_be_undone() {
    let preview = preview(&plan("order.yaml"));
    assert_eq!(preview.point_of_no_return.unwrap().step.as_str(), "charge");
    let coverage: Vec<UndoCoverage> = preview.steps.iter().map(|step| step.undo.coverage).collect();
    assert_eq!(coverage, [UndoCoverage::Undoable, UndoCoverage::Partly, UndoCoverage::NotUndoable]);
    let kinds: Vec<GuaranteeKind> = preview.steps.iter().map(|step| step.guarantee.kind).collect();
    assert_eq!(kinds, [GuaranteeKind::AtMostOnce, GuaranteeKind::Deduplicated, GuaranteeKind::AtMostOnce]);
}
