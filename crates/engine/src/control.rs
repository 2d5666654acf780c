//! Control actions of people and agents: they name a step, and need no hashes or question ids.
//!
//! An action is stored as it is. The execution's loop resolves it to an exact input, using the open questions.

use rutter_core::execution::Execution;
use rutter_core::execution::input::{ExecutionInput, Refusal, given};
use rutter_core::execution::step::StepStage;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, StepId, ToolName};
use rutter_core::journal::event::{Question, QuestionAnswer};
use rutter_core::plan::Driver;
use rutter_core::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ControlAction {
    Pause,
    /// After a hold, its span does not count.
    Resume,
    /// After a hold, what came due happens now.
    ResumeExpired,
    /// After a hold, what came due of these happens now, and all else keeps its time.
    ResumeExpiring {
        only: Vec<String>,
    },
    /// `undo`: whether to undo completed steps; `None` follows the plan.
    Cancel {
        undo: Option<bool>,
    },
    Kill,
    /// Answers the question about a step, or the only open question.
    Answer {
        about: Option<PartId>,
        answer: QuestionAnswer,
    },
    /// Settled by hand, with evidence. `happened: false` means that it was certainly not done.
    Resolve {
        part: Option<PartId>,
        happened: bool,
        /// `null` says that nobody knows it.
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
        result: Option<Arc<Value>>,
        evidence: Option<Arc<Value>>,
    },
    /// Corrects what was settled by hand; `None` is the only part of which that is so.
    Correct {
        part: Option<PartId>,
        happened: bool,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
        result: Option<Arc<Value>>,
        evidence: Option<Arc<Value>>,
    },
    /// `call` is the call the approver saw; `None` means the one that waits now.
    Approve {
        part: Option<PartId>,
        call: Option<Hash>,
    },
    Reject {
        part: Option<PartId>,
        call: Option<Hash>,
    },
    /// Undoes everything, or some steps and their dependents; running or ended.
    Undo {
        steps: Option<Vec<StepId>>,
    },
    /// Answers the question of a tool during a call; `None` declines.
    Reply {
        part: Option<PartId>,
        answer: Option<Arc<Value>>,
    },
    /// Goes on after the end: from these steps, or from everything that failed.
    Reopen {
        steps: Option<Vec<StepId>>,
    },
    TakeOver,
    HandBack,
    /// Accepts a changed tool as it is now.
    AcceptTool {
        tool: ToolName,
        /// The definition the caller saw, so that no other one is accepted.
        #[serde(default)]
        definition: Option<Hash>,
    },
}

impl ControlAction {
    /// Takes secrets out of everything the caller wrote.
    pub(crate) fn redacted(self, redactor: &Redactor) -> ControlAction {
        let value = |value: Option<Arc<Value>>| value.map(|value| redactor.value(&value));
        match self {
            ControlAction::Resolve { part, happened, result, evidence } => {
                ControlAction::Resolve { part, happened, result: value(result), evidence: value(evidence) }
            }
            ControlAction::Correct { part, happened, result, evidence } => {
                ControlAction::Correct { part, happened, result: value(result), evidence: value(evidence) }
            }
            ControlAction::Reply { part, answer } => ControlAction::Reply { part, answer: value(answer) },
            control => control,
        }
    }

