//! Limits that cannot be kept: times, retries, budgets and sizes that contradict each other.

use super::site::sites;
use super::sketch::{Sketch, overlay};
use crate::limits;
use crate::plan::diagnostic::{Diagnostic, PatchOp};
use crate::plan::draft::{RetryDraft, StepDraft};
use crate::plan::wording::quoted;
use crate::plan::{Retry, Step};
use crate::time::Millis;

pub(super) fn check(sketch: &Sketch<'_>, found: &mut Vec<Diagnostic>) {
    for (draft, step) in sketch.draft.steps.iter().zip(&sketch.steps) {
        total_shorter_than_attempt(draft, step, found);
        for site in sites(draft, step) {
            if let Some(retry) = &site.draft.retry {
                backoff(retry, &site.call.retry, found);
            }
        }
        if let (Some(draft), Some(fan_out)) = (&draft.for_each, &step.for_each)
            && fan_out.max_items > limits::FAN_OUT_MAX
        {
            let message = format!("max_items is {}, more than {}", fan_out.max_items, limits::FAN_OUT_MAX);
            let path = format!("{}/max_items", draft.pointer);
            let fix = PatchOp::Replace { path: path.clone(), value: limits::FAN_OUT_MAX.into() };
            found.push(Diagnostic::error("plan.limit", path, message).fix(vec![fix]));
        }
    }
    if let Some(retry) = &sketch.draft.defaults.retry {
        backoff(retry, &overlay(Retry::standard(), Some(retry)), found);
    }
    edges(sketch, found);
    deadline(sketch, found);
    budget(sketch, found);
}

fn total_shorter_than_attempt(draft: &StepDraft, step: &Step, found: &mut Vec<Diagnostic>) {
    if let Some(total) = step.timeout_total.filter(|total| *total < step.call.timeout) {
        let message = format!(
            "the whole step may take {total}, less than one attempt, which may take {}",
            step.call.timeout
        );
        let path = format!("{}/timeout", draft.pointer);
        let fix = PatchOp::Add { path, value: total.to_string().into() };
        found.push(
            Diagnostic::error("plan.impossible_timeout", format!("{}/total_timeout", draft.pointer), message)
                .hint("give the attempt no more time than the step")
                .fix(vec![fix]),
        );
    }
}

fn backoff(draft: &RetryDraft, retry: &Retry, found: &mut Vec<Diagnostic>) {
    let at = &draft.pointer;
    if retry.initial > retry.max {
        let message =
            format!("the first wait is {}, more than the longest, which is {}", retry.initial, retry.max);
        let fix = PatchOp::Add { path: format!("{at}/max"), value: retry.initial.to_string().into() };
        found.push(
            Diagnostic::error("plan.impossible_retry", format!("{at}/initial"), message).fix(vec![fix]),
        );
    }
    if retry.factor < 1.0 || retry.factor.is_nan() {
        let message = format!("the factor is {}; below 1 the waits would become shorter", retry.factor);
        let fix = PatchOp::Replace { path: format!("{at}/factor"), value: 1.into() };
        found
            .push(Diagnostic::error("plan.impossible_retry", format!("{at}/factor"), message).fix(vec![fix]));
    }
}

fn edges(sketch: &Sketch<'_>, found: &mut Vec<Diagnostic>) {
    let count: usize = sketch.graph.iter().flat_map(|graph| &graph.needs).map(Vec::len).sum();
    if count > limits::PLAN_EDGES_MAX {
        let message =
            format!("the steps have {count} dependencies together, more than {}", limits::PLAN_EDGES_MAX);
        found.push(Diagnostic::error("plan.limit", format!("{}/steps", sketch.root()), message));
    }
}

/// A deadline that every attempt may overrun by what the plan itself allows.
fn deadline(sketch: &Sketch<'_>, found: &mut Vec<Diagnostic>) {
    let draft = sketch.draft;
    let Some(deadline) = draft.deadline else { return };
    let written = |step: &StepDraft| step.call.timeout.or(draft.defaults.timeout);
    let shortest: Option<Vec<Millis>> = draft.steps.iter().map(written).collect();
    if let Some(shortest) =
        shortest.and_then(|all| all.into_iter().min()).filter(|shortest| *shortest > deadline)
    {
        let at = format!("{}/deadline", sketch.root());
        let message =
            format!("the deadline is {deadline}, shorter than any attempt, which may take {shortest}");
        found.push(
            Diagnostic::error("plan.impossible_deadline", &at, message)
                .hint("give the execution more time, or the attempts less")
                .fix(vec![PatchOp::Remove { path: at.clone() }]),
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
            let fix = PatchOp::Replace { path: pointer.clone(), value: deadline.to_string().into() };
            found.push(Diagnostic::warning("lint.timeout_beyond_deadline", pointer, message).fix(vec![fix]));
        }
    }
}

fn budget(sketch: &Sketch<'_>, found: &mut Vec<Diagnostic>) {
    let Some(calls) = sketch.draft.budget.calls else { return };
    // A condition may skip a step and a list may be empty; everything else calls at least once.
    let least =
        sketch.draft.steps.iter().filter(|step| step.when.is_none() && step.for_each.is_none()).count()
            as u64;
    let at = format!("{}/budget/calls", sketch.root());
    let fix = |calls: u64| vec![PatchOp::Replace { path: at.clone(), value: calls.into() }];
    if calls == 0 {
        let message = "the budget allows no call at all";
        let found_here = Diagnostic::error("plan.impossible_budget", &at, message);
        found.push(found_here.fix(fix(least.max(1))));
    } else if calls < least {
        let message = format!("the budget allows {calls} calls, and {least} steps call at least once");
        found.push(Diagnostic::warning("lint.small_budget", &at, message).fix(fix(least)));
    }
}
