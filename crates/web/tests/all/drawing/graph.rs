//! Graphs of real plans, and properties of all graphs.

use super::xml;
use rutter_core::plan::check::read_and_check;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Driver, Plan};
use rutter_core::tool::ToolCatalog;
use rutter_web::drawing::graph::{DrawnGraph, FOLD_ABOVE, GraphEdge, GraphEdgeKind, GraphNode, fold, of_plan, svg};
use serde_json::{Value, json};
use std::sync::Arc;

/// A checked plan of these steps, driven by an agent so that any tool name is valid.
pub fn plan(name: &str, steps: &Value) -> Arc<Plan> {
    let text = json!({ "name": name, "max_parallel": 8, "steps": steps }).to_string();
    let checked = read_and_check(text.as_bytes(), DocumentFormat::Json, &ToolCatalog::default(), Driver::Agent, None);
    checked.plan.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics))
}

fn href(step: &str) -> String {
    format!("?step={step}")
}

fn golden(name: &str, svg: &str) {
    xml::check(svg);
    let mut ids = xml::ids(svg);
    let all = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id is not unique");
    // One element per line, so that diffs are readable.
    insta::assert_snapshot!(name, svg.replace("><", ">\n<"));
}

pub fn order() -> Arc<Plan> {
    let step = |id: &str, name: &str, tool: &str, needs: &[&str]| json!({ "id": id, "name": name, "tool": tool, "depends_on": needs, "cancellable": "irreversible" });
    plan(
        "order-4711",
        &json!([
            step("validate", "Validate request", "builtin.validate", &[]),
            step("customer", "Fetch customer", "crm.get", &["validate"]),
            step("orders", "Fetch orders", "shop.orders", &["validate"]),
            step("stock", "Check stock", "erp.stock", &["validate"]),
            {
                "id": "fraud", "name": "Score fraud risk", "tool": "risk.score", "cancellable": "irreversible",
                "parameters": { "customer": "{{ steps.customer.result.id }}", "orders": "{{ steps.orders.result }}" }
            },
            step("reserve", "Reserve stock", "erp.reserve", &["stock"]),
            step("quote", "Quote shipping", "ship.quote", &["stock"]),
            step("approve", "Human approval", "gate.approval", &["fraud"]),
            step("charge", "Charge card", "pay.charge", &["approve", "reserve"]),
            step("courier", "Book courier with a name that is too long for its box", "ship.book", &["charge", "quote"]),
            step("receipt", "Send receipt", "mail.send", &["charge", "courier", "customer"]),
            step("summary", "Summarise", "llm.summarise", &["receipt", "orders"]),
        ]),
    )
}

#[test]
fn an_order_half_way_through() {
    let mut graph = of_plan(&order(), &href);
    let stands = [
        "completed",
        "completed",
        "completed",
        "completed",
        "retrying",
        "completed",
        "running",
        "waiting",
        "pending",
        "pending",
        "skipped",
        "pending",
    ];
    for (node, status) in graph.nodes.iter_mut().zip(stands) {
        (node.status, node.note) = (status, String::new());
    }
    graph.nodes[4].note = "attempt 3 of 5".to_owned();
    graph.nodes[7].selected = true;
    golden("graph_order", &svg(&graph));
}

#[test]
fn a_planned_step_shows_its_properties() {
    let steps = json!([
        { "id": "list", "tool": "shop.list", "cancellable": "reversible",
          "compensation": { "tool": "shop.forget" } },
        { "id": "pay", "tool": "pay.charge", "approval": { "required": true }, "cancellable": "irreversible",
          "depends_on": ["list"] },
        { "id": "mail", "tool": "mail.send", "for_each": "{{ steps.list.result }}", "cancellable": "irreversible" },
    ]);
    let drawn = svg(&of_plan(&plan("traits", &steps), &href));
    for words in ["approval · irreversible", "for each item", "needs list", "edge-data", "edge-order"] {
        assert!(drawn.contains(words), "{words}");
    }
    golden("graph_plan", &drawn);
}

