//! A plan as it is stored: the author's bytes and the pinned tools, under one hash.
//!
//! A journal refers to its plan by that hash alone, so a rebuilt plan is proven to be the same.

use super::check;
use super::document::{DocumentFormat, PlanDocument};
use super::draft::PlanDraft;
use super::{Driver, Plan};
use crate::canonical::canonical;
use crate::diagnostic::Diagnostic;
use crate::hash::Hash;
use crate::id::ToolName;
use crate::tool::{Tool, ToolCatalog};
use std::collections::BTreeMap;
use std::sync::Arc;

type PinnedTools = BTreeMap<ToolName, Arc<Tool>>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the pinned tools cannot be read: {0}")]
    Tools(String),
    #[error("the plan can no longer be read: {}", .0.first().map_or("no reason given", |found| &found.message))]
    Plan(Vec<Diagnostic>),
    #[error("expected plan {}, found {}", .expected.short(), .found.short())]
    OtherPlan { expected: Hash, found: Hash },
}

/// Returns the pinned tools of a plan, as they are stored beside its source.
pub fn pinned(tools: &PinnedTools) -> Vec<u8> {
    serde_json::to_vec(tools).expect("tools have only text keys")
}

pub(super) fn hash(source: &[u8], tools: &PinnedTools) -> Hash {
    Hash::of_fields("rutter/plan/v1", &[source, &pinned(tools)])
}

impl Plan {
    /// Whether two plans say the same and pin the same tools, however they are written.
    pub fn has_same_content(&self, other: &Plan) -> bool {
        let said = |plan: &Plan| {
            let document = PlanDocument::read(&plan.source, plan.format);
            document.ok().map(|document| canonical(&document.value))
        };
        self.hash == other.hash
            || (self.tools == other.tools && said(self).is_some_and(|text| said(other) == Some(text)))
    }
}

impl Plan {
    /// The same plan under the settings of `tools` where these are stricter than those it pins; `None` if none is. The
    /// definitions stay those it was checked against: a changed one stops the step.
    ///
    /// A plan that these settings forbid is refused with what the check says about it.
    pub fn tightened(&self, tools: &PinnedTools) -> Result<Option<Arc<Plan>>, Vec<Diagnostic>> {
        let mut pinned = self.tools.clone();
        for (name, tool) in &mut pinned {
            if let Some(now) = tools.get(name) {
                *tool = Arc::new(tool.tightened(now));
            }
        }
        if pinned == self.tools {
            return Ok(None);
        }
        let document = PlanDocument::read(&self.source, self.format)?;
        self.checked(&document, pinned).map(Some)
    }

    /// Another document with the tools that this plan pins.
    pub fn revised(&self, document: &PlanDocument) -> Result<Arc<Plan>, Vec<Diagnostic>> {
        self.checked(document, self.tools.clone())
    }

    fn checked(&self, document: &PlanDocument, tools: PinnedTools) -> Result<Arc<Plan>, Vec<Diagnostic>> {
        let catalog = ToolCatalog { tools, ..ToolCatalog::default() };
        let checked = check::check_document(document, &catalog, self.driver(), None);
        checked.plan.ok_or(checked.diagnostics)
    }

    /// Who can execute it: tools that are not registered are the agent's own.
    pub fn driver(&self) -> Driver {
        if self.tools_missing().next().is_some() { Driver::Agent } else { Driver::Server }
    }
}

/// Rebuilds a plan that was accepted before from its stored bytes.
pub fn rebuild(expected: Hash, source: &[u8], format: DocumentFormat, pinned: &[u8]) -> Result<Plan, Error> {
    let tools: PinnedTools = serde_json::from_slice(pinned).map_err(|error| Error::Tools(error.to_string()))?;
    let document = PlanDocument::read(source, format).map_err(Error::Plan)?;
    let (draft, found) = PlanDraft::read(&document, None);
    let plan = check::assemble(&draft.ok_or(Error::Plan(found))?, &tools).map_err(Error::Plan)?;
    match plan.hash == expected {
        true => Ok(plan),
        false => Err(Error::OtherPlan { expected, found: plan.hash }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Millis;
    use crate::tool::Safety;
    use serde_json::{Value, json};

    fn catalog(fields: Value) -> ToolCatalog {
        let mut tool = json!({ "name": "shop.order", "inputSchema": { "type": "object" } });
        for (field, value) in fields.as_object().into_iter().flatten() {
            tool[field] = value.clone();
        }
        ToolCatalog::from_json(&json!({ "tools": [tool] })).unwrap()
    }

    fn plan(step: Value, settings: Value) -> Arc<Plan> {
        let mut text = json!({ "name": "p", "steps": [{ "id": "a", "tool": "shop.order" }] });
        for (field, value) in step.as_object().into_iter().flatten() {
            text["steps"][0][field] = value.clone();
        }
        let document = PlanDocument::read(text.to_string().as_bytes(), DocumentFormat::Json).unwrap();
        let checked = check::check_document(&document, &catalog(settings), Driver::Server, None);
        checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
    }

    fn call(plan: &Plan, now: Value) -> Option<(Safety, bool, Millis)> {
        let stricter = plan.tightened(&catalog(now).tools).unwrap()?;
        let call = &stricter.steps[0].call;
        Some((call.safety, call.keyed, call.key_window))
    }

    #[test]
    fn the_stricter_of_pinned_and_present_settings_counts() {
        let idempotent = plan(json!({}), json!({ "safety": "idempotent" }));
        assert_eq!(call(&idempotent, json!({ "safety": "once" })).unwrap().0, Safety::Once);
        assert_eq!(call(&idempotent, json!({ "safety": "read_only" })), None);
        assert_eq!(call(&idempotent, json!({ "safety": "idempotent" })), None);
        assert!(idempotent.tightened(&BTreeMap::new()).unwrap().is_none(), "a server that is down changes nothing");

        let settings = |window: &str| json!({ "key_parameter": "key", "key_window": window });
        let keyed = plan(json!({ "parameters": { "key": "{{ key }}" } }), settings("2h"));
        assert_eq!(call(&keyed, settings("1h")), Some((Safety::Once, true, Millis::hours(1))));
        assert_eq!(call(&keyed, settings("3h")), None);
        assert!(!call(&keyed, json!({ "key_window": "2h" })).unwrap().1, "the tool honours no key any more");
    }

    #[test]
    fn a_timeout_above_the_present_limit_refuses_the_plan() {
        let limit = json!({ "attempts": { "timeout_max": "1m" } });
        let long = plan(json!({ "timeout": "5m" }), json!({}));
        let found = long.tightened(&catalog(limit.clone()).tools).unwrap_err();
        assert!(found.iter().any(|found| found.message.contains("1m")), "{found:?}");
        let usual = plan(json!({}), json!({ "attempts": { "timeout": "5m" } }));
        let stricter = usual.tightened(&catalog(limit).tools).unwrap().unwrap();
        assert_eq!(stricter.steps[0].call.timeout, Millis::seconds(60));
    }

    #[test]
    fn a_changed_definition_is_not_pinned_anew() {
        let old = plan(json!({}), json!({ "safety": "idempotent" }));
        let now = catalog(json!({ "safety": "once", "description": "does something else" }));
        let stricter = old.tightened(&now.tools).unwrap().unwrap();
        let definition = |plan: &Plan| plan.tools.values().next().unwrap().definition;
        assert_eq!(definition(&stricter), definition(&old));
    }
}
