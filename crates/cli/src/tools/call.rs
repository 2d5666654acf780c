//! `rutter tools call`: one call, by hand. Nothing is journaled.

use super::with_registry;
use crate::args::tools::ToolsCallArgs;
use crate::exit::CommandExit;
use crate::failure::CommandRefusal;
use crate::printable::printable;
use crate::terminal::Terminal;
use rutter_core::id::ToolName;
use rutter_core::port::tools::{CallReturn, ServerSelection, ToolGateway};
use rutter_core::tool::CallOutcome;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Servers that are built in.
const BUILT_IN: &[&str] = &["timer", "memory", "notify", "journal"];

pub(crate) fn run(args: &ToolsCallArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let parameters: Value = serde_json::from_str(&args.parameters).map_err(|error| {
        CommandRefusal::new("command.inputs", format!("the parameters must be a JSON object: {error}"))
    })?;
    if BUILT_IN.iter().any(|server| args.tool.split_once('.').is_some_and(|(name, _)| name == *server)) {
        let message = format!("{} stores its data with the executions: call it from a plan", args.tool);
        return Err(CommandRefusal::new("command.invalid", message).into());
    }
    let tool = ToolName::new(&args.tool);
    let server = args.tool.split_once('.').map_or(args.tool.as_str(), |(server, _)| server).to_owned();
    let returned = with_registry(&args.common, async |registry| {
        let catalog = registry.catalog(ServerSelection::Named(BTreeSet::from([server]))).await;
        super::list::absent(&catalog, terminal);
        let calling = registry.call_once(&tool, parameters);
        Ok(tokio::time::timeout(Duration::from_secs(args.timeout), calling).await)
    })?;
    let (word, value, exit) = match returned {
        Ok(CallReturn::Outcome(CallOutcome::Done { result, .. })) => ("done", (*result).clone(), CommandExit::Done),
        Ok(CallReturn::Outcome(CallOutcome::NotDone(failure))) => ("not_done", json!(failure), CommandExit::Differs),
        Ok(CallReturn::Outcome(CallOutcome::Maybe(failure))) => ("maybe", json!(failure), CommandExit::Differs),
        Ok(CallReturn::Drifted { .. }) => ("not_done", json!("the tool has just changed"), CommandExit::Differs),
        Err(_) => ("maybe", json!(format!("no response within {} s", args.timeout)), CommandExit::Differs),
    };
    match args.common.store.json {
        true => terminal.answer(&format!("{}\n", json!({ "outcome": word, "value": value })))?,
        false if word == "done" => terminal.answer(&format!("{value:#}\n"))?,
        false => terminal.remark(&format!("{}: {}\n", word.replace('_', " "), printable(&value.to_string()))),
    }
    Ok(exit)
}
