//! Finds the MCP server lists of other programs.

use crate::config::sources::variable_path;
use std::path::{Path, PathBuf};

/// The lists that exist, those of the project first.
pub(crate) fn lists(project: &Path) -> Vec<PathBuf> {
    let own = [".mcp.json", ".cursor/mcp.json", ".vscode/mcp.json"].map(|name| project.join(name));
    let home = variable_path("HOME");
    let at_home = [".claude.json", ".cursor/mcp.json", "Library/Application Support/Claude/claude_desktop_config.json"];
    let at_home = home.iter().flat_map(|home| at_home.map(|name| home.join(name)));
    let settings = variable_path("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
    let desktop = settings.map(|settings| settings.join("Claude/claude_desktop_config.json"));
    let mut found: Vec<PathBuf> = Vec::new();
    for path in own.into_iter().chain(at_home).chain(desktop) {
        // The project may be the home directory.
        if path.is_file() && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}
