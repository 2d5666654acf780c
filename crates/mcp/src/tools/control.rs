//! `control`: steers an execution and returns its state. A command that changes nothing is refused.

use crate::ask::{self, SettledOrAsking, settle};
use crate::execution_answer::{ExecutionAnswer, inspect_execution};
use crate::follow::follow;
use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use rutter_app::command::{Command, CommandArguments, part, reason_schema_for_agents, verbs_for_agents};
use rutter_app::error::AppError;
use rutter_app::limits::wait_time;
use rutter_app::principal::{McpToolset, Principal};
use rutter_app::terse::{object, text};
use rutter_app::verb::Verb;
use rutter_app::wording;
use rutter_core::execution::view::{ExecutionSnapshot, PendingQuestion};
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::{ExecutionId, PartId};
use rutter_core::plan::Driver;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;

const WAIT_DEFAULT: Duration = Duration::from_secs(10);

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "control",
        title: "Steer an execution",
        description: "Pause, resume, cancel or kill an execution; decide about a failed step or item (retry, skip, \
                      resolve, stop, continue), also after the end; reopen what ended; undo what was done, now or after \
                      the end; take_over to call tools yourself, hand_back.",
        behavior: ToolBehavior::Steers,
        toolsets: &[McpToolset::Default],
    };
    McpToolDefinition::new::<ControlArguments, ExecutionAnswer, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ControlArguments {
    execution_id: String,
    #[schemars(schema_with = "verbs_for_agents")]
    action: Verb,
    /// `step` or `step[item]`.
    step_id: Option<String>,
    /// undo: only these and their dependents.
    steps: Option<Vec<String>>,
    #[serde(default)]
    #[schemars(schema_with = "reason_schema_for_agents")]
    reason: Option<String>,
    /// cancel: default as the plan says.
    undo: Option<bool>,
    /// resume: after a hold, let happen now what came due. Only a person ends a hold, so agents are not offered it.
    #[schemars(skip)]
    expire: Option<bool>,
    /// resume: as `expire`, of these alone: a step, `step[item]`, `deadline`, `time`, `agent`.
    #[schemars(skip)]
    expire_only: Option<Vec<String>>,
    /// resolve: how you know.
    #[serde(default)]
    #[schemars(schema_with = "text")]
    evidence: Option<Value>,
    /// resolve: result for later steps.
    #[serde(default)]
    #[schemars(schema_with = "object")]
    result: Option<Value>,
    happened: Option<bool>,
    /// answer: the verb.
    #[schemars(skip)]
    with: Option<Verb>,
    /// reply: what the tool asked for.
    #[serde(default)]
    #[schemars(schema_with = "object")]
    reply: Option<Map<String, Value>>,
    /// Idempotency key.
    request_id: Option<String>,
    /// Default 10.
    #[schemars(range(max = 45))]
    wait_seconds: Option<u64>,
}

async fn run(request: ToolRequest, input: ControlArguments) -> Result<ToolAnswer, AppError> {
    let identity = request.identity(&input.execution_id);
    let span = wait_time(input.wait_seconds, WAIT_DEFAULT)?;
    let part = input.step_id.as_deref().map(part).transpose()?;
    if let Some(heard) = ask::read_replies(&request).await? {
        // The action was already performed, or shown to the user, in the first round of this call.
        return match input.action {
            Verb::Resolve if heard.declined => {
                let view = request.app.view(&heard.identity).await?;
                settled_by_a_person(&request, &heard.identity, &view, part.as_ref()).await
            }
            _ => follow(&request, &heard.identity, span, heard.declined).await,
        };
    }
    let app = &request.app;
    let view = inspect_execution(&request, &identity, Execution::view).await?;
    // Nothing happens until the agent acts.
    let is_agents = match input.action {
        Verb::TakeOver => true,
        Verb::HandBack => false,
        _ => view.driver == Driver::Agent,
    };
    let span = if is_agents { Duration::ZERO } else { span };
    let is_resolve = input.action == Verb::Resolve;
    match app.perform(input.command(request.principal())).await {
        Ok(()) => follow(&request, &identity, span, false).await,
        Err(error) if is_resolve && error.code == "execution.not_a_person" && doubt(&view, part.as_ref()).is_some() => {
            by_a_person(&request, &identity, &view, part.as_ref(), span).await
        }
        Err(error) if error.code.starts_with("execution.") => {
            let view = app.view(&identity).await?;
            let next = format!("next: {}", wording::next(&view, &request.reader()));
            let hint = error.hint.as_ref().map_or(next.clone(), |hint| format!("{hint}; {next}"));
            Err(error.hint(hint))
        }
        Err(app_error) => Err(app_error),
    }
}

impl ControlArguments {
    fn command(self, principal: Principal) -> Command {
        let arguments = CommandArguments {
            step: self.step_id,
            steps: self.steps,
            undo: self.undo,
            expire: self.expire,
            expire_only: self.expire_only,
            happened: self.happened,
            result: self.result,
            evidence: self.evidence,
            with: self.with,
            reply: self.reply,
            ..Default::default()
        };
        Command {
            principal,
            execution: ExecutionId::new(&self.execution_id),
            verb: self.action,
            arguments,
            reason: self.reason,
            request_key: self.request_id,
            if_match: None,
        }
    }
}

fn doubt<'a>(view: &'a ExecutionSnapshot, part: Option<&PartId>) -> Option<&'a PendingQuestion> {
    view.questions.iter().find(|ask| match ask {
        PendingQuestion::Doubt { part: doubted, .. } => part.is_none_or(|part| part == doubted),
        _ => false,
    })
}

/// An agent cannot settle a doubt: the user of the client is asked, if the client can.
async fn by_a_person(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    view: &ExecutionSnapshot,
    part: Option<&PartId>,
    span: Duration,
) -> Result<ToolAnswer, AppError> {
    if !doubt(view, part).is_some_and(|ask| request.may_ask(ask)) {
        return settled_by_a_person(request, identity, view, part).await;
    }
    match settle(request, identity, span).await? {
        SettledOrAsking::Ask(required) => Ok(ToolAnswer::Ask(*required)),
        SettledOrAsking::View(view) => settled_by_a_person(request, identity, &view, part).await,
    }
}

/// The state once no doubt is left; until then a refusal that says who must act.
async fn settled_by_a_person(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    view: &ExecutionSnapshot,
    part: Option<&PartId>,
) -> Result<ToolAnswer, AppError> {
    if doubt(view, part).is_none() {
        return ToolAnswer::done(&ExecutionAnswer::with_results(request, identity, view).await?);
    }
    let place = request.reader().place(&identity.execution);
    let message = "only a person may settle a doubt; nothing was changed";
    Err(AppError::new("execution.not_a_person", message)
        .hint(format!("tell the user to check whether it happened, and to answer {place}")))
}
