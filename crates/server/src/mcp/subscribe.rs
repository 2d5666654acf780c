//! Watching executions: one address at a time in the older era, all in one long request in the newer one.

use crate::desk::Desk;
use crate::guest::Guest;
use crate::limits::RESOURCES_WATCHED_MAX;
use crate::mcp::address::Address;
use crate::mcp::connection::Connection;
use crate::mcp::error_of;
use crate::mcp::feed::{Feed, Interests, Sink};
use crate::mcp::resources::missing;
use rmcp::ErrorData;
use rmcp::model::SubscriptionFilter;
use rmcp::service::SubscriptionContext;
use rutter_core::execution::Identity;
use rutter_core::id::ExecutionId;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

pub(crate) async fn subscribe(
    desk: &Desk,
    guest: &Guest,
    connection: &Connection,
    uri: &str,
) -> Result<(), ErrorData> {
    let Some(execution) = watchable(uri) else {
        return Err(match Address::parse(uri) {
            None => missing(uri),
            Some(_) => {
                let message = "only rutter://executions/{id} and its journal tell of changes";
                ErrorData::invalid_params(message, None)
            }
        });
    };
    let identity = Identity { tenant: guest.tenant.clone(), execution: execution.clone() };
    let found = desk.query.execution(&identity).await.map_err(|error| error_of(error.into()))?;
    if found.is_none() {
        return Err(missing(uri));
    }
    if connection.watch(uri, execution) { Ok(()) } else { Err(too_many()) }
}

/// What of a wish can be told of. Whether there is such an execution shows only later: there is no waiting here.
pub(crate) fn accepted(connection: &Connection, requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris: BTreeSet<&String> = requested.resource_subscriptions.iter().flatten().collect();
    let uris = uris.into_iter().filter(|uri| watchable(uri).is_some());
    let uris: Vec<String> = uris.take(connection.places_left()).cloned().collect();
    let mut accepted = SubscriptionFilter::new();
    accepted.resources_list_changed = requested.resources_list_changed;
    accepted.resource_subscriptions = Some(uris);
    accepted
}

/// Tells until the client has heard enough.
pub(crate) async fn listen(
    desk: &Arc<Desk>,
    guest: &Guest,
    connection: &Connection,
    context: &SubscriptionContext,
) -> Result<(), ErrorData> {
    let filter = context.accepted();
    let uris: BTreeSet<String> = filter.resource_subscriptions.iter().flatten().cloned().collect();
    let _places = connection.places(uris.len()).ok_or_else(too_many)?;
    let watched =
        uris.into_iter().filter_map(|uri| watchable(&uri).map(|execution| (uri, (execution, None))));
    let mut interests = Interests::new(filter.resources_list_changed == Some(true));
    interests.resources.extend(watched);
    let feed = Feed {
        desk: Arc::clone(desk),
        tenant: guest.tenant.clone(),
        interests: Arc::new(Mutex::new(interests)),
        sink: Sink::Modern(context.sink().clone()),
    };
    tokio::select! {
        () = feed.run(desk.engine.listen()) => {}
        () = context.cancelled() => {}
    }
    Ok(())
}

/// The execution an address tells of.
fn watchable(uri: &str) -> Option<ExecutionId> {
    match Address::parse(uri)? {
        Address::Execution(id) | Address::Journal(id, _) => Some(id),
        _ => None,
    }
}

fn too_many() -> ErrorData {
    let message =
        format!("a connection watches at most {RESOURCES_WATCHED_MAX} resources; give up another first");
    ErrorData::invalid_params(message, None)
}
