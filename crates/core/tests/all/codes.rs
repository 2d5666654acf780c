//! The list of codes, the source, the bad plans and docs/errors.md agree with each other.

use rutter_core::plan::codes::CODES;
use rutter_core::tool::catalog;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn core() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn files(folder: &Path, wanted: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, wanted));
        } else if wanted(path.file_name().unwrap().to_str().unwrap()) {
            found.push(path);
        }
    }
    found
}

/// Every quoted word of the form `plan.some_thing` in the source, tests left out.
fn codes_in_source() -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for path in
        files(&core().join("src/plan"), &|name| name.ends_with(".rs") && !["tests.rs", "codes.rs"].contains(&name))
    {
        let text = fs::read_to_string(path).unwrap();
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        for word in text.split('"') {
            let is_code = word.split_once('.').is_some_and(|(area, name)| {
                ["plan", "document", "expression", "lint", "tool"].contains(&area)
                    && !name.is_empty()
                    && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            });
            if is_code {
                codes.insert(word.to_owned());
            }
        }
    }
    codes
}

#[test]
fn every_code_of_the_source_is_listed_and_no_other() {
    let listed: BTreeSet<String> = CODES.iter().map(|code| (*code).to_owned()).collect();
    assert_eq!(codes_in_source(), listed);
    assert!(CODES.is_sorted());
}

#[test]
fn every_code_has_a_paragraph() {
    let text = fs::read_to_string(core().join("../../docs/errors.md")).unwrap();
    for code in CODES.iter().chain(catalog::CODES) {
        let heading = format!("### `{code}`\n\n");
        let paragraph = text.split(&heading).nth(1).unwrap_or_else(|| panic!("{code} is not in docs/errors.md"));
        assert!(!paragraph.starts_with('#') && paragraph.len() > 40, "{code} is not explained");
    }
}

#[test]
fn every_code_of_a_check_has_a_bad_plan() {
    let mut strings = BTreeSet::new();
    for path in files(&core().join("tests/bad_plans"), &|name| name.ends_with(".expected.json")) {
        let found: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        strings.extend(found.as_array().unwrap().iter().map(|found| found["code"].as_str().unwrap().to_owned()));
    }
    // Documents too large for this folder, a plan without steps (refused when it is read) and a thousand findings are
    // tested next to the code that refuses them.
    let elsewhere = [
        "document.string_too_long",
        "document.too_large",
        "document.too_many_items",
        "document.too_many_keys",
        "plan.no_steps",
        "plan.too_many_findings",
        "tool.unreachable",
    ];
    let missing: Vec<&&str> =
        CODES.iter().filter(|code| !strings.contains(**code) && !elsewhere.contains(*code)).collect();
    assert!(missing.is_empty(), "no bad plan shows {missing:?}");
}
