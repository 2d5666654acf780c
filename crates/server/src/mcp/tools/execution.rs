//! An execution as tools answer it: where it stands, what it asks, what came of it, what to do next.

use crate::fault::Fault;
use crate::mcp::tools::terse::{bytes, object, rows, shortened};
use crate::mcp::visit::Visit;
use crate::words;
use rutter_core::execution::view::{Status, View};
use rutter_core::execution::{Execution, Identity};
use rutter_core::port;
use rutter_engine::Error;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// At most so many questions stand in an answer; the summary counts the rest.
const QUESTIONS_MAX: usize = 5;
/// Results in an answer, all together and each.
const RESULTS_BYTES_MAX: usize = 2 << 10;
const RESULT_BYTES_MAX: usize = 800;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExecutionAnswer {
    summary: String,
    next: String,
    execution_id: String,
    status: String,
    // Steps that are settled, and all. The schema leaves out what explains itself: several tools answer with this.
    #[schemars(skip)]
    done: usize,
    #[schemars(skip)]
    total: usize,
    // What waits for somebody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "rows")]
    pub(crate) questions: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(skip)]
    pub(crate) steps: Vec<Value>,
    // Steps after those listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub(crate) more: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub(crate) brief: Option<String>,
    // What the last steps brought, by step, once it has ended.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schemars(schema_with = "object")]
    results: Map<String, Value>,
    #[schemars(skip)]
    resource_uri: String,
    // Where a person sees and steers it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    page: Option<String>,
}

impl ExecutionAnswer {
    pub(crate) fn of(visit: &Visit, view: &View) -> ExecutionAnswer {
        let link = visit.desk.link.get().map(String::as_str);
        let questions = view.questions.iter().take(QUESTIONS_MAX);
        ExecutionAnswer {
            summary: words::summary(view),
            next: words::next(view),
            execution_id: view.execution.to_string(),
            status: view.status.as_str().to_owned(),
            done: view.settled,
            total: view.total,
            questions: questions.map(|ask| words::question(&view.execution, ask, link)).collect(),
            steps: Vec::new(),
            more: None,
            brief: None,
            results: Map::new(),
            resource_uri: format!("rutter://executions/{}", view.execution),
            page: link.map(|link| format!("{link}/executions/{}", view.execution)),
        }
    }

    /// The same, with what came of it if it has ended and was not undone.
    pub(crate) async fn with_results(
        visit: &Visit,
        identity: &Identity,
        view: &View,
    ) -> Result<ExecutionAnswer, Fault> {
        let mut answer = ExecutionAnswer::of(visit, view);
        if view.status.has_ended() && view.status != Status::Compensated {
            answer.results = visit.desk.engine.look(identity, results).await?;
        }
        Ok(answer)
    }
}

/// From the last step backwards, as many as fit.
fn results(execution: &Execution) -> Map<String, Value> {
    let mut left = RESULTS_BYTES_MAX;
    let mut results = Map::new();
    for step in execution.plan().steps.iter().rev() {
        let Some(result) = execution.result_of(step.id.as_str()) else { continue };
        let result = shortened(result, RESULT_BYTES_MAX);
        let Some(rest) = left.checked_sub(bytes(&result) + step.id.as_str().len() + 4) else { break };
        left = rest;
        results.insert(step.id.to_string(), result);
    }
    results
}

pub(crate) fn no_execution(identity: &Identity) -> Fault {
    let fault = Fault::missing("execution", identity.execution.as_str());
    fault.hint("query_history lists executions; execute_plan starts one")
}

/// Looks at an execution, and says where there are others if there is none of this name.
pub(crate) async fn looked<T: Send + 'static>(
    visit: &Visit,
    identity: &Identity,
    look: impl FnOnce(&Execution) -> T + Send + 'static,
) -> Result<T, Fault> {
    visit.desk.engine.look(identity, look).await.map_err(|error| match error {
        Error::Store(port::Error::NotFound { .. }) => no_execution(identity),
        error => error.into(),
    })
}
