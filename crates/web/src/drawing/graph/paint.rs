//! The graph as SVG.

use super::{DrawnGraph, GraphEdge, GraphEdgeKind, GraphNode};
use crate::drawing::layout::{CanvasPoint, EdgeRoute, GraphLayout, NodeSize, layout};
use crate::drawing::status::{StatusMark, StatusTone};
use crate::drawing::svg_text::{count, fit, fit_bold, id, number, text};
use std::collections::BTreeMap;
use std::fmt::Write as _;

const BOX: NodeSize = NodeSize { width: 204.0, height: 66.0 };
/// The widest graph that is still legible when scaled to the page.
const FITS_WIDTH_MAX: f64 = 1_600.0;
const MARGIN: f64 = 12.0;
const LABEL_SIZE: f64 = 13.0;
const DETAIL_SIZE: f64 = 11.0;
/// Horizontal padding of texts in a box.
const TEXT_LEFT: f64 = 36.0;
const TEXT_RIGHT: f64 = 10.0;
const ARROW: f64 = 7.0;
/// The most arrows drawn; more are illegible and slow, and only counted.
const EDGES_MAX: usize = 3_000;
/// The most dependencies in the name of a node.
const NEEDS_NAMED_MAX: usize = 6;
const NOTE_HEIGHT: f64 = 20.0;

/// Draws the graph. Nodes are in the order of their layers, so that the tab key moves from left to right.
pub fn svg(graph: &DrawnGraph) -> String {
    let edges = &graph.edges[..graph.edges.len().min(EDGES_MAX)];
    let pairs: Vec<(usize, usize)> = edges.iter().map(|edge| (edge.from, edge.to)).collect();
    let layout = layout(graph.nodes.len(), &pairs, BOX);
    let left_out = graph.edges.len() - edges.len();
    let (width, mut height) = (layout.width + 2.0 * MARGIN, layout.height + 2.0 * MARGIN);
    let note = if left_out == 0 { String::new() } else { left_out_note(left_out, height) };
    if left_out > 0 {
        height += NOTE_HEIGHT;
    }
    let mut svg = format!(
        "<svg class=\"graph{3}\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" \
         height=\"{1}\" role=\"group\" aria-label=\"{2}\">",
        number(width),
        number(height),
        text(&summary(graph)),
        if width <= FITS_WIDTH_MAX { " fits" } else { "" }
    );
    let _ = write!(svg, "<g transform=\"translate({0} {0})\">", number(MARGIN));
    svg.push_str("<g class=\"edges\" aria-hidden=\"true\">");
    for (edge, route) in edges.iter().zip(&layout.routes) {
        paint_edge(&mut svg, edge, route);
    }
    svg.push_str("</g>");
    let needs = needs(graph);
    for node in reading_order(&layout) {
        paint_node(&mut svg, &graph.nodes[node], layout.positions[node], &name(graph, node, &needs[node]));
    }
    let _ = write!(svg, "</g>{note}</svg>");
    svg
}

/// `order-4711: 12 steps, 7 completed, 1 retrying`.
fn summary(graph: &DrawnGraph) -> String {
    let mut tally: BTreeMap<(StatusTone, &str), usize> = BTreeMap::new();
    let mut steps = 0;
    for node in &graph.nodes {
        let alone = [(node.status, 1)];
        for &(status, count) in if node.tally.is_empty() { &alone[..] } else { &node.tally[..] } {
            let mark = StatusMark::of(status);
            *tally.entry((mark.tone, mark.word)).or_default() += count;
            steps += count;
        }
    }
    let counts = tally.iter().filter(|((_, word), _)| *word != "planned");
    let counts: String = counts.map(|((_, word), count)| format!(", {count} {word}")).collect();
    format!("{}: {}{counts}", graph.title, count(steps, "step"))
}

fn needs(graph: &DrawnGraph) -> Vec<Vec<usize>> {
    let mut needs = vec![Vec::new(); graph.nodes.len()];
    graph.edges.iter().for_each(|edge| needs[edge.to].push(edge.from));
    needs
}

/// The accessible name: `Score fraud risk, retrying, attempt 3 of 5, http.score, needs fetch, check`.
fn name(graph: &DrawnGraph, node: usize, needs: &[usize]) -> String {
    let GraphNode { label, detail, status, note, tally, .. } = &graph.nodes[node];
    let mut parts = vec![label.clone()];
    if tally.is_empty() {
        parts.push(StatusMark::of(status).word.to_owned());
    }
    parts.extend(tally.iter().map(|&(status, count)| format!("{count} {}", StatusMark::of(status).word)));
    parts.extend([note, detail].into_iter().filter(|part| !part.is_empty()).cloned());
    let labels: Vec<&str> = needs.iter().take(NEEDS_NAMED_MAX).map(|&need| graph.nodes[need].label.as_str()).collect();
    if !labels.is_empty() {
        parts.push(format!("needs {}", labels.join(", ")));
    }
    if needs.len() > NEEDS_NAMED_MAX {
        parts.push(format!("and {} more", needs.len() - NEEDS_NAMED_MAX));
    }
    parts.join(", ")
}

