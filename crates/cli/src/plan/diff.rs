//! `rutter plan diff`: what changed between two plans, by meaning.

use super::{CheckedPlanFile, PlanChecker};
use crate::args::plan::PlanDiffArgs;
use crate::exit::CommandExit;
use crate::printable::printable;
use crate::report::plural;
use crate::table::{CellColor, wrapped};
use crate::terminal::Terminal;
use rutter_core::plan::diff::{PlanDiff, diff};
use serde_json::json;

pub(crate) fn run(args: &PlanDiffArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let files = [args.old.clone(), args.new.clone()];
    let Some(checker) = PlanChecker::new(&args.common, &files, terminal)? else { return Ok(CommandExit::Refused) };
    let (old, new) = (checker.check(&args.old), checker.check(&args.new));
    // Both are evaluated, so that the findings of both are printed.
    let plans = (old.plan_or_remark(terminal), new.plan_or_remark(terminal));
    let diff = match plans {
        (Some(old), Some(new)) => Some(diff(old, new)),
        _ => None,
    };
    if args.common.json {
        let same = diff.as_ref().map(PlanDiff::is_empty);
        let answer = json!({ "ok": diff.is_some(), "same": same, "old": old.json(), "new": new.json(), "diff": diff });
        terminal.answer(&format!("{answer}\n"))?;
    } else if let Some(diff) = &diff {
        terminal.answer(&text(&old, &new, diff))?;
    }
    Ok(match diff {
        None => CommandExit::Refused,
        Some(diff) if diff.is_empty() => CommandExit::Done,
        Some(_) => CommandExit::Differs,
    })
}

fn text(old: &CheckedPlanFile, new: &CheckedPlanFile, diff: &PlanDiff) -> String {
    if diff.is_empty() {
        return format!("{} and {} have the same meaning\n", old.name, new.name);
    }
    let mut text = String::new();
    for line in diff.lines() {
        let paint = match line.as_bytes().first() {
            Some(b'+') => CellColor::Green,
            Some(b'-') => CellColor::Red,
            _ => CellColor::Yellow,
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
