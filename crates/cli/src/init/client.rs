//! How agents are told of Rutter: a command to type, or a text for their settings.

use serde_json::json;
use std::env;
use std::path::Path;

/// What one program needs.
pub(crate) struct Line {
    pub(crate) client: &'static str,
    /// What to do with the text.
    pub(crate) place: &'static str,
    pub(crate) text: String,
}

/// For each program we know. Those that do not start in the project are told where its settings are.
pub(crate) fn lines(settings: &Path) -> Vec<Line> {
    let program = path();
    let settings = settings.display().to_string();
    let cursor =
        json!({ "mcpServers": { "rutter": { "command": program, "args": ["mcp", "--config", settings] } } });
    let opencode =
        json!({ "mcp": { "rutter": { "type": "local", "command": [program, "mcp"], "enabled": true } } });
    vec![
        Line {
            client: "claude",
            place: "Claude Code, in this directory:",
            text: format!("claude mcp add rutter -- {} mcp", quoted(&program)),
        },
        Line {
            client: "codex",
            place: "Codex:",
            text: format!("codex mcp add rutter -- {} mcp --config {}", quoted(&program), quoted(&settings)),
        },
        Line { client: "cursor", place: "Cursor, in .cursor/mcp.json:", text: cursor.to_string() },
        Line { client: "opencode", place: "opencode, in opencode.json:", text: opencode.to_string() },
    ]
}

/// This program, as one would type it.
pub(crate) fn program() -> String {
    quoted(&path())
}

/// By name where the name leads here, otherwise with its path.
fn path() -> String {
    let Ok(here) = env::current_exe() else { return "rutter".to_owned() };
    let is_here = |folder: &Path| {
        let named = folder.join("rutter").canonicalize();
        named.is_ok_and(|named| here.canonicalize().is_ok_and(|here| here == named))
    };
    let folders = env::var_os("PATH").unwrap_or_default();
    match env::split_paths(&folders).find(|folder| folder.join("rutter").is_file()) {
        Some(folder) if is_here(&folder) => "rutter".to_owned(),
        _ => here.display().to_string(),
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted("/usr/bin/rutter"), "/usr/bin/rutter");
        assert_eq!(quoted("/a b/rutter"), "'/a b/rutter'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
