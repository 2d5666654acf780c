//! Layout of a directed acyclic graph: layers from left to right, long edges in their own lanes.
//!
//! Each connected component is laid out separately: [`layer`] assigns columns to nodes and lanes to edges that span
//! several columns, [`order`] sorts each column to reduce crossings, [`coordinates`] computes heights. [`pack`]
//! arranges the components. Nodes and lanes of a column do not overlap, and edges bend only between columns, so no edge
//! crosses a node.

mod coordinates;
mod layer;
mod order;
mod pack;
mod route;

pub use route::EdgeRoute;

use layer::LayeredGraph;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeSize {
    pub width: f64,
    pub height: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CanvasPoint {
    pub x: f64,
    pub y: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct GraphLayout {
    /// The top left corner of every node.
    pub positions: Vec<CanvasPoint>,
    /// One route per edge, in the order given.
    pub routes: Vec<EdgeRoute>,
    pub width: f64,
    pub height: f64,
}

/// Lays out `nodes` nodes of one size. Edges lead to a later node and form no cycle.
///
/// The same graph gives the same layout, in whatever order its edges are given.
pub fn layout(nodes: usize, edges: &[(usize, usize)], size: NodeSize) -> GraphLayout {
    let mut known = edges.to_vec();
    known.sort_unstable();
    known.dedup();
    let components = pack::components(nodes, &known);
    let pieces: Vec<GraphLayout> =
        components.iter().map(|component| connected(component.nodes.len(), &component.edges, size)).collect();
    let packed = pack::pack(nodes, &components, &pieces);
    let route = |edge| {
        let at = known.binary_search(edge).expect("every edge is in the list");
        packed.routes[at].clone()
    };
    GraphLayout { routes: edges.iter().map(route).collect(), ..packed }
}

/// The layer of each node: all predecessors of a node are in earlier layers.
pub fn layers(nodes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    layer::layers(nodes, edges)
}

/// The layout of one component, with its top left corner at the origin.
fn connected(nodes: usize, edges: &[(usize, usize)], size: NodeSize) -> GraphLayout {
    let mut net = LayeredGraph::new(nodes, edges);
    order::order(&mut net);
    let middles = coordinates::middles(&net, size.height);
    let columns = coordinates::columns(&net, &middles, size.width);
    let positions =
        (0..nodes).map(|node| CanvasPoint { x: columns[net.layer_of[node]], y: middles[node] - size.height / 2.0 });
    let positions: Vec<CanvasPoint> = positions.collect();
    let routes = edges.iter().map(|&edge| route::route(&net.path(edge), &net, &columns, &middles, size.width));
    let bottom = middles[..nodes].iter().fold(0.0, |bottom: f64, middle| bottom.max(middle + size.height / 2.0));
    let lowest_lane = middles[nodes..].iter().fold(0.0, |bottom: f64, middle| bottom.max(middle + coordinates::LANE));
    GraphLayout {
        routes: routes.collect(),
        positions,
        width: columns.last().map_or(0.0, |last| last + size.width),
        height: bottom.max(lowest_lane),
    }
}