fn reading_order(layout: &GraphLayout) -> Vec<usize> {
    let mut order: Vec<usize> = (0..layout.positions.len()).collect();
    let key = |node: usize| layout.positions[node];
    order.sort_by(|&a, &b| key(a).x.total_cmp(&key(b).x).then(key(a).y.total_cmp(&key(b).y)));
    order
}

fn paint_edge(svg: &mut String, edge: &GraphEdge, route: &EdgeRoute) {
    let kind = match edge.kind {
        GraphEdgeKind::Order => "edge-order",
        GraphEdgeKind::Data => "edge-data",
    };
    let (x, y) = (number(route.end().x - ARROW), number(route.end().y - ARROW / 2.0));
    let (path, half, whole) = (route.path(), number(ARROW / 2.0), number(ARROW));
    let _ = write!(
        svg,
        "<g class=\"edge {kind}\"><path class=\"way\" d=\"{path}\"/>\
         <path class=\"tip\" d=\"M{x} {y}l{whole} {half}l-{whole} {half}z\"/></g>"
    );
}

fn paint_node(svg: &mut String, node: &GraphNode, at: CanvasPoint, name: &str) {
    let mark = StatusMark::of(node.status);
    let current = if node.selected { " aria-current=\"true\"" } else { "" };
    let group = if node.tally.is_empty() { "" } else { " group" };
    let (id, step) = (id(&node.id), text(&node.id));
    let _ = write!(
        svg,
        "<a class=\"node{group} {tone}\" id=\"node-{id}\" href=\"{href}\" data-step=\"{step}\"{current} \
         transform=\"translate({x} {y})\"><title>{name}</title><g aria-hidden=\"true\">\
         <rect class=\"box\" width=\"{w}\" height=\"{h}\" rx=\"7\"/>\
         <path class=\"stripe\" d=\"M7 0h-1a6 6 0 0 0-6 6v{stripe}a6 6 0 0 0 6 6h1z\"/>{sign}\
         <text class=\"label\" x=\"{left}\" y=\"23\">{label}</text>\
         <text class=\"detail\" x=\"{left}\" y=\"40\">{detail}</text>",
        tone = mark.tone.class(),
        href = text(&node.href),
        name = text(name),
        x = number(at.x),
        y = number(at.y),
        w = number(BOX.width),
        h = number(BOX.height),
        stripe = number(BOX.height - 12.0),
        sign = if node.status == "planned" { String::new() } else { mark.sign(13.0, 10.0) },
        left = number(text_left(node)),
        label = text(&fit_bold(&node.label, LABEL_SIZE, text_width(node))),
        detail = text(&fit(&node.detail, DETAIL_SIZE, text_width(node))),
    );
    if node.tally.is_empty() {
        let state = match (mark.word, node.note.as_str()) {
            ("planned", note) => note.to_owned(),
            (word, "") => word.to_owned(),
            (word, note) => format!("{word} · {note}"),
        };
        let state = text(&fit_bold(&state, DETAIL_SIZE, text_width(node)));
        let _ = write!(svg, "<text class=\"state\" x=\"{}\" y=\"56\">{state}</text>", number(text_left(node)));
    } else {
        paint_tally(svg, &node.tally);
    }
    svg.push_str("</g></a>");
}

/// A planned step has no sign, so its texts start further left.
fn text_left(node: &GraphNode) -> f64 {
    if node.status == "planned" && node.tally.is_empty() { 18.0 } else { TEXT_LEFT }
}

fn text_width(node: &GraphNode) -> f64 {
    BOX.width - text_left(node) - TEXT_RIGHT
}

/// A bar with a segment per status, and the worst status as text.
fn paint_tally(svg: &mut String, tally: &[(&'static str, usize)]) {
    let total: usize = tally.iter().map(|(_, count)| count).sum();
    let width = BOX.width - TEXT_LEFT - TEXT_RIGHT;
    let mut before = 0;
    for &(status, count) in tally {
        let x = TEXT_LEFT + width * before as f64 / total as f64;
        before += count;
        let _ = write!(
            svg,
            "<rect class=\"share {}\" x=\"{}\" y=\"47\" width=\"{}\" height=\"10\"/>",
            StatusMark::of(status).tone.class(),
            number(x),
            number((width * count as f64 / total as f64).max(1.0))
        );
    }
}

fn left_out_note(left_out: usize, y: f64) -> String {
    format!("<text class=\"note\" x=\"{}\" y=\"{}\">and {left_out} more arrows</text>", number(MARGIN), number(y))
}
