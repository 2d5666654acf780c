//! Records: what an agent did itself, for an execution it drives.

use crate::api::call::Call;
use crate::api::execution::ToldExecution;
use crate::api::executions::{found, settled};
use crate::api::reply::Reply;
use crate::api::route::{About, Keyed, Route};
use crate::deed::record::action::{self, ActionRecord};
use crate::deed::record::compensation::{self, CompensationRecord};
use crate::deed::record::decision::{self, DecisionRecord};
use crate::deed::record::step::{self, StepRecord};
use crate::fault::Fault;
use rutter_core::time::Millis;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) fn routes() -> Vec<Route> {
    let about = About::post(
        "/executions/{id}/records",
        "addRecord",
        "Record a step, decision, action or compensation",
    )
    .success(&[201])
    .refuses(&[409, 422])
    .keyed(Keyed::Journal);
    vec![Route::with_body(about, add)]
}

/// One thing that was done or decided.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum NewRecord {
    Step(StepRecord),
    Decision(DecisionRecord),
    Action(ActionRecord),
    Compensation(CompensationRecord),
}

async fn add(call: Call, record: NewRecord) -> Result<Reply<ToldExecution>, Fault> {
    let (caller, identity, key) = (call.caller(), call.identity(), call.key.clone());
    found(&call, &identity).await?;
    match record {
        NewRecord::Step(record) => {
            step::record(&caller, &identity, &record, key).await?;
        }
        NewRecord::Decision(record) => {
            decision::record(&caller, &identity, record, key).await?;
        }
        NewRecord::Action(record) => {
            action::record(&caller, &identity, record, key).await?;
        }
        NewRecord::Compensation(record) => {
            compensation::record(&caller, &identity, record, key).await?;
        }
    }
    let location = format!("{}/executions/{}", crate::api::BASE, identity.execution);
    Ok(Reply::created(settled(&call, &identity, Millis(0)).await?, &location))
}
