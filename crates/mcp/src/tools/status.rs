//! `status`: the state of an execution; waits a while if asked to.

use crate::ask::{self, SettledOrAsking, settle};
use crate::execution_answer::{ExecutionAnswer, no_execution};
use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use crate::wait::settled;
use rutter_app::error::AppError;
use rutter_app::limits::ANSWER_BYTES;
use rutter_app::limits::wait_time;
use rutter_app::principal::McpToolset;
use rutter_app::terse::{bytes, fitting, shortened};
use rutter_core::execution::view::{ExecutionSnapshot, StepSnapshot};
use rutter_core::text::cut;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Size of a result that contains the brief.
const BRIEF_BYTES: usize = 3_200;
const FAILURE_CHARS_MAX: usize = 160;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "status",
        title: "Status of an execution",
        description: "The state of an execution, what it waits for, what to do next. `wait_seconds` waits until it \
                      ends or waits for a person. `brief`: the history in a few hundred words, for taking over.",
        behavior: ToolBehavior::Reads,
        toolsets: &[McpToolset::Default],
    };
    McpToolDefinition::new::<StatusArguments, ExecutionAnswer, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusArguments {
    execution_id: String,
    #[serde(default)]
    include_step_details: bool,
    /// Next page of steps.
    after_step: Option<String>,
    #[serde(default)]
    brief: bool,
    #[serde(default)]
    #[schemars(range(max = 45))]
    wait_seconds: u64,
}

async fn run(request: ToolRequest, input: StatusArguments) -> Result<ToolAnswer, AppError> {
    let identity = request.identity(&input.execution_id);
    let span = wait_time(Some(input.wait_seconds), Duration::ZERO)?;
    if request.app.query.execution(&identity).await?.is_none() {
        return Err(no_execution(&identity));
    }
    let heard = ask::read_replies(&request).await?;
    let is_patient = heard.is_some() || input.wait_seconds > 0;
    let declined = heard.is_some_and(|heard| heard.declined);
    let view = match is_patient && !declined {
        false => settled(&request, &identity, span).await?,
        true => match settle(&request, &identity, span).await? {
            SettledOrAsking::View(view) => *view,
            SettledOrAsking::Ask(required) => return Ok(ToolAnswer::Ask(*required)),
        },
    };
    if input.brief {
        let brief = request.app.brief(&identity).await?;
        return ToolAnswer::done(&briefly(ExecutionAnswer::of(&request, &view), brief));
    }
    if input.include_step_details || input.after_step.is_some() {
        let mut answer = ExecutionAnswer::of(&request, &view);
        list(&mut answer, &view, input.after_step.as_deref())?;
        return ToolAnswer::done(&answer);
    }
    ToolAnswer::done(&ExecutionAnswer::with_results(&request, &identity, &view).await?)
}

/// The brief lists every question, so one of them in full is enough.
fn briefly(mut answer: ExecutionAnswer, brief: String) -> ExecutionAnswer {
    answer.questions.truncate(1);
    if bytes(&answer) > BRIEF_BYTES / 2 {
        answer.questions.clear();
    }
    let room = BRIEF_BYTES.saturating_sub(bytes(&answer) + r#","brief":"#.len());
    let brief = shortened(&Value::String(brief), room);
    answer.brief = brief.as_str().map(str::to_owned);
    answer
}

fn list(answer: &mut ExecutionAnswer, view: &ExecutionSnapshot, after: Option<&str>) -> Result<(), AppError> {
    let first = match after {
        None => 0,
        Some(after) => match view.steps.iter().position(|step| step.id.as_str() == after) {
            Some(at) => at + 1,
            None => {
                let message = format!("after_step is {after:?}, but the plan has no such step");
                return Err(AppError::new("server.arguments", message));
            }
        },
    };
    let room = ANSWER_BYTES.saturating_sub(bytes(answer) + r#","steps":[],"more":1000"#.len());
    answer.steps = fitting(view.steps[first..].iter().map(row), room);
    answer.more = Some(view.steps.len() - first - answer.steps.len()).filter(|more| *more > 0);
    Ok(())
}

/// Besides id, tool and status only unusual fields.
fn row(step: &StepSnapshot) -> Value {
    let mut row = json!({ "id": step.id, "tool": step.tool, "status": step.status });
    if step.attempts > 1 {
        row["attempts"] = json!(step.attempts);
    }
    if step.by_hand {
        row["by_hand"] = json!(true);
    }
    if let Some(items) = step.items {
        row["items"] = json!({ "settled": items.0, "total": items.1 });
    }
    if let Some(failure) = &step.failure {
        let message = cut(&failure.message, FAILURE_CHARS_MAX);
        row["failure"] = json!({ "category": failure.category, "message": message });
    }
    if let Some(reason) = &step.skip_reason {
        row["skip_reason"] = json!(cut(reason, FAILURE_CHARS_MAX));
    }
    row
}
