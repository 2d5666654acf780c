//! `rutter tools import`: converts another program's list of MCP servers to settings.

use crate::args::tools::ToolsImportArgs;
use crate::config::sources::variable_text;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::import;
use crate::terminal::Terminal;
use serde_json::json;
use std::path::Path;

pub(crate) fn run(args: &ToolsImportArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let imported = file(&args.file, None)?;
    if args.json {
        let servers: Vec<&String> = imported.servers.keys().collect();
        let json = json!({ "ok": true, "servers": servers, "secrets": imported.secrets, "notes": imported.notes,
            "toml": imported.to_string() });
        terminal.answer(&format!("{json}\n"))?;
        return Ok(CommandExit::Done);
    }
    imported.notes.iter().for_each(|note| terminal.remark(&format!("note: {note}\n")));
    terminal.answer(&imported.to_string())?;
    Ok(CommandExit::Done)
}

/// The servers of a file that the user named.
pub(crate) fn file(path: &Path, project: Option<&Path>) -> Result<import::ImportedServers, CommandRefusal> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| CommandRefusal::new("file.unreadable", format!("cannot read {}: {error}", path.display())))?;
    import::read(&text, project, &variable_text)
        .map_err(|why| CommandRefusal::new("config.invalid", format!("{}: {why}", path.display())))
}
