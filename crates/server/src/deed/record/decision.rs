//! What an agent decided about an execution, and why.

use crate::deed::Caller;
use crate::deed::record::{Details, part_of, say};
use crate::fault::Fault;
use rutter_core::execution::Identity;
use rutter_core::execution::input::{Input as Asked, Refusal};
use rutter_core::execution::view::Ask;
use rutter_core::id::StepId;
use rutter_core::journal::event;
use rutter_core::journal::event::Question;
use rutter_engine::Signal;
use schemars::JsonSchema;
use serde::Deserialize;

/// A decision and its reason.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionRecord {
    pub(crate) action: Decided,
    pub(crate) reason: String,
    pub(crate) details: Option<Details>,
    pub(crate) step_id: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Decided {
    Stop,
    Continue,
    End,
}

/// Puts it on record, with what follows from it, and says which word it was.
pub(crate) async fn record(
    caller: &Caller,
    identity: &Identity,
    decision: DecisionRecord,
    key: Option<String>,
) -> Result<&'static str, Fault> {
    let DecisionRecord { action, reason, details, step_id } = decision;
    let step = step_id.as_deref().map(StepId::new);
    let word = match action {
        Decided::Stop => "stop",
        Decided::Continue => "continue",
        Decided::End => "end",
    };
    let said = Signal::RecordDecision {
        step: step.clone(),
        decision: word.to_owned(),
        reason: reason.clone(),
        details: details.map(|Details(details)| details),
    };
    let follows = part_of(key.as_deref(), word);
    match closing(action, &reason) {
        Some((asked, closing)) => {
            let actor = caller.actor.clone();
            let admitted =
                caller.desk.engine.look(identity, move |execution| execution.admit(&actor, &asked)).await?;
            // What cannot be stopped any more is refused, or was stopped by this very request: nothing is added to it.
            if admitted.is_ok() {
                say(caller, identity, said, key).await?;
            }
            say(caller, identity, closing, follows).await?;
        }
        None => {
            let about = step.clone();
            let open = caller.desk.engine.look(identity, move |execution| execution.questions()).await?;
            let question = question(&open, about.as_ref())?;
            say(caller, identity, said, key).await?;
            if let Some(about) = question {
                let answer = event::Answer::Continue;
                let signal = Signal::Answer { about, answer, reason, result: None, evidence: None };
                say(caller, identity, signal, follows).await?;
            }
        }
    }
    Ok(word)
}

/// What brings the execution to its end, in the core's words and in a letter's.
fn closing(action: Decided, reason: &str) -> Option<(Asked, Signal)> {
    let reason = || reason.to_owned();
    match action {
        Decided::Stop => Some((
            Asked::Cancel { reason: reason(), undo: None },
            Signal::Cancel { reason: reason(), undo: None },
        )),
        Decided::End => Some((Asked::RecordEnd { reason: reason() }, Signal::RecordEnd { reason: reason() })),
        Decided::Continue => None,
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
