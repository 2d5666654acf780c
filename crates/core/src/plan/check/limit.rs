//! Checks limits: times, retries, budgets and sizes that contradict each other.

use super::call_site::{CallSite, sites};
use super::sketch::{PlanSketch, overlay};
use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::limits;
use crate::plan::RetryPolicy;
use crate::plan::draft::{RetryDraft, StepDraft};
use crate::time::Millis;
use crate::wording::quoted;

pub(super) fn check(sketch: &PlanSketch<'_>, found: &mut Vec<Diagnostic>) {
    for (draft, step) in sketch.draft.steps.iter().zip(&sketch.steps) {
        total_shorter_than_attempt(sketch, draft, found);
        for site in sites(draft, step) {
            above_tools_maximum(sketch, &site, found);
            if let Some(retry) = &site.draft.retry {
                backoff(retry, &site.call.retry, found);
            }
        }
    }
    if let Some(retry) = &sketch.draft.defaults.retry {
        backoff(retry, &overlay(RetryPolicy::standard(), Some(retry)), found);
    }
    edges(sketch, found);
    deadline(sketch, found);
    budget(sketch, found);
}

/// Compares only explicit timeouts: a step may have less time than the default of an attempt.
fn total_shorter_than_attempt(sketch: &PlanSketch<'_>, draft: &StepDraft, found: &mut Vec<Diagnostic>) {
    let attempt = draft.call.timeout.or(sketch.draft.defaults.timeout);
    if let (Some(total), Some(attempt)) = (draft.timeout_total, attempt)
        && total < attempt
    {
        let message = format!("the whole step may take {total}, less than one attempt, which may take {attempt}");
        let fix = PatchOperation::Add { path: format!("{}/timeout", draft.pointer), value: total.to_string().into() };
        found.push(
            Diagnostic::error("plan.impossible_timeout", format!("{}/total_timeout", draft.pointer), message)
                .hint("give the attempt no more time than the step")
                .fix(vec![fix]),
        );
    }
}

/// A timeout of the call itself must not be cut silently when it is made; a default of the plan is, with a warning.
fn above_tools_maximum(sketch: &PlanSketch<'_>, site: &CallSite<'_>, found: &mut Vec<Diagnostic>) {
    let Some(tool) = sketch.tool(site.call) else { return };
    let Some(max) = tool.attempts.timeout_max else { return };
    let name = quoted(tool.name.as_str());
    let path = format!("{}/timeout", site.draft.pointer);
    match (site.draft.timeout, sketch.draft.defaults.timeout) {
        (Some(timeout), _) if timeout > max => {
            let message = format!("an attempt of {name} may take {max}, less than the timeout, which is {timeout}");
            let fix = PatchOperation::Replace { path: path.clone(), value: max.to_string().into() };
            found.push(
                Diagnostic::error("plan.timeout_above_maximum", path, message)
                    .hint("give the attempt less time, or ask the operator to raise `timeout_max` of the tool")
                    .fix(vec![fix]),
            );
        }
        (None, Some(timeout)) if timeout > max => {
            let message = format!("the plan's timeout is {timeout}, but an attempt of {name} has at most {max}");
            let fix = PatchOperation::Add { path, value: max.to_string().into() };
            found.push(
                Diagnostic::warning("lint.timeout_above_maximum", site.tool_pointer(), message)
                    .hint("its attempts end earlier than the plan says")
                    .fix(vec![fix]),
            );
        }
        _ => {}
    }
}

fn backoff(draft: &RetryDraft, retry: &RetryPolicy, found: &mut Vec<Diagnostic>) {
    let at = &draft.pointer;
    if retry.initial > retry.max {
        let message = format!("the first wait is {}, more than the longest, which is {}", retry.initial, retry.max);
        let fix = PatchOperation::Add { path: format!("{at}/max"), value: retry.initial.to_string().into() };
        found.push(Diagnostic::error("plan.impossible_retry", format!("{at}/initial"), message).fix(vec![fix]));
    }
}

fn edges(sketch: &PlanSketch<'_>, found: &mut Vec<Diagnostic>) {
    let count: usize = sketch.graph.iter().flat_map(|graph| &graph.needs).map(Vec::len).sum();
    if count > limits::PLAN_EDGES_MAX {
        let message = format!("the steps have {count} dependencies together, more than {}", limits::PLAN_EDGES_MAX);
        found.push(Diagnostic::error("plan.limit", format!("{}/steps", sketch.root()), message));
    }
}

/// Reports a deadline that the timeout of an attempt exceeds.
fn deadline(sketch: &PlanSketch<'_>, found: &mut Vec<Diagnostic>) {
    let draft = sketch.draft;
    let Some(deadline) = draft.deadline else { return };
    let written = |step: &StepDraft| step.call.timeout.or(draft.defaults.timeout);
    let shortest: Option<Vec<Millis>> = draft.steps.iter().map(written).collect();
    if let Some(shortest) = shortest.and_then(|all| all.into_iter().min()).filter(|shortest| *shortest > deadline) {
        let at = format!("{}/deadline", sketch.root());
        let message = format!("the deadline is {deadline}, shorter than any attempt, which may take {shortest}");
        found.push(
            Diagnostic::error("plan.impossible_deadline", &at, message)
                // Which of them is meant only the author knows, so there is no fix.
                .hint("give the execution more time, or the attempts less"),
        );
        return;
    }
    for (step, built) in draft.steps.iter().zip(&sketch.steps) {
        if step.call.timeout.is_some() && built.call.timeout > deadline {
            let pointer = format!("{}/timeout", step.pointer);
            let message = format!(
                "an attempt of step {} may take {}, longer than the whole execution, which has {deadline}",
                quoted(&step.id),
                built.call.timeout
            );
            let fix = PatchOperation::Replace { path: pointer.clone(), value: deadline.to_string().into() };
            found.push(Diagnostic::warning("lint.timeout_beyond_deadline", pointer, message).fix(vec![fix]));
        }
    }
}

fn budget(sketch: &PlanSketch<'_>, found: &mut Vec<Diagnostic>) {
    let Some(calls) = sketch.draft.budget.calls else { return };
    // A condition may skip a step and a list may be empty; every other step makes at least one call.
    let least = sketch.draft.steps.iter().filter(|step| step.when.is_none() && step.for_each.is_none()).count() as u64;
    let at = format!("{}/budget/calls", sketch.root());
    if calls < least {
        let message = format!("the budget allows {calls} of at least {least} calls");
        let fix = PatchOperation::Replace { path: at.clone(), value: least.into() };
        found.push(Diagnostic::warning("lint.small_budget", at, message).fix(vec![fix]));
    }
}
