//! The people and the agent around an execution: they answer, interfere and act by hand, at random.

use super::plans;
use super::world::SimulatedWorld;
use crate::chance::SeededRandom;
use rutter_core::actor::Actor;
use rutter_core::execution::Execution;
use rutter_core::execution::input::ExecutionInput;
use rutter_core::execution::part::PartState;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event::{CallSide, OverdueTimer, Question, QuestionAnswer};
use rutter_core::plan::{Driver, Plan};
use rutter_core::tool::{FailureCategory, Safety, ToolCatalog, ToolFailure};
use serde_json::{Value, json};
use std::sync::Arc;

/// An input, and what its sender does in the world once it is recorded.
#[derive(Debug)]
pub struct OperatorMove {
    pub actor: Actor,
    pub input: ExecutionInput,
    pub effect: OperatorEffect,
}

#[derive(Debug)]
pub enum OperatorEffect {
    None,
    /// The agent makes the call whose start it has just recorded.
    CarryOut(PartId),
    /// The agent says how its own attempt ended, which was in doubt.
    Answer(PartId),
    /// A person undoes by hand what they have just recorded.
    UndoByHand(PartId),
    /// The new plan, should the replan be accepted.
    Revise(Value, Arc<Plan>),
}

impl OperatorMove {
    pub fn by_rutter(input: ExecutionInput) -> OperatorMove {
        OperatorMove { actor: Actor::rutter(), input, effect: OperatorEffect::None }
    }
}

fn person(input: ExecutionInput) -> OperatorMove {
    OperatorMove { actor: Actor::person("operator"), input, effect: OperatorEffect::None }
}

fn agent(input: ExecutionInput) -> OperatorMove {
    OperatorMove { actor: Actor::agent("pilot"), input, effect: OperatorEffect::None }
}

fn why() -> String {
    "because".into()
}

/// Interferes at random: pauses, cancels, kills, replans, hands over, records actions.
pub fn interfere(
    execution: &Execution,
    document: &Value,
    catalog: &ToolCatalog,
    chance: &mut SeededRandom,
) -> OperatorMove {
    match chance.below(26) {
        0..=3 => person(ExecutionInput::Pause { reason: why() }),
        4..=6 => person(ExecutionInput::Resume { reason: why() }),
        7 => person(ExecutionInput::Cancel { reason: why(), undo: *chance.pick(&[None, Some(true), Some(false)]) }),
        8 if chance.percent(30) => person(ExecutionInput::Kill { reason: why() }),
        9..=11 => replan(document, catalog, chance),
        12 => agent(ExecutionInput::BeginReplan { reason: why() }),
        13..=15 => {
            let to = if execution.driver() == Driver::Server { Driver::Agent } else { Driver::Server };
            person(ExecutionInput::HandOver { to, reason: why() })
        }
        16 => {
            let values = json!({ "note": chance.below(10) });
            agent(ExecutionInput::SaveContext { values: values.as_object().cloned().unwrap_or_default() })
        }
        17 => {
            agent(ExecutionInput::RecordDecision { step: None, decision: "go on".into(), reason: why(), details: None })
        }
        18 => {
            let (kind, description) = ("notified".into(), "told somebody".into());
            agent(ExecutionInput::RecordAction { step: Some(StepId::new("s0")), kind, description, details: None })
        }
        19 => by_hand(execution, chance),
        20 => meddle(execution, chance),
        21..=24 => replan(document, catalog, chance),
        _ => person(ExecutionInput::Wake),
    }
}

