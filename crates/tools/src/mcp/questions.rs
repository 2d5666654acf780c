//! What a tool asks before it continues a call: one round of questions, put one after the other.
//!
//! The server keeps nothing meanwhile: it gets its own state back together with the answers. So a round can be kept
//! beside its open question, and another process continues from there.

use super::listener;
use rmcp::model::{InputRequest, InputRequests, InputRequiredResult, InputResponses};
use rutter_core::port::tools::CallReporter;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct InputRound {
    asked: InputRequests,
    answers: InputResponses,
    state: Option<String>,
}

impl InputRound {
    pub(super) fn new(required: InputRequiredResult) -> InputRound {
        InputRound {
            asked: required.input_requests.unwrap_or_default(),
            answers: InputResponses::new(),
            state: required.request_state,
        }
    }

    /// Reads what was kept beside an open question.
    pub(super) fn read(continuation: &Value) -> Option<InputRound> {
        InputRound::deserialize(continuation).ok()
    }

    /// The answers to all questions of the round, and the server's state; `None` if the tool wants something other than
    /// an answer.
    pub(super) async fn answer_all(mut self, reporter: &dyn CallReporter) -> Option<(InputResponses, Option<String>)> {
        for (key, request) in self.asked.clone() {
            if self.answers.contains_key(&key) {
                continue;
            }
            let continuation = serde_json::to_value(&self).ok().map(Arc::new);
            let answer = answer(&request, continuation, reporter).await?;
            self.answers.insert(key, answer);
        }
        Some((self.answers, self.state))
    }
}

/// The answer to one question; `None` if the tool wants something other than an answer.
pub(super) async fn answer(
    request: &InputRequest,
    continuation: Option<Arc<Value>>,
    reporter: &dyn CallReporter,
) -> Option<Value> {
    let InputRequest::Elicitation(question) = request else { return None };
    serde_json::to_value(listener::answer(&question.params, continuation, reporter).await).ok()
}
