//! Another plan for an execution under way: first as a proposal, then carried out.

use crate::deed::Caller;
use crate::deed::plan::PlanInput;
use crate::fault::Fault;
use rutter_core::execution::{Identity, input};
use rutter_core::plan::diff::diff;
use rutter_core::plan::{Driver, Plan};
use rutter_engine::Signal;
use rutter_engine::submit::PlanText;
use std::sync::Arc;

/// A plan that was checked and that the execution would take.
pub(crate) struct Proposal {
    text: PlanText,
    /// What it changes, one line for each change.
    pub(crate) lines: Vec<String>,
}

/// Checks a new plan and whether the execution would take it, before a revision is kept that nobody carries out.
pub(crate) async fn propose(
    caller: &Caller,
    identity: &Identity,
    (old, driver): (&Plan, Driver),
    new: &PlanInput,
    reason: &str,
    key: Option<&str>,
) -> Result<Proposal, Fault> {
    let engine = &caller.desk.engine;
    let text = new.text(&caller.tenant, driver)?;
    let accepted = engine.check(&text).await?;
    let lines = diff(old, &accepted.plan).lines();
    // The request was made before, and this is the plan it brought.
    let is_repeated = key.is_some() && old.hash == accepted.plan.hash;
    if !is_repeated {
        let actor = caller.actor.clone();
        let asked = input::Input::Replan { plan: Arc::clone(&accepted.plan), reason: reason.to_owned() };
        engine.look(identity, move |execution| execution.admit(&actor, &asked)).await??;
    }
    Ok(Proposal { text, lines })
}

/// Keeps the plan as the next revision and has the execution follow it; says which revision that is.
pub(crate) async fn carry_out(
    caller: &Caller,
    identity: &Identity,
    proposal: Proposal,
    reason: String,
    key: Option<String>,
    seen: Option<u64>,
) -> Result<u32, Fault> {
    let engine = &caller.desk.engine;
    let plan = caller.desk.query.execution(identity).await?;
    let plan = plan.ok_or_else(|| Fault::missing("execution", identity.execution.as_str()))?.plan;
    let kept = engine.submit(proposal.text, Some(plan.clone()), None, caller.actor.clone()).await?;
    let revision = kept.saved.revision();
    let signal = Signal::Replan { plan, revision, reason };
    engine.signal_as_seen(identity, caller.actor.clone(), signal, key, seen).await?;
    Ok(revision)
}
