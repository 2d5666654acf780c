//! Warnings: allowed, but probably a mistake. One function per lint, with a fix where possible.

mod call;
mod input;
mod order;
mod reference;
mod secret;

use super::sketch::PlanSketch;
use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::plan::draft::StepDraft;
use crate::plan::{Cancellable, PolicyAction, Step};
use crate::tool::Safety;
use crate::wording::quoted;

/// Checks the steps without errors; the meaning of a step with errors is unclear.
pub(super) fn check(sketch: &PlanSketch<'_>, sound: &[bool], found: &mut Vec<Diagnostic>) {
    let steps = sketch.draft.steps.iter().zip(&sketch.steps).zip(sound);
    for ((draft, step), _) in steps.filter(|(_, sound)| **sound) {
        constant_condition(draft, step, found);
        contradictory_undo(draft, step, found);
        missing_compensation(draft, step, found);
        ignored_propagation(draft, step, found);
        call::check(sketch, draft, step, found);
        secret::check(draft, step, found);
        reference::check(sketch, draft, step, found);
    }
    input::check(sketch, sound, found);
    if let Some(graph) = &sketch.graph {
        order::check(sketch, graph, sound, found);
    }
}

fn constant_condition(draft: &StepDraft, step: &Step, found: &mut Vec<Diagnostic>) {
    if step.when.as_ref().is_some_and(|when| when.reads.is_empty()) {
        let path = format!("{}/when", draft.pointer);
        let message = "the condition reads nothing, so it is always the same";
        let fix = PatchOperation::Remove { path: path.clone() };
        found.push(Diagnostic::warning("lint.constant_condition", path, message).fix(vec![fix]));
    }
}

fn contradictory_undo(draft: &StepDraft, step: &Step, found: &mut Vec<Diagnostic>) {
    if draft.cancellable == Some(Cancellable::Irreversible) && step.compensation.is_some() {
        let path = format!("{}/cancellable", draft.pointer);
        let message = format!("step {} is marked irreversible but has a compensation", quoted(&draft.id));
        let fix = PatchOperation::Replace { path: path.clone(), value: "partially-reversible".into() };
        found.push(
            Diagnostic::warning("lint.contradictory_undo", path, message)
                .hint("mark it partially-reversible, or remove the compensation")
                .fix(vec![fix]),
        );
    }
}

fn missing_compensation(draft: &StepDraft, step: &Step, found: &mut Vec<Diagnostic>) {
    let promised = draft.cancellable.is_some_and(|cancellable| cancellable != Cancellable::Irreversible);
    if promised && step.call.safety != Safety::ReadOnly && step.compensation.is_none() {
        let message = format!("step {} is marked reversible but has no compensation", quoted(&draft.id));
        found.push(
            Diagnostic::warning("lint.missing_compensation", format!("{}/cancellable", draft.pointer), message)
                .hint("add a compensation, or mark the step irreversible"),
        );
    }
    if let (Some(typed), Some(fallback)) = (&draft.fallback, &step.fallback)
        && step.compensation.is_some()
        && fallback.compensation.is_none()
        && fallback.call.safety != Safety::ReadOnly
    {
        let message = format!("step {} can be undone, its fallback cannot", quoted(&draft.id));
        found.push(
            Diagnostic::warning("lint.missing_compensation", &typed.call.pointer, message)
                .hint("the step's compensation offsets its first call only; give the fallback its own"),
        );
    }
}

fn ignored_propagation(draft: &StepDraft, step: &Step, found: &mut Vec<Diagnostic>) {
    let Some(policy) = draft.failure_policy.as_ref().filter(|policy| !policy.propagate_to.is_empty()) else {
        return;
    };
    let heeded = [PolicyAction::CancelDependent, PolicyAction::ContinueOthers];
    if !heeded.contains(&step.policy.action) {
        let path = format!("{}/propagate_to", policy.pointer);
        let fix = PatchOperation::Remove { path: path.clone() };
        found.push(
            Diagnostic::warning("lint.ignored_propagation", path, "\"propagate_to\" changes nothing here")
                .hint("only cancel_dependent and continue_others use it; the other actions stop everything")
                .fix(vec![fix]),
        );
    }
}
