//! The guarantee card: how often a step's effect can happen, and why that is so.

use crate::plan::{Plan, Step};
use crate::tool::{Safety, SafetySource, Tool};
use serde::Serialize;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepGuarantee {
    pub kind: GuaranteeKind,
    pub reason: String,
    /// What happens if it is unknown whether the call took effect.
    pub in_doubt: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GuaranteeKind {
    /// The call has no effect.
    NoEffect,
    /// Sent again when in doubt; a repeat changes nothing more.
    AtLeastOnce,
    /// Sent again when in doubt; the tool drops the repeat by its key.
    Deduplicated,
    /// Never sent again when in doubt.
    AtMostOnce,
}

pub(super) fn of(plan: &Plan, step: &Step) -> StepGuarantee {
    let call = &step.call;
    let tool = plan.tools.get(&call.tool);
    let place = |tool: &Tool| match &tool.key_parameter {
        Some(key) if !tool.sends_key => format!("in {key:?}"),
        _ => "beside its parameters".to_owned(),
    };
    let key = tool.map(|tool| place(tool)).filter(|_| call.keyed);
    let source = source(tool.map(|tool| &**tool), call.safety);
    let (kind, reason) = match (call.safety, key) {
        (Safety::ReadOnly, _) => (GuaranteeKind::NoEffect, format!("{} only reads, {source}", call.tool)),
        (_, Some(key)) => {
            (GuaranteeKind::Deduplicated, format!("{} drops repeats of the key it gets {key}", call.tool))
        }
        (Safety::Idempotent, None) => {
            (GuaranteeKind::AtLeastOnce, format!("repeating {} changes nothing more, {source}", call.tool))
        }
        (Safety::Once, None) => {
            (GuaranteeKind::AtMostOnce, format!("every call of {} may have its own effect, {source}", call.tool))
        }
    };
    let in_doubt = match (kind, &step.probe) {
        (GuaranteeKind::NoEffect | GuaranteeKind::AtLeastOnce, _) => "it is tried again".to_owned(),
        (GuaranteeKind::Deduplicated, _) => "it is tried again with the same key".to_owned(),
        (GuaranteeKind::AtMostOnce, Some(probe)) => {
            format!("{} finds out whether it happened; if that fails, a person decides", probe.call.tool)
        }
        (GuaranteeKind::AtMostOnce, None) => "a person decides".to_owned(),
    };
    StepGuarantee { kind, reason, in_doubt }
}

/// Where the safety comes from.
fn source(tool: Option<&Tool>, safety: Safety) -> &'static str {
    match tool {
        None => "because the tool is unknown",
        Some(tool) if safety > tool.safety => "because the plan says so",
        Some(tool) => match tool.safety_source {
            SafetySource::Configured => "by configuration",
            SafetySource::TrustedHint => "by the hint of a trusted server",
            SafetySource::Unknown => "because its safety is unknown",
        },
    }
}
