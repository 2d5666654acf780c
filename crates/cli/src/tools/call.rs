//! `rutter tools call`: one call, by hand. Nothing is recorded.

use super::with_registry;
use crate::Exit;
use crate::args::tools::ToolsCallArgs;
use crate::failure::Refusal;
use crate::terminal::{Terminal, printable};
use rutter_core::id::ToolName;
use rutter_core::port::tools::{Return, Servers, Tools};
use rutter_core::tool::Outcome;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// Servers that come with Rutter.
const BUILT_IN: &[&str] = &["timer", "memory", "notify", "journal"];

pub(crate) fn run(args: &ToolsCallArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let parameters: Value = serde_json::from_str(&args.parameters).map_err(|error| {
        Refusal::new("command.inputs", format!("the parameters must be a JSON object: {error}"))
    })?;
    if BUILT_IN.iter().any(|server| args.tool.split_once('.').is_some_and(|(name, _)| name == *server)) {
        let message = format!("{} keeps its data with the executions: call it from a plan", args.tool);
        return Err(Refusal::new("command.invalid", message).into());
    }
    let tool = ToolName::new(&args.tool);
    let server = args.tool.split_once('.').map_or(args.tool.as_str(), |(server, _)| server).to_owned();
    let returned = with_registry(&args.common, async |registry| {
        let catalog = registry.catalog(Servers::Named(BTreeSet::from([server]))).await;
        super::list::absent(&catalog, terminal);
        let calling = registry.call_once(&tool, parameters);
        Ok(tokio::time::timeout(Duration::from_secs(args.timeout), calling).await)
    })?;
    let (word, value, exit) = match returned {
        Ok(Return::Outcome(Outcome::Done { result, .. })) => ("done", (*result).clone(), Exit::Done),
        Ok(Return::Outcome(Outcome::NotDone(failure))) => ("not_done", json!(failure), Exit::Differs),
        Ok(Return::Outcome(Outcome::Maybe(failure))) => ("maybe", json!(failure), Exit::Differs),
        Ok(Return::Drifted { .. }) => ("not_done", json!("the tool changed in this moment"), Exit::Differs),
        Err(_) => ("maybe", json!(format!("no answer within {} s", args.timeout)), Exit::Differs),
    };
    match args.common.store.json {
        true => terminal.answer(&format!("{}\n", json!({ "outcome": word, "value": value })))?,
        false if word == "done" => terminal.answer(&format!("{value:#}\n"))?,
        false => terminal.remark(&format!("{}: {}\n", word.replace('_', " "), printable(&value.to_string()))),
    }
    Ok(exit)
}
