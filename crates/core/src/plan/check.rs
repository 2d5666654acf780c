//! The plan compiler: every mistake and every doubt at once, and the plan if there is no mistake.
//!
//! [`sketch`] builds what can be built and names what cannot; [`mod@reference`], [`call`], [`limit`] and [`statement`] look
//! at the sketch, each for one kind of mistake, [`lint`] for what is allowed and probably not meant. Nothing stops at
//! the first finding.

mod call;
mod edge;
mod limit;
mod lint;
mod place;
mod reference;
mod scope;
mod site;
mod sketch;
mod statement;
#[cfg(test)]
mod tests;

use crate::id::ToolName;
use crate::limits::FINDINGS_MAX;
use crate::plan::diagnostic::{Diagnostic, Severity};
use crate::plan::document::{Document, Format};
use crate::plan::draft::PlanDraft;
use crate::plan::{Driver, Plan};
use crate::time::Timestamp;
use crate::tool::{Tool, ToolCatalog};
use sketch::Sketch;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// What checking found. There is a plan if and only if there is no error.
#[derive(Clone, Debug)]
pub struct Checked {
    pub plan: Option<Arc<Plan>>,
    /// Errors first, each kind step by step.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads and checks the text of a plan. With `now`, times in it must not be in the future.
pub fn read_and_check(
    bytes: &[u8],
    format: Format,
    catalog: &ToolCatalog,
    driver: Driver,
    now: Option<Timestamp>,
) -> Checked {
    let document = match Document::read(bytes, format) {
        Ok(document) => document,
        Err(diagnostics) => return Checked { plan: None, diagnostics },
    };
    let (draft, mut diagnostics) = PlanDraft::read(&document, now);
    let Some(draft) = draft else { return Checked { plan: None, diagnostics } };
    let checked = check(&draft, catalog, driver);
    // What could not be read has been said; what follows from that need not be. A mere warning hides nothing.
    let errors = diagnostics.iter().filter(|found| found.severity == Severity::Error);
    let said: HashSet<String> = errors.map(|found| found.pointer.clone()).collect();
    let readable = said.is_empty();
    diagnostics.extend(checked.diagnostics.into_iter().filter(|found| !said.contains(&found.pointer)));
    Checked { plan: checked.plan.filter(|_| readable), diagnostics: sorted(diagnostics) }
}

/// Checks a draft against the tools there are. A plan for the agent may name tools nobody registered.
pub fn check(draft: &PlanDraft, catalog: &ToolCatalog, driver: Driver) -> Checked {
    let mut sketch = Sketch::draw(draft, &catalog.tools);
    let mut found = std::mem::take(&mut sketch.diagnostics);
    statement::check(&sketch, &mut found);
    reference::check(&sketch, &mut found);
    call::check(&sketch, driver, &mut found);
    limit::check(&sketch, &mut found);
    let sound = sound_steps(draft, &found);
    lint::check(&sketch, &sound, &mut found);
    let fine = found.iter().all(|found| found.severity != Severity::Error);
    let plan = if fine { sketch.into_plan().map(Arc::new) } else { None };
    Checked { plan, diagnostics: sorted(found) }
}

/// Builds a plan that was accepted before. Only what cannot be built at all is refused, so that a stricter check of
/// tomorrow does not make today's plans unreadable.
pub fn assemble(draft: &PlanDraft, tools: &BTreeMap<ToolName, Arc<Tool>>) -> Result<Plan, Vec<Diagnostic>> {
    let mut sketch = Sketch::draw(draft, tools);
    let found = std::mem::take(&mut sketch.diagnostics);
    if found.is_empty() { sketch.into_plan().ok_or(found) } else { Err(sorted(found)) }
}

/// For each step whether it has no error.
fn sound_steps(draft: &PlanDraft, found: &[Diagnostic]) -> Vec<bool> {
    let errors = found.iter().filter(|found| found.severity == Severity::Error);
    let owners: HashSet<&str> = errors.filter_map(|found| owner(&found.pointer)).collect();
    draft.steps.iter().map(|step| !owners.contains(step.pointer.as_str())).collect()
}

/// The pointer of the step that a pointer leads into: `/steps/3` of `/steps/3/when`.
fn owner(pointer: &str) -> Option<&str> {
    let steps = pointer.find("/steps/")? + "/steps/".len();
    let end = pointer[steps..].find('/').map_or(pointer.len(), |length| steps + length);
    Some(&pointer[..end])
}

/// Errors first, then by place, as people count: step 9 before step 10.
fn sorted(mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    found.sort_by(|a, b| {
        let by_place = || by_place(&a.pointer, &b.pointer);
        a.severity.cmp(&b.severity).then_with(by_place).then_with(|| a.code.cmp(b.code))
    });
    found.dedup();
    if found.len() > FINDINGS_MAX {
        let left_out = found.len() - FINDINGS_MAX;
        found.truncate(FINDINGS_MAX);
        let message =
            format!("only the first {FINDINGS_MAX} findings are listed, {left_out} more were left out");
        let severity = found.first().map_or(Severity::Warning, |found| found.severity);
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
        // Positions come before names, so that this stays one order even for names that begin with digits.
        let rank = |name: &str| name.parse::<u64>().unwrap_or(u64::MAX);
        let order = rank(left).cmp(&rank(right)).then_with(|| left.cmp(right));
        if order.is_ne() {
            return order;
        }
    }
}
