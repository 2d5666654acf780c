//! An agent at the wheel: it does the work and records it, strays, dies, and Rutter finishes.

use super::{ORDER, Theatre, order};
use crate::demo::ending::Ending;
use crate::demo::pipe::Pipe;
use crate::demo::place::identity;
use crate::demo::teller::WIDTH;
use crate::demo::tools::WORD;
use crate::table::{Paint, wrapped_to};
use anyhow::{Context, ensure};
use rutter_core::execution::view::Status;
use serde_json::{Value, json};
use std::process::Command;

pub(super) fn play(theatre: &Theatre<'_>) -> anyhow::Result<Ending> {
    let Theatre { place, teller, .. } = theatre;
    let before = place.book()?.len();
    let mut agent = Pipe::open(place.mcp(), &place.crew, "pilot")?;
    let started = json!({ "plan": ORDER, "inputs": order("4714", 89), "driver": "agent" });
    let started = agent.call("execute_plan", &started)?;
    let id = started["execution_id"].as_str().with_context(|| started.to_string())?.to_owned();
    let mut watch = theatre.watch(identity(&id));

    // The agent has connections of its own to the tools; Rutter calls none of them.
    let parameters = json!({ "order": "4714", "sku": "lamp" });
    let mut inventory = Pipe::open(theatre.tool_of("inventory"), &place.crew, "pilot")?;
    let result = inventory.call("reserve", &parameters)?;
    let record = json!({ "execution_id": id, "step_id": "reserve", "status": "completed",
        "tool": "inventory.reserve", "parameters": parameters, "result": result });
    said(agent.call("record_step", &record)?)?;
    let mut mail = Pipe::open(theatre.tool_of("mail"), &place.crew, "pilot")?;
    let parameters = json!({ "order": "4714", "text": "Soon." });
    let result = mail.call("confirm", &parameters)?;
    let record = json!({ "execution_id": id, "step_id": "confirm", "status": "completed",
        "tool": "mail.confirm", "parameters": parameters, "result": result });
    said(agent.call("record_step", &record)?)?;
    watch.until(|execution| execution.result_of("confirm").is_some())?;
    for pipe in [agent, inventory, mail] {
        pipe.die()?;
    }

    teller.say("\nThe agent is gone. All that another one has to read to take over:\n")?;
    let mut other = Pipe::open(place.mcp(), &place.crew, "second mate")?;
    let told = said(other.call("status", &json!({ "execution_id": id, "brief": true }))?)?;
    for line in told["brief"].as_str().unwrap_or_default().lines().map(with_short_hashes) {
        let line = wrapped_to(&format!("  | {line}"), 6, WIDTH).replace("\n    ", "\n  | ");
        teller.text(&format!("{}\n", Paint::Dim.on(&line)))?;
    }
    teller.text("\n")?;
    let hand_back = json!({ "execution_id": id, "action": "hand_back", "reason": "the agent is gone" });
    said(other.call("control", &hand_back)?)?;
    let execution = watch.until_rest()?;
    other.die()?;

    let mut ending = Ending::new("the execution ended completed: 2 steps by the agent, 2 by Rutter");
    ending.check("it completed", execution.status() == Status::Completed);
    let noticed = execution.deviations().len();
    ending.check("what differs from the plan was noticed", noticed > 0);
    let lines = place.book()?.since(before);
    ending.check("four steps, four effects", lines.effects().count() == 4);
    ending.count(&lines, &[]);
    Ok(ending)
}

/// None of these is refused.
fn said(answer: Value) -> anyhow::Result<Value> {
    ensure!(answer.get("error").is_none(), "refused: {}", answer["error"]);
    Ok(answer)
}

/// Keys are as long as hashes, and nobody reads them to their end.
fn with_short_hashes(line: &str) -> String {
    let is_hash = |word: &str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let shortened = line
        .split('"')
        .map(|word| if is_hash(word) { format!("{}...", &word[..12]) } else { word.to_owned() });
    shortened.collect::<Vec<_>>().join("\"")
}

impl Theatre<'_> {
    /// One of the servers with tools, for whoever wants to call them without Rutter.
    fn tool_of(&self, server: &str) -> Command {
        let mut command = self.place.command();
        command.args([WORD, server]).arg(self.place.tools());
        command
    }
}
