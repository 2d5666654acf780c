//! Executions, journals and plans as resources: the same facts as the tools answer, without their brevity.

use super::{JSON, YAML};
use crate::desk::Desk;
use crate::fault::Fault;
use crate::guest::Guest;
use crate::mcp::address::Address;
use crate::mcp::texts;
use crate::words;
use rmcp::model::ResourceContents;
use rutter_core::execution::Identity;
use rutter_core::id::{ExecutionId, PlanId};
use rutter_core::journal::payload::Payload;
use rutter_core::plan::document::Format;
use rutter_core::port::query::{EntryFilter, EntrySummary, Page};
use rutter_core::time::calendar::utc;
use serde_json::{Map, Value, json};
use std::convert::Infallible;

/// A result longer than this is cut in the execution and whole in its step.
const RESULT_BYTES_MAX: usize = 4 << 10;
/// All results of one execution together; the rest is in the steps.
const RESULTS_BYTES_MAX: usize = 200 << 10;
/// What one entry of a journal carries may be so long each.
const PAYLOAD_BYTES_MAX: usize = 2 << 10;
/// A whole result, as long as it may stand in a journal at all.
const WHOLE_BYTES_MAX: usize = 1 << 20;
const ENTRIES_MAX: usize = 100;

pub(super) async fn execution(
    desk: &Desk,
    guest: &Guest,
    id: &ExecutionId,
) -> Result<ResourceContents, Fault> {
    let identity = identity(guest, id);
    let (view, results) = desk
        .engine
        .look(&identity, |execution| {
            let mut left = RESULTS_BYTES_MAX;
            let mut results = Map::new();
            for step in &execution.plan().steps {
                let Some(result) = execution.result_of(step.id.as_str()) else { continue };
                let result = short(result, RESULT_BYTES_MAX.min(left));
                left = left.saturating_sub(result.to_string().len());
                results.insert(step.id.to_string(), result);
            }
            (execution.view(), results)
        })
        .await?;
    let mut value = json!({ "summary": words::summary(&view), "next": words::next(&view) });
    let link = desk.link.get().map(String::as_str);
    let questions = view.questions.iter().map(|ask| {
        // Here, and only here, parameters and schemas are whole.
        let mut question = words::question(id, ask, link);
        for (name, whole) in json!(ask).as_object().cloned().unwrap_or_default() {
            question[name] = whole;
        }
        question
    });
    let questions: Vec<Value> = questions.collect();
    for (name, field) in json!(view).as_object().cloned().unwrap_or_default() {
        value[name] = field;
    }
    value["questions"] = json!(questions);
    value["results"] = Value::Object(results);
    value["times"] = json!({
        "opened": utc(view.opened_at),
        "started": view.started_at.map(utc),
        "last": utc(view.last_at),
        "wakes": view.wake_at.map(utc),
    });
    value["journal"] = json!(Address::Journal(id.clone(), 0).to_string());
    Ok(data(&Address::Execution(id.clone()), &value))
}

pub(super) async fn step(
    desk: &Desk,
    guest: &Guest,
    id: &ExecutionId,
    step: &str,
) -> Result<ResourceContents, Fault> {
    let (identity, name) = (identity(guest, id), step.to_owned());
    let found = desk.engine.look(&identity, move |execution| {
        let view = execution.view().steps.into_iter().find(|step| step.id.as_str() == name)?;
        let mut value = json!(view);
        value["result"] =
            execution.result_of(&name).map_or(Value::Null, |result| short(result, WHOLE_BYTES_MAX));
        Some(value)
    });
    let value = found.await?.ok_or_else(|| Fault::missing("step", step))?;
    Ok(data(&Address::Step(id.clone(), step.to_owned()), &value))
}

pub(super) async fn journal(
    desk: &Desk,
    guest: &Guest,
    id: &ExecutionId,
    after: u64,
) -> Result<ResourceContents, Fault> {
    let missing = || Fault::missing("execution", id.as_str());
    let summary = desk.query.execution(&identity(guest, id)).await?.ok_or_else(missing)?;
    let entries = entries(desk, guest, id, after).await?;
    let last = entries.last().map_or(after, |entry| entry.seq);
    let next = (last < summary.entries).then(|| Address::Journal(id.clone(), last).to_string());
    let value = json!({
        "execution": id,
        "entries_in_all": summary.entries,
        "entries": entries.iter().map(entry).collect::<Vec<Value>>(),
        "next": next,
    });
    Ok(data(&Address::Journal(id.clone(), after), &value))
}

/// The store goes on from cursors of its own, so what comes before is passed over in large pages.
async fn entries(
    desk: &Desk,
    guest: &Guest,
    id: &ExecutionId,
    after: u64,
) -> Result<Vec<EntrySummary>, Fault> {
    let filter = EntryFilter { execution: Some(id.clone()), ..EntryFilter::default() };
    let mut page = Page::first(ENTRIES_MAX as u32);
    let mut found = Vec::new();
    loop {
        if found.is_empty() && after > 0 {
            page.limit =
                u32::try_from(after).unwrap_or(u32::MAX).clamp(page.limit, rutter_core::limits::PAGE_MAX);
        }
        let listing = desk.query.entries(&guest.tenant, filter.clone(), page.clone()).await?;
        found.extend(listing.items.into_iter().filter(|entry| entry.seq > after));
        match listing.next {
            Some(next) if found.len() < ENTRIES_MAX => page.after = Some(next),
            _ => break,
        }
    }
    found.truncate(ENTRIES_MAX);
    Ok(found)
}

fn entry(entry: &EntrySummary) -> Value {
    let EntrySummary { seq, hash, record, .. } = entry;
    let mut each = |payload: Payload| -> Result<Value, Infallible> {
        Ok(match payload {
            Payload::Present(value) => short(&value, PAYLOAD_BYTES_MAX),
            Payload::Erased => json!({ "erased": true }),
        })
    };
    let Ok(event) = record.event.clone().try_map(&mut each);
    json!({
        "seq": seq,
        "time": utc(record.at),
        "actor": record.actor.to_string(),
        "kind": record.event.kind(),
        "event": event,
        "hash": hash,
    })
}

pub(super) async fn plan(
    desk: &Desk,
    guest: &Guest,
    id: &PlanId,
    revision: Option<u32>,
) -> Result<ResourceContents, Fault> {
    let saved = desk.query.plan(&guest.tenant, id, revision).await?;
    let saved = saved.ok_or_else(|| Fault::missing("plan", id.as_str()))?;
    let mime = match saved.plan.format {
        Format::Json => JSON,
        Format::Yaml => YAML,
    };
    // The address names the revision, so that whoever keeps the text knows which one it is.
    let address = Address::Plan(id.clone(), Some(saved.summary.revision));
    let source = String::from_utf8_lossy(&saved.plan.source);
    Ok(ResourceContents::text(source, address.to_string()).with_mime_type(mime))
}

fn identity(guest: &Guest, id: &ExecutionId) -> Identity {
    Identity { tenant: guest.tenant.clone(), execution: id.clone() }
}

fn data(address: &Address, value: &Value) -> ResourceContents {
    ResourceContents::text(value.to_string(), address.to_string()).with_mime_type(JSON)
}

/// The value, or how it begins and how long it is.
fn short(value: &Value, bytes_max: usize) -> Value {
    let text = value.to_string();
    match text.len() > bytes_max {
        true => json!({ "begins": texts::cut(&text, bytes_max / 4), "bytes": text.len() }),
        false => value.clone(),
    }
}
