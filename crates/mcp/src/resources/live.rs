//! Executions, journals and plans as resources: the same data as in tool results, but in full.

use super::{JSON, YAML};
use crate::address::ResourceAddress;
use rmcp::model::ResourceContents;
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::plans::saved_plan;
use rutter_app::principal::Principal;
use rutter_app::view::{EntryView, ExecutionView, PayloadDetail, StepView};
use rutter_app::wording;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::id::{ExecutionId, PlanId};
use rutter_core::limits::PAGE_MAX;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::port::query::{EntryFilter, EntrySummary, PageWalk};
use rutter_core::text::cut;
use serde_json::{Value, json};

/// A longer result is cut in the execution's resource and complete in the step's.
const RESULT_BYTES_MAX: usize = 4 << 10;
/// All results in an execution's resource; the rest is in the steps' resources.
const RESULTS_BYTES_MAX: usize = 200 << 10;
/// The longest payload in an entry of the journal's resource.
const PAYLOAD_BYTES_MAX: usize = 2 << 10;
/// The longest result, which is the journal's own limit.
const WHOLE_BYTES_MAX: usize = 1 << 20;
const ENTRIES_MAX: usize = 100;

pub(super) async fn execution(
    app: &App,
    principal: &Principal,
    id: &ExecutionId,
) -> Result<ResourceContents, AppError> {
    let identity = identity(principal, id);
    app.notice_agent(principal, &identity).await;
    let reader = app.agent_reader();
    let add = move |execution: &Execution, view: &mut ExecutionView| {
        view.next = Some(wording::next(&execution.view(), &reader));
        view.steps = Some(StepView::all(execution));
    };
    let mut value =
        json!(app.execution_with(app.agent_reader(), &identity, RESULTS_BYTES_MAX, RESULT_BYTES_MAX, add).await?);
    value["journal_uri"] = json!(ResourceAddress::Journal(id.clone(), 0).to_string());
    Ok(data(&ResourceAddress::Execution(id.clone()), &value))
}

pub(super) async fn step(
    app: &App,
    principal: &Principal,
    id: &ExecutionId,
    step: &str,
) -> Result<ResourceContents, AppError> {
    let (identity, name) = (identity(principal, id), step.to_owned());
    app.notice_agent(principal, &identity).await;
    let found = app.look(&identity, move |execution| {
        let view = StepView::all(execution).into_iter().find(|step| step.id == name)?;
        let result = execution.result_of(&name).map(|result| short(result, WHOLE_BYTES_MAX));
        let value = json!(StepView { result, ..view });
        Some(value)
    });
    let value = found.await?.ok_or_else(|| AppError::missing("step", step))?;
    Ok(data(&ResourceAddress::Step(id.clone(), step.to_owned()), &value))
}

pub(super) async fn journal(
    app: &App,
    principal: &Principal,
    id: &ExecutionId,
    after: u64,
) -> Result<ResourceContents, AppError> {
    let missing = || AppError::missing("execution", id.as_str());
    let summary = app.query.execution(&identity(principal, id)).await?.ok_or_else(missing)?;
    let entries = entries(app, principal, id, after).await?;
    let last = entries.last().map_or(after, |entry| entry.seq);
    let next = (last < summary.entries).then(|| ResourceAddress::Journal(id.clone(), last).to_string());
    let view = |entry| EntryView::of(entry, PayloadDetail::Within(PAYLOAD_BYTES_MAX));
    let value = json!({
        "execution_id": id,
        "entries_in_all": summary.entries,
        "entries": entries.iter().map(view).collect::<Vec<EntryView>>(),
        "next": next,
    });
    Ok(data(&ResourceAddress::Journal(id.clone(), after), &value))
}

/// The store has its own cursors, so the entries before are skipped in large pages.
async fn entries(
    app: &App,
    principal: &Principal,
    id: &ExecutionId,
    after: u64,
) -> Result<Vec<EntrySummary>, AppError> {
    let filter = EntryFilter { execution: Some(id.clone()), ..EntryFilter::default() };
    let wanted = after.saturating_add(ENTRIES_MAX as u64).min(PAGE_MAX.into());
    let (mut found, mut walk) = (Vec::new(), PageWalk::new(wanted as u32));
    while found.len() < ENTRIES_MAX
        && let Some(page) = walk.next_page()
    {
        let entries = walk.take(app.query.entries(&principal.tenant, filter.clone(), page).await?);
        found.extend(entries.into_iter().filter(|entry| entry.seq > after));
    }
    found.truncate(ENTRIES_MAX);
    Ok(found)
}

pub(super) async fn plan(
    app: &App,
    principal: &Principal,
    id: &PlanId,
    revision: Option<u32>,
) -> Result<ResourceContents, AppError> {
    let saved = saved_plan(app, &principal.tenant, id.as_str(), revision).await?;
    let mime = match saved.plan.format {
        DocumentFormat::Json => JSON,
        DocumentFormat::Yaml => YAML,
    };
    // The address contains the revision, so that a client that stores the text knows which one it is.
    let address = ResourceAddress::Plan(saved.summary.id, Some(saved.summary.revision));
    let source = String::from_utf8_lossy(&saved.plan.source);
    Ok(ResourceContents::text(source, address.to_string()).with_mime_type(mime))
}

fn identity(principal: &Principal, id: &ExecutionId) -> ExecutionIdentity {
    ExecutionIdentity { tenant: principal.tenant.clone(), execution: id.clone() }
}

fn data(address: &ResourceAddress, value: &Value) -> ResourceContents {
    ResourceContents::text(value.to_string(), address.to_string()).with_mime_type(JSON)
}

/// The value, or its beginning and its size.
fn short(value: &Value, bytes_max: usize) -> Value {
    let text = value.to_string();
    match text.len() > bytes_max {
        true => json!({ "begins": cut(&text, bytes_max / 4), "bytes": text.len() }),
        false => value.clone(),
    }
}