    /// Resolves the action to an exact input in the current state.
    pub(crate) fn input(self, execution: &Execution, reason: String) -> Result<ExecutionInput, Refusal> {
        let questions = execution.questions();
        Ok(match self {
            ControlAction::Pause => ExecutionInput::Pause { reason },
            ControlAction::Resume => ExecutionInput::Resume { reason },
            ControlAction::ResumeExpired => ExecutionInput::ResumeExpired { reason, only: Vec::new() },
            ControlAction::ResumeExpiring { only } => ExecutionInput::ResumeExpired { reason, only },
            ControlAction::Cancel { undo } => ExecutionInput::Cancel { reason, undo },
            ControlAction::Kill => ExecutionInput::Kill { reason },
            ControlAction::Reopen { steps } => reopen(execution, steps, reason)?,
            ControlAction::Answer { about, answer }
                if execution.outcome().is_some() && !is_asked(&questions, about.as_ref(), answer) =>
            {
                after_the_end(execution, about, answer, reason)?
            }
            ControlAction::Answer { about, answer } => {
                let about = question_of(execution, &questions, about.as_ref())?;
                ExecutionInput::Answer { about, answer, reason, result: None, evidence: None }
            }
            ControlAction::Resolve { part, happened, result, evidence } => {
                resolve(execution, &questions, part.as_ref(), happened, reason, result, evidence)?
            }
            ControlAction::Correct { part, happened, result, evidence } => {
                let part = part.map_or_else(|| settled_by_hand(execution), Ok)?;
                ExecutionInput::Correct { part, happened, reason, result, evidence }
            }
            ControlAction::Approve { part: None, call } if let Some(plan) = proposed(&questions, call) => {
                ExecutionInput::ApproveReplan { plan, reason }
            }
            ControlAction::Reject { part: None, call } if let Some(plan) = proposed(&questions, call) => {
                ExecutionInput::RejectReplan { plan, reason }
            }
            ControlAction::Approve { part, call } => {
                let (part, call) = asked(&questions, part, call)?;
                ExecutionInput::Approve { part, call, reason }
            }
            ControlAction::Reject { part, call } => {
                let (part, call) = asked(&questions, part, call)?;
                ExecutionInput::Deny { part, call, reason }
            }
            ControlAction::Undo { steps } if execution.outcome().is_some() => {
                ExecutionInput::Compensate { steps, reason }
            }
            // An answer if a question offers it; otherwise the execution is cancelled first.
            ControlAction::Undo { steps } if let Some(about) = undoing(&questions, steps.as_deref()) => {
                ExecutionInput::Answer {
                    about,
                    answer: QuestionAnswer::Compensate,
                    reason,
                    result: None,
                    evidence: None,
                }
            }
            ControlAction::Undo { steps: Some(_) } => {
                return Err(Refusal::new("execution.not_ended", "single steps are undone only after the end")
                    .hint("cancel it with undo to undo everything"));
            }
            ControlAction::Undo { steps: None } => ExecutionInput::Cancel { reason, undo: Some(true) },
            ControlAction::Reply { part, answer } => {
                let (part, attempt) = asking(&questions, part.as_ref())?;
                ExecutionInput::AnswerTool { part, attempt, answer, reason }
            }
            ControlAction::TakeOver => ExecutionInput::HandOver { to: Driver::Agent, reason },
            ControlAction::HandBack => ExecutionInput::HandOver { to: Driver::Server, reason },
            ControlAction::AcceptTool { tool, definition: seen } => {
                let found = questions.iter().find_map(|ask| match ask {
                    PendingQuestion::Drift { tool: drifted, found, .. } if *drifted == tool => Some(*found),
                    _ => None,
                });
                let refused = |why: &str| Refusal::new("execution.no_question", format!("{tool} {why}"));
                let definition = found.ok_or_else(|| refused("has not changed"))?;
                if seen.is_some_and(|seen| seen != definition) {
                    return Err(refused("is not the one that was accepted: it has changed again")
                        .hint("review it again: `rutter exec show` shows the current definition"));
                }
                ExecutionInput::AcceptTool { definition, tool, reason }
            }
        })
    }
}

/// Goes on after the end: with one item of a fan-out, or with steps.
fn reopen(execution: &Execution, steps: Option<Vec<StepId>>, reason: String) -> Result<ExecutionInput, Refusal> {
    let item = |step: &StepId| PartId::parse(step.as_str()).filter(|part| part.item.is_some());
    let items: Vec<PartId> = steps.iter().flatten().filter_map(item).collect();
    match (items.as_slice(), steps.as_ref().map_or(0, Vec::len)) {
        ([], _) => Ok(ExecutionInput::Reopen { steps, reason }),
        ([item], 1) if execution.outcome().is_some() => {
            let (about, answer) = (Question::Item(item.clone()), QuestionAnswer::Retry);
            Ok(ExecutionInput::Answer { about, answer, reason, result: None, evidence: None })
        }
        ([_], 1) => Err(Refusal::new("execution.not_ended", "this execution has not ended")
            .hint("retry the item: that needs no reopening")),
        _ => Err(Refusal::new("execution.no_question", "items are taken up one at a time")
            .hint("name one item, or steps as a whole")),
    }
}

