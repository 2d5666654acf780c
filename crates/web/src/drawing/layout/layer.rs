//! Assigns layers to nodes, and lanes to edges that span several layers.

use std::collections::{HashMap, VecDeque};

/// A graph in which every edge leads from one layer to the next. Vertices below `nodes` are nodes, the others lanes.
pub(super) struct LayeredGraph {
    pub(super) nodes: usize,
    pub(super) layer_of: Vec<usize>,
    /// The vertices of each layer, from top to bottom.
    pub(super) layers: Vec<Vec<usize>>,
    pub(super) before: Vec<Vec<usize>>,
    pub(super) after: Vec<Vec<usize>>,
    /// Edges from one node share a lane as long as possible: one lane per node and layer.
    lanes: HashMap<(usize, usize), usize>,
}

impl LayeredGraph {
    pub(super) fn new(nodes: usize, edges: &[(usize, usize)]) -> LayeredGraph {
        let layer_of = layers(nodes, edges);
        let count = layer_of.iter().max().map_or(0, |last| last + 1);
        let mut net = LayeredGraph {
            nodes,
            layers: vec![Vec::new(); count],
            before: vec![Vec::new(); nodes],
            after: vec![Vec::new(); nodes],
            layer_of,
            lanes: HashMap::new(),
        };
        for node in 0..nodes {
            net.layers[net.layer_of[node]].push(node);
        }
        for &(from, to) in edges {
            net.add_edge(from, to);
        }
        net
    }

    pub(super) fn is_lane(&self, vertex: usize) -> bool {
        vertex >= self.nodes
    }

    /// The vertices an edge runs over, including its ends.
    pub(super) fn path(&self, (from, to): (usize, usize)) -> Vec<usize> {
        let between = self.layer_of[from] + 1..self.layer_of[to];
        let lanes = between.filter_map(|layer| self.lanes.get(&(from, layer)).copied());
        std::iter::once(from).chain(lanes).chain(std::iter::once(to)).collect()
    }

    fn add_edge(&mut self, from: usize, to: usize) {
        let mut last = from;
        for layer in self.layer_of[from] + 1..self.layer_of[to] {
            last = match self.lanes.get(&(from, layer)) {
                Some(&lane) => lane,
                None => self.add_lane(from, last, layer),
            };
        }
        self.connect(last, to);
    }

    fn add_lane(&mut self, from: usize, last: usize, layer: usize) -> usize {
        let lane = self.layer_of.len();
        self.layer_of.push(layer);
        self.layers[layer].push(lane);
        self.before.push(Vec::new());
        self.after.push(Vec::new());
        self.lanes.insert((from, layer), lane);
        self.connect(last, lane);
        lane
    }

    fn connect(&mut self, from: usize, to: usize) {
        self.after[from].push(to);
        self.before[to].push(from);
    }
}

/// Every node after all its predecessors, and as close to them as possible; a node with more successors than
/// predecessors is as far right as possible instead, which keeps edges short.
pub(super) fn layers(nodes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    let mut after = vec![Vec::new(); nodes];
    let mut before = vec![0; nodes];
    for &(from, to) in edges {
        after[from].push(to);
        before[to] += 1;
    }
    let sorted = sort(&after, &before);
    let mut layer_of = vec![0; nodes];
    for &node in &sorted {
        for &next in &after[node] {
            layer_of[next] = layer_of[next].max(layer_of[node] + 1);
        }
    }
    for &node in sorted.iter().rev() {
        let nearest = after[node].iter().map(|&next| layer_of[next]).min();
        if let Some(nearest) = nearest.filter(|_| after[node].len() > before[node]) {
            layer_of[node] = nearest - 1;
        }
    }
    layer_of
}

fn sort(after: &[Vec<usize>], before: &[usize]) -> Vec<usize> {
    let mut missing = before.to_vec();
    let mut ready: VecDeque<usize> = (0..after.len()).filter(|&node| missing[node] == 0).collect();
    let mut sorted = Vec::with_capacity(after.len());
    while let Some(node) = ready.pop_front() {
        sorted.push(node);
        for &next in &after[node] {
            missing[next] -= 1;
            if missing[next] == 0 {
                ready.push_back(next);
            }
        }
    }
    sorted
}
