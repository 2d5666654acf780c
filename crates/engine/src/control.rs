//! What people and agents say to an execution in their own words: by step, without hashes or question names.
//!
//! It is posted as it was said. Whoever drives the execution looks at what it asks, and takes it exactly.

use crate::engine::Engine;
use crate::error::Error;
use crate::signal::{Said, Signal};
use rutter_core::actor::Actor;
use rutter_core::execution::input::Refusal;
use rutter_core::execution::view::Ask;
use rutter_core::execution::{Execution, Identity};
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, StepId, ToolName};
use rutter_core::journal::event::{Answer, Question};
use rutter_core::plan::Driver;
use rutter_core::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Control {
    Pause,
    Resume,
    /// `undo`: undo what was done; nothing said follows the plan.
    Cancel {
        undo: Option<bool>,
    },
    Kill,
    /// Answers what is asked about a step, or about the one thing that is asked.
    Answer {
        about: Option<PartId>,
        answer: Answer,
    },
    /// Done by hand: the evidence says how one knows. `happened` false means that it was certainly not done.
    Resolve {
        part: Option<PartId>,
        happened: bool,
        result: Option<Arc<Value>>,
        evidence: Option<Arc<Value>>,
    },
    /// The call as it was seen; nothing said means the one that is asked for now.
    Approve {
        part: Option<PartId>,
        call: Option<Hash>,
    },
    Reject {
        part: Option<PartId>,
        call: Option<Hash>,
    },
    /// Undoes everything, or some steps and what depends on them; under way or ended.
    Undo {
        steps: Option<Vec<StepId>>,
    },
    /// Answers what a tool asks in the middle of a call; nothing declines.
    Reply {
        part: Option<PartId>,
        answer: Option<Arc<Value>>,
    },
    TakeOver,
    HandBack,
    /// Accepts a changed tool as it is now.
    AcceptTool {
        tool: ToolName,
        /// The tool as it was seen, so that no other one is accepted.
        #[serde(default)]
        definition: Option<Hash>,
    },
}

impl Engine {
    pub async fn control(
        &self,
        identity: &Identity,
        actor: Actor,
        control: Control,
        reason: String,
        request: Option<String>,
    ) -> Result<(), Error> {
        self.control_as_seen(identity, actor, control, reason, request, None).await
    }

    /// The same, refused when the execution has other than so many entries by then.
    pub async fn control_as_seen(
        &self,
        identity: &Identity,
        actor: Actor,
        control: Control,
        reason: String,
        request: Option<String>,
        seen: Option<u64>,
    ) -> Result<(), Error> {
        let redactor = self.shared.tools.redactor();
        let reason = redactor.text(&reason).into_owned();
        let said = Said::Control { control: control.redacted(&redactor), reason };
        self.say(identity, actor, said, request, seen).await
    }
}

impl Control {
    /// Takes secrets out of everything somebody wrote.
    fn redacted(self, redactor: &Redactor) -> Control {
        let value = |value: Option<Arc<Value>>| value.map(|value| redactor.value(&value));
        match self {
            Control::Resolve { part, happened, result, evidence } => {
                Control::Resolve { part, happened, result: value(result), evidence: value(evidence) }
            }
            Control::Reply { part, answer } => Control::Reply { part, answer: value(answer) },
            control => control,
        }
    }

    /// The same said exactly, as things stand.
    pub(crate) fn signal(self, execution: &Execution, reason: String) -> Result<Signal, Refusal> {
        let questions = execution.questions();
        Ok(match self {
            Control::Pause => Signal::Pause { reason },
            Control::Resume => Signal::Resume { reason },
            Control::Cancel { undo } => Signal::Cancel { reason, undo },
            Control::Kill => Signal::Kill { reason },
            Control::Answer { about, answer } => {
                let about = question(&questions, about.as_ref())?;
                Signal::Answer { about, answer, reason, result: None, evidence: None }
            }
            Control::Resolve { part, happened, result, evidence } => {
                resolve(&questions, part.as_ref(), happened, reason, result, evidence)?
            }
            Control::Approve { part, call } => {
                let (part, call) = asked(&questions, part, call)?;
                Signal::Approve { part, call, reason }
            }
            Control::Reject { part, call } => {
                let (part, call) = asked(&questions, part, call)?;
                Signal::Deny { part, call, reason }
            }
            Control::Undo { steps } if execution.outcome().is_some() => Signal::Compensate { steps, reason },
            Control::Undo { steps: Some(_) } => {
                return Err(Refusal::new("execution.not_ended", "single steps are undone after the end")
                    .hint("cancel it with undo to undo everything"));
            }
            Control::Undo { steps: None } => Signal::Cancel { reason, undo: Some(true) },
            Control::Reply { part, answer } => {
                let (part, attempt) = asking(&questions, part.as_ref())?;
                Signal::AnswerTool { part, attempt, answer, reason }
            }
            Control::TakeOver => Signal::HandOver { to: Driver::Agent, reason },
            Control::HandBack => Signal::HandOver { to: Driver::Server, reason },
            Control::AcceptTool { tool, definition: seen } => {
                let found = questions.iter().find_map(|ask| match ask {
                    Ask::Drift { tool: drifted, found, .. } if *drifted == tool => Some(*found),
                    _ => None,
                });
                let refused = |why: &str| Refusal::new("execution.no_question", format!("{tool} {why}"));
                let definition = found.ok_or_else(|| refused("has not changed"))?;
                if seen.is_some_and(|seen| seen != definition) {
                    return Err(refused("is not the one that was accepted: it has changed again")
                        .hint("look at it once more; `rutter exec show` tells what it is now"));
                }
                Signal::AcceptTool { definition, tool, reason }
            }
        })
    }
}

