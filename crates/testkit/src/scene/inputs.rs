//! Inputs as people, agents and tools give them in scenarios.

use super::{part, step};
use rutter_core::execution::input::ExecutionInput;
use rutter_core::journal::event::{CallSide, Question, QuestionAnswer};
use rutter_core::tool::Elicitation;
use serde_json::{Value, json};
use std::sync::Arc;

pub fn answering(about: Question, answer: QuestionAnswer, result: Option<Value>) -> ExecutionInput {
    ExecutionInput::Answer { about, answer, reason: "so be it".into(), result: result.map(Arc::new), evidence: None }
}

pub fn tool_asking(name: &str, side: CallSide, attempt: u32, schema: Value) -> ExecutionInput {
    let question = Elicitation { message: "which one?".to_owned(), schema: Arc::new(schema), continuation: None };
    ExecutionInput::ToolAsks { part: part(name), side, attempt, question }
}

pub fn answering_tool(name: &str, attempt: u32, answer: Option<Value>) -> ExecutionInput {
    let reason = "so be it".to_owned();
    ExecutionInput::AnswerTool { part: part(name), attempt, answer: answer.map(Arc::new), reason }
}

pub fn settling(name: &str, happened: bool, result: Value) -> ExecutionInput {
    let result = happened.then(|| Arc::new(result));
    let evidence = Arc::new(json!("looked"));
    ExecutionInput::Settle { part: part(name), happened, reason: "looked".into(), result, evidence }
}

pub fn compensating(steps: Option<&[&str]>) -> ExecutionInput {
    let steps = steps.map(|steps| steps.iter().map(|id| step(id)).collect());
    ExecutionInput::Compensate { steps, reason: "take it back".into() }
}
