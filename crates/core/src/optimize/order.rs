//! Suggestions about the order of steps: parallelism, redundant dependencies, and what cannot be undone last.

use super::{OptimizerSubject, PlanSuggestion};
use crate::diagnostic::PatchOperation;
use crate::limits::PARALLEL_MAX;
use crate::plan::draft::DraftShape;
use crate::plan::graph::{AncestorSets, NeedKind};
use crate::plan::{PolicyAction, Step, patch};
use crate::preview::UndoCoverage;
use crate::tool::Safety;
use serde_json::{Value, json};

/// The most steps at the same time that are suggested.
const PARALLEL_SUGGESTED_MAX: u32 = 8;

pub(super) fn suggest(subject: &OptimizerSubject<'_>) -> Vec<PlanSuggestion> {
    let ancestors = subject.plan.graph.ancestors();
    let mut found = irreversible_last(subject, &ancestors);
    found.extend(redundant(subject));
    found.extend(parallel(subject, &ancestors));
    found
}

fn is_unrelated(ancestors: &AncestorSets, a: usize, b: usize) -> bool {
    a != b && !ancestors.has(a, b) && !ancestors.has(b, a)
}

/// Independent steps that wait for each other, because only one runs at a time.
fn parallel(subject: &OptimizerSubject<'_>, ancestors: &AncestorSets) -> Option<PlanSuggestion> {
    let (plan, count) = (subject.plan, subject.plan.steps.len());
    if plan.max_parallel > 1 {
        return None;
    }
    let pairs = || (0..count).flat_map(move |a| (a + 1..count).map(move |b| (a, b)));
    let mut unrelated = pairs().filter(|(a, b)| is_unrelated(ancestors, *a, *b)).peekable();
    unrelated.peek()?;
    let unsafe_pair = unrelated.find_map(|(a, b)| why_not_together(subject, a, b).map(|why| (a, b, why)));
    let widest = widest(subject);
    let chain = plan.graph.critical_path().len();
    let reason = format!(
        "{} steps do not need each other ({}), but max_parallel is 1; the longest chain has {chain} of {count} steps",
        widest.len(),
        subject.named(&widest)
    );
    let suggestion = subject.suggestion("optimize.parallel", None, reason);
    Some(match unsafe_pair {
        Some((a, b, why)) => {
            let (a, b) = (&subject.step(a).id, &subject.step(b).id);
            suggestion.doubt(format!(
                "{a} and {b} would run at the same time, and {why}; raise max_parallel if their order does not matter, \
                 or say it with depends_on"
            ))
        }
        None => {
            let most = u32::try_from(widest.len()).unwrap_or(PARALLEL_MAX);
            let most = most.min(PARALLEL_SUGGESTED_MAX).min(PARALLEL_MAX);
            suggestion.fix(vec![set(subject, "", "max_parallel", json!(most))])
        }
    })
}

/// Why two independent steps should not run at the same time without their author's word.
fn why_not_together(subject: &OptimizerSubject<'_>, a: usize, b: usize) -> Option<String> {
    if [a, b].iter().all(|at| subject.undo[*at] == UndoCoverage::NothingToUndo) {
        return None;
    }
    for at in [a, b] {
        let step = subject.step(at);
        if effect(step) == Safety::Once {
            return Some(format!("the order of {} may matter: each call has its own effect", step.id));
        }
        if subject.undo[at].leaves_something() {
            return Some(format!("{} cannot be undone if the other fails", step.id));
        }
    }
    let server = |at: usize| subject.step(at).call.tool.as_str().split('.').next().unwrap_or_default();
    (server(a) == server(b)).then(|| format!("both use {}", server(a)))
}

/// The strongest effect a step can have.
fn effect(step: &Step) -> Safety {
    let fallback = step.fallback.as_ref().map_or(Safety::ReadOnly, |fallback| fallback.call.safety);
    step.call.safety.max(fallback)
}

/// The steps with equally long chains before them, where there are most of them.
fn widest(subject: &OptimizerSubject<'_>) -> Vec<usize> {
    let graph = &subject.plan.graph;
    let mut depth = vec![0_usize; graph.len()];
    for &step in &graph.topological {
        depth[step] = graph.needs[step].iter().map(|need| depth[need.step] + 1).max().unwrap_or(0);
    }
    let level = |wanted: usize| (0..depth.len()).filter(|step| depth[*step] == wanted).collect::<Vec<_>>();
    let deepest = depth.iter().copied().max().unwrap_or(0);
    let mut widest = level(0);
    for deep in 1..=deepest {
        let level = level(deep);
        if level.len() > widest.len() {
            widest = level;
        }
    }
    widest
}

