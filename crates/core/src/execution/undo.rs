//! The progress of undoing, and its order.

use super::agenda::PartPosition;
use crate::plan::graph::StepGraph;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The state of undoing. A step is clear when none of its parts is open and all its dependents are clear.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UndoProgress {
    pub whole: bool,
    /// Parts that may be undone now, the last settled first.
    pub ready: BTreeSet<(Reverse<u64>, PartPosition)>,
    /// Parts not undone yet, with their position in the order of settling.
    pub open: BTreeMap<PartPosition, u64>,
    /// By step: the number of its open parts, and of its dependents that are not clear.
    left: Vec<u32>,
    blockers: Vec<u32>,
}

impl UndoProgress {
    pub fn new(graph: &StepGraph, parts: &[(PartPosition, u64)], whole: bool) -> UndoProgress {
        let steps = graph.needs.len();
        let mut undo = UndoProgress {
            whole,
            ready: BTreeSet::new(),
            open: parts.iter().copied().collect(),
            left: vec![0; steps],
            blockers: vec![0; steps],
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

    /// The undoing of the part has started.
    pub fn begun(&mut self, part: PartPosition) {
        if let Some(rest) = self.open.get(&part) {
            self.ready.remove(&(Reverse(*rest), part));
        }
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
