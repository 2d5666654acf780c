//! Something an agent did beside the steps of the plan.

use crate::deed::Caller;
use crate::deed::record::{Details, say};
use crate::fault::Fault;
use rutter_core::execution::Identity;
use rutter_core::execution::input::Refusal;
use rutter_core::id::StepId;
use rutter_engine::Signal;
use schemars::JsonSchema;
use serde::Deserialize;

/// What was done by hand.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ActionRecord {
    pub(crate) step_id: Option<String>,
    pub(crate) action_type: ActionType,
    pub(crate) description: String,
    pub(crate) details: Option<Details>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ActionType {
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

/// Puts it on record, and says of which kind it was.
pub(crate) async fn record(
    caller: &Caller,
    identity: &Identity,
    action: ActionRecord,
    key: Option<String>,
) -> Result<&'static str, Fault> {
    let step = action.step_id.as_deref().map(StepId::new);
    if let Some(step) = step.clone() {
        let known =
            caller.desk.engine.look(identity, move |execution| match execution.plan().find(step.as_str()) {
                Some(_) => Ok(()),
                // An action is not a deed of the plan: a step that is not there is a slip of the pen.
                None => Err(Refusal::new("execution.unknown_part", format!("the plan has no step {step:?}"))
                    .hint("leave step_id out if it concerns no step")),
            });
        known.await??;
    }
    let kind = action.action_type.as_str();
    let signal = Signal::RecordAction {
        step,
        kind: kind.to_owned(),
        description: action.description,
        details: action.details.map(|Details(details)| details),
    };
    say(caller, identity, signal, key).await?;
    Ok(kind)
}
