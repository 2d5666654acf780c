//! `rutter exec list`: which executions there are.

use crate::Exit;
use crate::args::run::ListArgs;
use crate::store;
use crate::table::{Cell, Paint, columns};
use crate::terminal::{Terminal, printable};
use rutter_core::execution::view::Status;
use rutter_core::port::query::{ExecutionFilter, ExecutionSummary, Page};
use rutter_core::time::calendar::utc;
use serde_json::json;

pub(crate) fn run(args: &ListArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let tenant = args.tenant.id();
    let mut archive = store::archive(&args.store)?;
    store::check_tenant(&archive, &tenant)?;
    let filter =
        ExecutionFilter { statuses: args.status.clone(), asking: args.asking, ..ExecutionFilter::default() };
    let listing = archive.executions(&tenant, &filter, &Page::first(args.count))?;
    if args.store.json {
        for found in &listing.items {
            let told = json!({
                "execution_id": found.id, "plan": found.plan, "name": found.name, "row": found.row,
                "entries": found.entries, "letters": found.letters,
            });
            terminal.answer(&format!("{told}\n"))?;
        }
        return Ok(Exit::Done);
    }
    if listing.items.is_empty() {
        terminal.remark("no execution fits; `rutter run FILE` starts one\n");
    }
    let rows: Vec<Vec<Cell>> = listing.items.iter().map(row).collect();
    terminal.answer(&columns(&rows).into_iter().map(|line| line + "\n").collect::<String>())?;
    if listing.next.is_some() {
        terminal.remark("there are more: ask for them with -n\n");
    }
    Ok(Exit::Done)
}

fn row(found: &ExecutionSummary) -> Vec<Cell> {
    let status = found.row.status;
    let paint = match status {
        Status::Completed => Paint::Green,
        Status::Failed | Status::Partial | Status::Cancelled => Paint::Red,
        _ => Paint::Yellow,
    };
    let asks = match found.row.questions {
        0 => String::new(),
        1 => "1 question".to_owned(),
        more => format!("{more} questions"),
    };
    vec![
        found.id.as_str().into(),
        Cell::new(status.as_str(), paint),
        format!("{}/{}", found.row.settled, found.row.total).into(),
        printable(&found.name).into(),
        Cell::new(utc(found.row.opened_at), Paint::Dim),
        Cell::new(asks, Paint::Yellow),
    ]
}
