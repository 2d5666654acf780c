//! The settings that a document lists, and those that the program knows.

use crate::documents::console::section;
use crate::fixture::RUTTER;
use std::collections::BTreeSet;
use std::fs;
use std::process::{Command, Stdio};

/// The keys in the first column of the tables of a section.
pub fn documented(text: &str, heading: &str) -> BTreeSet<String> {
    let cells = section(text, heading).take_while(|line| !line.starts_with("####")).filter_map(|line| {
        let cell = line.strip_prefix("| ")?.split(" | ").next()?;
        cell.starts_with('`').then_some(cell)
    });
    let keys = cells.flat_map(|cell| cell.split(", ").map(|key| key.trim_matches('`').to_owned()));
    let keys: BTreeSet<String> = keys.collect();
    assert!(!keys.is_empty(), "there is no table under {heading:?}");
    keys
}

/// The known settings, from the error about an unknown one.
pub fn known(settings: &str) -> BTreeSet<String> {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("rutter.toml"), settings).unwrap();
    let output = Command::new(RUTTER)
        .args(["tools", "list", "--json", "--dir", "data"])
        .current_dir(place.path())
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let error = &answer["error"];
    assert_eq!(error["code"], "config.invalid", "{error}");
    let (message, hint) = (error["message"].as_str().unwrap(), error["hint"].as_str().unwrap_or_default());
    let listed = match hint.strip_prefix("there are: ") {
        Some(names) => names,
        None => message.split_once("expected one of ").unwrap_or_else(|| panic!("{message}")).1,
    };
    listed.split(", ").map(|key| key.trim_matches('`').to_owned()).collect()
}
