//! `status`: the state of an execution; waits a while if asked to.

use crate::ask::{self, SettledOrAsking, settle};
use crate::execution_answer::{ExecutionAnswer, inspect_execution, no_execution};
use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use crate::wait::settled;
use rutter_app::error::AppError;
use rutter_app::limits::ANSWER_BYTES;
use rutter_app::limits::wait_time;
use rutter_app::principal::McpToolset;
use rutter_app::terse::{bytes, fitting, shortened};
use rutter_app::view::StepView;
use rutter_app::wording;
use rutter_core::execution::Execution;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

/// Size of a result that contains the brief.
const BRIEF_BYTES: usize = 3_200;

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
        // Read again, so that the steps and the rest of the answer are of one moment.
        let look = |execution: &Execution| (execution.view(), StepView::all(execution));
        let (view, steps) = inspect_execution(&request, &identity, look).await?;
        let mut answer = ExecutionAnswer::of(&request, &view);
        list(&mut answer, &steps, input.after_step.as_deref())?;
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
    let brief = shortened(&Value::String(wording::without_next(&brief)), room);
    answer.brief = brief.as_str().map(str::to_owned);
    answer
}

fn list(answer: &mut ExecutionAnswer, steps: &[StepView], after: Option<&str>) -> Result<(), AppError> {
    let first = match after {
        None => 0,
        Some(after) => match steps.iter().position(|step| step.id == after) {
            Some(at) => at + 1,
            None => {
                let message = format!("after_step is {after:?}, but the plan has no such step");
                return Err(AppError::new("server.arguments", message));
            }
        },
    };
    let room = ANSWER_BYTES.saturating_sub(bytes(answer) + r#","steps":[],"more":1000"#.len());
    answer.steps = fitting(steps[first..].iter().map(StepView::short), room);
    answer.more = Some(steps.len() - first - answer.steps.len()).filter(|more| *more > 0);
    Ok(())
}
