//! The edges of a plan: who must end before whom, and why.

use serde::Serialize;

/// An edge from a step to one it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Need {
    pub step: usize,
    pub kind: NeedKind,
}

/// Why one step comes after another. A pair of steps has one edge, the strongest of its kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NeedKind {
    /// Only the order of a flat list. Failure does not travel along it.
    Sequence,
    /// `depends_on`: comes after, reads nothing.
    Order,
    /// Reads the result, but looks at the status first and so copes without it.
    SoftData,
    /// Reads the result and cannot do without.
    Data,
}

/// Needs and dependents of every step, and what follows from them. Indexes are positions in the plan.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    pub needs: Vec<Vec<Need>>,
    pub dependents: Vec<Vec<Need>>,
    /// Every step after all it needs; ties in plan order.
    pub topological: Vec<usize>,
    /// Steps on the longest way from here to an end, this one included.
    pub height: Vec<u32>,
}
