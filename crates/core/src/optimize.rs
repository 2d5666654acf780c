//! Suggestions that improve a valid plan, each with its reason and, where it is certain, a fix.
//!
//! [`order`] looks at parallelism, at redundant dependencies and at what cannot be undone; [`calls`] at probes, timeouts
//! and retries. A fix is offered only if the fixed plan passes the check and promises no less: the same calls, approvals
//! and failure policies, every order that was there, and no earlier point of no return.

mod calls;
mod order;

use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::id::StepId;
use crate::insight::figures::ToolHistory;
use crate::limits::SUGGESTIONS_MAX;
use crate::plan::check::check_document;
use crate::plan::diff::diff;
use crate::plan::document::{DocumentFormat, PlanDocument};
use crate::plan::draft::{DraftShape, PlanDraft};
use crate::plan::patch::apply_patch;
use crate::plan::{Driver, Plan, Step};
use crate::preview::{UndoCoverage, preview};
use crate::tool::ToolCatalog;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// One suggestion.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlanSuggestion {
    /// Stable and documented in docs/errors.md: `optimize.timeout`.
    pub code: &'static str,
    /// `None`: the plan as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<StepId>,
    /// Why, with the figures it rests on.
    pub reason: String,
    /// Why there is no fix: what the author has to decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
    /// A JSON Patch of the plan's document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Vec<PatchOperation>>,
    /// What the fix changes, one line for each change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<String>,
}

/// All suggestions for a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlanSuggestions {
    pub suggestions: Vec<PlanSuggestion>,
    /// What could not be judged, and why.
    pub notes: Vec<String>,
}

/// A plan after every fix that helps.
#[derive(Clone, Debug)]
pub struct ImprovedPlan {
    pub document: Value,
    pub plan: Arc<Plan>,
    /// In the order in which they were applied.
    pub applied: Vec<PlanSuggestion>,
}

/// Returns what would improve the plan. The catalogue has the tools of the plan, and others that may serve as probes.
pub fn optimize(plan: &Plan, catalog: &ToolCatalog, driver: Driver, history: &ToolHistory) -> PlanSuggestions {
    let Some(subject) = OptimizerSubject::of(plan) else { return PlanSuggestions::default() };
    let (mut suggestions, is_cut) = subject.candidates(catalog, history);
    let mut all = Value::clone(&subject.draft.document);
    for suggestion in &mut suggestions {
        let Some(fix) = &suggestion.fix else { continue };
        let Some((document, alone)) = fixed(plan, &subject.draft.document, fix, catalog, driver) else {
            suggestion.withdraw(subject.unfixable());
            continue;
        };
        // The fixes of a list are carried out together.
        let together = match all == *subject.draft.document {
            true => Some(document),
            false => fixed(plan, &all, fix, catalog, driver).map(|(document, _)| document),
        };
        match together {
            Some(document) => {
                all = document;
                suggestion.diff = diff(plan, &alone).lines();
            }
            None => suggestion.withdraw("not together with the other fixes: carry those out first, and look again"),
        }
    }
    let mut notes = calls::notes(plan, history);
    if is_cut {
        notes.push(format!("only the first {SUGGESTIONS_MAX} suggestions are listed: apply them, and look again"));
    }
    PlanSuggestions { suggestions, notes }
}

/// Applies one fix after the other, each on the result of those before it.
pub fn improve(plan: &Arc<Plan>, catalog: &ToolCatalog, driver: Driver, history: &ToolHistory) -> Option<ImprovedPlan> {
    let document = Value::clone(&OptimizerSubject::of(plan)?.draft.document);
    let mut improved = ImprovedPlan { document, plan: Arc::clone(plan), applied: Vec::new() };
    let mut tried = BTreeSet::new();
    // Every round applies or discards one candidate.
    for _ in 0..SUGGESTIONS_MAX {
        let Some(subject) = OptimizerSubject::of(&improved.plan) else { break };
        let candidates = subject.candidates(catalog, history).0.into_iter();
        let mark = |candidate: &PlanSuggestion| (candidate.code, candidate.step.clone(), candidate.reason.clone());
        let next =
            candidates.filter(|candidate| candidate.fix.is_some()).find(|candidate| tried.insert(mark(candidate)));
        let Some(mut candidate) = next else { break };
        let fix = candidate.fix.as_deref().unwrap_or_default();
        if let Some((document, fixed)) = fixed(&improved.plan, &improved.document, fix, catalog, driver) {
            candidate.diff = diff(&improved.plan, &fixed).lines();
            improved.applied.push(candidate);
            (improved.document, improved.plan) = (document, fixed);
        }
    }
    Some(improved)
}

/// A plan with what the suggestions look at.
struct OptimizerSubject<'a> {
    plan: &'a Plan,
    draft: PlanDraft,
    /// By position in the plan.
    undo: Vec<UndoCoverage>,
    /// The positions in the order in which they run one at a time.
    sequence: Vec<usize>,
}

