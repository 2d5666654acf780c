//! The differences between two versions of one step.

use super::{ChangeCollector, ChangeKind};
use crate::id::StepId;
use crate::plan::expression::Expression;
use crate::plan::graph::NeedKind;
use crate::plan::{ApprovalRule, Compensation, FanOutRule, Plan, PlannedCall, Probe, Step};
use std::collections::{BTreeMap, BTreeSet};

/// Compares the fields of the step itself.
pub(super) fn compare(old: &Step, new: &Step, changes: &mut ChangeCollector) {
    call(ChangeKind::Call, "", &old.call, &new.call, changes);
    optional_text(ChangeKind::Condition, "when", old.when.as_ref(), new.when.as_ref(), changes);
    fan_out(old.for_each.as_ref(), new.for_each.as_ref(), changes);
    let (was, is) = (old.fallback.as_ref(), new.fallback.as_ref());
    presence(ChangeKind::Fallback, "fallback", was.map(|it| &it.call), is.map(|it| &it.call), changes);
    if let (Some(was), Some(is)) = (was, is) {
        call(ChangeKind::Fallback, "fallback: ", &was.call, &is.call, changes);
    }
    let undo = (was.and_then(|it| it.compensation.as_ref()), is.and_then(|it| it.compensation.as_ref()));
    compensation("fallback's compensation", undo.0, undo.1, changes);
    changes.word(ChangeKind::Compensation, "cancellable", &old.cancellable, &new.cancellable);
    compensation("compensation", old.compensation.as_ref(), new.compensation.as_ref(), changes);
    probe("probe", old.probe.as_ref(), new.probe.as_ref(), changes);
    let expires = |rule: Option<ApprovalRule>| rule.map(|rule| format!("within {}", rule.expires));
    changes.optional(ChangeKind::Approval, "approval", expires(old.approval).as_ref(), expires(new.approval).as_ref());
    let (was, is) = (old.timeout_total.as_ref(), new.timeout_total.as_ref());
    changes.optional(ChangeKind::Timeout, "total_timeout", was, is);
    changes.value(ChangeKind::Priority, "priority", &old.priority, &new.priority);
    if old.output != new.output {
        changes.push(ChangeKind::Output, "the output schema changes".to_owned());
    }
    changes.text(ChangeKind::Description, "name", &old.name, &new.name);
    changes.text(ChangeKind::Description, "description", &old.description, &new.description);
}

/// Compares references to other steps, by id: positions may differ between the plans.
pub(super) fn compare_names(old: &Plan, before: usize, new: &Plan, now: usize, changes: &mut ChangeCollector) {
    let (was, is) = (needs(old, before), needs(new, now));
    for (id, kind) in &is {
        match was.get(id) {
            None => changes.push(ChangeKind::Order, format!("now comes after {id}")),
            Some(earlier) if earlier != kind => {
                changes.word(ChangeKind::Order, &format!("need of {id}"), earlier, kind)
            }
            Some(_) => {}
        }
    }
    for id in was.keys().filter(|id| !is.contains_key(*id)) {
        changes.push(ChangeKind::Order, format!("no longer comes after {id}"));
    }
    let (was, is) = (&old.steps[before].policy, &new.steps[now].policy);
    changes.word(ChangeKind::Policy, "failure_policy", &was.action, &is.action);
    let ids = |plan: &Plan, steps: &[usize]| steps.iter().map(|step| plan.steps[*step].id.clone()).collect();
    let (was_to, is_to): (BTreeSet<StepId>, BTreeSet<StepId>) =
        (ids(old, &was.propagate_to), ids(new, &is.propagate_to));
    for id in is_to.difference(&was_to) {
        changes.push(ChangeKind::Policy, format!("its failure now also cancels {id}"));
    }
    for id in was_to.difference(&is_to) {
        changes.push(ChangeKind::Policy, format!("its failure no longer cancels {id} by name"));
    }
    changes.text(ChangeKind::Description, "reason of the failure policy", &was.reason, &is.reason);
    let other = |plan: &Plan, step: usize| plan.steps[step].else_of.map(|other| plan.steps[other].id.clone());
    changes.optional(ChangeKind::Condition, "else_of", other(old, before).as_ref(), other(new, now).as_ref());
}

fn needs(plan: &Plan, step: usize) -> BTreeMap<&StepId, NeedKind> {
    plan.graph.needs[step].iter().map(|need| (&plan.steps[need.step].id, need.kind)).collect()
}

