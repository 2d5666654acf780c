//! `query_ledger`: one execution from its journal, page by page.

use crate::execution_answer::ITEMS_MAX;
use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use crate::tools::fit::{compact, fitting};
use rutter_app::error::AppError;
use rutter_app::limits::{ANSWER_BYTES, page_limit};
use rutter_app::principal::McpToolset;
use rutter_app::terse::{bytes, rows};
use rutter_app::view::{DeliveryView, EntryView, ExecutionView, PayloadDetail, PlanRefView, StepView};
use rutter_app::wording;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::ExecutionSnapshot;
use rutter_core::limits;
use rutter_core::port::query::{EntryFilter, EntrySummary, ListCursor, ListPage, Pagination};
use rutter_core::text::cut;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const LIMIT_DEFAULT: u32 = 50;
const ERROR_CHARS_MAX: usize = 300;
/// Reserve for the page's own fields.
const SLACK_BYTES: usize = 300;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "query_ledger",
        title: "Query the ledger",
        description: "One execution from its journal: status, progress, error; with include_step_details the steps \
                      and their failure policies, with include_events the events in order, page by page \
                      (next_cursor).",
        behavior: ToolBehavior::Reads,
        toolsets: &[McpToolset::Default, McpToolset::Journal],
    };
    McpToolDefinition::new::<QueryLedgerArguments, QueryLedgerResult, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueryLedgerArguments {
    execution_id: String,
    #[serde(default)]
    include_step_details: bool,
    #[serde(default)]
    include_events: bool,
    after_seq: Option<u64>,
    /// Instead of after_seq.
    cursor: Option<String>,
    /// Events; default 50.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct QueryLedgerResult {
    summary: String,
    next: String,
    execution_id: String,
    // The schema omits what other tools return too.
    #[schemars(skip)]
    plan: PlanRefView,
    // Of the plan.
    plan_id: String,
    status: String,
    #[schemars(skip)]
    done: usize,
    #[schemars(skip)]
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_step: Option<String>,
    progress: String,
    opened_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    delivery: DeliveryView,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "rows")]
    steps: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "rows")]
    events: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
    resource_uri: String,
}

async fn run(request: ToolRequest, input: QueryLedgerArguments) -> Result<ToolAnswer, AppError> {
    let limit = page_limit(input.limit, LIMIT_DEFAULT)?;
    if input.after_seq.is_some() && input.cursor.is_some() {
        return Err(AppError::new("server.arguments", "give either after_seq or cursor"));
    }
    // A position or cursor implies that events are wanted.
    let include_events = input.include_events || input.after_seq.is_some() || input.cursor.is_some();
    let identity = request.identity(&input.execution_id);
    let summary = request.app.query.execution(&identity).await?;
    let summary = summary.ok_or_else(|| AppError::missing("execution", &input.execution_id))?;
    let looked = request.app.look(&identity, |execution| (execution.view(), StepView::all(execution)));
    let (view, step_views) = looked.await?;
    let execution = ExecutionView::of(Some(&summary.plan), &view, &request.reader()).short(ITEMS_MAX);
    let mut output = QueryLedgerResult {
        next: wording::next(&view, &request.reader()),
        plan_id: summary.plan.to_string(),
        current_step: current_step(&view),
        progress: format!("{}/{} steps completed", execution.completed, execution.total),
        error: view.failures.first().map(|failed| cut(&failed.to_string(), ERROR_CHARS_MAX)),
        delivery: execution.delivery(),
        summary: execution.summary,
        execution_id: execution.execution_id,
        plan: execution.plan,
        status: execution.status,
        done: execution.done,
        total: execution.total,
        opened_at: execution.opened_at,
        started_at: execution.started_at,
        ended_at: execution.ended_at,
        steps: None,
        events: None,
        next_cursor: None,
        resource_uri: format!("rutter://executions/{}", view.execution),
    };
    let mut room = ANSWER_BYTES.saturating_sub(bytes(&output) + SLACK_BYTES);
    if input.include_step_details {
        let mut steps: Vec<Value> = step_views.iter().map(|step| compact(json!(step))).collect();
        // Steps leave half of the space to events.
        steps.truncate(fitting(&steps, if include_events { room / 2 } else { room }));
        let left_out = view.total - steps.len();
        if left_out > 0 {
            output.summary.push_str(&format!("; {left_out} more steps are in the resource"));
        }
        room = room.saturating_sub(steps.iter().map(bytes).sum::<usize>() + steps.len());
        output.steps = Some(steps);
    }
    if include_events {
        let after = match input.after_seq {
            Some(seq) => EntriesAfter::Seq(seq),
            None => EntriesAfter::Cursor(input.cursor.map(ListCursor)),
        };
        let found = events(&request, &identity, after, limit, room).await?;
        let last = found.items.last().and_then(|event| event["seq"].as_u64()).or(input.after_seq).unwrap_or(0);
        output.resource_uri = format!("rutter://executions/{}/journal?after={last}", view.execution);
        if let Some(ListCursor(cursor)) = found.next {
            output.next = format!("for the events after {last}: query_ledger with cursor {cursor:?}");
            output.next_cursor = Some(cursor);
        }
        output.events = Some(found.items);
    }
    ToolAnswer::done(&output)
}

