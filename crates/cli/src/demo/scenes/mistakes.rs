//! A plan with mistakes: all of them are told at once, and what the right one guarantees is known before the start.

use super::{ORDER, Theatre};
use crate::demo::ending::Ending;
use crate::demo::pipe::Pipe;
use crate::demo::teller::{Progress, Sign};
use crate::table::{Cell, Paint, columns};
use serde_json::{Value, json};

pub(super) fn play(theatre: &Theatre<'_>) -> anyhow::Result<Ending> {
    let Theatre { teller, place, .. } = theatre;
    let mut agent = Pipe::open(place.mcp(), &place.crew, "pilot")?;
    let broken = ORDER
        .replace("tool: inventory.reserve\n", "tool: inventory.reserv\n")
        .replace("depends_on: [charge]", "depends_on: [chrage]")
        .replace("steps.ship.result.tracking", "steps.ship.result.traking");
    let answer = agent.call("save_plan", &json!({ "plan": broken }))?;
    let mut found = answer["error"]["details"]["diagnostics"].as_array().cloned().unwrap_or_default();
    found.retain(|found| found["severity"] == "error");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    teller.set_names(found.iter().map(|found| text(&found["pointer"]).len()).max().unwrap_or(0));
    for found in &found {
        let words = format!("{}; {}", text(&found["message"]), text(&found["hint"]));
        teller.progress(&Progress { sign: Sign::Failed, who: text(&found["pointer"]), words })?;
    }
    teller.say("\nNothing was saved. The same plan without them is; what it guarantees is known now:\n")?;

    let saved = agent.call("save_plan", &json!({ "plan": ORDER }))?;
    let heading = ["", "STEP", "EFFECT", "UNDO"].map(|name| Cell::new(name, Paint::Dim));
    let mut rows = vec![heading.to_vec()];
    let guarantees = saved["undo"]["guarantees"].as_array().cloned().unwrap_or_default();
    for step in &guarantees {
        rows.push(vec![
            Cell::from(" "),
            Cell::new(text(&step["step"]), Paint::Bold),
            words(&step["guarantee"]).into(),
            words(&step["undo"]).into(),
        ]);
    }
    teller.text(&columns(&rows).iter().map(|line| format!("{line}\n")).collect::<String>())?;
    let no_return = &saved["undo"]["point_of_no_return"]["step"];
    teller.say(&format!("\nPoint of no return: {}", no_return.as_str().unwrap_or("none")))?;

    let mut ending = Ending::new("3 mistakes told, nothing started; the plan without them is saved");
    ending.check("three errors were found", found.len() == 3);
    ending.check("each has a fix", found.iter().all(|found| found["fix"].is_array()));
    ending.check("the right plan was saved", saved["plan_id"].is_string());
    ending.check("the point of no return is the charge", no_return == "charge");
    ending.count(&place.book()?, &[]);
    ending.check("no tool was called", ending.calls == 0);
    agent.die()?;
    Ok(ending)
}

/// A word as programs spell it, with spaces.
fn words(value: &Value) -> String {
    value.as_str().unwrap_or_default().replace('_', " ")
}
