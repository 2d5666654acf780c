//! `record_compensation`: what the agent undid by hand.

use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::recording::{Details, Recorded, say};
use crate::mcp::visit::Visit;
use rutter_core::id::PartId;
use rutter_engine::Signal;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

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
    let missing =
        || Fault::new("server.arguments", "step_id is the id of a step, or step[item] of a fan-out");
    let part = PartId::parse(&input.step_id).ok_or_else(missing)?;
    let Input { reason, action_taken, details, .. } = input;
    let description = format!("{action_taken}: {reason}");
    let mut evidence = json!({ "reason": reason, "action_taken": action_taken });
    if let Some(Details(details)) = details {
        evidence["details"] = (*details).clone();
    }
    let what = format!("recorded that {part} was undone by hand");
    let signal = Signal::RecordCompensation { part, description, evidence: Some(Arc::new(evidence)) };
    say(&visit, &identity, signal, input.request_id).await?;
    Answer::done(&Recorded::of(&visit, &identity, &what).await?)
}
