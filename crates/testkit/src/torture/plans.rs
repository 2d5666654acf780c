//! Random plans for tools with real effects: sequences, diamonds, fan-outs, and some that are always undone.
//!
//! Every call carries its origin (`tag`, `step`, `item`, `side`), so that the tools' log can be compared with the
//! journal without trusting either.

use crate::chance::SeededRandom;
use serde_json::{Map, Value, json};

/// A tool that a step may call, with its fields in the plan.
struct ToolProfile {
    tool: &'static str,
    /// Whether the key is a parameter: the tool honours it, or a probe searches for it.
    passes_key: bool,
    probe: Option<&'static str>,
    undo: Option<&'static str>,
}

const TOOL_PROFILES: &[ToolProfile] = &[
    ToolProfile { tool: "dock.once", passes_key: false, probe: None, undo: Some("dock.undo") },
    ToolProfile { tool: "dock.once", passes_key: true, probe: Some("dock.find"), undo: Some("bay.undo") },
    ToolProfile { tool: "dock.keyed", passes_key: true, probe: None, undo: Some("dock.undo") },
    ToolProfile { tool: "dock.read", passes_key: false, probe: None, undo: None },
    ToolProfile { tool: "bay.once", passes_key: false, probe: None, undo: Some("bay.undo_once") },
    ToolProfile { tool: "bay.once", passes_key: true, probe: Some("bay.find"), undo: Some("bay.undo_once") },
    ToolProfile { tool: "bay.keyed", passes_key: false, probe: None, undo: Some("bay.undo") },
    ToolProfile { tool: "bay.read", passes_key: false, probe: None, undo: None },
    ToolProfile { tool: "dock.once", passes_key: true, probe: Some("dock.find"), undo: None },
    ToolProfile { tool: "crane.once", passes_key: false, probe: None, undo: Some("dock.undo") },
    ToolProfile { tool: "crane.keyed", passes_key: true, probe: None, undo: Some("bay.undo") },
];

/// A plan of a random shape, in which every call has `tag`.
pub(super) fn draw(tag: &str, chance: &mut SeededRandom) -> Value {
    let shape = *chance.pick(&["sequence", "sequence", "diamond", "fan_out", "undone"]);
    let (steps, max_parallel) = match shape {
        "diamond" => (diamond(chance), 2 + chance.below(3)),
        "fan_out" => (fan_out(chance), 3),
        "undone" => (undone(chance), *chance.pick(&[1, 1, 3])),
        _ => (sequence(chance, 2, 5), 1),
    };
    let on_failure = match shape {
        "undone" => "compensate",
        _ => *chance.pick(&["manual_decision", "compensate", "cancel_all", "continue_others"]),
    };
    json!({
        "name": format!("{shape}-{tag}"),
        "goal": "Have effects that can be counted",
        "inputs": {
            "type": "object",
            "required": ["tag"],
            "properties": { "tag": { "type": "string" } },
        },
        "max_parallel": max_parallel,
        "on_failure": on_failure,
        "defaults": {
            "timeout": "20s",
            "retry": { "max_attempts": 3, "initial": "50ms", "max": "200ms", "on": ["unavailable", "rate_limited", "timeout"] },
        },
        "steps": steps,
    })
}

fn sequence(chance: &mut SeededRandom, least: u64, most: u64) -> Vec<Value> {
    let count = least + chance.below(most - least + 1);
    (0..count)
        .map(|place| {
            let needs: Vec<String> = (place > 0).then(|| name(place - 1)).into_iter().collect();
            let mut step = step(&name(place), &needs, chance);
            if chance.percent(12) {
                step["approval"] = json!({ "required": true, "expires": "24h" });
            }
            step
        })
        .collect()
}

fn diamond(chance: &mut SeededRandom) -> Vec<Value> {
    let middle = 2 + chance.below(2);
    let mut steps = vec![step("first", &[], chance)];
    let sides: Vec<String> = (0..middle).map(|place| format!("side{place}")).collect();
    steps.extend(sides.iter().map(|side| step(side, &["first".to_owned()], chance)));
    steps.push(step("last", &sides, chance));
    steps
}

fn fan_out(chance: &mut SeededRandom) -> Vec<Value> {
    let items: Vec<String> = (0..3 + chance.below(4)).map(|item| format!("'i{item}'")).collect();
    let mut each = step("each", &["before".to_owned()], chance);
    each["for_each"] = json!({ "items": format!("[{}]", items.join(", ")), "max_parallel": 2 });
    for call in ["parameters", "/compensation/parameters", "/probe/parameters"] {
        let found = if call.starts_with('/') { each.pointer_mut(call) } else { each.get_mut(call) };
        if let Some(parameters) = found {
            parameters["item"] = "{{ index }}".into();
        }
    }
    vec![step("before", &[], chance), each, step("after", &["each".to_owned()], chance)]
}

/// The last step never succeeds.
fn undone(chance: &mut SeededRandom) -> Vec<Value> {
    let mut steps = sequence(chance, 2, 4);
    let last = name(steps.len() as u64 - 1);
    steps.push(json!({
        "id": "broken",
        "tool": "dock.broken",
        "depends_on": [last],
        "parameters": parameters("broken", "do", false),
        "cancellable": "irreversible",
    }));
    steps
}

fn step(id: &str, needs: &[String], chance: &mut SeededRandom) -> Value {
    let action = chance.pick(TOOL_PROFILES);
    let mut step = json!({
        "id": id,
        "tool": action.tool,
        "depends_on": needs,
        "parameters": parameters(id, "do", action.passes_key),
    });
    if let Some(probe) = action.probe {
        let parameters = parameters(id, "probe", true);
        step["probe"] = json!({ "tool": probe, "parameters": parameters, "happened": "result.found" });
    }
    match action.undo {
        Some(undo) => {
            let parameters = parameters(id, "undo", undo == "dock.undo");
            step["cancellable"] = "reversible".into();
            step["compensation"] = json!({ "tool": undo, "parameters": parameters });
        }
        None if action.tool.ends_with("read") => {}
        None => step["cancellable"] = "irreversible".into(),
    }
    step
}

fn parameters(step: &str, side: &str, passes_key: bool) -> Value {
    let mut parameters = Map::new();
    parameters.insert("tag".to_owned(), "{{ inputs.tag }}".into());
    parameters.insert("step".to_owned(), step.into());
    parameters.insert("side".to_owned(), side.into());
    if passes_key {
        parameters.insert("key".to_owned(), "{{ key }}".into());
    }
    Value::Object(parameters)
}

fn name(place: u64) -> String {
    format!("s{place}")
}
