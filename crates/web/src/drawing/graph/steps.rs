//! Builds the graph of a plan, or of an execution with the status of its steps.

use super::{DrawnGraph, GraphEdge, GraphEdgeKind, GraphNode};
use crate::drawing::svg_text::count;
use rutter_core::execution::view::{ExecutionSnapshot, StepSnapshot};
use rutter_core::plan::graph::NeedKind;
use rutter_core::plan::{Cancellable, Plan, Step};

/// The plan itself; each step shows its special properties.
pub fn of_plan(plan: &Plan, href: &dyn Fn(&str) -> String) -> DrawnGraph {
    let nodes = plan.steps.iter().map(|step| GraphNode { note: traits(step), ..node(step, href) });
    DrawnGraph { title: plan.name.clone(), nodes: nodes.collect(), edges: edges(plan) }
}

/// The plan with the status of every step. A step missing in the view is pending.
pub fn of_execution(plan: &Plan, view: &ExecutionSnapshot, href: &dyn Fn(&str) -> String) -> DrawnGraph {
    let nodes = plan.steps.iter().map(|step| match view.steps.iter().find(|seen| seen.id == step.id) {
        Some(seen) => GraphNode { status: seen.status, note: progress(step, seen), ..node(step, href) },
        None => GraphNode { status: "pending", ..node(step, href) },
    });
    DrawnGraph { title: plan.name.clone(), nodes: nodes.collect(), edges: edges(plan) }
}

fn node(step: &Step, href: &dyn Fn(&str) -> String) -> GraphNode {
    let label = if step.name.is_empty() { step.id.as_str() } else { &step.name };
    GraphNode {
        id: step.id.to_string(),
        label: label.to_owned(),
        detail: step.call.tool.to_string(),
        status: "planned",
        note: String::new(),
        tally: Vec::new(),
        href: href(step.id.as_str()),
        selected: false,
    }
}

fn traits(step: &Step) -> String {
    let mut traits = Vec::new();
    if step.approval.is_some() {
        traits.push("approval");
    }
    if step.for_each.is_some() {
        traits.push("for each item");
    }
    if step.when.is_some() {
        traits.push("conditional");
    }
    if step.else_of.is_some() {
        traits.push("other branch");
    }
    if step.cancellable == Cancellable::Irreversible {
        traits.push("irreversible");
    }
    traits.join(" · ")
}

fn progress(step: &Step, seen: &StepSnapshot) -> String {
    if let Some((at_rest, all)) = seen.items {
        return format!("{at_rest} of {}", count(all, "item"));
    }
    if seen.by_hand {
        return "by hand".to_owned();
    }
    match (seen.status, seen.attempts) {
        (_, 0) | ("completed", 1) => String::new(),
        ("running" | "retrying" | "failed", attempt) if step.call.retry.max_attempts > 1 => {
            format!("attempt {attempt} of {}", step.call.retry.max_attempts.max(attempt))
        }
        (_, 1) => String::new(),
        (_, attempts) => format!("{attempts} attempts"),
    }
}

/// Order edges implied by other edges are not drawn; data edges always are.
fn edges(plan: &Plan) -> Vec<GraphEdge> {
    let ancestors = plan.graph.ancestors();
    let mut edges = Vec::new();
    for (to, needs) in plan.graph.needs.iter().enumerate() {
        for need in needs {
            let kind = match need.kind {
                NeedKind::Sequence | NeedKind::Order => GraphEdgeKind::Order,
                NeedKind::SoftData | NeedKind::Data => GraphEdgeKind::Data,
            };
            let follows = || needs.iter().any(|other| ancestors.has(other.step, need.step));
            if kind == GraphEdgeKind::Data || !follows() {
                edges.push(GraphEdge { from: need.step, to, kind });
            }
        }
    }
    edges
}
