//! In every layout nodes do not overlap and edges do not cross nodes.

use proptest::prelude::*;
use rutter_web::drawing::layout::{CanvasPoint, GraphLayout, NodeSize, layout};
use std::collections::HashMap;
use std::time::Instant;

const SIZE: NodeSize = NodeSize { width: 204.0, height: 66.0 };
/// Points sampled on each bend of a path.
const SAMPLES: usize = 24;
/// Paths are drawn to a tenth of a pixel.
const ROUNDING: f64 = 0.2;

type Edges = Vec<(usize, usize)>;

/// Acyclic graphs with shuffled node numbers.
fn graphs() -> impl Strategy<Value = (usize, Edges)> {
    (2..=60_usize).prop_flat_map(|nodes| {
        let numbers = Just((0..nodes).collect::<Vec<_>>()).prop_shuffle();
        let pairs = proptest::collection::vec((0..nodes, 0..nodes), 0..nodes * 3);
        (numbers, pairs).prop_map(move |(numbers, pairs)| {
            let ahead = pairs.into_iter().filter(|(a, b)| a != b).map(|(a, b)| (a.min(b), a.max(b)));
            (nodes, ahead.map(|(a, b)| (numbers[a], numbers[b])).collect())
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nodes_never_overlap_and_edges_never_cross_them((nodes, edges) in graphs()) {
        check(nodes, &edges);
    }

    #[test]
    fn the_order_of_edges_does_not_change_the_layout(
        (nodes, edges, shuffled) in graphs().prop_flat_map(|(nodes, edges)| {
            (Just(nodes), Just(edges.clone()), Just(edges).prop_shuffle())
        })
    ) {
        let (one, other) = (layout(nodes, &edges, SIZE), layout(nodes, &shuffled, SIZE));
        prop_assert_eq!(&one.positions, &other.positions);
        prop_assert_eq!((one.width, one.height), (other.width, other.height));
        for (edge, route) in edges.iter().zip(&one.routes) {
            let at = shuffled.iter().position(|found| found == edge).unwrap();
            prop_assert_eq!(route, &other.routes[at]);
        }
        prop_assert_eq!(&one, &layout(nodes, &edges, SIZE));
    }
}

#[test]
fn simple_shapes_are_drawn_without_collisions() {
    let shapes: Vec<(&str, usize, Edges)> = vec![
        ("nothing", 0, vec![]),
        ("one", 1, vec![]),
        ("alone", 30, vec![]),
        ("chain", 40, chain(40)),
        ("fan out", 41, (1..41).map(|leaf| (0, leaf)).collect()),
        ("fan in", 41, (1..41).map(|leaf| (leaf, 0)).collect()),
        ("diamond", 4, vec![(0, 1), (0, 2), (1, 3), (2, 3)]),
        ("twice the same edge", 2, vec![(0, 1), (0, 1)]),
        ("two components", 7, vec![(0, 1), (1, 2), (3, 4), (3, 5), (5, 6)]),
        ("everything before everything", 12, all(12)),
        ("two columns, all connected", 20, (0..10).flat_map(|a| (10..20).map(move |b| (a, b))).collect()),
        ("a chain with a long way round", 10, [chain(10), vec![(0, 9), (2, 8)]].concat()),
    ];
    for (name, nodes, edges) in shapes {
        println!("{name}");
        check(nodes, &edges);
    }
}

#[test]
fn a_chain_is_a_straight_line() {
    let drawn = layout(20, &chain(20), SIZE);
    assert!(drawn.positions.iter().all(|position| position.y == drawn.positions[0].y));
    assert!(drawn.routes.iter().all(|route| !route.path().contains('C')));
}

#[test]
fn a_diamond_is_symmetric() {
    let drawn = layout(4, &[(0, 1), (0, 2), (1, 3), (2, 3)], SIZE);
    let y: Vec<f64> = drawn.positions.iter().map(|position| position.y).collect();
    assert_eq!((y[0], y[3]), (y[1].midpoint(y[2]), y[0]));
}

#[test]
fn many_unconnected_steps_are_packed_in_rows() {
    let drawn = layout(60, &[], SIZE);
    assert!(drawn.width / drawn.height > 1.0 && drawn.width / drawn.height < 4.0, "{}", drawn.width);
}

#[test]
fn a_thousand_nodes_are_laid_out() {
    let sparse = sparse(1_000, 2_000);
    let shapes: Vec<(&str, Edges)> = vec![
        ("chain", chain(1_000)),
        ("fan", (1..1_000).map(|leaf| (0, leaf)).collect()),
        ("sparse", sparse),
        ("layers of 25", (0..975).flat_map(|a| [(a, a + 25), (a, (a / 25 + 1) * 25 + (a * 7) % 25)]).collect()),
    ];
    for (name, edges) in shapes {
        let start = Instant::now();
        let drawn = layout(1_000, &edges, SIZE);
        println!("1000 nodes, {name}: {} edges, {:?}", edges.len(), start.elapsed());
        check_drawn(&edges, &drawn);
    }
}

fn chain(nodes: usize) -> Edges {
    (1..nodes).map(|node| (node - 1, node)).collect()
}

fn all(nodes: usize) -> Edges {
    (0..nodes).flat_map(|from| (from + 1..nodes).map(move |to| (from, to))).collect()
}

/// A deterministic pseudorandom graph.
fn sparse(nodes: usize, edges: usize) -> Edges {
    let mut state: u64 = 7;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let pair = |_| {
        let to = 1 + next(nodes - 1);
        (to - 1 - next(to.min(120)), to)
    };
    (0..edges).map(pair).collect()
}

fn check(nodes: usize, edges: &[(usize, usize)]) {
    let drawn = layout(nodes, edges, SIZE);
    assert_eq!((drawn.positions.len(), drawn.routes.len()), (nodes, edges.len()));
    check_drawn(edges, &drawn);
}

fn check_drawn(edges: &[(usize, usize)], drawn: &GraphLayout) {
    let boxes = Boxes::new(drawn);
    for (node, &at) in drawn.positions.iter().enumerate() {
        assert!(at.x >= 0.0 && at.x + SIZE.width <= drawn.width + ROUNDING, "{node} is outside");
        assert!(at.y >= 0.0 && at.y + SIZE.height <= drawn.height + ROUNDING, "{node} is outside");
        let corners = [(0.0, 0.0), (SIZE.width, 0.0), (0.0, SIZE.height), (SIZE.width, SIZE.height)];
        for (right, down) in corners {
            let found = boxes.at(CanvasPoint { x: at.x + right, y: at.y + down }, 4.0);
            assert_eq!(found, Some(node), "{node} overlaps or touches another");
        }
    }
    for (&(from, to), route) in edges.iter().zip(&drawn.routes) {
        let (start, end) = (drawn.positions[from], drawn.positions[to]);
        let points = sample(&route.path());
        let (first, last) = (points[0], points[points.len() - 1]);
        assert!(near(first, CanvasPoint { x: start.x + SIZE.width, y: start.y + SIZE.height / 2.0 }));
        assert!(near(last, CanvasPoint { x: end.x, y: end.y + SIZE.height / 2.0 }) && near(last, route.end()));
        for pair in points.windows(2) {
            assert!(pair[1].x >= pair[0].x, "{from} to {to} turns back");
        }
        for point in points {
            let hit = boxes.at(point, -ROUNDING);
            assert_eq!(hit, None, "{from} to {to} runs through a node");
            assert!(point.y >= 0.0 && point.y <= drawn.height + ROUNDING, "{from} to {to} is outside");
        }
    }
}

fn near(one: CanvasPoint, other: CanvasPoint) -> bool {
    (one.x - other.x).abs() <= ROUNDING && (one.y - other.y).abs() <= ROUNDING
}

/// Nodes by grid square, so that a thousand nodes can be checked against all edges.
struct Boxes<'a> {
    drawn: &'a GraphLayout,
    squares: HashMap<(i64, i64), Vec<usize>>,
}

impl<'a> Boxes<'a> {
    fn new(drawn: &'a GraphLayout) -> Boxes<'a> {
        let mut squares: HashMap<(i64, i64), Vec<usize>> = HashMap::new();
        for (node, at) in drawn.positions.iter().enumerate() {
            let (left, top) = square(*at);
            for x in left - 1..=left + 1 {
                for y in top - 1..=top + 1 {
                    squares.entry((x, y)).or_default().push(node);
                }
            }
        }
        Boxes { drawn, squares }
    }

    /// The node whose box, enlarged on all sides, contains the point; panics if there are two.
    fn at(&self, point: CanvasPoint, larger: f64) -> Option<usize> {
        let inside = |node: &usize| {
            let at = self.drawn.positions[*node];
            point.x > at.x - larger
                && point.x < at.x + SIZE.width + larger
                && point.y > at.y - larger
                && point.y < at.y + SIZE.height + larger
        };
        let found: Vec<usize> =
            self.squares.get(&square(point)).into_iter().flatten().copied().filter(inside).collect();
        assert!(found.len() < 2, "{found:?} overlap");
        found.first().copied()
    }
}

fn square(point: CanvasPoint) -> (i64, i64) {
    ((point.x / 240.0).floor() as i64, (point.y / 80.0).floor() as i64)
}

/// Points along a path of `M`, `H` and `C`, as a browser would draw it.
fn sample(path: &str) -> Vec<CanvasPoint> {
    let mut points: Vec<CanvasPoint> = Vec::new();
    let mut rest = path;
    while let Some(command) = rest.chars().next() {
        let end = rest[1..].find(|c: char| c.is_ascii_alphabetic()).map_or(rest.len(), |end| end + 1);
        let numbers: Vec<f64> = rest[1..end].split(' ').map(|number| number.parse().unwrap()).collect();
        let last = points.last().copied();
        match (command, &numbers[..], last) {
            ('M', &[x, y], None) => points.push(CanvasPoint { x, y }),
            ('H', &[x], Some(last)) => {
                let part = |at: usize| last.x + (x - last.x) * at as f64 / SAMPLES as f64;
                points.extend((1..=SAMPLES).map(|at| CanvasPoint { x: part(at), y: last.y }));
            }
            ('C', &[x1, y1, x2, y2, x, y], Some(last)) => {
                for at in 1..=SAMPLES {
                    let t = at as f64 / SAMPLES as f64;
                    let cubic = |a: f64, b: f64, c: f64, d: f64| {
                        let u = 1.0 - t;
                        u * u * u * a + 3.0 * u * u * t * b + 3.0 * u * t * t * c + t * t * t * d
                    };
                    points.push(CanvasPoint { x: cubic(last.x, x1, x2, x), y: cubic(last.y, y1, y2, y) });
                }
            }
            other => panic!("{other:?} in {path}"),
        }
        rest = &rest[end..];
    }
    points
}
