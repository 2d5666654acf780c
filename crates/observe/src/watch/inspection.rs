//! Conditions that no ledger entry shows: stuck executions, unanswered questions, servers, disk and outbox.

use super::WatchService;
use super::condition::{ActiveCondition, AlertKind};
use super::plans::NamedPlan;
use rutter_core::execution::row::ExecutionProjection;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::TenantId;
use rutter_core::plan::Driver;
use rutter_core::port;
use rutter_core::port::query::{ExecutionFilter, ExecutionSummary};
use rutter_core::time::Timestamp;
use rutter_core::tool::report::BreakerReport;
use rutter_engine::all_pages;

/// Statuses in which an execution should make progress.
const MOVING: [ExecutionStatus; 3] =
    [ExecutionStatus::Pending, ExecutionStatus::Running, ExecutionStatus::Compensating];

/// Executions with open questions.
pub async fn waiting(
    watch: &WatchService,
    tenant: &TenantId,
    now: Timestamp,
) -> Result<Vec<ActiveCondition>, port::Error> {
    let filter = ExecutionFilter { asking: true, ..ExecutionFilter::default() };
    let found = executions(watch, tenant, filter).await?;
    let waits = |execution: &ExecutionSummary| {
        // While the execution waits, the last entry is the question.
        let since = if execution.row.status == ExecutionStatus::Waiting { execution.row.last_at } else { now };
        let text = match execution.row.questions {
            1 => "waits for an answer".to_owned(),
            many => format!("waits for {many} answers"),
        };
        let what = execution.row.cause.as_ref().filter(|_| execution.row.status == ExecutionStatus::Waiting);
        let text = what.map_or(text.clone(), |what| format!("{text}: {what}"));
        of_execution(AlertKind::WaitingForPerson, execution, since, &text)
    };
    Ok(found.iter().map(waits).collect())
}

/// Executions by the time of their last entry, except those waiting for a timer.
pub async fn silent(
    watch: &WatchService,
    tenant: &TenantId,
    now: Timestamp,
) -> Result<Vec<ActiveCondition>, port::Error> {
    let filter = ExecutionFilter { statuses: MOVING.to_vec(), ..ExecutionFilter::default() };
    let found = executions(watch, tenant, filter).await?;
    // An agent's execution has no timers; its `due_at` is a deadline.
    let has_timer = |row: &ExecutionProjection| row.driver == Driver::Server && row.due_at.is_some_and(|due| due > now);
    let moving = found.iter().filter(|execution| !has_timer(&execution.row));
    let silent = |execution: &ExecutionSummary| {
        let (since, status) = (execution.row.last_at, execution.row.status.as_str());
        of_execution(AlertKind::ExecutionStuck, execution, since, &format!("is {status} but makes no progress"))
    };
    Ok(moving.map(silent).collect())
}

pub fn breakers(watch: &WatchService) -> Vec<ActiveCondition> {
    let open = |report: rutter_core::tool::report::ServerReport| match report.breaker {
        BreakerReport::Closed { .. } => None,
        BreakerReport::Open { since, reason, .. } | BreakerReport::HalfOpen { since, reason } => {
            let text = format!("the circuit breaker of server {} is open: {reason}", report.server);
            Some(condition(AlertKind::BreakerOpen, &report.server, since, text, 0))
        }
    };
    watch.ports.tools.report().into_iter().filter_map(open).collect()
}

pub async fn disk(watch: &WatchService, now: Timestamp) -> Result<ActiveCondition, port::Error> {
    let free = watch.ports.proof.health().await?.free_bytes;
    // Rounded, because an alert whose text changes is written again.
    let text = format!("about {} MiB are free on the disk of the database", free >> 25 << 5);
    Ok(condition(AlertKind::DiskLow, "disk", now, text, free))
}

/// Deliveries that failed permanently, by webhook.
pub async fn dead_letters(
    watch: &WatchService,
    tenant: &TenantId,
    now: Timestamp,
) -> Result<Vec<ActiveCondition>, port::Error> {
    if watch.ports.outbox.counts(tenant, None).await?.dead == 0 {
        return Ok(Vec::new());
    }
    let mut conditions = Vec::new();
    for stored in watch.stored_webhooks(tenant).await? {
        let id = &stored.webhook.id;
        let dead = watch.ports.outbox.counts(tenant, Some(id)).await?.dead;
        if dead > 0 {
            let text = format!("{dead} deliveries to webhook {id} failed permanently");
            conditions.push(condition(AlertKind::DeadLetters, id, now, text, dead));
        }
    }
    Ok(conditions)
}

pub fn condition(concern: AlertKind, subject: &str, since: Timestamp, text: String, measure: u64) -> ActiveCondition {
    let (subject, since) = (subject.to_owned(), since.into());
    ActiveCondition {
        concern,
        subject,
        since,
        execution: None,
        plan: None,
        text,
        measure,
        members: Vec::new(),
        agent: None,
    }
}

fn of_execution(concern: AlertKind, found: &ExecutionSummary, since: Timestamp, text: &str) -> ActiveCondition {
    let id = found.id.to_string();
    let plan = NamedPlan { id: found.plan.to_string(), name: found.name.clone() };
    let condition = condition(concern, &id, since, format!("execution {id} of plan {:?} {text}", plan.name), 0);
    ActiveCondition { execution: Some(id), plan: Some(plan), ..condition }
}

async fn executions(
    watch: &WatchService,
    tenant: &TenantId,
    filter: ExecutionFilter,
) -> Result<Vec<ExecutionSummary>, port::Error> {
    let read = |page| watch.ports.query.executions(tenant, filter.clone(), page);
    all_pages(usize::MAX, read).await.map(|(found, _)| found)
}
