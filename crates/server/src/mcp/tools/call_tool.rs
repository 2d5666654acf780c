//! `call_tool`: one call, as a plan of one step, so that it stands in the journal like any other.

use crate::fault::Fault;
use crate::guest::Toolset;
use crate::limits::{ANSWER_BYTES, WAIT_MAX};
use crate::mcp::ask;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::plan::{PlanInput, keep};
use crate::mcp::tools::terse::{bytes, shortened};
use crate::mcp::visit::Visit;
use crate::words::{self, cut};
use rutter_core::execution::Identity;
use rutter_core::execution::view::View;
use rutter_core::limits::NAME_CHARS_MAX;
use rutter_core::plan::Driver;
use rutter_engine::Start;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The one step.
const STEP: &str = "call";

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
    if input.reason.trim().is_empty() {
        return Err(Fault::new("server.arguments", "a call needs a reason; it stands in the journal"));
    }
    let (parameters, inputs) = literal(input.parameters);
    let mut plan = json!({
        "name": cut(&format!("call of {}", input.tool), NAME_CHARS_MAX - 1),
        "request": input.reason,
        "on_failure": "cancel_all",
        "steps": [{ "id": STEP, "tool": input.tool, "parameters": parameters, "cancellable": "irreversible" }],
    });
    if !inputs.is_empty() {
        let any: Map<String, Value> = inputs.keys().map(|name| (name.clone(), json!({}))).collect();
        plan["inputs"] = json!({ "type": "object", "properties": any });
    }
    let text = PlanInput::Text(plan.to_string()).text(&visit, Driver::Server)?;
    let request = input.request_id.as_deref();
    let plan = keep(&visit, text, None, None, request).await?.id;
    let start = Start {
        tenant: visit.guest.tenant.clone(),
        plan,
        revision: None,
        inputs: Arc::new(Value::Object(inputs)),
        driver: Driver::Server,
        actor: visit.agent(),
        request: input.request_id,
    };
    let started = visit.desk.engine.start(start).await?;
    let identity = Identity { tenant: visit.guest.tenant.clone(), execution: started.execution };
    end(&visit, &identity, false).await
}

/// Parameters that mean themselves: a text that looks like an expression goes in as an input, where it is none.
fn literal(parameters: Map<String, Value>) -> (Map<String, Value>, Map<String, Value>) {
    let mut inputs = Map::new();
    let mut plain = Map::new();
    for (number, (name, value)) in parameters.into_iter().enumerate() {
        if value.to_string().contains("{{") {
            let input = format!("parameter_{number}");
            plain.insert(name, json!(format!("{{{{ inputs.{input} }}}}")));
            inputs.insert(input, value);
        } else {
            plain.insert(name, value);
        }
    }
    (plain, inputs)
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
