//! Journal entries of one execution or of all.

use crate::events::{kinds, party};
use crate::executions::{between, find_summary};
use crate::reply::{ApiReply, ListReply};
use crate::request::ApiRequest;
use crate::route::{ApiRoute, RouteSpec};
use rutter_app::error::AppError;
use rutter_app::view::{EntryView, PayloadDetail, ReceiptView};
use rutter_core::actor::Actor;
use rutter_core::id::ExecutionId;
use rutter_core::port::query::{EntryFilter, ListPage, Pagination};
use schemars::JsonSchema;
use serde::Deserialize;

/// Size limit of one payload in a list; the export has all of it.
const PAYLOAD_BYTES_MAX: usize = 16 << 10;

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        ApiRoute::new(RouteSpec::get("/journal", "listEntries", "Entries of all journals, newest first"), all),
        ApiRoute::new(
            RouteSpec::get("/executions/{id}/journal", "getJournal", "The journal of an execution, oldest first")
                .tag("journal"),
            of_execution,
        ),
        ApiRoute::new(
            RouteSpec::get(
                "/executions/{id}/receipt",
                "getReceipt",
                "A receipt that proves later that an entry existed",
            )
            .tag("journal"),
            receipt,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct JournalQuery {
    execution: Option<String>,
    /// Kinds of events, separated by commas.
    kinds: Option<String>,
    /// rutter, agent or person; with `actor`.
    party: Option<String>,
    /// The name of the actor; with `party`.
    actor: Option<String>,
    /// Whole words of reasons, decisions or errors.
    text: Option<String>,
    /// At or after, RFC 3339.
    from: Option<String>,
    /// Before, RFC 3339.
    until: Option<String>,
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    cursor: Option<String>,
}

async fn all(call: ApiRequest, query: JournalQuery) -> Result<ApiReply<ListReply<EntryView>>, AppError> {
    let actor = match (query.party.as_deref(), query.actor) {
        (None, None) => None,
        (Some("rutter"), None) => Some(Actor::rutter()),
        (Some(text), Some(name)) => Some(Actor::new(party(text)?, &name)),
        _ => return Err(AppError::new("server.arguments", "expected both party and actor, or neither")),
    };
    let filter = EntryFilter {
        execution: query.execution.as_deref().map(ExecutionId::new),
        kinds: kinds(query.kinds.as_deref())?.into_iter().map(str::to_owned).collect(),
        actor,
        at: between(query.from.as_deref(), query.until.as_deref())?,
        text: query.text,
    };
    let page = call.page(query.limit, query.cursor)?;
    listed(&call, filter, page).await
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecutionJournalQuery {
    /// Kinds of events, separated by commas.
    kinds: Option<String>,
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    cursor: Option<String>,
}

async fn of_execution(
    call: ApiRequest,
    query: ExecutionJournalQuery,
) -> Result<ApiReply<ListReply<EntryView>>, AppError> {
    let identity = call.identity();
    find_summary(&call, &identity).await?;
    let filter = EntryFilter {
        execution: Some(identity.execution),
        kinds: kinds(query.kinds.as_deref())?.into_iter().map(str::to_owned).collect(),
        ..EntryFilter::default()
    };
    let page = call.page(query.limit, query.cursor)?;
    listed(&call, filter, page).await
}

async fn listed(
    call: &ApiRequest,
    filter: EntryFilter,
    page: Pagination,
) -> Result<ApiReply<ListReply<EntryView>>, AppError> {
    let found = call.app().query.entries(&call.principal.tenant, filter, page).await?;
    let items =
        found.items.iter().map(|entry| EntryView::of(entry, PayloadDetail::Within(PAYLOAD_BYTES_MAX))).collect();
    Ok(call.list(ListPage { items, next: found.next }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReceiptQuery {
    /// Default: the last entry.
    #[schemars(range(min = 1))]
    seq: Option<u64>,
}

async fn receipt(call: ApiRequest, query: ReceiptQuery) -> Result<ApiReply<ReceiptView>, AppError> {
    let identity = call.identity();
    find_summary(&call, &identity).await?;
    let receipt = call.app().receipt(&identity, query.seq).await?;
    Ok(ApiReply::ok(ReceiptView::of(&receipt)))
}
