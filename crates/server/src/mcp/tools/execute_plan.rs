//! `execute_plan`: begins an execution, which is on record before anything is called, and waits a while.

use crate::deed::options::ExecutionOptions;
use crate::deed::plan::{Drives, SamePlanInput, keep, no_plan};
use crate::fault::Fault;
use crate::guest::Toolset;
use crate::limits::WAIT_DEFAULT;
use crate::mcp::ask::{self, Settled, settle};
use crate::mcp::tickets;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::execution::ExecutionAnswer;
use crate::mcp::visit::Visit;
use crate::mcp::wait::{settled, span};
use rutter_core::execution::Identity;
use rutter_core::id::PlanId;
use rutter_core::port;
use rutter_engine::{Error, Start};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "execute_plan",
        title: "Execute a plan",
        description: "Carry out a saved plan, or one given here. It goes on without you; this waits up to \
                      `wait_seconds` and returns a handle either way. A `request_id` makes asking again start \
                      nothing twice. driver=agent: you call the tools and record_step.",
        nature: Nature::Acts,
        toolsets: &[Toolset::Default],
    };
    Tool::new::<Input, ExecutionAnswer, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    plan_id: Option<String>,
    /// Default: the newest.
    revision: Option<u32>,
    /// Instead of plan_id.
    plan: Option<SamePlanInput>,
    #[serde(default)]
    inputs: Map<String, Value>,
    #[serde(default)]
    driver: Drives,
    request_id: Option<String>,
    execution_options: Option<ExecutionOptions>,
    /// Default 20.
    #[schemars(range(max = 45))]
    wait_seconds: Option<u64>,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let span = span(input.wait_seconds, WAIT_DEFAULT)?;
    if let Some(heard) = ask::hear(&visit).await? {
        return follow(&visit, &heard.identity, span, heard.declined).await;
    }
    let plan = match (&input.plan_id, &input.plan) {
        (Some(id), None) => PlanId::new(id),
        (None, Some(plan)) => {
            let text = plan.0.text(&visit.guest.tenant, input.driver.into())?;
            keep(&visit.caller(), text, None, None, input.request_id.as_deref()).await?.id
        }
        _ => {
            return Err(Fault::new("server.arguments", "give either plan_id or plan")
                .hint("save_plan returns a plan_id; find_plans finds one"));
        }
    };
    let revision = match &input.execution_options {
        Some(options) => {
            options.revision(&visit.caller(), &plan, input.revision, input.driver.into()).await?
        }
        None => input.revision,
    };
    let start = Start {
        tenant: visit.guest.tenant.clone(),
        plan: plan.clone(),
        revision,
        inputs: Arc::new(Value::Object(input.inputs)),
        driver: input.driver.into(),
        actor: visit.agent(),
        request: input.request_id,
    };
    let started = visit.desk.engine.start(start).await.map_err(|error| match error {
        Error::Store(port::Error::NotFound { what: "plan", .. }) => no_plan(&plan),
        error => error.into(),
    })?;
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
        Settled::View(view) => Answer::done(&ExecutionAnswer::with_results(visit, identity, &view).await?),
        Settled::Ask(required) => Ok(Answer::Ask(*required)),
    }
}
