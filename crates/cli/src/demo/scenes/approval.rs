//! Approval of one exact call: an agent cannot give it, and it is not valid for another call.

use super::{ORDER, SceneContext, order};
use crate::demo::ending::SceneEnding;
use crate::demo::pipe::McpPipeClient;
use crate::demo::watch::asked;
use anyhow::Context;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::hash::Hash;
use serde_json::{Value, json};

const CHARGE: &str = "payments.charge";

pub(super) fn play(theatre: &SceneContext<'_>) -> anyhow::Result<SceneEnding> {
    let place = theatre.directory;
    let before = place.call_log()?.len();
    let probe = "    probe: { tool: payments.find";
    let plan = ORDER.replace(probe, &format!("    approval: {{ required: true, expires: 4h }}\n{probe}"));
    let mut watch = theatre.watch(place.carry_out(&plan, order("4713", 1290))?);
    let execution = watch.until_rest()?;
    let (part, call) = asked(&execution).context("no call waits for approval")?;

    let mut ending = SceneEnding::new("two wrong approvals refused, the right one used once; completed");
    let id = watch.identity.execution.to_string();
    let mut agent = McpPipeClient::open(place.mcp(), &place.processes, "pilot")?;
    let wish = json!({ "execution_id": id, "action": "approve", "step_id": part.to_string(),
        "reason": "the agent wants to get on" });
    let answer = agent.call("control", &wish)?;
    agent.die()?;
    refused(theatre, "agent pilot approves its own call", &answer)?;
    ending.check("an agent is refused", answer["error"]["code"] == "server.not_allowed");

    let approve = |call: &Hash| {
        let call = call.to_string();
        let why = ["--reason", "the amount is right", "--no-wait"];
        place.run_command(&[&["exec", "approve", &id, "--step", "charge", "--call", &call][..], &why].concat())
    };
    let (code, answer) = approve(&Hash::of_fields("demo/another-call", &[]))?;
    refused(theatre, "operator approves a call of another amount", &answer)?;
    ending.check("an approval of another call is refused", answer["error"]["code"] == "execution.other_call");
    ending.check("the command says so", code == Some(2));
    ending.check("nothing was charged meanwhile", place.call_log()?.since(before).effects_of(CHARGE) == 0);

    theatre.output.text(&format!("\n  $ rutter exec approve {id} --step charge \\\n"))?;
    theatre.output.text(&format!("        --call {}... --reason 'the amount is right'\n\n", call.short()))?;
    let (code, _) = approve(&call)?;
    ending.check("the right one is accepted", code == Some(0));
    let execution = watch.until_end()?;
    ending.check("it completed", execution.status() == ExecutionStatus::Completed);
    let lines = place.call_log()?.since(before);
    ending.check("one charge", lines.effects_of(CHARGE) == 1);
    ending.count(&lines, &[]);
    Ok(ending)
}

fn refused(theatre: &SceneContext<'_>, what: &str, answer: &Value) -> anyhow::Result<()> {
    let text = |name: &str| answer["error"][name].as_str().unwrap_or_default().to_owned();
    Ok(theatre.output.refusal(&format!("{what}; refused: {} ({})", text("message"), text("code")))?)
}
