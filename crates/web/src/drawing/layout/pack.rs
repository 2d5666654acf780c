//! Connected components, and their arrangement on the canvas.

use super::{CanvasPoint, EdgeRoute, GraphLayout};

/// Connected nodes, and their edges with indices of this component.
pub(super) struct GraphComponent {
    pub(super) nodes: Vec<usize>,
    pub(super) edges: Vec<(usize, usize)>,
    /// The index of each edge in the whole graph.
    given: Vec<usize>,
}

const GAP: f64 = 36.0;
/// The preferred ratio of width to height.
const PROPORTION: f64 = 2.0;

/// The connected components, in the order of their first nodes.
pub(super) fn components(nodes: usize, edges: &[(usize, usize)]) -> Vec<GraphComponent> {
    let mut root: Vec<usize> = (0..nodes).collect();
    for &(from, to) in edges {
        let (from, to) = (find(&mut root, from), find(&mut root, to));
        // The lower number stays the root, so that a root is the first node of its component.
        root[from.max(to)] = from.min(to);
    }
    let mut components: Vec<GraphComponent> = Vec::new();
    let mut place = vec![(0, 0); nodes];
    for node in 0..nodes {
        let first = find(&mut root, node);
        if first == node {
            place[node] = (components.len(), 0);
            components.push(GraphComponent { nodes: vec![node], edges: Vec::new(), given: Vec::new() });
        } else {
            let component = &mut components[place[first].0];
            place[node] = (place[first].0, component.nodes.len());
            component.nodes.push(node);
        }
    }
    for (at, &(from, to)) in edges.iter().enumerate() {
        let component = &mut components[place[from].0];
        component.edges.push((place[from].1, place[to].1));
        component.given.push(at);
    }
    components
}

fn find(root: &mut [usize], node: usize) -> usize {
    let mut at = node;
    while root[at] != at {
        root[at] = root[root[at]];
        at = root[at];
    }
    at
}

/// Arranges the components in rows, tallest first.
pub(super) fn pack(nodes: usize, components: &[GraphComponent], pieces: &[GraphLayout]) -> GraphLayout {
    let mut positions = vec![CanvasPoint { x: 0.0, y: 0.0 }; nodes];
    let edges = components.iter().map(|component| component.edges.len()).sum();
    let mut routes: Vec<Option<EdgeRoute>> = vec![None; edges];
    let corners = corners(pieces);
    for ((component, piece), corner) in components.iter().zip(pieces).zip(&corners) {
        for (&node, position) in component.nodes.iter().zip(&piece.positions) {
            positions[node] = CanvasPoint { x: position.x + corner.x, y: position.y + corner.y };
        }
        for (&at, route) in component.given.iter().zip(&piece.routes) {
            routes[at] = Some(route.moved(*corner));
        }
    }
    let extent = |far: fn(&GraphLayout, &CanvasPoint) -> f64| {
        pieces.iter().zip(&corners).map(|(piece, corner)| far(piece, corner)).fold(0.0, f64::max)
    };
    GraphLayout {
        positions,
        routes: routes.into_iter().map(|route| route.expect("every edge is in a component")).collect(),
        width: extent(|piece, corner| corner.x + piece.width),
        height: extent(|piece, corner| corner.y + piece.height),
    }
}

fn corners(pieces: &[GraphLayout]) -> Vec<CanvasPoint> {
    let widest = pieces.iter().map(|piece| piece.width).fold(0.0, f64::max);
    let area: f64 = pieces.iter().map(|piece| (piece.width + GAP) * (piece.height + GAP)).sum();
    let shelf_width = widest.max((area * PROPORTION).sqrt());
    let mut sorted: Vec<usize> = (0..pieces.len()).collect();
    // Stable, so equals stay in the order of their first nodes.
    sorted.sort_by(|&a, &b| pieces[b].height.total_cmp(&pieces[a].height));
    let mut corners = vec![CanvasPoint { x: 0.0, y: 0.0 }; pieces.len()];
    let (mut x, mut y, mut shelf_height) = (0.0, 0.0, 0.0);
    for piece in sorted {
        if x > 0.0 && x + pieces[piece].width > shelf_width {
            (x, y, shelf_height) = (0.0, y + shelf_height + GAP, 0.0);
        }
        corners[piece] = CanvasPoint { x, y };
        x += pieces[piece].width + GAP;
        shelf_height = f64::max(shelf_height, pieces[piece].height);
    }
    corners
}
