//! Random plans for tools with real effects: sequences, diamonds, fan-outs, and some that are bound to be undone.
//!
//! Every call carries who it is for (`tag`, `step`, `item`, `side`), so that what a tool saw can be compared with what
//! the journal says without believing either.

use crate::chance::Chance;
use serde_json::{Map, Value, json};

/// A tool that a step may call, with what the plan has to know of it.
struct Deed {
    tool: &'static str,
    /// The key goes into the parameters: the tool honours it, or a probe looks for it.
    passes_key: bool,
    probe: Option<&'static str>,
    undo: Option<&'static str>,
}

const DEEDS: &[Deed] = &[
    Deed { tool: "dock.once", passes_key: false, probe: None, undo: Some("dock.undo") },
    Deed { tool: "dock.once", passes_key: true, probe: Some("dock.find"), undo: Some("bay.undo") },
    Deed { tool: "dock.keyed", passes_key: true, probe: None, undo: Some("dock.undo") },
    Deed { tool: "dock.read", passes_key: false, probe: None, undo: None },
    Deed { tool: "bay.once", passes_key: false, probe: None, undo: Some("bay.undo_once") },
    Deed { tool: "bay.once", passes_key: true, probe: Some("bay.find"), undo: Some("bay.undo_once") },
    Deed { tool: "bay.keyed", passes_key: false, probe: None, undo: Some("bay.undo") },
    Deed { tool: "bay.read", passes_key: false, probe: None, undo: None },
    Deed { tool: "dock.once", passes_key: true, probe: Some("dock.find"), undo: None },
    Deed { tool: "crane.once", passes_key: false, probe: None, undo: Some("dock.undo") },
    Deed { tool: "crane.keyed", passes_key: true, probe: None, undo: Some("bay.undo") },
];

/// A plan of a shape that chance decides, in which every call names `tag`.
pub(super) fn draw(tag: &str, chance: &mut Chance) -> Value {
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

fn sequence(chance: &mut Chance, least: u64, most: u64) -> Vec<Value> {
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

fn diamond(chance: &mut Chance) -> Vec<Value> {
    let middle = 2 + chance.below(2);
    let mut steps = vec![step("first", &[], chance)];
    let sides: Vec<String> = (0..middle).map(|place| format!("side{place}")).collect();
    steps.extend(sides.iter().map(|side| step(side, &["first".to_owned()], chance)));
    steps.push(step("last", &sides, chance));
    steps
}

fn fan_out(chance: &mut Chance) -> Vec<Value> {
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
fn undone(chance: &mut Chance) -> Vec<Value> {
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

fn step(id: &str, needs: &[String], chance: &mut Chance) -> Value {
    let deed = chance.pick(DEEDS);
    let mut step = json!({
        "id": id,
        "tool": deed.tool,
        "depends_on": needs,
        "parameters": parameters(id, "do", deed.passes_key),
    });
    if let Some(probe) = deed.probe {
        let parameters = parameters(id, "probe", true);
        step["probe"] = json!({ "tool": probe, "parameters": parameters, "happened": "result.found" });
    }
    match deed.undo {
        Some(undo) => {
            let parameters = parameters(id, "undo", undo == "dock.undo");
            step["cancellable"] = "reversible".into();
            step["compensation"] = json!({ "tool": undo, "parameters": parameters });
        }
        None if deed.tool.ends_with("read") => {}
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
