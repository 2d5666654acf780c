//! `record_decision`: what the agent decided about an execution, and why.

use crate::deed::record::Details;
use crate::deed::record::decision::{Decided, DecisionRecord, record};
use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::recording::Recorded;
use crate::mcp::visit::Visit;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "record_decision",
        title: "Record a decision",
        description: "Record what you decided and why. `stop` cancels what is under way; `continue` also answers a \
                      failed step or a limit that waits for a decision; `end` says that you have done all you will do.",
        nature: Nature::Steers,
        toolsets: &[Toolset::Default, Toolset::Journal],
    };
    Tool::new::<Input, Recorded, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    execution_id: String,
    action: Decided,
    reason: String,
    details: Option<Details>,
    step_id: Option<String>,
    request_id: Option<String>,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let identity = visit.identity(&input.execution_id);
    let Input { action, reason, details, step_id, .. } = input;
    let decision = DecisionRecord { action, reason, details, step_id };
    let word = record(&visit.caller(), &identity, decision, input.request_id).await?;
    let what = format!("recorded the decision to {word}");
    Answer::done(&Recorded::of(&visit, &identity, &what).await?)
}
