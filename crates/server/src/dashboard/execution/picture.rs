//! The graph or the timeline of an execution, whichever the tab asks for.

use super::entries::records;
use super::{Address, Seen};
use crate::desk::Desk;
use crate::drawing::graph::{self, FOLD_ABOVE, Graph};
use crate::drawing::timeline::{self, ROWS_MAX};
use crate::fault::Fault;
use rutter_core::execution::Identity;
use rutter_core::time::Timestamp;

pub(in crate::dashboard) struct Picture {
    /// Safe to be put into a page: every text in it was escaped when it was drawn.
    pub(in crate::dashboard) svg: String,
    pub(in crate::dashboard) is_graph: bool,
    pub(in crate::dashboard) note: Option<String>,
    /// Of an opened group: its steps by their place in the plan.
    pub(in crate::dashboard) members: Option<Vec<usize>>,
    /// Other pages of it, or the way back to the whole.
    pub(in crate::dashboard) links: Vec<(String, String)>,
}

pub(super) async fn draw(
    desk: &Desk,
    identity: &Identity,
    seen: &Seen,
    tab: &str,
    address: &Address<'_>,
    now: Timestamp,
) -> Result<Option<Picture>, Fault> {
    match tab {
        "graph" => {
            let mut graph =
                graph::of_execution(&seen.plan, &seen.view, &|step| address.with(&[("step", step)]));
            select(&mut graph, address.visitor.asked("step"));
            Ok(Some(draw_graph(&graph, address.visitor.asked("group"), &|group| {
                address.with(&[("group", group), ("step", "")])
            })))
        }
        "timeline" => Ok(Some(draw_timeline(desk, identity, seen, address, now).await?)),
        _ => Ok(None),
    }
}

/// Marks the step the page shows beside the graph.
pub(in crate::dashboard) fn select(graph: &mut Graph, step: Option<&str>) {
    for node in &mut graph.nodes {
        node.selected = Some(node.id.as_str()) == step;
    }
}

/// The graph itself, or when it is large its groups, or the steps of one of them.
pub(in crate::dashboard) fn draw_graph(
    graph: &Graph,
    group: Option<&str>,
    href: &dyn Fn(&str) -> String,
) -> Picture {
    let plain = |svg| Picture { svg, is_graph: true, note: None, members: None, links: Vec::new() };
    if graph.nodes.len() <= FOLD_ABOVE {
        return plain(graph::svg(graph));
    }
    let folded = graph::fold(graph, &|group| href(&group.to_string()));
    let chosen = group.and_then(|group| folded.groups.get(group.parse::<usize>().ok()?));
    match chosen {
        Some(members) => Picture {
            note: Some(format!("{} of {} steps", members.len(), graph.nodes.len())),
            members: Some(members.clone()),
            links: vec![("All groups".to_owned(), href(""))],
            ..plain(graph::svg(&graph.part(members)))
        },
        None => Picture {
            note: Some(format!(
                "{} steps in {} groups; open one to see its steps",
                graph.nodes.len(),
                folded.groups.len()
            )),
            ..plain(graph::svg(&folded.graph))
        },
    }
}

async fn draw_timeline(
    desk: &Desk,
    identity: &Identity,
    seen: &Seen,
    address: &Address<'_>,
    now: Timestamp,
) -> Result<Picture, Fault> {
    let (entries, is_whole) = records(desk, identity).await?;
    let records: Vec<_> = entries.into_iter().map(|entry| (entry.seq, entry.record)).collect();
    let mut whole = timeline::from_records(&seen.plan, &records, now);
    for row in &mut whole.rows {
        row.href = address.with(&[("step", row.step.as_str())]);
    }
    let page = address.visitor.asked("page").and_then(|page| page.parse::<usize>().ok()).unwrap_or(0);
    let pages = whole.rows_total.div_ceil(ROWS_MAX);
    let links = match pages {
        0 | 1 => Vec::new(),
        _ => (0..pages)
            .map(|page| {
                (format!("Rows {} …", page * ROWS_MAX + 1), address.with(&[("page", &page.to_string())]))
            })
            .collect(),
    };
    let note = (!is_whole).then(|| "the journal is longer than what is drawn".to_owned());
    Ok(Picture { svg: timeline::svg(&whole.page(page)), is_graph: false, note, members: None, links })
}
