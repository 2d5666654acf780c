//! `call_tool`: one call, as a plan of one step, so that it stands in the journal like any other.

use crate::deed::call::{NewCall, STEP, begin};
use crate::fault::Fault;
use crate::guest::Toolset;
use crate::limits::{ANSWER_BYTES, WAIT_MAX};
use crate::mcp::ask;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::terse::{bytes, shortened};
use crate::mcp::visit::Visit;
use crate::words::{self, cut};
use rutter_core::execution::Identity;
use rutter_core::execution::view::View;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(super) fn tool() -> Tool {
    let about = About {
        name: "call_tool",
        title: "Call one tool",
        description: "Call one tool now, journaled as a plan of one step, and return its result. For trying a tool \
                      out; what belongs together belongs in a plan.",
        nature: Nature::Acts,
        toolsets: &[Toolset::Admin],
    };
    Tool::new::<Input, Output, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// server.tool
    tool: String,
    #[serde(default)]
    parameters: Map<String, Value>,
    reason: String,
    /// Makes asking twice safe.
    request_id: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
    summary: String,
    next: String,
    execution_id: String,
    status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    result: Option<Value>,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    if let Some(heard) = ask::hear(&visit).await? {
        return end(&visit, &heard.identity, heard.declined).await;
    }
    let caller = visit.caller();
    let new = NewCall { tool: input.tool, parameters: input.parameters, reason: input.reason };
    let identity = begin(&caller, new, input.request_id).await?;
    end(&visit, &identity, false).await
}

async fn end(visit: &Visit, identity: &Identity, declined: bool) -> Result<Answer, Fault> {
    let settled = match declined {
        true => ask::Settled::View(Box::new(visit.desk.engine.view(identity).await?)),
        false => ask::settle(visit, identity, WAIT_MAX).await?,
    };
    match settled {
        ask::Settled::Ask(required) => Ok(Answer::Ask(*required)),
        ask::Settled::View(view) => told(visit, identity, &view).await,
    }
}

async fn told(visit: &Visit, identity: &Identity, view: &View) -> Result<Answer, Fault> {
    let result = visit.desk.engine.look(identity, |execution| execution.result_of(STEP).cloned()).await?;
    let failure = view.steps.first().and_then(|step| step.failure.as_ref());
    let mut output = Output {
        summary: match failure {
            Some(failure) => format!("the call failed: {}", cut(&failure.to_string(), 1_000)),
            None => words::summary(view),
        },
        next: words::next(view),
        execution_id: identity.execution.to_string(),
        status: view.status.as_str().to_owned(),
        result: None,
    };
    let room = ANSWER_BYTES.saturating_sub(bytes(&output) + r#","result":"#.len());
    output.result = result.map(|result| shortened(&result, room));
    Answer::done(&output)
}
