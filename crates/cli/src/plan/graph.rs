//! `rutter plan graph`: the steps in waves, their dependencies, and what can be undone.

use super::{each_plan, heading, undo_sign};
use crate::args::plan::PlanGraphArgs;
use crate::exit::CommandExit;
use crate::graph::{draw, waves};
use crate::table::{COLUMNS, CellColor, LISTED_MAX, TableCell, columns, shortened};
use crate::terminal::{Terminal, TerminalSymbols};
use rutter_core::plan::{Plan, Step};
use rutter_core::preview::{UndoCoverage, preview};
use rutter_core::text::listed;
use serde_json::{Value, json};

/// Above this a drawing is harder to read than a list.
const DRAWN_STEPS_MAX: usize = 40;
const DRAWN_LANES_MAX: usize = 14;
/// The deepest indentation of a list, in waves.
const INDENT_MAX: usize = 12;

pub(crate) fn run(args: &PlanGraphArgs, terminal: &Terminal) -> anyhow::Result<CommandExit> {
    each_plan(&args.files, &args.common, terminal, "graph", graph_json, |plan| text(plan, terminal.signs))
}

fn text(plan: &Plan, signs: TerminalSymbols) -> String {
    let needs = direct_needs(plan);
    let waves = waves(&needs, &plan.graph.topological);
    let coverage = coverage(plan);
    let rows = draw(&needs, &waves, signs.pen);
    let is_drawn =
        plan.steps.len() <= DRAWN_STEPS_MAX && rows.iter().all(|row| row.lanes.chars().count() <= DRAWN_LANES_MAX * 2);
    let lines = if is_drawn {
        let mut wave_of = vec![0; plan.steps.len()];
        waves.iter().enumerate().for_each(|(wave, steps)| steps.iter().for_each(|&step| wave_of[step] = wave + 1));
        let mut last = 0;
        let row = rows.into_iter().map(|row| {
            let Some(step) = row.step else { return vec!["".into(), row.lanes.into()] };
            let wave = if wave_of[step] > last { wave_of[step].to_string() } else { String::new() };
            last = wave_of[step];
            let mut cells = vec![TableCell::new(wave, CellColor::Dim), row.lanes.into()];
            cells.extend(step_cells(plan, &plan.steps[step], coverage[step], signs));
            cells
        });
        columns(&row.collect::<Vec<_>>())
    } else {
        list(plan, &needs, &waves, &coverage, signs)
    };
    let mut text = heading(plan);
    text.push('\n');
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    text.push('\n');
    text.push_str(&legend(&coverage, signs));
    text
}

/// One line per step, indented by wave, for plans too large to draw.
fn list(
    plan: &Plan,
    needs: &[Vec<usize>],
    waves: &[Vec<usize>],
    coverage: &[UndoCoverage],
    signs: TerminalSymbols,
) -> Vec<String> {
    let mut rows = Vec::new();
    for (wave, steps) in waves.iter().enumerate() {
        for (at, &step) in steps.iter().enumerate() {
            let number = if at == 0 { (wave + 1).to_string() } else { String::new() };
            let needed: Vec<&str> = needs[step].iter().map(|&need| plan.steps[need].id.as_str()).collect();
            let after =
                if needed.is_empty() { String::new() } else { format!("after {}", listed(&needed, LISTED_MAX)) };
            let [sign, id, tool, marks] = step_cells(plan, &plan.steps[step], coverage[step], signs);
            let indented = id.indented(wave.min(INDENT_MAX) * 2);
            rows.push(vec![TableCell::new(number, CellColor::Dim), sign, indented, tool, after.into(), marks]);
        }
    }
    columns(&rows)
}

fn step_cells(plan: &Plan, step: &Step, coverage: UndoCoverage, signs: TerminalSymbols) -> [TableCell; 4] {
    [
        undo_sign(coverage, signs),
        TableCell::new(step.id.as_str(), CellColor::Bold),
        step.call.tool.as_str().into(),
        TableCell::new(shortened(&marks(plan, step).join(", "), COLUMNS / 2), CellColor::Yellow),
    ]
}

/// Properties of a step worth knowing at a glance.
fn marks(plan: &Plan, step: &Step) -> Vec<String> {
    let approval = step.approval.map(|_| "approval".to_owned());
    let when = step.when.as_ref().map(|when| format!("when {}", when.source.trim()));
    let other = step.else_of.map(|other| format!("else of {}", plan.steps[other].id));
    let for_each = step.for_each.as_ref().map(|fan_out| format!("for each of {}", fan_out.items.source.trim()));
    let fallback = step.fallback.as_ref().map(|fallback| format!("or else {}", fallback.call.tool));
    [approval, other, when, for_each, fallback].into_iter().flatten().collect()
}

/// Explains the symbols that were used.
fn legend(coverage: &[UndoCoverage], signs: TerminalSymbols) -> String {
    let words = [
        (UndoCoverage::Undoable, "can be undone"),
        (UndoCoverage::Partly, "partly"),
        (UndoCoverage::NotUndoable, "cannot be undone"),
        (UndoCoverage::NothingToUndo, "nothing to undo"),
    ];
    let used = words.into_iter().filter(|(kind, _)| coverage.contains(kind));
    let parts: Vec<String> =
        used.map(|(kind, words)| format!("{} {words}", undo_sign(kind, signs).painted())).collect();
    format!("{}\n", parts.join("   "))
}

/// The direct dependencies of each step, without those implied by others.
fn direct_needs(plan: &Plan) -> Vec<Vec<usize>> {
    let ancestors = plan.graph.ancestors();
    let steps = plan.graph.needs.iter().map(|needs| {
        let follows = |need: usize| needs.iter().any(|other| ancestors.has(other.step, need));
        needs.iter().map(|need| need.step).filter(|&need| !follows(need)).collect()
    });
    steps.collect()
}

/// The undo coverage, by position in the plan.
fn coverage(plan: &Plan) -> Vec<UndoCoverage> {
    let mut coverage = vec![UndoCoverage::NothingToUndo; plan.steps.len()];
    for step in preview(plan).steps {
        if let Some(at) = plan.find(step.step.as_str()) {
            coverage[at] = step.undo.coverage;
        }
    }
    coverage
}

fn graph_json(plan: &Plan) -> Value {
    let all_needs: Vec<Vec<usize>> =
        plan.graph.needs.iter().map(|needs| needs.iter().map(|need| need.step).collect()).collect();
    let waves = waves(&all_needs, &plan.graph.topological);
    let coverage = coverage(plan);
    let id = |step: usize| plan.steps[step].id.as_str();
    let steps = plan.steps.iter().enumerate().map(|(at, step)| {
        let needs = plan.graph.needs[at].iter().map(|need| json!({ "step": id(need.step), "kind": need.kind }));
        json!({
            "id": step.id,
            "tool": step.call.tool,
            "needs": needs.collect::<Vec<_>>(),
            "undo": coverage[at],
            "approval": step.approval.is_some(),
            "when": step.when.as_ref().map(|when| &*when.source),
            "else_of": step.else_of.map(&id),
            "for_each": step.for_each.as_ref().map(|fan_out| &*fan_out.items.source),
            "fallback": step.fallback.as_ref().map(|fallback| &fallback.call.tool),
        })
    });
    json!({
        "waves": waves.iter().map(|wave| wave.iter().map(|&step| id(step)).collect::<Vec<_>>()).collect::<Vec<_>>(),
        "critical_path": plan.graph.critical_path().into_iter().map(id).collect::<Vec<_>>(),
        "steps": steps.collect::<Vec<_>>(),
    })
}
