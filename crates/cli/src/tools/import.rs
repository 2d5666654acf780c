//! `rutter tools import`: another program's list of MCP servers as settings of ours.

use crate::Exit;
use crate::args::tools::ToolsImportArgs;
use crate::config::imported_with_notes;
use crate::terminal::Terminal;
use rutter_tools::config::mcp::{Reach, Server};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, value};

pub(crate) fn run(args: &ToolsImportArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let (servers, notes) = imported_with_notes(&args.file)?;
    notes.iter().for_each(|note| terminal.remark(&format!("note: {note}\n")));
    let mut document = DocumentMut::new();
    let mut all = Table::new();
    all.set_implicit(true);
    for (name, server) in &servers {
        all.insert(name, Item::Table(table(server)));
    }
    document.insert("servers", Item::Table(all));
    terminal.answer(&document.to_string())?;
    Ok(Exit::Done)
}

fn table(server: &Server) -> Table {
    let mut table = Table::new();
    let map = |pairs: &std::collections::BTreeMap<String, String>| -> InlineTable {
        pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
    };
    match &server.reach {
        Reach::Child(child) => {
            table["command"] = value(child.command.as_str());
            if !child.args.is_empty() {
                table["args"] = value(child.args.iter().map(String::as_str).collect::<Array>());
            }
            if !child.env.is_empty() {
                table["env"] = value(map(&child.env));
            }
            if let Some(cwd) = &child.cwd {
                table["cwd"] = value(cwd.display().to_string());
            }
        }
        Reach::Http(http) => {
            table["url"] = value(http.url.as_str());
            if !http.headers.is_empty() {
                table["headers"] = value(map(&http.headers));
            }
        }
    }
    if server.disabled {
        table["disabled"] = value(true);
    }
    table
}
