//! `query_history`: the executions there have been, newest first.

use crate::fault::Fault;
use crate::guest::Toolset;
use crate::limits::ANSWER_BYTES;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::fit::{compact, fitting};
use crate::mcp::tools::query_ledger::limit;
use crate::mcp::tools::terse::{bytes, rows};
use crate::mcp::visit::Visit;
use crate::words::cut;
use rutter_core::execution::Identity;
use rutter_core::execution::view::Status;
use rutter_core::limits;
use rutter_core::port::query::{Cursor, ExecutionFilter, ExecutionSummary, History, Listing, Page};
use rutter_core::time::calendar::utc;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const LIMIT_DEFAULT: u32 = 20;
/// Pages that are counted when nothing keeps the count.
const COUNTED_PAGES_MAX: usize = 10;
/// Steps of one execution in a list; `query_ledger` has all of them.
const STEPS_MAX: usize = 40;
const SLACK_BYTES: usize = 500;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "query_history",
        title: "Query the history",
        description: "Executions there have been, newest first: recent, incomplete, failed, completed or all; by status, or by \
                      words in plans, decisions and errors (text). Go on with next_cursor.",
        nature: Nature::Reads,
        toolsets: &[Toolset::Default, Toolset::Journal],
    };
    Tool::new::<Input, Output, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    #[serde(default)]
    query_type: QueryType,
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
enum QueryType {
    #[default]
    Recent,
    Incomplete,
    Failed,
    Completed,
    All,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
    summary: String,
    next: String,
    query_type: String,
    /// All that fit, on whatever page.
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

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let limit = limit(input.limit, LIMIT_DEFAULT)?;
    if input.offset.is_some() && input.cursor.is_some() {
        return Err(Fault::new("server.arguments", "give either offset or cursor"));
    }
    let filter = filter(&input)?;
    let (total, total_is_lower_bound) = match &filter {
        Some(filter) => total(&visit, filter).await?,
        None => (0, false),
    };
    let found = match filter {
        Some(filter) => {
            let room = ANSWER_BYTES - SLACK_BYTES;
            match skip(&visit, &filter, input.offset, input.cursor.clone()).await? {
                Some(after) => list(&visit, &input, filter, after, limit, room).await?,
                None => nothing(),
            }
        }
        None => nothing(),
    };
    let bound = if total_is_lower_bound { "at least " } else { "" };
    let next = match &found.next {
        Some(Cursor(cursor)) => {
            format!("for more: query_history with cursor {cursor:?} and the same filters")
        }
        None if found.items.is_empty() => "nothing; there are none".to_owned(),
        None => "query_ledger tells one of them".to_owned(),
    };
    Answer::done(&Output {
        summary: format!("{} of {bound}{total} executions", found.items.len()),
        next,
        query_type: input.query_type.as_str().to_owned(),
        total,
        total_is_lower_bound,
        limit,
        offset: input.offset.unwrap_or(0),
        executions: found.items,
        next_cursor: found.next.map(|Cursor(cursor)| cursor),
    })
}

impl QueryType {
    fn as_str(self) -> &'static str {
        match self {
            QueryType::Recent => "recent",
            QueryType::Incomplete => "incomplete",
            QueryType::Failed => "failed",
            QueryType::Completed => "completed",
            QueryType::All => "all",
        }
    }

    fn history(self) -> History {
        match self {
            QueryType::Recent => History::Recent,
            QueryType::Incomplete => History::Incomplete,
            QueryType::Failed => History::Failed,
            QueryType::Completed => History::Completed,
            QueryType::All => History::All,
        }
    }
}

