//! One call, as a plan of one step, so that it stands in the journal like any other.

use crate::deed::Caller;
use crate::deed::plan::{PlanInput, keep};
use crate::fault::Fault;
use crate::words::cut;
use rutter_core::execution::Identity;
use rutter_core::limits::NAME_CHARS_MAX;
use rutter_core::plan::Driver;
use rutter_engine::Start;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The one step.
pub(crate) const STEP: &str = "call";

pub(crate) struct NewCall {
    /// server.tool
    pub(crate) tool: String,
    pub(crate) parameters: Map<String, Value>,
    pub(crate) reason: String,
}

/// Begins the execution of the one call.
pub(crate) async fn begin(caller: &Caller, new: NewCall, key: Option<String>) -> Result<Identity, Fault> {
    if new.reason.trim().is_empty() {
        return Err(Fault::new("server.arguments", "a call needs a reason; it stands in the journal"));
    }
    let (parameters, inputs) = literal(new.parameters);
    let mut plan = json!({
        "name": cut(&format!("call of {}", new.tool), NAME_CHARS_MAX - 1),
        "request": new.reason,
        "on_failure": "cancel_all",
        "steps": [{ "id": STEP, "tool": new.tool, "parameters": parameters, "cancellable": "irreversible" }],
    });
    if !inputs.is_empty() {
        let any: Map<String, Value> = inputs.keys().map(|name| (name.clone(), json!({}))).collect();
        plan["inputs"] = json!({ "type": "object", "properties": any });
    }
    let text = PlanInput::Text(plan.to_string()).text(&caller.tenant, Driver::Server)?;
    let plan = keep(caller, text, None, None, key.as_deref()).await?.id;
    let start = Start {
        tenant: caller.tenant.clone(),
        plan,
        revision: None,
        inputs: Arc::new(Value::Object(inputs)),
        driver: Driver::Server,
        actor: caller.actor.clone(),
        request: key,
    };
    let started = caller.desk.engine.start(start).await?;
    Ok(Identity { tenant: caller.tenant.clone(), execution: started.execution })
}

/// Parameters that mean themselves: a text that looks like an expression goes in as an input, where it is none.
fn literal(parameters: Map<String, Value>) -> (Map<String, Value>, Map<String, Value>) {
    let mut inputs = Map::new();
    let mut plain = Map::new();
    for (number, (name, value)) in parameters.into_iter().enumerate() {
        if value.to_string().contains("{{") {
            let input = format!("parameter_{number}");
            plain.insert(name, json!(format!("{{{{ inputs.{input} }}}}")));
            inputs.insert(input, value);
        } else {
            plain.insert(name, value);
        }
    }
    (plain, inputs)
}
