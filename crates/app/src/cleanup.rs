//! Removes old payloads or executions, and erases payloads; hashes stay, so the ledger can still be verified.

use crate::app::App;
use crate::error::AppError;
use crate::principal::Principal;
use crate::rights::{Operation, check};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::policy::OperatorPolicy;
use rutter_core::port::query::{ExecutionFilter, HistoryFilter, Pagination, PlanFilter};
use rutter_core::port::upkeep::{CleanedPart, CleanedTotals, CleaningRequest, ErasureRequest};
use rutter_core::redact::Redactor;
use rutter_core::time::{Millis, Timestamp};
use schemars::JsonSchema;
use serde::Deserialize;

const DAYS_DEFAULT: u32 = 30;
const DAYS_MAX: u32 = 365;
/// Plans examined when those without executions are counted.
const PLANS_MAX: u32 = 1_000;

/// What is to be removed, as callers write it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewCleanup")]
pub struct CleanupRequest {
    pub cleanup_type: CleanupType,
    /// Default 30.
    #[schemars(range(min = 1, max = 365))]
    pub older_than_days: Option<u32>,
    /// Default true: nothing is removed.
    pub dry_run: Option<bool>,
    /// true: remove whole executions; false: only parameters and results, their events stay.
    #[serde(default)]
    pub include_events: bool,
    pub reason: Option<String>,
}

impl CleanupRequest {
    pub fn is_dry_run(&self) -> bool {
        self.dry_run.unwrap_or(true)
    }

    /// The minimum age, in days.
    pub fn days(&self) -> Result<u32, AppError> {
        match self.older_than_days.unwrap_or(DAYS_DEFAULT) {
            days @ 1..=DAYS_MAX => Ok(days),
            days => {
                let message = format!("older_than_days is 1 to {DAYS_MAX}, this is {days}");
                Err(AppError::new("server.arguments", message))
            }
        }
    }
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

pub async fn clean(app: &App, caller: &Principal, cleanup: CleanupRequest) -> Result<CleanupFindings, AppError> {
    app.require(caller, Operation::CleanUp)?;
    let (kind, days, dry_run) = (cleanup.cleanup_type, cleanup.days()?, cleanup.is_dry_run());
    let what = if cleanup.include_events { CleanedPart::Executions } else { CleanedPart::Payloads };
    let age = Millis::hours(24 * u64::from(days));
    let statuses = match kind {
        CleanupType::OrphanedPlans => return orphans(app, caller, before(app.now(), age)).await,
        CleanupType::CompletedOld => HistoryFilter::Completed.filter().statuses,
        CleanupType::FailedOld => HistoryFilter::Failed.filter().statuses,
        CleanupType::AllOld => Vec::new(),
    };
    let reason = cleanup.reason.unwrap_or_else(|| format!("{}, older than {days} days", kind.as_str()));
    let rule = CleaningRule { statuses, age, what, reason: Some(reason) };
    let rule = rule.within(app.engine.policy());
    let cleaning = rule.request(caller, &app.tools.redactor(), app.now(), dry_run)?;
    Ok(CleanupFindings::Cleaned(app.upkeep.clean(cleaning).await?))
}

/// What to remove, and after how long without a change.
#[derive(Clone, Debug)]
pub struct CleaningRule {
    /// Statuses of ended executions; empty means all.
    pub statuses: Vec<ExecutionStatus>,
    pub age: Millis,
    pub what: CleanedPart,
    /// Default: names the age.
    pub reason: Option<String>,
}

impl CleaningRule {
    /// The same, but nothing is removed that a limit of the policy still counts.
    #[must_use]
    pub fn within(self, policy: &OperatorPolicy) -> CleaningRule {
        let age = self.age.max(policy.longest_window().unwrap_or_default());
        CleaningRule { age, ..self }
    }

