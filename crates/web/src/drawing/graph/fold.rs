//! Folds large plans: neighbouring steps become one group that can be opened.

use super::{DrawnGraph, GraphEdge, GraphNode};
use crate::drawing::layout::layers;
use crate::drawing::status::StatusMark;
use crate::drawing::svg_text::count;
use std::collections::BTreeMap;

/// Larger plans are folded.
pub const FOLD_ABOVE: usize = 150;
/// The most columns of groups, and groups per column.
const COLUMNS_MAX: usize = 12;
const GROUPS_MAX: usize = 8;

/// Groups of steps as a graph.
#[derive(Clone, Debug)]
pub struct FoldedGraph {
    pub graph: DrawnGraph,
    /// The steps of each group, in the order of the groups; [`DrawnGraph::part`] draws them alone.
    pub groups: Vec<Vec<usize>>,
}

/// Folds a graph: neighbouring layers become a column, and connected steps in a column stay together.
///
/// Groups depend only on the plan, so that a link to a group shows the same steps as long as the plan is the
/// same.
pub fn fold(graph: &DrawnGraph, href: &dyn Fn(usize) -> String) -> FoldedGraph {
    let column_of = columns(graph);
    let columns = column_of.iter().max().map_or(0, |last| last + 1);
    let connected = connected(graph, &column_of);
    let mut groups = Vec::new();
    for column in 0..columns {
        let mut pieces: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for node in (0..graph.nodes.len()).filter(|&node| column_of[node] == column) {
            pieces.entry(connected[node]).or_default().push(node);
        }
        groups.extend(bundle(pieces.into_values().collect()));
    }
    let nodes = groups.iter().enumerate().map(|(at, group)| group_node(graph, at, group, href(at)));
    let nodes = nodes.collect();
    let edges = edges_between(graph, &groups);
    FoldedGraph { graph: DrawnGraph { title: graph.title.clone(), nodes, edges }, groups }
}

/// The column of each node: neighbouring layers, so that columns have about the same number of nodes.
fn columns(graph: &DrawnGraph) -> Vec<usize> {
    let layer_of = layers(graph.nodes.len(), &graph.pairs());
    let layers = layer_of.iter().max().map_or(0, |last| last + 1);
    let mut size = vec![0; layers];
    layer_of.iter().for_each(|&layer| size[layer] += 1);
    let wanted = graph.nodes.len().div_ceil(COLUMNS_MAX);
    let (mut column, mut filled) = (0, 0);
    let column_of_layer: Vec<usize> = size
        .iter()
        .map(|size| {
            // A much wider layer is a column of its own: with others everything in it would be connected.
            if filled >= wanted || (filled > 0 && filled + size > 2 * wanted) {
                (column, filled) = (column + 1, 0);
            }
            filled += size;
            column
        })
        .collect();
    layer_of.iter().map(|&layer| column_of_layer[layer]).collect()
}

/// The first node that each node is connected to within its column.
fn connected(graph: &DrawnGraph, column_of: &[usize]) -> Vec<usize> {
    let mut first: Vec<usize> = (0..graph.nodes.len()).collect();
    fn find(first: &mut [usize], mut node: usize) -> usize {
        while first[node] != node {
            first[node] = first[first[node]];
            node = first[node];
        }
        node
    }
    for edge in graph.edges.iter().filter(|edge| column_of[edge.from] == column_of[edge.to]) {
        let (from, to) = (find(&mut first, edge.from), find(&mut first, edge.to));
        first[from.max(to)] = from.min(to);
    }
    (0..graph.nodes.len()).map(|node| find(&mut first, node)).collect()
}

/// Joins pieces in plan order until there are few enough, of about the same size.
fn bundle(pieces: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    if pieces.len() <= GROUPS_MAX {
        return pieces;
    }
    let wanted = pieces.iter().map(Vec::len).sum::<usize>().div_ceil(GROUPS_MAX);
    let mut bundles: Vec<Vec<usize>> = Vec::new();
    for piece in pieces {
        match bundles.last_mut() {
            Some(bundle) if bundle.len() < wanted => bundle.extend(piece),
            _ => bundles.push(piece),
        }
    }
    bundles.iter_mut().for_each(|bundle| bundle.sort_unstable());
    bundles
}

fn group_node(graph: &DrawnGraph, at: usize, group: &[usize], href: String) -> GraphNode {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    group.iter().for_each(|&node| *counts.entry(graph.nodes[node].status).or_default() += 1);
    let mut tally: Vec<(&'static str, usize)> = counts.into_iter().collect();
    // The worst status first, so that one failure among a thousand steps is visible.
    tally.sort_by_key(|&(status, _)| (std::cmp::Reverse(StatusMark::of(status).tone), status));
    let worst = tally.first().map_or("pending", |&(status, _)| status);
    if let [only] = group {
        return graph.nodes[*only].clone();
    }
    let label = |node: Option<&usize>| node.map_or("", |&node| graph.nodes[node].label.as_str());
    let standing = match tally[..] {
        [("planned", _)] => String::new(),
        [(status, _)] => format!(" {}", StatusMark::of(status).word),
        [(status, count), ..] => format!(", {count} {}", StatusMark::of(status).word),
        [] => String::new(),
    };
    GraphNode {
        id: format!("group-{at}"),
        label: format!("{}{standing}", count(group.len(), "step")),
        detail: format!("{} … {}", label(group.first()), label(group.last())),
        status: worst,
        note: String::new(),
        tally,
        href,
        selected: group.iter().any(|&node| graph.nodes[node].selected),
    }
}

fn edges_between(graph: &DrawnGraph, groups: &[Vec<usize>]) -> Vec<GraphEdge> {
    let mut group_of = vec![0; graph.nodes.len()];
    for (at, group) in groups.iter().enumerate() {
        group.iter().for_each(|&node| group_of[node] = at);
    }
    let mut strongest = BTreeMap::new();
    for edge in &graph.edges {
        let (from, to) = (group_of[edge.from], group_of[edge.to]);
        if from != to {
            let kind = strongest.entry((from, to)).or_insert(edge.kind);
            *kind = edge.kind.max(*kind);
        }
    }
    strongest.into_iter().map(|((from, to), kind)| GraphEdge { from, to, kind }).collect()
}
