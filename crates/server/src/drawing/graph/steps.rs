//! From a plan, and from how an execution of it stands, to a graph.

use super::{Edge, EdgeKind, Graph, Node};
use crate::drawing::pen::count;
use rutter_core::execution::view::{StepView, View};
use rutter_core::plan::graph::NeedKind;
use rutter_core::plan::{Cancellable, Plan, Step};

/// The plan before anybody carries it out; each step says what is special about it.
pub fn of_plan(plan: &Plan, href: &dyn Fn(&str) -> String) -> Graph {
    let nodes = plan.steps.iter().map(|step| Node { note: traits(step), ..node(step, href) });
    Graph { title: plan.name.clone(), nodes: nodes.collect(), edges: edges(plan) }
}

/// The plan with the status of every step. A step the view does not know is pending.
pub fn of_execution(plan: &Plan, view: &View, href: &dyn Fn(&str) -> String) -> Graph {
    let nodes = plan.steps.iter().map(|step| match view.steps.iter().find(|seen| seen.id == step.id) {
        Some(seen) => Node { status: seen.status, note: progress(step, seen), ..node(step, href) },
        None => Node { status: "pending", ..node(step, href) },
    });
    Graph { title: plan.name.clone(), nodes: nodes.collect(), edges: edges(plan) }
}

fn node(step: &Step, href: &dyn Fn(&str) -> String) -> Node {
    let label = if step.name.is_empty() { step.id.as_str() } else { &step.name };
    Node {
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
        traits.push("needs a yes");
    }
    if step.for_each.is_some() {
        traits.push("for each item");
    }
    if step.when.is_some() {
        traits.push("conditional");
    }
    if step.cancellable == Cancellable::Irreversible {
        traits.push("irreversible");
    }
    traits.join(" · ")
}

fn progress(step: &Step, seen: &StepView) -> String {
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

/// What follows from other arrows is not drawn: a step that comes after another through a third. Data is always drawn.
fn edges(plan: &Plan) -> Vec<Edge> {
    let ancestors = plan.graph.ancestors();
    let mut edges = Vec::new();
    for (to, needs) in plan.graph.needs.iter().enumerate() {
        for need in needs {
            let kind = match need.kind {
                NeedKind::Sequence | NeedKind::Order => EdgeKind::Order,
                NeedKind::SoftData | NeedKind::Data => EdgeKind::Data,
            };
            let follows = || needs.iter().any(|other| ancestors.has(other.step, need.step));
            if kind == EdgeKind::Data || !follows() {
                edges.push(Edge { from: need.step, to, kind });
            }
        }
    }
    edges
}
