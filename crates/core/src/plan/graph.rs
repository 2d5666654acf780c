//! The dependency graph of a plan.

use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// An edge from a step to one of its dependencies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct StepNeed {
    pub step: usize,
    pub kind: NeedKind,
}

/// Why one step runs after another. A pair of steps has one edge, of the strongest kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NeedKind {
    /// Only the order of a flat list. Failures do not propagate along it.
    Sequence,
    /// `depends_on`: comes after, reads nothing.
    Order,
    /// Reads the result, and works without it: by `default`, `is defined` or `if`, or only to undo or to probe.
    SoftData,
    /// Reads the result and cannot run without it.
    Data,
}

/// Dependencies and dependents of every step, and data derived from them. Indexes are positions in the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepGraph {
    pub needs: Vec<Vec<StepNeed>>,
    pub dependents: Vec<Vec<StepNeed>>,
    /// Every step after its dependencies; ties in plan order.
    pub topological: Vec<usize>,
    /// The number of steps on the longest path from here to an end, including this one.
    pub height: Vec<u32>,
}

/// A dependency cycle: each step needs the next, the last needs the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DependencyCycle(pub Vec<usize>);

/// How many cycles are reported at once; the others show once these are resolved.
const CYCLES_NAMED_MAX: usize = 8;

impl StepGraph {
    /// Builds the graph of `count` steps. An edge is a step and its dependency; ends outside the plan are dropped.
    ///
    /// If there are cycles, returns some without a common step, shortest first.
    pub fn build(count: usize, edges: &[(usize, StepNeed)]) -> Result<StepGraph, Vec<DependencyCycle>> {
        let needs = merge(count, edges);
        let mut dependents = vec![Vec::new(); count];
        for (step, needs) in needs.iter().enumerate() {
            for need in needs {
                dependents[need.step].push(StepNeed { step, kind: need.kind });
            }
        }
        let topological = sort(&needs, &dependents);
        if topological.len() < count {
            return Err(cycles(&needs, &topological));
        }
        let mut height = vec![1; count];
        for &step in topological.iter().rev() {
            for need in &needs[step] {
                height[need.step] = height[need.step].max(height[step] + 1);
            }
        }
        Ok(StepGraph { needs, dependents, topological, height })
    }

    pub fn len(&self) -> usize {
        self.needs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    /// All ancestors of each step.
    pub fn ancestors(&self) -> AncestorSets {
        let width = self.len().div_ceil(64);
        let mut bits = vec![0; width * self.len()];
        for &step in &self.topological {
            for need in &self.needs[step] {
                // Two rows of one buffer: a step never needs itself, so they do not overlap.
                for word in 0..width {
                    bits[step * width + word] |= bits[need.step * width + word];
                }
                bits[step * width + need.step / 64] |= 1 << (need.step % 64);
            }
        }
        AncestorSets { width, bits }
    }

    /// All dependents of the given steps along edges of the wanted kinds, in plan order, without the steps themselves.
    pub fn dependents_of(&self, steps: &[usize], wanted: impl Fn(NeedKind) -> bool) -> Vec<usize> {
        let mut seen = vec![false; self.len()];
        let mut given = vec![false; self.len()];
        steps.iter().for_each(|step| given[*step] = true);
        let mut open = steps.to_vec();
        while let Some(step) = open.pop() {
            for dependent in &self.dependents[step] {
                if wanted(dependent.kind) && !seen[dependent.step] {
                    seen[dependent.step] = true;
                    open.push(dependent.step);
                }
            }
        }
        (0..self.len()).filter(|step| seen[*step] && !given[*step]).collect()
    }

    /// The longest chain of steps, first to last; the earliest in plan order among equals.
    pub fn critical_path(&self) -> Vec<usize> {
        let highest = |candidates: &mut dyn Iterator<Item = usize>| {
            candidates.max_by_key(|&step| (self.height[step], Reverse(step)))
        };
        let mut path = Vec::new();
        let mut next = highest(&mut (0..self.len()));
        while let Some(step) = next {
            path.push(step);
            next = highest(&mut self.dependents[step].iter().map(|dependent| dependent.step));
        }
        path
    }
}

/// The set of ancestors of every step: one bit per pair, 125 kB for a thousand steps.
#[derive(Clone, Debug)]
pub struct AncestorSets {
    width: usize,
    bits: Vec<u64>,
}

impl AncestorSets {
    /// Whether `step` comes after `ancestor`.
    pub fn has(&self, step: usize, ancestor: usize) -> bool {
        let word = self.bits.get(step * self.width + ancestor / 64).copied().unwrap_or(0);
        word >> (ancestor % 64) & 1 == 1
    }
}

/// One edge per pair, the strongest; needs in plan order.
fn merge(count: usize, edges: &[(usize, StepNeed)]) -> Vec<Vec<StepNeed>> {
    let mut needs: Vec<Vec<StepNeed>> = vec![Vec::new(); count];
    for &(step, need) in edges {
        if step < count && need.step < count {
            needs[step].push(need);
        }
    }
    for needs in &mut needs {
        needs.sort_by_key(|need| (need.step, Reverse(need.kind)));
        needs.dedup_by_key(|need| need.step);
    }
    needs
}

/// Topological sort; ties in plan order. Steps in a cycle, and their dependents, are left out.
fn sort(needs: &[Vec<StepNeed>], dependents: &[Vec<StepNeed>]) -> Vec<usize> {
    let mut missing: Vec<usize> = needs.iter().map(Vec::len).collect();
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..needs.len()).filter(|&step| missing[step] == 0).map(Reverse).collect();
    let mut order = Vec::with_capacity(needs.len());
    while let Some(Reverse(step)) = ready.pop() {
        order.push(step);
        for dependent in &dependents[step] {
            missing[dependent.step] -= 1;
            if missing[dependent.step] == 0 {
                ready.push(Reverse(dependent.step));
            }
        }
    }
    order
}

