//! `execute_plan`: starts an execution, which is recorded before any call, and waits a while.

use crate::ask::{self};
use crate::execution_answer::ExecutionAnswer;
use crate::follow::follow;
use crate::tickets;
use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use rutter_app::error::AppError;
use rutter_app::limits::{WAIT_DEFAULT, wait_time};
use rutter_app::options::ExecutionOptions;
use rutter_app::plans::{DriverChoice, SamePlanInput};
use rutter_app::principal::McpToolset;
use rutter_app::start::{ExecutionRequest, PlanChoice};
use rutter_core::execution::ExecutionIdentity;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "execute_plan",
        title: "Execute a plan",
        description: "Execute a saved plan, or one given here. It continues without you; this waits up to \
                      `wait_seconds` and returns a handle either way. The same `request_id` never starts it \
                      twice. driver=agent: you call the tools and record_step.",
        behavior: ToolBehavior::Acts,
        toolsets: &[McpToolset::Default],
    };
    McpToolDefinition::new::<ExecutePlanArguments, ExecutionAnswer, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecutePlanArguments {
    /// Or its name.
    plan_id: Option<String>,
    /// Default: the newest.
    revision: Option<u32>,
    /// Instead of plan_id.
    plan: Option<SamePlanInput>,
    #[serde(default)]
    inputs: Map<String, Value>,
    #[serde(default)]
    driver: DriverChoice,
    request_id: Option<String>,
    execution_options: Option<ExecutionOptions>,
    /// Default 20.
    #[schemars(range(max = 45))]
    wait_seconds: Option<u64>,
}

async fn run(tool_request: ToolRequest, input: ExecutePlanArguments) -> Result<ToolAnswer, AppError> {
    let span = wait_time(input.wait_seconds, WAIT_DEFAULT)?;
    if let Some(heard) = ask::read_replies(&tool_request).await? {
        return follow(&tool_request, &heard.identity, span, heard.declined).await;
    }
    let driver = input.driver.into();
    let given = input.plan.as_ref().map(|plan| plan.0.text(&tool_request.principal.tenant, driver)).transpose()?;
    let request = ExecutionRequest {
        plan: PlanChoice::of(input.plan_id.as_deref(), input.revision, given)?,
        inputs: Arc::new(Value::Object(input.inputs)),
        driver,
        options: input.execution_options,
        request_key: input.request_id,
    };
    let started = tool_request.app.execute(&tool_request.principal(), request).await?;
    let identity = ExecutionIdentity { tenant: tool_request.principal.tenant.clone(), execution: started.execution };
    if tool_request.takes_tickets && input.driver == DriverChoice::Server {
        return tickets::give(&tool_request, &identity, span).await;
    }
    // Nothing happens until the agent acts.
    let span = if input.driver == DriverChoice::Agent { Duration::ZERO } else { span };
    follow(&tool_request, &identity, span, false).await
}
