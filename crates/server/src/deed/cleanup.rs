//! Taking away what is no longer to be kept; the hashes stay, and so does the proof.

use crate::deed::Caller;
use crate::fault::Fault;
use rutter_core::port::query::{ExecutionFilter, History, Page, PlanFilter};
use rutter_core::port::upkeep::{Cleaned, CleanedPart, Cleaning};
use rutter_core::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

const DAYS_DEFAULT: u32 = 30;
const DAYS_MAX: u32 = 365;
/// Plans that are looked at when those without executions are counted.
const PLANS_MAX: u32 = 1_000;

pub(crate) struct Cleanup {
    pub(crate) kind: CleanupType,
    pub(crate) days: u32,
    pub(crate) dry_run: bool,
    pub(crate) what: CleanedPart,
    pub(crate) reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CleanupType {
    CompletedOld,
    FailedOld,
    OrphanedPlans,
    AllOld,
}

impl CleanupType {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            CleanupType::CompletedOld => "completed_old",
            CleanupType::FailedOld => "failed_old",
            CleanupType::OrphanedPlans => "orphaned_plans",
            CleanupType::AllOld => "all_old",
        }
    }
}

/// What was found, or is gone.
pub(crate) enum Found {
    Cleaned(Cleaned),
    /// Old plans nobody executes, and whether all plans were looked at. They stay: what was agreed to is part of the
    /// ledger.
    Orphans {
        count: u64,
        among: Option<u32>,
    },
}

/// How old something must be, in days.
pub(crate) fn days(given: Option<u32>) -> Result<u32, Fault> {
    match given.unwrap_or(DAYS_DEFAULT) {
        days @ 1..=DAYS_MAX => Ok(days),
        days => {
            let message = format!("older_than_days is 1 to {DAYS_MAX}, this is {days}");
            Err(Fault::new("server.arguments", message))
        }
    }
}

pub(crate) async fn clean(caller: &Caller, cleanup: Cleanup) -> Result<Found, Fault> {
    let Cleanup { kind, days, dry_run, what, reason } = cleanup;
    let now = caller.desk.engine.now();
    let untouched_since = Timestamp(now.0.saturating_sub_unsigned(Millis::hours(24 * u64::from(days)).0));
    let statuses = match kind {
        CleanupType::OrphanedPlans => return orphans(caller, untouched_since).await,
        CleanupType::CompletedOld => History::Completed.filter().statuses,
        CleanupType::FailedOld => History::Failed.filter().statuses,
        CleanupType::AllOld => Vec::new(),
    };
    let reason = reason.unwrap_or_else(|| format!("{}, older than {days} days", kind.as_str()));
    let cleaning = Cleaning {
        tenant: caller.tenant.clone(),
        statuses,
        untouched_since,
        what,
        dry_run,
        actor: caller.actor.clone(),
        at: now,
        reason,
    };
    Ok(Found::Cleaned(caller.desk.upkeep.clean(cleaning).await?))
}

async fn orphans(caller: &Caller, saved_before: Timestamp) -> Result<Found, Fault> {
    let (query, tenant) = (&caller.desk.query, &caller.tenant);
    let plans = query.plans(tenant, PlanFilter::default(), Page::first(PLANS_MAX)).await?;
    let mut count = 0;
    for plan in plans.items.iter().filter(|plan| plan.saved_at < saved_before) {
        let of_plan = ExecutionFilter { plan: Some(plan.id.clone()), ..ExecutionFilter::default() };
        count += u64::from(query.executions(tenant, of_plan, Page::first(1)).await?.items.is_empty());
    }
    Ok(Found::Orphans { count, among: plans.next.is_some().then_some(PLANS_MAX) })
}
