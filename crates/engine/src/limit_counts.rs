//! The calls under the limits of the operator's policy, counted again when the process starts.

use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::journal::event::Event;
use rutter_core::limits::PAGE_MAX;
use rutter_core::plan::Driver;
use rutter_core::policy::OperatorPolicy;
use rutter_core::policy::window::LimitWindows;
use rutter_core::port::Error;
use rutter_core::port::journal::Journal;
use rutter_core::port::query::{EntryFilter, PageWalk, StoreQuery, TimeRange};
use rutter_core::time::Timestamp;
use std::collections::BTreeSet;

/// Reads the calls that still count from the journals of all tenants, newest first, until no older one matters.
pub(crate) async fn recount(
    journal: &dyn Journal,
    query: &dyn StoreQuery,
    policy: &OperatorPolicy,
    now: Timestamp,
) -> Result<LimitWindows, Error> {
    let mut windows = LimitWindows::default();
    let Some(longest) = policy.longest_window() else { return Ok(windows) };
    let since = Timestamp(now.0.saturating_sub_unsigned(longest.0));
    for tenant in query.ledger_tenants().await? {
        let mut counted = BTreeSet::new();
        let mut walk = PageWalk::new(PAGE_MAX);
        while let Some(page) = walk.next_page() {
            let entries = walk.take(query.entries(&tenant, starts(since), page).await?);
            let oldest = entries.last().map(|entry| entry.record.at);
            for entry in entries {
                let is_limited = matches!(&entry.record.event,
                    Event::AttemptStarted { by: Driver::Server, tool, .. } if policy.may_limit(tool));
                // All calls of an execution are counted together: who opened it and how safe a call is are in its
                // journal, not in the entry.
                if is_limited && counted.insert(entry.execution.clone()) {
                    let identity = ExecutionIdentity { tenant: tenant.clone(), execution: entry.execution };
                    count(journal, identity, policy, since, &mut windows).await?;
                }
            }
            if oldest.is_some_and(|oldest| windows.is_settled(policy, &tenant, oldest)) {
                break;
            }
        }
    }
    Ok(windows)
}

fn starts(since: Timestamp) -> EntryFilter {
    let at = TimeRange { from: Some(since), until: None };
    EntryFilter { kinds: vec!["attempt_started".to_owned()], at, ..EntryFilter::default() }
}

async fn count(
    journal: &dyn Journal,
    identity: ExecutionIdentity,
    policy: &OperatorPolicy,
    since: Timestamp,
    windows: &mut LimitWindows,
) -> Result<(), Error> {
    let execution = identity.execution.clone();
    let loaded = match journal.load(&identity).await {
        Ok(loaded) => loaded,
        // It is not driven either; the other executions are.
        Err(error @ Error::Corrupt(_)) => {
            tracing::warn!(%execution, error.code = error.code(), "its calls are not counted: {error}");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    if let Err(error) = Execution::count_calls(identity, &loaded.records, policy, since, windows) {
        tracing::warn!(%execution, "its calls are counted in part: {error}");
    }
    Ok(())
}
