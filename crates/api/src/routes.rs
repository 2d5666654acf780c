//! The table of routes, in the order of the documents.

use crate::route::ApiRoute;
use crate::{
    alerts, analytics, events, executions, journal, keys, ledger, plans, preview, questions, records, replan, service,
    signals, templates, tools, webhooks,
};
use std::sync::LazyLock;

static ROUTES: LazyLock<Vec<ApiRoute>> = LazyLock::new(|| {
    let groups = [
        plans::routes(),
        templates::routes(),
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

pub(crate) fn all() -> &'static [ApiRoute] {
    &ROUTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use rutter_app::rights::Operation;

    #[test]
    fn every_route_that_changes_something_names_its_right() {
        for route in all().iter().filter(|route| !route.about.is_read()) {
            // The verb of a signal has its own scope.
            let is_signal = route.about.operation == "sendSignal";
            assert_eq!(route.about.right == Some(Operation::Read), is_signal, "{}", route.about.path);
        }
    }
}
