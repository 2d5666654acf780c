//! The people and the agent around an execution: they answer, interfere and act by hand, at random.

use super::plans;
use super::world::World;
use crate::chance::Chance;
use rutter_core::actor::Actor;
use rutter_core::execution::Execution;
use rutter_core::execution::input::Input;
use rutter_core::execution::part::PartState;
use rutter_core::execution::view::Ask;
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event::{Answer, Question, Side};
use rutter_core::plan::{Driver, Plan};
use rutter_core::tool::{Category, Failure, Safety, ToolCatalog};
use serde_json::{Value, json};
use std::sync::Arc;

/// What somebody wants, and what they do in the world once it is on record.
#[derive(Debug)]
pub struct Move {
    pub actor: Actor,
    pub input: Input,
    pub deed: Deed,
}

#[derive(Debug)]
pub enum Deed {
    None,
    /// The agent carries out what it has just recorded the start of.
    CarryOut(PartId),
    /// A person undoes by hand what they have just recorded.
    UndoByHand(PartId),
    /// The new plan, should the replan be accepted.
    Revise(Value, Arc<Plan>),
}

fn person(input: Input) -> Move {
    Move { actor: Actor::person("operator"), input, deed: Deed::None }
}

fn agent(input: Input) -> Move {
    Move { actor: Actor::agent("pilot"), input, deed: Deed::None }
}

fn why() -> String {
    "because".into()
}

/// Interferes out of the blue: pauses, cancels, kills, replans, hands over, notes things.
pub fn interfere(
    execution: &Execution,
    document: &Value,
    catalog: &ToolCatalog,
    chance: &mut Chance,
) -> Move {
    match chance.below(26) {
        0..=3 => person(Input::Pause { reason: why() }),
        4..=6 => person(Input::Resume { reason: why() }),
        7 => person(Input::Cancel { reason: why(), undo: *chance.pick(&[None, Some(true), Some(false)]) }),
        8 if chance.percent(30) => person(Input::Kill { reason: why() }),
        9..=11 => replan(document, catalog, chance),
        12 => agent(Input::BeginReplan { reason: why() }),
        13..=15 => {
            let to = if execution.driver() == Driver::Server { Driver::Agent } else { Driver::Server };
            person(Input::HandOver { to, reason: why() })
        }
        16 => {
            let values = json!({ "note": chance.below(10) });
            agent(Input::SaveContext { values: values.as_object().cloned().unwrap_or_default() })
        }
        17 => agent(Input::RecordDecision {
            step: None,
            decision: "go on".into(),
            reason: why(),
            details: None,
        }),
        18 => {
            let (kind, description) = ("notified".into(), "told somebody".into());
            agent(Input::RecordAction { step: Some(StepId::new("s0")), kind, description, details: None })
        }
        19 => by_hand(execution, chance),
        20 => meddle(execution, chance),
        21..=24 => replan(document, catalog, chance),
        _ => person(Input::Wake),
    }
}

/// Tries what must be refused: approving as an agent, or another call than the one asked for.
fn meddle(execution: &Execution, chance: &mut Chance) -> Move {
    let asked = execution.questions().into_iter().find_map(|ask| match ask {
        Ask::Approval { part, call, .. } => Some((part, call)),
        _ => None,
    });
    let Some((part, call)) = asked else { return person(Input::Start) };
    if chance.percent(50) {
        agent(Input::Approve { part, call, reason: why() })
    } else {
        person(Input::Approve { part, call: Hash::of(&[b"another call"]), reason: why() })
    }
}

fn replan(document: &Value, catalog: &ToolCatalog, chance: &mut Chance) -> Move {
    let revised = plans::revise(chance, document);
    let plan = plans::compile(&revised, catalog).unwrap_or_else(|found| panic!("bad revised plan: {found}"));
    Move { deed: Deed::Revise(revised, plan.clone()), ..agent(Input::Replan { plan, reason: why() }) }
}

fn by_hand(execution: &Execution, chance: &mut Chance) -> Move {
    let parts: Vec<PartId> =
        execution.parts().filter(|(_, part)| part.effect.is_some()).map(|(id, _)| id).collect();
    if parts.is_empty() {
        return person(Input::Wake);
    }
    let part = chance.pick(&parts).clone();
    let (description, evidence) = ("undone by hand".into(), None);
    Move {
        deed: Deed::UndoByHand(part.clone()),
        ..person(Input::RecordCompensation { part, description, evidence })
    }
}

