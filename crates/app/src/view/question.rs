//! A question that waits for a person or an agent.

use super::execution::TEXT_CHARS_MAX;
use super::{FailureView, execution_url};
use crate::question;
use crate::verb::Verb;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::id::ExecutionId;
use rutter_core::journal::event::QuestionAnswer;
use rutter_core::text::cut;
use rutter_core::time::calendar::utc;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Limits of a question in a short answer.
const FAILURES_MAX: usize = 3;
const VALUE_BYTES_MAX: usize = 600;

/// An open question. Further fields depend on its kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Question", extend("additionalProperties" = true))]
pub struct QuestionView {
    pub execution_id: String,
    /// `approval`, `doubt`, `failure`, `compensation`, `limit`, `drift` or `tool`.
    pub kind: String,
    /// The question in words.
    pub ask: String,
    /// The command with which a person answers.
    pub person: String,
    /// The page where a person answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub fields: Map<String, Value>,
}

impl QuestionView {
    pub fn of(execution: &ExecutionId, question: &PendingQuestion, base: Option<&str>) -> QuestionView {
        let Value::Object(mut fields) = json!(question) else { unreachable!("a tagged enum is an object") };
        let kind = fields.remove("kind");
        let answers = |answers: &[QuestionAnswer]| -> Value {
            answers.iter().map(|answer| json!(Verb::answering(*answer).name())).collect()
        };
        match question {
            PendingQuestion::Approval { expires_at, .. } => {
                fields.insert("expires_at".to_owned(), json!(utc(*expires_at)));
            }
            PendingQuestion::Failure { failures, answers: given, .. } => {
                let failures = failures.iter().map(
                    |(part, failure)| json!({ "step": part, "category": failure.category, "message": failure.message }),
                );
                fields.insert("failures".to_owned(), failures.collect());
                fields.insert("answers".to_owned(), answers(given));
            }
            PendingQuestion::Compensation { failure, answers: given, .. } => {
                fields.insert("failure".to_owned(), json!(FailureView::of(failure)));
                fields.insert("answers".to_owned(), answers(given));
            }
            PendingQuestion::Limit { answers: given, .. } => {
                fields.insert("answers".to_owned(), answers(given));
            }
            PendingQuestion::Doubt { .. } | PendingQuestion::Drift { .. } | PendingQuestion::Tool { .. } => {}
        }
        QuestionView {
            execution_id: execution.to_string(),
            kind: kind.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned(),
            ask: question.to_string(),
            person: question::how(execution, question),
            url: execution_url(base, execution).map(|url| format!("{url}#questions")),
            fields,
        }
    }

    /// The same with long texts cut, the first failures only, and large values replaced by where to read them.
    pub fn short(mut self) -> QuestionView {
        let shorten = |fields: &mut Map<String, Value>| {
            for name in ["reason", "message"] {
                if let Some(Value::String(text)) = fields.get_mut(name) {
                    *text = cut(text, TEXT_CHARS_MAX);
                }
            }
        };
        shorten(&mut self.fields);
        if let Some(Value::Object(failure)) = self.fields.get_mut("failure") {
            shorten(failure);
        }
        if let Some(Value::Array(failures)) = self.fields.get_mut("failures") {
            let count = failures.len();
            failures.truncate(FAILURES_MAX);
            failures.iter_mut().filter_map(Value::as_object_mut).for_each(shorten);
            if count > FAILURES_MAX {
                self.fields.insert("failures_count".to_owned(), json!(count));
            }
        }
        for name in ["schema", "parameters"] {
            if self.fields.get(name).is_some_and(|value| value.to_string().len() > VALUE_BYTES_MAX) {
                self.fields.insert(name.to_owned(), json!("too long; read the execution's resource"));
            }
        }
        self
    }
}
