//! Checks whether an execution of a plan can be opened.

use super::admit::AdmissionResult;
use super::input::Refusal;
use crate::actor::Actor;
use crate::id::ExecutionId;
use crate::journal::event::{Event, EventRecord, PlanReference};
use crate::journal::payload::EventPayload;
use crate::plan::schema::CompiledSchema;
use crate::plan::{Driver, Plan, inputs};
use crate::time::Timestamp;
use serde_json::Value;
use std::sync::Arc;

/// The first record of an execution of a saved revision, if its inputs are valid and the driver can make its calls.
pub fn opening(
    plan: &Arc<Plan>,
    revision: u32,
    driver: Driver,
    inputs: Arc<Value>,
    lineage: &ExecutionId,
    actor: Actor,
    now: Timestamp,
) -> Result<EventRecord, Refusal> {
    if driver == Driver::Server {
        tools_are_there(plan)?;
    }
    inputs_are_declared(plan, &inputs)?;
    inputs_fit(plan, &inputs)?;
    let event = Event::ExecutionOpened {
        plan: PlanReference::of(plan),
        revision,
        lineage: lineage.to_string(),
        driver,
        inputs: EventPayload::Present(inputs),
    };
    Ok(EventRecord { at: now, actor, event })
}

pub(super) fn tools_are_there(plan: &Plan) -> AdmissionResult {
    match plan.tools_missing().next() {
        Some(tool) => {
            Err(Refusal::new("execution.unknown_tool", format!("the plan names {tool}, which is not registered"))
                .hint("only an agent can carry out this plan"))
        }
        None => Ok(()),
    }
}

/// A new plan is not held to this: the inputs of an execution may be more than its remaining steps read.
fn inputs_are_declared(plan: &Plan, inputs: &Value) -> AdmissionResult {
    if !inputs.is_object() && !inputs.is_null() {
        return Err(Refusal::new("execution.inputs", "inputs: expected an object"));
    }
    match inputs::undeclared(plan.inputs.as_deref(), inputs) {
        Some(found) => Err(Refusal::new("execution.inputs", found.message).hint(found.hint)),
        None => Ok(()),
    }
}

pub(super) fn inputs_fit(plan: &Plan, inputs: &Value) -> AdmissionResult {
    let Some(schema) = &plan.inputs else { return Ok(()) };
    // The schema compiled when the plan was checked; if it no longer does, the inputs are not validated.
    let Ok(schema) = CompiledSchema::compile(schema) else { return Ok(()) };
    match schema.validate(inputs).first() {
        Some(violation) => {
            Err(Refusal::new("execution.inputs", format!("inputs{}: {}", violation.pointer, violation.message)))
        }
        None => Ok(()),
    }
}
