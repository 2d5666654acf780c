//! Every route there is, in the order of the documents.

use crate::api::route::Route;
use crate::api::{
    events, executions, journal, ledger, plans, preview, questions, records, replan, service, signals, tools,
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
        service::routes(),
    ];
    groups.into_iter().flatten().collect()
});

pub(crate) fn all() -> &'static [Route] {
    &ROUTES
}