/// Answers one open question. People tell the truth about the world.
pub fn answer(execution: &Execution, world: &World, chance: &mut Chance) -> Option<Move> {
    let questions = execution.questions();
    if questions.is_empty() {
        return None;
    }
    Some(match chance.pick(&questions) {
        Ask::Approval { part, call, .. } => {
            let (part, call, reason) = (part.clone(), *call, why());
            person(if chance.percent(85) {
                Input::Approve { part, call, reason }
            } else {
                Input::Deny { part, call, reason }
            })
        }
        Ask::Doubt { part, .. } => {
            let key = execution.part(part).and_then(|part| part.key).unwrap_or(Hash::ZERO);
            let agents = execution
                .part(part)
                .is_some_and(|part| matches!(part.state, PartState::InDoubt { side: Side::Do, .. }));
            let happened = world.has(key) || (agents && world.standing.contains(part));
            let result = happened.then(|| Arc::new(json!({ "n": 1, "flag": true })));
            let evidence = Arc::new(json!("looked it up"));
            person(Input::Settle { part: part.clone(), happened, reason: why(), result, evidence })
        }
        Ask::Failure { step, answers, .. } => {
            let answer = *chance.pick(answers);
            let result = (answer == Answer::Resolve).then(|| Arc::new(json!({ "n": 2, "flag": true })));
            let about = Question::Failure(step.clone());
            agent(Input::Answer { about, answer, reason: why(), result, evidence: None })
        }
        Ask::Compensation { part, answers, .. } => {
            let answer = *chance.pick(answers);
            let evidence = (answer == Answer::Resolve).then(|| Arc::new(json!("done by hand")));
            let deed = if answer == Answer::Resolve { Deed::UndoByHand(part.clone()) } else { Deed::None };
            let about = Question::Compensation(part.clone());
            Move { deed, ..person(Input::Answer { about, answer, reason: why(), result: None, evidence }) }
        }
        Ask::Limit { limit, answers } => {
            let (about, answer) = (Question::Limit(*limit), *chance.pick(answers));
            person(Input::Answer { about, answer, reason: why(), result: None, evidence: None })
        }
        Ask::Tool { part, attempt, .. } => {
            let answer = match chance.below(20) {
                0..=12 => Some(json!({ "port": 1 + chance.below(100) })),
                13 => Some(json!({ "port": "of call" })),
                14 => Some(json!({ "port": { "of": "call" } })),
                15..=17 => None,
                // Nobody cares to answer.
                _ => return None,
            };
            let (part, answer, reason) = (part.clone(), answer.map(Arc::new), why());
            let input = Input::AnswerTool { part, attempt: *attempt, answer, reason };
            if chance.percent(50) { person(input) } else { agent(input) }
        }
        Ask::Drift { tool, found, .. } => {
            person(Input::AcceptTool { tool: tool.clone(), definition: *found, reason: why() })
        }
    })
}

/// What the agent does next while it drives.
pub fn sail(execution: &Execution, world: &World, chance: &mut Chance) -> Move {
    let under_way = execution
        .parts()
        .find(|(_, part)| matches!(&part.state, PartState::Running(attempt) if attempt.by == Driver::Agent));
    if let Some((part, _)) = under_way.filter(|_| !chance.percent(15)) {
        let happened = world.standing.contains(&part);
        return agent(match chance.below(10) {
            0..=6 if happened || reads(execution, &part) => {
                Input::RecordFinished { part, result: Arc::new(json!({ "n": 3, "flag": true })) }
            }
            _ => {
                let failure = Failure::new(Category::ToolError, "no luck");
                let maybe = happened || chance.percent(30);
                Input::RecordFailed { part, failure, maybe }
            }
        });
    }
    match chance.below(20) {
        0..=1 => person(Input::HandOver { to: Driver::Server, reason: why() }),
        2 => agent(Input::RecordEnd { reason: why() }),
        3 => agent(Input::RecordStarted {
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
                            | PartState::BackingOff { side: Side::Do, .. }
                    );
                    idle && part.effect.is_none()
                })
                .map(|(id, _)| id)
                .collect();
            if open.is_empty() {
                return person(Input::HandOver { to: Driver::Server, reason: why() });
            }
            // Mostly in order, sometimes not.
            let at = if chance.percent(80) { 0 } else { chance.index(open.len()) };
            let part = open[at].clone();
            Move {
                deed: Deed::CarryOut(part.clone()),
                ..agent(Input::RecordStarted { part, tool: None, parameters: None })
            }
        }
    }
}

/// Reports the start of something that is done already; the agent does not really do it again.
fn again(execution: &Execution, chance: &mut Chance) -> Move {
    let done: Vec<PartId> = execution
        .parts()
        .filter(|(_, part)| matches!(part.state, PartState::Completed { .. }))
        .map(|(id, _)| id)
        .collect();
    match done.is_empty() {
        true => agent(Input::Wake),
        false => {
            agent(Input::RecordStarted { part: chance.pick(&done).clone(), tool: None, parameters: None })
        }
    }
}

fn reads(execution: &Execution, part: &PartId) -> bool {
    let plan = execution.plan();
    plan.find(part.step.as_str()).is_some_and(|step| plan.steps[step].call.safety == Safety::ReadOnly)
}
