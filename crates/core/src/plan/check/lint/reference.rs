//! Lints for references: to the result of a step that may have none, in a step where several results meet.

use super::super::expression_site::{ExpressionSite, places};
use super::super::sketch::PlanSketch;
use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::plan::draft::{DraftShape, StepDraft};
use crate::plan::{PolicyAction, Step};
use crate::wording::quoted;
use std::collections::BTreeSet;

pub(super) fn check(sketch: &PlanSketch<'_>, draft: &StepDraft, step: &Step, found: &mut Vec<Diagnostic>) {
    let mut seen: Vec<&str> = Vec::new();
    let places = places(draft, step);
    let forward = || places.iter().filter(|place| place.role.is_forward());
    let read: BTreeSet<&str> =
        forward().flat_map(|place| place.expression.reads.iter()).filter_map(|path| step_of(path)).collect();
    // What reads one result alone goes with it; that is what its author expects.
    if read.len() < 2 {
        return;
    }
    for place in forward() {
        for path in place.expression.needed.iter() {
            let [root, id, field, ..] = path.as_slice() else { continue };
            if root != "steps" || field != "result" || seen.contains(&id.as_str()) || looks_first(step, id) {
                continue;
            }
            let Some(why) = sketch.index.get(id.as_str()).and_then(|&other| may_lack_a_result(&sketch.steps[other]))
            else {
                continue;
            };
            seen.push(id);
            found.push(unguarded(sketch, draft, place, id, &path.join("."), why));
        }
    }
}

/// The step whose result a path leads to.
fn step_of(path: &[String]) -> Option<&str> {
    match path {
        [root, id, field, ..] if root == "steps" && field == "result" => Some(id),
        _ => None,
    }
}

/// Whether the step can settle without a result although the plan goes on.
fn may_lack_a_result(step: &Step) -> Option<&'static str> {
    match step.policy.action {
        _ if step.when.is_some() => Some("can be skipped by its \"when\""),
        _ if step.else_of.is_some() => Some("runs only if another step is skipped"),
        PolicyAction::ContinueOthers => Some("may fail while the others continue"),
        _ => None,
    }
}

/// Whether the step's own condition asks about the other step: then the author has thought of it.
fn looks_first(step: &Step, id: &str) -> bool {
    let reads = step
        .when
        .iter()
        .flat_map(|when| when.reads.iter().filter(|path| !when.needed.contains(path) || is_status(path)));
    let mut ids = reads.filter_map(|path| path.get(1).filter(|_| path[0] == "steps"));
    ids.any(|read| read == id)
}

fn is_status(path: &[String]) -> bool {
    path.get(2).is_some_and(|field| field == "status")
}

fn unguarded(
    sketch: &PlanSketch<'_>,
    draft: &StepDraft,
    place: &ExpressionSite<'_>,
    id: &str,
    path: &str,
    why: &str,
) -> Diagnostic {
    let message =
        format!("step {} needs `{path}`, and step {} {why}: it is then skipped", quoted(&draft.id), quoted(id));
    let hint = format!("write `{path} | default(…)` if the step can do without, or say so with \"when\"");
    let found = Diagnostic::warning("lint.unguarded_reference", place.pointer(), message).hint(hint);
    if draft.when.is_some() || sketch.draft.shape == DraftShape::Flat {
        return found;
    }
    // The same, said by the author: a fix must not change the execution.
    let condition = match id.contains('-') {
        true => format!("steps[\"{id}\"].status == 'completed'"),
        false => format!("steps.{id}.status == 'completed'"),
    };
    found.fix(vec![PatchOperation::Add { path: format!("{}/when", draft.pointer), value: condition.into() }])
}
