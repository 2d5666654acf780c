//! The generated references under docs/ are up to date.
//!
//! `UPDATE_GOLDENS=1` regenerates them; review the diff before committing it.

use rutter_mcp::reference;
use std::fs;
use std::path::Path;

fn compare(name: &str, now: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        fs::write(&path, now).unwrap();
    }
    let stored = fs::read_to_string(&path).unwrap_or_default();
    assert!(stored == now, "docs/{name} is out of date; UPDATE_GOLDENS=1 regenerates it");
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
    assert!(now.contains("\n## create_execution_plan\n") && now.contains("\n## summarize\n"), "tools are listed");
    compare("mcp-tools.md", &now);
}
