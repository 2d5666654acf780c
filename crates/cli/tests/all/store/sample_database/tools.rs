//! In-process tools: they respond according to their schemas, and fail on demand.

use rutter_core::id::ToolName;
use rutter_core::tool::{CallOutcome, Safety, Tool, ToolCatalog, ToolFailure};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

#[derive(Debug)]
pub struct Tools {
    catalog: ToolCatalog,
    faults: BTreeMap<ToolName, VecDeque<Fault>>,
    made: Vec<Made>,
}

/// The fault of the next call of a tool.
#[derive(Debug)]
pub enum Fault {
    /// It refuses, without an effect.
    Refuse(ToolFailure),
    /// It takes effect, and its response is lost.
    LoseAnswer,
}

/// One call with an effect. A repetition is found by its identity.
#[derive(Debug)]
struct Made {
    tool: ToolName,
    identity: Value,
    result: Arc<Value>,
}

impl Tools {
    pub fn new(catalog: ToolCatalog) -> Tools {
        Tools { catalog, faults: BTreeMap::new(), made: Vec::new() }
    }

    pub fn fail_next(&mut self, tool: &str, fault: Fault) {
        self.faults.entry(ToolName::new(tool)).or_default().push_back(fault);
    }

    /// Makes a call. `None` if the response was lost.
    pub fn call(&mut self, tool: &ToolName, parameters: &Value) -> Option<CallOutcome> {
        let fault = self.faults.get_mut(tool).and_then(VecDeque::pop_front);
        if let Some(Fault::Refuse(failure)) = fault {
            return Some(CallOutcome::NotDone(failure));
        }
        let result = self.take_effect(tool, parameters);
        match fault {
            Some(_) => None,
            None => Some(CallOutcome::Done { result, cost_micros: 0 }),
        }
    }

    fn take_effect(&mut self, name: &ToolName, parameters: &Value) -> Arc<Value> {
        let Some(tool) = self.catalog.tools.get(name).cloned() else { return Arc::new(json!({})) };
        if tool.safety == Safety::ReadOnly {
            return Arc::new(self.look(&tool, parameters));
        }
        let key = tool.key_parameter.as_ref().and_then(|key| parameters.get(key));
        let identity = key.unwrap_or(parameters).clone();
        let before = self.made.iter().find(|made| made.tool == *name && made.identity == identity);
        match before {
            Some(made) => made.result.clone(),
            None => {
                let result = Arc::new(answer(&tool));
                self.made.push(Made { tool: name.clone(), identity, result: result.clone() });
                result
            }
        }
    }

    /// Finds a charge by its key; any other tool only returns what its schema promises.
    fn look(&self, tool: &Tool, parameters: &Value) -> Value {
        if tool.name.as_str() != "payments.find" {
            return answer(tool);
        }
        let key = parameters.get("key");
        let was_made_with_key = |made: &&Made| {
            let identity = made.identity.get("idempotency_key").unwrap_or(&made.identity);
            made.tool.as_str() == "payments.charge" && Some(identity) == key
        };
        match self.made.iter().find(was_made_with_key) {
            Some(made) => json!({ "found": true, "id": made.result["id"], "status": made.result["status"] }),
            None => json!({ "found": false }),
        }
    }
}

/// A response according to the tool's schema: every required field with a value of its type.
fn answer(tool: &Tool) -> Value {
    let schema = tool.output.as_deref().unwrap_or(&Value::Null);
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let field = |name: &str| {
        let verb = tool.name.as_str().rsplit('.').next().unwrap_or_default();
        let property = &schema["properties"][name];
        match (&property["enum"][0], property["type"].as_str()) {
            (Value::String(first), _) => json!(first),
            (_, Some("boolean")) => json!(true),
            (_, Some("integer" | "number")) => json!(2),
            (_, Some("array")) => json!([]),
            _ if name == "id" => json!(format!("{verb}-1")),
            _ => json!(format!("{}-1", name.trim_end_matches("_id"))),
        }
    };
    let fields = required.iter().filter_map(Value::as_str).map(|name| (name.to_owned(), field(name)));
    Value::Object(fields.collect::<Map<_, _>>())
}
