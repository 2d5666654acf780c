//! `rutter tools show`: one tool, as plans are checked against it.

use super::{list, with_registry};
use crate::Exit;
use crate::args::tools::ToolsShowArgs;
use crate::failure::Refusal;
use crate::journal::word;
use crate::table::wrapped;
use crate::terminal::{Terminal, printable};
use rutter_core::plan::wording::guess;
use rutter_core::port::tools::{Servers, Tools};
use serde_json::json;
use std::collections::BTreeSet;

pub(crate) fn run(args: &ToolsShowArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let server = args.tool.split_once('.').map_or(args.tool.as_str(), |(server, _)| server).to_owned();
    let catalog = with_registry(&args.common, async |registry| {
        Ok(registry.catalog(Servers::Named(BTreeSet::from([server]))).await)
    })?;
    let Some(tool) = catalog.tools.tools.get(args.tool.as_str()) else {
        list::absent(&catalog, terminal);
        let refusal = Refusal::new("execution.unknown_tool", format!("there is no tool {:?}", args.tool));
        let names = catalog.tools.tools.keys().map(|name| name.as_str());
        return Err(match guess(&args.tool, names) {
            Some(guess) => refusal.with_hint(format!("did you mean {:?}?", guess.word())).into(),
            None => refusal.with_hint("`rutter tools list` names those there are").into(),
        });
    };
    if args.common.store.json {
        terminal.answer(&format!("{}\n", json!(tool)))?;
        return Ok(Exit::Done);
    }
    let key = tool.key_parameter.as_deref().map(|key| format!("\nkey in: {key}")).unwrap_or_default();
    let output = tool.output.as_ref().map(|output| format!("\ngives: {output:#}")).unwrap_or_default();
    terminal.answer(&format!(
        "{}\n{}\n\nsafety: {} ({}){key}\ndefinition: {}\ntakes: {:#}{output}\n",
        tool.name,
        wrapped(&printable(&tool.description), 0),
        tool.safety.as_str(),
        word(&tool.safety_source),
        tool.definition,
        tool.input,
    ))?;
    Ok(Exit::Done)
}
