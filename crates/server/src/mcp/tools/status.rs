//! `status`: how an execution stands; waits a while if asked to.

use crate::fault::Fault;
use crate::guest::Toolset;
use crate::limits::ANSWER_BYTES;
use crate::mcp::ask::{self, Settled, settle};
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::execution::{ExecutionAnswer, no_execution};
use crate::mcp::tools::terse::{bytes, fitting, shortened};
use crate::mcp::visit::Visit;
use crate::mcp::wait::{settled, span};
use crate::words::cut;
use rutter_core::execution::view::{StepView, View};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// An answer with the story so far, whole.
const BRIEF_BYTES: usize = 3_200;
const WHY_CHARS_MAX: usize = 160;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "status",
        title: "Status of an execution",
        description: "Where an execution stands, what it waits for, what to do next. `wait_seconds` waits until it \
                      ends or needs somebody. `brief`: the story so far in a few hundred words, for taking over.",
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
    /// Next page of steps.
    after_step: Option<String>,
    #[serde(default)]
    brief: bool,
    #[serde(default)]
    #[schemars(range(max = 45))]
    wait_seconds: u64,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let identity = visit.identity(&input.execution_id);
    let span = span(Some(input.wait_seconds), Duration::ZERO)?;
    if visit.desk.query.execution(&identity).await?.is_none() {
        return Err(no_execution(&identity));
    }
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
    if input.brief {
        let brief = visit.desk.engine.brief(&identity).await?;
        return Answer::done(&briefly(ExecutionAnswer::of(&visit, &view), brief));
    }
    if input.include_step_details || input.after_step.is_some() {
        let mut answer = ExecutionAnswer::of(&visit, &view);
        list(&mut answer, &view, input.after_step.as_deref())?;
        return Answer::done(&answer);
    }
    Answer::done(&ExecutionAnswer::with_results(&visit, &identity, &view).await?)
}

/// The brief names every question itself, so that one of them written out is enough.
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

fn list(answer: &mut ExecutionAnswer, view: &View, after: Option<&str>) -> Result<(), Fault> {
    let first = match after {
        None => 0,
        Some(after) => match view.steps.iter().position(|step| step.id.as_str() == after) {
            Some(at) => at + 1,
            None => {
                let message = format!("after_step is {after:?}, and the plan has no such step");
                return Err(Fault::new("server.arguments", message));
            }
        },
    };
    let room = ANSWER_BYTES.saturating_sub(bytes(answer) + r#","steps":[],"more":1000"#.len());
    answer.steps = fitting(view.steps[first..].iter().map(row), room);
    answer.more = Some(view.steps.len() - first - answer.steps.len()).filter(|more| *more > 0);
    Ok(())
}

/// Only what is out of the ordinary stands beside name, tool and status.
fn row(step: &StepView) -> Value {
    let mut row = json!({ "id": step.id, "tool": step.tool, "status": step.status });
    if step.attempts > 1 {
        row["attempts"] = json!(step.attempts);
    }
    if step.by_hand {
        row["by_hand"] = json!(true);
    }
    if let Some(items) = step.items {
        row["items"] = json!(items);
    }
    if let Some(failure) = &step.failure {
        row["why"] = json!(cut(&failure.to_string(), WHY_CHARS_MAX));
    }
    row
}
