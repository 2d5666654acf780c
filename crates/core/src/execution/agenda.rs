//! The agenda: parts indexed by what they need next, derived from their states, so that a decision never searches all
//! parts.
//!
//! The agenda is never stored: every event updates it, and a replay yields the same agenda.

use super::part::{PartState, ProbeProgress, StepPart};
use crate::journal::event::CallSide;
use crate::time::{Millis, Timestamp};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// The position of a part: of its step in the plan, and of its item in the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartPosition {
    pub step: u32,
    pub item: u32,
}

impl PartPosition {
    pub fn new(step: usize, item: usize) -> PartPosition {
        let bounded = |n: usize| u32::try_from(n).expect("plans and fan-outs are far smaller");
        PartPosition { step: bounded(step), item: bounded(item) }
    }

    pub fn step(self) -> usize {
        self.step as usize
    }

    pub fn item(self) -> usize {
        self.item as usize
    }
}

/// A part that can start. Ordered by urgency: priority, then the longest path to the end, then plan order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadyPart {
    pub priority: Reverse<i32>,
    pub height: Reverse<u32>,
    pub part: PartPosition,
}

/// The kinds of timers; which of them are active depends on the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerKind {
    /// The deadline of an attempt, of any side.
    Attempt,
    /// The deadline of all attempts of a part together.
    Step,
    Approval,
    Retry,
    RetryUndo,
    RetryProbe,
}

impl TimerKind {
    pub const ALL: [TimerKind; 6] = [
        TimerKind::Attempt,
        TimerKind::Step,
        TimerKind::Approval,
        TimerKind::Retry,
        TimerKind::RetryUndo,
        TimerKind::RetryProbe,
    ];
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionAgenda {
    /// Steps, and items of opened fan-outs, that can start.
    pub ready: BTreeSet<ReadyPart>,
    timers: [BTreeSet<(Timestamp, PartPosition)>; 6],
    pub asking: BTreeSet<PartPosition>,
    pub approved: BTreeSet<PartPosition>,
    /// Attempts and probes in flight.
    pub running: BTreeSet<PartPosition>,
    /// Running parts whose tool waits for an answer.
    pub inquiring: BTreeSet<PartPosition>,
    /// In doubt, in any stage of probing.
    pub doubts: BTreeSet<PartPosition>,
    pub to_probe: BTreeSet<PartPosition>,
    pub to_evaluate: BTreeSet<PartPosition>,
    /// In doubt, and only a person can settle it.
    pub unknown: BTreeSet<PartPosition>,
    /// Parts with a second effect that waits for a decision.
    pub second: BTreeSet<PartPosition>,
    /// Compensations that failed for good.
    pub stuck: BTreeSet<PartPosition>,
    /// Steps that failed for good and whose policy has not been applied yet.
    pub failing: BTreeSet<usize>,
    /// Steps that wait for a decision.
    pub held: BTreeSet<usize>,
    /// The number of forward attempts in flight.
    pub calling: usize,
    /// The number of parts that were started and are not settled, going forward and undoing.
    pub busy: usize,
    pub busy_undoing: usize,
    /// Those among them that are in doubt and not being probed.
    pub idle_doubts: usize,
    pub idle_doubts_undoing: usize,
}

impl ExecutionAgenda {
    pub fn timer(&self, timer: TimerKind) -> &BTreeSet<(Timestamp, PartPosition)> {
        &self.timers[timer as usize]
    }

    pub fn enlist(&mut self, at: PartPosition, part: &StepPart, timeout_total: Option<Millis>) {
        self.mark(at, part, timeout_total, true);
        self.calling += usize::from(is_calling(part));
        if part.is_active() {
            *self.places(part) += 1;
        }
        if part.is_idle_doubt() {
            *self.given_back(part) += 1;
        }
    }

