//! What the journal's own history says of a plan: how often it completed, how long that took, which step failed most.

use crate::desk::Desk;
use crate::fault::Fault;
use rutter_core::execution::Identity;
use rutter_core::execution::view::Status;
use rutter_core::id::{PlanId, StepId, TenantId};
use rutter_core::journal::event::Event;
use rutter_core::port::query::{EntryFilter, ExecutionFilter, Page};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Of one plan, the newest that ended.
const EXECUTIONS_MAX: u32 = 100;
/// Of one execution.
const FAILURES_MAX: u32 = 50;

pub(crate) async fn forecast(desk: &Desk, tenant: &TenantId, plan: &PlanId) -> Result<Value, Fault> {
    let query = &desk.query;
    let statuses = Status::ALL.into_iter().filter(|status| status.has_ended()).collect();
    let filter = ExecutionFilter { plan: Some(plan.clone()), statuses, ..ExecutionFilter::default() };
    let ended = query.executions(tenant, filter, Page::first(EXECUTIONS_MAX)).await?.items;
    if ended.is_empty() {
        return Ok(json!("no history: no execution of this plan has ended yet"));
    }
    let mut failures: BTreeMap<StepId, usize> = BTreeMap::new();
    for execution in &ended {
        let identity = Identity { tenant: tenant.clone(), execution: execution.id.clone() };
        for step in failed(desk, &identity).await? {
            *failures.entry(step).or_default() += 1;
        }
    }
    let completed = || ended.iter().filter(|execution| execution.row.status == Status::Completed);
    let mut spans: Vec<i64> = completed()
        .filter_map(|execution| Some(execution.row.last_at.0 - execution.row.started_at?.0))
        .collect();
    spans.sort_unstable();
    let worst = failures.into_iter().max_by_key(|(_, count)| *count);
    let mut forecast = json!({ "looked_at": ended.len(), "completed": completed().count() });
    if let Some(median) = spans.get(spans.len() / 2) {
        forecast["median_ms_when_completed"] = json!(median);
    }
    if let Some((step, times)) = worst {
        forecast["failed_most"] = json!({ "step": step, "times": times });
    }
    Ok(forecast)
}

/// The steps that failed for good, each time they did.
async fn failed(desk: &Desk, identity: &Identity) -> Result<Vec<StepId>, Fault> {
    let filter = EntryFilter {
        execution: Some(identity.execution.clone()),
        kinds: vec!["failure_handled".to_owned()],
        ..EntryFilter::default()
    };
    let entries = desk.query.entries(&identity.tenant, filter, Page::first(FAILURES_MAX)).await?;
    let steps = entries.items.into_iter().filter_map(|entry| match entry.record.event {
        Event::FailureHandled { step, .. } => Some(step),
        _ => None,
    });
    Ok(steps.collect())
}
