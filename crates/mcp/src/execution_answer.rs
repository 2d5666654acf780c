//! An execution in tool results: its state, questions, results, and what to do next.

use crate::tool_request::ToolRequest;
use rutter_app::error::AppError;
use rutter_app::terse::{object, rows};
use rutter_app::view::{DeliveryView, ExecutionView, QuestionView, results};
use rutter_app::wording;
use rutter_core::execution::view::{ExecutionSnapshot, ExecutionStatus};
use rutter_core::execution::{Execution, ExecutionIdentity};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// The most questions, failed steps and the like in a result; the summary counts the rest.
pub(crate) const ITEMS_MAX: usize = 5;
/// Size limits of step results: all together, and each.
const RESULTS_BYTES_MAX: usize = 2 << 10;
const RESULT_BYTES_MAX: usize = 800;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExecutionAnswer {
    summary: String,
    next: String,
    execution_id: String,
    status: String,
    // Settled steps, all, and those completed. The schema omits what explains itself, because several tools return this.
    #[schemars(skip)]
    done: usize,
    #[schemars(skip)]
    total: usize,
    #[schemars(skip)]
    completed: usize,
    #[serde(flatten)]
    #[schemars(skip)]
    delivery: DeliveryView,
    // Open questions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "rows")]
    pub(crate) questions: Vec<QuestionView>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub(crate) steps: Vec<Value>,
    // How many steps follow those listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub(crate) more: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub(crate) brief: Option<String>,
    // Results of the last steps, by step, once the execution has ended.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "object")]
    results: Map<String, Value>,
    #[schemars(skip)]
    resource_uri: String,
    // The dashboard page of the execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    url: Option<String>,
}

impl ExecutionAnswer {
    pub(crate) fn of(request: &ToolRequest, view: &ExecutionSnapshot) -> ExecutionAnswer {
        let reader = request.reader();
        let execution = ExecutionView::of(None, view, &reader).short(ITEMS_MAX);
        ExecutionAnswer {
            next: wording::next(view, &reader),
            delivery: execution.delivery(),
            resource_uri: format!("rutter://executions/{}", view.execution),
            summary: execution.summary,
            execution_id: execution.execution_id,
            status: execution.status,
            done: execution.done,
            total: execution.total,
            completed: execution.completed,
            questions: execution.questions,
            steps: Vec::new(),
            more: None,
            brief: None,
            results: Map::new(),
            url: execution.url,
        }
    }

    /// The same, with results if it has ended and was not undone.
    pub(crate) async fn with_results(
        request: &ToolRequest,
        identity: &ExecutionIdentity,
        view: &ExecutionSnapshot,
    ) -> Result<ExecutionAnswer, AppError> {
        let mut answer = ExecutionAnswer::of(request, view);
        if view.status.has_ended() && view.status != ExecutionStatus::Compensated {
            answer.results = {
                let read = |execution: &Execution| results(execution, RESULTS_BYTES_MAX, RESULT_BYTES_MAX);
                request.app.look(identity, read).await?
            };
        }
        Ok(answer)
    }
}

pub(crate) fn no_execution(identity: &ExecutionIdentity) -> AppError {
    let error = AppError::missing("execution", identity.execution.as_str());
    error.hint("query_history lists executions; execute_plan starts one")
}

/// Runs `look` on an execution; the error for an unknown one says how to find others.
pub(crate) async fn inspect_execution<T: Send + 'static>(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    look: impl FnOnce(&Execution) -> T + Send + 'static,
) -> Result<T, AppError> {
    request.app.look(identity, look).await.map_err(|error| match error {
        app_error if app_error.code == "store.not_found" => no_execution(identity),
        fault => fault,
    })
}
