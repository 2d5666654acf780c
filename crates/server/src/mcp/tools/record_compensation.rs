//! `record_compensation`: what the agent undid by hand.

use crate::deed::record::Details;
use crate::deed::record::compensation::{CompensationRecord, record};
use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::recording::Recorded;
use crate::mcp::visit::Visit;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "record_compensation",
        title: "Record a compensation",
        description: "Record that you have undone the effect of a step by hand, after you did. The step is then \
                      compensated and will not be undone again. Refused where nothing took effect, or while it is in \
                      doubt.",
        nature: Nature::Records,
        toolsets: &[Toolset::Default, Toolset::Journal],
    };
    Tool::new::<Input, Recorded, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    execution_id: String,
    step_id: String,
    reason: String,
    action_taken: String,
    details: Option<Details>,
    request_id: Option<String>,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let identity = visit.identity(&input.execution_id);
    let Input { step_id, reason, action_taken, details, .. } = input;
    let undone = CompensationRecord { step_id, reason, action_taken, details };
    let part = record(&visit.caller(), &identity, undone, input.request_id).await?;
    let what = format!("recorded that {part} was undone by hand");
    Answer::done(&Recorded::of(&visit, &identity, &what).await?)
}
