//! The world outside: tools that work, fail, lose their answer, are slow or dead. It counts every real effect.

use crate::chance::Chance;
use rutter_core::execution::input::ToolCall;
use rutter_core::hash::Hash;
use rutter_core::id::PartId;
use rutter_core::journal::event::Side;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::{Category, Failure, Outcome};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct World {
    /// By part: how often its forward calls, and its undo calls, really ran.
    pub done: BTreeMap<PartId, u32>,
    pub undone: BTreeMap<PartId, u32>,
    /// Parts whose effect stands now.
    pub standing: BTreeSet<PartId>,
    /// Keys that took effect, for tools that honour them and for those who ask.
    keys: BTreeSet<Hash>,
    /// Every effect, in order.
    pub order: Vec<(PartId, Side)>,
    pub calls: u64,
    /// What was accepted, by ticket.
    held: BTreeMap<Arc<str>, Held>,
}

/// Where a call stands that a tool has given a ticket for.
#[derive(Clone, Debug)]
enum Held {
    Asks,
    Ready(Outcome),
}

/// What comes back from a call: a ticket, perhaps, and the answer.
#[derive(Clone, Debug)]
pub struct Reply {
    pub ticket: Option<Arc<str>>,
    pub answer: Answer,
}

/// When an answer comes, if ever.
#[derive(Clone, Debug)]
pub enum Answer {
    Now(Outcome),
    Later(Timestamp, Outcome),
    Never,
    /// The tool wants to know something first; nothing has happened yet.
    Asks,
}

/// How unkind this world is, in percent.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub fails: u64,
    pub loses_answers: u64,
    pub slow: u64,
    pub dead: u64,
    pub tickets: u64,
    pub asks: u64,
}

impl Weather {
    pub fn new(chance: &mut Chance) -> Weather {
        match chance.below(4) {
            0 => Weather { fails: 0, loses_answers: 0, slow: 0, dead: 0, tickets: 10, asks: 3 },
            1 => Weather { fails: 12, loses_answers: 5, slow: 5, dead: 1, tickets: 30, asks: 8 },
            2 => Weather { fails: 25, loses_answers: 15, slow: 10, dead: 4, tickets: 15, asks: 5 },
            _ => Weather { fails: 5, loses_answers: 30, slow: 20, dead: 8, tickets: 5, asks: 3 },
        }
    }
}

impl World {
    /// Carries out a call: an effect, perhaps, and an answer, perhaps. Under a ticket nothing happens anew.
    pub fn call(&mut self, call: &ToolCall, now: Timestamp, weather: Weather, chance: &mut Chance) -> Reply {
        self.calls += 1;
        if let Some(ticket) = &call.ticket {
            let answer = match self.held.get(ticket) {
                Some(Held::Asks) => Answer::Asks,
                Some(Held::Ready(outcome)) => deliver(outcome.clone(), now, weather, chance),
                None => Answer::Never,
            };
            return Reply { ticket: None, answer };
        }
        let ticket = chance.percent(weather.tickets).then(|| Arc::from(format!("ticket {}", self.calls)));
        if chance.percent(weather.asks) {
            self.held.extend(ticket.clone().map(|ticket| (ticket, Held::Asks)));
            return Reply { ticket, answer: Answer::Asks };
        }
        let works = !chance.percent(weather.fails);
        let outcome = if works { self.take_effect(call, chance) } else { refuse(chance) };
        self.held.extend(ticket.clone().map(|ticket| (ticket, Held::Ready(outcome.clone()))));
        // Whoever gives tickets takes its time, so that much can happen in between.
        let answer = match ticket.is_some() && chance.percent(80) {
            true => Answer::Later(now.plus(Millis(chance.below(40_000))), outcome),
            false => deliver(outcome, now, weather, chance),
        };
        Reply { ticket, answer }
    }

    /// What comes of a call whose tool asked and got its answer, or was told that it gets none.
    pub fn answered(
        &mut self,
        call: &ToolCall,
        ticket: Option<&Arc<str>>,
        answer: bool,
        chance: &mut Chance,
    ) -> Outcome {
        let declined = || Outcome::NotDone(Failure::new(Category::ToolError, "then not"));
        let outcome = if answer { self.take_effect(call, chance) } else { declined() };
        self.held.extend(ticket.map(|ticket| (ticket.clone(), Held::Ready(outcome.clone()))));
        outcome
    }

    /// Whether the effect with this key took place, as a probe or a person finds out.
    pub fn has(&self, key: Hash) -> bool {
        self.keys.contains(&key)
    }

    fn take_effect(&mut self, call: &ToolCall, chance: &mut Chance) -> Outcome {
        let result = match call.tool.as_str() {
            "sim.read" => answer(chance),
            "sim.find" => self.find(call, chance),
            tool => {
                let repeated = match tool {
                    "sim.once" | "sim.undo_once" => false,
                    // The same arguments change nothing more; here the arguments are the part's own.
                    "sim.idempotent" => self.standing.contains(&call.part),
                    "sim.undo_idempotent" => !self.standing.contains(&call.part),
                    _ => self.keys.contains(&call.key),
                };
                if !repeated {
                    self.happen(call);
                }
                self.keys.insert(call.key);
                answer(chance)
            }
        };
        Outcome::Done { result: Arc::new(result), cost_micros: 1_000 }
    }

    fn happen(&mut self, call: &ToolCall) {
        self.order.push((call.part.clone(), call.side));
        if call.side == Side::Undo {
            *self.undone.entry(call.part.clone()).or_default() += 1;
            self.standing.remove(&call.part);
        } else {
            *self.done.entry(call.part.clone()).or_default() += 1;
            self.standing.insert(call.part.clone());
        }
    }

    /// What an agent does on its own.
    pub fn happen_by_agent(&mut self, part: &PartId, key: Hash) {
        self.keys.insert(key);
        self.order.push((part.clone(), Side::Do));
        *self.done.entry(part.clone()).or_default() += 1;
        self.standing.insert(part.clone());
    }

    fn find(&self, call: &ToolCall, chance: &mut Chance) -> Value {
        if chance.percent(10) {
            return json!({ "found": null });
        }
        json!({ "found": self.keys.contains(&call.key), "value": answer(chance) })
    }
}

fn deliver(outcome: Outcome, now: Timestamp, weather: Weather, chance: &mut Chance) -> Answer {
    if chance.percent(weather.dead) {
        return Answer::Never;
    }
    if chance.percent(weather.loses_answers) {
        let failure = Failure::new(Category::Unavailable, "connection reset");
        return Answer::Now(Outcome::Maybe(failure));
    }
    if chance.percent(weather.slow) {
        return Answer::Later(now.plus(Millis(chance.below(90_000))), outcome);
    }
    Answer::Now(outcome)
}

/// What every tool here asks for.
pub fn asked_for() -> Value {
    let port = json!({ "type": "integer", "minimum": 1 });
    json!({ "type": "object", "properties": { "port": port }, "required": ["port"] })
}

fn answer(chance: &mut Chance) -> Value {
    json!({ "n": chance.below(100), "flag": chance.percent(70) })
}

/// A failure that certainly precedes the effect.
fn refuse(chance: &mut Chance) -> Outcome {
    let category = *chance.pick(&[
        Category::Unavailable,
        Category::Unavailable,
        Category::RateLimited,
        Category::ToolError,
        Category::InvalidInput,
    ]);
    let mut failure = Failure::new(category, "refused");
    if category == Category::RateLimited {
        failure.retry_after = Some(Millis::seconds(5));
    }
    Outcome::NotDone(failure)
}
