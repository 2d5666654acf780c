//! Lints for single calls: effects that cannot be settled, unused keys, unsafe retries.

use super::super::call_site::{CallPurpose, CallSite, sites};
use super::super::sketch::{PlanSketch, passes_key};
use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::plan::Step;
use crate::plan::draft::StepDraft;
use crate::pointer;
use crate::tool::{FailureCategory, Safety, Tool};
use crate::wording::quoted;
use serde_json::json;

pub(super) fn check(sketch: &PlanSketch<'_>, draft: &StepDraft, step: &Step, found: &mut Vec<Diagnostic>) {
    for site in sites(draft, step) {
        if matches!(site.purpose, CallPurpose::Probe | CallPurpose::UndoProbe) {
            continue;
        }
        found.extend(forbidden_retry(&site));
        // A tool that is not registered cannot be checked.
        let Some(tool) = sketch.tool(site.call) else { continue };
        found.extend(key(tool, &site));
        if site.purpose == CallPurpose::Effect {
            found.extend(unsettled_effect(tool, draft, step));
        }
    }
}

/// Warns of an effect that, once in doubt, only a person can settle.
fn unsettled_effect(tool: &Tool, draft: &StepDraft, step: &Step) -> Option<Diagnostic> {
    let settled = step.call.is_repeatable() || step.compensation.is_some() || step.probe.is_some();
    (!settled).then(|| {
        let message = format!(
            "step {} calls {}, which must not be repeated, without a compensation, a probe or a key",
            quoted(&draft.id),
            tool.name
        );
        Diagnostic::warning("lint.unsettled_effect", draft.pointer.as_str(), message)
            .hint("if its answer is lost, a person has to find out; a probe or a key would settle it")
    })
}

fn key(tool: &Tool, site: &CallSite<'_>) -> Option<Diagnostic> {
    let parameters = &site.call.parameters;
    if tool.sends_key {
        return None;
    }
    match &tool.key_parameter {
        Some(name) if site.call.safety != Safety::ReadOnly && !passes_key(parameters, name) => {
            let message = format!("{} drops repeats of the key in {}, which is not passed", tool.name, quoted(name));
            let given = site.draft.fields().contains_key(name);
            let at = pointer::field(&site.parameters_pointer(), name);
            Some(
                Diagnostic::warning(
                    "lint.key_not_passed",
                    if given { at } else { site.draft.pointer.clone() },
                    message,
                )
                .hint("pass \"{{ key }}\", and the call can be repeated safely")
                .fix(vec![site.set_parameter(name, "{{ key }}".into())]),
            )
        }
        None if parameters.uses_key() => {
            let (at, _) = parameters.reads().find(|(_, path)| path.first().is_some_and(|root| root == "key"))?;
            let message = format!("{} gets a key and is not known to honour one", tool.name);
            Some(
                Diagnostic::warning("lint.key_not_honoured", format!("{}{at}", site.parameters_pointer()), message)
                    .hint("if it does, say so in the tool's configuration; until then the call is not repeated"),
            )
        }
        _ => None,
    }
}

/// Failures after which a call may have taken effect.
const DOUBTFUL: [FailureCategory; 4] =
    [FailureCategory::Timeout, FailureCategory::Cancelled, FailureCategory::Protocol, FailureCategory::Internal];

fn forbidden_retry(site: &CallSite<'_>) -> Option<Diagnostic> {
    let written = site.draft.retry.as_ref()?;
    let retry = &site.call.retry;
    let doubtful = |category: &&FailureCategory| DOUBTFUL.contains(category);
    if site.call.is_repeatable() || retry.max_attempts < 2 || !retry.on.iter().any(|it| doubtful(&it)) {
        return None;
    }
    let named: Vec<&str> = retry.on.iter().filter(doubtful).map(|category| category.as_str()).collect();
    let allowed: Vec<&str> = retry.on.iter().filter(|it| !doubtful(it)).map(|category| category.as_str()).collect();
    let message = format!(
        "{} is not retried after {}: it may have taken effect and must not be repeated",
        site.call.tool,
        named.join(", ")
    );
    let at = &written.pointer;
    let fix = match allowed.is_empty() {
        true => PatchOperation::Remove { path: at.clone() },
        false => PatchOperation::Add { path: format!("{at}/on"), value: json!(allowed) },
    };
    let pointer = if written.on.is_some() { format!("{at}/on") } else { at.clone() };
    let fix: Vec<PatchOperation> = vec![fix];
    Some(
        Diagnostic::warning("lint.forbidden_retry", pointer, message)
            .hint("retry only failures before the effect, or pass the tool a key")
            .fix(fix),
    )
}
