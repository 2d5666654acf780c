//! What no entry of the ledger tells: that nothing happens, that nobody answers, and how servers, disk and outbox are.

use super::Watch;
use super::matter::{Concern, Matter};
use super::plans::PlanOf;
use rutter_core::execution::row::Row;
use rutter_core::execution::view::Status;
use rutter_core::id::TenantId;
use rutter_core::limits::PAGE_MAX;
use rutter_core::plan::Driver;
use rutter_core::port;
use rutter_core::port::query::{ExecutionFilter, ExecutionSummary, Page};
use rutter_core::time::Timestamp;
use rutter_core::tool::report::BreakerReport;

/// Executions that go on, or should.
const MOVING: [Status; 3] = [Status::Pending, Status::Running, Status::Compensating];

/// Executions somebody was asked about.
pub(super) async fn waiting(
    watch: &Watch,
    tenant: &TenantId,
    now: Timestamp,
) -> Result<Vec<Matter>, port::Error> {
    let filter = ExecutionFilter { asking: true, ..ExecutionFilter::default() };
    let found = executions(watch, tenant, filter).await?;
    let waits = |execution: &ExecutionSummary| {
        // Where nothing else moves, the last entry is the question.
        let since = if execution.row.status == Status::Waiting { execution.row.last_at } else { now };
        let text = match execution.row.questions {
            1 => "waits for an answer".to_owned(),
            many => format!("waits for {many} answers"),
        };
        of_execution(Concern::WaitingForPerson, execution, since, &text)
    };
    Ok(found.iter().map(waits).collect())
}

/// Executions by when something last happened to them; those that wait for a time to come are left out.
pub(super) async fn silent(
    watch: &Watch,
    tenant: &TenantId,
    now: Timestamp,
) -> Result<Vec<Matter>, port::Error> {
    let filter = ExecutionFilter { statuses: MOVING.to_vec(), ..ExecutionFilter::default() };
    let found = executions(watch, tenant, filter).await?;
    // An agent goes on by itself or not at all; whatever time is to come for its execution is a deadline.
    let has_timer = |row: &Row| row.driver == Driver::Server && row.due_at.is_some_and(|due| due > now);
    let moving = found.iter().filter(|execution| !has_timer(&execution.row));
    let silent = |execution: &ExecutionSummary| {
        let (since, status) = (execution.row.last_at, execution.row.status.as_str());
        of_execution(Concern::ExecutionStuck, execution, since, &format!("is {status}, and nothing happens"))
    };
    Ok(moving.map(silent).collect())
}

pub(super) fn breakers(watch: &Watch) -> Vec<Matter> {
    let open = |report: rutter_core::tool::report::ServerReport| match report.breaker {
        BreakerReport::Closed { .. } => None,
        BreakerReport::Open { since, reason, .. } | BreakerReport::HalfOpen { since, reason } => {
            let text = format!("the server {} is left alone after failures: {reason}", report.server);
            Some(thing(Concern::BreakerOpen, &report.server, since, text, 0))
        }
    };
    watch.ports.tools.report().into_iter().filter_map(open).collect()
}

pub(super) async fn disk(watch: &Watch, now: Timestamp) -> Result<Matter, port::Error> {
    let free = watch.ports.proof.health().await?.free_bytes;
    // Not to the byte: an alert whose words change is written anew.
    let text = format!("about {} MiB are free where the database is", free >> 25 << 5);
    Ok(thing(Concern::DiskLow, "disk", now, text, free))
}

/// Deliveries that were given up, by webhook.
pub(super) async fn dead_letters(
    watch: &Watch,
    tenant: &TenantId,
    now: Timestamp,
) -> Result<Vec<Matter>, port::Error> {
    if watch.ports.outbox.counts(tenant, None).await?.dead == 0 {
        return Ok(Vec::new());
    }
    let mut matters = Vec::new();
    for kept in watch.kept_webhooks(tenant).await? {
        let id = &kept.webhook.id;
        let dead = watch.ports.outbox.counts(tenant, Some(id)).await?.dead;
        if dead > 0 {
            let text = format!("{dead} deliveries to the webhook {id} were given up");
            matters.push(thing(Concern::DeadLetters, id, now, text, dead));
        }
    }
    Ok(matters)
}

pub(super) fn thing(concern: Concern, subject: &str, since: Timestamp, text: String, measure: u64) -> Matter {
    let (subject, since) = (subject.to_owned(), since.into());
    Matter { concern, subject, since, execution: None, plan: None, text, measure, members: Vec::new() }
}

fn of_execution(concern: Concern, found: &ExecutionSummary, since: Timestamp, text: &str) -> Matter {
    let id = found.id.to_string();
    let plan = PlanOf { id: found.plan.to_string(), name: found.name.clone() };
    let matter = thing(concern, &id, since, format!("execution {id} of plan {:?} {text}", plan.name), 0);
    Matter { execution: Some(id), plan: Some(plan), ..matter }
}

async fn executions(
    watch: &Watch,
    tenant: &TenantId,
    filter: ExecutionFilter,
) -> Result<Vec<ExecutionSummary>, port::Error> {
    let mut found = Vec::new();
    let mut page = Page::first(PAGE_MAX);
    loop {
        let listing = watch.ports.query.executions(tenant, filter.clone(), page).await?;
        found.extend(listing.items);
        match listing.next {
            Some(after) => page = Page { limit: PAGE_MAX, after: Some(after) },
            None => return Ok(found),
        }
    }
}