/// The running step, or the next one.
fn current_step(view: &ExecutionSnapshot) -> Option<String> {
    if view.status.has_ended() {
        return None;
    }
    let under_way = ["running", "retrying", "waiting", "in_doubt", "compensating"];
    let first = |statuses: &[&str]| view.steps.iter().find(|step| statuses.contains(&step.status));
    first(&under_way).or_else(|| first(&["pending"])).map(|step| step.id.to_string())
}

enum EntriesAfter {
    Seq(u64),
    Cursor(Option<ListCursor>),
}

/// As many events as requested and fit. The next cursor is the store's own.
async fn events(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    after: EntriesAfter,
    limit: u32,
    room: usize,
) -> Result<ListPage<Value>, AppError> {
    let after = match after {
        EntriesAfter::Cursor(cursor) => cursor,
        EntriesAfter::Seq(seq) => match skip(request, identity, seq).await? {
            SkippedEntries::To(cursor) => cursor,
            SkippedEntries::All => return Ok(ListPage { items: Vec::new(), next: None }),
        },
    };
    let mut limit = limit;
    loop {
        let found = entries(request, identity, Pagination { limit, after: after.clone() }).await?;
        let events: Vec<Value> = found.items.into_iter().map(event).collect();
        match fitting(&events, room) {
            count if count == events.len() => return Ok(ListPage { items: events, next: found.next }),
            count => limit = u32::try_from(count).unwrap_or(limit - 1),
        }
    }
}

enum SkippedEntries {
    To(Option<ListCursor>),
    /// There are no more.
    All,
}

/// Skips entries: sequence numbers have no gaps, so they are positions.
async fn skip(request: &ToolRequest, identity: &ExecutionIdentity, count: u64) -> Result<SkippedEntries, AppError> {
    let (mut left, mut after) = (count, None);
    while left > 0 {
        let limit = u32::try_from(left).unwrap_or(u32::MAX).min(limits::PAGE_MAX);
        let found = entries(request, identity, Pagination { limit, after }).await?;
        left -= found.items.len() as u64;
        match found.next {
            None => return Ok(SkippedEntries::All),
            next => after = next,
        }
    }
    Ok(SkippedEntries::To(after))
}

async fn entries(
    request: &ToolRequest,
    identity: &ExecutionIdentity,
    page: Pagination,
) -> Result<ListPage<EntrySummary>, AppError> {
    let filter = EntryFilter { execution: Some(identity.execution.clone()), ..EntryFilter::default() };
    Ok(request.app.query.entries(&identity.tenant, filter, page).await?)
}

/// An entry as a sentence, and with the fields of its event.
fn event(entry: EntrySummary) -> Value {
    let mut value = json!(EntryView::of(&entry, PayloadDetail::Whole));
    if let Value::Object(fields) = &mut value {
        // The answer is about one execution, and hashes are in the resource.
        fields.remove("execution_id");
        fields.remove("hash");
    }
    value["event"] = compact(value["event"].take());
    compact(value)
}
