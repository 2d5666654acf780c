//! Replanning a running execution: first a proposal, then the change.

use crate::app::App;
use crate::command::required_reason;
use crate::error::AppError;
use crate::plans::PlanInput;
use crate::principal::Principal;
use crate::request_key::RequestKey;
use crate::rights::{Operation, require};
use rutter_core::execution::{ExecutionIdentity, input};
use rutter_core::plan::diff::diff;
use rutter_core::plan::{Driver, Plan};
use rutter_engine::ReplanCommand;
use rutter_engine::submit::AcceptedPlan;
use std::sync::Arc;

/// A checked plan that the execution accepts.
#[derive(Debug)]
pub struct ReplanProposal {
    accepted: AcceptedPlan,
    /// The changes, one line each.
    pub lines: Vec<String>,
    reason: String,
}

/// Checks a new plan and that the execution accepts it, so that no revision is saved in vain.
pub async fn propose(
    app: &App,
    caller: &Principal,
    identity: &ExecutionIdentity,
    (old, driver): (&Plan, Driver),
    new: &PlanInput,
    reason: Option<String>,
    key: Option<&str>,
) -> Result<ReplanProposal, AppError> {
    require(caller, Operation::Replan)?;
    let reason = required_reason("a new plan", reason)?;
    let engine = &app.engine;
    let text = new.text(&caller.tenant, driver)?;
    let accepted = engine.check(&text).await?;
    let lines = diff(old, &accepted.plan).lines();
    // A repeated request: this plan is already followed.
    let is_repeated = key.is_some() && old.hash == accepted.plan.hash;
    if !is_repeated {
        let actor = caller.actor();
        let asked = input::ExecutionInput::Replan { plan: Arc::clone(&accepted.plan), reason: reason.clone() };
        engine.inspect(identity, move |execution| execution.admit(&actor, &asked)).await??;
    }
    Ok(ReplanProposal { accepted, lines, reason })
}

/// Saves the plan as the next revision, makes the execution follow it, and returns the revision.
pub async fn carry_out(
    app: &App,
    caller: &Principal,
    identity: &ExecutionIdentity,
    proposal: ReplanProposal,
    key: Option<String>,
    seen: Option<u64>,
) -> Result<u32, AppError> {
    require(caller, Operation::Replan)?;
    let (engine, key) = (&app.engine, RequestKey::of(caller, key.as_deref())?);
    let plan = app.query.execution(identity).await?;
    let plan = plan.ok_or_else(|| AppError::missing("execution", identity.execution.as_str()))?.plan;
    let stored =
        engine.save(caller.tenant.clone(), proposal.accepted, Some(plan.clone()), None, caller.actor()).await?;
    let revision = stored.saved.revision();
    let command = ReplanCommand { plan, revision, reason: proposal.reason };
    let followed = engine.follow_revision(identity, caller.actor(), command, key.stored.clone(), seen).await;
    followed.map_err(|error| key.error(error))?;
    Ok(revision)
}