/// An answer about a step of an execution that has ended: it goes on with that answer.
fn after_the_end(
    execution: &Execution,
    about: Option<PartId>,
    answer: QuestionAnswer,
    reason: String,
) -> Result<ExecutionInput, Refusal> {
    let compensation = matches!(about.as_ref().and_then(|part| execution.part(part)), Some(part) if part.is_undoing());
    if compensation || !Question::ITEM_ANSWERS.contains(&answer) {
        return Err(Refusal::new("execution.ended", "this execution has ended").hint("reopen it to go on"));
    }
    let failed = |step: &StepId| execution.stages().any(|(id, stage)| id == step && stage == StepStage::Failed);
    Ok(match about {
        None if answer == QuestionAnswer::Retry => ExecutionInput::Reopen { steps: None, reason },
        None => {
            return Err(Refusal::new("execution.no_question", "this execution has ended: name the step")
                .hint("`rutter exec show` lists the steps that failed"));
        }
        Some(PartId { step, item: None }) if answer == QuestionAnswer::Retry && !failed(&step) => {
            ExecutionInput::Reopen { steps: Some(vec![step]), reason }
        }
        Some(part) => {
            let about = match part.item {
                Some(_) => Question::Item(part),
                None => Question::Failure(part.step),
            };
            ExecutionInput::Answer { about, answer, reason, result: None, evidence: None }
        }
    })
}

/// Whether a question that is open after the end takes this answer.
fn is_asked(questions: &[PendingQuestion], about: Option<&PartId>, answer: QuestionAnswer) -> bool {
    questions.iter().any(|ask| match ask {
        PendingQuestion::SecondEffect { part, answers, .. } => {
            about.is_none_or(|about| about == part) && answers.contains(&answer)
        }
        _ => false,
    })
}

/// The same, where one item of a fan-out can be named too.
fn question_of(
    execution: &Execution,
    questions: &[PendingQuestion],
    about: Option<&PartId>,
) -> Result<Question, Refusal> {
    let is_item = |part: &&PartId| execution.is_failed_item(part) || execution.is_left_out_item(part);
    match about.filter(|part| fitting(questions, Some(part)).is_empty() && is_item(part)) {
        Some(part) => Ok(Question::Item(part.clone())),
        None => question(questions, about),
    }
}

/// The only open question about this part, or the only one at all.
pub fn question(questions: &[PendingQuestion], about: Option<&PartId>) -> Result<Question, Refusal> {
    let found = fitting(questions, about);
    let doubted = questions.iter().find_map(|ask| match ask {
        PendingQuestion::Doubt { part, .. } if about.is_none_or(|about| about == part) => Some(part),
        _ => None,
    });
    match doubted.filter(|_| found.is_empty()) {
        Some(part) => Err(Refusal::new(
            "execution.no_question",
            format!("the question about {part} is whether it happened: no decision answers it"),
        )
        .hint("a person looks, and resolves it with evidence")),
        None => only(found, about),
    }
}

/// The open questions about this part, or all of them, that a person or agent can answer by a decision.
pub fn fitting(questions: &[PendingQuestion], about: Option<&PartId>) -> Vec<Question> {
    let fits = |part: &PartId| about.is_none_or(|about| about == part);
    let fitting = questions.iter().filter_map(|ask| match ask {
        PendingQuestion::Failure { step, .. } if fits(&PartId::whole(step.clone())) => {
            Some(Question::Failure(step.clone()))
        }
        PendingQuestion::Compensation { part, .. } if fits(part) => Some(Question::Compensation(part.clone())),
        PendingQuestion::SecondEffect { part, .. } if fits(part) => Some(Question::SecondEffect(part.clone())),
        PendingQuestion::Limit { limit, .. } if about.is_none() => Some(Question::Limit(*limit)),
        PendingQuestion::Silence { .. } if about.is_none() => Some(Question::Silence),
        _ => None,
    });
    fitting.collect()
}

/// The one question that undoing answers: about the step that is named, or the only one.
fn undoing(questions: &[PendingQuestion], steps: Option<&[StepId]>) -> Option<Question> {
    let mut fitting = questions.iter().filter_map(|ask| match (ask, steps) {
        (PendingQuestion::Failure { step, answers, .. }, None) if answers.contains(&QuestionAnswer::Compensate) => {
            Some(Question::Failure(step.clone()))
        }
        (PendingQuestion::Failure { step, answers, .. }, Some([named]))
            if step == named && answers.contains(&QuestionAnswer::Compensate) =>
        {
            Some(Question::Failure(step.clone()))
        }
        (PendingQuestion::Limit { limit, answers, .. }, None) if answers.contains(&QuestionAnswer::Compensate) => {
            Some(Question::Limit(*limit))
        }
        (PendingQuestion::Silence { answers, .. }, None) if answers.contains(&QuestionAnswer::Compensate) => {
            Some(Question::Silence)
        }
        _ => None,
    });
    let one = fitting.next()?;
    fitting.next().is_none().then_some(one)
}