/// Takes up an execution that has ended: from everything, from one step, by an answer, or with a new plan.
pub fn take_up_again(
    execution: &Execution,
    document: &Value,
    catalog: &ToolCatalog,
    chance: &mut SeededRandom,
) -> OperatorMove {
    let steps: Vec<StepId> = execution.stages().map(|(id, _)| id.clone()).collect();
    let step = chance.pick(&steps).clone();
    match chance.below(6) {
        0 => agent(ExecutionInput::Reopen { steps: None, reason: why() }),
        1..=2 => person(ExecutionInput::Reopen { steps: None, reason: why() }),
        3 => person(ExecutionInput::Reopen { steps: Some(vec![step]), reason: why() }),
        4 => {
            let answer = *chance.pick(Question::ITEM_ANSWERS);
            let items: Vec<PartId> =
                execution.parts().map(|(id, _)| id).filter(|id| execution.is_failed_item(id)).collect();
            let about = match items.is_empty() || chance.percent(50) {
                true => Question::Failure(step),
                false => Question::Item(chance.pick(&items).clone()),
            };
            let result = (answer == QuestionAnswer::Resolve).then(|| Arc::new(json!({ "n": 2, "flag": true })));
            let by = if chance.percent(50) { person } else { agent };
            by(ExecutionInput::Answer { about, answer, reason: why(), result, evidence: None })
        }
        _ => replan(document, catalog, chance),
    }
}

/// A person takes back what was said by hand, and tells the truth about the world.
pub fn correct(execution: &Execution, world: &SimulatedWorld, chance: &mut SeededRandom) -> Option<OperatorMove> {
    let settled: Vec<_> =
        execution.parts().filter_map(|(id, part)| Some((id, part.by_hand?, part.effect, part.key))).collect();
    if settled.is_empty() {
        return None;
    }
    let (part, before, effect, key) = chance.pick(&settled).clone();
    let is_done = world.standing.contains(&part) || key.is_some_and(|key| world.has(key));
    let is_known = effect.is_some_and(|effect| effect.certain);
    let happened = if before.happened { is_done || chance.percent(50) } else { is_done && !is_known };
    let result = happened.then(|| Arc::new(json!({ "n": chance.below(100), "flag": true })));
    // Refused: an agent cannot correct what a person said.
    let by = if chance.percent(10) { agent } else { person };
    Some(by(ExecutionInput::Correct { part, happened, reason: why(), result, evidence: None }))
}

pub fn kill() -> OperatorMove {
    person(ExecutionInput::Kill { reason: why() })
}

/// Tries what must be refused: approving as an agent, or approving another call.
fn meddle(execution: &Execution, chance: &mut SeededRandom) -> OperatorMove {
    let asked = execution.questions().into_iter().find_map(|ask| match ask {
        PendingQuestion::Approval { part, call, .. } => Some((part, call)),
        _ => None,
    });
    let Some((part, call)) = asked else { return person(ExecutionInput::Start) };
    if chance.percent(50) {
        agent(ExecutionInput::Approve { part, call, reason: why() })
    } else {
        person(ExecutionInput::Approve { part, call: Hash::of(&[b"another call"]), reason: why() })
    }
}

fn replan(document: &Value, catalog: &ToolCatalog, chance: &mut SeededRandom) -> OperatorMove {
    let replan = replan_to(plans::revise(chance, document), catalog);
    if chance.percent(50) { OperatorMove { actor: Actor::person("operator"), ..replan } } else { replan }
}

/// What an agent tries that does not take no for an answer: the same call without its approval, under another name, by
/// its own hand, or left out for the time of one plan.
pub fn evade(
    execution: &Execution,
    document: &Value,
    catalog: &ToolCatalog,
    chance: &mut SeededRandom,
) -> OperatorMove {
    match chance.below(8) {
        0..=2 => replan_to(plans::evade(chance, document), catalog),
        6..=7 => {
            let unmet: Vec<_> = execution.view().unmet.into_iter().filter(|unmet| unmet.step.item.is_none()).collect();
            match unmet.is_empty() {
                true => agent(ExecutionInput::Wake),
                false => replan_to(plans::toggle(document, chance.pick(&unmet).step.step.as_str()), catalog),
            }
        }
        3 => {
            let to = if execution.driver() == Driver::Server { Driver::Agent } else { Driver::Server };
            agent(ExecutionInput::HandOver { to, reason: why() })
        }
        _ => {
            let held = execution.questions().into_iter().find_map(|ask| match ask {
                PendingQuestion::Failure { step, .. } => Some(step),
                _ => None,
            });
            let Some(step) = held else { return agent(ExecutionInput::Wake) };
            let answer = if chance.percent(50) { QuestionAnswer::Resolve } else { QuestionAnswer::Retry };
            let result = (answer == QuestionAnswer::Resolve).then(|| Arc::new(json!({ "n": 5, "flag": true })));
            let about = Question::Failure(step);
            agent(ExecutionInput::Answer { about, answer, reason: why(), result, evidence: None })
        }
    }
}

