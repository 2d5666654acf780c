//! Orders each layer: sweeps in both directions move vertices near their neighbours, until few edges cross.

use super::layer::LayeredGraph;

/// How often the layers are swept, and how many vertices all sweeps together may visit: large graphs get fewer.
const SWEEPS_MAX: usize = 24;
const SWEEPS_MIN: usize = 2;
const TOUCHED_MAX: usize = 120_000;
/// Larger graphs do not try to swap neighbours.
const SWAPS_VERTICES_MAX: usize = 400;
const SWAPS_ROUNDS_MAX: usize = 4;

pub(super) fn order(net: &mut LayeredGraph) {
    let vertices = net.layer_of.len();
    let mut rank = vec![0; vertices];
    for layer in &net.layers {
        number(layer, &mut rank);
    }
    let mut best = (crossings(net, &rank), net.layers.clone());
    for sweep in 0..(TOUCHED_MAX / vertices.max(1)).clamp(SWEEPS_MIN, SWEEPS_MAX) {
        if best.0 == 0 {
            break;
        }
        if sweep % 2 == 0 {
            (1..net.layers.len()).for_each(|layer| sort(net, layer, &mut rank, true));
        } else {
            (0..net.layers.len()).rev().skip(1).for_each(|layer| sort(net, layer, &mut rank, false));
        }
        if vertices <= SWAPS_VERTICES_MAX {
            swap_neighbours(net, &mut rank);
        }
        let crossings = crossings(net, &rank);
        if crossings < best.0 {
            best = (crossings, net.layers.clone());
        }
    }
    net.layers = best.1;
}

fn number(layer: &[usize], rank: &mut [usize]) {
    for (place, &vertex) in layer.iter().enumerate() {
        rank[vertex] = place;
    }
}

/// Sorts one layer by the mean rank of its neighbours in the layer before, or after.
fn sort(net: &mut LayeredGraph, layer: usize, rank: &mut [usize], look_back: bool) {
    let neighbours = if look_back { &net.before } else { &net.after };
    let mut keyed: Vec<(f64, usize, usize)> = net.layers[layer]
        .iter()
        .enumerate()
        .map(|(place, &vertex)| (mean(&neighbours[vertex], rank).unwrap_or(place as f64), place, vertex))
        .collect();
    keyed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    net.layers[layer] = keyed.into_iter().map(|(_, _, vertex)| vertex).collect();
    number(&net.layers[layer], rank);
}

fn mean(vertices: &[usize], rank: &[usize]) -> Option<f64> {
    let sum: usize = vertices.iter().map(|&vertex| rank[vertex]).sum();
    (!vertices.is_empty()).then(|| sum as f64 / vertices.len() as f64)
}

/// Swaps adjacent vertices where that removes more crossings than it adds.
fn swap_neighbours(net: &mut LayeredGraph, rank: &mut [usize]) {
    for _ in 0..SWAPS_ROUNDS_MAX {
        let mut swapped = false;
        for layer in 0..net.layers.len() {
            for place in 1..net.layers[layer].len() {
                let (upper, lower) = (net.layers[layer][place - 1], net.layers[layer][place]);
                let gain = gain(&net.before[upper], &net.before[lower], rank)
                    + gain(&net.after[upper], &net.after[lower], rank);
                if gain > 0 {
                    net.layers[layer].swap(place - 1, place);
                    (rank[upper], rank[lower]) = (place, place - 1);
                    swapped = true;
                }
            }
        }
        if !swapped {
            return;
        }
    }
}

/// How many crossings fewer there would be if two adjacent vertices were swapped.
fn gain(of_upper: &[usize], of_lower: &[usize], rank: &[usize]) -> i64 {
    let pairs = of_upper.iter().flat_map(|&upper| of_lower.iter().map(move |&lower| (rank[upper], rank[lower])));
    pairs.map(|(upper, lower)| (upper > lower) as i64 - (upper < lower) as i64).sum()
}

fn crossings(net: &LayeredGraph, rank: &[usize]) -> u64 {
    let between = |layer: &Vec<usize>| {
        let edges = layer.iter().flat_map(|&vertex| {
            let mut ends: Vec<usize> = net.after[vertex].iter().map(|&next| rank[next]).collect();
            ends.sort_unstable();
            ends
        });
        inversions(edges.collect())
    };
    net.layers.iter().map(between).sum()
}

/// The number of inversions, counted during a merge sort.
fn inversions(mut ranks: Vec<usize>) -> u64 {
    let mut merged = ranks.clone();
    let mut count = 0;
    let mut width = 1;
    while width < ranks.len() {
        for start in (0..ranks.len()).step_by(2 * width) {
            let (middle, end) = ((start + width).min(ranks.len()), (start + 2 * width).min(ranks.len()));
            let (mut left, mut right) = (start, middle);
            for slot in &mut merged[start..end] {
                if right == end || (left < middle && ranks[left] <= ranks[right]) {
                    *slot = ranks[left];
                    left += 1;
                } else {
                    *slot = ranks[right];
                    right += 1;
                    count += (middle - left) as u64;
                }
            }
        }
        std::mem::swap(&mut ranks, &mut merged);
        width *= 2;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inversions_are_counted() {
        for (ranks, count) in [(vec![], 0), (vec![1], 0), (vec![1, 2, 2], 0), (vec![2, 1], 1), (vec![3, 1, 2, 0, 0], 8)]
        {
            assert_eq!(inversions(ranks.clone()), count, "{ranks:?}");
        }
    }
}