#[test]
fn a_chain_with_a_long_way_round() {
    golden("graph_chain", &svg(&made(6, &[(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (1, 4)])));
}

#[test]
fn components_are_placed_side_by_side() {
    let mut graph = made(9, &[(0, 1), (0, 2), (1, 3), (2, 3), (4, 5)]);
    let all = ["in_doubt", "compensating", "compensated", "compensation_failed", "cancelled", "failed", "skipped"];
    graph.nodes.iter_mut().zip(all).for_each(|(node, status)| node.status = status);
    golden("graph_components", &svg(&graph));
}

#[test]
fn a_thousand_steps_are_folded_into_groups_that_can_be_opened() {
    let mut graph = large();
    graph.nodes[400].status = "failed";
    let folded = fold(&graph, &|group| format!("?group={group}"));
    assert!(folded.groups.len() > 4 && folded.groups.len() <= 104, "{}", folded.groups.len());
    let mut members: Vec<usize> = folded.groups.concat();
    members.sort_unstable();
    assert_eq!(members, (0..1_000).collect::<Vec<_>>());
    let group = folded.groups.iter().position(|group| group.contains(&400)).unwrap();
    assert_eq!(folded.graph.nodes[group].status, "failed", "a group shows its worst status");
    assert!(folded.groups.iter().all(|group| group.len() <= 2 * FOLD_ABOVE));
    let opened = graph.part(&folded.groups[group]);
    assert_eq!(opened.nodes.len(), folded.groups[group].len());
    assert!(svg(&opened).contains("data-step=\"step-400\""));
    golden("graph_folded", &svg(&folded.graph));
}

#[test]
fn groups_depend_on_the_plan_and_not_on_the_status() {
    let (graph, mut later) = (large(), large());
    later.nodes.iter_mut().for_each(|node| node.status = "failed");
    let href = |group| format!("?group={group}");
    assert_eq!(fold(&graph, &href).groups, fold(&later, &href).groups);
}

#[test]
fn any_large_graph_folds_into_few_groups_without_a_cycle() {
    let shapes: Vec<(&str, Vec<(usize, usize)>)> = vec![
        ("chain", (1..1_000).map(|node| (node - 1, node)).collect()),
        ("fan", (1..1_000).map(|node| (0, node)).collect()),
        ("alone", vec![]),
        ("ten chains", (10..1_000).map(|node| (node - 10, node)).collect()),
    ];
    for (name, edges) in shapes {
        let graph = made(1_000, &edges);
        let folded = fold(&graph, &|group| format!("?group={group}"));
        assert!(folded.groups.len() <= 104 && folded.groups.len() >= 8, "{name}: {}", folded.groups.len());
        assert!(folded.groups.iter().all(|group| group.len() <= 2 * FOLD_ABOVE), "{name}");
        let pairs = folded.graph.edges.iter();
        // Groups are ordered by column, so a backward edge would be a cycle.
        assert!(pairs.clone().all(|edge| edge.from < edge.to), "{name}");
        xml::check(&svg(&folded.graph));
    }
}

#[test]
fn untrusted_names_are_escaped() {
    let hostile = "\"><script>alert(1)</script>&<a href='javascript:x'>\u{202e}";
    let mut graph = made(2, &[(0, 1)]);
    graph.title = hostile.to_owned();
    for node in &mut graph.nodes {
        (node.label, node.detail, node.note) = (hostile.to_owned(), hostile.to_owned(), hostile.to_owned());
        node.id = format!("{}{hostile}", node.id);
    }
    let drawn = svg(&graph);
    xml::check(&drawn);
    assert!(!drawn.contains("<script") && !drawn.contains('\u{202e}'));
}

#[test]
fn every_node_is_a_link_with_an_accessible_name() {
    let drawn = svg(&of_plan(&order(), &href));
    assert_eq!(drawn.matches("<a class=\"node").count(), 12);
    let name = "<title>Score fraud risk, planned, irreversible, risk.score, needs Fetch customer, Fetch orders</title>";
    assert!(drawn.contains(name), "{drawn}");
}

fn large() -> DrawnGraph {
    let edges: Vec<(usize, usize)> =
        (0..975).flat_map(|node| [(node, node + 25), (node, (node / 25 + 1) * 25 + (node * 7) % 25)]).collect();
    let mut graph = made(1_000, &edges);
    graph.nodes[..500].iter_mut().for_each(|node| node.status = "completed");
    graph
}

fn made(nodes: usize, edges: &[(usize, usize)]) -> DrawnGraph {
    let node = |at: usize| GraphNode {
        id: format!("step-{at}"),
        label: format!("Step {at}"),
        detail: "shop.order".to_owned(),
        status: "pending",
        note: String::new(),
        tally: Vec::new(),
        href: format!("?step=step-{at}"),
        selected: false,
    };
    let edge = |&(from, to): &(usize, usize)| GraphEdge { from, to, kind: GraphEdgeKind::Order };
    DrawnGraph {
        title: "made".to_owned(),
        nodes: (0..nodes).map(node).collect(),
        edges: edges.iter().map(edge).collect(),
    }
}