/// Replans with the same steps, called, probed and approved in other ways.
pub fn revise_details(document: &Value, catalog: &ToolCatalog, chance: &mut SeededRandom) -> OperatorMove {
    replan_to(plans::revise_details(chance, document), catalog)
}

pub fn replan_to(revised: Value, catalog: &ToolCatalog) -> OperatorMove {
    let plan = plans::compile(&revised, catalog).unwrap_or_else(|found| panic!("bad revised plan: {found}"));
    OperatorMove {
        effect: OperatorEffect::Revise(revised, plan.clone()),
        ..agent(ExecutionInput::Replan { plan, revision: 2, reason: why() })
    }
}

fn by_hand(execution: &Execution, chance: &mut SeededRandom) -> OperatorMove {
    let parts: Vec<PartId> = execution.parts().filter(|(_, part)| part.effect.is_some()).map(|(id, _)| id).collect();
    if parts.is_empty() {
        return person(ExecutionInput::Wake);
    }
    let part = chance.pick(&parts).clone();
    let (description, evidence) = ("undone by hand".into(), None);
    OperatorMove {
        effect: OperatorEffect::UndoByHand(part.clone()),
        ..person(ExecutionInput::RecordCompensation { part, description, evidence })
    }
}

/// Answers one open question. People tell the truth about the world.
pub fn answer(execution: &Execution, world: &SimulatedWorld, chance: &mut SeededRandom) -> Option<OperatorMove> {
    let questions = execution.questions();
    if questions.is_empty() {
        return None;
    }
    Some(match chance.pick(&questions) {
        PendingQuestion::Approval { part, call, .. } => {
            let (part, call, reason) = (part.clone(), *call, why());
            person(if chance.percent(80) {
                ExecutionInput::Approve { part, call, reason }
            } else {
                ExecutionInput::Deny { part, call, reason }
            })
        }
        PendingQuestion::Doubt { part, .. } => {
            let key = execution.part(part).and_then(|part| part.key).unwrap_or(Hash::ZERO);
            let agents = execution
                .part(part)
                .is_some_and(|part| matches!(part.state, PartState::InDoubt { side: CallSide::Do, .. }));
            let happened = world.has(key) || (agents && world.standing.contains(part));
            let result = happened.then(|| Arc::new(json!({ "n": 1, "flag": true })));
            let evidence = Arc::new(json!("looked it up"));
            // Refused: an agent cannot settle a doubt.
            let by = if world.late.is_some() && chance.percent(10) { agent } else { person };
            by(ExecutionInput::Settle { part: part.clone(), happened, reason: why(), result, evidence })
        }
        PendingQuestion::Failure { failures, .. }
            if failures.first().is_some_and(|(part, _)| part.item.is_some()) && chance.percent(50) =>
        {
            let answer = *chance.pick(Question::ITEM_ANSWERS);
            let result = (answer == QuestionAnswer::Resolve).then(|| Arc::new(json!({ "n": 2, "flag": true })));
            let about = Question::Item(chance.pick(failures).0.clone());
            agent(ExecutionInput::Answer { about, answer, reason: why(), result, evidence: None })
        }
        PendingQuestion::Failure { step, answers, .. } => {
            let answer = *chance.pick(answers);
            let result = (answer == QuestionAnswer::Resolve).then(|| Arc::new(json!({ "n": 2, "flag": true })));
            let about = Question::Failure(step.clone());
            let by = if chance.percent(30) { person } else { agent };
            by(ExecutionInput::Answer { about, answer, reason: why(), result, evidence: None })
        }
        PendingQuestion::Compensation { part, answers, .. } => {
            let answer = *chance.pick(answers);
            let evidence = (answer == QuestionAnswer::Resolve).then(|| Arc::new(json!("done by hand")));
            let effect = if answer == QuestionAnswer::Resolve {
                OperatorEffect::UndoByHand(part.clone())
            } else {
                OperatorEffect::None
            };
            let about = Question::Compensation(part.clone());
            OperatorMove {
                effect,
                ..person(ExecutionInput::Answer { about, answer, reason: why(), result: None, evidence })
            }
        }
        PendingQuestion::SecondEffect { part, answers, .. } => {
            // It never is the same effect here: every one counts in the simulated world.
            let true_answers: Vec<QuestionAnswer> =
                answers.iter().copied().filter(|answer| *answer != QuestionAnswer::Skip).collect();
            let (about, answer) = (Question::SecondEffect(part.clone()), *chance.pick(&true_answers));
            person(ExecutionInput::Answer { about, answer, reason: why(), result: None, evidence: None })
        }
        PendingQuestion::Limit { limit, answers } => {
            let (about, answer) = (Question::Limit(*limit), *chance.pick(answers));
            person(ExecutionInput::Answer { about, answer, reason: why(), result: None, evidence: None })
        }
        PendingQuestion::Tool { part, attempt, .. } => {
            let answer = match chance.below(20) {
                0..=12 => Some(json!({ "port": 1 + chance.below(100) })),
                13 => Some(json!({ "port": "of call" })),
                14 => Some(json!({ "port": { "of": "call" } })),
                15..=17 => None,
                // The question stays open.
                _ => return None,
            };
            let (part, answer, reason) = (part.clone(), answer.map(Arc::new), why());
            let input = ExecutionInput::AnswerTool { part, attempt: *attempt, answer, reason };
            if chance.percent(50) { person(input) } else { agent(input) }
        }
        PendingQuestion::Replan { plan, .. } => {
            let (plan, reason) = (*plan, why());
            person(if chance.percent(50) {
                ExecutionInput::ApproveReplan { plan, reason }
            } else {
                ExecutionInput::RejectReplan { plan, reason }
            })
        }
        PendingQuestion::Hold { due, .. } => match chance.below(10) {
            // Refused: an agent cannot say that a person has looked.
            0 => agent(ExecutionInput::Resume { reason: why() }),
            1..=2 => person(ExecutionInput::ResumeExpired { reason: why(), only: Vec::new() }),
            // Every other one.
            3 => {
                let only = due.iter().step_by(2).map(OverdueTimer::name).collect();
                person(ExecutionInput::ResumeExpired { reason: why(), only })
            }
            _ => person(ExecutionInput::Resume { reason: why() }),
        },
        PendingQuestion::Silence { answers, .. } => match chance.below(6) {
            0 => agent(ExecutionInput::AgentSeen { remembered: false }),
            1 => person(ExecutionInput::HandOver { to: Driver::Server, reason: why() }),
            2 => agent(ExecutionInput::HandOver { to: Driver::Agent, reason: why() }),
            _ => {
                let (about, answer) = (Question::Silence, *chance.pick(answers));
                person(ExecutionInput::Answer { about, answer, reason: why(), result: None, evidence: None })
            }
        },
        PendingQuestion::Drift { tool, found, .. } => {
            person(ExecutionInput::AcceptTool { tool: tool.clone(), definition: *found, reason: why() })
        }
    })
}

