//! `rutter plan preview`: what a plan would do.

use super::{PlanChecker, each_plan, heading, undo_sign};
use crate::args::plan::PlanPreviewArgs;
use crate::config::Config;
use crate::exit::CommandExit;
use crate::printable::printable;
use crate::table::{COLUMNS, CellColor, LISTED_MAX, TableCell, columns, wrapped};
use crate::terminal::{Terminal, TerminalSymbols};
use rutter_app::view::{PreviewView, StepPreviewView};
use rutter_core::id::StepId;
use rutter_core::plan::{FailureTolerance, Plan, Step};
use rutter_core::policy::expect::PlanCaller;
use rutter_core::preview::{GuaranteeKind, PlanPreview, ScenarioOutcome, StepPreview, WhatIfScenario, preview_under};
use rutter_core::text::{listed, spelled};
use rutter_core::wording::{SpellingGuess, guess, quoted};
use serde_json::json;

pub(crate) fn run(args: &PlanPreviewArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    let policy = Config::policy(args.common.config.clone())?;
    let preview = |plan: &Plan| preview_under(plan, &policy, PlanCaller::default());
    match &args.step {
        Some(step) => run_step(args, step, &preview, terminal),
        None => each_plan(
            &args.files,
            &args.common,
            terminal,
            "preview",
            |plan| json!(PreviewView::of(&preview(plan), None, None)),
            |plan| text(plan, &preview(plan), terminal.signs),
        ),
    }
}

fn run_step(
    args: &PlanPreviewArgs,
    id: &str,
    preview: &dyn Fn(&Plan) -> PlanPreview,
    terminal: &Terminal,
) -> anyhow::Result<CommandExit> {
    let Some(checker) = PlanChecker::new(&args.common, &args.files, terminal)? else { return Ok(CommandExit::Refused) };
    let mut exit = CommandExit::Done;
    for path in &args.files {
        let file = checker.check(path);
        let plan = if args.common.json { file.plan.as_deref() } else { file.plan_or_remark(terminal) };
        let card = plan.and_then(|plan| card(plan, id, preview(plan)));
        if card.is_none() {
            exit = CommandExit::Refused;
        }
        if let (Some(plan), None) = (plan, &card) {
            let known = plan.steps.iter().map(|step| step.id.as_str());
            let hint = match guess(id, known) {
                Some(SpellingGuess::Clear(name) | SpellingGuess::Vague(name)) => {
                    format!("\n\nhelp: did you mean {}?", quoted(name))
                }
                None => String::new(),
            };
            terminal.remark(&format!("error: {} has no step {}{hint}\n", file.name, quoted(id)));
        }
        if args.common.json {
            let mut answer = file.json();
            answer["preview"] = card.map(|(_, step, what_if)| json!(StepPreviewView::of(&step, &what_if))).into();
            terminal.answer(&format!("{answer}\n"))?;
        } else if let (Some(plan), Some((at, step, what_if))) = (plan, &card) {
            terminal.answer(&detail(plan, *at, step, what_if, terminal.signs))?;
        }
    }
    Ok(exit)
}

/// The position and the preview of a step; none if the plan has no such step.
fn card(plan: &Plan, id: &str, preview: PlanPreview) -> Option<(usize, StepPreview, WhatIfScenario)> {
    let at = plan.find(id)?;
    let turn = preview.steps.iter().position(|step| step.step.as_str() == id)?;
    Some((at, preview.steps.into_iter().nth(turn)?, preview.what_if.into_iter().nth(turn)?))
}

