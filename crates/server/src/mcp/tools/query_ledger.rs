//! `query_ledger`: one execution as its journal tells it, page by page.

use crate::fault::Fault;
use crate::guest::Toolset;
use crate::limits::{ANSWER_BYTES, PAGE_MAX};
use crate::mcp::tool::{About, Answer, Nature, Tool};
use crate::mcp::tools::fit::{compact, fitting};
use crate::mcp::tools::terse::{bytes, rows};
use crate::mcp::visit::Visit;
use crate::words::{self, cut};
use rutter_core::execution::Identity;
use rutter_core::execution::view::View;
use rutter_core::journal::event::Record;
use rutter_core::limits;
use rutter_core::plan::Plan;
use rutter_core::port::query::{Cursor, EntryFilter, EntrySummary, Listing, Page};
use rutter_core::time::calendar::utc;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::Arc;

const LIMIT_DEFAULT: u32 = 50;
const ERROR_CHARS_MAX: usize = 300;
/// What the page's own fields may still grow by.
const SLACK_BYTES: usize = 300;

pub(super) fn tool() -> Tool {
    let about = About {
        name: "query_ledger",
        title: "Query the ledger",
        description: "One execution as its journal tells it: status, progress, error; with include_step_details the steps \
                      and their failure policies, with include_events what happened, in order, page by page \
                      (next_cursor).",
        nature: Nature::Reads,
        toolsets: &[Toolset::Default, Toolset::Journal],
    };
    Tool::new::<Input, Output, _>(about, run)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
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
struct Output {
    summary: String,
    next: String,
    execution_id: String,
    plan_id: String,
    status: String,
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

async fn run(visit: Visit, input: Input) -> Result<Answer, Fault> {
    let limit = limit(input.limit, LIMIT_DEFAULT)?;
    if input.after_seq.is_some() && input.cursor.is_some() {
        return Err(Fault::new("server.arguments", "give either after_seq or cursor"));
    }
    // Whoever says where to go on wants to read on.
    let include_events = input.include_events || input.after_seq.is_some() || input.cursor.is_some();
    let identity = visit.identity(&input.execution_id);
    let summary = visit.desk.query.execution(&identity).await?;
    let summary = summary.ok_or_else(|| Fault::missing("execution", &input.execution_id))?;
    let looked =
        visit.desk.engine.look(&identity, |execution| (execution.view(), Arc::clone(execution.plan())));
    let (view, plan) = looked.await?;
    let mut output = Output {
        summary: words::summary(&view),
        next: words::next(&view),
        execution_id: view.execution.to_string(),
        plan_id: summary.plan.to_string(),
        status: view.status.as_str().to_owned(),
        current_step: current_step(&view),
        progress: format!("{}/{} steps", view.settled, view.total),
        opened_at: utc(view.opened_at),
        started_at: view.started_at.map(utc),
        ended_at: view.status.has_ended().then(|| utc(view.last_at)),
        error: error(&view),
        steps: None,
        events: None,
        next_cursor: None,
        resource_uri: format!("rutter://executions/{}", view.execution),
    };
    let mut room = ANSWER_BYTES.saturating_sub(bytes(&output) + SLACK_BYTES);
    if input.include_step_details {
        let mut steps = steps(&view, &plan);
        // Steps leave room for what happened.
        steps.truncate(fitting(&steps, if include_events { room / 2 } else { room }));
        let left_out = view.total - steps.len();
        if left_out > 0 {
            output.summary.push_str(&format!("; {left_out} steps are only in the resource"));
        }
        room = room.saturating_sub(steps.iter().map(bytes).sum::<usize>() + steps.len());
        output.steps = Some(steps);
    }
    if include_events {
        let after = match input.after_seq {
            Some(seq) => After::Seq(seq),
            None => After::Cursor(input.cursor.map(Cursor)),
        };
        let found = events(&visit, &identity, after, limit, room).await?;
        let last =
            found.items.last().and_then(|event| event["seq"].as_u64()).or(input.after_seq).unwrap_or(0);
        output.resource_uri = format!("rutter://executions/{}/journal?after={last}", view.execution);
        if let Some(Cursor(cursor)) = found.next {
            output.next = format!("for the events after {last}: query_ledger with cursor {cursor:?}");
            output.next_cursor = Some(cursor);
        }
        output.events = Some(found.items);
    }
    Answer::done(&output)
}

/// How many items one wants at the most.
pub(super) fn limit(given: Option<u32>, default: u32) -> Result<u32, Fault> {
    match given.unwrap_or(default) {
        limit @ 1..=PAGE_MAX => Ok(limit),
        limit => Err(Fault::new("server.arguments", format!("limit is 1 to {PAGE_MAX}, this is {limit}"))),
    }
}

/// The step that is under way, or would be next.
fn current_step(view: &View) -> Option<String> {
    if view.status.has_ended() {
        return None;
    }
    let under_way = ["running", "retrying", "waiting", "in_doubt", "compensating"];
    let first = |statuses: &[&str]| view.steps.iter().find(|step| statuses.contains(&step.status));
    first(&under_way).or_else(|| first(&["pending"])).map(|step| step.id.to_string())
}

fn error(view: &View) -> Option<String> {
    let failed = view.steps.iter().find_map(|step| Some((&step.id, step.failure.as_ref()?)));
    failed.map(|(step, failure)| cut(&format!("{step}: {failure}"), ERROR_CHARS_MAX))
}

/// Every step, with what its failure means.
fn steps(view: &View, plan: &Plan) -> Vec<Value> {
    let told = view.steps.iter().zip(&plan.steps).map(|(step, planned)| {
        let mut told = json!(step);
        told["began_at"] = json!(step.began_at.map(utc));
        told["ended_at"] = json!(step.ended_at.map(utc));
        let spread = planned.policy.propagate_to.iter().map(|step| plan.steps[*step].id.as_str());
        if !planned.name.is_empty() {
            told["name"] = json!(planned.name);
        }
        told["failure_policy"] = json!({
            "action": planned.policy.action,
            "propagate_to": spread.collect::<Vec<_>>(),
            "reason": planned.policy.reason,
        });
        compact(told)
    });
    told.collect()
}

enum After {
    Seq(u64),
    Cursor(Option<Cursor>),
}

/// As many events as are wanted and fit. The place where they go on is the store's own.
async fn events(
    visit: &Visit,
    identity: &Identity,
    after: After,
    limit: u32,
    room: usize,
) -> Result<Listing<Value>, Fault> {
    let after = match after {
        After::Cursor(cursor) => cursor,
        After::Seq(seq) => match skip(visit, identity, seq).await? {
            Skipped::To(cursor) => cursor,
            Skipped::All => return Ok(Listing { items: Vec::new(), next: None }),
        },
    };
    let mut limit = limit;
    loop {
        let found = entries(visit, identity, Page { limit, after: after.clone() }).await?;
        let events: Vec<Value> = found.items.into_iter().map(event).collect();
        match fitting(&events, room) {
            count if count == events.len() => return Ok(Listing { items: events, next: found.next }),
            count => limit = u32::try_from(count).unwrap_or(limit - 1),
        }
    }
}

enum Skipped {
    To(Option<Cursor>),
    /// There are no more than that.
    All,
}

/// Goes past so many entries: a journal has no gaps, so their numbers are their places.
async fn skip(visit: &Visit, identity: &Identity, count: u64) -> Result<Skipped, Fault> {
    let (mut left, mut after) = (count, None);
    while left > 0 {
        let limit = u32::try_from(left).unwrap_or(u32::MAX).min(limits::PAGE_MAX);
        let found = entries(visit, identity, Page { limit, after }).await?;
        left -= found.items.len() as u64;
        match found.next {
            None => return Ok(Skipped::All),
            next => after = next,
        }
    }
    Ok(Skipped::To(after))
}

async fn entries(visit: &Visit, identity: &Identity, page: Page) -> Result<Listing<EntrySummary>, Fault> {
    let filter = EntryFilter { execution: Some(identity.execution.clone()), ..EntryFilter::default() };
    Ok(visit.desk.query.entries(&identity.tenant, filter, page).await?)
}

/// An entry in words, and with the fields of its event.
fn event(entry: EntrySummary) -> Value {
    let Record { at, actor, event } = entry.record;
    let (kind, words) = (event.kind(), event.words());
    let shown = event.try_map::<Value, Infallible>(&mut |payload| {
        Ok(payload.value().map_or_else(|| json!("erased"), |value| (**value).clone()))
    });
    let fields = shown.map(|event| json!(event)).unwrap_or_default();
    compact(json!({
        "seq": entry.seq,
        "at": utc(at),
        "actor": actor.to_string(),
        "kind": kind,
        "words": words,
        "event": compact(fields.get(kind).cloned().unwrap_or_default()),
    }))
}
