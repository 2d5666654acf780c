//! A decision of an agent about an execution, with its reason.

use crate::app::App;
use crate::command::required_reason;
use crate::error::AppError;
use crate::principal::Principal;
use crate::records::{RecordDetails, answered, part_of, send_record};
use crate::request_key::RequestKey;
use crate::rights::Operation;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::id::StepId;
use rutter_engine::report::{AgentReport, DecidedAction, DecisionReport};
use schemars::JsonSchema;
use serde::Deserialize;

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

/// Records the decision and acts on it, as one command; returns its name.
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
    let (action, word) = match action {
        DecisionAction::Stop => (DecidedAction::Stop, "stop"),
        DecisionAction::Continue => (DecidedAction::Continue, "continue"),
        DecisionAction::End => (DecidedAction::End, "end"),
    };
    let (step, details) = (step_id.as_deref().map(StepId::new), details.map(|RecordDetails(details)| details));
    let report = AgentReport::Decision(DecisionReport { step, action, reason, details });
    let key = RequestKey::of(caller, key.as_deref())?;
    let recorded = app.engine.report(identity, caller.actor(), report, key.stored.clone()).await;
    answered(app, caller, identity, key, recorded).await?;
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
