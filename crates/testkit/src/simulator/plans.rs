//! Random plans over a few tools, written as an author would write them and checked by the real compiler.

use super::late::KEY_WINDOW;
use crate::chance::SeededRandom;
use rutter_core::hash::Hash;
use rutter_core::id::ToolName;
use rutter_core::plan::check::read_and_check;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Driver, Plan};
use rutter_core::policy::OperatorPolicy;
use rutter_core::policy::rule::PolicyRuleDraft;
use rutter_core::time::Millis;
use rutter_core::tool::{Safety, SafetySource, Tool, ToolCatalog};
use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};

/// How long a program may act on after its time is up.
const GRACE: Millis = Millis(20_000);

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
            sends_key: false,
            grace: None,
            key_window: None,
            attempts: Default::default(),
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
    ToolCatalog { tools: tools.into_iter().collect(), ..ToolCatalog::default() }
}

/// The same tools, which forget their keys soon.
pub fn forgetful_catalog() -> &'static ToolCatalog {
    static CATALOG: LazyLock<ToolCatalog> = LazyLock::new(|| {
        let mut catalog = catalog();
        for tool in catalog.tools.values_mut().filter(|tool| tool.key_parameter.is_some()) {
            Arc::make_mut(tool).key_window = Some(KEY_WINDOW);
        }
        catalog
    });
    &CATALOG
}

