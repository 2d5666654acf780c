//! `rutter plan check`: reports every error in every file, and with `--fix` repairs some.

use super::fix::{FixedPlan, fix, is_fixable};
use super::{CheckedPlanFile, PlanChecker};
use crate::args::plan::PlanCheckArgs;
use crate::exit::CommandExit;
use crate::printable::printable;
use crate::report::plural;
use crate::terminal::Terminal;
use rutter_core::diagnostic::count;
use serde_json::{Value, json};

pub(crate) fn run(args: &PlanCheckArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let Some(checker) = PlanChecker::new(&args.common, &args.files, terminal)? else { return Ok(CommandExit::Refused) };
    let mut exit = CommandExit::Done;
    for path in &args.files {
        let file = checker.check(path);
        let fixed = if args.fix { fix(&checker, path, file, args.strict)? } else { FixedPlan::untouched(file) };
        let is_refused = fixed.file.has_errors() || (args.strict && fixed.file.has_warnings());
        if is_refused {
            exit = CommandExit::Refused;
        }
        if args.common.json {
            terminal.answer(&format!("{}\n", answer(&fixed, args.fix, !is_refused)))?;
        } else {
            tell(&fixed, args, terminal)?;
        }
    }
    Ok(exit)
}

fn answer(fixed: &FixedPlan, is_fixing: bool, is_ok: bool) -> Value {
    let mut answer = fixed.file.json();
    answer["ok"] = is_ok.into();
    if is_fixing {
        answer["fixed"] = json!(fixed.applied);
        answer["document"] = json!(fixed.document);
    }
    answer
}

/// Findings go to stdout, unless the fixed plan does: then they go to stderr.
fn tell(fixed: &FixedPlan, args: &PlanCheckArgs, terminal: &Terminal) -> anyhow::Result<()> {
    for line in &fixed.applied {
        terminal.remark(&format!("fixed: {}\n", printable(line)));
    }
    let file = &fixed.file;
    let verdict = verdict(file, args);
    match &fixed.document {
        Some(document) => {
            let name = if fixed.applied.is_empty() { &file.name } else { "<stdout>" };
            terminal.remark(&format!("{}{verdict}\n", file.findings_in(name)));
            terminal.answer(&format!("{document:#}\n"))?;
        }
        None => terminal.answer(&format!("{}{}{verdict}\n", file.findings(), file.policy_lines()))?,
    }
    Ok(())
}

/// The verdict about a file in one line.
fn verdict(file: &CheckedPlanFile, args: &PlanCheckArgs) -> String {
    let name = &file.name;
    let fixable = file.diagnostics.iter().filter(|found| is_fixable(found, args.strict)).count();
    let offer = match fixable {
        0 => String::new(),
        _ if args.fix => String::new(),
        _ => format!(", --fix can repair {fixable}"),
    };
    let found = count(&file.diagnostics);
    match &file.plan {
        None => format!("{name}: {}{offer}", found.unwrap_or_default()),
        Some(plan) => {
            let with = found.map(|found| format!(" with {found}")).unwrap_or_default();
            format!("{name}: ok{with}, {}{offer}", plural(plan.steps.len(), "step"))
        }
    }
}
