//! A plan as a picture: steps as boxes that can be reached by keyboard, needs as arrows.

mod fold;
mod paint;
mod steps;

pub use fold::{FOLD_ABOVE, Folded, fold};
pub use paint::svg;
pub use steps::{of_execution, of_plan};

#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    pub title: String,
    pub nodes: Vec<Node>,
    pub edges: Vec<Edge>,
}

/// A step, or a group of steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique in the graph; names the element, so that it can be replaced when the step changes.
    pub id: String,
    pub label: String,
    /// The tool it calls.
    pub detail: String,
    pub status: &'static str,
    /// What else there is to know: `attempt 3 of 5`, `by hand`.
    pub note: String,
    /// Of a group: how many steps stand how. Empty for a step.
    pub tally: Vec<(&'static str, usize)>,
    pub href: String,
    pub selected: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    pub from: usize,
    pub to: usize,
    pub kind: EdgeKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EdgeKind {
    /// It comes after.
    Order,
    /// It reads the result.
    Data,
}

impl Graph {
    /// Only these nodes, and the edges between them.
    pub fn part(&self, nodes: &[usize]) -> Graph {
        let mut place = vec![None; self.nodes.len()];
        nodes.iter().enumerate().for_each(|(new, &old)| place[old] = Some(new));
        let edge = |edge: &Edge| Some(Edge { from: place[edge.from]?, to: place[edge.to]?, kind: edge.kind });
        Graph {
            title: self.title.clone(),
            nodes: nodes.iter().map(|&node| self.nodes[node].clone()).collect(),
            edges: self.edges.iter().filter_map(edge).collect(),
        }
    }

    fn pairs(&self) -> Vec<(usize, usize)> {
        self.edges.iter().map(|edge| (edge.from, edge.to)).collect()
    }
}