impl OptimizerSubject<'_> {
    fn of(plan: &Plan) -> Option<OptimizerSubject<'_>> {
        let document = PlanDocument::read(&plan.source, plan.format).ok()?;
        let draft = PlanDraft::read(&document, None).0.filter(|draft| draft.steps.len() == plan.steps.len())?;
        let preview = preview(plan);
        let sequence: Vec<usize> = preview.steps.iter().filter_map(|step| plan.find(step.step.as_str())).collect();
        let mut undo = vec![UndoCoverage::NothingToUndo; plan.steps.len()];
        for (at, step) in sequence.iter().zip(&preview.steps) {
            undo[*at] = step.undo.coverage;
        }
        Some(OptimizerSubject { plan, draft, undo, sequence })
    }

    /// The first suggestions, and whether there are more.
    fn candidates(&self, catalog: &ToolCatalog, history: &ToolHistory) -> (Vec<PlanSuggestion>, bool) {
        let mut found = order::suggest(self);
        found.extend(calls::suggest(self, catalog, history));
        let is_cut = found.len() > SUGGESTIONS_MAX;
        found.truncate(SUGGESTIONS_MAX);
        (found, is_cut)
    }

    /// Why a change is not offered that was tried.
    fn unfixable(&self) -> &'static str {
        match self.draft.shape {
            DraftShape::Flat => {
                "this plan is a flat list, whose steps follow each other only as long as nothing in it has any further \
                 field: give each step its depends_on first (and call cancellation compensation), then this can be fixed"
            }
            DraftShape::Native | DraftShape::Numbered => {
                "the change alone would not pass the check, or would promise less"
            }
        }
    }

    fn step(&self, at: usize) -> &Step {
        &self.plan.steps[at]
    }

    fn suggestion(&self, code: &'static str, at: Option<usize>, reason: String) -> PlanSuggestion {
        let step = at.map(|at| self.step(at).id.clone());
        PlanSuggestion { code, step, reason, doubt: None, fix: None, diff: Vec::new() }
    }

    /// The ids of steps, the first few by name.
    fn named(&self, steps: &[usize]) -> String {
        const NAMED_MAX: usize = 3;
        let first: Vec<&str> = steps.iter().take(NAMED_MAX).map(|at| self.step(*at).id.as_str()).collect();
        match steps.len() {
            count if count > NAMED_MAX => format!("{} and {} more", first.join(", "), count - NAMED_MAX),
            _ => first.join(", "),
        }
    }
}

impl PlanSuggestion {
    fn fix(self, fix: Vec<PatchOperation>) -> PlanSuggestion {
        PlanSuggestion { fix: Some(fix), ..self }
    }

    /// Takes back a fix.
    fn withdraw(&mut self, doubt: &str) {
        (self.fix, self.doubt) = (None, Some(doubt.to_owned()));
    }

    fn doubt(self, doubt: impl Into<String>) -> PlanSuggestion {
        PlanSuggestion { doubt: Some(doubt.into()), ..self }
    }
}

/// The patched document and its plan; `None` if it has more findings than before or promises less.
fn fixed(
    plan: &Plan,
    document: &Value,
    fix: &[PatchOperation],
    catalog: &ToolCatalog,
    driver: Driver,
) -> Option<(Value, Arc<Plan>)> {
    let check = |document: &Value| {
        let document = PlanDocument::read(document.to_string().as_bytes(), DocumentFormat::Json).ok()?;
        Some(check_document(&document, catalog, driver, None))
    };
    let patched = apply_patch(document, fix).ok()?;
    let (before, after) = (check(document)?, check(&patched)?);
    // More of a plan may run at once: what keeps it from that is said then, and was true before.
    let counted = |found: &[Diagnostic]| found.iter().filter(|found| found.code != "lint.order_only").count();
    let has_no_more_findings = counted(&after.diagnostics) <= counted(&before.diagnostics);
    let fixed = after.plan.filter(|fixed| has_no_more_findings && promises_as_much(plan, fixed))?;
    Some((patched, fixed))
}

/// Whether the new plan makes the same calls under the same conditions, in an order that keeps the old one.
pub fn promises_as_much(old: &Plan, new: &Plan) -> bool {
    let (before, after) = (old.graph.ancestors(), new.graph.ancestors());
    let count = old.steps.len();
    let keeps_order = || (0..count).all(|step| (0..count).all(|need| !before.has(step, need) || after.has(step, need)));
    let turn = |plan: &Plan| {
        let preview = preview(plan);
        let point = preview.point_of_no_return?.step;
        preview.steps.iter().position(|step| step.step == point)
    };
    let returns_as_long = || match (turn(old), turn(new)) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(old), Some(new)) => new >= old,
    };
    let same_plan = (old.on_failure, old.budget, old.deadline, &old.inputs)
        == (new.on_failure, new.budget, new.deadline, &new.inputs);
    let same_steps = count == new.steps.len() && old.steps.iter().zip(&new.steps).all(|(old, new)| same_step(old, new));
    same_plan && same_steps && keeps_order() && returns_as_long()
}

fn same_step(old: &Step, new: &Step) -> bool {
    let calls = |step: &Step| -> Vec<_> {
        step.calls().map(|call| (call.tool.clone(), call.safety, call.keyed, call.key_window)).collect()
    };
    let shape = |step: &Step| {
        (step.id.clone(), step.approval, step.cancellable, step.policy.clone(), step.else_of, step.when.is_some())
    };
    shape(old) == shape(new) && calls(old) == calls(new) && doubts_as_long(old, new)
}

/// Whether a call that must not happen twice is waited for as long, before it counts as lost and as not having happened.
fn doubts_as_long(old: &Step, new: &Step) -> bool {
    let settle = |step: &Step| step.probe.as_ref().map(|probe| probe.settle.unwrap_or(step.call.timeout));
    match settle(old) {
        _ if old.call.is_repeatable() => true,
        None => new.call.timeout >= old.call.timeout,
        before => settle(new) >= before,
    }
}