/// `None` when no status is in both the list and the filter.
fn filter(input: &Input) -> Result<Option<ExecutionFilter>, Fault> {
    let mut wanted = Vec::new();
    for name in &input.status_filter {
        let known = || Status::ALL.map(Status::as_str).join(", ");
        let unknown =
            || Fault::new("server.arguments", format!("there is no status {name:?}; there are {}", known()));
        wanted.push(Status::parse(name).ok_or_else(unknown)?);
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

/// How many fit, and whether there may be more.
async fn total(visit: &Visit, filter: &ExecutionFilter) -> Result<(u64, bool), Fault> {
    let (query, tenant) = (&visit.desk.query, &visit.guest.tenant);
    if filter.text.is_none() {
        let counts = query.totals(tenant).await?.executions;
        let wanted = |name: &str| {
            filter.statuses.is_empty() || filter.statuses.iter().any(|status| status.as_str() == name)
        };
        return Ok((counts.iter().filter(|(name, _)| wanted(name)).map(|(_, count)| count).sum(), false));
    }
    let (mut count, mut after) = (0, None);
    for _ in 0..COUNTED_PAGES_MAX {
        let found = query.executions(tenant, filter.clone(), Page { limit: limits::PAGE_MAX, after }).await?;
        count += found.items.len() as u64;
        match found.next {
            None => return Ok((count, false)),
            next => after = next,
        }
    }
    Ok((count, true))
}

/// Where the list begins; `None` when it ends before that.
async fn skip(
    visit: &Visit,
    filter: &ExecutionFilter,
    offset: Option<u32>,
    cursor: Option<String>,
) -> Result<Option<Option<Cursor>>, Fault> {
    let (mut left, mut after) = (offset.unwrap_or(0), cursor.map(Cursor));
    while left > 0 {
        let page = Page { limit: left.min(limits::PAGE_MAX), after };
        let found = visit.desk.query.executions(&visit.guest.tenant, filter.clone(), page).await?;
        left = left.saturating_sub(u32::try_from(found.items.len()).unwrap_or(u32::MAX));
        match found.next {
            None => return Ok(None),
            next => after = next,
        }
    }
    Ok(Some(after))
}

/// As many as are wanted and fit.
async fn list(
    visit: &Visit,
    input: &Input,
    filter: ExecutionFilter,
    after: Option<Cursor>,
    limit: u32,
    room: usize,
) -> Result<Listing<Value>, Fault> {
    let mut limit = limit;
    loop {
        let page = Page { limit, after: after.clone() };
        let found = visit.desk.query.executions(&visit.guest.tenant, filter.clone(), page).await?;
        let (mut items, mut used) = (Vec::new(), 0);
        for summary in &found.items {
            let item = item(visit, input, summary).await?;
            used += bytes(&item) + 1;
            items.push(item);
            if used > room {
                break;
            }
        }
        match fitting(&items, room) {
            count if count == found.items.len() => return Ok(Listing { items, next: found.next }),
            // Asked for again, since only the store knows where the list goes on after so many.
            count => limit = u32::try_from(count).unwrap_or(limit - 1),
        }
    }
}

async fn item(visit: &Visit, input: &Input, summary: &ExecutionSummary) -> Result<Value, Fault> {
    let row = &summary.row;
    let mut item = json!({
        "execution_id": summary.id,
        "plan_id": summary.plan,
        "name": summary.name,
        "status": row.status,
        "driver": row.driver,
        "progress": format!("{}/{} steps", row.settled, row.total),
        "questions": Some(row.questions).filter(|count| *count > 0),
        "events": summary.entries,
        "opened_at": utc(row.opened_at),
        "ended_at": row.status.has_ended().then(|| utc(row.last_at)),
    });
    if input.include_plans
        && let Some(saved) = visit.desk.query.plan(&visit.guest.tenant, &summary.plan, None).await?
    {
        item["plan"] = json!({
            "revision": saved.summary.revision,
            "goal": cut(&saved.plan.goal, 300),
            "description": cut(&saved.plan.about.description, 300),
            "steps": saved.plan.steps.iter().take(STEPS_MAX).map(|step| step.id.as_str()).collect::<Vec<_>>(),
        });
    }
    if input.include_step_details {
        let identity = Identity { tenant: visit.guest.tenant.clone(), execution: summary.id.clone() };
        let view = visit.desk.engine.view(&identity).await?;
        let told = view.steps.iter().take(STEPS_MAX).map(|step| {
            compact(json!({ "id": step.id, "tool": step.tool, "status": step.status,
                "error": step.failure.as_ref().map(|failure| cut(&failure.to_string(), 200)) }))
        });
        item["steps"] = told.collect();
    }
    Ok(compact(item))
}

fn nothing() -> Listing<Value> {
    Listing { items: Vec::new(), next: None }
}
