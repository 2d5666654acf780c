//! What there is to do, derived from the states of the parts so that nothing has to be searched for.
//!
//! The agenda is never stored: it changes with every event and is the same after a replay.

use super::part::{Part, PartState, Probing};
use crate::journal::event::Side;
use crate::time::{Millis, Timestamp};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// A part by position: of its step in the plan, of its item in the step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartAt {
    pub step: u32,
    pub item: u32,
}

impl PartAt {
    pub fn new(step: usize, item: usize) -> PartAt {
        let bounded = |n: usize| u32::try_from(n).expect("plans and fan-outs are far smaller");
        PartAt { step: bounded(step), item: bounded(item) }
    }

    pub fn step(self) -> usize {
        self.step as usize
    }

    pub fn item(self) -> usize {
        self.item as usize
    }
}

/// What can be startable, most urgent first: priority, then the longest way to the end, then plan order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    pub priority: Reverse<i32>,
    pub height: Reverse<u32>,
    pub part: PartAt,
}

/// The kinds of timers; which of them count depends on the phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    /// An attempt, of whatever side, must have ended.
    Attempt,
    /// All attempts of a part together must have ended.
    Step,
    Approval,
    Retry,
    RetryUndo,
    RetryProbe,
}

impl Timer {
    pub const ALL: [Timer; 6] =
        [Timer::Attempt, Timer::Step, Timer::Approval, Timer::Retry, Timer::RetryUndo, Timer::RetryProbe];
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agenda {
    /// Steps, or items of opened fan-outs, that could begin.
    pub ready: BTreeSet<Turn>,
    timers: [BTreeSet<(Timestamp, PartAt)>; 6],
    pub asking: BTreeSet<PartAt>,
    pub approved: BTreeSet<PartAt>,
    /// Attempts and probes under way.
    pub running: BTreeSet<PartAt>,
    /// Those among them whose tool waits for an answer.
    pub inquiring: BTreeSet<PartAt>,
    /// In doubt, in whatever stage of finding out.
    pub doubts: BTreeSet<PartAt>,
    pub to_probe: BTreeSet<PartAt>,
    pub to_judge: BTreeSet<PartAt>,
    /// In doubt, and only a person can tell.
    pub unknown: BTreeSet<PartAt>,
    /// Compensations that failed for good.
    pub stuck: BTreeSet<PartAt>,
    /// Steps that failed for good and whose policy has not been applied yet.
    pub failing: BTreeSet<usize>,
    /// Steps that wait for somebody's decision.
    pub held: BTreeSet<usize>,
    /// Forward attempts under way.
    pub calling: usize,
    /// Parts that hold a place, going forward and undoing.
    pub busy: usize,
    pub busy_undoing: usize,
}

impl Agenda {
    pub fn timer(&self, timer: Timer) -> &BTreeSet<(Timestamp, PartAt)> {
        &self.timers[timer as usize]
    }

    pub fn enlist(&mut self, at: PartAt, part: &Part, timeout_total: Option<Millis>) {
        self.mark(at, part, timeout_total, true);
        self.calling += usize::from(is_calling(part));
        if part.is_active() {
            *self.places(part) += 1;
        }
    }

    pub fn delist(&mut self, at: PartAt, part: &Part, timeout_total: Option<Millis>) {
        self.mark(at, part, timeout_total, false);
        self.calling = self.calling.saturating_sub(usize::from(is_calling(part)));
        if part.is_active() {
            let places = self.places(part);
            *places = places.saturating_sub(1);
        }
    }

    fn places(&mut self, part: &Part) -> &mut usize {
        if part.is_undoing() { &mut self.busy_undoing } else { &mut self.busy }
    }

    /// Enters a part into the sets of its present state, or takes it out of them.
    fn mark(&mut self, at: PartAt, part: &Part, timeout_total: Option<Millis>, present: bool) {
        let total = timeout_total.zip(part.began_at).map(|(span, began)| began.plus(span));
        if part.running().is_some_and(|attempt| attempt.inquiry.is_some()) {
            put(&mut self.inquiring, at, present);
        }
        match &part.state {
            PartState::Asking { expires_at, .. } => {
                put(&mut self.asking, at, present);
                self.put_timer(Timer::Approval, Some(*expires_at), at, present);
            }
            PartState::Approved { expires_at, .. } => {
                put(&mut self.approved, at, present);
                self.put_timer(Timer::Approval, Some(*expires_at), at, present);
            }
            PartState::Running(attempt) => {
                put(&mut self.running, at, present);
                self.put_timer(Timer::Attempt, attempt.deadline, at, present);
                self.put_timer(Timer::Step, total.filter(|_| attempt.side != Side::Undo), at, present);
            }
            PartState::BackingOff { side: Side::Undo, until } => {
                self.put_timer(Timer::RetryUndo, Some(*until), at, present);
            }
            PartState::BackingOff { until, .. } => {
                self.put_timer(Timer::Retry, Some(*until), at, present);
                self.put_timer(Timer::Step, total, at, present);
            }
            PartState::InDoubt { probing, .. } => {
                put(&mut self.doubts, at, present);
                match probing {
                    Probing::NotYet => put(&mut self.to_probe, at, present),
                    Probing::Running(attempt) => {
                        put(&mut self.running, at, present);
                        self.put_timer(Timer::Attempt, attempt.deadline, at, present);
                    }
                    Probing::BackingOff { until } => {
                        self.put_timer(Timer::RetryProbe, Some(*until), at, present);
                    }
                    Probing::Answered(_) => put(&mut self.to_judge, at, present),
                    Probing::Exhausted { .. } => put(&mut self.unknown, at, present),
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

    fn put_timer(&mut self, timer: Timer, when: Option<Timestamp>, at: PartAt, present: bool) {
        if let Some(when) = when {
            put(&mut self.timers[timer as usize], (when, at), present);
        }
    }
}

fn is_calling(part: &Part) -> bool {
    matches!(&part.state, PartState::Running(attempt) if attempt.side != Side::Undo)
}

fn put<T: Ord>(set: &mut BTreeSet<T>, key: T, present: bool) {
    if present {
        set.insert(key);
    } else {
        set.remove(&key);
    }
}
