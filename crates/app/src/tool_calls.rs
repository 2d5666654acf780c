//! A single call, as a plan of one step, so that it is journaled like any other.

use crate::app::App;
use crate::command::required_reason;
use crate::error::AppError;
use crate::plans::PlanInput;
use crate::principal::Principal;
use crate::rights::Operation;
use crate::start::{ExecutionRequest, PlanChoice};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::limits::NAME_CHARS_MAX;
use rutter_core::plan::Driver;
use rutter_core::text::cut;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The one step.
pub const STEP: &str = "call";

#[derive(Debug)]
pub struct NewToolCall {
    /// server.tool
    pub tool: String,
    pub parameters: Map<String, Value>,
    pub reason: Option<String>,
}

/// Starts the execution of a single call.
pub async fn begin(
    app: &App,
    caller: &Principal,
    new: NewToolCall,
    key: Option<String>,
) -> Result<ExecutionIdentity, AppError> {
    app.require(caller, Operation::CallTool)?;
    let reason = required_reason("a call", new.reason)?;
    let (parameters, inputs) = literal(new.parameters);
    let mut plan = json!({
        "name": cut(&format!("call of {}", new.tool), NAME_CHARS_MAX - 1),
        "request": reason,
        "on_failure": "cancel_all",
        "steps": [{ "id": STEP, "tool": new.tool, "parameters": parameters, "cancellable": "irreversible" }],
    });
    if !inputs.is_empty() {
        let any: Map<String, Value> = inputs.keys().map(|name| (name.clone(), json!({}))).collect();
        plan["inputs"] = json!({ "type": "object", "required": inputs.keys().collect::<Vec<_>>(), "properties": any });
    }
    let text = PlanInput::Text(plan.to_string()).text(&caller.tenant, Driver::Server)?;
    let request = ExecutionRequest {
        plan: PlanChoice::Given(text),
        inputs: Arc::new(Value::Object(inputs)),
        driver: Driver::Server,
        options: None,
        request_key: key,
    };
    let started = app.execute_admitted(caller, request).await?;
    Ok(ExecutionIdentity { tenant: caller.tenant.clone(), execution: started.execution })
}

/// Parameters taken literally: a text that looks like an expression is passed as an input, where it is not evaluated.
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
