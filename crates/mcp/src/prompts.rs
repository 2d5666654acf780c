//! Prompts: plan a goal, handle a failure, take over an execution.

mod execution;
mod goal;

use crate::guard::error_of;
use rmcp::ErrorData;
use rmcp::model::{
    CacheScope, GetPromptRequestParams, GetPromptResult, JsonObject, ListPromptsResult, Prompt, PromptArgument,
    PromptMessage, Role,
};
use rutter_app::app::App;
use rutter_app::principal::Principal;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::ExecutionId;
use serde_json::Value;

pub(crate) const PLAN_GOAL: &str = "plan_goal";
pub(crate) const HANDLE_FAILURE: &str = "handle_failure";
pub(crate) const TAKE_OVER: &str = "take_over";

pub(crate) const COMPLEXITIES: &[&str] = &["simple", "medium", "complex"];
/// Suggestions; other values are accepted.
pub(crate) const DOMAINS: &[&str] = &["commerce", "data", "deployment", "documents", "general", "operations", "travel"];

/// The longest argument.
const ARGUMENT_BYTES_MAX: usize = 8 << 10;
const LIST_TTL_MS: u64 = 3_600_000;

pub(crate) fn list() -> ListPromptsResult {
    let argument = |name: &str, about: &str, required: bool| {
        PromptArgument::new(name).with_description(about).with_required(required)
    };
    let execution = || vec![argument("execution_id", "exec_…", true)];
    let prompt = |name: &str, title: &str, about: &str, arguments: Vec<PromptArgument>| {
        Prompt::new(name, Some(about), Some(arguments)).with_title(title)
    };
    let prompts = vec![
        prompt(
            HANDLE_FAILURE,
            "Handle a failure",
            "What went wrong in an execution, the possible decisions, and the exact calls",
            execution(),
        ),
        prompt(
            PLAN_GOAL,
            "Plan a goal",
            "Draft a plan with compensation, probes, failure policies and approvals, from the tools that fit",
            vec![
                argument("goal", "What the plan should achieve", true),
                argument("complexity", "simple, medium (default) or complex", false),
                argument("domain", "Such as commerce, data, deployment, documents, operations, travel", false),
            ],
        ),
        prompt(
            TAKE_OVER,
            "Take over an execution",
            "What happened so far, what must not be repeated, and how to continue",
            execution(),
        ),
    ];
    let list = ListPromptsResult { prompts, ..ListPromptsResult::default() };
    list.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Public)
}

pub(crate) async fn get(
    app: &App,
    principal: &Principal,
    request: GetPromptRequestParams,
) -> Result<GetPromptResult, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let text = match request.name.as_str() {
        PLAN_GOAL => {
            let arguments = PromptArguments::read(PLAN_GOAL, arguments, &["goal", "complexity", "domain"])?;
            let complexity = arguments.optional("complexity").unwrap_or("medium");
            if !COMPLEXITIES.contains(&complexity) {
                return Err(arguments.wrong("complexity", "simple, medium or complex"));
            }
            let goal = arguments.required("goal", "the goal, in words")?;
            let domain = arguments.optional("domain");
            goal::text(app, principal, goal, complexity, domain).await.map_err(error_of)?
        }
        HANDLE_FAILURE => {
            let identity = execution_of(HANDLE_FAILURE, principal, arguments)?;
            execution::failure(app, &identity).await.map_err(error_of)?
        }
        TAKE_OVER => {
            let identity = execution_of(TAKE_OVER, principal, arguments)?;
            execution::take_over(app, &identity).await.map_err(error_of)?
        }
        name => {
            let message = format!("there is no prompt {name:?}; there are handle_failure, plan_goal and take_over");
            return Err(ErrorData::invalid_params(message, None));
        }
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]))
}

fn execution_of(
    prompt: &'static str,
    principal: &Principal,
    arguments: JsonObject,
) -> Result<ExecutionIdentity, ErrorData> {
    let arguments = PromptArguments::read(prompt, arguments, &["execution_id"])?;
    let id = arguments.required("execution_id", "the id of an execution, such as exec_…")?;
    Ok(ExecutionIdentity { tenant: principal.tenant.clone(), execution: ExecutionId::new(id) })
}

/// The arguments of a prompt: strings, and only known names.
struct PromptArguments {
    prompt: &'static str,
    values: JsonObject,
}

impl PromptArguments {
    fn read(prompt: &'static str, values: JsonObject, known: &[&str]) -> Result<PromptArguments, ErrorData> {
        let arguments = PromptArguments { prompt, values };
        for (name, value) in &arguments.values {
            if !known.contains(&name.as_str()) {
                let message = format!("{prompt} has no argument {name:?}; it has {}", known.join(", "));
                return Err(ErrorData::invalid_params(message, None));
            }
            if value.as_str().is_none_or(|text| text.len() > ARGUMENT_BYTES_MAX) {
                return Err(arguments.wrong(name, &format!("text of at most {ARGUMENT_BYTES_MAX} bytes")));
            }
        }
        Ok(arguments)
    }

    /// Clients send nothing, or an empty string, for omitted arguments.
    fn optional(&self, name: &str) -> Option<&str> {
        self.values.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty())
    }

    fn required(&self, name: &str, expected: &str) -> Result<&str, ErrorData> {
        self.optional(name).ok_or_else(|| self.wrong(name, expected))
    }

    fn wrong(&self, name: &str, expected: &str) -> ErrorData {
        ErrorData::invalid_params(format!("{} of {} must be {expected}", name, self.prompt), None)
    }
}
