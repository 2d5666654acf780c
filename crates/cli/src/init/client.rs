//! How to add Rutter to agents: a command to type, or a text for their settings.

use serde_json::json;
use std::env;
use std::path::Path;

/// The setup of one client program.
pub(crate) struct ClientSetup {
    pub(crate) client: &'static str,
    /// Where the text goes.
    pub(crate) place: &'static str,
    pub(crate) text: String,
}

/// The setup of each known client. Those that do not start in the project get the path of its settings.
pub(crate) fn lines(settings: &Path) -> Vec<ClientSetup> {
    let program = path();
    let settings = settings.display().to_string();
    let cursor = json!({ "mcpServers": { "rutter": { "command": program, "args": ["mcp", "--config", settings] } } });
    let opencode = json!({ "mcp": { "rutter": { "type": "local", "command": [program, "mcp"], "enabled": true } } });
    vec![
        ClientSetup {
            client: "claude",
            place: "Claude Code, in this directory:",
            text: format!("claude mcp add rutter -- {} mcp", quoted(&program)),
        },
        ClientSetup {
            client: "codex",
            place: "Codex:",
            text: format!("codex mcp add rutter -- {} mcp --config {}", quoted(&program), quoted(&settings)),
        },
        ClientSetup { client: "cursor", place: "Cursor, in .cursor/mcp.json:", text: cursor.to_string() },
        ClientSetup { client: "opencode", place: "opencode, in opencode.json:", text: opencode.to_string() },
    ]
}

/// This program, as a word to type.
pub(crate) fn program() -> String {
    quoted(&path())
}

/// The name if PATH finds this program by it, otherwise its path.
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

/// Quotes a word for a shell.
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
    fn words_are_quoted_where_a_shell_would_split_them() {
        assert_eq!(quoted("/usr/bin/rutter"), "/usr/bin/rutter");
        assert_eq!(quoted("/a b/rutter"), "'/a b/rutter'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
