//! The graph or the timeline of an execution, depending on the tab.

use super::entries::PageJournal;
use super::{ExecutionPageState, ExecutionPageUrl};
use crate::drawing::graph::{self, DrawnGraph, FOLD_ABOVE};
use crate::drawing::timeline::{self, ROWS_MAX};
use rutter_core::time::Timestamp;

pub(crate) struct DiagramPanel {
    /// Safe to include in a page: every text was escaped when it was drawn.
    pub(crate) svg: String,
    pub(crate) is_graph: bool,
    pub(crate) note: Option<String>,
    /// The steps of an opened group, by index in the plan.
    pub(crate) members: Option<Vec<usize>>,
    /// Links to other pages of the timeline, or back to the whole graph.
    pub(crate) links: Vec<(String, String)>,
}

pub(super) fn draw(
    journal: Option<&PageJournal>,
    seen: &ExecutionPageState,
    tab: &str,
    address: &ExecutionPageUrl<'_>,
    now: Timestamp,
) -> Option<DiagramPanel> {
    match tab {
        "graph" => {
            let mut graph = graph::of_execution(&seen.plan, &seen.view, &|step| address.with(&[("step", step)]));
            select(&mut graph, address.request.query_value("step"));
            Some(draw_graph(&graph, address.request.query_value("group"), &|group| {
                address.with(&[("group", group), ("step", "")])
            }))
        }
        "timeline" => journal.map(|journal| draw_timeline(journal, seen, address, now)),
        _ => None,
    }
}

/// Marks the selected step.
pub(crate) fn select(graph: &mut DrawnGraph, step: Option<&str>) {
    for node in &mut graph.nodes {
        node.selected = Some(node.id.as_str()) == step;
    }
}

/// The whole graph; of a large one its groups, or the steps of one group.
pub(crate) fn draw_graph(graph: &DrawnGraph, group: Option<&str>, href: &dyn Fn(&str) -> String) -> DiagramPanel {
    let plain = |svg| DiagramPanel { svg, is_graph: true, note: None, members: None, links: Vec::new() };
    if graph.nodes.len() <= FOLD_ABOVE {
        return plain(graph::svg(graph));
    }
    let folded = graph::fold(graph, &|group| href(&group.to_string()));
    let chosen = group.and_then(|group| folded.groups.get(group.parse::<usize>().ok()?));
    match chosen {
        Some(members) => DiagramPanel {
            note: Some(format!("{} of {} steps", members.len(), graph.nodes.len())),
            members: Some(members.clone()),
            links: vec![("All groups".to_owned(), href(""))],
            ..plain(graph::svg(&graph.part(members)))
        },
        None => DiagramPanel {
            note: Some(format!(
                "{} steps in {} groups; open one to see its steps",
                graph.nodes.len(),
                folded.groups.len()
            )),
            ..plain(graph::svg(&folded.graph))
        },
    }
}

fn draw_timeline(
    journal: &PageJournal,
    seen: &ExecutionPageState,
    address: &ExecutionPageUrl<'_>,
    now: Timestamp,
) -> DiagramPanel {
    let records: Vec<_> = journal.entries.iter().map(|entry| (entry.seq, entry.record.clone())).collect();
    let mut whole = timeline::from_records(&seen.plan, &records, now);
    for row in &mut whole.rows {
        row.href = address.with(&[("step", row.step.as_str())]);
    }
    let page = address.request.query_value("page").and_then(|page| page.parse::<usize>().ok()).unwrap_or(0);
    let pages = whole.rows_total.div_ceil(ROWS_MAX);
    let links = match pages {
        0 | 1 => Vec::new(),
        _ => (0..pages)
            .map(|page| (format!("Rows {} …", page * ROWS_MAX + 1), address.with(&[("page", &page.to_string())])))
            .collect(),
    };
    let note = (!journal.is_whole).then(|| "the journal is too long; only its beginning is drawn".to_owned());
    DiagramPanel { svg: timeline::svg(&whole.page(page)), is_graph: false, note, members: None, links }
}
