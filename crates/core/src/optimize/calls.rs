//! Suggestions about calls: missing probes, and timeouts and retries learned from history.

use super::order::set;
use super::{OptimizerSubject, PlanSuggestion};
use crate::id::ToolName;
use crate::insight::figures::{ToolFigures, ToolHistory};
use crate::limits::{ATTEMPTS_DEFAULT, TIMEOUT_MAX};
use crate::plan::{Plan, PlannedCall};
use crate::time::Millis;
use crate::tool::{Safety, ToolCatalog};
use serde_json::json;
use std::collections::BTreeSet;

/// Fewer answered calls say nothing about a 99th percentile.
const CALLS_ENOUGH: u64 = 20;
/// A timeout of this many times the 99th percentile is long enough.
const TIMEOUT_FACTOR: u64 = 3;
/// A timeout is far too long from this many times the long enough one.
const FAR: u64 = 10;
const TIMEOUT_LEARNED_MIN: Millis = Millis::seconds(1);
/// Fewer failures may be chance.
const FAILURES_ENOUGH: u64 = 3;
/// How the names of tools begin that look something up.
const LOOKUPS: [&str; 9] = ["find", "get", "list", "lookup", "query", "read", "search", "show", "status"];

pub(super) fn suggest(
    subject: &OptimizerSubject<'_>,
    catalog: &ToolCatalog,
    history: &ToolHistory,
) -> Vec<PlanSuggestion> {
    let mut found = Vec::new();
    for (at, step) in subject.plan.steps.iter().enumerate() {
        found.extend(probe(subject, at, catalog));
        if let Some(figures) = history.get(&step.call.tool) {
            found.extend(timeout(subject, at, figures));
            found.extend(retry(subject, at, figures));
        }
    }
    found
}

/// Tools without enough history.
pub(super) fn notes(plan: &Plan, history: &ToolHistory) -> Vec<String> {
    let tools: BTreeSet<&ToolName> = plan.steps.iter().map(|step| &step.call.tool).collect();
    let is_known = |tool: &ToolName| history.get(tool).is_some_and(|figures| figures.answered >= CALLS_ENOUGH);
    let unknown: Vec<&str> = tools.into_iter().filter(|tool| !is_known(tool)).map(ToolName::as_str).collect();
    match unknown.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "fewer than {CALLS_ENOUGH} answered calls in the last forty days, so no timeout is learned: {}",
            unknown.join(", ")
        )],
    }
}

/// A call that is never repeated, and nothing that could find out whether it happened.
fn probe(subject: &OptimizerSubject<'_>, at: usize, catalog: &ToolCatalog) -> Option<PlanSuggestion> {
    let step = subject.step(at);
    if step.call.is_repeatable() || step.probe.is_some() {
        return None;
    }
    let (server, own) = step.call.tool.as_str().split_once('.')?;
    let lookups = catalog.tools.values().filter_map(|tool| {
        let (of, name) = tool.name.as_str().split_once('.')?;
        let words: BTreeSet<&str> = name.split(['_', '-', '.']).collect();
        let is_lookup = LOOKUPS.iter().any(|lookup| words.contains(lookup));
        let is_about_it = own.split(['_', '-', '.']).any(|word| words.contains(word));
        (of == server && tool.safety == Safety::ReadOnly && is_lookup).then_some((is_about_it, &tool.name))
    });
    let lookups: Vec<(bool, &ToolName)> = lookups.collect();
    let has_one_about_it = lookups.iter().any(|(is_about_it, _)| *is_about_it);
    let names =
        lookups.iter().filter(|(is_about_it, _)| *is_about_it || !has_one_about_it).map(|(_, name)| name.as_str());
    let names: Vec<&str> = names.take(3).collect();
    if names.is_empty() {
        return None;
    }
    let reason = format!(
        "{} is never repeated: when its answer is lost, a person has to find out whether it happened; {} may be able to",
        step.call.tool,
        names.join(" or ")
    );
    let doubt = "which parameters find its effect, and what shows it, only the author knows: add `probe` with `tool`, \
                 `parameters` and `happened`";
    Some(subject.suggestion("optimize.probe", Some(at), reason).doubt(doubt))
}

/// A timeout that is too short for the slowest calls, or far longer than any.
fn timeout(subject: &OptimizerSubject<'_>, at: usize, figures: &ToolFigures) -> Option<PlanSuggestion> {
    let call = &subject.step(at).call;
    let p99 = figures.p99.filter(|_| figures.answered >= CALLS_ENOUGH)?;
    let learned = rounded(Millis(p99.0.saturating_mul(TIMEOUT_FACTOR))).max(TIMEOUT_LEARNED_MIN).min(TIMEOUT_MAX);
    let is_short = call.timeout < learned;
    if !is_short && call.timeout.0 < learned.0.saturating_mul(FAR) {
        return None;
    }
    let what = if is_short { "leaves little room" } else { "notices a call that hangs late" };
    let reason = format!(
        "the timeout of {} {what}: 99 of 100 of the last {} calls of {} were answered within {p99}, and three times that \
         is {learned}",
        call.timeout, figures.answered, call.tool
    );
    let suggestion = subject.suggestion("optimize.timeout", Some(at), reason);
    if !is_short && !call.is_repeatable() && subject.step(at).probe.is_none() {
        let doubt = "a call that is given up too early is in doubt, and nothing here can find out whether it happened";
        return Some(suggestion.doubt(doubt));
    }
    let draft = &subject.draft.steps[at];
    let mut fix = vec![set(subject, &draft.call.pointer, "timeout", json!(learned.to_string()))];
    // By default a probe's "no" counts after the timeout. An effect that comes late must not count as missing earlier
    // than before, or the call is sent a second time.
    if let (false, false, Some(probe), None) =
        (is_short, call.is_repeatable(), &draft.probe, subject.step(at).probe.as_ref().and_then(|probe| probe.settle))
    {
        fix.push(set(subject, &probe.call.pointer, "settle", json!(call.timeout.to_string())));
    }
    Some(suggestion.fix(fix))
}

/// Rounded up to whole seconds.
fn rounded(time: Millis) -> Millis {
    Millis::seconds(time.0.div_ceil(1_000))
}

/// A single attempt at a tool whose failures pass.
fn retry(subject: &OptimizerSubject<'_>, at: usize, figures: &ToolFigures) -> Option<PlanSuggestion> {
    let call: &PlannedCall = &subject.step(at).call;
    let failed = figures.passing_failures;
    // Without retries elsewhere nothing shows that a later attempt succeeds.
    let helped = figures.retries > 0 && figures.steps_failed < failed;
    if call.retry.max_attempts > 1 || failed < FAILURES_ENOUGH || !helped {
        return None;
    }
    let reason = format!(
        "it has one attempt, but {} failed {failed} times for a reason that may pass, was tried again {} times, and only {} \
         steps failed for good",
        call.tool, figures.retries, figures.steps_failed
    );
    let suggestion = subject.suggestion("optimize.retry", Some(at), reason);
    if !call.is_repeatable() {
        return Some(suggestion.doubt("it is repeated only after failures that certainly had no effect"));
    }
    let pointer = &subject.draft.steps[at].call.pointer;
    let has_retry = subject.draft.document.pointer(&format!("{pointer}/retry")).is_some();
    Some(suggestion.fix(vec![match has_retry {
        true => set(subject, &format!("{pointer}/retry"), "max_attempts", json!(ATTEMPTS_DEFAULT)),
        false => set(subject, pointer, "retry", json!({ "max_attempts": ATTEMPTS_DEFAULT })),
    }]))
}
