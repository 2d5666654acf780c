//! Gives an unfinished execution another plan, with a diff.

use crate::executions::{expected_entries, inspect_execution};
use crate::idempotent_replies::Idempotency;
use crate::reply::ApiReply;
use crate::request::ApiRequest;
use crate::route::{ApiRoute, RouteSpec};
use rutter_app::error::AppError;
use rutter_app::plans::PlanInput;
use rutter_app::replan::{ReplanOutcome, carry_out, propose, repeated};
use rutter_app::rights::Operation;
use rutter_core::execution::{Execution, ExecutionIdentity};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(crate) fn routes() -> Vec<ApiRoute> {
    let about = RouteSpec::post("/executions/{id}/replan", "replan", "Give an unfinished execution another plan")
        .right(Operation::Replan)
        .refuses(&[409, 412, 422])
        .idempotency(Idempotency::Journal);
    vec![ApiRoute::with_body(about, replan)]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReplanBody {
    plan: PlanInput,
    /// Recorded in the journal.
    #[schemars(required)]
    reason: Option<String>,
    /// Only return the diff.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ReplanAnswer {
    execution_id: String,
    is_applied: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u32>,
    /// One line per change.
    diff: Vec<String>,
    status: String,
}

async fn replan(call: ApiRequest, new: ReplanBody) -> Result<ApiReply<ReplanAnswer>, AppError> {
    let (caller, identity) = (&call.principal, call.identity());
    let key = call.key.as_deref().filter(|_| !new.dry_run);
    if let Some(outcome) = repeated(call.app(), caller, &identity, &new.plan, new.reason.as_deref(), key).await? {
        return answer(&call, &identity, Vec::new(), Some(outcome)).await;
    }
    let seen = expected_entries(&call, &identity).await?;
    let look = |execution: &Execution| (Arc::clone(execution.plan()), execution.driver());
    let (old, driver) = inspect_execution(&call, &identity, look).await?;
    let proposal = propose(call.app(), caller, &identity, (&old, driver), &new.plan, new.reason).await?;
    let diff = proposal.lines.clone();
    let outcome = match new.dry_run {
        true => None,
        false => Some(carry_out(call.app(), caller, &identity, proposal, call.key.clone(), seen).await?),
    };
    answer(&call, &identity, diff, outcome).await
}

async fn answer(
    call: &ApiRequest,
    identity: &ExecutionIdentity,
    diff: Vec<String>,
    outcome: Option<ReplanOutcome>,
) -> Result<ApiReply<ReplanAnswer>, AppError> {
    let status = inspect_execution(call, identity, Execution::status).await?;
    Ok(ApiReply::ok(ReplanAnswer {
        execution_id: call.id().to_owned(),
        is_applied: outcome.is_some_and(|outcome| outcome.is_applied),
        revision: outcome.map(|outcome| outcome.revision),
        diff,
        status: status.as_str().to_owned(),
    }))
}
