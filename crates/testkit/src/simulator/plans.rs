//! Random plans over a few tools, written as an author would write them and checked by the real compiler.

use crate::chance::SeededRandom;
use rutter_core::hash::Hash;
use rutter_core::id::ToolName;
use rutter_core::plan::check::read_and_check;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Driver, Plan};
use rutter_core::tool::{Safety, SafetySource, Tool, ToolCatalog};
use serde_json::{Value, json};
use std::sync::Arc;

/// The tools of the simulated world. `keyed` honours an idempotency key, `once` does not.
pub fn catalog() -> ToolCatalog {
    let tool = |name: &str, safety: Safety, key_parameter: Option<&str>| {
        let name = ToolName::new(name);
        let definition = Hash::of(&[name.as_str().as_bytes()]);
        let tool = Tool {
            description: String::new(),
            input: Arc::new(json!({"type": "object"})),
            output: None,
            safety,
            safety_source: SafetySource::Configured,
            key_parameter: key_parameter.map(str::to_owned),
            definition,
            name: name.clone(),
        };
        (name, Arc::new(tool))
    };
    let tools = [
        tool("sim.read", Safety::ReadOnly, None),
        tool("sim.idempotent", Safety::Idempotent, None),
        tool("sim.once", Safety::Once, None),
        tool("sim.keyed", Safety::Once, Some("key")),
        tool("sim.find", Safety::ReadOnly, None),
        tool("sim.undo_idempotent", Safety::Idempotent, None),
        tool("sim.undo_once", Safety::Once, None),
        tool("sim.undo_keyed", Safety::Once, Some("key")),
    ];
    ToolCatalog { tools: tools.into_iter().collect() }
}

/// The inputs of the generated plans.
pub fn inputs(chance: &mut SeededRandom) -> Value {
    let items: Vec<u64> = (0..chance.below(4)).collect();
    json!({ "items": items, "go": chance.percent(70), "n": chance.below(10) })
}

/// Writes a plan of up to eight steps: chains, diamonds, fan-outs, conditions, fallbacks, all policies and safeties.
pub fn document(chance: &mut SeededRandom) -> Value {
    let count = 1 + chance.below(8);
    let mut steps: Vec<Value> = Vec::new();
    for at in 0..count {
        let step = step(chance, at, &steps);
        steps.push(step);
    }
    let mut plan = json!({
        "name": "simulated",
        "goal": "sail",
        "inputs": { "type": "object" },
        "max_parallel": 1 + chance.below(3),
        "on_failure": chance.pick(&POLICIES),
        "deadline": if chance.percent(6) { "2m" } else { "24h" },
        "steps": steps,
    });
    if chance.percent(6) {
        plan["budget"] = json!({ "calls": 1 + chance.below(count) });
    }
    plan
}

const POLICIES: [&str; 7] = [
    "manual_decision",
    "manual_decision",
    "cancel_all",
    "cancel_dependent",
    "continue_others",
    "compensate",
    "compensate",
];

fn id(at: u64) -> String {
    format!("s{at}")
}

/// A reference to an earlier step: a field of its result, or the number of results of a fan-out.
fn reading(before: &[Value], need: u64, field: &str) -> String {
    let fans_out = before.iter().any(|step| step["id"] == id(need) && !step["for_each"].is_null());
    match (fans_out, field) {
        (false, field) => format!("steps.{}.result.{field}", id(need)),
        (true, "flag") => format!("(steps.{}.result | length) > 0", id(need)),
        (true, _) => format!("(steps.{}.result | length)", id(need)),
    }
}

