//! The journal: what happened, entry by entry, of one execution or of all.

use crate::api::call::Call;
use crate::api::events::{kinds, party};
use crate::api::executions::{between, found};
use crate::api::reply::{List, Reply};
use crate::api::route::{About, Route};
use crate::fault::Fault;
use crate::mcp::tools::terse::shortened;
use rutter_core::actor::Actor;
use rutter_core::id::ExecutionId;
use rutter_core::journal::event::Record;
use rutter_core::port::query::{EntryFilter, EntrySummary, Listing, Page};
use rutter_core::time::calendar::utc;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::convert::Infallible;

/// Of one payload in a list; the export has all of it.
const PAYLOAD_BYTES_MAX: usize = 16 << 10;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(About::get("/journal", "listEntries", "Entries of all journals, newest first"), all),
        Route::new(
            About::get("/executions/{id}/journal", "getJournal", "The journal of an execution, oldest first")
                .tag("journal"),
            of_execution,
        ),
        Route::new(
            About::get("/executions/{id}/receipt", "getReceipt", "What shows later that an entry was there")
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
    /// The name of whoever acted; with `party`.
    actor: Option<String>,
    /// Whole words of what was said, or went wrong.
    text: Option<String>,
    /// At or after, RFC 3339.
    from: Option<String>,
    /// Before, RFC 3339.
    until: Option<String>,
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Entry")]
struct ToldEntry {
    /// `ledger` in the ledger's own journal.
    execution_id: String,
    seq: u64,
    at: String,
    actor: ToldActor,
    kind: String,
    /// What was said, or what went wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<String>,
    /// The fields of the event, payloads among them; long ones are cut to text.
    event: Map<String, Value>,
    hash: String,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Actor")]
struct ToldActor {
    party: String,
    name: String,
}

async fn all(call: Call, query: JournalQuery) -> Result<Reply<List<ToldEntry>>, Fault> {
    let actor = match (query.party.as_deref(), query.actor) {
        (None, None) => None,
        (Some("rutter"), None) => Some(Actor::rutter()),
        (Some(text), Some(name)) => Some(Actor { party: party(text)?, name: name.into() }),
        _ => return Err(Fault::new("server.arguments", "party and actor belong together")),
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

async fn of_execution(call: Call, query: ExecutionJournalQuery) -> Result<Reply<List<ToldEntry>>, Fault> {
    let identity = call.identity();
    found(&call, &identity).await?;
    let filter = EntryFilter {
        execution: Some(identity.execution),
        kinds: kinds(query.kinds.as_deref())?.into_iter().map(str::to_owned).collect(),
        ..EntryFilter::default()
    };
    let page = call.page(query.limit, query.cursor)?;
    listed(&call, filter, page).await
}

async fn listed(call: &Call, filter: EntryFilter, page: Page) -> Result<Reply<List<ToldEntry>>, Fault> {
    let found = call.desk().query.entries(&call.guest.tenant, filter, page).await?;
    let items = found.items.into_iter().map(ToldEntry::of).collect();
    Ok(call.list(Listing { items, next: found.next }))
}

impl ToldEntry {
    fn of(entry: EntrySummary) -> ToldEntry {
        let Record { at, actor, event } = entry.record;
        let (kind, words) = (event.kind(), event.words());
        let shown = event.try_map::<Value, Infallible>(&mut |payload| {
            Ok(payload.value().map_or_else(|| json!("erased"), |value| shortened(value, PAYLOAD_BYTES_MAX)))
        });
        let Ok(shown) = shown;
        let event = match json!(shown).get_mut(kind).map(Value::take) {
            Some(Value::Object(fields)) => fields,
            _ => Map::new(),
        };
        ToldEntry {
            execution_id: entry.execution.to_string(),
            seq: entry.seq,
            at: utc(at),
            actor: ToldActor {
                party: crate::api::execution::word(&actor.party),
                name: actor.name.to_string(),
            },
            kind: kind.to_owned(),
            words,
            event,
            hash: entry.hash.to_string(),
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Receipt")]
struct ToldReceipt {
    tenant: String,
    execution: String,
    seq: u64,
    hash: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReceiptQuery {
    /// Default: the last entry.
    #[schemars(range(min = 1))]
    seq: Option<u64>,
}

async fn receipt(call: Call, query: ReceiptQuery) -> Result<Reply<ToldReceipt>, Fault> {
    let identity = call.identity();
    found(&call, &identity).await?;
    let receipt = call.desk().proof.receipt(&identity, query.seq).await?;
    Ok(Reply::ok(ToldReceipt {
        tenant: receipt.tenant.to_string(),
        execution: receipt.execution.to_string(),
        seq: receipt.seq,
        hash: receipt.hash.to_string(),
    }))
}
