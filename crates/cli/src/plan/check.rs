//! `rutter plan check`: every mistake in every file, and with `--fix` fewer of them.

use super::fix::{Fixed, fix, is_fixable};
use super::{Checker, PlanFile};
use crate::Exit;
use crate::args::plan::CheckArgs;
use crate::report::{count, plural};
use crate::terminal::{Terminal, printable};
use serde_json::{Value, json};

pub(crate) fn run(args: &CheckArgs, terminal: &Terminal) -> anyhow::Result<Exit> {
    let Some(checker) = Checker::new(&args.common, terminal) else { return Ok(Exit::Refused) };
    let mut exit = Exit::Done;
    for path in &args.files {
        let file = checker.check(path);
        let fixed = if args.fix { fix(&checker, path, file, args.strict)? } else { Fixed::untouched(file) };
        let is_refused = fixed.file.has_errors() || (args.strict && !fixed.file.diagnostics.is_empty());
        if is_refused {
            exit = Exit::Refused;
        }
        if args.common.json {
            terminal.answer(&format!("{}\n", answer(&fixed, args.fix, !is_refused)))?;
        } else {
            tell(&fixed, args, terminal)?;
        }
    }
    Ok(exit)
}

fn answer(fixed: &Fixed, is_fixing: bool, is_ok: bool) -> Value {
    let mut answer = fixed.file.json();
    answer["ok"] = is_ok.into();
    if is_fixing {
        answer["fixed"] = json!(fixed.applied);
        answer["document"] = json!(fixed.document);
    }
    answer
}

/// Findings are the answer, unless the fixed plan is: then they are remarks.
fn tell(fixed: &Fixed, args: &CheckArgs, terminal: &Terminal) -> anyhow::Result<()> {
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
        None => terminal.answer(&format!("{}{verdict}\n", file.findings()))?,
    }
    Ok(())
}

/// One line that says how the file stands.
fn verdict(file: &PlanFile, args: &CheckArgs) -> String {
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
