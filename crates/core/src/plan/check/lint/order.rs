//! Lints for the order of steps: irreversible too early, needless, or too strict.

use super::super::edge::reads;
use super::super::sketch::PlanSketch;
use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::plan::draft::DraftShape;
use crate::plan::graph::{AncestorSets, NeedKind, StepGraph};
use crate::plan::{Cancellable, PolicyAction};
use crate::tool::Safety;
use crate::wording::quoted;
use serde_json::Value;
use std::collections::HashSet;

pub(super) fn check(sketch: &PlanSketch<'_>, graph: &StepGraph, sound: &[bool], found: &mut Vec<Diagnostic>) {
    let mut order = OrderLint { sketch, graph, found };
    order.irreversible_early(sound);
    if sketch.draft.shape != DraftShape::Flat {
        order.needless_dependencies(sound);
    }
    if sound.iter().all(|sound| *sound) {
        order.parallel_possible();
    }
}

struct OrderLint<'a> {
    sketch: &'a PlanSketch<'a>,
    graph: &'a StepGraph,
    found: &'a mut Vec<Diagnostic>,
}

impl OrderLint<'_> {
    /// An irreversible step should be last: after it, a failure cannot be rolled back completely.
    fn irreversible_early(&mut self, sound: &[bool]) {
        let order = &self.graph.topological;
        let mut rank = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &step)| rank[step] = at);
        let can_hurt = |step: &usize| self.sketch.steps[*step].policy.action != PolicyAction::ContinueOthers;
        for (position, draft) in self.sketch.draft.steps.iter().enumerate() {
            let declared = draft.cancellable == Some(Cancellable::Irreversible);
            if !declared || !sound[position] || self.sketch.steps[position].call.safety == Safety::ReadOnly {
                continue;
            }
            let Some(&later) = order[rank[position] + 1..].iter().find(|step| can_hurt(step)) else {
                continue;
            };
            let message = format!(
                "step {} cannot be undone, and {}, which comes later, can still fail",
                quoted(&draft.id),
                quoted(&self.sketch.draft.steps[later].id)
            );
            let found = Diagnostic::warning("lint.irreversible_early", &draft.pointer, message);
            let dependents = self.graph.dependents_of(&[position], |_| true);
            let found = if dependents.iter().any(can_hurt) {
                found.hint("put what can fail before what cannot be undone, or guard it with an approval")
            } else {
                let after: Vec<usize> = order[rank[position] + 1..].iter().copied().filter(can_hurt).collect();
                self.put_last(position, &after, found)
            };
            self.found.push(found);
        }
    }

    /// No step that can fail needs this step, so it can run after all of them.
    fn put_last(&self, position: usize, after: &[usize], found: Diagnostic) -> Diagnostic {
        let draft = &self.sketch.draft.steps[position];
        let found = found.hint("none of those steps needs it: let it run last");
        if self.sketch.draft.shape != DraftShape::Native {
            return found;
        }
        let mut later = vec![false; self.graph.len()];
        after.iter().for_each(|step| later[*step] = true);
        let inner = |step: usize| self.graph.dependents[step].iter().any(|dependent| later[dependent.step]);
        let ends = after.iter().filter(|step| !inner(**step)).map(|step| &self.sketch.draft.steps[*step].id);
        let path = format!("{}/depends_on", draft.pointer);
        let written = self.sketch.draft.document.pointer(&path).and_then(Value::as_array);
        let ends = ends.map(|id| Value::from(id.as_str()));
        let value = Value::Array(written.into_iter().flatten().cloned().chain(ends).collect());
        found.fix(vec![PatchOperation::Add { path, value }])
    }

    fn needless_dependencies(&mut self, sound: &[bool]) {
        let ancestors = self.graph.ancestors();
        let steps = self.sketch.draft.steps.iter().enumerate();
        for (position, draft) in steps.filter(|(position, _)| sound[*position]) {
            let mut seen = HashSet::new();
            for (id, pointer) in &draft.depends_on {
                let Some(&step) = self.sketch.index.get(id.as_str()) else { continue };
                let found = match seen.insert(step) {
                    true => self.needless(position, step, pointer, &ancestors),
                    false => Some(needless(pointer, format!("{} is listed twice", quoted(id)))),
                };
                self.found.extend(found);
            }
        }
    }

    fn needless(&self, position: usize, step: usize, pointer: &str, ancestors: &AncestorSets) -> Option<Diagnostic> {
        let id = |step: usize| quoted(&self.sketch.draft.steps[step].id);
        let needs = &self.graph.needs[position];
        let own = needs.binary_search_by_key(&step, |need| need.step).ok().map(|at| needs[at].kind);
        if own != Some(NeedKind::Order) {
            return None;
        }
        if let Some(via) = needs.iter().find(|need| ancestors.has(need.step, step)) {
            return Some(needless(pointer, format!("{} already comes after {}", id(via.step), id(step))));
        }
        let sequential = self.sketch.draft.max_parallel.unwrap_or(1) == 1;
        if sequential || self.is_order_significant(position, step) {
            return None;
        }
        let message = format!(
            "step {} waits for {} without reading it, which keeps them from running at once",
            id(position),
            id(step)
        );
        Some(
            Diagnostic::warning("lint.order_only", pointer, message)
                .hint("if the order does not matter, remove the entry")
                .fix(vec![PatchOperation::Remove { path: pointer.to_owned() }]),
        )
    }

    /// Whether a dependency without data has a reason: the effect or the approval of the other step, a read of its
    /// status, or because the step itself is irreversible.
    fn is_order_significant(&self, position: usize, needed: usize) -> bool {
        let (step, needed) = (&self.sketch.steps[position], &self.sketch.steps[needed]);
        let has_effect = needed.call.safety != Safety::ReadOnly;
        let is_last = step.call.safety != Safety::ReadOnly && step.cancellable == Cancellable::Irreversible;
        has_effect || is_last || needed.approval.is_some() || {
            let reads = reads(&self.sketch.draft.steps[position], step);
            reads.iter().any(|(id, _)| id == needed.id.as_str())
        }
    }

    fn parallel_possible(&mut self) {
        let draft = self.sketch.draft;
        if draft.max_parallel.is_some() || draft.shape != DraftShape::Native {
            return;
        }
        let mut level = vec![0_usize; self.graph.len()];
        let mut width = vec![0_u32; self.graph.len() + 1];
        for &step in &self.graph.topological {
            level[step] = self.graph.needs[step].iter().map(|need| level[need.step] + 1).max().unwrap_or(0);
            width[level[step]] += 1;
        }
        let widest = width.into_iter().max().unwrap_or(0);
        if widest > 1 {
            let message = format!("up to {widest} steps do not need each other and still run one by one");
            let pointer = format!("{}/steps", self.sketch.root());
            // No fix: either can be meant, and a fix must not change the execution.
            self.found.push(
                Diagnostic::warning("lint.parallel_possible", pointer, message)
                    .hint("set \"max_parallel\" to let them run at once, or to 1 to keep it so"),
            );
        }
    }
}

fn needless(pointer: &str, message: String) -> Diagnostic {
    Diagnostic::warning("lint.needless_dependency", pointer, message)
        .fix(vec![PatchOperation::Remove { path: pointer.to_owned() }])
}