    /// The request to the store. A command that owns the database without a server sends it itself.
    pub fn request(
        &self,
        caller: &Principal,
        redactor: &Redactor,
        now: Timestamp,
        dry_run: bool,
    ) -> Result<CleaningRequest, AppError> {
        check(caller, Operation::CleanUp)?;
        let reason = self.reason.clone().unwrap_or_else(|| format!("untouched for {}", self.age));
        Ok(CleaningRequest {
            tenant: caller.tenant.clone(),
            statuses: self.statuses.clone(),
            untouched_since: before(now, self.age),
            what: self.what,
            dry_run,
            actor: caller.actor(),
            at: now,
            reason: redactor.text(&reason).into_owned(),
        })
    }
}

/// The request to erase payloads of an execution: of some entries, or all.
pub fn erasure(
    caller: &Principal,
    redactor: &Redactor,
    identity: ExecutionIdentity,
    entries: Option<Vec<u64>>,
    reason: &str,
    now: Timestamp,
) -> Result<ErasureRequest, AppError> {
    check(caller, Operation::Erase)?;
    let reason = redactor.text(reason).into_owned();
    Ok(ErasureRequest { identity, entries, actor: caller.actor(), at: now, reason })
}

fn before(now: Timestamp, age: Millis) -> Timestamp {
    Timestamp(now.0.saturating_sub_unsigned(age.0))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::Credential;
    use crate::scope::AccessScope;
    use rutter_core::id::{ExecutionId, TenantId};
    use rutter_core::policy::rule::PolicyRuleDraft;
    use serde_json::json;

    #[test]
    fn reasons_are_redacted_and_rights_checked() {
        let redactor = Redactor::standard().with_secrets([("api".to_owned(), "hunter2-secret".to_owned())]);
        let tenant = TenantId::new("default");
        let owner = Principal::owner(tenant.clone(), "operator");
        let reason = "leaked hunter2-secret".to_owned();
        let (age, what) = (Millis::hours(1), CleanedPart::Payloads);
        let rule = CleaningRule { statuses: Vec::new(), age, what, reason: Some(reason.clone()) };
        let cleaning = rule.request(&owner, &redactor, Timestamp(0), true).unwrap();
        assert!(!cleaning.reason.contains("hunter2"), "{}", cleaning.reason);
        let identity = ExecutionIdentity { tenant, execution: ExecutionId::new("exec_1") };
        let erased = erasure(&owner, &redactor, identity.clone(), None, &reason, Timestamp(0)).unwrap();
        assert!(!erased.reason.contains("hunter2"), "{}", erased.reason);

        let scopes = [AccessScope::Read].into();
        let reader = Principal { scopes, credential: Credential::Link {}, ..owner };
        assert_eq!(rule.request(&reader, &redactor, Timestamp(0), true).unwrap_err().code, "server.not_allowed");
        let refused = erasure(&reader, &redactor, identity, None, &reason, Timestamp(0));
        assert_eq!(refused.unwrap_err().code, "server.not_allowed");
    }

    #[test]
    fn nothing_is_cleaned_that_a_limit_of_the_policy_still_counts() {
        let policy = |rules: serde_json::Value| {
            let drafts: Vec<PolicyRuleDraft> = serde_json::from_value(rules).unwrap();
            OperatorPolicy::read(&drafts).unwrap()
        };
        let limits = policy(json!([
            { "tools": ["a.*"], "limit": { "calls": 1, "per": "3h" } },
            { "tools": ["b.*"], "limit": { "calls": 1, "per": "2h" } },
        ]));
        let denial = policy(json!([{ "tools": ["a.*"], "deny": "no" }]));
        for (hours, policy, within) in [(1, &limits, 3), (4, &limits, 4), (1, &denial, 1)] {
            let (age, what) = (Millis::hours(hours), CleanedPart::Payloads);
            let rule = CleaningRule { statuses: Vec::new(), age, what, reason: None };
            assert_eq!(rule.within(policy).age, Millis::hours(within));
        }
    }
}