fn step(chance: &mut SeededRandom, at: u64, before: &[Value]) -> Value {
    let needs: Vec<u64> = (0..at).filter(|_| chance.percent(30)).collect();
    let tool = *chance.pick(&["sim.read", "sim.idempotent", "sim.once", "sim.once", "sim.keyed"]);
    let mut step = json!({ "id": id(at), "tool": tool, "timeout": "30s" });
    let fans_out = chance.percent(10);
    let mut parameters = json!({ "of": if fans_out { json!("{{ item }}") } else { json!(at) } });
    if tool == "sim.keyed" {
        parameters["key"] = json!("{{ key }}");
    }
    let mut ordered = Vec::new();
    for need in needs {
        match chance.below(4) {
            0 => parameters[format!("from_{need}")] = json!(format!("{{{{ {} }}}}", reading(before, need, "n"))),
            1 => {
                let n = reading(before, need, "n");
                let soft = format!("{{{{ {n} if steps.{}.status == 'completed' else 0 }}}}", id(need));
                parameters[format!("maybe_{need}")] = json!(soft);
            }
            _ => ordered.push(id(need)),
        }
    }
    step["parameters"] = parameters;
    if !ordered.is_empty() {
        step["depends_on"] = json!(ordered);
    }
    if fans_out {
        step["for_each"] = json!({ "items": "inputs.items", "max_parallel": 1 + chance.below(3) });
    }
    if at > 0 && chance.percent(12) {
        let need = chance.below(at);
        step["when"] = json!(reading(before, need, "flag"));
    } else if chance.percent(5) {
        step["when"] = json!("inputs.go");
    }
    if tool != "sim.read" && chance.percent(65) {
        step["compensation"] = compensation(chance);
    }
    if tool == "sim.once" && chance.percent(50) {
        step["probe"] = probe(chance);
    }
    if chance.percent(12) {
        step["approval"] = json!({ "required": true, "expires": "1h" });
    }
    if chance.percent(15) {
        step["fallback"] =
            json!({ "tool": chance.pick(&["sim.once", "sim.idempotent", "sim.read"]), "parameters": {} });
        if chance.percent(50) {
            step["fallback"]["compensation"] = compensation(chance);
        }
    }
    if chance.percent(60) {
        step["failure_policy"] = json!({ "action": chance.pick(&POLICIES) });
    }
    if chance.percent(50) {
        step["retry"] = json!({ "max_attempts": 1 + chance.below(4), "initial": "1s", "jitter": chance.percent(50) });
    }
    if chance.percent(8) {
        step["total_timeout"] = json!("70s");
    }
    if chance.percent(10) {
        step["priority"] = json!(chance.below(5));
    }
    step
}

/// Gives the steps of a plan little time, and fallbacks.
pub fn hasten(plan: &mut Value, chance: &mut SeededRandom) {
    let Some(steps) = plan["steps"].as_array_mut() else { return };
    for step in steps {
        if chance.percent(50) {
            step["total_timeout"] = json!(*chance.pick(&["30s", "35s", "45s"]));
        }
        if chance.percent(60) {
            let tool = *chance.pick(&["sim.once", "sim.idempotent", "sim.idempotent"]);
            let retry = json!({ "max_attempts": 1 + chance.below(2) });
            step["fallback"] = json!({ "tool": tool, "parameters": {}, "timeout": "20s", "retry": retry });
            if chance.percent(30) {
                step["fallback"]["compensation"] = compensation(chance);
            }
        }
        if step["tool"] == "sim.once" && chance.percent(70) {
            step["probe"] = probe(chance);
        }
        if chance.percent(30) {
            step["approval"] = json!({ "required": true, "expires": "1h" });
        }
        if chance.percent(30) {
            step["failure_policy"] = json!({ "action": "manual_decision" });
        }
    }
}

fn compensation(chance: &mut SeededRandom) -> Value {
    let tool = *chance.pick(&["sim.undo_idempotent", "sim.undo_once", "sim.undo_keyed"]);
    let mut undo = json!({ "tool": tool, "parameters": {} });
    if tool == "sim.undo_keyed" {
        undo["parameters"]["key"] = json!("{{ key }}");
    }
    if chance.percent(10) {
        undo["parameters"]["n"] = json!("{{ result.n }}");
    }
    if tool == "sim.undo_once" && chance.percent(50) {
        undo["probe"] = probe(chance);
    }
    undo
}

fn probe(chance: &mut SeededRandom) -> Value {
    let mut probe = json!({ "tool": "sim.find", "parameters": { "key": "{{ key }}" }, "happened": "result.found" });
    if chance.percent(80) {
        probe["result"] = json!("result.value");
    }
    probe
}

