//! Upstreams that act late, answer twice, and forget keys.

use super::world::{SimulatedAnswer, SimulatedReply, SimulatedWorld};
use crate::chance::SeededRandom;
use rutter_core::execution::input::{ExecutionInput, ToolCall};
use rutter_core::hash::Hash;
use rutter_core::id::PartId;
use rutter_core::journal::event::CallSide;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How long a tool with a key remembers it, in runs with late upstreams.
pub const KEY_WINDOW: Millis = Millis(50_000);

/// What late upstreams still have to do.
#[derive(Clone, Debug, Default)]
pub struct LateUpstream {
    on_the_way: Vec<(Timestamp, ToolCall)>,
    /// Idempotent tools act late as well, and answers come soon after that.
    pub(super) is_mixed: bool,
    /// Answers to come: the first of a call, or another one.
    answers: Vec<(Timestamp, ExecutionInput)>,
    /// Keys, and when they were received first.
    received: BTreeMap<Hash, Timestamp>,
    /// By part, and whether it was an undo: effects that came after everybody could have thought them absent.
    pub surprises: BTreeMap<(PartId, bool), u32>,
}

impl LateUpstream {
    pub fn new(is_mixed: bool) -> LateUpstream {
        LateUpstream { is_mixed, ..LateUpstream::default() }
    }

    /// When the next answer arrives.
    pub fn next_answer(&self) -> Option<Timestamp> {
        self.answers.iter().map(|(at, _)| *at).min()
    }

    pub fn take_answers(&mut self, now: Timestamp) -> Vec<ExecutionInput> {
        let (due, later) = std::mem::take(&mut self.answers).into_iter().partition(|(at, _)| *at <= now);
        self.answers = later;
        let mut due: Vec<(Timestamp, ExecutionInput)> = due;
        due.sort_by_key(|(at, _)| *at);
        due.into_iter().map(|(_, input)| input).collect()
    }

    /// Whether a tool still knows the key.
    pub fn remembers(&self, key: Hash, now: Timestamp) -> bool {
        self.received.get(&key).is_some_and(|first| first.plus(KEY_WINDOW) > now)
    }

    pub fn receive(&mut self, key: Hash, now: Timestamp) {
        if !self.remembers(key, now) {
            self.received.insert(key, now);
        }
    }

    pub fn has_surprised(&self, part: &PartId) -> bool {
        self.surprises_of(part, false) + self.surprises_of(part, true) > 0
    }

    pub fn surprises_of(&self, part: &PartId, undo: bool) -> u32 {
        self.surprises.get(&(part.clone(), undo)).copied().unwrap_or(0)
    }

    /// Now and then the answer to a call comes a second time, the same or another one.
    pub fn repeat_answer(&mut self, call: &ToolCall, outcome: &CallOutcome, now: Timestamp, chance: &mut SeededRandom) {
        if !chance.percent(10) {
            return;
        }
        let failure = ToolFailure::new(FailureCategory::Unavailable, "said something else");
        let other = match (outcome, chance.below(6)) {
            (CallOutcome::Done { cost_micros, .. }, 0..=1) => {
                let result = Arc::new(json!({ "n": 77, "flag": false }));
                CallOutcome::Done { result, cost_micros: *cost_micros }
            }
            (CallOutcome::Done { .. }, 2) => CallOutcome::NotDone(failure),
            (_, 3) => CallOutcome::Maybe(failure),
            (same, _) => same.clone(),
        };
        self.answers.push((now.plus(Millis(chance.below(90_000))), returned(call, other)));
    }
}

impl SimulatedWorld {
    /// Lets a call take effect later, if this upstream does so: seconds or minutes after it was given up.
    pub(super) fn act_late(
        &mut self,
        call: &ToolCall,
        now: Timestamp,
        chance: &mut SeededRandom,
    ) -> Option<SimulatedReply> {
        let late = self.late.as_mut()?;
        let acts = matches!(call.tool.as_str(), "sim.once" | "sim.keyed" | "sim.undo_once" | "sim.undo_keyed")
            || (late.is_mixed && call.tool.as_str() == "sim.idempotent");
        if !acts || late.remembers(call.key, now) || !chance.percent(35) {
            return None;
        }
        let span = *chance.pick(&[5_000, 25_000, 60_000, 120_000, 600_000]);
        let lands_at = now.plus(Millis(1 + chance.below(span)));
        late.on_the_way.push((lands_at, call.clone()));
        if call.tool.as_str().ends_with("keyed") {
            late.receive(call.key, now);
        }
        if chance.percent(60) {
            let result = Arc::new(json!({ "n": chance.below(100), "flag": chance.percent(70) }));
            let done = CallOutcome::Done { result, cost_micros: 1_000 };
            let at = lands_at.plus(Millis(chance.below(if late.is_mixed { 8_000 } else { 60_000 })));
            late.answers.push((at, returned(call, done.clone())));
            late.repeat_answer(call, &done, at, chance);
        }
        let failure = |message| ToolFailure::new(FailureCategory::Unavailable, message);
        let answer = match chance.below(20) {
            0..=8 => SimulatedAnswer::Now(CallOutcome::Maybe(failure("connection reset"))),
            // It says no, and does it.
            9 => SimulatedAnswer::Now(CallOutcome::NotDone(failure("refused"))),
            _ => SimulatedAnswer::Never,
        };
        Some(SimulatedReply { ticket: None, answer })
    }

    /// Lets everything take effect whose time has come.
    pub fn land(&mut self, now: Timestamp) {
        self.land_where(|at, _| at <= now);
    }

    /// A repeat with a key that the tool remembers completes the call that is on its way.
    pub(super) fn complete_keyed(&mut self, key: Hash) {
        self.land_where(|_, call| call.key == key);
    }

    fn land_where(&mut self, lands: impl Fn(Timestamp, &ToolCall) -> bool) {
        let Some(late) = self.late.as_mut() else { return };
        let (mut landed, waiting): (Vec<_>, Vec<_>) =
            std::mem::take(&mut late.on_the_way).into_iter().partition(|(at, call)| lands(*at, call));
        late.on_the_way = waiting;
        landed.sort_by_key(|(at, _)| *at);
        for (_, call) in landed {
            // The same arguments change nothing more.
            if call.tool.as_str() != "sim.idempotent" || !self.standing.contains(&call.part) {
                self.happen(&call);
            }
            self.keys.insert(call.key);
            if let Some(late) = self.late.as_mut() {
                *late.surprises.entry((call.part.clone(), call.side == CallSide::Undo)).or_default() += 1;
            }
        }
    }
}

pub(super) fn returned(call: &ToolCall, outcome: CallOutcome) -> ExecutionInput {
    ExecutionInput::Returned { part: call.part.clone(), side: call.side, attempt: call.attempt, outcome }
}
