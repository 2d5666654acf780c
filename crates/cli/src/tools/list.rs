//! `rutter tools list`: every tool of every server, or those that match some words.

use super::{listed, with_known_tools};
use crate::args::tools::ToolsListArgs;
use crate::config::Config;
use crate::exit::CommandExit;
use crate::printable::printable;
use crate::table::{CellColor, TableCell, columns};
use crate::terminal::Terminal;
use rutter_core::id::ToolName;
use rutter_core::port::tools::{CatalogSnapshot, ServerSelection};
use rutter_core::text::first_chars;
use rutter_core::tool::{Safety, Tool, ToolCatalog};
use std::sync::Arc;

pub(crate) fn run(args: &ToolsListArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let words = args.words.join(" ");
    let config = Config::load_with(&args.common.store, &args.common.tools)?;
    let (catalog, hits) = with_known_tools(config, Vec::new(), async |registry| {
        let catalog = listed(&registry, &ServerSelection::All).await;
        let hits = (!words.is_empty()).then(|| registry.search(&words, args.count));
        Ok((catalog, hits))
    })?;
    let names: Vec<ToolName> = match hits {
        Some(hits) => hits.into_iter().map(|hit| hit.name).collect(),
        None => catalog.tools.tools.keys().cloned().collect(),
    };
    let tools = names.iter().filter_map(|name| catalog.tools.tools.get(name));
    if args.common.store.json {
        let tools = tools.map(|tool| (tool.name.clone(), Arc::clone(tool))).collect();
        let unreachable = catalog.tools.unreachable.clone();
        // In order of names: what is found best is the first row of the table.
        terminal.answer(&format!("{}\n", ToolCatalog { tools, unreachable }.to_json()))?;
    } else {
        let rows: Vec<Vec<TableCell>> = tools.map(|tool| row(tool)).collect();
        if rows.is_empty() {
            terminal.remark("there are no tools; configure servers in rutter.toml or with --mcp-config\n");
        }
        terminal.answer(&columns(&rows).into_iter().map(|line| line + "\n").collect::<String>())?;
    }
    Ok(absent(&catalog, terminal))
}

/// Prints the servers whose tools could not be listed.
pub(super) fn absent(catalog: &CatalogSnapshot, terminal: &Terminal) -> CommandExit {
    for (server, failure) in &catalog.absent {
        terminal.remark(&format!("{}\n", printable(&format!("server {server} could not be asked: {failure}"))));
    }
    let known =
        catalog.tools.unreachable.iter().filter(|(name, _)| !catalog.absent.iter().any(|(absent, _)| absent == *name));
    for (server, why) in known {
        let text = format!("server {server} could not be asked, its tools are as last known: {why}");
        terminal.remark(&format!("{}\n", printable(&text)));
    }
    let is_whole = catalog.absent.is_empty() && catalog.tools.unreachable.is_empty();
    if is_whole { CommandExit::Done } else { CommandExit::Differs }
}

fn row(tool: &Tool) -> Vec<TableCell> {
    let paint = match tool.safety {
        Safety::ReadOnly => CellColor::Green,
        Safety::Idempotent => CellColor::Plain,
        Safety::Once => CellColor::Yellow,
    };
    let first = tool.description.lines().next().unwrap_or_default();
    let first = first_chars(&printable(first), 70).to_owned();
    vec![tool.name.as_str().into(), TableCell::new(tool.safety.as_str(), paint), TableCell::new(first, CellColor::Dim)]
}
