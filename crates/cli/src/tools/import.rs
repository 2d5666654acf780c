//! `rutter tools import`: another program's list of MCP servers as settings of ours.

use crate::Exit;
use crate::args::tools::ToolsImportArgs;
use crate::config::sources::held;
use crate::failure::Refusal;
use crate::import;
use crate::terminal::Terminal;
use serde_json::json;
use std::path::Path;

pub(crate) fn run(args: &ToolsImportArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let imported = file(&args.file, None)?;
    if args.json {
        let servers: Vec<&String> = imported.servers.keys().collect();
        let told = json!({ "ok": true, "servers": servers, "secrets": imported.secrets, "notes": imported.notes,
            "toml": imported.to_string() });
        terminal.answer(&format!("{told}\n"))?;
        return Ok(Exit::Done);
    }
    imported.notes.iter().for_each(|note| terminal.remark(&format!("note: {note}\n")));
    terminal.answer(&imported.to_string())?;
    Ok(Exit::Done)
}

/// The servers of a file somebody named.
pub(crate) fn file(path: &Path, project: Option<&Path>) -> Result<import::Imported, Refusal> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Refusal::new("file.unreadable", format!("cannot read {}: {error}", path.display()))
    })?;
    import::read(&text, project, &held)
        .map_err(|why| Refusal::new("config.invalid", format!("{}: {why}", path.display())))
}
