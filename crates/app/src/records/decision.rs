//! A decision of an agent about an execution, with its reason.

use crate::app::App;
use crate::command::required_reason;
use crate::error::AppError;
use crate::principal::Principal;
use crate::records::{RecordDetails, part_of, send_record};
use crate::rights::Operation;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event;
use rutter_core::journal::event::Question;
use rutter_engine::control::{fitting, only};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// A decision and its reason.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionRecord {
    pub action: DecisionAction,
    #[schemars(required)]
    pub reason: Option<String>,
    pub details: Option<RecordDetails>,
    pub step_id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionAction {
    Stop,
    Continue,
    End,
}

/// Records the decision, acts on it, and returns its name.
pub async fn record(
    app: &App,
    caller: &Principal,
    identity: &ExecutionIdentity,
    decision: DecisionRecord,
    key: Option<String>,
) -> Result<&'static str, AppError> {
    app.require(caller, Operation::Record)?;
    let DecisionRecord { action, reason, details, step_id } = decision;
    let reason = required_reason("a decision", reason)?;
    let step = step_id.as_deref().map(StepId::new);
    let word = match action {
        DecisionAction::Stop => "stop",
        DecisionAction::Continue => "continue",
        DecisionAction::End => "end",
    };
    let execution_input = ExecutionInput::RecordDecision {
        step: step.clone(),
        decision: word.to_owned(),
        reason: reason.clone(),
        details: details.map(|RecordDetails(details)| details),
    };
    let follows = part_of(key.as_deref(), word);
    match closing(action, &reason) {
        Some(closing) => {
            let asked = closing.clone();
            let (actor, policy) = (caller.actor(), Arc::clone(app.engine.policy()));
            let admitted =
                app.engine.inspect(identity, move |execution| execution.admit(&actor, &asked, &policy)).await?;
            // An execution that cannot be stopped, or was stopped by this very request, gets no second record.
            if admitted.is_ok() {
                send_record(app, caller, identity, execution_input, key).await?;
            }
            send_record(app, caller, identity, closing, follows).await?;
        }
        None => {
            let about = step.clone().map(PartId::whole);
            let open = app.engine.inspect(identity, move |execution| execution.questions()).await?;
            let mut open = fitting(&open, about.as_ref());
            // Whether an effect was undone is not answered by going on.
            open.retain(|question| !matches!(question, Question::Compensation(_) | Question::SecondEffect(_)));
            let question = (!open.is_empty()).then(|| only(open, about.as_ref())).transpose()?;
            send_record(app, caller, identity, execution_input, key).await?;
            if let Some(about) = question {
                let answer = event::QuestionAnswer::Continue;
                let input = ExecutionInput::Answer { about, answer, reason, result: None, evidence: None };
                send_record(app, caller, identity, input, follows).await?;
            }
        }
    }
    Ok(word)
}

/// Records why an execution was started.
pub async fn note_start(
    app: &App,
    caller: &Principal,
    identity: &ExecutionIdentity,
    reason: String,
    key: Option<&str>,
) -> Result<(), AppError> {
    let input = ExecutionInput::RecordDecision { step: None, decision: "start".to_owned(), reason, details: None };
    send_record(app, caller, identity, input, part_of(key, "notes")).await
}

/// The input that ends the execution.
fn closing(action: DecisionAction, reason: &str) -> Option<ExecutionInput> {
    let reason = reason.to_owned();
    match action {
        DecisionAction::Stop => Some(ExecutionInput::Cancel { reason, undo: None }),
        DecisionAction::End => Some(ExecutionInput::RecordEnd { reason }),
        DecisionAction::Continue => None,
    }
}
