//! `record_step`: what became of a call the agent made itself.

use crate::deed::record::step::{StepRecord, StepStatus, Trouble, record};
use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::recording::Recorded;
use crate::mcp::tools::terse::object;
use crate::mcp::visit::Visit;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

pub(super) fn tool() -> Tool {
    let about = About {
        name: "record_step",
        title: "Record a step",
        description: "Record a call you made for a step of an execution you drive: `started` before it, `completed` or \
                      `failed` after. `in_doubt`: it may have happened (timeout, lost answer); do not repeat it. \
                      Answers what is next and where deed and plan differ.",
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
    status: StepStatus,
    // Any value is taken; a schema without a type is one that some clients cannot read.
    #[serde(default)]
    #[schemars(schema_with = "object")]
    result: Option<Value>,
    error: Option<Trouble>,
    /// If not the plan's.
    tool: Option<String>,
    /// If not the plan's.
    parameters: Option<Map<String, Value>>,
    /// The same id means the same request.
    request_id: Option<String>,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let identity = visit.identity(&input.execution_id);
    let Input { step_id, status, result, error, tool, parameters, .. } = input;
    let told = StepRecord { step_id, status, result, error, tool, parameters };
    let part = record(&visit.caller(), &identity, &told, input.request_id).await?;
    let what = format!("recorded {part} as {}", status.as_str());
    Answer::done(&Recorded::of_step(&visit, &identity, &part.step, &what).await?)
}