fn text(plan: &Plan, preview: &PlanPreview, signs: TerminalSymbols) -> String {
    let mut text = heading(plan);
    if !plan.goal.is_empty() {
        text.push_str(&wrapped(&printable(&plan.goal), 0));
        text.push('\n');
    }
    text.push('\n');
    let mut rows =
        vec![["", "STEP", "CALL", "EFFECT", "", "UNDO"].map(|name| TableCell::new(name, CellColor::Dim)).to_vec()];
    for (at, step) in preview.steps.iter().enumerate() {
        let Some(planned) = plan.find(step.step.as_str()).map(|at| &plan.steps[at]) else { continue };
        rows.push(vec![
            TableCell::new((at + 1).to_string(), CellColor::Dim),
            TableCell::new(step.step.as_str(), CellColor::Bold),
            planned.call.tool.as_str().into(),
            guarantee(step.guarantee.kind).into(),
            undo_sign(step.undo.coverage, signs),
            step.undo.reason.as_str().into(),
            TableCell::new(marks(planned), CellColor::Yellow),
        ]);
    }
    let no_return = preview.point_of_no_return.as_ref().map(|point| &point.step);
    let mut lines = columns(&rows).into_iter();
    text.extend(lines.next().map(|line| line + "\n"));
    for (line, step) in lines.zip(&preview.steps) {
        if Some(&step.step) == no_return {
            text.push_str(&rule(" point of no return: from here on not everything can be undone ", signs));
        }
        text.push_str(&line);
        text.push('\n');
    }
    if plan.max_parallel > 1 {
        let chain = format!("Longest chain: {}", names(&preview.critical_path));
        text.push_str(&format!("\n{}\n", wrapped(&chain, 2)));
    }
    let width = preview.steps.iter().map(|step| step.step.as_str().len()).max().unwrap_or(0);
    let rules: Vec<_> =
        preview.steps.iter().flat_map(|step| step.policy.iter().map(|rule| (&step.step, rule))).collect();
    if !rules.is_empty() {
        text.push_str(&format!("\n{}\n", CellColor::Bold.on("What the operator's policy says:")));
    }
    for (step, rule) in rules {
        let line = format!("  {:width$}  {}", step.as_str(), printable(&rule.to_string()));
        text.push_str(&wrapped(&line, width + 4));
        text.push('\n');
    }
    text.push_str(&format!("\n{}\n", CellColor::Bold.on("If a step fails for good:")));
    for what_if in &preview.what_if {
        let sentence = format!("  {:width$}  {}", what_if.step.as_str(), sentence(what_if, plan.steps.len()));
        text.push_str(&wrapped(&sentence, width + 4));
        text.push('\n');
    }
    text
}

/// A horizontal line with words in it.
fn rule(words: &str, signs: TerminalSymbols) -> String {
    let rest = COLUMNS.saturating_sub(words.chars().count() + 3);
    let line = format!("{}{words}{}", signs.rule.repeat(3), signs.rule.repeat(rest));
    format!("{}\n", CellColor::Red.on(&line))
}

/// How often the effect can happen.
pub(crate) fn guarantee(kind: GuaranteeKind) -> &'static str {
    match kind {
        GuaranteeKind::NoEffect => "none, reads only",
        GuaranteeKind::AtLeastOnce => "repeatable",
        GuaranteeKind::Deduplicated => "once, by its key",
        GuaranteeKind::AtMostOnce => "at most once",
    }
}

fn marks(step: &Step) -> String {
    let marks = [
        (step.approval.is_some(), "approval"),
        (step.when.is_some(), "when"),
        (step.else_of.is_some(), "else"),
        (step.for_each.is_some(), "for each"),
        (step.fallback.is_some(), "fallback"),
    ];
    marks.into_iter().filter(|(is, _)| *is).map(|(_, word)| word).collect::<Vec<_>>().join(", ")
}

/// The consequence of a failure in one sentence. `--step` also prints what could be undone on request.
fn sentence(what_if: &WhatIfScenario, total: usize) -> String {
    let rest = total - what_if.completed.len() - 1;
    let mut parts = Vec::new();
    let mut part = |words: &str, steps: &[StepId]| match steps.len() {
        0 => {}
        count if count == rest && count > 2 => parts.push(format!("{words} the rest")),
        _ => parts.push(format!("{words} {}", names(steps))),
    };
    part("cancels", &what_if.cancelled);
    part("skips", &what_if.skipped);
    part("continues with", &what_if.continue_with);
    part("holds", &what_if.held);
    if !what_if.undone.is_empty() {
        parts.push(format!("undoes {}", names(&what_if.undone)));
    }
    parts.push(ending(what_if).to_owned());
    if !what_if.remains.is_empty() {
        parts.push(format!("not all of {} can be undone", names(&what_if.remains)));
    }
    parts.join("; ")
}

