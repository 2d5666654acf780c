//! The plan compiler: reports all errors and warnings at once, and returns the plan if there is no error.
//!
//! [`sketch`] builds the plan as far as possible; [`mod@reference`], [`condition`], [`call`], [`limit`] and [`statement`] check the
//! sketch, each for one kind of error, and [`lint`] warns of what is allowed but probably a mistake. No check stops at
//! its first finding.

mod call;
mod call_site;
mod condition;
mod edge;
mod expression_site;
mod limit;
mod lint;
mod reference;
mod scope;
mod sketch;
mod statement;
#[cfg(test)]
mod tests;

use crate::diagnostic::{Diagnostic, DiagnosticSeverity};
use crate::id::ToolName;
use crate::limits::FINDINGS_MAX;
use crate::plan::document::{DocumentFormat, PlanDocument};
use crate::plan::draft::PlanDraft;
use crate::plan::{Driver, Plan, patch};
use crate::time::Timestamp;
use crate::tool::{Tool, ToolCatalog};
use sketch::PlanSketch;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The result of a check. There is a plan if and only if there is no error.
#[derive(Clone, Debug)]
pub struct PlanCheck {
    pub plan: Option<Arc<Plan>>,
    /// Errors first, each kind step by step.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads and checks the text of a plan. With `now`, times in it must not be in the future.
pub fn read_and_check(
    bytes: &[u8],
    format: DocumentFormat,
    catalog: &ToolCatalog,
    driver: Driver,
    now: Option<Timestamp>,
) -> PlanCheck {
    match PlanDocument::read(bytes, format) {
        Ok(document) => check_document(&document, catalog, driver, now),
        Err(diagnostics) => PlanCheck { plan: None, diagnostics },
    }
}

/// The same for a text that was parsed before.
pub fn check_document(
    document: &PlanDocument,
    catalog: &ToolCatalog,
    driver: Driver,
    now: Option<Timestamp>,
) -> PlanCheck {
    let (draft, mut diagnostics) = PlanDraft::read(document, now);
    let Some(draft) = draft else { return PlanCheck { plan: None, diagnostics } };
    let checked = check(&draft, catalog, driver);
    // Drop findings at pointers that already have a read error: they only follow from it.
    let errors = diagnostics.iter().filter(|found| found.severity == DiagnosticSeverity::Error);
    let pointers: HashSet<String> = errors.map(|found| found.pointer.clone()).collect();
    let readable = pointers.is_empty();
    diagnostics.extend(checked.diagnostics.into_iter().filter(|found| !pointers.contains(&found.pointer)));
    PlanCheck { plan: checked.plan.filter(|_| readable), diagnostics: sorted(diagnostics) }
}

/// Checks a draft against the catalogue. A plan for an agent may name tools that are not registered.
pub fn check(draft: &PlanDraft, catalog: &ToolCatalog, driver: Driver) -> PlanCheck {
    let mut sketch = PlanSketch::draw(draft, &catalog.tools);
    sketch.unreachable = Some(&catalog.unreachable);
    let mut found = std::mem::take(&mut sketch.diagnostics);
    statement::check(&sketch, &mut found);
    reference::check(&sketch, &mut found);
    condition::check(&sketch, &mut found);
    call::check(&sketch, driver, &mut found);
    limit::check(&sketch, &mut found);
    let sound = sound_steps(draft, &found);
    lint::check(&sketch, &sound, &mut found);
    let fine = found.iter().all(|found| found.severity != DiagnosticSeverity::Error);
    let plan = if fine { sketch.into_plan().map(Arc::new) } else { None };
    let mut diagnostics = sorted(found);
    patch::guard(&draft.document, diagnostics.iter_mut().filter_map(|found| found.fix.as_mut()));
    PlanCheck { plan, diagnostics }
}

/// Builds a plan that was accepted before. Refuses only a plan that cannot be built at all, so that stricter checks of
/// later versions do not make stored plans unreadable.
pub fn assemble(draft: &PlanDraft, tools: &BTreeMap<ToolName, Arc<Tool>>) -> Result<Plan, Vec<Diagnostic>> {
    let mut sketch = PlanSketch::draw(draft, tools);
    let found = std::mem::take(&mut sketch.diagnostics);
    if found.is_empty() { sketch.into_plan().ok_or(found) } else { Err(sorted(found)) }
}

/// For each step whether it has no error.
fn sound_steps(draft: &PlanDraft, found: &[Diagnostic]) -> Vec<bool> {
    let errors = found.iter().filter(|found| found.severity == DiagnosticSeverity::Error);
    let owners: HashSet<&str> = errors.filter_map(|found| owner(&found.pointer)).collect();
    draft.steps.iter().map(|step| !owners.contains(step.pointer.as_str())).collect()
}

/// The pointer of the step that contains a pointer: `/steps/3` of `/steps/3/when`.
fn owner(pointer: &str) -> Option<&str> {
    let steps = pointer.find("/steps/")? + "/steps/".len();
    let end = pointer[steps..].find('/').map_or(pointer.len(), |length| steps + length);
    Some(&pointer[..end])
}

/// Errors first, then by position, in numeric order: step 9 before step 10.
fn sorted(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    found.sort_by(|a, b| {
        let by_place = || by_place(&a.pointer, &b.pointer);
        a.severity.cmp(&b.severity).then_with(by_place).then_with(|| a.code.cmp(b.code))
    });
    found.dedup();
    if found.len() > FINDINGS_MAX {
        let left_out = found.len() - FINDINGS_MAX;
        found.truncate(FINDINGS_MAX);
        let message = format!("only the first {FINDINGS_MAX} findings are listed, {left_out} more were left out");
        let severity = found.first().map_or(DiagnosticSeverity::Warning, |found| found.severity);
        found.push(Diagnostic { severity, ..Diagnostic::error("plan.too_many_findings", "", message) });
    }
    found
}

fn by_place(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a.split('/'), b.split('/'));
    loop {
        let (left, right) = match (a.next(), b.next()) {
            (Some(left), Some(right)) => (left, right),
            (left, right) => return left.is_some().cmp(&right.is_some()),
        };
        // Numbers sort before names, so that the order is total even for names that begin with digits.
        let rank = |name: &str| name.parse::<u64>().unwrap_or(u64::MAX);
        let order = rank(left).cmp(&rank(right)).then_with(|| left.cmp(right));
        if order.is_ne() {
            return order;
        }
    }
}
