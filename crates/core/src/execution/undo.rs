//! What is being undone, and what must be undone before what.

use super::agenda::PartAt;
use crate::mutation::Mutation;
use crate::plan::graph::Graph;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// An undoing under way. A step is clear when nothing of it is left to undo and all that depends on it is clear.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Undo {
    pub whole: bool,
    /// Parts whose turn may come now, the last to have come to rest first.
    pub ready: BTreeSet<(Reverse<u64>, PartAt)>,
    /// Parts of this undoing that are not undone, with their place in the order of rest.
    pub open: BTreeMap<PartAt, u64>,
    /// By step: its open parts, and its dependents that are not clear.
    left: Vec<u32>,
    blockers: Vec<u32>,
}

impl Undo {
    pub fn new(graph: &Graph, parts: &[(PartAt, u64)], whole: bool) -> Undo {
        let steps = graph.needs.len();
        let mut undo = Undo {
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
            if undo.blockers[part.step()] == 0 || Mutation::UndoInPlanOrder.is_active() {
                undo.ready.insert((undo.rank(*part, *rest), *part));
            }
        }
        undo
    }

    /// The part has begun to be undone.
    pub fn begun(&mut self, part: PartAt) {
        if let Some(rest) = self.open.get(&part) {
            let rank = self.rank(part, *rest);
            self.ready.remove(&(rank, part));
        }
    }

    /// The part is undone, or was given up on; what it depended on may follow.
    pub fn closed(&mut self, graph: &Graph, part: PartAt) {
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
                let freed = PartAt { step, item: 0 }..=PartAt { step, item: u32::MAX };
                let freed: Vec<_> = self.open.range(freed).map(|(part, rest)| (*part, *rest)).collect();
                for (part, rest) in freed {
                    self.ready.insert((self.rank(part, rest), part));
                }
            }
        }
    }

    fn is_clear(&self, step: usize) -> bool {
        self.left[step] == 0 && self.blockers[step] == 0
    }

    fn rank(&self, part: PartAt, rest: u64) -> Reverse<u64> {
        let order =
            if Mutation::UndoInPlanOrder.is_active() { u64::MAX - u64::from(part.step) } else { rest };
        Reverse(order)
    }
}
