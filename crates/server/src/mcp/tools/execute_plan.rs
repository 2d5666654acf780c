//! `execute_plan`: begins an execution, which is on record before anything is called, and waits a while.

use crate::fault::Fault;
use crate::guest::Toolset;
use crate::limits::WAIT_DEFAULT;
use crate::mcp::ask::{self, Settled, settle};
use crate::mcp::tickets;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::execution::ExecutionAnswer;
use crate::mcp::tools::plan::{Drives, SamePlanInput, keep};
use crate::mcp::visit::Visit;
use crate::mcp::wait::settled;
use rutter_core::execution::Identity;
use rutter_core::id::PlanId;
use rutter_engine::Start;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "execute_plan",
        title: "Execute a plan",
        description: "Start carrying out a saved plan (or one given here). It is on record first and goes on without \
                      you; this waits up to `wait_seconds` and returns a handle either way. Give a `request_id` so \
                      that asking again after a lost answer starts nothing twice. driver=agent: you call the tools \
                      and use record_step.",
        nature: Nature::Acts,
        toolsets: &[Toolset::Default],
    };
    Tool::new::<Input, ExecutionAnswer, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    plan_id: Option<String>,
    /// The newest, if none is named.
    revision: Option<u32>,
    /// A plan to save and execute at once, instead of `plan_id`.
    plan: Option<SamePlanInput>,
    #[serde(default)]
    inputs: Map<String, Value>,
    #[serde(default)]
    driver: Drives,
    /// The same id means the same request.
    request_id: Option<String>,
    /// 0 to 45, default 20.
    #[schemars(range(max = 45))]
    wait_seconds: Option<u64>,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let span = input.wait_seconds.map_or(WAIT_DEFAULT, Duration::from_secs);
    if let Some(heard) = ask::hear(&visit).await? {
        return follow(&visit, &heard.identity, span, heard.declined).await;
    }
    let plan = match (&input.plan_id, &input.plan) {
        (Some(id), None) => PlanId::new(id),
        (None, Some(plan)) => {
            let text = plan.0.text(&visit, input.driver.into())?;
            keep(&visit, text, None, None, input.request_id.as_deref()).await?.id
        }
        _ => {
            return Err(Fault::new("server.arguments", "give either plan_id or plan")
                .hint("save_plan returns a plan_id; find_plans finds one"));
        }
    };
    let start = Start {
        tenant: visit.guest.tenant.clone(),
        plan,
        revision: input.revision,
        inputs: Arc::new(Value::Object(input.inputs)),
        driver: input.driver.into(),
        actor: visit.agent(),
        request: input.request_id,
    };
    let started = visit.desk.engine.start(start).await?;
    let identity = Identity { tenant: visit.guest.tenant.clone(), execution: started.execution };
    if visit.takes_tickets && input.driver == Drives::Server {
        return tickets::give(&visit, &identity, span).await;
    }
    // Nothing happens by itself when the agent is the one to act.
    let span = if input.driver == Drives::Agent { Duration::ZERO } else { span };
    follow(&visit, &identity, span, false).await
}

/// Waits, asks where it must, and says how it stands.
pub(crate) async fn follow(
    visit: &Visit,
    identity: &Identity,
    span: Duration,
    declined: bool,
) -> Result<Answer, Fault> {
    let settled = match declined {
        true => Settled::View(Box::new(settled(visit, identity, span).await?)),
        false => settle(visit, identity, span).await?,
    };
    match settled {
        Settled::View(view) => Answer::done(&ExecutionAnswer::of(visit, &view)),
        Settled::Ask(required) => Ok(Answer::Ask(*required)),
    }
}