/// The agent's next input while it drives.
pub fn drive_as_agent(execution: &Execution, world: &SimulatedWorld, chance: &mut SeededRandom) -> OperatorMove {
    let under_way = execution
        .parts()
        .find(|(_, part)| matches!(&part.state, PartState::Running(attempt) if attempt.by == Driver::Agent));
    if let Some((part, _)) = under_way.filter(|_| !chance.percent(15)) {
        let happened = world.standing.contains(&part);
        return agent(match chance.below(10) {
            0..=6 if happened || reads(execution, &part) => {
                ExecutionInput::RecordFinished { part, result: Arc::new(json!({ "n": 3, "flag": true })) }
            }
            _ => {
                let failure = ToolFailure::new(FailureCategory::ToolError, "no luck");
                let maybe = happened || chance.percent(30);
                ExecutionInput::RecordFailed { part, failure, maybe }
            }
        });
    }
    match chance.below(20) {
        0..=1 => person(ExecutionInput::HandOver { to: Driver::Server, reason: why() }),
        2 => agent(ExecutionInput::RecordEnd { reason: why() }),
        3 => agent(ExecutionInput::RecordStarted {
            part: PartId::whole(StepId::new("elsewhere")),
            tool: None,
            parameters: None,
        }),
        4 => again(execution, chance),
        _ => {
            let open: Vec<PartId> = execution
                .parts()
                .filter(|(_, part)| {
                    let idle = matches!(
                        part.state,
                        PartState::Pending
                            | PartState::Approved { .. }
                            | PartState::BackingOff { side: CallSide::Do, .. }
                    );
                    idle && part.effect.is_none()
                })
                .map(|(id, _)| id)
                .collect();
            if open.is_empty() {
                return person(ExecutionInput::HandOver { to: Driver::Server, reason: why() });
            }
            // Mostly in order, sometimes not.
            let at = if chance.percent(80) { 0 } else { chance.index(open.len()) };
            let part = open[at].clone();
            OperatorMove {
                effect: OperatorEffect::CarryOut(part.clone()),
                ..agent(ExecutionInput::RecordStarted { part, tool: None, parameters: None })
            }
        }
    }
}

