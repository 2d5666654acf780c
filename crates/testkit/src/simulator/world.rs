//! The outside world: tools that work, fail, lose their responses, are slow or dead. It counts every real effect.

use super::late::LateUpstream;
use crate::chance::SeededRandom;
use rutter_core::execution::input::ToolCall;
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, ToolName};
use rutter_core::journal::event::CallSide;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::{CallOutcome, FailureCategory, ToolCatalog, ToolFailure};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub struct SimulatedWorld {
    /// By part: how often its forward calls, and its undo calls, took effect.
    pub done: BTreeMap<PartId, u32>,
    pub undone: BTreeMap<PartId, u32>,
    /// Parts whose effect is present now.
    pub standing: BTreeSet<PartId>,
    /// Keys that took effect, for tools that honour them and for probes.
    pub(super) keys: BTreeSet<Hash>,
    /// Every effect, in order.
    pub order: Vec<(PartId, CallSide)>,
    pub calls: u64,
    /// The definitions of the tools as they are now.
    pub definitions: BTreeMap<ToolName, Hash>,
    /// Accepted calls, by ticket.
    held: BTreeMap<Arc<str>, HeldCall>,
    /// In some runs: upstreams that act late.
    pub late: Option<LateUpstream>,
}

/// The state of a call that a tool has given a ticket for.
#[derive(Clone, Debug)]
enum HeldCall {
    Asks,
    Ready(CallOutcome),
}

/// The reply to a call: a ticket, perhaps, and the response.
#[derive(Clone, Debug)]
pub struct SimulatedReply {
    pub ticket: Option<Arc<str>>,
    pub answer: SimulatedAnswer,
}

/// When a response arrives, if ever.
#[derive(Clone, Debug)]
pub enum SimulatedAnswer {
    Now(CallOutcome),
    Later(Timestamp, CallOutcome),
    Never,
    /// The tool asks a question first; nothing has happened yet. With a continuation, another process may answer.
    Asks(Option<Arc<Value>>),
}

/// The failure rates of this world, in percent.
#[derive(Clone, Copy, Debug)]
pub struct FailureRates {
    pub fails: u64,
    pub loses_answers: u64,
    pub slow: u64,
    pub dead: u64,
    pub tickets: u64,
    pub asks: u64,
}

impl FailureRates {
    pub const HARD: FailureRates =
        FailureRates { fails: 30, loses_answers: 25, slow: 15, dead: 3, tickets: 10, asks: 3 };

    pub fn new(chance: &mut SeededRandom) -> FailureRates {
        match chance.below(4) {
            0 => FailureRates { fails: 0, loses_answers: 0, slow: 0, dead: 0, tickets: 10, asks: 3 },
            1 => FailureRates { fails: 12, loses_answers: 5, slow: 5, dead: 1, tickets: 30, asks: 8 },
            2 => FailureRates { fails: 25, loses_answers: 15, slow: 10, dead: 4, tickets: 15, asks: 5 },
            _ => FailureRates { fails: 5, loses_answers: 30, slow: 20, dead: 8, tickets: 5, asks: 3 },
        }
    }
}

impl SimulatedWorld {
    pub fn new(catalog: &ToolCatalog) -> SimulatedWorld {
        let definitions = catalog.tools.values().map(|tool| (tool.name.clone(), tool.definition)).collect();
        SimulatedWorld { definitions, ..SimulatedWorld::default() }
    }

    /// Now and then a tool changes, or changes back.
    pub fn change_a_tool(&mut self, chance: &mut SeededRandom) {
        if !chance.percent(2) {
            return;
        }
        let at = chance.index(self.definitions.len());
        let version = *chance.pick(&["", "", "2", "3"]);
        if let Some((name, definition)) = self.definitions.iter_mut().nth(at) {
            *definition = match version {
                "" => Hash::of(&[name.as_str().as_bytes()]),
                other => Hash::of(&[name.as_str().as_bytes(), other.as_bytes()]),
            };
        }
    }

    /// The tool's definition, if it is no longer the one that the call is for.
    pub fn changed(&self, call: &ToolCall) -> Option<Hash> {
        self.definitions.get(&call.tool).copied().filter(|definition| *definition != call.definition)
    }

    /// Makes a call: an effect, perhaps, and a response, perhaps. Under a ticket nothing new happens.
    pub fn call(
        &mut self,
        call: &ToolCall,
        now: Timestamp,
        rates: FailureRates,
        chance: &mut SeededRandom,
    ) -> SimulatedReply {
        self.calls += 1;
        if let Some(ticket) = &call.ticket {
            let answer = match self.held.get(ticket) {
                Some(HeldCall::Asks) => SimulatedAnswer::Asks(None),
                Some(HeldCall::Ready(outcome)) => deliver(outcome.clone(), now, rates, chance),
                None => SimulatedAnswer::Never,
            };
            return SimulatedReply { ticket: None, answer };
        }
        if call.continuation.is_some() {
            return SimulatedReply { ticket: None, answer: SimulatedAnswer::Asks(call.continuation.clone()) };
        }
        if let Some(reply) = self.act_late(call, now, chance) {
            return reply;
        }
        let ticket = chance.percent(rates.tickets).then(|| Arc::from(format!("ticket {}", self.calls)));
        // Where keys are forgotten, a tool that honours one acts at once or not at all.
        let may_ask = self.late.is_none() || !call.tool.as_str().ends_with("keyed");
        if may_ask && chance.percent(rates.asks) {
            self.held.extend(ticket.clone().map(|ticket| (ticket, HeldCall::Asks)));
            let is_kept = ticket.is_none() && self.calls.is_multiple_of(2);
            let continuation = is_kept.then(|| Arc::new(json!({ "call": self.calls })));
            return SimulatedReply { ticket, answer: SimulatedAnswer::Asks(continuation) };
        }
        let works = !chance.percent(rates.fails);
        let outcome = if works { self.take_effect(call, now, chance) } else { refuse(chance) };
        self.held.extend(ticket.clone().map(|ticket| (ticket, HeldCall::Ready(outcome.clone()))));
        // Tools with tickets take their time, so that much can happen in between.
        let answer = match ticket.is_some() && chance.percent(80) {
            true => SimulatedAnswer::Later(now.plus(Millis(chance.below(40_000))), outcome),
            false => deliver(outcome, now, rates, chance),
        };
        SimulatedReply { ticket, answer }
    }

