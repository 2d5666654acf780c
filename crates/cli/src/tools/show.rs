//! `rutter tools show`: one tool, as plans are checked against it.

use super::{list, with_registry};
use crate::args::tools::ToolsShowArgs;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::printable::printable;
use crate::table::wrapped;
use crate::terminal::Terminal;
use rutter_core::port::tools::{ServerSelection, ToolGateway};
use rutter_core::text::spelled;
use rutter_core::tool::Tool;
use rutter_core::wording::guess;
use serde_json::json;
use std::collections::BTreeSet;

pub(crate) fn run(args: &ToolsShowArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let server = args.tool.split_once('.').map_or(args.tool.as_str(), |(server, _)| server).to_owned();
    let catalog = with_registry(&args.common, async |registry| {
        let server = ServerSelection::Named(BTreeSet::from([server]));
        registry.refresh(&server).await;
        Ok(registry.catalog(server).await)
    })?;
    let Some(tool) = catalog.tools.tools.get(args.tool.as_str()) else {
        list::absent(&catalog, terminal);
        let server = args.tool.split_once('.').map_or(args.tool.as_str(), |(server, _)| server);
        if let Some(why) = catalog.tools.unreachable.get(server) {
            let message = format!("the server of {:?} cannot be reached: {why}", args.tool);
            return Err(CommandRefusal::new("tool.unreachable", message).into());
        }
        let refusal = CommandRefusal::new("execution.unknown_tool", format!("there is no tool {:?}", args.tool));
        let names = catalog.tools.tools.keys().map(|name| name.as_str());
        return Err(match guess(&args.tool, names) {
            Some(guess) => refusal.with_hint(format!("did you mean {:?}?", guess.word())).into(),
            None => refusal.with_hint("`rutter tools list` lists the tools").into(),
        });
    };
    if args.common.store.json {
        terminal.answer(&format!("{}\n", json!(tool)))?;
        return Ok(CommandExit::Done);
    }
    let key = match &tool.key_parameter {
        Some(key) => format!("\nkey parameter: {key}"),
        None if tool.sends_key => "\nkey: sent beside the parameters".to_owned(),
        None => String::new(),
    };
    let settings = settings(tool);
    let output = tool.output.as_ref().map(|output| format!("\nresult: {output:#}")).unwrap_or_default();
    terminal.answer(&format!(
        "{}\n{}\n\nsafety: {} ({}){key}{settings}\ndefinition: {}\nparameters: {:#}{output}\n",
        tool.name,
        wrapped(&printable(&tool.description), 0),
        tool.safety.as_str(),
        spelled(&tool.safety_source).replace('_', " "),
        tool.definition,
        tool.input,
    ))?;
    Ok(CommandExit::Done)
}

/// The operator's settings for its attempts and its key, one line each.
fn settings(tool: &Tool) -> String {
    let attempts = &tool.attempts;
    let spans = [("timeout", attempts.timeout), ("timeout_max", attempts.timeout_max), ("key_window", tool.key_window)];
    let spans = spans.into_iter().filter_map(|(name, span)| Some(format!("\n{name}: {}", span?)));
    let retry = attempts.retry.as_ref().map(|retry| format!("\nretry: {}", json!(retry)));
    spans.chain(retry).collect()
}
