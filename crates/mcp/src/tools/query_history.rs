//! `query_history`: lists executions, newest first.

use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use crate::tools::fit::{compact, fitting};
use rutter_app::error::AppError;
use rutter_app::limits::{ANSWER_BYTES, page_limit};
use rutter_app::principal::McpToolset;
use rutter_app::terse::{bytes, rows};
use rutter_app::view::{ExecutionListView, StepView};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::limits;
use rutter_core::port::query::{
    ExecutionFilter, ExecutionSummary, HistoryFilter, ListCursor, ListPage, PageWalk, Pagination,
};
use rutter_core::text::cut;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const LIMIT_DEFAULT: u32 = 20;
/// Pages to count when the store has no count for the filter.
const COUNTED_PAGES_MAX: usize = 10;
/// Steps of one execution in a list; `query_ledger` has all of them.
const STEPS_MAX: usize = 40;
const SLACK_BYTES: usize = 500;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "query_history",
        title: "Query the history",
        description: "List executions, newest first: recent, incomplete, failed, completed or all; by status, or by \
                      words in plans, decisions and errors (text). Next page: next_cursor.",
        behavior: ToolBehavior::Reads,
        toolsets: &[McpToolset::Default, McpToolset::Journal],
    };
    McpToolDefinition::new::<QueryHistoryArguments, QueryHistoryResult, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QueryHistoryArguments {
    #[serde(default)]
    query_type: HistoryQueryType,
    #[serde(default)]
    status_filter: Vec<String>,
    text: Option<String>,
    /// Default 20.
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    /// Or cursor.
    offset: Option<u32>,
    cursor: Option<String>,
    #[serde(default)]
    include_plans: bool,
    #[serde(default)]
    include_step_details: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum HistoryQueryType {
    #[default]
    Recent,
    Incomplete,
    Failed,
    Completed,
    All,
}

#[derive(Debug, Serialize, JsonSchema)]
struct QueryHistoryResult {
    summary: String,
    next: String,
    query_type: String,
    /// All that match, on all pages.
    total: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    total_is_lower_bound: bool,
    limit: u32,
    offset: u32,
    #[schemars(schema_with = "rows")]
    executions: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

async fn run(request: ToolRequest, input: QueryHistoryArguments) -> Result<ToolAnswer, AppError> {
    let limit = page_limit(input.limit, LIMIT_DEFAULT)?;
    if input.offset.is_some() && input.cursor.is_some() {
        return Err(AppError::new("server.arguments", "give either offset or cursor"));
    }
    let filter = filter(&input)?;
    let (total, total_is_lower_bound) = match &filter {
        Some(filter) => total(&request, filter).await?,
        None => (0, false),
    };
    let found = match filter {
        Some(filter) => {
            let room = ANSWER_BYTES - SLACK_BYTES;
            match skip(&request, &filter, input.offset, input.cursor.clone()).await? {
                Some(after) => list(&request, &input, filter, after, limit, room).await?,
                None => nothing(),
            }
        }
        None => nothing(),
    };
    let bound = if total_is_lower_bound { "at least " } else { "" };
    let next = match &found.next {
        Some(ListCursor(cursor)) => {
            format!("for more: query_history with cursor {cursor:?} and the same filters")
        }
        None if found.items.is_empty() => "nothing; no execution matches".to_owned(),
        None => "query_ledger shows one of them".to_owned(),
    };
    ToolAnswer::done(&QueryHistoryResult {
        summary: format!("{} of {bound}{total} executions", found.items.len()),
        next,
        query_type: input.query_type.as_str().to_owned(),
        total,
        total_is_lower_bound,
        limit,
        offset: input.offset.unwrap_or(0),
        executions: found.items,
        next_cursor: found.next.map(|ListCursor(cursor)| cursor),
    })
}

impl HistoryQueryType {
    fn as_str(self) -> &'static str {
        match self {
            HistoryQueryType::Recent => "recent",
            HistoryQueryType::Incomplete => "incomplete",
            HistoryQueryType::Failed => "failed",
            HistoryQueryType::Completed => "completed",
            HistoryQueryType::All => "all",
        }
    }

    fn history(self) -> HistoryFilter {
        match self {
            HistoryQueryType::Recent => HistoryFilter::Recent,
            HistoryQueryType::Incomplete => HistoryFilter::Incomplete,
            HistoryQueryType::Failed => HistoryFilter::Failed,
            HistoryQueryType::Completed => HistoryFilter::Completed,
            HistoryQueryType::All => HistoryFilter::All,
        }
    }
}

/// `None` when no status is in both the list and the filter.
fn filter(input: &QueryHistoryArguments) -> Result<Option<ExecutionFilter>, AppError> {
    let mut wanted = Vec::new();
    for name in &input.status_filter {
        wanted.push(ExecutionStatus::named(name).map_err(|why| AppError::new("server.arguments", why))?);
    }
    let mut filter = ExecutionFilter { text: input.text.clone(), ..input.query_type.history().filter() };
    if !wanted.is_empty() {
        let of_list = filter.statuses.clone();
        wanted.retain(|status| of_list.is_empty() || of_list.contains(status));
        if wanted.is_empty() {
            return Ok(None);
        }
        filter.statuses = wanted;
    }
    Ok(Some(filter))
}

/// How many match, and whether there may be more.
async fn total(request: &ToolRequest, filter: &ExecutionFilter) -> Result<(u64, bool), AppError> {
    let (query, tenant) = (&request.app.query, &request.principal.tenant);
    if filter.text.is_none() {
        let counts = query.totals(tenant).await?.executions;
        let wanted =
            |name: &str| filter.statuses.is_empty() || filter.statuses.iter().any(|status| status.as_str() == name);
        return Ok((counts.iter().filter(|(name, _)| wanted(name)).map(|(_, count)| count).sum(), false));
    }
    let (mut count, mut walk) = (0, PageWalk::new(limits::PAGE_MAX));
    for _ in 0..COUNTED_PAGES_MAX {
        let Some(page) = walk.next_page() else { break };
        count += walk.take(query.executions(tenant, filter.clone(), page).await?).len() as u64;
    }
    Ok((count, walk.has_more()))
}

/// The first page after `offset`; `None` when the list is shorter.
async fn skip(
    request: &ToolRequest,
    filter: &ExecutionFilter,
    offset: Option<u32>,
    cursor: Option<String>,
) -> Result<Option<Option<ListCursor>>, AppError> {
    let (mut left, mut after) = (offset.unwrap_or(0), cursor.map(ListCursor));
    while left > 0 {
        let page = Pagination { limit: left.min(limits::PAGE_MAX), after };
        let found = request.app.query.executions(&request.principal.tenant, filter.clone(), page).await?;
        left = left.saturating_sub(u32::try_from(found.items.len()).unwrap_or(u32::MAX));
        match found.next {
            None => return Ok(None),
            next => after = next,
        }
    }
    Ok(Some(after))
}

/// As many as requested and fit.
async fn list(
    request: &ToolRequest,
    input: &QueryHistoryArguments,
    filter: ExecutionFilter,
    after: Option<ListCursor>,
    limit: u32,
    room: usize,
) -> Result<ListPage<Value>, AppError> {
    let mut limit = limit;
    loop {
        let page = Pagination { limit, after: after.clone() };
        let found = request.app.query.executions(&request.principal.tenant, filter.clone(), page).await?;
        let (mut items, mut used) = (Vec::new(), 0);
        for summary in &found.items {
            let item = item(request, input, summary).await?;
            used += bytes(&item) + 1;
            items.push(item);
            if used > room {
                break;
            }
        }
        match fitting(&items, room) {
            count if count == found.items.len() => return Ok(ListPage { items, next: found.next }),
            // Queried again with a lower limit, since only the store can make a cursor for that position.
            count => limit = u32::try_from(count).unwrap_or(limit - 1),
        }
    }
}

async fn item(
    request: &ToolRequest,
    input: &QueryHistoryArguments,
    summary: &ExecutionSummary,
) -> Result<Value, AppError> {
    let mut item = json!(ExecutionListView::of(summary));
    if input.include_plans
        && let Some(saved) = request.app.query.plan(&request.principal.tenant, &summary.plan, None).await?
    {
        let steps = saved.plan.steps.iter().take(STEPS_MAX).map(|step| step.id.as_str());
        item["plan"]["goal"] = json!(cut(&saved.plan.goal, 300));
        item["plan"]["description"] = json!(cut(&saved.plan.about.description, 300));
        item["plan"]["steps"] = steps.collect();
    }
    if input.include_step_details {
        let identity = ExecutionIdentity { tenant: request.principal.tenant.clone(), execution: summary.id.clone() };
        let steps = request.app.look(&identity, StepView::all).await?;
        item["steps"] = steps.iter().take(STEPS_MAX).map(StepView::short).collect();
    }
    Ok(compact(item))
}

fn nothing() -> ListPage<Value> {
    ListPage { items: Vec::new(), next: None }
}
