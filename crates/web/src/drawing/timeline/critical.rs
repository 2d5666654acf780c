//! The critical path: the chain of dependent steps that took the longest.

use rutter_core::plan::graph::StepGraph;
use rutter_core::time::Millis;

/// Whether each step is on the longest chain by measured time; ties go to plan order.
///
/// A step without work takes no time and is on no chain.
pub(super) fn critical(graph: &StepGraph, took: &[Millis]) -> Vec<bool> {
    let mut longest = vec![0; graph.len()];
    let mut before = vec![None; graph.len()];
    for &step in &graph.topological {
        for need in &graph.needs[step] {
            if longest[need.step] > longest[step] {
                (longest[step], before[step]) = (longest[need.step], Some(need.step));
            }
        }
        longest[step] += took[step].0;
    }
    let mut last = None;
    for step in 0..graph.len() {
        let further = last.map_or(0, |last: usize| longest[last]);
        if longest[step] > further {
            last = Some(step);
        }
    }
    let mut critical = vec![false; graph.len()];
    while let Some(step) = last {
        critical[step] = took[step].0 > 0;
        last = before[step];
    }
    critical
}

#[cfg(test)]
mod tests {
    use super::*;
    use rutter_core::plan::graph::{NeedKind, StepNeed};

    #[test]
    fn the_longest_chain_is_not_the_one_with_the_most_steps() {
        let edges = [(1, 0), (2, 1), (3, 0), (4, 2), (4, 3)];
        let edges = edges.map(|(step, need)| (step, StepNeed { step: need, kind: NeedKind::Order }));
        let graph = StepGraph::build(6, &edges).unwrap();
        let took = [10, 10, 10, 50, 5, 0].map(Millis);
        assert_eq!(critical(&graph, &took), [true, false, false, true, true, false]);
        assert_eq!(critical(&graph, &[Millis(0); 6]), [false; 6]);
    }
}
