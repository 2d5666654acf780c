//! An execution as tools answer it: where it stands, what it asks, what to do next.

use crate::mcp::visit::Visit;
use crate::words;
use rutter_core::execution::view::View;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// At most so many questions stand in an answer; the rest is counted.
const QUESTIONS_MAX: usize = 5;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ExecutionAnswer {
    summary: String,
    /// What to do next.
    next: String,
    execution_id: String,
    status: String,
    /// Steps that are settled.
    done: usize,
    total: usize,
    /// What waits for somebody.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    questions: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Map<String, Value>>")]
    pub(crate) steps: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) brief: Option<String>,
    /// Read it for everything.
    resource_uri: String,
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
            brief: None,
            resource_uri: format!("rutter://executions/{}", view.execution),
        }
    }
}
