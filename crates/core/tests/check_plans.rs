//! Checking plans: each mistake in `bad_plans/check_*` is told exactly, every fix works, nothing makes it panic.
//!
//! `UPDATE_GOLDENS=1` rewrites the expected findings; look at the difference before committing it.

use proptest::prelude::*;
use rutter_core::plan::Driver;
use rutter_core::plan::check::{Checked, read_and_check};
use rutter_core::plan::diagnostic::{Diagnostic, Severity};
use rutter_core::plan::document::{Document, Format};
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

/// Plans whose file says so are for the agent, all others for the server.
fn driver_of(path: &Path) -> Driver {
    let agent = path.file_name().unwrap().to_str().unwrap().starts_with("check_agent_");
    if agent { Driver::Agent } else { Driver::Server }
}

fn format_of(path: &Path) -> Format {
    if path.extension().unwrap() == "json" { Format::Json } else { Format::Yaml }
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
    let Checked { plan, diagnostics } =
        read_and_check(&bytes, format_of(path), catalog, driver_of(path), Some(NOW));
    let has_error = diagnostics.iter().any(|found| found.severity == Severity::Error);
    assert_eq!(plan.is_none(), has_error, "{}: a plan if and only if there is no error", path.display());
    diagnostics
}

#[test]
fn bad_plans_are_told_what_is_wrong_with_them() {
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
fn fixes_remove_what_they_are_for() {
    let catalog = catalog();
    let mut codes = BTreeSet::new();
    for path in bad_plans() {
        let Ok(document) = Document::read(&fs::read(&path).unwrap(), format_of(&path)) else { continue };
        let before = findings(&path, &catalog);
        for found in &before {
            let Some(fix) = &found.fix else { continue };
            let fixed = apply_patch(&document.value, fix).unwrap();
            let checked = read_and_check(
                fixed.to_string().as_bytes(),
                Format::Json,
                &catalog,
                driver_of(&path),
                Some(NOW),
            );
            // Places shift when something is removed, so the same finding is known by its words.
            let count = |all: &[Diagnostic]| {
                all.iter()
                    .filter(|other| (other.code, &other.message) == (found.code, &found.message))
                    .count()
            };
            let gone = count(&checked.diagnostics) < count(&before);
            assert!(gone, "{}: {found:?} is still there after its fix", path.display());
            codes.insert(found.code);
        }
    }
    assert!(codes.len() >= 20, "only these codes have a fix: {codes:?}");
}
