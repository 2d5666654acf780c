//! Dependencies: from `depends_on`, from the reads of expressions, and from the order of a flat list.

use super::call_site::CallPurpose;
use super::expression_site::{ExpressionRole, ExpressionSite, places};
use super::sketch::PlanSketch;
use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::plan::Step;
use crate::plan::draft::{DraftShape, StepDraft};
use crate::plan::expression::{Expression, ExpressionError};
use crate::plan::graph::{DependencyCycle, NeedKind, StepNeed};
use crate::wording::{SpellingGuess, quoted};
use std::ops::Range;

/// Collects every edge, and reports every unknown name.
pub(super) fn collect(sketch: &PlanSketch<'_>) -> (Vec<(usize, StepNeed)>, Vec<Diagnostic>) {
    let mut edges = Vec::new();
    let mut found = Vec::new();
    for (position, draft) in sketch.draft.steps.iter().enumerate() {
        if sketch.draft.shape == DraftShape::Flat && position > 0 {
            edges.push((position, StepNeed { step: position - 1, kind: NeedKind::Sequence }));
        }
        for (id, pointer) in &draft.depends_on {
            match sketch.index.get(id.as_str()) {
                Some(_) if draft.id == *id => found.push(self_dependency(draft, pointer)),
                Some(&step) => edges.push((position, StepNeed { step, kind: NeedKind::Order })),
                None => {
                    let message = format!("step {} needs {}, which is not in the plan", quoted(&draft.id), quoted(id));
                    found.push(unknown_step(sketch, pointer, id, message));
                }
            }
        }
        if let Some((id, pointer)) = &draft.else_of {
            match sketch.index.get(id.as_str()) {
                Some(_) if draft.id == *id => found.push(self_dependency(draft, pointer)),
                Some(&step) => edges.push((position, StepNeed { step, kind: NeedKind::Order })),
                None => {
                    let message =
                        format!("step {} is the else of {}, which is not in the plan", quoted(&draft.id), quoted(id));
                    found.push(unknown_step(sketch, pointer, id, message));
                }
            }
        }
        for place in places(draft, &sketch.steps[position]) {
            for (id, kind) in needs(place.expression, place.role.is_forward()) {
                match sketch.index.get(id) {
                    Some(_) if draft.id == id => found.push(self_reference(&place, id)),
                    Some(&step) => edges.push((position, StepNeed { step, kind })),
                    None => found.push(unknown_reference(sketch, &place, id)),
                }
            }
        }
    }
    (edges, found)
}

/// The steps whose result or status a step reads, each with its pointer.
pub(super) fn reads(draft: &StepDraft, step: &Step) -> Vec<(String, String)> {
    let of_place = |place: &ExpressionSite<'_>| {
        let pointer = place.pointer();
        needs(place.expression, true).into_iter().map(|(id, _)| (id.to_owned(), pointer.clone())).collect::<Vec<_>>()
    };
    places(draft, step).iter().flat_map(of_place).collect()
}

/// The steps an expression reads. A result it can do without is a soft need, as are all reads of a call that is not
/// made going forward; a status alone is only order.
fn needs(expression: &Expression, forward: bool) -> Vec<(&str, NeedKind)> {
    let mut needs: Vec<(&str, NeedKind)> = Vec::new();
    for path in expression.reads.iter() {
        let [root, id, field, ..] = path.as_slice() else { continue };
        if root != "steps" {
            continue;
        }
        let kind = match field.as_str() {
            "status" => NeedKind::Order,
            "result" if forward && expression.needed.contains(path) => NeedKind::Data,
            _ => NeedKind::SoftData,
        };
        match needs.iter_mut().find(|(known, _)| known == id) {
            Some((_, known)) => *known = (*known).max(kind),
            None => needs.push((id, kind)),
        }
    }
    needs
}

pub(super) fn unknown_step(sketch: &PlanSketch<'_>, pointer: &str, id: &str, message: String) -> Diagnostic {
    let found = Diagnostic::error("plan.unknown_step", pointer, message);
    if sketch.draft.shape == DraftShape::Numbered {
        return found.hint(format!("the steps are numbered 1 to {}", sketch.draft.steps.len()));
    }
    match sketch.guess(id, sketch.step_ids()) {
        None => found.hint("name the id of a step of this plan, or remove the entry"),
        Some(SpellingGuess::Vague(near)) => found.hint(format!("did you mean {near:?}?")),
        Some(SpellingGuess::Clear(near)) => {
            let fix = PatchOperation::Replace { path: pointer.to_owned(), value: near.into() };
            found.hint(format!("did you mean {near:?}?")).fix(vec![fix])
        }
    }
}

