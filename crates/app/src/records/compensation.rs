//! A compensation that an agent did by hand.

use crate::app::App;
use crate::command::{part, required_reason};
use crate::error::AppError;
use crate::principal::Principal;
use crate::records::{RecordDetails, send_record};
use crate::rights::Operation;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::id::PartId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// An effect that was undone.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CompensationRecord {
    pub step_id: String,
    #[schemars(required)]
    pub reason: Option<String>,
    pub action_taken: String,
    pub details: Option<RecordDetails>,
}

/// Records the compensation and returns its part.
pub async fn record(
    app: &App,
    caller: &Principal,
    identity: &ExecutionIdentity,
    undone: CompensationRecord,
    key: Option<String>,
) -> Result<PartId, AppError> {
    app.require(caller, Operation::Record)?;
    let part = part(&undone.step_id)?;
    let CompensationRecord { reason, action_taken, details, .. } = undone;
    let reason = required_reason("a compensation", reason)?;
    let description = format!("{action_taken}: {reason}");
    let mut evidence = json!({ "reason": reason, "action_taken": action_taken });
    if let Some(RecordDetails(details)) = details {
        evidence["details"] = (*details).clone();
    }
    let evidence = Some(Arc::new(evidence));
    let input = ExecutionInput::RecordCompensation { part: part.clone(), description, evidence };
    send_record(app, caller, identity, input, key).await?;
    Ok(part)
}