fn ending(what_if: &WhatIfScenario) -> &'static str {
    match what_if.ends {
        ScenarioOutcome::WaitsForDecision => "waits for a decision",
        ScenarioOutcome::Failed if what_if.completed.is_empty() => "ends failed, with nothing done",
        ScenarioOutcome::Failed => "ends failed",
        ScenarioOutcome::Partial => "ends partial",
        ScenarioOutcome::Compensated => "ends compensated",
    }
}

/// Everything about one step.
fn detail(plan: &Plan, at: usize, card: &StepPreview, what_if: &WhatIfScenario, signs: TerminalSymbols) -> String {
    let step = &plan.steps[at];
    let retry = &step.call.retry;
    let needs: Vec<String> = plan.graph.needs[at]
        .iter()
        .map(|need| format!("{} ({})", plan.steps[need.step].id, spelled(&need.kind)))
        .collect();
    let attempts =
        format!("{} of {} each", crate::report::plural(retry.max_attempts as usize, "attempt"), step.call.timeout);
    let again = retry.on.iter().map(|category| category.as_str()).collect::<Vec<_>>();
    let attempts = match retry.max_attempts {
        1 => attempts,
        _ => format!("{attempts}, again on {} after {}", listed(&again, LISTED_MAX), retry.initial),
    };
    let undo = format!("{} {}", undo_sign(card.undo.coverage, signs).painted(), card.undo.reason);
    let mut rows: Vec<(&str, String)> = vec![
        ("effect", format!("{}: {}", guarantee(card.guarantee.kind), card.guarantee.reason)),
        ("in doubt", card.guarantee.in_doubt.clone()),
        ("undo", undo),
        ("attempts", attempts),
    ];
    if !needs.is_empty() {
        rows.push(("waits for", listed(&needs, LISTED_MAX)));
    }
    rows.extend(step.approval.map(|rule| ("approval", format!("a person must approve within {}", rule.expires))));
    rows.extend(card.policy.iter().map(|rule| ("policy", printable(&rule.to_string()))));
    rows.extend(step.when.as_ref().map(|when| ("when", printable(when.source.trim()))));
    rows.extend(step.else_of.map(|other| ("else of", plan.steps[other].id.to_string())));
    rows.extend(step.for_each.as_ref().map(|fan_out| {
        let mut many = format!("at most {}, {} at a time", fan_out.max_items, fan_out.max_parallel);
        if fan_out.tolerate != FailureTolerance::NONE {
            many += &format!(", {} may fail", fan_out.tolerate);
        }
        ("for each", format!("of {}; {many}", printable(fan_out.items.source.trim())))
    }));
    rows.extend(step.fallback.as_ref().map(|fallback| ("or else", fallback.call.tool.to_string())));
    rows.extend(step.probe.as_ref().map(|probe| ("probe", probe.call.tool.to_string())));

    let mut text = format!("{}: {}\n", CellColor::Bold.on(step.id.as_str()), step.call.tool);
    for about in [&step.name, &step.description] {
        if !about.is_empty() {
            text.push_str(&format!("  {}\n", wrapped(&printable(about), 2)));
        }
    }
    push_rows(&mut text, &rows);

    text.push_str(&format!("\n{} ({})\n", CellColor::Bold.on("If it fails for good"), spelled(&step.policy.action)));
    let mut rows: Vec<(&str, String)> = [
        ("done", &what_if.completed),
        ("cancelled", &what_if.cancelled),
        ("skipped", &what_if.skipped),
        ("held", &what_if.held),
        ("continues", &what_if.continue_with),
        ("undone", &what_if.undone),
        ("can undo", &what_if.undoable),
        ("remains", &what_if.remains),
    ]
    .into_iter()
    .filter(|(_, steps)| !steps.is_empty())
    .map(|(word, steps)| (word, names(steps)))
    .collect();
    rows.push(("ends", ending(what_if).trim_start_matches("ends ").to_owned()));
    if !step.policy.reason.is_empty() {
        rows.push(("because", printable(&step.policy.reason)));
    }
    push_rows(&mut text, &rows);
    text
}

fn push_rows(text: &mut String, rows: &[(&str, String)]) {
    for (name, words) in rows {
        let line = format!("  {name:<9}  {words}");
        text.push_str(&wrapped(&line, 13));
        text.push('\n');
    }
}

fn names(steps: &[StepId]) -> String {
    listed(steps, LISTED_MAX)
}
