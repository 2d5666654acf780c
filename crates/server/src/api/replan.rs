//! Another plan for an execution under way, as a reviewed diff.

use crate::api::call::Call;
use crate::api::executions::{looked, seen};
use crate::api::reply::Reply;
use crate::api::route::{About, Keyed, Route};
use crate::deed::plan::PlanInput;
use crate::deed::replan::{carry_out, propose};
use crate::fault::Fault;
use rutter_core::execution::Execution;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(crate) fn routes() -> Vec<Route> {
    let about = About::post("/executions/{id}/replan", "replan", "Give an execution under way another plan")
        .refuses(&[409, 412, 422])
        .keyed(Keyed::Journal);
    vec![Route::with_body(about, replan)]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Replan {
    plan: PlanInput,
    /// Stands in the journal.
    reason: String,
    /// Only shows the diff.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ReplanAnswer {
    execution_id: String,
    is_applied: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u32>,
    /// One line for each change.
    diff: Vec<String>,
    status: String,
}

async fn replan(call: Call, new: Replan) -> Result<Reply<ReplanAnswer>, Fault> {
    if new.reason.trim().is_empty() {
        return Err(Fault::new("server.arguments", "a new plan needs a reason; it stands in the journal"));
    }
    let (caller, identity) = (call.caller(), call.identity());
    let seen = seen(&call, &identity).await?;
    let look = |execution: &Execution| (Arc::clone(execution.plan()), execution.driver());
    let (old, driver) = looked(&call, &identity, look).await?;
    let key = call.key.as_deref();
    let proposal = propose(&caller, &identity, (&old, driver), &new.plan, &new.reason, key).await?;
    let diff = proposal.lines.clone();
    let revision = match new.dry_run {
        true => None,
        false => Some(carry_out(&caller, &identity, proposal, new.reason, call.key.clone(), seen).await?),
    };
    let status = looked(&call, &identity, Execution::status).await?;
    Ok(Reply::ok(ReplanAnswer {
        execution_id: call.id().to_owned(),
        is_applied: revision.is_some(),
        revision,
        diff,
        status: status.as_str().to_owned(),
    }))
}
