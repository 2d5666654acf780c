//! The progress of undoing, and its order.

use super::agenda::PartPosition;
use crate::journal::event::ExecutionEnding;
use crate::plan::graph::StepGraph;
use crate::time::{Millis, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The state of undoing. A step is clear when none of its parts is open and all its dependents are clear.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UndoProgress {
    pub whole: bool,
    /// Only second effects are undone; the execution then ends as it had before.
    pub restores: Option<ExecutionEnding>,
    /// Parts that may be undone now, the last settled first.
    pub ready: BTreeSet<(Reverse<u64>, PartPosition)>,
    /// Parts not undone yet, with their position in the order of settling.
    pub open: BTreeMap<PartPosition, u64>,
    /// By step: the number of its open parts, and of its dependents that are not clear.
    left: Vec<u32>,
    blockers: Vec<u32>,
    /// Parts that may have happened, and when their calls are too old to take effect after they are undone.
    aging: BTreeMap<PartPosition, Timestamp>,
}

impl UndoProgress {
    pub fn new(graph: &StepGraph, parts: &[(PartPosition, u64)], whole: bool) -> UndoProgress {
        let steps = graph.needs.len();
        let mut undo = UndoProgress {
            whole,
            restores: None,
            ready: BTreeSet::new(),
            open: parts.iter().copied().collect(),
            left: vec![0; steps],
            blockers: vec![0; steps],
            aging: BTreeMap::new(),
        };
        for (part, _) in parts {
            undo.left[part.step()] += 1;
        }
        for &step in graph.topological.iter().rev() {
            let unclear = graph.dependents[step].iter().filter(|need| !undo.is_clear(need.step)).count();
            undo.blockers[step] = u32::try_from(unclear).expect("a plan has few steps");
        }
        for (part, rest) in parts {
            if undo.blockers[part.step()] == 0 {
                undo.ready.insert((Reverse(*rest), *part));
            }
        }
        undo
    }

    /// The part is not undone before this time.
    pub fn wait(&mut self, part: PartPosition, until: Timestamp) {
        self.aging.insert(part, until);
    }

    /// Whether the undoing of the part has not begun: its dependents come first, or it waits for a slot or for time.
    pub fn is_to_come(&self, part: PartPosition) -> bool {
        let is_ready = |rest: &u64| self.ready.contains(&(Reverse(*rest), part));
        self.open.get(&part).is_some_and(|rest| self.blockers[part.step()] > 0 || is_ready(rest))
    }

    /// Another effect of the part is undone when its turn comes, and not before this time.
    pub fn turn_to_another(&mut self, part: PartPosition, from: Option<Timestamp>) {
        self.aging.remove(&part);
        self.aging.extend(from.map(|until| (part, until)));
    }

    /// Moves the times before which parts are not undone, but not those of the parts that are left out.
    pub fn postpone(&mut self, span: Millis, left_out: &BTreeSet<PartPosition>) {
        let moved = self.aging.iter_mut().filter(|(part, _)| !left_out.contains(part));
        moved.for_each(|(_, until)| *until = until.plus(span));
    }

    /// Parts that could be undone now, if their calls were old enough.
    pub fn aging(&self) -> impl Iterator<Item = (Timestamp, PartPosition)> {
        let is_ready = |part: &PartPosition| {
            let rest = self.open.get(part).map(|rest| (Reverse(*rest), *part));
            rest.is_some_and(|key| self.ready.contains(&key))
        };
        self.aging.iter().filter(move |(part, _)| is_ready(part)).map(|(part, until)| (*until, *part))
    }

    /// The part to be undone next at this time.
    pub fn next(&self, now: Timestamp) -> Option<PartPosition> {
        self.due(now).next()
    }

    /// The parts that may be undone at this time.
    pub fn due(&self, now: Timestamp) -> impl Iterator<Item = PartPosition> {
        let is_old = move |part: &PartPosition| self.aging.get(part).is_none_or(|until| *until <= now);
        self.ready.iter().map(|(_, part)| *part).filter(is_old)
    }

    /// The part to be undone next, one that needs no time to pass if there is one, and from when it may be undone.
    pub fn first(&self) -> Option<(PartPosition, Option<Timestamp>)> {
        let at_once = self.ready_at_once().map(|part| (part, None));
        at_once.or_else(|| self.aging().min().map(|(until, part)| (part, Some(until))))
    }

    /// The part that needs no time to pass.
    pub fn ready_at_once(&self) -> Option<PartPosition> {
        self.ready.iter().map(|(_, part)| *part).find(|part| !self.aging.contains_key(part))
    }

    /// The undoing of the part has started.
    pub fn begun(&mut self, part: PartPosition) {
        if let Some(rest) = self.open.get(&part) {
            self.ready.remove(&(Reverse(*rest), part));
        }
        self.aging.remove(&part);
    }

    /// The part is undone or given up; its dependencies may follow.
    pub fn closed(&mut self, graph: &StepGraph, part: PartPosition) {
        self.begun(part);
        if self.open.remove(&part).is_none() {
            return;
        }
        self.left[part.step()] = self.left[part.step()].saturating_sub(1);
        let mut clear = if self.is_clear(part.step()) { vec![part.step()] } else { Vec::new() };
        while let Some(step) = clear.pop() {
            for need in &graph.needs[step] {
                self.blockers[need.step] = self.blockers[need.step].saturating_sub(1);
                if self.blockers[need.step] > 0 {
                    continue;
                }
                if self.left[need.step] == 0 {
                    clear.push(need.step);
                    continue;
                }
                let step = u32::try_from(need.step).expect("a plan has few steps");
                let freed = PartPosition { step, item: 0 }..=PartPosition { step, item: u32::MAX };
                let freed: Vec<_> = self.open.range(freed).map(|(part, rest)| (*part, *rest)).collect();
                for (part, rest) in freed {
                    self.ready.insert((Reverse(rest), part));
                }
            }
        }
    }

    fn is_clear(&self, step: usize) -> bool {
        self.left[step] == 0 && self.blockers[step] == 0
    }
}
