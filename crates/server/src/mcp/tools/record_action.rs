//! `record_action`: something the agent did beside the steps of the plan.

use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::recording::{Details, Recorded, say};
use crate::mcp::visit::Visit;
use rutter_core::execution::input::Refusal;
use rutter_core::id::StepId;
use rutter_engine::Signal;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "record_action",
        title: "Record an action",
        description: "Record something you did by hand around an execution: stopped, cleaned up, notified, rolled back. \
                      Changes no step: use record_step for the plan's calls, record_compensation for what you undid.",
        nature: Nature::Records,
        toolsets: &[Toolset::Default, Toolset::Journal],
    };
    Tool::new::<Input, Recorded, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    execution_id: String,
    step_id: Option<String>,
    action_type: ActionType,
    description: String,
    details: Option<Details>,
    request_id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ActionType {
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

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let identity = visit.identity(&input.execution_id);
    let step = input.step_id.as_deref().map(StepId::new);
    if let Some(step) = step.clone() {
        let known =
            visit.desk.engine.look(&identity, move |execution| match execution.plan().find(step.as_str()) {
                Some(_) => Ok(()),
                // An action is not a deed of the plan: a step that is not there is a slip of the pen.
                None => Err(Refusal::new("execution.unknown_part", format!("the plan has no step {step:?}"))
                    .hint("leave step_id out if it concerns no step")),
            });
        known.await??;
    }
    let kind = input.action_type.as_str();
    let signal = Signal::RecordAction {
        step,
        kind: kind.to_owned(),
        description: input.description,
        details: input.details.map(|Details(details)| details),
    };
    say(&visit, &identity, signal, input.request_id).await?;
    Answer::done(&Recorded::of(&visit, &identity, &format!("recorded the action {kind}")).await?)
}
