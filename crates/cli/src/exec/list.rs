//! `rutter exec list`: lists executions.

use crate::args::run::ExecListArgs;
use crate::exit::CommandExit;
use crate::owner;
use crate::printable::printable;
use crate::store;
use crate::table::{CellColor, TableCell, columns};
use crate::terminal::Terminal;
use rutter_app::view::ExecutionListView;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::port::query::{ExecutionFilter, ExecutionSummary, Pagination};
use rutter_core::text::cut;
use rutter_core::time::calendar::utc;
use serde_json::json;

/// The length of what is said of an execution in a list; `exec show` has all of it.
const REMARK_CHARS_MAX: usize = 160;

pub(crate) fn run(args: &ExecListArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let tenant = args.tenant.id();
    let mut archive = store::archive(&args.store)?;
    store::check_tenant(&archive, &tenant)?;
    let filter = ExecutionFilter { statuses: args.status.clone(), asking: args.asking, ..ExecutionFilter::default() };
    let listing = archive.executions(&tenant, &filter, &Pagination::first(args.count))?;
    let under_way = listing.items.iter().filter(|found| owner::needs_a_process(&found.row)).count();
    owner::note_unowned(&store::config(&args.store)?.directory, under_way, terminal);
    if args.store.json {
        for found in &listing.items {
            terminal.answer(&format!("{}\n", json!(ExecutionListView::of(found))))?;
        }
        return Ok(CommandExit::Done);
    }
    if listing.items.is_empty() {
        terminal.remark("no execution matches; `rutter run FILE` starts one\n");
    }
    let rows: Vec<Vec<TableCell>> = listing.items.iter().map(row).collect();
    terminal.answer(&columns(&rows).into_iter().map(|line| line + "\n").collect::<String>())?;
    if listing.next.is_some() {
        terminal.remark("there are more: raise -n\n");
    }
    Ok(CommandExit::Done)
}

fn row(found: &ExecutionSummary) -> Vec<TableCell> {
    let status = found.row.status;
    let paint = match status {
        ExecutionStatus::Completed => CellColor::Green,
        ExecutionStatus::Failed | ExecutionStatus::Partial | ExecutionStatus::Cancelled => CellColor::Red,
        _ => CellColor::Yellow,
    };
    let asks = match found.row.questions {
        0 => String::new(),
        1 => "1 question".to_owned(),
        more => format!("{more} questions"),
    };
    vec![
        found.id.as_str().into(),
        TableCell::new(status.as_str(), paint),
        format!("{}/{}", found.row.completed.unwrap_or(found.row.settled), found.row.total).into(),
        printable(&found.name).into(),
        TableCell::new(utc(found.row.opened_at), CellColor::Dim),
        TableCell::new(asks, CellColor::Yellow),
        TableCell::new(found.row.deviation_marks().join(", "), CellColor::Red),
        printable(&cut(found.row.remark().unwrap_or_default(), REMARK_CHARS_MAX)).into(),
    ]
}