/// Finds a shortest cycle, removes its steps, and repeats.
fn cycles(needs: &[Vec<StepNeed>], sorted: &[usize]) -> Vec<DependencyCycle> {
    let mut inside = vec![true; needs.len()];
    for &step in sorted {
        inside[step] = false;
    }
    let mut found = Vec::new();
    while found.len() < CYCLES_NAMED_MAX {
        let Some(cycle) = shortest_cycle(needs, &inside) else { break };
        for &step in &cycle {
            inside[step] = false;
        }
        found.push(DependencyCycle(cycle));
    }
    found
}

fn shortest_cycle(needs: &[Vec<StepNeed>], inside: &[bool]) -> Option<Vec<usize>> {
    let mut best: Option<Vec<usize>> = None;
    for start in (0..needs.len()).filter(|&step| inside[step]) {
        let bound = best.as_ref().map_or(usize::MAX, Vec::len);
        if let Some(cycle) = way_back(needs, inside, start, bound) {
            best = Some(cycle);
        }
    }
    best
}

/// The shortest path from a step over its dependencies back to itself, if shorter than `bound` steps.
fn way_back(needs: &[Vec<StepNeed>], inside: &[bool], start: usize, bound: usize) -> Option<Vec<usize>> {
    let mut from: Vec<Option<usize>> = vec![None; needs.len()];
    let mut open = VecDeque::from([(start, 1)]);
    while let Some((step, length)) = open.pop_front() {
        if length >= bound {
            return None;
        }
        for need in needs[step].iter().filter(|need| inside[need.step]) {
            if need.step == start {
                let mut cycle = vec![step];
                while let Some(before) = from[*cycle.last()?] {
                    cycle.push(before);
                }
                cycle.reverse();
                return Some(cycle);
            }
            if from[need.step].is_none() {
                from[need.step] = Some(step);
                open.push_back((need.step, length + 1));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(list: &[(usize, usize, NeedKind)]) -> Vec<(usize, StepNeed)> {
        list.iter().map(|&(step, need, kind)| (step, StepNeed { step: need, kind })).collect()
    }

    fn orders(list: &[(usize, usize)]) -> Vec<(usize, StepNeed)> {
        list.iter().map(|&(step, need)| (step, StepNeed { step: need, kind: NeedKind::Order })).collect()
    }

    #[test]
    fn steps_are_sorted_after_their_needs_and_ties_keep_plan_order() {
        for (count, list, expected) in [
            (0, &[][..], &[][..]),
            (3, &[], &[0, 1, 2]),
            (3, &[(0, 2)], &[1, 2, 0]),
            (4, &[(3, 1), (3, 2), (1, 0), (2, 0)], &[0, 1, 2, 3]),
            (4, &[(0, 3), (1, 3)], &[2, 3, 0, 1]),
        ] {
            assert_eq!(StepGraph::build(count, &orders(list)).unwrap().topological, expected);
        }
    }

    #[test]
    fn a_pair_of_steps_keeps_its_strongest_edge() {
        use NeedKind::*;
        let graph = StepGraph::build(2, &edges(&[(1, 0, Order), (1, 0, Data), (1, 0, Sequence)])).unwrap();
        assert_eq!(graph.needs[1], [StepNeed { step: 0, kind: Data }]);
        assert_eq!(graph.dependents[0], [StepNeed { step: 1, kind: Data }]);
    }

    #[test]
    fn the_shortest_cycle_is_named_first_and_every_ring_once() {
        let list = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 3), (5, 0), (1, 6)];
        let found = StepGraph::build(7, &orders(&list)).unwrap_err();
        assert_eq!(found, [DependencyCycle(vec![3, 4]), DependencyCycle(vec![0, 1, 2])]);
    }

    #[test]
    fn a_step_that_needs_itself_is_a_cycle_of_one() {
        assert_eq!(StepGraph::build(2, &orders(&[(1, 1)])).unwrap_err(), [DependencyCycle(vec![1])]);
    }

    #[test]
    fn ancestors_reach_through_the_whole_plan() {
        let list: Vec<_> = (1..200).map(|step| (step, step - 1)).collect();
        let graph = StepGraph::build(200, &orders(&list)).unwrap();
        let ancestors = graph.ancestors();
        assert!(ancestors.has(199, 0) && ancestors.has(130, 64) && ancestors.has(1, 0));
        assert!(!ancestors.has(0, 199) && !ancestors.has(64, 64) && !ancestors.has(64, 130));
        assert_eq!(graph.height[0], 200);
        assert_eq!(graph.critical_path().len(), 200);
    }

    #[test]
    fn dependents_follow_only_the_wanted_kinds() {
        use NeedKind::*;
        let graph = StepGraph::build(4, &edges(&[(1, 0, Data), (2, 1, Order), (3, 2, Data)])).unwrap();
        assert_eq!(graph.dependents_of(&[0], |_| true), [1, 2, 3]);
        assert_eq!(graph.dependents_of(&[0], |kind| kind == Data), [1]);
        assert_eq!(graph.dependents_of(&[0, 2], |kind| kind == Data), [1, 3]);
    }

    #[test]
    fn the_critical_path_is_the_longest_chain() {
        let graph = StepGraph::build(5, &orders(&[(1, 0), (2, 0), (3, 2), (4, 1)])).unwrap();
        assert_eq!(graph.critical_path(), [0, 1, 4]);
    }
}
