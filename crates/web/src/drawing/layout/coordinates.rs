//! From order to coordinates: every vertex as close as possible to its neighbours, without overlap.

use super::layer::LayeredGraph;

/// The height of a lane.
pub(super) const LANE: f64 = 4.0;
const GAP_BETWEEN_NODES: f64 = 24.0;
const GAP_AT_LANE: f64 = 16.0;
/// Gap between columns, wider where edges climb far, so that they are not too steep.
const GAP_BETWEEN_COLUMNS: f64 = 52.0;
const GAP_MORE_MAX: f64 = 108.0;
const CLIMB_PER_GAP: f64 = 14.0;

const ROUNDS_MAX: usize = 40;
const ROUNDS_MIN: usize = 4;
const TOUCHED_MAX: usize = 240_000;
/// The last rounds consider both neighbouring layers, which centres a vertex between them.
const ROUNDS_BOTH_WAYS: usize = 4;

/// Weights towards neighbours: a lane that continues a lane has the largest, to be straight.
const PULL_NONE: f64 = 0.01;
const PULL_NODE: f64 = 1.0;
const PULL_LANE: f64 = 8.0;
const PULL_LANE_TO_LANE: f64 = 64.0;

#[derive(Clone, Copy)]
enum NeighbourLayers {
    Back,
    Ahead,
    Both,
}

/// The vertical centre of every vertex; the topmost edge of all is at 0.
pub(super) fn middles(net: &LayeredGraph, height: f64) -> Vec<f64> {
    let room: Vec<Vec<f64>> = net.layers.iter().map(|layer| offsets(net, layer, height)).collect();
    let mut middles = vec![0.0; net.layer_of.len()];
    for (layer, offsets) in net.layers.iter().zip(&room) {
        let centre = offsets.last().copied().unwrap_or(0.0) / 2.0;
        layer.iter().zip(offsets).for_each(|(&vertex, offset)| middles[vertex] = offset - centre);
    }
    let rounds = (TOUCHED_MAX / middles.len().max(1)).clamp(ROUNDS_MIN, ROUNDS_MAX);
    for round in 0..rounds {
        let look = match round {
            _ if round + ROUNDS_BOTH_WAYS >= rounds => NeighbourLayers::Both,
            _ if round % 2 == 0 => NeighbourLayers::Back,
            _ => NeighbourLayers::Ahead,
        };
        let count = net.layers.len();
        for step in 0..count {
            let layer = if round % 2 == 0 { step } else { count - 1 - step };
            settle(net, &net.layers[layer], &room[layer], look, &mut middles);
        }
    }
    let top = |vertex: usize| middles[vertex] - if net.is_lane(vertex) { LANE } else { height } / 2.0;
    let highest = (0..middles.len()).map(top).fold(f64::INFINITY, f64::min);
    // Rounded to a tenth of a pixel, as drawn, so that nearly straight lines become straight.
    middles.iter().map(|middle| ((middle - highest) * 10.0).round() / 10.0).collect()
}

/// The left edge of every column.
pub(super) fn columns(net: &LayeredGraph, middles: &[f64], width: f64) -> Vec<f64> {
    let mut x = 0.0;
    let mut columns = Vec::with_capacity(net.layers.len());
    for layer in &net.layers {
        columns.push(x);
        let climbs = layer
            .iter()
            .flat_map(|&vertex| net.after[vertex].iter().map(move |&next| (middles[vertex] - middles[next]).abs()));
        let steepest = climbs.fold(0.0, f64::max);
        x += width + GAP_BETWEEN_COLUMNS + (steepest / CLIMB_PER_GAP).min(GAP_MORE_MAX);
    }
    columns
}

/// The distance of each vertex of a layer from the first when all are packed tightly.
fn offsets(net: &LayeredGraph, layer: &[usize], height: f64) -> Vec<f64> {
    let half = |vertex| if net.is_lane(vertex) { LANE } else { height } / 2.0;
    let mut offset = 0.0;
    let mut offsets = Vec::with_capacity(layer.len());
    for (place, &vertex) in layer.iter().enumerate() {
        if let Some(&above) = place.checked_sub(1).and_then(|above| layer.get(above)) {
            let at_lane = net.is_lane(above) || net.is_lane(vertex);
            offset += half(above) + half(vertex) + if at_lane { GAP_AT_LANE } else { GAP_BETWEEN_NODES };
        }
        offsets.push(offset);
    }
    offsets
}

/// Vertices of a layer that move together because they would overlap otherwise.
struct VertexBlock {
    position: f64,
    pull: f64,
    length: usize,
}

/// Moves each vertex of a layer to its preferred position, as far as order and space allow.
///
/// Without its offset, each vertex must not be above the one before it: the least squares under that condition are
/// found by merging neighbours that would pass each other, and giving them their mean.
fn settle(net: &LayeredGraph, layer: &[usize], offsets: &[f64], look: NeighbourLayers, middles: &mut [f64]) {
    let mut blocks: Vec<VertexBlock> = Vec::new();
    for (&vertex, offset) in layer.iter().zip(offsets) {
        let (wanted, pull) = wish(net, vertex, look, middles);
        let mut block = VertexBlock { position: wanted - offset, pull, length: 1 };
        while let Some(above) = blocks.pop_if(|above| above.position > block.position) {
            let pull = above.pull + block.pull;
            let place = (above.position * above.pull + block.position * block.pull) / pull;
            block = VertexBlock { position: place, pull, length: above.length + block.length };
        }
        blocks.push(block);
    }
    let places = blocks.iter().flat_map(|block| std::iter::repeat_n(block.position, block.length));
    for ((&vertex, offset), place) in layer.iter().zip(offsets).zip(places) {
        middles[vertex] = place + offset;
    }
}

/// The preferred position of a vertex, the median of its neighbours, and its weight.
fn wish(net: &LayeredGraph, vertex: usize, look: NeighbourLayers, middles: &[f64]) -> (f64, f64) {
    let (before, after) = match look {
        NeighbourLayers::Back => (&net.before[vertex][..], &[][..]),
        NeighbourLayers::Ahead => (&[][..], &net.after[vertex][..]),
        NeighbourLayers::Both => (&net.before[vertex][..], &net.after[vertex][..]),
    };
    let neighbours = || before.iter().chain(after).copied();
    // A lane follows its own line; an edge that leaves it for a node must not bend it.
    let goes_on = net.is_lane(vertex) && neighbours().any(|neighbour| net.is_lane(neighbour));
    let followed = neighbours().filter(|&neighbour| !goes_on || net.is_lane(neighbour));
    let mut places: Vec<f64> = followed.map(|neighbour| middles[neighbour]).collect();
    if places.is_empty() {
        return (middles[vertex], PULL_NONE);
    }
    places.sort_by(f64::total_cmp);
    let half = places.len() / 2;
    let median = if places.len() % 2 == 1 { places[half] } else { (places[half - 1] + places[half]) / 2.0 };
    let pull = match net.is_lane(vertex) {
        false => PULL_NODE,
        true if goes_on => PULL_LANE_TO_LANE,
        true => PULL_LANE,
    };
    (median, pull)
}
