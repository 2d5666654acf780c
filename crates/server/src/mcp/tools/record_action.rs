//! `record_action`: something the agent did beside the steps of the plan.

use crate::deed::record::Details;
use crate::deed::record::action::{ActionRecord, ActionType, record};
use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::recording::Recorded;
use crate::mcp::visit::Visit;
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

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let identity = visit.identity(&input.execution_id);
    let Input { step_id, action_type, description, details, .. } = input;
    let action = ActionRecord { step_id, action_type, description, details };
    let kind = record(&visit.caller(), &identity, action, input.request_id).await?;
    Answer::done(&Recorded::of(&visit, &identity, &format!("recorded the action {kind}")).await?)
}
