//! Random plans for tools with real effects: sequences, diamonds, fan-outs, and some that are always undone; also plans
//! that an agent carries out.
//!
//! Every call carries its origin (`tag`, `step`, `item`, `side`), so that the tools' log can be compared with the
//! journal without trusting either.

use crate::chance::SeededRandom;
use serde_json::{Map, Value, json};

/// A tool that a step may call, with its fields in the plan.
pub(super) struct ToolProfile {
    tool: &'static str,
    /// Whether the key is a parameter: the tool honours it, or a probe searches for it.
    passes_key: bool,
    probe: Option<&'static str>,
    undo: Option<&'static str>,
}

pub(super) const TOOL_PROFILES: &[ToolProfile] = &[
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

/// What an agent can call too. The key is a parameter, so that the calls of both have the same.
pub(super) const AGENT_TOOL_PROFILES: &[ToolProfile] = &[
    ToolProfile { tool: "bay.once", passes_key: false, probe: None, undo: Some("bay.undo_once") },
    ToolProfile { tool: "bay.once", passes_key: true, probe: Some("bay.find"), undo: Some("bay.undo") },
    ToolProfile { tool: "bay.once", passes_key: true, probe: Some("bay.find"), undo: None },
    ToolProfile { tool: "bay.keyed", passes_key: true, probe: None, undo: Some("bay.undo") },
    ToolProfile { tool: "bay.read", passes_key: false, probe: None, undo: None },
];

/// A plan of a random shape, in which every call has `tag`.
pub(super) fn draw(tag: &str, chance: &mut SeededRandom) -> Value {
    let shape = *chance.pick(&["sequence", "sequence", "diamond", "fan_out", "undone"]);
    let mut plan = draw_shape(tag, shape, TOOL_PROFILES, chance);
    silence(&mut plan, 25, chance);
    plan
}

/// A plan that an agent carries out, sometimes with a step that it cannot call.
pub(super) fn draw_for_agent(tag: &str, chance: &mut SeededRandom) -> Value {
    let shape = *chance.pick(&["sequence", "sequence", "diamond", "fan_out"]);
    let mut plan = draw_shape(tag, shape, AGENT_TOOL_PROFILES, chance);
    if chance.percent(30)
        && let Some(steps) = plan["steps"].as_array_mut().filter(|_| shape != "fan_out")
    {
        let at = chance.index(steps.len());
        let needs: Vec<String> = serde_json::from_value(steps[at]["depends_on"].clone()).unwrap_or_default();
        let id = steps[at]["id"].as_str().unwrap_or_default().to_owned();
        steps[at] = step(&id, &needs, TOOL_PROFILES, chance);
    }
    silence(&mut plan, 50, chance);
    plan
}

/// How long an agent may be silent, and what follows.
fn silence(plan: &mut Value, hand_over: u64, chance: &mut SeededRandom) {
    let (timeout, then) = match chance.below(100) {
        percent if percent < hand_over => ("1s", "hand_over"),
        percent if percent < hand_over + 15 => ("2s", "ask"),
        _ => ("10m", "ask"),
    };
    (plan["agent_timeout"], plan["on_agent_silence"]) = (timeout.into(), then.into());
}

fn draw_shape(tag: &str, shape: &str, tools: &[ToolProfile], chance: &mut SeededRandom) -> Value {
    let (steps, max_parallel) = match shape {
        "diamond" => (diamond(tools, chance), 2 + chance.below(3)),
        "fan_out" => (fan_out(tools, chance), 3),
        "undone" => (undone(tools, chance), *chance.pick(&[1, 1, 3])),
        _ => (sequence(tools, chance, 2, 5), 1),
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
            // Sometimes shorter than a late answer takes.
            "timeout": if chance.percent(60) { "700ms" } else { "20s" },
            "retry": { "max_attempts": 3, "initial": "50ms", "max": "200ms", "on": ["unavailable", "rate_limited", "timeout"] },
        },
        "steps": steps,
    })
}

fn sequence(tools: &[ToolProfile], chance: &mut SeededRandom, least: u64, most: u64) -> Vec<Value> {
    let count = least + chance.below(most - least + 1);
    (0..count)
        .map(|place| {
            let needs: Vec<String> = (place > 0).then(|| name(place - 1)).into_iter().collect();
            let mut step = step(&name(place), &needs, tools, chance);
            if chance.percent(12) {
                step["approval"] = json!({ "required": true, "expires": "24h" });
            }
            step
        })
        .collect()
}

fn diamond(tools: &[ToolProfile], chance: &mut SeededRandom) -> Vec<Value> {
    let middle = 2 + chance.below(2);
    let mut steps = vec![step("first", &[], tools, chance)];
    let sides: Vec<String> = (0..middle).map(|place| format!("side{place}")).collect();
    steps.extend(sides.iter().map(|side| step(side, &["first".to_owned()], tools, chance)));
    steps.push(step("last", &sides, tools, chance));
    steps
}

fn fan_out(tools: &[ToolProfile], chance: &mut SeededRandom) -> Vec<Value> {
    let items: Vec<String> = (0..3 + chance.below(4)).map(|item| format!("'i{item}'")).collect();
    let mut each = step("each", &["before".to_owned()], tools, chance);
    each["for_each"] = json!({ "items": format!("[{}]", items.join(", ")), "max_parallel": 2 });
    for call in ["parameters", "/compensation/parameters", "/probe/parameters"] {
        let found = if call.starts_with('/') { each.pointer_mut(call) } else { each.get_mut(call) };
        if let Some(parameters) = found {
            parameters["item"] = "{{ index }}".into();
        }
    }
    vec![step("before", &[], tools, chance), each, step("after", &["each".to_owned()], tools, chance)]
}

/// The last step never succeeds.
fn undone(tools: &[ToolProfile], chance: &mut SeededRandom) -> Vec<Value> {
    let mut steps = sequence(tools, chance, 2, 4);
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

pub(super) fn step(id: &str, needs: &[String], tools: &[ToolProfile], chance: &mut SeededRandom) -> Value {
    let action = chance.pick(tools);
    let mut step = json!({
        "id": id,
        "tool": action.tool,
        "depends_on": needs,
        "parameters": parameters(id, "do", action.passes_key),
    });
    if let Some(probe) = action.probe {
        let parameters = parameters(id, "probe", true);
        step["probe"] = json!({ "tool": probe, "parameters": parameters, "happened": "result.found", "settle": "3s" });
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