fn self_dependency(draft: &StepDraft, pointer: &str) -> Diagnostic {
    Diagnostic::error("plan.self_dependency", pointer, format!("step {} needs itself", quoted(&draft.id)))
        .hint("remove the entry")
        .fix(vec![PatchOperation::Remove { path: pointer.to_owned() }])
}

fn self_reference(place: &ExpressionSite<'_>, id: &str) -> Diagnostic {
    let message = format!("step {} reads its own result or status", quoted(id));
    let found = Diagnostic::error("plan.self_reference", place.pointer(), message);
    match place.role {
        ExpressionRole::Parameters(CallPurpose::Undo | CallPurpose::UndoProbe) => {
            found.hint("in a compensation the step's own result is `result`")
        }
        ExpressionRole::Verdict => found.hint("here `result` is what the probe answered"),
        _ => found.hint("a step has no result before it has ended; read inputs or an earlier step"),
    }
}

fn unknown_reference(sketch: &PlanSketch<'_>, place: &ExpressionSite<'_>, id: &str) -> Diagnostic {
    let message = format!("the expression reads step {}, which is not in the plan", quoted(id));
    let found = Diagnostic::error("plan.unknown_step", place.pointer(), message);
    match sketch.guess(id, sketch.step_ids()) {
        None => found.hint("read the id of a step of this plan"),
        Some(SpellingGuess::Vague(near)) => found.hint(format!("did you mean steps.{near}?")),
        Some(SpellingGuess::Clear(near)) => {
            let found = found.hint(format!("did you mean steps.{near}?"));
            place.rename(sketch.draft, found, &format!("steps.{id}"), &format!("steps.{near}"))
        }
    }
}

/// Reports a dependency cycle, and why each step needs the next.
pub(super) fn ring(sketch: &PlanSketch<'_>, cycle: &DependencyCycle) -> Diagnostic {
    let drafts: Vec<&StepDraft> = cycle.0.iter().map(|&step| &sketch.draft.steps[step]).collect();
    let nexts = drafts.iter().cycle().skip(1);
    let names: Vec<String> = drafts.iter().chain(drafts.first()).map(|draft| quoted(&draft.id)).collect();
    let reasons: Vec<String> = drafts.iter().zip(nexts).map(|(draft, next)| reason(sketch, draft, next)).collect();
    let pointer = drafts.first().map_or("/steps", |draft| draft.pointer.as_str());
    Diagnostic::error("plan.cycle", pointer, format!("the steps form a cycle: {}", names.join(" needs ")))
        .hint(format!("remove one of these: {}", reasons.join("; ")))
}

fn reason(sketch: &PlanSketch<'_>, draft: &StepDraft, next: &StepDraft) -> String {
    if let Some((_, pointer)) = draft.depends_on.iter().find(|(id, _)| *id == next.id) {
        return format!("{} depends on {} ({pointer})", quoted(&draft.id), quoted(&next.id));
    }
    if let Some((_, pointer)) = draft.else_of.as_ref().filter(|(id, _)| *id == next.id) {
        return format!("{} is the else of {} ({pointer})", quoted(&draft.id), quoted(&next.id));
    }
    let step = sketch.index.get(draft.id.as_str()).and_then(|&position| sketch.steps.get(position));
    let places = step.map(|step| places(draft, step)).unwrap_or_default();
    let reading = places.iter().find(|place| needs(place.expression, true).iter().any(|(id, _)| *id == next.id));
    match reading {
        Some(place) => format!("{} reads {} ({})", quoted(&draft.id), quoted(&next.id), place.pointer()),
        None => format!("{} comes after {} in the list", quoted(&draft.id), quoted(&next.id)),
    }
}

/// Reports an error in a text with an expression, and its position.
pub(super) fn refused(
    error: &ExpressionError,
    text: &str,
    range: Option<&Range<usize>>,
    pointer: String,
) -> Diagnostic {
    // The pointer covers only the whole text, so the message adds the character position.
    let before = range.and_then(|range| text.get(..range.start));
    let message = match before {
        Some(before) => format!("at character {}: {}", before.chars().count() + 1, error.message),
        None => error.message.clone(),
    };
    let found = Diagnostic::error("expression.invalid", pointer, message);
    match &error.hint {
        Some(hint) => found.hint(hint),
        None => found,
    }
}
