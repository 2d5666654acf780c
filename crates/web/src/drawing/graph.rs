//! The graph of a plan: steps as boxes that can be focused, dependencies as arrows.

mod fold;
mod paint;
mod steps;

pub use fold::{FOLD_ABOVE, FoldedGraph, fold};
pub use paint::svg;
pub use steps::{of_execution, of_plan};

#[derive(Clone, Debug, PartialEq)]
pub struct DrawnGraph {
    pub title: String,
    pub nodes: Vec<GraphNode>,
    pub edges: Vec<GraphEdge>,
}

/// A step, or a group of steps.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphNode {
    /// Unique in the graph; the id of the element, so that it can be replaced when the step changes.
    pub id: String,
    pub label: String,
    /// The tool it calls.
    pub detail: String,
    pub status: &'static str,
    /// A note: `attempt 3 of 5`, `by hand`.
    pub note: String,
    /// For a group: the number of steps by status. Empty for a step.
    pub tally: Vec<(&'static str, usize)>,
    pub href: String,
    pub selected: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphEdge {
    pub from: usize,
    pub to: usize,
    pub kind: GraphEdgeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GraphEdgeKind {
    /// It runs afterwards.
    Order,
    /// It uses the result.
    Data,
}

impl DrawnGraph {
    /// The subgraph of these nodes.
    pub fn part(&self, nodes: &[usize]) -> DrawnGraph {
        let mut place = vec![None; self.nodes.len()];
        nodes.iter().enumerate().for_each(|(new, &old)| place[old] = Some(new));
        let edge = |edge: &GraphEdge| Some(GraphEdge { from: place[edge.from]?, to: place[edge.to]?, kind: edge.kind });
        DrawnGraph {
            title: self.title.clone(),
            nodes: nodes.iter().map(|&node| self.nodes[node].clone()).collect(),
            edges: self.edges.iter().filter_map(edge).collect(),
        }
    }

    fn pairs(&self) -> Vec<(usize, usize)> {
        self.edges.iter().map(|edge| (edge.from, edge.to)).collect()
    }
}
