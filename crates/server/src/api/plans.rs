//! Plans: checking and keeping them, finding them, their revisions and what differs between two.

use crate::api::call::Call;
use crate::api::execution::word;
use crate::api::reply::{List, Reply};
use crate::api::route::{About, Keyed, Nothing, Route};
use crate::deed::plan::{Drives, PlanInput, keep, no_plan};
use crate::deed::record::part_of;
use crate::fault::Fault;
use rutter_core::id::PlanId;
use rutter_core::plan::diagnostic::Diagnostic;
use rutter_core::plan::diff::{Change, diff};
use rutter_core::plan::document::Format;
use rutter_core::plan::preview::preview;
use rutter_core::port::journal::Saved;
use rutter_core::port::query::{Cursor, Listing, PlanFilter, PlanSummary, SavedPlan};
use rutter_core::time::calendar::utc;
use rutter_core::tool::Failure;
use rutter_engine::Error;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Revisions on one page: each is read whole.
const REVISIONS_MAX: u32 = 20;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::with_body(
            About::post(
                "/plans",
                "savePlan",
                "Check a plan and keep it, as a new one or as the next revision",
            )
            .success(&[201, 200])
            .refuses(&[409, 422])
            .keyed(Keyed::Reply { without: None }),
            save,
        ),
        Route::new(About::get("/plans", "listPlans", "Saved plans, last saved first"), list),
        Route::with_body(
            About::post("/plans/check", "checkPlan", "Every mistake of a plan; nothing is kept"),
            check,
        ),
        Route::new(About::get("/plans/{id}", "getPlan", "A plan with its source"), show),
        Route::new(
            About::get("/plans/{id}/revisions", "listRevisions", "The revisions of a plan, newest first"),
            revisions,
        ),
        Route::new(
            About::get("/plans/{id}/revisions/{revision}", "getRevision", "One revision with its source"),
            revision,
        ),
        Route::new(
            About::get("/plans/{id}/diff", "diffRevisions", "What differs between two revisions, by meaning"),
            differences,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewPlan {
    plan: PlanInput,
    /// Save as its next revision.
    plan_id: Option<String>,
    /// Refused if there is a newer one.
    expected_revision: Option<u32>,
    #[serde(default)]
    driver: Drives,
    /// Only checks.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct SavedAnswer {
    summary: String,
    /// Absent after a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<u32>,
    name: String,
    hash: String,
    steps_count: usize,
    /// What is doubtful.
    warnings: Vec<ToldDiagnostic>,
    /// The first step after whose start not everything can be undone.
    #[serde(skip_serializing_if = "Option::is_none")]
    point_of_no_return: Option<String>,
}

/// One finding of the check.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Diagnostic")]
pub(crate) struct ToldDiagnostic {
    code: String,
    severity: String,
    /// JSON Pointer into the plan as it was written.
    pointer: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// A JSON Patch that removes the finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<Vec<Value>>,
}

impl ToldDiagnostic {
    fn of(found: &Diagnostic) -> ToldDiagnostic {
        ToldDiagnostic {
            code: found.code.to_owned(),
            severity: word(&found.severity),
            pointer: found.pointer.clone(),
            message: found.message.clone(),
            hint: found.hint.clone(),
            fix: found.fix.as_ref().map(|fix| fix.iter().map(|operation| json!(operation)).collect()),
        }
    }

    fn all(found: &[Diagnostic]) -> Vec<ToldDiagnostic> {
        found.iter().map(ToldDiagnostic::of).collect()
    }
}

async fn save(call: Call, new: NewPlan) -> Result<Reply<SavedAnswer>, Fault> {
    let caller = call.caller();
    let text = new.plan.text(&caller.tenant, new.driver.into())?;
    let (accepted, id, saved) = match new.dry_run {
        true => (call.desk().engine.check(&text).await?, None, None),
        false => {
            let id = new.plan_id.as_deref().map(PlanId::new);
            // Whoever else uses the same key means something else.
            let key = part_of(call.key.as_deref(), &call.guest.id);
            let kept = keep(&caller, text, id, new.expected_revision, key.as_deref()).await?;
            (kept.accepted, Some(kept.id), Some(kept.saved))
        }
    };
    let name = accepted.plan.name.clone();
    let answer = SavedAnswer {
        summary: match saved {
            None => format!("{name:?} has no mistakes; nothing was saved"),
            Some(Saved::New { revision }) => format!("saved {name:?} as revision {revision}"),
            Some(Saved::Already { revision }) => format!("{name:?} is already saved as revision {revision}"),
        },
        plan_id: id.as_ref().map(ToString::to_string),
        revision: saved.map(Saved::revision),
        name,
        hash: accepted.plan.hash.to_string(),
        steps_count: accepted.plan.steps.len(),
        warnings: ToldDiagnostic::all(&accepted.found),
        point_of_no_return: preview(&accepted.plan).point_of_no_return.map(|point| point.step.to_string()),
    };
    Ok(match (id, saved) {
        (Some(id), Some(Saved::New { .. })) => {
            Reply::created(answer, &format!("{}/plans/{id}", crate::api::BASE))
        }
        _ => Reply::ok(answer),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlansQuery {
    /// Exact.
    name: Option<String>,
    tag: Option<String>,
    /// Whole words, all of them.
    text: Option<String>,
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PlanRow {
    plan_id: String,
    revision: u32,
    hash: String,
    name: String,
    goal: String,
    tags: Vec<String>,
    steps: u32,
    saved_at: String,
    by: String,
}

impl PlanRow {
    fn of(plan: &PlanSummary) -> PlanRow {
        PlanRow {
            plan_id: plan.id.to_string(),
            revision: plan.revision,
            hash: plan.hash.to_string(),
            name: plan.name.clone(),
            goal: plan.goal.clone(),
            tags: plan.tags.clone(),
            steps: plan.steps,
            saved_at: utc(plan.saved_at),
            by: plan.actor.to_string(),
        }
    }
}

async fn list(call: Call, query: PlansQuery) -> Result<Reply<List<PlanRow>>, Fault> {
    let filter = PlanFilter { name: query.name, tag: query.tag, text: query.text };
    let page = call.page(query.limit, query.cursor)?;
    let found = call.desk().query.plans(&call.guest.tenant, filter, page).await?;
    let items = found.items.iter().map(PlanRow::of).collect();
    Ok(call.list(Listing { items, next: found.next }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanToCheck {
    plan: PlanInput,
    #[serde(default)]
    driver: Drives,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CheckAnswer {
    is_accepted: bool,
    diagnostics: Vec<ToldDiagnostic>,
    /// Servers that could not be asked for their tools, and why.
    servers_not_reached: Map<String, Value>,
}

async fn check(call: Call, input: PlanToCheck) -> Result<Reply<CheckAnswer>, Fault> {
    let text = input.plan.text(&call.guest.tenant, input.driver.into())?;
    let (is_accepted, found, absent) = match call.desk().engine.check(&text).await {
        Ok(accepted) => (true, accepted.found, accepted.absent),
        Err(Error::Plan { found, absent }) => (false, found, absent),
        Err(error) => return Err(error.into()),
    };
    let why = |(server, failure): (String, Failure)| (server, json!(failure.to_string()));
    Ok(Reply::ok(CheckAnswer {
        is_accepted,
        diagnostics: ToldDiagnostic::all(&found),
        servers_not_reached: absent.into_iter().map(why).collect(),
    }))
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Plan")]
struct ToldPlan {
    #[serde(flatten)]
    row: PlanRow,
    format: String,
    /// The exact text the author sent.
    source: String,
    /// JSON Schema of what an execution must be given.
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs: Option<Value>,
    /// Tools it calls.
    tools: Vec<String>,
}

impl ToldPlan {
    fn of(saved: &SavedPlan) -> ToldPlan {
        let plan = &saved.plan;
        let mut tools: Vec<String> =
            plan.steps.iter().flat_map(|step| step.calls()).map(|call| call.tool.to_string()).collect();
        tools.sort_unstable();
        tools.dedup();
        ToldPlan {
            row: PlanRow::of(&saved.summary),
            format: match plan.format {
                Format::Json => "json".to_owned(),
                Format::Yaml => "yaml".to_owned(),
            },
            source: String::from_utf8_lossy(&plan.source).into_owned(),
            inputs: plan.inputs.as_ref().map(|inputs| (**inputs).clone()),
            tools,
        }
    }
}

async fn show(call: Call, _: Nothing) -> Result<Reply<ToldPlan>, Fault> {
    Ok(Reply::ok(ToldPlan::of(&saved(&call, None).await?)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RevisionsQuery {
    #[schemars(range(min = 1, max = 20))]
    limit: Option<u32>,
    cursor: Option<String>,
}

async fn revisions(call: Call, query: RevisionsQuery) -> Result<Reply<List<PlanRow>>, Fault> {
    let wrong = |message: &str| Fault::new("server.arguments", message);
    let limit = match query.limit.unwrap_or(REVISIONS_MAX) {
        limit @ 1..=REVISIONS_MAX => limit,
        _ => return Err(wrong("limit is 1 to 20")),
    };
    let newest = saved(&call, None).await?.summary.revision;
    let first = match query.cursor.as_deref().map(str::parse::<u32>) {
        None => newest,
        Some(Ok(cursor)) => cursor.min(newest),
        Some(Err(_)) => return Err(wrong("cursor is the one an earlier answer had")),
    };
    let last = first.saturating_sub(limit);
    let mut items = Vec::new();
    for revision in (last + 1..=first).rev() {
        items.push(PlanRow::of(&saved(&call, Some(revision)).await?.summary));
    }
    Ok(call.list(Listing { items, next: (last > 0).then(|| Cursor(last.to_string())) }))
}

async fn revision(call: Call, _: Nothing) -> Result<Reply<ToldPlan>, Fault> {
    let number = call.part("revision").parse::<u32>().ok().filter(|number| *number > 0);
    let missing = || Fault::missing("revision", call.part("revision"));
    Ok(Reply::ok(ToldPlan::of(&saved(&call, Some(number.ok_or_else(missing)?)).await?)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DiffQuery {
    /// Default: the one before `to`.
    #[schemars(range(min = 1))]
    from: Option<u32>,
    /// Default: the newest.
    #[schemars(range(min = 1))]
    to: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct DiffAnswer {
    from: u32,
    to: u32,
    is_empty: bool,
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<ChangedStep>,
    unchanged: Vec<String>,
    /// Changes outside the steps.
    plan: Vec<ToldChange>,
    /// The same, one line for each change.
    lines: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ChangedStep {
    step: String,
    changes: Vec<ToldChange>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Change")]
struct ToldChange {
    kind: String,
    text: String,
}

fn changes(changes: &[Change]) -> Vec<ToldChange> {
    changes.iter().map(|change| ToldChange { kind: word(&change.kind), text: change.text.clone() }).collect()
}

async fn differences(call: Call, query: DiffQuery) -> Result<Reply<DiffAnswer>, Fault> {
    let new = saved(&call, query.to).await?;
    let to = new.summary.revision;
    let from = query.from.unwrap_or(to.saturating_sub(1).max(1));
    let old = saved(&call, Some(from)).await?;
    let diff = diff(&old.plan, &new.plan);
    let names = |steps: &[rutter_core::id::StepId]| steps.iter().map(ToString::to_string).collect();
    let changed = diff.changed.iter();
    Ok(Reply::ok(DiffAnswer {
        from,
        to,
        is_empty: diff.is_empty(),
        added: names(&diff.added),
        removed: names(&diff.removed),
        changed: changed
            .map(|step| ChangedStep { step: step.step.to_string(), changes: changes(&step.changes) })
            .collect(),
        unchanged: names(&diff.unchanged),
        plan: changes(&diff.plan),
        lines: diff.lines(),
    }))
}

/// The plan the path names.
pub(crate) async fn saved(call: &Call, revision: Option<u32>) -> Result<SavedPlan, Fault> {
    let id = PlanId::new(call.id());
    let saved = call.desk().query.plan(&call.guest.tenant, &id, revision).await?;
    saved.ok_or_else(|| no_plan(&id).hint("GET /api/v1/plans lists what there is"))
}