/// The same tools, of which some are programs: they act on for a while after their time is up.
pub fn mixed_catalog() -> &'static ToolCatalog {
    static CATALOG: LazyLock<ToolCatalog> = LazyLock::new(|| {
        let mut catalog = forgetful_catalog().clone();
        for name in ["sim.once", "sim.undo_once"] {
            if let Some(tool) = catalog.tools.get_mut(&ToolName::new(name)) {
                Arc::make_mut(tool).grace = Some(GRACE);
            }
        }
        catalog
    });
    &CATALOG
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
        "inputs": { "type": "object", "properties": { "items": {}, "go": {}, "n": {} } },
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
        match chance.below(6) {
            4 => {
                let n = format!("steps.{}.result", id(need));
                parameters[format!("join_{need}")] = json!(format!("{{{{ {n} | default({{}}) | length }}}}"));
            }
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
        if chance.percent(40) {
            step["for_each"]["tolerate"] = chance.pick(&[json!(1), json!(2), json!("50%")]).clone();
        }
    }
    if at > 0 && chance.percent(12) {
        let need = chance.below(at);
        step["when"] = json!(reading(before, need, "flag"));
    } else if chance.percent(5) {
        step["when"] = json!("inputs.go");
    }
    let conditional: Vec<&Value> = before.iter().filter(|step| !step["when"].is_null()).collect();
    if !conditional.is_empty() && chance.percent(12) {
        step["else_of"] = chance.pick(&conditional)["id"].clone();
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

/// Gives a plan more probes, of different patience, and more attempts.
pub fn doubt(plan: &mut Value, chance: &mut SeededRandom) {
    let Some(steps) = plan["steps"].as_array_mut() else { return };
    for step in steps {
        if step["tool"] == "sim.once" && chance.percent(60) {
            step["probe"] = probe(chance);
        }
        if chance.percent(70) {
            step["retry"] = json!({ "max_attempts": 2 + chance.below(3), "initial": "1s" });
        }
        settle(&mut step["probe"], chance);
        settle(&mut step["compensation"]["probe"], chance);
        prune(step);
    }
}

fn settle(probe: &mut Value, chance: &mut SeededRandom) {
    if probe.is_object() && chance.percent(70) {
        probe["settle"] = json!(*chance.pick(&["0s", "5s", "40s", "2m", "10m"]));
    }
}

/// Drops the fields that reading them has added.
fn prune(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.values_mut().for_each(prune);
        fields.retain(|name, value| !value.is_null() && (name != "compensation" || value != &json!({})));
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
        let at = chance.index(steps.len());
        leave_out(steps, at);
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
    drop_lone_branches(steps);
    plan
}

fn leave_out(steps: &mut Vec<Value>, at: usize) {
    let dropped = steps.remove(at);
    let gone = dropped["id"].as_str().unwrap_or_default().to_owned();
    for step in steps.iter_mut() {
        forget(step, &gone);
    }
}

/// Brings back a step that is not in the plan, or leaves one out that is.
pub fn toggle(document: &Value, step: &str) -> Value {
    let mut plan = document.clone();
    let Some(steps) = plan["steps"].as_array_mut() else { return plan };
    match steps.iter().position(|known| known["id"] == step) {
        Some(at) if steps.len() > 1 => leave_out(steps, at),
        Some(_) => {}
        None => steps.push(json!({ "id": step, "tool": "sim.once" })),
    }
    drop_lone_branches(steps);
    plan
}

/// Removes `else_of` where the other step is gone, or no longer has a condition.
fn drop_lone_branches(steps: &mut [Value]) {
    let conditional = |step: &&Value| step.get("when").is_some();
    let known: Vec<Value> = steps.iter().filter(conditional).map(|step| step["id"].clone()).collect();
    for step in steps {
        if step.get("else_of").is_some_and(|other| !known.contains(other)) {
            drop_field(step, "else_of");
        }
    }
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

/// Takes the approval from a step, or does its call again under another name.
pub fn evade(chance: &mut SeededRandom, document: &Value) -> Value {
    let mut plan = document.clone();
    let Some(steps) = plan["steps"].as_array_mut() else { return plan };
    let next = 1 + steps.iter().filter_map(|step| step["id"].as_str()?[1..].parse::<u64>().ok()).max().unwrap_or(0);
    let guarded: Vec<usize> = (0..steps.len()).filter(|at| steps[*at].get("approval").is_some()).collect();
    let at = if guarded.is_empty() { chance.index(steps.len()) } else { *chance.pick(&guarded) };
    if chance.percent(50) {
        drop_field(&mut steps[at], "approval");
        return plan;
    }
    let mut copy = steps[at].clone();
    copy["id"] = json!(id(next));
    if chance.percent(70) {
        drop_field(&mut copy, "approval");
    }
    steps.push(copy);
    plan
}

/// The operator's policy of a run: none in most, so that old seeds still tell their stories.
pub fn policy(seed: u64) -> OperatorPolicy {
    let mut chance = SeededRandom::new(seed ^ 0x5eed_0f90_11c7);
    if !seed.is_multiple_of(3) && !super::evasion::is_evasive(seed) {
        return OperatorPolicy::default();
    }
    let tools = ["sim.*", "sim.once", "sim.idempotent", "sim.keyed", "sim.undo_*", "sim.find", "sim.read"];
    let conditions =
        ["parameters.of > 1", "parameters.of is defined and parameters.of == 2", "parameters.key is defined"];
    let mut rules = Vec::new();
    for _ in 0..=chance.below(3) {
        let mut rule = json!({ "tools": [chance.pick(&tools)] });
        if chance.percent(60) {
            rule["when"] = json!(chance.pick(&conditions));
        }
        match chance.below(10) {
            0..=2 => rule["deny"] = json!("not here"),
            3..=6 => rule["approval"] = json!({ "expires": "30m" }),
            _ => rule["limit"] = json!({ "calls": 1 + chance.below(3), "per": "5m" }),
        }
        rules.push(rule);
    }
    let drafts: Vec<PolicyRuleDraft> = serde_json::from_value(json!(rules)).expect("the rules are well formed");
    let mut policy = OperatorPolicy::read(&drafts).expect("the rules are right");
    if super::evasion::is_evasive(seed) {
        super::evasion::restrict(&mut policy, &mut SeededRandom::new(seed ^ 0x0bad_5eed));
    }
    policy
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

/// The same plan with little time, and with a rule for an agent that falls silent.
pub fn limit_time(document: Value, catalog: &ToolCatalog, chance: &mut SeededRandom) -> Value {
    let mut limited = document.clone();
    limited["agent_timeout"] = json!(*chance.pick(&["10s", "5m", "30m"]));
    limited["on_agent_silence"] = json!(*chance.pick(&["ask", "hand_over"]));
    match chance.below(4) {
        0 => {}
        1 => limited["budget"] = json!({ "time": *chance.pick(&["5s", "40s", "3m"]) }),
        _ => limited["deadline"] = json!(*chance.pick(&["5s", "40s", "3m", "2d"])),
    }
    if compile(&limited, catalog).is_ok() { limited } else { document }
}
