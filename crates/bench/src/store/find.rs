//! The usual queries, each many times: their cost must not grow with the database.

use super::executions::TENANT;
use rutter_core::actor::Actor;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::port::journal::Journal;
use rutter_core::port::query::{EntryFilter, ExecutionFilter, Pagination, StoreQuery, TimeRange};
use rutter_core::port::{Error, StoreFuture};
use rutter_core::time::Timestamp;
use rutter_store::SqliteStore;
use std::time::Instant;

const ROUNDS: usize = 101;
const LIMIT: u32 = 20;

/// Returns the median of each query, in milliseconds.
pub(super) async fn medians(store: &SqliteStore) -> Result<Vec<(&'static str, f64)>, Error> {
    let tenant = TenantId::new(TENANT);
    let page = || Pagination::first(LIMIT);
    let executions = |filter: ExecutionFilter| count(store.executions(&tenant, filter, page()));
    let entries = |filter: EntryFilter| count(store.entries(&tenant, filter, page()));
    let all = ExecutionFilter::default;
    let any = EntryFilter::default;
    let identity =
        ExecutionIdentity { tenant: tenant.clone(), execution: ExecutionId::new(&format!("exec_{:026}", 17)) };
    let short = TimeRange { from: Some(Timestamp(1_790_000_000_010)), until: Some(Timestamp(1_790_000_000_040)) };

    let mut medians = Vec::new();
    let mut add = |what, median| medians.push((what, median));
    add("newest executions", median(|| executions(all())).await?);
    let statuses = vec![ExecutionStatus::Pending, ExecutionStatus::Failed];
    add("executions by status", median(|| executions(ExecutionFilter { statuses: statuses.clone(), ..all() })).await?);
    let plan = Some(PlanId::new("plan_bench"));
    add("executions by plan", median(|| executions(ExecutionFilter { plan: plan.clone(), ..all() })).await?);
    let tag = Some("bench".to_owned());
    add("executions by tag", median(|| executions(ExecutionFilter { tag: tag.clone(), ..all() })).await?);
    add("executions by time", median(|| executions(ExecutionFilter { opened: short, ..all() })).await?);
    add("newest entries", median(|| entries(any())).await?);
    let kinds = |kind: &str| vec![kind.to_owned()];
    add(
        "entries by frequent type",
        median(|| entries(EntryFilter { kinds: kinds("attempt_started"), ..any() })).await?,
    );
    add("entries by rare type", median(|| entries(EntryFilter { kinds: kinds("decision_recorded"), ..any() })).await?);
    let actor = Some(Actor::agent("bench"));
    add("entries by actor", median(|| entries(EntryFilter { actor: actor.clone(), ..any() })).await?);
    add("entries by time", median(|| entries(EntryFilter { at: short, ..any() })).await?);
    let execution = Some(identity.execution.clone());
    add("entries of an execution", median(|| entries(EntryFilter { execution: execution.clone(), ..any() })).await?);
    let text = Some("stock low".to_owned());
    add("entries by words", median(|| entries(EntryFilter { text: text.clone(), ..any() })).await?);
    add("one execution", median(|| found(store.execution(&identity))).await?);
    add("totals", median(|| found(store.totals(&tenant))).await?);
    add("load an execution", median(|| found(store.load(&identity))).await?);
    Ok(medians)
}

async fn count<T>(listing: StoreFuture<'_, rutter_core::port::query::ListPage<T>>) -> Result<(), Error> {
    match listing.await?.items.is_empty() {
        true => Err(Error::Invalid("the query found nothing".to_owned())),
        false => Ok(()),
    }
}

async fn found<T>(answer: StoreFuture<'_, T>) -> Result<(), Error> {
    answer.await.map(|_| ())
}

async fn median<F: Future<Output = Result<(), Error>>>(ask: impl Fn() -> F) -> Result<f64, Error> {
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        ask().await?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(times[ROUNDS / 2].as_secs_f64() * 1_000.0)
}
