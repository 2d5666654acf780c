//! Subscriptions: one resource at a time for legacy clients, all in one long request for modern ones.

use crate::address::ResourceAddress;
use crate::connection::ClientConnection;
use crate::feed::{ClientInterests, NotificationFeed, NotificationSink};
use crate::guard::error_of;
use crate::resources::missing;
use rmcp::ErrorData;
use rmcp::model::SubscriptionFilter;
use rmcp::service::SubscriptionContext;
use rutter_app::app::App;
use rutter_app::limits::RESOURCES_WATCHED_MAX;
use rutter_app::principal::Principal;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::ExecutionId;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

pub(crate) async fn subscribe(
    app: &App,
    principal: &Principal,
    connection: &ClientConnection,
    uri: &str,
) -> Result<(), ErrorData> {
    let Some(execution) = watchable(uri) else {
        return Err(match ResourceAddress::parse(uri) {
            None => missing(uri),
            Some(_) => {
                let message = "only rutter://executions/{id} and its journal can be subscribed to";
                ErrorData::invalid_params(message, None)
            }
        });
    };
    let identity = ExecutionIdentity { tenant: principal.tenant.clone(), execution: execution.clone() };
    let found = app.query.execution(&identity).await.map_err(|error| error_of(error.into()))?;
    if found.is_none() {
        return Err(missing(uri));
    }
    if connection.watch(uri, execution) { Ok(()) } else { Err(too_many()) }
}

/// The part of a filter that can be subscribed. Whether an execution exists is checked later: this cannot wait.
pub(crate) fn accepted(connection: &ClientConnection, requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris: BTreeSet<&String> = requested.resource_subscriptions.iter().flatten().collect();
    let uris = uris.into_iter().filter(|uri| watchable(uri).is_some());
    let uris: Vec<String> = uris.take(connection.permits_left()).cloned().collect();
    let mut accepted = SubscriptionFilter::new();
    accepted.resources_list_changed = requested.resources_list_changed;
    accepted.resource_subscriptions = Some(uris);
    accepted
}

/// Sends notifications until the client ends the request.
pub(crate) async fn listen(
    app: &Arc<App>,
    principal: &Principal,
    connection: &ClientConnection,
    context: &SubscriptionContext,
) -> Result<(), ErrorData> {
    let filter = context.accepted();
    let uris: BTreeSet<String> = filter.resource_subscriptions.iter().flatten().cloned().collect();
    let _places = connection.try_acquire(uris.len()).ok_or_else(too_many)?;
    let watched = uris.into_iter().filter_map(|uri| watchable(&uri).map(|execution| (uri, (execution, None))));
    let mut interests = ClientInterests::new(filter.resources_list_changed == Some(true));
    interests.resources.extend(watched);
    let feed = NotificationFeed {
        app: Arc::clone(app),
        tenant: principal.tenant.clone(),
        interests: Arc::new(Mutex::new(interests)),
        sink: NotificationSink::Modern(context.sink().clone()),
    };
    tokio::select! {
        () = feed.run(app.updates()) => {}
        () = context.cancelled() => {}
    }
    Ok(())
}

/// The execution whose changes a resource shows.
fn watchable(uri: &str) -> Option<ExecutionId> {
    match ResourceAddress::parse(uri)? {
        ResourceAddress::Execution(id) | ResourceAddress::Journal(id, _) => Some(id),
        _ => None,
    }
}

fn too_many() -> ErrorData {
    let message = format!("a connection watches at most {RESOURCES_WATCHED_MAX} resources; unsubscribe another first");
    ErrorData::invalid_params(message, None)
}
