//! A plan as it is stored: the author's bytes and the pinned tools, under one hash.
//!
//! A journal refers to its plan by that hash alone, so a rebuilt plan is proven to be the same.

use super::Plan;
use super::check;
use super::document::{DocumentFormat, PlanDocument};
use super::draft::PlanDraft;
use crate::diagnostic::Diagnostic;
use crate::hash::Hash;
use crate::id::ToolName;
use crate::tool::Tool;
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
