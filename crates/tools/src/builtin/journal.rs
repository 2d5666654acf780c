//! `journal`: reads the executions, journals and plans of the calling tenant.

use super::builtin_tools::{
    BuiltinEffect, BuiltinTools, invalid, limit, not_done, read, served, store_failed, unknown,
};
use super::moment;
use crate::connector::{ConnectorRequest, ServedTool};
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::id::{ExecutionId, PlanId, TenantId};
use rutter_core::journal::describe::describe;
use rutter_core::port::query::{
    EntryFilter, EntrySummary, ExecutionFilter, ExecutionSummary, Pagination, SavedPlan, StoreQuery,
};
use rutter_core::port::tools::PortFuture;
use rutter_core::time::calendar::utc;
use rutter_core::tool::{CallOutcome, FailureCategory};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

pub(super) struct JournalTools {
    query: Arc<dyn StoreQuery>,
}

impl JournalTools {
    pub fn new(query: Arc<dyn StoreQuery>) -> JournalTools {
        JournalTools { query }
    }

    async fn executions(&self, tenant: &TenantId, asked: ExecutionsArguments) -> Result<Value, CallOutcome> {
        let parse = |status: &str| ExecutionStatus::named(status).map_err(invalid);
        let statuses = asked.status.as_deref().map(parse).transpose()?.into_iter().collect();
        let filter = ExecutionFilter { statuses, ..ExecutionFilter::default() };
        let page = Pagination::first(limit(asked.limit)?);
        let listing = self.query.executions(tenant, filter, page).await.map_err(store_failed)?;
        let executions: Vec<Value> = listing.items.iter().map(execution).collect();
        Ok(json!({ "executions": executions, "more": listing.next.is_some() }))
    }

    async fn entries(&self, tenant: &TenantId, asked: EntriesArguments) -> Result<Value, CallOutcome> {
        let filter = EntryFilter { execution: Some(ExecutionId::new(&asked.execution)), ..EntryFilter::default() };
        let page = Pagination::first(limit(asked.limit)?);
        let listing = self.query.entries(tenant, filter, page).await.map_err(store_failed)?;
        let entries: Vec<Value> = listing.items.iter().map(entry).collect();
        Ok(json!({ "entries": entries, "more": listing.next.is_some() }))
    }

    async fn plan(&self, tenant: &TenantId, asked: PlanArguments) -> Result<Value, CallOutcome> {
        let id = PlanId::new(&asked.id);
        let found = self.query.plan(tenant, &id, None).await.map_err(store_failed)?;
        found
            .map(|saved| plan(&saved))
            .ok_or_else(|| not_done(FailureCategory::NotFound, format!("there is no plan {id}")))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecutionsArguments {
    status: Option<String>,
    limit: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EntriesArguments {
    execution: String,
    limit: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanArguments {
    id: String,
}

impl BuiltinTools for JournalTools {
    fn tools(&self) -> Vec<ServedTool> {
        let limit = json!({ "type": "integer", "minimum": 1, "maximum": 100, "default": 10 });
        let more = json!({ "type": "boolean", "description": "whether there are more than these" });
        vec![
            served(
                "executions",
                "Lists executions of plans, newest first. Use it to find out what was done, what is under way and what \
                 waits for somebody.",
                BuiltinEffect::None,
                json!({ "status": { "type": "string", "enum": ExecutionStatus::ALL.map(ExecutionStatus::as_str) }, "limit": limit }),
                &[],
                json!({ "executions": { "type": "array", "items": { "type": "object" } }, "more": more }),
            ),
            served(
                "entries",
                "Reads the journal of one execution from its beginning: what happened, when, and by whom.",
                BuiltinEffect::None,
                json!({ "execution": { "type": "string", "description": "its id, exec_…" }, "limit": limit }),
                &["execution"],
                json!({ "entries": { "type": "array", "items": { "type": "object" } }, "more": more }),
            ),
            served(
                "plan",
                "Reads the newest revision of a saved plan. Use it before repeating or changing what was planned earlier.",
                BuiltinEffect::None,
                json!({ "id": { "type": "string", "description": "plan_…" } }),
                &["id"],
                json!({
                    "id": { "type": "string" },
                    "revision": { "type": "integer" },
                    "name": { "type": "string" },
                    "goal": { "type": "string" },
                    "source": { "type": "string", "description": "the plan as it was written" },
                }),
            ),
        ]
    }

    fn call(&self, request: ConnectorRequest) -> PortFuture<'_, Result<Value, CallOutcome>> {
        Box::pin(async move {
            let tenant = &request.id.identity.tenant;
            match request.tool.as_str() {
                "executions" => self.executions(tenant, read(&request.parameters)?).await,
                "entries" => self.entries(tenant, read(&request.parameters)?).await,
                "plan" => self.plan(tenant, read(&request.parameters)?).await,
                other => Err(unknown(other)),
            }
        })
    }
}

fn execution(summary: &ExecutionSummary) -> Value {
    json!({
        "id": summary.id,
        "plan": summary.plan,
        "name": summary.name,
        "status": summary.row.status,
        "cause": summary.row.cause,
        "summary": summary.row.summary(),
        "revision": summary.row.revision,
        "steps": summary.row.total,
        "steps_settled": summary.row.settled,
        "questions": summary.row.questions,
        "deviations": summary.row.deviations,
        "opened_at": moment::write(summary.row.opened_at),
        "last_at": moment::write(summary.row.last_at),
        "entries": summary.entries,
    })
}

/// The fields of an entry, under the names that every surface uses.
fn entry(summary: &EntrySummary) -> Value {
    let record = &summary.record;
    json!({
        "execution_id": summary.execution,
        "seq": summary.seq,
        "at": utc(record.at),
        "actor": record.actor,
        "kind": record.event.kind(),
        "text": describe(&record.event).at(record.at).sentence(),
        "event": record.event.fields_with(&Value::clone),
        "hash": summary.hash,
    })
}

fn plan(saved: &SavedPlan) -> Value {
    let summary = &saved.summary;
    json!({
        "id": summary.id,
        "revision": summary.revision,
        "name": summary.name,
        "goal": summary.goal,
        "tags": summary.tags,
        "saved_at": moment::write(summary.saved_at),
        "source": String::from_utf8_lossy(&saved.plan.source),
    })
}
