//! Everything that waits for somebody, across all executions.

use crate::api::call::Call;
use crate::api::execution::ToldQuestion;
use crate::api::executions::looked;
use crate::api::reply::{List, Reply};
use crate::api::route::{About, Route};
use crate::fault::Fault;
use rutter_core::execution::{Execution, Identity};
use rutter_core::port::query::{ExecutionFilter, Listing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) fn routes() -> Vec<Route> {
    let about = About::get("/questions", "listQuestions", "Everything that waits for somebody");
    vec![Route::new(about, list)]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuestionsQuery {
    /// Executions that are looked at; each may ask several things.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    cursor: Option<String>,
}

/// A question with the plan it comes from.
#[derive(Debug, Serialize, JsonSchema)]
struct OpenQuestion {
    plan_id: String,
    name: String,
    #[serde(flatten)]
    question: ToldQuestion,
}

async fn list(call: Call, query: QuestionsQuery) -> Result<Reply<List<OpenQuestion>>, Fault> {
    let page = call.page(query.limit, query.cursor)?;
    let filter = ExecutionFilter { asking: true, ..ExecutionFilter::default() };
    let found = call.desk().query.executions(&call.guest.tenant, filter, page).await?;
    let link = call.desk().link.get().map(String::as_str);
    let mut items = Vec::new();
    for summary in &found.items {
        let identity = Identity { tenant: call.guest.tenant.clone(), execution: summary.id.clone() };
        for ask in looked(&call, &identity, Execution::questions).await? {
            items.push(OpenQuestion {
                plan_id: summary.plan.to_string(),
                name: summary.name.clone(),
                question: ToldQuestion::of(&summary.id, &ask, link),
            });
        }
    }
    Ok(call.list(Listing { items, next: found.next }))
}
