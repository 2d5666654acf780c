//! `find_plans`: searches saved plans by words, name or tag, or returns one of them.

use crate::tool::{McpToolDefinition, ToolAnswer, ToolBehavior, ToolSpec};
use crate::tool_request::ToolRequest;
use rutter_app::error::AppError;
use rutter_app::plans::saved_plan;
use rutter_app::principal::McpToolset;
use rutter_app::terse::{fitting, object, rows, shortened};
use rutter_app::view::PlanView;
use rutter_core::port::query::{ListCursor, Pagination, PlanFilter, PlanSummary};
use rutter_core::text::cut;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

const PLANS_DEFAULT: u32 = 10;
const PLANS_MAX: u32 = 20;
const GOAL_CHARS_MAX: usize = 120;
const TAGS_MAX: usize = 5;
const PLANS_BYTES_MAX: usize = 7_000;
/// A longer source is left to the resource.
const SOURCE_BYTES_MAX: usize = 6 << 10;

pub(super) fn tool() -> McpToolDefinition {
    let about = ToolSpec {
        name: "find_plans",
        title: "Find saved plans",
        description: "Search saved plans by words, name or tag, newest first. With `plan_id`: that plan with its \
                      source. Use before writing a new plan.",
        behavior: ToolBehavior::Reads,
        toolsets: &[McpToolset::Default],
    };
    McpToolDefinition::new::<FindPlansArguments, FindPlansResult, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FindPlansArguments {
    /// Words, or their beginnings, also of tool names.
    text: Option<String>,
    /// Exact.
    name: Option<String>,
    tag: Option<String>,
    /// Or its name.
    plan_id: Option<String>,
    #[schemars(range(max = 20))]
    limit: Option<u32>,
    /// From an earlier answer, with the same filter.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct FindPlansResult {
    summary: String,
    next: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "rows")]
    plans: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    // The requested plan.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "object")]
    plan: Value,
}

async fn run(request: ToolRequest, input: FindPlansArguments) -> Result<ToolAnswer, AppError> {
    match &input.plan_id {
        Some(plan) => one(&request, plan).await,
        None => search(&request, input).await,
    }
}

async fn search(request: &ToolRequest, input: FindPlansArguments) -> Result<ToolAnswer, AppError> {
    let filter = PlanFilter { archived: false, name: input.name, tag: input.tag, text: input.text };
    let limit = input.limit.unwrap_or(PLANS_DEFAULT).clamp(1, PLANS_MAX);
    let (query, tenant) = (&request.app.query, &request.principal.tenant);
    let mut page = Pagination { limit, after: input.cursor.map(ListCursor) };
    let mut listing = query.plans(tenant, filter.clone(), page.clone()).await?;
    let mut plans = fitting(listing.items.iter().map(row), PLANS_BYTES_MAX);
    if plans.len() < listing.items.len() {
        // The cursor must match the end of the shortened list.
        page.limit = u32::try_from(plans.len()).unwrap_or(limit).max(1);
        listing = query.plans(tenant, filter, page).await?;
        plans = listing.items.iter().map(row).collect();
    }
    let next = match (listing.items.first(), &listing.next) {
        (None, _) => "save_plan, or find_plans with fewer or other words".to_owned(),
        (Some(first), more) => {
            let more = if more.is_some() { "; more with `cursor`" } else { "" };
            format!("execute_plan {} or preview it{more}", json!({ "plan_id": first.id }))
        }
    };
    let summary = match (plans.len(), &listing.next) {
        (0, _) => "no plan matches".to_owned(),
        (count, None) => format!("{count} plans"),
        (count, Some(_)) => format!("{count} plans, more available"),
    };
    let cursor = listing.next.map(|cursor| cursor.0);
    ToolAnswer::done(&FindPlansResult { summary, next, plans, cursor, plan: Value::Null })
}

async fn one(request: &ToolRequest, plan: &str) -> Result<ToolAnswer, AppError> {
    let saved = saved_plan(&request.app, &request.principal.tenant, plan, None).await?;
    let id = &saved.summary.id;
    let mut plan = row(&saved.summary);
    let source = &saved.plan.source;
    plan["source"] = match source.len() <= SOURCE_BYTES_MAX {
        true => json!(String::from_utf8_lossy(source)),
        false => json!(format!("{} bytes; read rutter://plans/{id}", source.len())),
    };
    if let Some(inputs) = &saved.plan.inputs
        && source.len() > SOURCE_BYTES_MAX
    {
        plan["inputs"] = shortened(inputs, SOURCE_BYTES_MAX / 4);
    }
    ToolAnswer::done(&FindPlansResult {
        summary: match saved.summary.is_archived {
            false => format!("{:?}, revision {}", saved.summary.name, saved.summary.revision),
            true => format!("{:?} is archived, revision {}", saved.summary.name, saved.summary.revision),
        },
        next: match saved.summary.is_archived {
            false => format!("execute_plan {}, or save_plan with plan_id to change it", json!({ "plan_id": id })),
            true => "save_plan under another name, or let the operator restore it".to_owned(),
        },
        plans: Vec::new(),
        cursor: None,
        plan,
    })
}

fn row(plan: &PlanSummary) -> Value {
    let mut view = PlanView::of(plan);
    view.name = cut(&view.name, GOAL_CHARS_MAX);
    view.goal = cut(&view.goal, GOAL_CHARS_MAX);
    view.tags.truncate(TAGS_MAX);
    let mut row = json!(view);
    if let Value::Object(fields) = &mut row {
        fields.remove("hash");
    }
    row
}