/// The agent says how an attempt of its own ended that is in doubt by now. It tells the truth.
pub fn answer_late(execution: &Execution, world: &SimulatedWorld, chance: &mut SeededRandom) -> Option<OperatorMove> {
    let doubted = execution.parts().find(|(_, part)| {
        let forward = matches!(part.state, PartState::InDoubt { side: CallSide::Do | CallSide::Fallback, .. });
        forward && part.sent_by == Some(Driver::Agent)
    });
    let (part, _) = doubted?;
    let input = if world.standing.contains(&part) {
        ExecutionInput::RecordFinished { part: part.clone(), result: Arc::new(json!({ "n": 4, "flag": true })) }
    } else {
        let failure = ToolFailure::new(FailureCategory::ToolError, "no luck");
        let maybe = chance.percent(30);
        let input = ExecutionInput::RecordFailed { part: part.clone(), failure, maybe };
        if maybe {
            return Some(agent(input));
        }
        input
    };
    Some(OperatorMove { effect: OperatorEffect::Answer(part), ..agent(input) })
}

/// Records the start of a step that is already done; the agent does not really repeat it.
fn again(execution: &Execution, chance: &mut SeededRandom) -> OperatorMove {
    let done: Vec<PartId> = execution
        .parts()
        .filter(|(_, part)| matches!(part.state, PartState::Completed { .. }))
        .map(|(id, _)| id)
        .collect();
    match done.is_empty() {
        true => agent(ExecutionInput::Wake),
        false => {
            agent(ExecutionInput::RecordStarted { part: chance.pick(&done).clone(), tool: None, parameters: None })
        }
    }
}

fn reads(execution: &Execution, part: &PartId) -> bool {
    let plan = execution.plan();
    plan.find(part.step.as_str()).is_some_and(|step| plan.steps[step].call.safety == Safety::ReadOnly)
}