/// `whose` is the prefix for calls that are not the step's own.
fn call(kind: ChangeKind, whose: &str, old: &PlannedCall, new: &PlannedCall, changes: &mut ChangeCollector) {
    let own = |inner: ChangeKind| if kind == ChangeKind::Call { inner } else { kind };
    changes.value(kind, &format!("{whose}tool"), &old.tool, &new.tool);
    let (was, is) = (old.parameters.source(), new.parameters.source());
    if was != is {
        let (was, is) = (was.as_object(), is.as_object());
        let names: BTreeSet<&String> = was.iter().chain(&is).flat_map(|fields| fields.keys()).collect();
        for name in names {
            let (was, is) = (was.and_then(|fields| fields.get(name)), is.and_then(|fields| fields.get(name)));
            match (was, is) {
                (Some(was), Some(is)) if was != is => changes.push(kind, format!("{whose}parameter {name} changes")),
                (None, Some(_)) => changes.push(kind, format!("{whose}parameter {name} is added")),
                (Some(_), None) => changes.push(kind, format!("{whose}parameter {name} is removed")),
                _ => {}
            }
        }
    }
    changes.word(own(ChangeKind::Safety), &format!("{whose}safety"), &old.safety, &new.safety);
    match (old.keyed, new.keyed) {
        (false, true) => changes.push(own(ChangeKind::Safety), format!("{whose}the tool now gets the key it honours")),
        (true, false) => changes.push(own(ChangeKind::Safety), format!("{whose}the tool no longer gets its key")),
        _ => {}
    }
    changes.value(own(ChangeKind::Timeout), &format!("{whose}timeout"), &old.timeout, &new.timeout);
    let (was, is) = (&old.retry, &new.retry);
    let kind = own(ChangeKind::Retry);
    changes.value(kind, &format!("{whose}retry.max_attempts"), &was.max_attempts, &is.max_attempts);
    changes.word(kind, &format!("{whose}retry.backoff"), &was.backoff, &is.backoff);
    changes.value(kind, &format!("{whose}retry.initial"), &was.initial, &is.initial);
    changes.value(kind, &format!("{whose}retry.factor"), &was.factor, &is.factor);
    changes.value(kind, &format!("{whose}retry.max"), &was.max, &is.max);
    changes.value(kind, &format!("{whose}retry.jitter"), &was.jitter, &is.jitter);
    let on = |call: &PlannedCall| call.retry.on.iter().map(|category| category.as_str()).collect::<BTreeSet<_>>();
    if on(old) != on(new) {
        changes.push(kind, format!("{whose}retry.on: other failures are retried"));
    }
}

fn compensation(whose: &str, old: Option<&Compensation>, new: Option<&Compensation>, changes: &mut ChangeCollector) {
    presence(ChangeKind::Compensation, whose, old.map(|it| &it.call), new.map(|it| &it.call), changes);
    if let (Some(old), Some(new)) = (old, new) {
        call(ChangeKind::Compensation, &format!("{whose}: "), &old.call, &new.call, changes);
        probe(&format!("{whose}'s probe"), old.probe.as_ref(), new.probe.as_ref(), changes);
    }
}

fn probe(whose: &str, old: Option<&Probe>, new: Option<&Probe>, changes: &mut ChangeCollector) {
    presence(ChangeKind::Probe, whose, old.map(|it| &it.call), new.map(|it| &it.call), changes);
    if let (Some(old), Some(new)) = (old, new) {
        call(ChangeKind::Probe, &format!("{whose}: "), &old.call, &new.call, changes);
        let happened = (Some(&old.happened), Some(&new.happened));
        optional_text(ChangeKind::Probe, &format!("{whose}: happened"), happened.0, happened.1, changes);
        optional_text(
            ChangeKind::Probe,
            &format!("{whose}: result"),
            old.result.as_ref(),
            new.result.as_ref(),
            changes,
        );
        let settle = (old.settle.as_ref(), new.settle.as_ref());
        changes.optional(ChangeKind::Probe, &format!("{whose}: settle"), settle.0, settle.1);
    }
}

fn presence(
    kind: ChangeKind,
    whose: &str,
    old: Option<&PlannedCall>,
    new: Option<&PlannedCall>,
    changes: &mut ChangeCollector,
) {
    match (old, new) {
        (None, Some(call)) => changes.push(kind, format!("{whose}: {} is added", call.tool)),
        (Some(call), None) => changes.push(kind, format!("{whose}: {} is removed", call.tool)),
        _ => {}
    }
}

fn fan_out(old: Option<&FanOutRule>, new: Option<&FanOutRule>, changes: &mut ChangeCollector) {
    optional_text(ChangeKind::FanOut, "for_each", old.map(|it| &it.items), new.map(|it| &it.items), changes);
    if let (Some(old), Some(new)) = (old, new) {
        changes.value(ChangeKind::FanOut, "for_each.max_parallel", &old.max_parallel, &new.max_parallel);
        changes.value(ChangeKind::FanOut, "for_each.max_items", &old.max_items, &new.max_items);
        changes.value(ChangeKind::FanOut, "for_each.tolerate", &old.tolerate, &new.tolerate);
    }
}

fn optional_text(
    kind: ChangeKind,
    name: &str,
    old: Option<&Expression>,
    new: Option<&Expression>,
    changes: &mut ChangeCollector,
) {
    let text = |expression: Option<&Expression>| expression.map(|it| it.source.trim().to_owned());
    changes.optional(kind, name, text(old).as_ref(), text(new).as_ref());
}
