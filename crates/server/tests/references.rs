//! The references under docs/ are what the program says now.
//!
//! `UPDATE_GOLDENS=1` writes them anew; look at the difference before committing it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on may say so by panicking")]

use rutter_server::reference;
use std::fs;
use std::path::Path;

fn compare(name: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, now).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == now, "docs/{name} is not what the program says; UPDATE_GOLDENS=1 writes it anew");
}

#[test]
fn reference_of_plans_is_up_to_date() {
    let now = reference::plan();
    assert!(now.contains("| `total_timeout` |") && now.contains("| `happened` |"), "fields are listed");
    compare("plan-reference.md", &now);
}

#[test]
fn reference_of_tools_is_up_to_date() {
    let now = reference::tools();
    assert!(
        now.contains("\n## create_execution_plan\n") && now.contains("\n## summarize\n"),
        "tools are listed"
    );
    compare("mcp-tools.md", &now);
}
