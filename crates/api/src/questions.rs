//! Open questions across all executions.

use crate::executions::inspect_execution;
use crate::reply::{ApiReply, ListReply};
use crate::request::ApiRequest;
use crate::route::{ApiRoute, RouteSpec};
use rutter_app::error::AppError;
use rutter_app::view::{ExecutionListView, PlanRefView, QuestionView};
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::port::query::{ExecutionFilter, ListPage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub(crate) fn routes() -> Vec<ApiRoute> {
    let about = RouteSpec::get("/questions", "listQuestions", "Open questions of all executions");
    vec![ApiRoute::new(about, list)]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuestionsQuery {
    /// Executions per page; each may have several questions.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    cursor: Option<String>,
}

/// A question with its plan.
#[derive(Debug, Serialize, JsonSchema)]
struct OpenQuestion {
    plan: PlanRefView,
    #[serde(flatten)]
    question: QuestionView,
}

async fn list(call: ApiRequest, query: QuestionsQuery) -> Result<ApiReply<ListReply<OpenQuestion>>, AppError> {
    let page = call.page(query.limit, query.cursor)?;
    let filter = ExecutionFilter { asking: true, ..ExecutionFilter::default() };
    let found = call.app().query.executions(&call.principal.tenant, filter, page).await?;
    let reader = call.app().reader(&call.principal);
    let mut items = Vec::new();
    for summary in &found.items {
        let identity = ExecutionIdentity { tenant: call.principal.tenant.clone(), execution: summary.id.clone() };
        for ask in inspect_execution(&call, &identity, Execution::questions).await? {
            items.push(OpenQuestion {
                plan: ExecutionListView::of(summary).plan,
                question: QuestionView::of(&summary.id, &ask, &reader),
            });
        }
    }
    Ok(call.list(ListPage { items, next: found.next }))
}
