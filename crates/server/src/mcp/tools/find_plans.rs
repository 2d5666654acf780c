//! `find_plans`: saved plans by words, name or tag, or one of them whole.

use crate::deed::plan::no_plan;
use crate::fault::Fault;
use crate::guest::Toolset;
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::terse::{fitting, object, rows, shortened};
use crate::mcp::visit::Visit;
use crate::words::cut;
use rutter_core::id::PlanId;
use rutter_core::port::query::{Cursor, Page, PlanFilter, PlanSummary};
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

pub(super) fn tool() -> Tool {
    let about = About {
        name: "find_plans",
        title: "Find saved plans",
        description: "Search saved plans by words, name or tag, newest first. With `plan_id`: that plan with its \
                      source. Use before writing a plan anew.",
        nature: Nature::Reads,
        toolsets: &[Toolset::Default],
    };
    Tool::new::<Input, Output, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// Whole words, all of them.
    text: Option<String>,
    /// Exact.
    name: Option<String>,
    tag: Option<String>,
    plan_id: Option<String>,
    #[schemars(range(max = 20))]
    limit: Option<u32>,
    /// From an earlier answer, with the same filter.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Output {
    summary: String,
    next: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "rows")]
    plans: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    // The one that was asked for.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schemars(schema_with = "object")]
    plan: Value,
}

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    match &input.plan_id {
        Some(id) => one(&visit, &PlanId::new(id)).await,
        None => search(&visit, input).await,
    }
}

async fn search(visit: &Visit, input: Input) -> Result<Answer, Fault> {
    let filter = PlanFilter { name: input.name, tag: input.tag, text: input.text };
    let limit = input.limit.unwrap_or(PLANS_DEFAULT).clamp(1, PLANS_MAX);
    let (query, tenant) = (&visit.desk.query, &visit.guest.tenant);
    let mut page = Page { limit, after: input.cursor.map(Cursor) };
    let mut listing = query.plans(tenant, filter.clone(), page.clone()).await?;
    let mut plans = fitting(listing.items.iter().map(row), PLANS_BYTES_MAX);
    if plans.len() < listing.items.len() {
        // The cursor must stand where the answer ends.
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
        (0, _) => "no plan fits".to_owned(),
        (count, None) => format!("{count} plans"),
        (count, Some(_)) => format!("{count} plans, and there are more"),
    };
    let cursor = listing.next.map(|cursor| cursor.0);
    Answer::done(&Output { summary, next, plans, cursor, plan: Value::Null })
}

async fn one(visit: &Visit, id: &PlanId) -> Result<Answer, Fault> {
    let saved = visit.desk.query.plan(&visit.guest.tenant, id, None).await?;
    let saved = saved.ok_or_else(|| no_plan(id))?;
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
    Answer::done(&Output {
        summary: format!("{:?}, newest revision {}", saved.summary.name, saved.summary.revision),
        next: format!("execute_plan {}, or save_plan with plan_id to change it", json!({ "plan_id": id })),
        plans: Vec::new(),
        cursor: None,
        plan,
    })
}

fn row(plan: &PlanSummary) -> Value {
    let mut row = json!({
        "plan_id": plan.id,
        "revision": plan.revision,
        "name": cut(&plan.name, GOAL_CHARS_MAX),
        "steps": plan.steps,
        "saved_at": plan.saved_at,
        "by": plan.actor.to_string(),
    });
    if !plan.goal.is_empty() {
        row["goal"] = json!(cut(&plan.goal, GOAL_CHARS_MAX));
    }
    if !plan.tags.is_empty() {
        row["tags"] = json!(plan.tags.iter().take(TAGS_MAX).collect::<Vec<_>>());
    }
    row
}
