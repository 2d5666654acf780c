//! `rutter tools list`: every tool of every server, or those that fit some words.

use super::with_registry;
use crate::Exit;
use crate::args::tools::ToolsListArgs;
use crate::table::{Cell, Paint, columns};
use crate::terminal::{Terminal, printable};
use rutter_core::id::ToolName;
use rutter_core::port::tools::{Catalog, Servers, Tools};
use rutter_core::tool::{Safety, Tool};
use serde_json::json;

pub(crate) fn run(args: &ToolsListArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let words = args.words.join(" ");
    let (catalog, hits) = with_registry(&args.common, async |registry| {
        let catalog = registry.catalog(Servers::All).await;
        let hits = (!words.is_empty()).then(|| registry.search(&words, args.count));
        Ok((catalog, hits))
    })?;
    let names: Vec<ToolName> = match hits {
        Some(hits) => hits.into_iter().map(|hit| hit.name).collect(),
        None => catalog.tools.tools.keys().cloned().collect(),
    };
    let tools = names.iter().filter_map(|name| catalog.tools.tools.get(name));
    if args.common.store.json {
        for tool in tools {
            terminal.answer(&format!("{}\n", json!(tool)))?;
        }
    } else {
        let rows: Vec<Vec<Cell>> = tools.map(|tool| row(tool)).collect();
        if rows.is_empty() {
            terminal.remark("no tool is there; name servers in rutter.toml or with --mcp-config\n");
        }
        terminal.answer(&columns(&rows).into_iter().map(|line| line + "\n").collect::<String>())?;
    }
    Ok(absent(&catalog, terminal))
}

/// Says which servers could not be asked.
pub(super) fn absent(catalog: &Catalog, terminal: &Terminal) -> Exit {
    for (server, failure) in &catalog.absent {
        terminal
            .remark(&format!("{}\n", printable(&format!("server {server} could not be asked: {failure}"))));
    }
    if catalog.absent.is_empty() { Exit::Done } else { Exit::Differs }
}

fn row(tool: &Tool) -> Vec<Cell> {
    let paint = match tool.safety {
        Safety::ReadOnly => Paint::Green,
        Safety::Idempotent => Paint::Plain,
        Safety::Once => Paint::Yellow,
    };
    let first = tool.description.lines().next().unwrap_or_default();
    let first: String = printable(first).chars().take(70).collect();
    vec![tool.name.as_str().into(), Cell::new(tool.safety.as_str(), paint), Cell::new(first, Paint::Dim)]
}
