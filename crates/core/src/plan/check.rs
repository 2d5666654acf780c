//! The plan compiler: every mistake and every doubt at once, and the plan if there is no mistake.
//!
//! [`sketch`] builds what can be built and names what cannot; the other modules look at the sketch, each for one
//! kind of mistake. Nothing stops at the first finding.

mod edge;
mod place;
mod site;
mod sketch;

use crate::id::ToolName;
use crate::plan::diagnostic::Diagnostic;
use crate::plan::draft::PlanDraft;
use crate::plan::{Driver, Plan};
use crate::tool::{Tool, ToolCatalog};
use sketch::Sketch;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What checking found. There is a plan if and only if there is no error.
#[derive(Clone, Debug)]
pub struct Checked {
    pub plan: Option<Arc<Plan>>,
    pub diagnostics: Vec<Diagnostic>,
}

/// Checks a draft against the tools there are.
pub fn check(draft: &PlanDraft, catalog: &ToolCatalog, _driver: Driver) -> Checked {
    let sketch = Sketch::draw(draft, &catalog.tools);
    let diagnostics = sketch.diagnostics.clone();
    Checked { plan: sketch.into_plan().map(Arc::new), diagnostics }
}

/// Builds a plan that was accepted before. Only what cannot be built at all is refused, so that a stricter check of
/// tomorrow does not make today's plans unreadable.
pub fn assemble(draft: &PlanDraft, tools: &BTreeMap<ToolName, Arc<Tool>>) -> Result<Plan, Vec<Diagnostic>> {
    let sketch = Sketch::draw(draft, tools);
    let diagnostics = sketch.diagnostics.clone();
    sketch.into_plan().ok_or(diagnostics)
}
