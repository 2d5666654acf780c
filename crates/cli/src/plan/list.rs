//! `rutter plan list`: lists saved plans, beside the process that owns the database.

use crate::args::plan::PlanListArgs;
use crate::exit::CommandExit;
use crate::printable::printable;
use crate::report::plural;
use crate::store;
use crate::table::{CellColor, TableCell, columns};
use crate::terminal::Terminal;
use rutter_app::view::PlanView;
use rutter_core::port::query::{Pagination, PlanFilter, PlanSummary};
use rutter_core::time::calendar::utc;
use serde_json::json;

pub(crate) fn run(args: &PlanListArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let words = args.words.join(" ");
    let filter = PlanFilter {
        archived: args.archived,
        tag: args.tag.clone(),
        text: (!words.is_empty()).then_some(words),
        name: None,
    };
    let listing = store::archive(&args.store)?.plans(&args.tenant.id(), &filter, &Pagination::first(args.count))?;
    if args.store.json {
        for plan in &listing.items {
            terminal.answer(&format!("{}\n", json!(PlanView::of(plan))))?;
        }
        return Ok(CommandExit::Done);
    }
    if listing.items.is_empty() {
        terminal.remark("no plan matches; `rutter plan save FILE` saves one\n");
    }
    let rows: Vec<Vec<TableCell>> = listing.items.iter().map(row).collect();
    terminal.answer(&columns(&rows).into_iter().map(|line| line + "\n").collect::<String>())?;
    if listing.next.is_some() {
        terminal.remark("there are more: raise -n\n");
    }
    Ok(CommandExit::Done)
}

fn row(plan: &PlanSummary) -> Vec<TableCell> {
    vec![
        plan.id.as_str().into(),
        format!("revision {}", plan.revision).into(),
        plural(plan.steps as usize, "step").into(),
        TableCell::new(printable(&plan.name), CellColor::Bold),
        TableCell::new(utc(plan.saved_at), CellColor::Dim),
    ]
}
