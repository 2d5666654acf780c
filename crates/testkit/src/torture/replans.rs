//! New plans for executions under way: a step is dropped, added, changed or replaced.

use super::plans::{self, ToolProfile};
use crate::chance::SeededRandom;
use serde_json::{Value, json};

/// Another plan for the execution of this one. `begun` are the steps that are known to have begun, `failed` those of
/// them that failed; what is not known does not matter: then the program refuses.
pub(super) fn change(
    document: &Value,
    (begun, failed): (&[String], &[String]),
    tools: &[ToolProfile],
    chance: &mut SeededRandom,
) -> Value {
    let mut plan = document.clone();
    // A number that no earlier plan of this execution has.
    let number = plan["metadata"]["changes"].as_u64().unwrap_or_default() + 1;
    plan["metadata"] = json!({ "changes": number });
    let Some(steps) = plan["steps"].as_array_mut() else { return plan };
    let is_open = |step: &Value| !begun.iter().any(|id| step["id"] == **id);
    let open: Vec<usize> = (0..steps.len()).filter(|at| is_open(&steps[*at])).collect();
    let replaceable = steps.iter().position(|step| failed.iter().any(|id| step["id"] == **id));
    match (chance.below(4), replaceable, open.is_empty()) {
        (0 | 1, Some(at), _) => replace(steps, at, number, tools, chance),
        (2, _, false) if steps.len() > 1 => drop_step(steps, *chance.pick(&open)),
        (3, _, false) => {
            let at = *chance.pick(&open);
            steps[at]["parameters"]["note"] = json!(format!("changed {number}"));
        }
        _ => add(steps, number, is_open, tools, chance),
    }
    plan
}

/// What comes after the step comes after what it came after.
fn drop_step(steps: &mut Vec<Value>, at: usize) {
    let gone = steps.remove(at);
    for step in steps {
        let mut needs = needs(step);
        if needs.contains(&gone["id"]) {
            needs.retain(|need| *need != gone["id"]);
            let inherited = gone["depends_on"].as_array().into_iter().flatten();
            needs.extend(inherited.filter(|need| **need != step["id"]).cloned());
            needs.dedup();
            step["depends_on"] = Value::Array(needs);
        }
    }
}

/// A step at the end, or before one that has not begun.
fn add(
    steps: &mut Vec<Value>,
    number: u64,
    is_open: impl Fn(&Value) -> bool,
    tools: &[ToolProfile],
    chance: &mut SeededRandom,
) {
    let id = format!("x{number}");
    let last = steps.len() - 1;
    if chance.percent(40) && is_open(&steps[last]) {
        let inherited =
            needs(&steps[last]).iter().filter_map(|need| need.as_str().map(str::to_owned)).collect::<Vec<_>>();
        let mut needs = needs(&steps[last]);
        needs.push(json!(id));
        steps[last]["depends_on"] = Value::Array(needs);
        let step = plans::step(&id, &inherited, tools, chance);
        steps.insert(last, step);
    } else {
        let after = chance.pick(steps)["id"].as_str().unwrap_or_default().to_owned();
        steps.push(plans::step(&id, &[after], tools, chance));
    }
}

/// Another step takes the place of one that failed.
fn replace(steps: &mut [Value], at: usize, number: u64, tools: &[ToolProfile], chance: &mut SeededRandom) {
    let id = format!("x{number}");
    let inherited = needs(&steps[at]).iter().filter_map(|need| need.as_str().map(str::to_owned)).collect::<Vec<_>>();
    let gone = std::mem::replace(&mut steps[at], plans::step(&id, &inherited, tools, chance));
    for step in steps {
        let mut needs = needs(step);
        for need in needs.iter_mut().filter(|need| **need == gone["id"]) {
            *need = json!(id);
        }
        step["depends_on"] = Value::Array(needs);
    }
}

fn needs(step: &Value) -> Vec<Value> {
    step["depends_on"].as_array().cloned().unwrap_or_default()
}
