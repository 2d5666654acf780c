//! A plan with mistakes: all are reported at once, and the guarantees of the corrected plan before the start.

use super::{ORDER, SceneContext};
use crate::demo::ending::SceneEnding;
use crate::demo::pipe::McpPipeClient;
use crate::table::{CellColor, TableCell, columns};
use serde_json::{Value, json};

pub(super) fn play(theatre: &SceneContext<'_>) -> anyhow::Result<SceneEnding> {
    let SceneContext { output: teller, directory: place, .. } = theatre;
    let mut agent = McpPipeClient::open(place.mcp(), &place.processes, "pilot")?;
    let broken = ORDER
        .replace("tool: inventory.reserve\n", "tool: inventory.reserv\n")
        .replace("depends_on: [charge]", "depends_on: [chrage]")
        .replace("steps.ship.result.tracking", "steps.ship.result.traking");
    let answer = agent.call("save_plan", &json!({ "plan": broken }))?;
    let mut found = answer["error"]["details"]["diagnostics"].as_array().cloned().unwrap_or_default();
    found.retain(|found| found["severity"] == "error");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for found in &found {
        let [pointer, message, hint] = ["pointer", "message", "hint"].map(|name| text(&found[name]));
        teller.refusal(&format!("{pointer}: {message}; {hint}"))?;
    }
    teller.sentence("\nNothing was saved. Without the mistakes the plan is saved, with these guarantees:\n")?;

    let saved = agent.call("save_plan", &json!({ "plan": ORDER }))?;
    let heading = ["", "STEP", "EFFECT", "UNDO"].map(|name| TableCell::new(name, CellColor::Dim));
    let mut rows = vec![heading.to_vec()];
    let guarantees = saved["undo"]["guarantees"].as_array().cloned().unwrap_or_default();
    for step in &guarantees {
        rows.push(vec![
            TableCell::from(" "),
            TableCell::new(text(&step["step"]), CellColor::Bold),
            words(&step["guarantee"]).into(),
            words(&step["undo"]).into(),
        ]);
    }
    teller.text(&columns(&rows).iter().map(|line| format!("{line}\n")).collect::<String>())?;
    let no_return = &saved["undo"]["point_of_no_return"]["step"];
    teller.sentence(&format!("\nPoint of no return: {}", no_return.as_str().unwrap_or("none")))?;

    let mut ending = SceneEnding::new("3 mistakes reported, nothing started; the corrected plan is saved");
    ending.check("three errors were found", found.len() == 3);
    ending.check("each has a fix", found.iter().all(|found| found["fix"].is_array()));
    ending.check("the corrected plan was saved", saved["plan_id"].is_string());
    ending.check("the point of no return is the charge", no_return == "charge");
    ending.count(&place.call_log()?, &[]);
    ending.check("no tool was called", ending.calls == 0);
    agent.die()?;
    Ok(ending)
}

/// A word from JSON, with spaces.
fn words(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace('_', " ")
}
