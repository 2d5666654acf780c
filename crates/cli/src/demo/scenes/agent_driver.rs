//! An agent as the driver: it does the work and records it, deviates, dies, and Rutter finishes.

use super::{ORDER, SceneContext, order};
use crate::demo::directory::identity;
use crate::demo::ending::SceneEnding;
use crate::demo::output::WIDTH;
use crate::demo::pipe::McpPipeClient;
use crate::demo::tools::WORD;
use crate::table::{CellColor, wrapped_to};
use anyhow::{Context, ensure};
use rutter_core::execution::view::ExecutionStatus;
use serde_json::{Value, json};
use std::process::Command;

pub(super) fn play(theatre: &SceneContext<'_>) -> anyhow::Result<SceneEnding> {
    let SceneContext { directory: place, output: teller, .. } = theatre;
    let before = place.call_log()?.len();
    let mut agent = McpPipeClient::open(place.mcp(), &place.processes, "pilot")?;
    let started = json!({ "plan": ORDER, "inputs": order("4714", 89), "driver": "agent" });
    let started = agent.call("execute_plan", &started)?;
    let id = started["execution_id"].as_str().with_context(|| started.to_string())?.to_owned();
    let mut watch = theatre.watch(identity(&id));

    // The agent has its own connections to the tools; Rutter calls none of them.
    let parameters = json!({ "order": "4714", "sku": "lamp" });
    let mut inventory = McpPipeClient::open(theatre.tool_of("inventory"), &place.processes, "pilot")?;
    let result = inventory.call("reserve", &parameters)?;
    let record = json!({ "execution_id": id, "step_id": "reserve", "status": "completed",
        "tool": "inventory.reserve", "parameters": parameters, "result": result });
    tool_result(agent.call("record_step", &record)?)?;
    let mut message = McpPipeClient::open(theatre.tool_of("mail"), &place.processes, "pilot")?;
    let parameters = json!({ "order": "4714", "text": "Soon." });
    let result = message.call("confirm", &parameters)?;
    let record = json!({ "execution_id": id, "step_id": "confirm", "status": "completed",
        "tool": "mail.confirm", "parameters": parameters, "result": result });
    tool_result(agent.call("record_step", &record)?)?;
    watch.until(|execution| execution.result_of("confirm").is_some())?;
    for pipe in [agent, inventory, message] {
        pipe.die()?;
    }

    teller.sentence("\nThe agent is gone. This is all another agent has to read to take over:\n")?;
    let mut other = McpPipeClient::open(place.mcp(), &place.processes, "backup")?;
    let json = tool_result(other.call("status", &json!({ "execution_id": id, "brief": true }))?)?;
    for line in json["brief"].as_str().unwrap_or_default().lines().map(with_short_hashes) {
        let line = wrapped_to(&format!("  | {line}"), 6, WIDTH).replace("\n    ", "\n  | ");
        teller.text(&format!("{}\n", CellColor::Dim.on(&line)))?;
    }
    teller.text("\n")?;
    let hand_back = json!({ "execution_id": id, "action": "hand_back", "reason": "the agent is gone" });
    tool_result(other.call("control", &hand_back)?)?;
    let execution = watch.until_rest()?;
    other.die()?;

    let mut ending = SceneEnding::new("the execution ended completed: 2 steps by the agent, 2 by Rutter");
    ending.check("it completed", execution.status() == ExecutionStatus::Completed);
    let noticed = execution.deviations().len();
    ending.check("the deviation from the plan was noticed", noticed > 0);
    let lines = place.call_log()?.since(before);
    ending.check("four steps, four effects", lines.effects().count() == 4);
    ending.count(&lines, &[]);
    Ok(ending)
}

/// None of these calls is refused.
fn tool_result(answer: Value) -> anyhow::Result<Value> {
    ensure!(answer.get("error").is_none(), "refused: {}", answer["error"]);
    Ok(answer)
}

/// Shortens keys, which are as long as hashes.
fn with_short_hashes(line: &str) -> String {
    let is_hash = |word: &str| word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let shortened =
        line.split('"').map(|word| if is_hash(word) { format!("{}...", &word[..12]) } else { word.to_owned() });
    shortened.collect::<Vec<_>>().join("\"")
}

impl SceneContext<'_> {
    /// A tool server, to call its tools without Rutter.
    fn tool_of(&self, server: &str) -> Command {
        let mut command = self.directory.command();
        command.args([WORD, server]).arg(self.directory.tools());
        command
    }
}
