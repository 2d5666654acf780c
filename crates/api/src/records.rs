//! Records of what an agent did itself, in an execution it drives.

use crate::executions::{find_summary, wait_and_read};
use crate::idempotent_replies::Idempotency;
use crate::reply::ApiReply;
use crate::request::ApiRequest;
use crate::route::{ApiRoute, RouteSpec};
use rutter_app::error::AppError;
use rutter_app::records::action::{self, ActionRecord};
use rutter_app::records::compensation::{self, CompensationRecord};
use rutter_app::records::decision::{self, DecisionRecord};
use rutter_app::records::step::{self, StepRecord};
use rutter_app::rights::Operation;
use rutter_app::view::ExecutionView;
use rutter_core::time::Millis;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) fn routes() -> Vec<ApiRoute> {
    let about =
        RouteSpec::post("/executions/{id}/records", "addRecord", "Record a step, decision, action or compensation")
            .right(Operation::Record)
            .success(&[201])
            .refuses(&[409, 422])
            .idempotency(Idempotency::Journal);
    vec![ApiRoute::with_body(about, add)]
}

/// One record.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum NewRecord {
    Step(StepRecord),
    Decision(DecisionRecord),
    Action(ActionRecord),
    Compensation(CompensationRecord),
}

async fn add(call: ApiRequest, record: NewRecord) -> Result<ApiReply<ExecutionView>, AppError> {
    let (caller, identity, key) = (&call.principal, call.identity(), call.key.clone());
    find_summary(&call, &identity).await?;
    match record {
        NewRecord::Step(record) => {
            step::record(call.app(), caller, &identity, &record, key).await?;
        }
        NewRecord::Decision(record) => {
            decision::record(call.app(), caller, &identity, record, key).await?;
        }
        NewRecord::Action(record) => {
            action::record(call.app(), caller, &identity, record, key).await?;
        }
        NewRecord::Compensation(record) => {
            compensation::record(call.app(), caller, &identity, record, key).await?;
        }
    }
    let location = format!("{}/executions/{}", crate::route::BASE, identity.execution);
    Ok(ApiReply::created(wait_and_read(&call, &identity, Millis(0)).await?, &location))
}