    pub fn delist(&mut self, at: PartPosition, part: &StepPart, timeout_total: Option<Millis>) {
        self.mark(at, part, timeout_total, false);
        self.calling = self.calling.saturating_sub(usize::from(is_calling(part)));
        if part.is_active() {
            let places = self.places(part);
            *places = places.saturating_sub(1);
        }
        if part.is_idle_doubt() {
            let given_back = self.given_back(part);
            *given_back = given_back.saturating_sub(1);
        }
    }

    fn places(&mut self, part: &StepPart) -> &mut usize {
        if part.is_undoing() { &mut self.busy_undoing } else { &mut self.busy }
    }

    fn given_back(&mut self, part: &StepPart) -> &mut usize {
        if part.is_undoing() { &mut self.idle_doubts_undoing } else { &mut self.idle_doubts }
    }

    /// Adds a part to the sets of its present state, or removes it from them.
    fn mark(&mut self, at: PartPosition, part: &StepPart, timeout_total: Option<Millis>, present: bool) {
        let total = part.ends_by(timeout_total);
        if part.running().is_some_and(|attempt| attempt.inquiry.is_some()) {
            put(&mut self.inquiring, at, present);
        }
        if part.has_surprise() {
            put(&mut self.second, at, present);
        }
        match &part.state {
            PartState::Asking { side, expires_at, .. } => {
                put(&mut self.asking, at, present);
                self.put_timer(TimerKind::Approval, Some(*expires_at), at, present);
                self.put_timer(TimerKind::Step, total.filter(|_| *side != CallSide::Undo), at, present);
            }
            PartState::Approved { side, expires_at, .. } => {
                put(&mut self.approved, at, present);
                self.put_timer(TimerKind::Approval, Some(*expires_at), at, present);
                self.put_timer(TimerKind::Step, total.filter(|_| *side != CallSide::Undo), at, present);
            }
            PartState::Running(attempt) => {
                put(&mut self.running, at, present);
                self.put_timer(TimerKind::Attempt, attempt.deadline, at, present);
                self.put_timer(TimerKind::Step, total.filter(|_| attempt.side != CallSide::Undo), at, present);
            }
            PartState::BackingOff { side: CallSide::Undo, until, .. } => {
                self.put_timer(TimerKind::RetryUndo, Some(*until), at, present);
            }
            PartState::BackingOff { until, .. } => {
                self.put_timer(TimerKind::Retry, Some(*until), at, present);
                self.put_timer(TimerKind::Step, total, at, present);
            }
            PartState::InDoubt { probing, .. } => {
                put(&mut self.doubts, at, present);
                match probing {
                    ProbeProgress::NotYet => put(&mut self.to_probe, at, present),
                    ProbeProgress::Running(attempt) => {
                        put(&mut self.running, at, present);
                        self.put_timer(TimerKind::Attempt, attempt.deadline, at, present);
                    }
                    ProbeProgress::BackingOff { until, .. } => {
                        self.put_timer(TimerKind::RetryProbe, Some(*until), at, present);
                    }
                    ProbeProgress::Answered { .. } => put(&mut self.to_evaluate, at, present),
                    ProbeProgress::Exhausted { .. } => put(&mut self.unknown, at, present),
                }
            }
            PartState::CompensationFailed { accepted: false, .. } => put(&mut self.stuck, at, present),
            PartState::Pending
            | PartState::Completed { .. }
            | PartState::Failed { .. }
            | PartState::Cancelled
            | PartState::Compensated { .. }
            | PartState::CompensationFailed { accepted: true, .. } => {}
        }
    }

    fn put_timer(&mut self, timer: TimerKind, when: Option<Timestamp>, at: PartPosition, present: bool) {
        if let Some(when) = when {
            put(&mut self.timers[timer as usize], (when, at), present);
        }
    }
}

fn is_calling(part: &StepPart) -> bool {
    matches!(&part.state, PartState::Running(attempt) if attempt.side != CallSide::Undo)
}

fn put<T: Ord>(set: &mut BTreeSet<T>, key: T, present: bool) {
    if present {
        set.insert(key);
    } else {
        set.remove(&key);
    }
}
