//! `rutter plan diff`: what changed between two plans, by meaning.

use super::{Checker, PlanFile};
use crate::Exit;
use crate::args::plan::DiffArgs;
use crate::report::plural;
use crate::table::{Paint, wrapped};
use crate::terminal::{Terminal, printable};
use rutter_core::plan::diff::{PlanDiff, diff};
use serde_json::json;

pub(crate) fn run(args: &DiffArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let Some(checker) = Checker::new(&args.common, terminal) else { return Ok(Exit::Refused) };
    let (old, new) = (checker.check(&args.old), checker.check(&args.new));
    // Both are asked, so that the findings of both are told.
    let plans = (old.plan_or_remark(terminal), new.plan_or_remark(terminal));
    let diff = match plans {
        (Some(old), Some(new)) => Some(diff(old, new)),
        _ => None,
    };
    if args.common.json {
        let same = diff.as_ref().map(PlanDiff::is_empty);
        let answer =
            json!({ "ok": diff.is_some(), "same": same, "old": old.json(), "new": new.json(), "diff": diff });
        terminal.answer(&format!("{answer}\n"))?;
    } else if let Some(diff) = &diff {
        terminal.answer(&text(&old, &new, diff))?;
    }
    Ok(match diff {
        None => Exit::Refused,
        Some(diff) if diff.is_empty() => Exit::Done,
        Some(_) => Exit::Differs,
    })
}

fn text(old: &PlanFile, new: &PlanFile, diff: &PlanDiff) -> String {
    if diff.is_empty() {
        return format!("{} and {} mean the same\n", old.name, new.name);
    }
    let mut text = String::new();
    for line in diff.lines() {
        let paint = match line.as_bytes().first() {
            Some(b'+') => Paint::Green,
            Some(b'-') => Paint::Red,
            _ => Paint::Yellow,
        };
        text.push_str(&paint.on(&wrapped(&printable(&line), 4)));
        text.push('\n');
    }
    text.push_str(&format!(
        "\n{} added, {} removed, {} changed, {} as before\n",
        plural(diff.added.len(), "step"),
        diff.removed.len(),
        diff.changed.len(),
        diff.unchanged.len(),
    ));
    text
}
