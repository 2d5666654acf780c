//! An action of an agent outside the steps of the plan.

use crate::app::App;
use crate::error::AppError;
use crate::principal::Principal;
use crate::records::{RecordDetails, send_record};
use crate::rights::Operation;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::input::Refusal;
use rutter_core::id::StepId;
use schemars::JsonSchema;
use serde::Deserialize;

/// An action by hand.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionRecord {
    pub step_id: Option<String>,
    pub action_type: ActionType,
    pub description: String,
    pub details: Option<RecordDetails>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ActionType {
    Stopped,
    CleanedUp,
    Notified,
    RolledBack,
    Other,
}

impl ActionType {
    fn as_str(self) -> &'static str {
        match self {
            ActionType::Stopped => "stopped",
            ActionType::CleanedUp => "cleaned_up",
            ActionType::Notified => "notified",
            ActionType::RolledBack => "rolled_back",
            ActionType::Other => "other",
        }
    }
}

/// Records the action and returns its kind.
pub async fn record(
    app: &App,
    caller: &Principal,
    identity: &ExecutionIdentity,
    action: ActionRecord,
    key: Option<String>,
) -> Result<&'static str, AppError> {
    app.require(caller, Operation::Record)?;
    let step = action.step_id.as_deref().map(StepId::new);
    if let Some(step) = step.clone() {
        let known = app.engine.inspect(identity, move |execution| {
            match execution.plan().find(step.as_str()) {
                Some(_) => Ok(()),
                // An action is not part of the plan, so an unknown step is a typo.
                None => Err(Refusal::new("execution.unknown_part", format!("the plan has no step {step:?}"))
                    .hint("omit step_id if it concerns no step")),
            }
        });
        known.await??;
    }
    let kind = action.action_type.as_str();
    let input = ExecutionInput::RecordAction {
        step,
        kind: kind.to_owned(),
        description: action.description,
        details: action.details.map(|RecordDetails(details)| details),
    };
    send_record(app, caller, identity, input, key).await?;
    Ok(kind)
}