/// The one question that fits what was said about it.
fn question(questions: &[Ask], about: Option<&PartId>) -> Result<Question, Refusal> {
    let fits = |part: &PartId| about.is_none_or(|about| about == part);
    let fitting: Vec<Question> = questions
        .iter()
        .filter_map(|ask| match ask {
            Ask::Failure { step, .. } if fits(&PartId::whole(step.clone())) => {
                Some(Question::Failure(step.clone()))
            }
            Ask::Compensation { part, .. } if fits(part) => Some(Question::Compensation(part.clone())),
            Ask::Limit { limit, .. } if about.is_none() => Some(Question::Limit(*limit)),
            _ => None,
        })
        .collect();
    only(fitting, about)
}

fn resolve(
    questions: &[Ask],
    part: Option<&PartId>,
    happened: bool,
    reason: String,
    result: Option<Arc<Value>>,
    evidence: Option<Arc<Value>>,
) -> Result<Signal, Refusal> {
    let doubts = questions.iter().filter_map(|ask| match ask {
        Ask::Doubt { part: doubted, .. } if part.is_none_or(|part| part == doubted) => Some(doubted.clone()),
        _ => None,
    });
    let doubts: Vec<PartId> = doubts.collect();
    if !doubts.is_empty() {
        let part = only(doubts, part)?;
        let missing = || {
            Refusal::new("execution.evidence_missing", "settling a doubt needs evidence: how do you know?")
        };
        let evidence = evidence.or_else(|| result.clone()).ok_or_else(missing)?;
        return Ok(Signal::Settle { part, happened, reason, result, evidence });
    }
    if !happened {
        let hint = "answer with retry or skip instead";
        return Err(Refusal::new("execution.not_in_doubt", "nothing there is in doubt").hint(hint));
    }
    let about = question(questions, part)?;
    Ok(Signal::Answer { about, answer: Answer::Resolve, reason, result, evidence })
}

fn asked(questions: &[Ask], part: Option<PartId>, call: Option<Hash>) -> Result<(PartId, Hash), Refusal> {
    let asked = questions.iter().filter_map(|ask| match ask {
        Ask::Approval { part: asked, call, .. } if part.as_ref().is_none_or(|part| part == asked) => {
            Some((asked.clone(), *call))
        }
        _ => None,
    });
    let asked: Vec<(PartId, Hash)> = asked.collect();
    match (asked.is_empty(), &part) {
        (true, Some(part)) => {
            Err(Refusal::new("execution.not_asked", format!("{part} does not wait for approval")))
        }
        (true, None) => Err(Refusal::new("execution.not_asked", "nothing waits for approval")),
        (false, _) => {
            let (part, found) = only(asked, part.as_ref())?;
            Ok((part, call.unwrap_or(found)))
        }
    }
}

/// The tool that asks something.
fn asking(questions: &[Ask], part: Option<&PartId>) -> Result<(PartId, u32), Refusal> {
    let asking = questions.iter().filter_map(|ask| match ask {
        Ask::Tool { part: asking, attempt, .. } if part.is_none_or(|part| part == asking) => {
            Some((asking.clone(), *attempt))
        }
        _ => None,
    });
    only(asking.collect(), part)
}

fn only<T>(mut found: Vec<T>, about: Option<&PartId>) -> Result<T, Refusal> {
    match (found.len(), about) {
        (1, _) => Ok(found.remove(0)),
        (0, Some(part)) => {
            Err(Refusal::new("execution.no_question", format!("nothing is asked about {part}")))
        }
        (0, None) => Err(Refusal::new("execution.no_question", "nothing is asked")),
        (_, _) => Err(Refusal::new("execution.no_question", "more than one thing is asked: name the step")
            .hint("`rutter exec show` lists the questions")),
    }
}
