//! `record_execution_start`: begins an execution whose calls the agent makes itself.

use crate::deed::record::{part_of, say};
use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::recording::Recorded;
use crate::mcp::visit::Visit;
use rutter_core::execution::Identity;
use rutter_core::execution::input::Refusal;
use rutter_core::id::PlanId;
use rutter_core::limits::REASON_BYTES_MAX;
use rutter_core::plan::Driver;
use rutter_engine::{Signal, Start};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "record_execution_start",
        title: "Record the start of an execution",
        description: "Begin an execution of a recorded plan: you make the calls, Rutter keeps the journal. Answers what \
                      to call first, and with what. Then record_step after each call.",
        nature: Nature::Records,
        toolsets: &[Toolset::Journal],
    };
    Tool::new::<Input, Recorded, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    plan_id: String,
    /// Why now, for whom; kept in the journal.
    notes: Option<String>,
    #[serde(default)]
    inputs: Map<String, Value>,
    request_id: Option<String>,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let Input { plan_id, notes, inputs, request_id } = input;
    // Refused here, since the execution is open by the time the core would refuse it.
    if notes.as_ref().is_some_and(|notes| notes.len() > REASON_BYTES_MAX) {
        let message = format!("notes have at most {REASON_BYTES_MAX} bytes");
        return Err(Refusal::new("execution.text_too_long", message).into());
    }
    let start = Start {
        tenant: visit.guest.tenant.clone(),
        plan: PlanId::new(&plan_id),
        revision: None,
        inputs: Arc::new(Value::Object(inputs)),
        driver: Driver::Agent,
        actor: visit.agent(),
        request: request_id.clone(),
    };
    let started = visit.desk.engine.start(start).await?;
    let identity = Identity { tenant: visit.guest.tenant.clone(), execution: started.execution };
    if let Some(reason) = notes.filter(|notes| !notes.is_empty()) {
        let signal =
            Signal::RecordDecision { step: None, decision: "start".to_owned(), reason, details: None };
        say(&visit.caller(), &identity, signal, part_of(request_id.as_deref(), "notes")).await?;
    }
    Answer::done(&Recorded::of(&visit, &identity, "the start is on record").await?)
}