/// Changes a running plan as a planner would: drops, adds and alters steps.
pub fn revise(chance: &mut SeededRandom, document: &Value) -> Value {
    let mut plan = document.clone();
    let Some(steps) = plan["steps"].as_array_mut() else { return plan };
    let next = 1 + steps.iter().filter_map(|step| step["id"].as_str()?[1..].parse::<u64>().ok()).max().unwrap_or(0);
    if steps.len() > 1 && chance.percent(50) {
        let dropped = steps.remove(chance.index(steps.len()));
        let gone = dropped["id"].as_str().unwrap_or_default().to_owned();
        for step in steps.iter_mut() {
            forget(step, &gone);
        }
    }
    if chance.percent(40) {
        let at = chance.index(steps.len());
        let changed = chance.below(100);
        match steps[at].as_object_mut() {
            Some(step) if changed < 30 && step.contains_key("fallback") => {
                step.shift_remove("fallback");
            }
            _ => steps[at]["parameters"]["changed"] = json!(changed),
        }
    }
    if chance.percent(60) {
        let mut added = step(chance, next, steps);
        let known: Vec<String> = steps.iter().filter_map(|step| step["id"].as_str().map(str::to_owned)).collect();
        for need in 0..next {
            if !known.contains(&id(need)) {
                forget(&mut added, &id(need));
            }
        }
        steps.push(added);
    }
    plan
}

/// Changes how some steps are called, probed, retried and approved, and no step itself.
pub fn revise_details(chance: &mut SeededRandom, document: &Value) -> Value {
    let mut plan = document.clone();
    let Some(steps) = plan["steps"].as_array_mut() else { return plan };
    for _ in 0..=chance.below(3) {
        let at = chance.index(steps.len());
        let step = &mut steps[at];
        match chance.below(9) {
            0..=2 => revise_probe(chance, step),
            3..=4 => revise_safety(chance, step),
            5 => step["retry"] = json!({ "max_attempts": 1 + chance.below(4), "initial": "2s" }),
            6 => step["timeout"] = json!(chance.pick(&["10s", "20s", "30s"])),
            7 if step["total_timeout"].is_null() => step["total_timeout"] = json!("90s"),
            7 => drop_field(step, "total_timeout"),
            _ if step["approval"].is_null() => step["approval"] = json!({ "required": true, "expires": "1h" }),
            _ => drop_field(step, "approval"),
        }
        // Reading a field that is missing has added it.
        if let Some(fields) = step.as_object_mut() {
            fields.retain(|_, value| !value.is_null());
        }
    }
    plan
}

fn revise_probe(chance: &mut SeededRandom, step: &mut Value) {
    if step["tool"] != "sim.once" {
        return;
    }
    if step["probe"].is_null() || chance.percent(30) {
        step["probe"] = probe(chance);
    } else if chance.percent(60) {
        drop_field(step, "probe");
    } else {
        // Another text with the same meaning: what is neither true nor false stays inconclusive.
        step["probe"]["happened"] = json!("(result.found)");
    }
}

/// Tightens the safety of a step or its fallback, or loosens it again.
fn revise_safety(chance: &mut SeededRandom, step: &mut Value) {
    let call = if chance.percent(30) && !step["fallback"].is_null() { &mut step["fallback"] } else { step };
    if call.get("safety").is_some() {
        drop_field(call, "safety");
    } else if call["tool"] == "sim.idempotent" || call["tool"] == "sim.read" {
        call["safety"] = json!("once");
    }
}

fn drop_field(of: &mut Value, name: &str) {
    if let Some(fields) = of.as_object_mut() {
        fields.shift_remove(name);
    }
}

/// Removes every reference to a step that no longer exists.
fn forget(step: &mut Value, gone: &str) {
    let mentions = |value: &Value| value.to_string().contains(&format!("steps.{gone}."));
    if let Some(needs) = step.get_mut("depends_on").and_then(Value::as_array_mut) {
        needs.retain(|need| need != gone);
    }
    if let Some(parameters) = step.get_mut("parameters").and_then(Value::as_object_mut) {
        parameters.retain(|_, value| !mentions(value));
    }
    if let Some(fields) = step.as_object_mut() {
        if fields.get("when").is_some_and(mentions) {
            fields.shift_remove("when");
        }
        if fields.get("depends_on").is_some_and(|needs| needs.as_array().is_some_and(Vec::is_empty)) {
            fields.shift_remove("depends_on");
        }
    }
}

/// Checks a generated plan. The generator must be right, so an error contains all findings.
pub fn compile(document: &Value, catalog: &ToolCatalog) -> Result<Arc<Plan>, String> {
    let bytes = serde_json::to_vec(document).expect("a JSON value can be written");
    let checked = read_and_check(&bytes, DocumentFormat::Json, catalog, Driver::Server, None);
    checked.plan.ok_or_else(|| format!("{:#?}\n{document:#}", checked.diagnostics))
}
