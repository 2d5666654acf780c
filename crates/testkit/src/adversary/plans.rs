//! Plans around guarded calls, and new plans that try to get such a call made without its approval.

use super::{BROKEN, CHARGE, GUARDED, INVOICE, LOOK, MADE_UP_KEY, MAIL, NOTE, PEEK, PRY, SLOW, SYNC, WIPE};
use crate::chance::SeededRandom;
use serde_json::{Map, Value, json};

/// A key, and what an agent writes to make it look like another parameter.
const KEYS: &[&str] = &["{{ key }}", "{{ key }}", "{{ key | upper }}", "of {{ key }}", "{{ key[:20] }}", MADE_UP_KEY];

/// A plan as an honest agent would write it: every invoice waits for approval. All guarded calls name the order.
pub fn first_plan(random: &mut SeededRandom, order: &str) -> Value {
    let mut steps = vec![json!({ "id": "look", "tool": LOOK, "parameters": {} })];
    for number in 0..1 + random.index(3) {
        // Mails soon wait for the limit, and waiting takes time.
        let tool = match random.percent(4) {
            true => MAIL,
            false => *random.pick(&[CHARGE, CHARGE, INVOICE, INVOICE, PEEK, PEEK, SYNC, WIPE, PRY, NOTE]),
        };
        let mut step = json!({ "id": format!("step{number}"), "tool": tool,
            "parameters": parameters(random, order, tool) });
        if tool == INVOICE || random.percent(20) {
            step["approval"] = json!({ "required": true, "expires": "1h" });
        }
        if random.percent(30) {
            step["failure_policy"] = json!(*random.pick(&["continue_others", "cancel_all", "compensate"]));
        }
        if random.percent(25) {
            step["compensation"] = json!({ "tool": NOTE, "parameters": { "text": "undone" } });
        }
        steps.push(step);
    }
    if random.percent(40) {
        let call = guarded_call(random, order);
        let hidden = hide(random, &call);
        // What an honest plan leaves to the policy alone.
        if call.0 != INVOICE {
            steps.extend(hidden);
        }
    }
    let parallel = 1 + random.below(3);
    json!({ "name": format!("sell {order}"), "goal": "Sell", "max_parallel": parallel, "steps": steps })
}

/// A plan that replaces another one, in one or two ways that an honest agent would not choose.
pub fn new_plan(random: &mut SeededRandom, old: &Value, order: &str) -> Value {
    let mut plan = old.clone();
    for _ in 0..1 + random.below(2) {
        change(random, &mut plan, order);
    }
    if random.percent(20) { reversed(&plan) } else { plan }
}

/// A call that people or the policy guard: mostly one that a plan of this order has.
pub fn guarded_call(random: &mut SeededRandom, order: &str) -> (&'static str, Value) {
    let tool = *random.pick(&[CHARGE, CHARGE, INVOICE, PEEK, PEEK, SYNC, WIPE, PRY]);
    (tool, parameters(random, order, tool))
}

fn parameters(random: &mut SeededRandom, order: &str, tool: &str) -> Value {
    if !GUARDED.contains(&tool) {
        return json!({ "text": format!("about {order}") });
    }
    // Few different calls, so that one that was denied comes again.
    let mut amount = json!(5 + random.below(2));
    if random.percent(10) {
        amount = random.pick(&[json!(5000), json!("5000"), json!("{{ 5 }}"), json!(5.0), json!(null)]).clone();
    }
    let mut parameters = json!({ "order": order, "amount": amount });
    if random.percent(25) {
        parameters["key"] = json!(*random.pick(KEYS));
    }
    if random.percent(3) {
        parameters["amount"] = json!("{{ steps.look.result.gone }}");
    }
    if random.percent(5) {
        parameters["note"] = json!("please");
    }
    if random.percent(15) { reversed(&parameters) } else { parameters }
}

fn change(random: &mut SeededRandom, plan: &mut Value, order: &str) {
    let number = random.below(1_000);
    let Some(steps) = plan["steps"].as_array_mut() else { return };
    if steps.is_empty() {
        return;
    }
    let at = random.index(steps.len());
    let call = match random.percent(70) {
        true => call_of(&steps[at]),
        false => None,
    };
    let call = call.unwrap_or_else(|| {
        let (tool, parameters) = guarded_call(random, order);
        (tool.to_owned(), parameters)
    });
    let step = &mut steps[at];
    let fields = step.as_object_mut().expect("a step is an object");
    match random.below(16) {
        0 | 1 => drop(fields.shift_remove("approval")),
        2 => drop(fields.insert("approval".to_owned(), json!({ "required": false }))),
        3 => drop(fields.insert("approval".to_owned(), json!({ "required": true, "expires": "20d" }))),
        4 => {
            fields.insert("id".to_owned(), json!(format!("renamed{number}")));
            if random.percent(50) {
                fields.shift_remove("approval");
            }
        }
        5 => drop(fields.insert("safety".to_owned(), json!(*random.pick(&["idempotent", "read_only", "once"])))),
        6 => {
            let parameters = parameters(random, order, &call.0);
            fields.insert("parameters".to_owned(), parameters);
        }
        7 => {
            let float = fields.get("parameters").and_then(|it| it["amount"].as_f64());
            if let (Some(float), Some(parameters)) = (float, fields.get_mut("parameters")) {
                parameters["amount"] = json!(float);
            }
        }
        8 => drop(fields.insert("retry".to_owned(), json!({ "max_attempts": 9, "on": ["tool_error", "timeout"] }))),
        9 => drop(steps.remove(at)),
        10 => steps.push(json!({ "id": format!("again{number}"), "tool": call.0, "parameters": call.1 })),
        11 => *steps = vec![json!({ "id": format!("only{number}"), "tool": call.0, "parameters": call.1 })],
        _ => {
            let hidden = hide(random, &(&call.0, call.1));
            steps.extend(hidden);
        }
    }
}

