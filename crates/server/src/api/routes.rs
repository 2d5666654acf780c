//! Every route there is, in the order of the documents.

use crate::api::route::Route;
use crate::api::{
    alerts, analytics, events, executions, journal, keys, ledger, plans, preview, questions, records, replan,
    service, signals, tools, webhooks,
};
use std::sync::LazyLock;

static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let groups = [
        plans::routes(),
        executions::routes(),
        preview::routes(),
        signals::routes(),
        replan::routes(),
        records::routes(),
        questions::routes(),
        events::routes(),
        journal::routes(),
        ledger::routes(),
        tools::routes(),
        analytics::routes(),
        webhooks::routes(),
        alerts::routes(),
        keys::routes(),
        service::routes(),
    ];
    groups.into_iter().flatten().collect()
});

pub(crate) fn all() -> &'static [Route] {
    &ROUTES
}
