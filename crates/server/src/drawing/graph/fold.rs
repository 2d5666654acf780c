//! Large plans, folded: steps that stand together become one box that can be opened.

use super::{Edge, Graph, Node};
use crate::drawing::layout::layers;
use crate::drawing::pen::count;
use crate::drawing::status::Mark;
use std::collections::BTreeMap;

/// More steps than this are too many to be read at once.
pub const FOLD_ABOVE: usize = 150;
/// How many columns of groups, and how many groups in a column.
const COLUMNS_MAX: usize = 12;
const GROUPS_MAX: usize = 8;

/// Groups of steps as a graph of their own.
#[derive(Clone, Debug)]
pub struct Folded {
    pub graph: Graph,
    /// The steps of each group, in the order of the groups; [`Graph::part`] draws them alone.
    pub groups: Vec<Vec<usize>>,
}

/// Folds a graph: neighbouring layers become a column, and in a column what is connected stays together.
///
/// Which steps make a group depends on the plan alone, so that a link to a group leads to the same steps as long as
/// the plan is the same.
pub fn fold(graph: &Graph, href: &dyn Fn(usize) -> String) -> Folded {
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
    Folded { graph: Graph { title: graph.title.clone(), nodes, edges }, groups }
}

/// Which column each node falls into: as many layers each as it takes for columns of about the same number of nodes.
fn columns(graph: &Graph) -> Vec<usize> {
    let layer_of = layers(graph.nodes.len(), &graph.pairs());
    let layers = layer_of.iter().max().map_or(0, |last| last + 1);
    let mut size = vec![0; layers];
    layer_of.iter().for_each(|&layer| size[layer] += 1);
    let wanted = graph.nodes.len().div_ceil(COLUMNS_MAX);
    let (mut column, mut filled) = (0, 0);
    let column_of_layer: Vec<usize> = size
        .iter()
        .map(|size| {
            // A layer far wider than that stands alone: with others it would be one connected whole.
            if filled >= wanted || (filled > 0 && filled + size > 2 * wanted) {
                (column, filled) = (column + 1, 0);
            }
            filled += size;
            column
        })
        .collect();
    layer_of.iter().map(|&layer| column_of_layer[layer]).collect()
}

/// The first of the nodes each node is connected to within its column.
fn connected(graph: &Graph, column_of: &[usize]) -> Vec<usize> {
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

/// Joins pieces in the order of the plan until there are few enough of about the same size.
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

fn group_node(graph: &Graph, at: usize, group: &[usize], href: String) -> Node {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    group.iter().for_each(|&node| *counts.entry(graph.nodes[node].status).or_default() += 1);
    let mut tally: Vec<(&'static str, usize)> = counts.into_iter().collect();
    // The worst comes first, so that one failure among a thousand steps is not overlooked.
    tally.sort_by_key(|&(status, _)| (std::cmp::Reverse(Mark::of(status).tone), status));
    let worst = tally.first().map_or("pending", |&(status, _)| status);
    if let [only] = group {
        return graph.nodes[*only].clone();
    }
    let label = |node: Option<&usize>| node.map_or("", |&node| graph.nodes[node].label.as_str());
    let standing = match tally[..] {
        [("planned", _)] => String::new(),
        [(status, _)] => format!(" {}", Mark::of(status).word),
        [(status, count), ..] => format!(", {count} {}", Mark::of(status).word),
        [] => String::new(),
    };
    Node {
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

fn edges_between(graph: &Graph, groups: &[Vec<usize>]) -> Vec<Edge> {
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
    strongest.into_iter().map(|((from, to), kind)| Edge { from, to, kind }).collect()
}
