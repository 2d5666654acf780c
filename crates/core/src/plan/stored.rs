//! A plan as it is kept: the author's bytes and the tools it pins, under one hash.
//!
//! A journal names its plan by that hash alone, so whoever rebuilds a plan knows that it is the very one.

use super::Plan;
use super::check;
use super::diagnostic::Diagnostic;
use super::document::{Document, Format};
use super::draft::PlanDraft;
use crate::hash::Hash;
use crate::id::ToolName;
use crate::tool::Tool;
use std::collections::BTreeMap;
use std::sync::Arc;

type Tools = BTreeMap<ToolName, Arc<Tool>>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the pinned tools cannot be read: {0}")]
    Tools(String),
    #[error("the plan can no longer be read: {}", .0.first().map_or("no reason given", |found| &found.message))]
    Plan(Vec<Diagnostic>),
    #[error("it is not plan {} but {}", .expected.short(), .found.short())]
    OtherPlan { expected: Hash, found: Hash },
}

/// Returns the tools a plan pins, as they are kept beside its source.
pub fn pinned(tools: &Tools) -> Vec<u8> {
    serde_json::to_vec(tools).expect("tools have only text keys")
}

pub(super) fn hash(source: &[u8], tools: &Tools) -> Hash {
    Hash::of_fields("rutter/plan/v1", &[source, &pinned(tools)])
}

/// Builds a plan that was accepted before from what was kept of it.
pub fn rebuild(expected: Hash, source: &[u8], format: Format, pinned: &[u8]) -> Result<Plan, Error> {
    let tools: Tools = serde_json::from_slice(pinned).map_err(|error| Error::Tools(error.to_string()))?;
    let document = Document::read(source, format).map_err(Error::Plan)?;
    let (draft, found) = PlanDraft::read(&document, None);
    let plan = check::assemble(&draft.ok_or(Error::Plan(found))?, &tools).map_err(Error::Plan)?;
    match plan.hash == expected {
        true => Ok(plan),
        false => Err(Error::OtherPlan { expected, found: plan.hash }),
    }
}
