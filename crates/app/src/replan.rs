//! Replanning a running execution: first a proposal, then the change.

use crate::app::App;
use crate::command::required_reason;
use crate::error::AppError;
use crate::plans::{PlanInput, given};
use crate::principal::Principal;
use crate::request_key::{RequestKey, digest};
use crate::rights::Operation;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::execution::{Execution, ExecutionIdentity, input};
use rutter_core::hash::Hash;
use rutter_core::plan::diff::diff;
use rutter_core::plan::document::PlanDocument;
use rutter_core::plan::{Driver, Plan};
use rutter_core::port::journal::IdempotentRequest;
use rutter_engine::ReplanCommand;
use rutter_engine::submit::{AcceptedPlan, PlanText};
use serde_json::{Value, json};
use std::sync::Arc;

/// A checked plan that the execution accepts.
#[derive(Debug)]
pub struct ReplanProposal {
    accepted: AcceptedPlan,
    /// The changes, one line each.
    pub lines: Vec<String>,
    reason: String,
    /// Of the request, for its key.
    digest: Hash,
}

/// Checks a new plan and that the execution accepts it, so that no revision is saved in vain.
pub async fn propose(
    app: &App,
    caller: &Principal,
    identity: &ExecutionIdentity,
    (old, driver): (&Plan, Driver),
    new: &PlanInput,
    reason: Option<String>,
) -> Result<ReplanProposal, AppError> {
    app.require(caller, Operation::Replan)?;
    let reason = required_reason("a new plan", reason)?;
    let engine = &app.engine;
    let text = new.text(&caller.tenant, driver)?;
    let accepted = engine.check(&text).await?;
    let mut lines = diff(old, &accepted.plan).lines();
    let new = Arc::clone(&accepted.plan);
    let after_all = engine.inspect(identity, move |execution| execution.runs_after_all(&new)).await?;
    lines.extend(after_all.into_iter().map(|line| format!("~ {line}")));
    let actor = caller.actor();
    // It is saved only if it is admitted.
    let (plan, revision) = (Arc::clone(&accepted.plan), 0);
    let asked = input::ExecutionInput::Replan { plan, revision, reason: reason.clone() };
    let policy = Arc::clone(engine.policy());
    let admitted = engine.inspect(identity, move |execution| execution.admit(&actor, &asked, &policy)).await?;
    admitted.map_err(|refusal| app.refusals.noting(caller, "replan", &identity.execution, refusal.into()))?;
    let digest = request_digest(identity, &text, &reason);
    Ok(ReplanProposal { accepted, lines, reason, digest })
}

/// What a request with a key led to when it first came. Asked before anything is checked or saved: the tools may have
/// changed since, or the execution may have ended.
pub async fn repeated(
    app: &App,
    caller: &Principal,
    identity: &ExecutionIdentity,
    new: &PlanInput,
    reason: Option<&str>,
    key: Option<&str>,
) -> Result<Option<ReplanOutcome>, AppError> {
    app.require(caller, Operation::Replan)?;
    let key = RequestKey::of(caller, key)?;
    let text = new.text(&caller.tenant, Driver::Server)?;
    let digest = request_digest(identity, &text, reason.unwrap_or_default());
    if key.execution(app, &caller.tenant, digest).await?.is_none() {
        return Ok(None);
    }
    let asked = given(&text);
    let outcome = move |execution: &Execution| {
        // A proposal can be the plan that the execution already follows: then the yes is about going on with it.
        let proposed = proposed(execution)
            .filter(|(plan, _)| *plan == execution.plan().hash || !follows(execution.plan(), &asked));
        let revision = proposed.map_or(execution.revision(), |(_, revision)| revision);
        ReplanOutcome { revision, is_applied: proposed.is_none() }
    };
    Ok(Some(app.engine.inspect(identity, outcome).await?))
}

/// The plan that waits for a person's yes, and its revision.
fn proposed(execution: &Execution) -> Option<(Hash, u32)> {
    execution.questions().into_iter().find_map(|question| match question {
        PendingQuestion::Replan { plan, revision, .. } => Some((plan, revision)),
        _ => None,
    })
}

/// Whether a plan has the document that a request gave.
fn follows(plan: &Plan, asked: &Value) -> bool {
    PlanDocument::read(&plan.source, plan.format).is_ok_and(|document| json!({ "document": document.value }) == *asked)
}

/// Over what the caller asked for: not over the revision it becomes, nor the tools it is checked against.
fn request_digest(identity: &ExecutionIdentity, text: &PlanText, reason: &str) -> Hash {
    let request = json!({ "execution": identity.execution, "plan": given(text), "reason": reason.trim() });
    digest("rutter/replan/v1", &request)
}

/// The revision that was saved, and whether the execution follows it: one that weakens the plan waits for a person.
#[derive(Clone, Copy, Debug)]
pub struct ReplanOutcome {
    pub revision: u32,
    pub is_applied: bool,
}

/// Saves the plan as a revision for this execution alone, and makes the execution follow it, or propose it to a person.
pub async fn carry_out(
    app: &App,
    caller: &Principal,
    identity: &ExecutionIdentity,
    proposal: ReplanProposal,
    key: Option<String>,
    seen: Option<u64>,
) -> Result<ReplanOutcome, AppError> {
    app.require(caller, Operation::Replan)?;
    let (new, hash) = (Arc::clone(&proposal.accepted.plan), proposal.accepted.plan.hash);
    let (engine, key) = (&app.engine, RequestKey::of(caller, key.as_deref())?);
    let plan = app.query.execution(identity).await?;
    let plan = plan.ok_or_else(|| AppError::missing("execution", identity.execution.as_str()))?.plan;
    let revision = engine.save_for_execution(caller.tenant.clone(), new, plan.clone(), caller.actor()).await?;
    let command = ReplanCommand { plan, revision, reason: proposal.reason };
    let request = key.stored.clone().map(|key| IdempotentRequest { key, digest: proposal.digest });
    if let Err(error) = engine.follow_revision(identity, caller.actor(), command, request, seen).await {
        let error = key.error(app, &caller.tenant, error).await;
        return Err(app.refusals.noting(caller, "replan", &identity.execution, error));
    }
    let is_followed = move |execution: &Execution| {
        execution.plan().hash == hash && proposed(execution).is_none_or(|(plan, _)| plan != hash)
    };
    let is_applied = engine.inspect(identity, is_followed).await?;
    Ok(ReplanOutcome { revision, is_applied })
}
