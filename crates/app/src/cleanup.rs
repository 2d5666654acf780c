//! Removes old payloads or executions; their hashes stay, so the ledger can still be verified.

use crate::app::App;
use crate::error::AppError;
use crate::principal::Principal;
use rutter_core::port::query::{ExecutionFilter, HistoryFilter, Pagination, PlanFilter};
use rutter_core::port::upkeep::{CleanedPart, CleanedTotals, CleaningRequest};
use rutter_core::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

const DAYS_DEFAULT: u32 = 30;
const DAYS_MAX: u32 = 365;
/// Plans examined when those without executions are counted.
const PLANS_MAX: u32 = 1_000;

#[derive(Debug)]
pub struct CleanupRequest {
    pub kind: CleanupType,
    pub days: u32,
    pub dry_run: bool,
    pub what: CleanedPart,
    pub reason: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CleanupType {
    CompletedOld,
    FailedOld,
    OrphanedPlans,
    AllOld,
}

impl CleanupType {
    pub fn as_str(self) -> &'static str {
        match self {
            CleanupType::CompletedOld => "completed_old",
            CleanupType::FailedOld => "failed_old",
            CleanupType::OrphanedPlans => "orphaned_plans",
            CleanupType::AllOld => "all_old",
        }
    }
}

/// What was found, or has been removed.
#[derive(Debug)]
pub enum CleanupFindings {
    Cleaned(CleanedTotals),
    /// Old plans without executions, and whether all plans were examined. They are not removed: approved plans are part
    /// of the ledger.
    Orphans {
        count: u64,
        among: Option<u32>,
    },
}

/// The minimum age, in days.
pub fn days(given: Option<u32>) -> Result<u32, AppError> {
    match given.unwrap_or(DAYS_DEFAULT) {
        days @ 1..=DAYS_MAX => Ok(days),
        days => {
            let message = format!("older_than_days is 1 to {DAYS_MAX}, this is {days}");
            Err(AppError::new("server.arguments", message))
        }
    }
}

pub async fn clean(app: &App, caller: &Principal, cleanup: CleanupRequest) -> Result<CleanupFindings, AppError> {
    let CleanupRequest { kind, days, dry_run, what, reason } = cleanup;
    let now = app.engine.now();
    let untouched_since = Timestamp(now.0.saturating_sub_unsigned(Millis::hours(24 * u64::from(days)).0));
    let statuses = match kind {
        CleanupType::OrphanedPlans => return orphans(app, caller, untouched_since).await,
        CleanupType::CompletedOld => HistoryFilter::Completed.filter().statuses,
        CleanupType::FailedOld => HistoryFilter::Failed.filter().statuses,
        CleanupType::AllOld => Vec::new(),
    };
    let reason = reason.unwrap_or_else(|| format!("{}, older than {days} days", kind.as_str()));
    let cleaning = CleaningRequest {
        tenant: caller.tenant.clone(),
        statuses,
        untouched_since,
        what,
        dry_run,
        actor: caller.actor(),
        at: now,
        reason,
    };
    Ok(CleanupFindings::Cleaned(app.upkeep.clean(cleaning).await?))
}

async fn orphans(app: &App, caller: &Principal, saved_before: Timestamp) -> Result<CleanupFindings, AppError> {
    let (query, tenant) = (&app.query, &caller.tenant);
    let plans = query.plans(tenant, PlanFilter::default(), Pagination::first(PLANS_MAX)).await?;
    let mut count = 0;
    for plan in plans.items.iter().filter(|plan| plan.saved_at < saved_before) {
        let of_plan = ExecutionFilter { plan: Some(plan.id.clone()), ..ExecutionFilter::default() };
        count += u64::from(query.executions(tenant, of_plan, Pagination::first(1)).await?.items.is_empty());
    }
    Ok(CleanupFindings::Orphans { count, among: plans.next.is_some().then_some(PLANS_MAX) })
}
