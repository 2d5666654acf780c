//! Places for the nodes of a directed graph without cycles: layers from left to right, edges in lanes of their own.
//!
//! Each connected component is laid out by itself: [`layer`] gives every node its column and every edge that jumps
//! over columns a lane through them, [`order`] sorts each column so that few edges cross, [`place`] turns the order
//! into heights. [`pack`] puts the components beside and below each other. A column holds nodes and lanes, neither
//! overlaps, and edges bend only between columns: that is why no edge can run through a node.

mod layer;
mod order;
mod pack;
mod place;
mod route;

pub use route::Route;

use layer::Net;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Size {
    pub width: f64,
    pub height: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The upper left corner of every node.
    pub positions: Vec<Point>,
    /// One route for every edge, in the order in which they were given.
    pub routes: Vec<Route>,
    pub width: f64,
    pub height: f64,
}

/// Finds places for `nodes` nodes of one size. Edges lead from a node to one that comes after it, and to no ring.
///
/// The same graph gives the same picture, in whatever order its edges come.
pub fn layout(nodes: usize, edges: &[(usize, usize)], size: Size) -> Layout {
    let mut known = edges.to_vec();
    known.sort_unstable();
    known.dedup();
    let components = pack::components(nodes, &known);
    let pieces: Vec<Layout> =
        components.iter().map(|component| connected(component.nodes.len(), &component.edges, size)).collect();
    let packed = pack::pack(nodes, &components, &pieces);
    let route = |edge| {
        let at = known.binary_search(edge).expect("every edge is among the known ones");
        packed.routes[at].clone()
    };
    Layout { routes: edges.iter().map(route).collect(), ..packed }
}

/// The layers of the nodes, first to last: everything a node comes after is in layers before its own.
pub fn layers(nodes: usize, edges: &[(usize, usize)]) -> Vec<usize> {
    layer::layers(nodes, edges)
}

/// The layout of one component, with its upper left corner at the origin.
fn connected(nodes: usize, edges: &[(usize, usize)], size: Size) -> Layout {
    let mut net = Net::new(nodes, edges);
    order::order(&mut net);
    let middles = place::middles(&net, size.height);
    let columns = place::columns(&net, &middles, size.width);
    let positions =
        (0..nodes).map(|node| Point { x: columns[net.layer_of[node]], y: middles[node] - size.height / 2.0 });
    let positions: Vec<Point> = positions.collect();
    let routes =
        edges.iter().map(|&edge| route::route(&net.path(edge), &net, &columns, &middles, size.width));
    let bottom =
        middles[..nodes].iter().fold(0.0, |bottom: f64, middle| bottom.max(middle + size.height / 2.0));
    let lowest_lane =
        middles[nodes..].iter().fold(0.0, |bottom: f64, middle| bottom.max(middle + place::LANE));
    Layout {
        routes: routes.collect(),
        positions,
        width: columns.last().map_or(0.0, |last| last + size.width),
        height: bottom.max(lowest_lane),
    }
}