    /// The result of a call whose tool asked and got an answer, or was declined.
    pub fn answered(
        &mut self,
        call: &ToolCall,
        ticket: Option<&Arc<str>>,
        answer: bool,
        now: Timestamp,
        chance: &mut SeededRandom,
    ) -> CallOutcome {
        let declined = || CallOutcome::NotDone(ToolFailure::new(FailureCategory::ToolError, "then not"));
        let outcome = if answer { self.take_effect(call, now, chance) } else { declined() };
        self.held.extend(ticket.map(|ticket| (ticket.clone(), HeldCall::Ready(outcome.clone()))));
        outcome
    }

    /// Whether the effect with this key happened, as a probe or a person finds out.
    pub fn has(&self, key: Hash) -> bool {
        self.keys.contains(&key)
    }

    fn take_effect(&mut self, call: &ToolCall, now: Timestamp, chance: &mut SeededRandom) -> CallOutcome {
        let result = match call.tool.as_str() {
            "sim.read" => answer(chance),
            "sim.find" => self.find(call, chance),
            tool => {
                let repeated = match tool {
                    "sim.once" | "sim.undo_once" => false,
                    // The same arguments change nothing more; here the arguments identify the part.
                    "sim.idempotent" => self.standing.contains(&call.part),
                    "sim.undo_idempotent" => !self.standing.contains(&call.part),
                    _ => self.has_seen(call.key, now),
                };
                if !repeated {
                    self.happen(call);
                }
                self.keys.insert(call.key);
                answer(chance)
            }
        };
        CallOutcome::Done { result: Arc::new(result), cost_micros: 1_000 }
    }

    /// Whether a tool that honours keys has done what this one stands for, as far as it remembers.
    fn has_seen(&mut self, key: Hash, now: Timestamp) -> bool {
        let Some(late) = &mut self.late else { return self.keys.contains(&key) };
        let seen = late.remembers(key, now);
        late.receive(key, now);
        if seen {
            self.complete_keyed(key);
        }
        seen
    }

    pub(super) fn happen(&mut self, call: &ToolCall) {
        self.order.push((call.part.clone(), call.side));
        if call.side == CallSide::Undo {
            *self.undone.entry(call.part.clone()).or_default() += 1;
            self.standing.remove(&call.part);
        } else {
            *self.done.entry(call.part.clone()).or_default() += 1;
            self.standing.insert(call.part.clone());
        }
    }

    /// An effect by the agent itself.
    pub fn happen_by_agent(&mut self, part: &PartId, key: Hash) {
        self.keys.insert(key);
        self.order.push((part.clone(), CallSide::Do));
        *self.done.entry(part.clone()).or_default() += 1;
        self.standing.insert(part.clone());
    }

    fn find(&self, call: &ToolCall, chance: &mut SeededRandom) -> Value {
        if chance.percent(10) {
            return json!({ "found": null });
        }
        json!({ "found": self.keys.contains(&call.key), "value": answer(chance) })
    }
}

fn deliver(outcome: CallOutcome, now: Timestamp, rates: FailureRates, chance: &mut SeededRandom) -> SimulatedAnswer {
    if chance.percent(rates.dead) {
        return SimulatedAnswer::Never;
    }
    if chance.percent(rates.loses_answers) {
        let failure = ToolFailure::new(FailureCategory::Unavailable, "connection reset");
        return SimulatedAnswer::Now(CallOutcome::Maybe(failure));
    }
    if chance.percent(rates.slow) {
        return SimulatedAnswer::Later(now.plus(Millis(chance.below(90_000))), outcome);
    }
    SimulatedAnswer::Now(outcome)
}

/// The schema of every tool's question.
pub fn asked_for() -> Value {
    let port = json!({ "type": "integer", "minimum": 1 });
    json!({ "type": "object", "properties": { "port": port }, "required": ["port"] })
}

fn answer(chance: &mut SeededRandom) -> Value {
    json!({ "n": chance.below(100), "flag": chance.percent(70) })
}

/// A failure that certainly precedes the effect.
fn refuse(chance: &mut SeededRandom) -> CallOutcome {
    let category = *chance.pick(&[
        FailureCategory::Unavailable,
        FailureCategory::Unavailable,
        FailureCategory::RateLimited,
        FailureCategory::ToolError,
        FailureCategory::InvalidInput,
    ]);
    let mut failure = ToolFailure::new(category, "refused");
    if category == FailureCategory::RateLimited {
        failure.retry_after = Some(Millis::seconds(5));
    }
    CallOutcome::NotDone(failure)
}