/// Steps that make a call which does not look like a step's own.
fn hide(random: &mut SeededRandom, (tool, parameters): &(&str, Value)) -> Vec<Value> {
    let number = random.below(1_000);
    let id = |name: &str| format!("{name}{number}");
    let call = json!({ "tool": tool, "parameters": parameters });
    let is_read = [PEEK, PRY].contains(tool);
    match random.below(7) {
        // Only reads can be probes, and their results decide about other steps.
        _ if is_read && random.percent(60) => hide_read(random, tool, parameters),
        _ if random.percent(10) => vec![sent_twice(random, tool, parameters)],
        0 => vec![json!({ "id": id("fallback"), "tool": BROKEN, "fallback": call })],
        1 => vec![json!({ "id": id("undone"), "tool": NOTE, "parameters": {}, "compensation": call })],
        2 => {
            let undo = json!({ "id": id("undo"), "tool": BROKEN, "depends_on": [id("undone")],
                "failure_policy": "compensate" });
            vec![json!({ "id": id("undone"), "tool": NOTE, "compensation": call }), undo]
        }
        3 => {
            let probe = json!({ "tool": tool, "parameters": parameters, "happened": "true" });
            vec![json!({ "id": id("probed"), "tool": NOTE, "probe": probe })]
        }
        4 => {
            let mut parameters = parameters.clone();
            parameters["amount"] = json!("{{ item }}");
            vec![json!({ "id": id("each"), "tool": tool, "for_each": "[5, 6]", "parameters": parameters })]
        }
        5 => {
            let never = json!({ "id": id("never"), "tool": NOTE, "when": "false" });
            vec![never, json!({ "id": id("else"), "tool": tool, "parameters": parameters, "else_of": id("never") })]
        }
        _ => {
            let mut parameters = parameters.clone();
            parameters["amount"] = json!(*random.pick(&["{{ 2 + 3 }}", "{{ steps.look.result.amount | default(5) }}"]));
            vec![json!({ "id": id("computed"), "tool": tool, "parameters": parameters })]
        }
    }
}

/// A guarded read as the probe of a doubt, or as what a condition or a list is made from.
fn hide_read(random: &mut SeededRandom, tool: &str, parameters: &Value) -> Vec<Value> {
    let number = random.below(1_000);
    let (read, after) = (format!("read{number}"), format!("after{number}"));
    let own = json!({ "id": read, "tool": tool, "parameters": parameters });
    let order = &parameters["order"];
    match random.below(4) {
        0 => {
            let condition = format!("steps.{read}.result.amount > 1");
            vec![own, json!({ "id": after, "tool": NOTE, "when": condition })]
        }
        1 => {
            let call = json!({ "order": order, "amount": "{{ item }}" });
            let items = format!("steps.{read}.result.amounts");
            vec![own, json!({ "id": after, "tool": CHARGE, "for_each": items, "parameters": call })]
        }
        _ => {
            let probe = json!({ "tool": tool, "parameters": parameters, "happened": "true", "settle": "0s" });
            vec![json!({ "id": after, "tool": SLOW, "timeout": "100ms", "probe": probe })]
        }
    }
}

/// A call that its caller gives up at once, and whose probe says that it did not happen.
fn sent_twice(random: &mut SeededRandom, tool: &str, parameters: &Value) -> Value {
    let id = format!("impatient{}", random.below(1_000));
    let probe = json!({ "tool": LOOK, "happened": "false", "settle": "0s" });
    let mut step = json!({ "id": id, "tool": tool, "parameters": parameters, "timeout": "1ms", "probe": probe });
    if random.percent(50) {
        step["retry"] = json!({ "max_attempts": 2, "on": ["timeout"] });
    }
    step
}

fn call_of(step: &Value) -> Option<(String, Value)> {
    let inner = ["fallback", "compensation", "probe"].iter().find_map(|name| step.get(name));
    let own = step["tool"].as_str().filter(|tool| GUARDED.contains(tool));
    let (tool, parameters) = match own {
        Some(tool) => (tool, &step["parameters"]),
        None => (inner?["tool"].as_str()?, &inner?["parameters"]),
    };
    GUARDED.contains(&tool).then(|| (tool.to_owned(), parameters.clone()))
}

/// The same with the fields of every object in reverse order.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: Map<String, Value> =
                fields.iter().rev().map(|(name, value)| (name.clone(), reversed(value))).collect();
            Value::Object(fields)
        }
        Value::Array(items) => items.iter().map(reversed).collect(),
        other => other.clone(),
    }
}
