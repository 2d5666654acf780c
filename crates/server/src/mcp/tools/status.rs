//! `status`: how an execution stands; waits a while if asked to.

use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::ask::{self, Settled, settle};
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::execution::ExecutionAnswer;
use crate::mcp::visit::Visit;
use crate::mcp::wait::settled;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::time::Duration;

/// Steps in one answer; the rest is in the resource.
const STEPS_MAX: usize = 40;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "status",
        title: "Status of an execution",
        description: "Where an execution stands, what it waits for and what to do next. `wait_seconds` waits until it \
                      ends or needs somebody. `include_step_details` lists steps; `brief` is the story so far in a \
                      few hundred words, for taking over.",
        nature: Nature::Reads,
        toolsets: &[Toolset::Default],
    };
    Tool::new::<Input, ExecutionAnswer, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    execution_id: String,
    #[serde(default)]
    include_step_details: bool,
    #[serde(default)]
    brief: bool,
    /// 0 to 45, default 0.
    #[serde(default)]
    #[schemars(range(max = 45))]
    wait_seconds: u64,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let identity = visit.identity(&input.execution_id);
    let span = Duration::from_secs(input.wait_seconds);
    let heard = ask::hear(&visit).await?;
    let is_patient = heard.is_some() || input.wait_seconds > 0;
    let declined = heard.is_some_and(|heard| heard.declined);
    let view = match is_patient && !declined {
        false => settled(&visit, &identity, span).await?,
        true => match settle(&visit, &identity, span).await? {
            Settled::View(view) => *view,
            Settled::Ask(required) => return Ok(Answer::Ask(*required)),
        },
    };
    let mut answer = ExecutionAnswer::of(&visit, &view);
    if input.include_step_details {
        answer.steps = view.steps.iter().take(STEPS_MAX).map(|step| json!(step)).collect();
    }
    if input.brief {
        answer.brief = Some(visit.desk.engine.brief(&identity).await?);
    }
    Answer::done(&answer)
}