/// Entries of `depends_on` that follow from other dependencies: those of one step together, because removing one moves
/// the others.
fn redundant(subject: &OptimizerSubject<'_>) -> Vec<PlanSuggestion> {
    let plan = subject.plan;
    let mut found = Vec::new();
    for (at, draft) in subject.draft.steps.iter().enumerate() {
        let (mut reasons, mut entries) = (Vec::new(), Vec::new());
        for (id, pointer) in &draft.depends_on {
            let needs = &plan.graph.needs[at];
            let Some(need) = needs.iter().find(|need| subject.step(need.step).id.as_str() == id) else { continue };
            let why = match need.kind {
                NeedKind::Data => Some(format!("it reads the result of {id}")),
                // Without the entry it would also run after a failure.
                NeedKind::SoftData => None,
                NeedKind::Order | NeedKind::Sequence => {
                    let firm = |kind: NeedKind| matches!(kind, NeedKind::Order | NeedKind::Data);
                    let between = needs.iter().filter(|other| other.step != need.step && firm(other.kind));
                    let mut between = between.filter(|other| leads_to(subject, other.step, need.step));
                    between.next().map(|other| {
                        let other = &subject.step(other.step).id;
                        format!("it comes after {other}, which comes after {id}")
                    })
                }
            };
            // An `else` says the same in its own field, and stays.
            let is_branch = draft.else_of.as_ref().is_some_and(|(branch, _)| branch == id);
            if let Some(why) = why.filter(|_| !is_branch) {
                reasons.push(format!("depends_on {id} changes nothing: {why}"));
                entries.push(pointer.clone());
            }
        }
        if !entries.is_empty() {
            // From the end, so that none moves before it is removed.
            let mut fix = entries.into_iter().rev().map(|path| PatchOperation::Remove { path }).collect();
            patch::guard(&subject.draft.document, std::iter::once(&mut fix));
            let suggestion = subject.suggestion("optimize.redundant_dependency", Some(at), reasons.join("; "));
            found.push(suggestion.fix(fix));
        }
    }
    found
}

/// Whether `from` always waits for `to`, and never runs if `to` failed.
fn leads_to(subject: &OptimizerSubject<'_>, from: usize, to: usize) -> bool {
    let mut seen = vec![false; subject.plan.steps.len()];
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        let step = subject.step(at);
        if std::mem::replace(&mut seen[at], true) || step.when.is_some() || step.else_of.is_some() {
            continue;
        }
        for need in &subject.plan.graph.needs[at] {
            if !matches!(need.kind, NeedKind::Order | NeedKind::Data) {
                continue;
            }
            if need.step == to {
                return true;
            }
            open.push(need.step);
        }
    }
    false
}

/// Steps that cannot be undone, and run before others that can be and may fail.
fn irreversible_last(subject: &OptimizerSubject<'_>, ancestors: &AncestorSets) -> Vec<PlanSuggestion> {
    let mut found = Vec::new();
    for (turn, &at) in subject.sequence.iter().enumerate() {
        if !subject.undo[at].leaves_something() {
            continue;
        }
        let is_later = |other: usize| subject.plan.max_parallel > 1 || subject.sequence[turn..].contains(&other);
        let reversible: Vec<usize> = (0..subject.plan.steps.len())
            .filter(|other| subject.undo[*other] == UndoCoverage::Undoable)
            .filter(|other| is_unrelated(ancestors, at, *other) && is_later(*other))
            .collect();
        if reversible.is_empty() {
            continue;
        }
        // The others come before one of these.
        let is_last = |other: &usize| reversible.iter().all(|later| !ancestors.has(*later, *other));
        let last: Vec<usize> = reversible.iter().copied().filter(is_last).collect();
        let id = &subject.step(at).id;
        let reason = format!(
            "{id} cannot be undone completely, and does not come after {}, which can be: if one of these {} fails, {id} \
             may have happened",
            subject.named(&reversible),
            reversible.len()
        );
        let suggestion = subject.suggestion("optimize.irreversible_last", Some(at), reason);
        found.push(match stays_certain(subject, ancestors, &reversible) {
            Ok(()) => suggestion.fix(come_after(subject, at, &last)),
            Err(doubt) => suggestion.doubt(doubt),
        });
    }
    found
}

/// Whether a step that waits for these runs whenever nothing fails, and whether a failure of these stops it anyway.
fn stays_certain(subject: &OptimizerSubject<'_>, ancestors: &AncestorSets, steps: &[usize]) -> Result<(), String> {
    for (at, step) in subject.plan.steps.iter().enumerate() {
        if !steps.iter().any(|wanted| *wanted == at || ancestors.has(*wanted, at)) {
            continue;
        }
        if step.when.is_some() || step.else_of.is_some() {
            return Err(format!("{} is conditional: a step that waits for it might be skipped with it", step.id));
        }
        if matches!(step.policy.action, PolicyAction::ContinueOthers | PolicyAction::CancelDependent) {
            return Err(format!("the failure of {} is not to stop other steps; with depends_on it would", step.id));
        }
    }
    Ok(())
}

fn come_after(subject: &OptimizerSubject<'_>, at: usize, needs: &[usize]) -> Vec<PatchOperation> {
    let named = |need: &usize| match (subject.draft.shape, subject.draft.steps[*need].number) {
        (DraftShape::Numbered, Some(number)) => json!(number),
        _ => json!(subject.step(*need).id),
    };
    let pointer = &subject.draft.steps[at].pointer;
    let names: Vec<Value> = needs.iter().map(named).collect();
    let path = format!("{pointer}/depends_on");
    match subject.draft.document.pointer(&path) {
        Some(Value::Array(_)) => {
            names.into_iter().map(|value| PatchOperation::Add { path: format!("{path}/-"), value }).collect()
        }
        _ => vec![PatchOperation::Add { path, value: Value::Array(names) }],
    }
}

/// Sets a field of the plan itself, or of an object in it.
pub(super) fn set(subject: &OptimizerSubject<'_>, pointer: &str, field: &str, value: Value) -> PatchOperation {
    let root = match pointer.is_empty() && subject.draft.steps.iter().all(|step| step.pointer.starts_with("/plan/")) {
        true => "/plan",
        false => pointer,
    };
    let path = format!("{root}/{field}");
    match subject.draft.document.pointer(&path) {
        Some(_) => PatchOperation::Replace { path, value },
        None => PatchOperation::Add { path, value },
    }
}
