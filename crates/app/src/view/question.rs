//! A question that waits for a person or an agent.

use super::FailureView;
use super::execution::TEXT_CHARS_MAX;
use crate::question;
use crate::reader::AnswerReader;
use crate::shown_call::shown_call;
use crate::terse::shortened;
use crate::verb::Verb;
use rutter_core::execution::denied_call::EarlierDenial;
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
const DUE_MAX: usize = 10;
const CHANGES_MAX: usize = 20;
const VALUE_BYTES_MAX: usize = 600;
/// Larger parameters are cut in a question for people.
const PARAMETERS_SHOWN_BYTES_MAX: usize = 64 << 10;

/// An open question. Further fields depend on its kind.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "Question", extend("additionalProperties" = true))]
pub struct QuestionView {
    pub execution_id: String,
    /// `approval`, `doubt`, `failure`, `compensation`, `second_effect`, `limit`, `replan`, `drift`, `tool`, `hold` or
    /// `silence`.
    pub kind: String,
    /// The question in words.
    pub ask: String,
    /// How a person answers: the command, or for agents where people look.
    pub person: String,
    /// The page where a person answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    pub fields: Map<String, Value>,
}

impl QuestionView {
    pub fn of(execution: &ExecutionId, question: &PendingQuestion, reader: &AnswerReader) -> QuestionView {
        let Value::Object(mut fields) = json!(question) else { unreachable!("a tagged enum is an object") };
        let kind = fields.remove("kind");
        let answers = |answers: &[QuestionAnswer]| -> Value {
            answers.iter().map(|answer| json!(Verb::answering(*answer).name())).collect()
        };
        match question {
            PendingQuestion::Approval { parameters, expires_at, denied, .. } => {
                if let Some(EarlierDenial { by, at, reason, asked_again }) = denied {
                    let by = by.to_string();
                    let denied = json!({ "by": by, "at": utc(*at), "reason": reason, "asked_again": asked_again });
                    fields.insert("denied".to_owned(), denied);
                }
                // The whole call is in the journal.
                if let Some(parameters) = parameters {
                    let shown = shown_call(parameters, PARAMETERS_SHOWN_BYTES_MAX);
                    let shown =
                        shown.map_or_else(|| shortened(parameters, PARAMETERS_SHOWN_BYTES_MAX), |(shown, _)| shown);
                    fields.insert("parameters".to_owned(), shown);
                }
                fields.insert("expires_at".to_owned(), json!(utc(*expires_at)));
            }
            PendingQuestion::Failure { failures, answers: given, only_people, .. } => {
                if !only_people.is_empty() {
                    fields.insert("only_people".to_owned(), answers(only_people));
                }
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
            PendingQuestion::Hold { since, due, .. } => {
                fields.insert("since".to_owned(), json!(utc(*since)));
                let due = due.iter().map(|timer| {
                    let mut due = json!({ "what": timer.what, "at": utc(timer.at) });
                    if let Some(part) = &timer.part {
                        due["step"] = json!(part);
                    }
                    due
                });
                fields.insert("due".to_owned(), due.collect());
            }
            PendingQuestion::Silence { since, answers: given } => {
                fields.insert("since".to_owned(), json!(utc(*since)));
                fields.insert("answers".to_owned(), answers(given));
            }
            PendingQuestion::SecondEffect { effects, answers: given, .. } => {
                for (at, effect) in effects.iter().enumerate() {
                    for (name, value) in [("parameters", &effect.parameters), ("result", &effect.result)] {
                        if let Some(value) = value {
                            fields["effects"][at][name] = shortened(value, PARAMETERS_SHOWN_BYTES_MAX);
                        }
                    }
                }
                fields.insert("answers".to_owned(), answers(given));
            }
            PendingQuestion::Limit { answers: given, .. } => {
                fields.insert("answers".to_owned(), answers(given));
            }
            PendingQuestion::Doubt { parameters, sent_at, failure, .. } => {
                if let Some(parameters) = parameters {
                    fields.insert("parameters".to_owned(), shortened(parameters, PARAMETERS_SHOWN_BYTES_MAX));
                }
                fields.extend(sent_at.map(|sent_at| ("sent_at".to_owned(), json!(utc(sent_at)))));
                fields.extend(failure.as_ref().map(|failure| ("failure".to_owned(), json!(FailureView::of(failure)))));
            }
            PendingQuestion::Drift { .. } | PendingQuestion::Replan { .. } | PendingQuestion::Tool { .. } => {}
        }
        QuestionView {
            execution_id: execution.to_string(),
            kind: kind.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned(),
            ask: question.to_string(),
            person: question::how(reader, execution, question),
            url: reader.page(execution).map(|url| format!("{url}#questions")),
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
        if let Some(Value::Array(due)) = self.fields.get_mut("due") {
            let count = due.len();
            due.truncate(DUE_MAX);
            if count > DUE_MAX {
                self.fields.insert("due_count".to_owned(), json!(count));
            }
        }
        if let Some(Value::Array(changes)) = self.fields.get_mut("changes") {
            let count = changes.len();
            changes.truncate(CHANGES_MAX);
            for change in changes.iter_mut() {
                *change = json!(cut(change.as_str().unwrap_or_default(), TEXT_CHARS_MAX));
            }
            if count > CHANGES_MAX {
                self.fields.insert("changes_count".to_owned(), json!(count));
            }
        }
        for effect in self.fields.get_mut("effects").and_then(Value::as_array_mut).into_iter().flatten() {
            for name in ["parameters", "result"] {
                if effect[name].to_string().len() > VALUE_BYTES_MAX {
                    effect[name] = json!("too long; read the execution's resource");
                }
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
