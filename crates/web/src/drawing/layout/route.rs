//! The route of one edge: bends between columns, straight lines through them.

use super::CanvasPoint;
use super::layer::LayeredGraph;
use crate::drawing::svg_text::number;
use std::fmt::Write as _;

/// From the right side of one node to the left side of another. Points come in pairs: each pair is a bend between two
/// columns, and between pairs the edge runs straight through a column.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeRoute {
    bends: Vec<(CanvasPoint, CanvasPoint)>,
}

impl EdgeRoute {
    /// Where it touches its target node.
    pub fn end(&self) -> CanvasPoint {
        self.bends.last().expect("a route has at least one bend").1
    }

    /// The `d` of a path.
    pub fn path(&self) -> String {
        let first = self.bends.first().expect("a route has at least one bend").0;
        let mut path = format!("M{} {}", number(first.x), number(first.y));
        let mut last = first;
        for (from, to) in &self.bends {
            if from.x > last.x {
                let _ = write!(path, "H{}", number(from.x));
            }
            if from.y == to.y {
                let _ = write!(path, "H{}", number(to.x));
            } else {
                let middle = number((from.x + to.x) / 2.0);
                let (x, y) = (number(to.x), number(to.y));
                let _ = write!(path, "C{middle} {} {middle} {y} {x} {y}", number(from.y));
            }
            last = *to;
        }
        path
    }

    pub(super) fn moved(&self, by: CanvasPoint) -> EdgeRoute {
        let moved = |point: CanvasPoint| CanvasPoint { x: point.x + by.x, y: point.y + by.y };
        EdgeRoute { bends: self.bends.iter().map(|&(from, to)| (moved(from), moved(to))).collect() }
    }
}

pub(super) fn route(path: &[usize], net: &LayeredGraph, columns: &[f64], middles: &[f64], width: f64) -> EdgeRoute {
    let bend = |pair: &[usize]| {
        let (from, to) = (pair[0], pair[1]);
        (
            CanvasPoint { x: columns[net.layer_of[from]] + width, y: middles[from] },
            CanvasPoint { x: columns[net.layer_of[to]], y: middles[to] },
        )
    };
    EdgeRoute { bends: path.windows(2).map(bend).collect() }
}
