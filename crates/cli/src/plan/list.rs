//! `rutter plan list`: the plans that are kept, read beside whoever has the database.

use crate::Exit;
use crate::args::plan::PlanListArgs;
use crate::report::plural;
use crate::store;
use crate::table::{Cell, Paint, columns};
use crate::terminal::{Terminal, printable};
use rutter_core::port::query::{Page, PlanFilter, PlanSummary};
use rutter_core::time::calendar::utc;
use serde_json::{Value, json};

pub(crate) fn run(args: &PlanListArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let words = args.words.join(" ");
    let filter = PlanFilter {
        tag: args.tag.clone(),
        text: (!words.is_empty()).then_some(words),
        ..PlanFilter::default()
    };
    let listing = store::archive(&args.store)?.plans(&args.tenant.id(), &filter, &Page::first(args.count))?;
    if args.store.json {
        for plan in &listing.items {
            terminal.answer(&format!("{}\n", told(plan)))?;
        }
        return Ok(Exit::Done);
    }
    if listing.items.is_empty() {
        terminal.remark("no plan fits; `rutter plan save FILE` keeps one\n");
    }
    let rows: Vec<Vec<Cell>> = listing.items.iter().map(row).collect();
    terminal.answer(&columns(&rows).into_iter().map(|line| line + "\n").collect::<String>())?;
    if listing.next.is_some() {
        terminal.remark("there are more: ask for them with -n\n");
    }
    Ok(Exit::Done)
}

fn row(plan: &PlanSummary) -> Vec<Cell> {
    vec![
        plan.id.as_str().into(),
        format!("revision {}", plan.revision).into(),
        plural(plan.steps as usize, "step").into(),
        Cell::new(printable(&plan.name), Paint::Bold),
        Cell::new(utc(plan.saved_at), Paint::Dim),
    ]
}

/// A plan for programs, without its text.
pub(super) fn told(plan: &PlanSummary) -> Value {
    json!({
        "plan_id": plan.id, "revision": plan.revision, "name": plan.name, "goal": plan.goal, "tags": plan.tags,
        "steps": plan.steps, "hash": plan.hash, "actor": plan.actor, "saved_at": utc(plan.saved_at),
    })
}
