//! What an agent undid by hand.

use crate::deed::Caller;
use crate::deed::record::{Details, say};
use crate::fault::Fault;
use rutter_core::execution::Identity;
use rutter_core::id::PartId;
use rutter_engine::Signal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// An effect that is gone.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompensationRecord {
    pub(crate) step_id: String,
    pub(crate) reason: String,
    pub(crate) action_taken: String,
    pub(crate) details: Option<Details>,
}

/// Puts it on record, and says of which part it is.
pub(crate) async fn record(
    caller: &Caller,
    identity: &Identity,
    undone: CompensationRecord,
    key: Option<String>,
) -> Result<PartId, Fault> {
    let missing =
        || Fault::new("server.arguments", "step_id is the id of a step, or step[item] of a fan-out");
    let part = PartId::parse(&undone.step_id).ok_or_else(missing)?;
    let CompensationRecord { reason, action_taken, details, .. } = undone;
    let description = format!("{action_taken}: {reason}");
    let mut evidence = json!({ "reason": reason, "action_taken": action_taken });
    if let Some(Details(details)) = details {
        evidence["details"] = (*details).clone();
    }
    let evidence = Some(Arc::new(evidence));
    let signal = Signal::RecordCompensation { part: part.clone(), description, evidence };
    say(caller, identity, signal, key).await?;
    Ok(part)
}