fn resolve(
    execution: &Execution,
    questions: &[PendingQuestion],
    part: Option<&PartId>,
    happened: bool,
    reason: String,
    result: Option<Arc<Value>>,
    evidence: Option<Arc<Value>>,
) -> Result<ExecutionInput, Refusal> {
    let doubts = questions.iter().filter_map(|ask| match ask {
        PendingQuestion::Doubt { part: doubted, .. } if part.is_none_or(|part| part == doubted) => {
            Some(doubted.clone())
        }
        _ => None,
    });
    let doubts: Vec<PartId> = doubts.collect();
    if !doubts.is_empty() {
        let part = only(doubts, part)?;
        let missing =
            || Refusal::new("execution.evidence_missing", "settling a doubt needs evidence: how do you know?");
        let evidence = evidence.or_else(|| result.clone()).ok_or_else(missing)?;
        return Ok(ExecutionInput::Settle { part, happened, reason, result, evidence });
    }
    if !happened {
        let hint = "answer with retry or skip instead";
        return Err(Refusal::new("execution.not_in_doubt", "nothing here is in doubt").hint(hint));
    }
    let about = match part.filter(|_| execution.outcome().is_some()) {
        Some(part) if part.item.is_some() => Question::Item(part.clone()),
        Some(part) => Question::Failure(part.step.clone()),
        None => question_of(execution, questions, part)?,
    };
    Ok(ExecutionInput::Answer { about, answer: QuestionAnswer::Resolve, reason, result, evidence })
}

/// The only part that was settled by hand.
fn settled_by_hand(execution: &Execution) -> Result<PartId, Refusal> {
    let mut settled = execution.parts().filter(|(_, part)| part.by_hand.is_some()).map(|(id, _)| id);
    match (settled.next(), settled.next()) {
        (Some(part), None) => Ok(part),
        (Some(_), Some(_)) => {
            Err(Refusal::new("execution.not_by_hand", "more than one step was settled by hand: name the step"))
        }
        (None, _) => Err(Refusal::new("execution.not_by_hand", "nothing here was settled by hand")),
    }
}

/// The proposed plan, if `call` is its hash, or if nothing else waits for approval.
fn proposed(questions: &[PendingQuestion], call: Option<Hash>) -> Option<Hash> {
    let has_calls = questions.iter().any(|ask| matches!(ask, PendingQuestion::Approval { .. }));
    questions.iter().find_map(|ask| match ask {
        PendingQuestion::Replan { plan, .. } if call.map_or(!has_calls, |call| call == *plan) => Some(*plan),
        _ => None,
    })
}

fn asked(questions: &[PendingQuestion], part: Option<PartId>, call: Option<Hash>) -> Result<(PartId, Hash), Refusal> {
    let asked = questions.iter().filter_map(|ask| match ask {
        PendingQuestion::Approval { part: asked, call, .. } if part.as_ref().is_none_or(|part| part == asked) => {
            Some((asked.clone(), *call))
        }
        _ => None,
    });
    let asked: Vec<(PartId, Hash)> = asked.collect();
    match (asked.is_empty(), &part) {
        (true, Some(part)) => Err(Refusal::new("execution.not_asked", format!("{part} does not wait for approval"))),
        (true, None) => Err(Refusal::new("execution.not_asked", "nothing waits for approval")),
        (false, _) => {
            let (part, found) = only(asked, part.as_ref())?;
            Ok((part, call.unwrap_or(found)))
        }
    }
}

/// The attempt whose tool asks a question.
fn asking(questions: &[PendingQuestion], part: Option<&PartId>) -> Result<(PartId, u32), Refusal> {
    let asking = questions.iter().filter_map(|ask| match ask {
        PendingQuestion::Tool { part: asking, attempt, .. } if part.is_none_or(|part| part == asking) => {
            Some((asking.clone(), *attempt))
        }
        _ => None,
    });
    only(asking.collect(), part)
}

pub fn only<T>(mut found: Vec<T>, about: Option<&PartId>) -> Result<T, Refusal> {
    match (found.len(), about) {
        (1, _) => Ok(found.remove(0)),
        (0, Some(part)) => Err(Refusal::new("execution.no_question", format!("there is no question about {part}"))),
        (0, None) => Err(Refusal::new("execution.no_question", "there is no open question")),
        (_, _) => Err(Refusal::new("execution.no_question", "there is more than one question: name the step")
            .hint("`rutter exec show` lists the questions")),
    }
}
