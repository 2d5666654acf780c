//! `record_decision`: what the agent decided about an execution, and why.

use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::recording::{Details, Recorded, part_of, say};
use crate::mcp::visit::Visit;
use rutter_core::execution::input::{Input as Asked, Refusal};
use rutter_core::execution::view::Ask;
use rutter_core::id::StepId;
use rutter_core::journal::event;
use rutter_core::journal::event::Question;
use rutter_engine::Signal;
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "record_decision",
        title: "Record a decision",
        description: "Record what you decided and why. `stop` cancels what is under way; `continue` also answers a \
                      failed step or a limit that waits for a decision; `end` says that you have done all you will do.",
        nature: Nature::Steers,
        toolsets: &[Toolset::Default, Toolset::Journal],
    };
    Tool::new::<Input, Recorded, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    execution_id: String,
    action: Action,
    reason: String,
    details: Option<Details>,
    step_id: Option<String>,
    request_id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Stop,
    Continue,
    End,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let identity = visit.identity(&input.execution_id);
    let Input { action, reason, details, .. } = input;
    let request = input.request_id.as_deref();
    let step = input.step_id.as_deref().map(StepId::new);
    let word = match action {
        Action::Stop => "stop",
        Action::Continue => "continue",
        Action::End => "end",
    };
    let said = Signal::RecordDecision {
        step: step.clone(),
        decision: word.to_owned(),
        reason: reason.clone(),
        details: details.map(|Details(details)| details),
    };
    let follows = part_of(request, word);
    match closing(action, &reason) {
        Some((asked, closing)) => {
            let actor = visit.agent();
            let admitted =
                visit.desk.engine.look(&identity, move |execution| execution.admit(&actor, &asked)).await?;
            // What cannot be stopped any more is refused, or was stopped by this very request: nothing is added to it.
            if admitted.is_ok() {
                say(&visit, &identity, said, input.request_id).await?;
            }
            say(&visit, &identity, closing, follows).await?;
        }
        None => {
            let about = step.clone();
            let open = visit.desk.engine.look(&identity, move |execution| execution.questions()).await?;
            let question = question(&open, about.as_ref())?;
            say(&visit, &identity, said, input.request_id).await?;
            if let Some(about) = question {
                let answer = event::Answer::Continue;
                let signal = Signal::Answer { about, answer, reason, result: None, evidence: None };
                say(&visit, &identity, signal, follows).await?;
            }
        }
    }
    let what = format!("recorded the decision to {word}");
    Answer::done(&Recorded::of(&visit, &identity, &what).await?)
}

/// What brings the execution to its end, in the core's words and in a letter's.
fn closing(action: Action, reason: &str) -> Option<(Asked, Signal)> {
    let reason = || reason.to_owned();
    match action {
        Action::Stop => Some((
            Asked::Cancel { reason: reason(), undo: None },
            Signal::Cancel { reason: reason(), undo: None },
        )),
        Action::End => Some((Asked::RecordEnd { reason: reason() }, Signal::RecordEnd { reason: reason() })),
        Action::Continue => None,
    }
}

/// The one thing that waits for a decision, about the step if one is named.
fn question(open: &[Ask], about: Option<&StepId>) -> Result<Option<Question>, Refusal> {
    let fitting = open.iter().filter_map(|ask| match ask {
        Ask::Failure { step, .. } if about.is_none_or(|about| about == step) => {
            Some(Question::Failure(step.clone()))
        }
        Ask::Limit { limit, .. } if about.is_none() => Some(Question::Limit(*limit)),
        _ => None,
    });
    let mut fitting: Vec<Question> = fitting.collect();
    match fitting.len() {
        0 | 1 => Ok(fitting.pop()),
        _ => Err(Refusal::new("execution.no_question", "more than one thing waits for a decision")
            .hint("name the step in step_id")),
    }
}
