//! Plans: check, save and find them, read revisions and the diff of two.

use crate::reply::{ApiReply, ListReply};
use crate::request::ApiRequest;
use crate::route::{ApiRoute, Idempotency, NoParameters, RouteSpec};
use rutter_app::error::AppError;
use rutter_app::executions::PlanFindings;
use rutter_app::plans::{DriverChoice, PlanInput, no_plan, save_plan};
use rutter_app::rights::Operation;
use rutter_app::view::{DiagnosticView, PlanView, SavedPlanView, UnreachableServerView};
use rutter_core::id::PlanId;
use rutter_core::plan::diff::{PlanChange, diff};
use rutter_core::plan::document::DocumentFormat;
use rutter_core::port::journal::SaveOutcome;
use rutter_core::port::query::{ListCursor, ListPage, PlanFilter, SavedPlan};
use rutter_core::text::spelled;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Revisions per page: each is read in full.
const REVISIONS_MAX: u32 = 20;

pub(crate) fn routes() -> Vec<ApiRoute> {
    vec![
        ApiRoute::with_body(
            RouteSpec::post("/plans", "savePlan", "Check a plan and save it, as a new one or as the next revision")
                .right(Operation::SavePlan)
                .success(&[201, 200])
                .refuses(&[409, 422])
                .idempotency(Idempotency::Reply { without: None }),
            save,
        ),
        ApiRoute::new(RouteSpec::get("/plans", "listPlans", "Saved plans, last saved first"), list),
        ApiRoute::with_body(
            RouteSpec::post("/plans/check", "checkPlan", "Check a plan without saving it").right(Operation::CheckPlan),
            check,
        ),
        ApiRoute::new(RouteSpec::get("/plans/{id}", "getPlan", "A plan with its source"), show),
        ApiRoute::new(
            RouteSpec::get("/plans/{id}/revisions", "listRevisions", "The revisions of a plan, newest first"),
            revisions,
        ),
        ApiRoute::new(
            RouteSpec::get("/plans/{id}/revisions/{revision}", "getRevision", "One revision with its source"),
            revision,
        ),
        ApiRoute::new(
            RouteSpec::get("/plans/{id}/diff", "diffRevisions", "The semantic diff of two revisions"),
            differences,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SavePlanBody {
    plan: PlanInput,
    /// Save as its next revision.
    plan_id: Option<String>,
    /// Refused if there is a newer one.
    expected_revision: Option<u32>,
    #[serde(default)]
    driver: DriverChoice,
    /// Only checks.
    #[serde(default)]
    dry_run: bool,
}

async fn save(call: ApiRequest, new: SavePlanBody) -> Result<ApiReply<SavedPlanView>, AppError> {
    let caller = call.principal.clone();
    let text = new.plan.text(&caller.tenant, new.driver.into())?;
    if new.dry_run {
        return Ok(ApiReply::ok(SavedPlanView::checked(&call.app().check(&text).await?)));
    }
    let id = new.plan_id.as_deref().map(PlanId::new);
    let stored = save_plan(call.app(), &caller, text, id, new.expected_revision, call.key.as_deref()).await?;
    let answer = SavedPlanView::of(&stored);
    Ok(match stored.saved {
        SaveOutcome::New { .. } => ApiReply::created(answer, &format!("{}/plans/{}", crate::route::BASE, stored.id)),
        SaveOutcome::Already { .. } => ApiReply::ok(answer),
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

async fn list(call: ApiRequest, query: PlansQuery) -> Result<ApiReply<ListReply<PlanView>>, AppError> {
    let filter = PlanFilter { name: query.name, tag: query.tag, text: query.text };
    let page = call.page(query.limit, query.cursor)?;
    let found = call.app().query.plans(&call.principal.tenant, filter, page).await?;
    let items = found.items.iter().map(PlanView::of).collect();
    Ok(call.list(ListPage { items, next: found.next }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanToCheck {
    plan: PlanInput,
    #[serde(default)]
    driver: DriverChoice,
}

#[derive(Debug, Serialize, JsonSchema)]
struct CheckAnswer {
    is_accepted: bool,
    diagnostics: Vec<DiagnosticView>,
    /// Servers whose tools could not be listed, and why.
    servers_not_reached: Vec<UnreachableServerView>,
}

async fn check(call: ApiRequest, input: PlanToCheck) -> Result<ApiReply<CheckAnswer>, AppError> {
    let text = input.plan.text(&call.principal.tenant, input.driver.into())?;
    let PlanFindings { is_accepted, found, absent } = call.app().findings(&text).await?;
    Ok(ApiReply::ok(CheckAnswer {
        is_accepted,
        diagnostics: DiagnosticView::all(&found),
        servers_not_reached: UnreachableServerView::all(&absent),
    }))
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Plan")]
struct PlanJson {
    #[serde(flatten)]
    row: PlanView,
    format: String,
    /// The exact text the author sent.
    source: String,
    /// JSON Schema of the inputs of an execution.
    #[serde(skip_serializing_if = "Option::is_none")]
    inputs: Option<Value>,
    /// Tools it calls.
    tools: Vec<String>,
}

impl PlanJson {
    fn of(saved: &SavedPlan) -> PlanJson {
        let plan = &saved.plan;
        let mut tools: Vec<String> =
            plan.steps.iter().flat_map(|step| step.calls()).map(|call| call.tool.to_string()).collect();
        tools.sort_unstable();
        tools.dedup();
        PlanJson {
            row: PlanView::of(&saved.summary),
            format: match plan.format {
                DocumentFormat::Json => "json".to_owned(),
                DocumentFormat::Yaml => "yaml".to_owned(),
            },
            source: String::from_utf8_lossy(&plan.source).into_owned(),
            inputs: plan.inputs.as_ref().map(|inputs| (**inputs).clone()),
            tools,
        }
    }
}

async fn show(call: ApiRequest, _: NoParameters) -> Result<ApiReply<PlanJson>, AppError> {
    Ok(ApiReply::ok(PlanJson::of(&saved(&call, None).await?)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RevisionsQuery {
    #[schemars(range(min = 1, max = 20))]
    limit: Option<u32>,
    cursor: Option<String>,
}

async fn revisions(call: ApiRequest, query: RevisionsQuery) -> Result<ApiReply<ListReply<PlanView>>, AppError> {
    let wrong = |message: &str| AppError::new("server.arguments", message);
    let limit = match query.limit.unwrap_or(REVISIONS_MAX) {
        limit @ 1..=REVISIONS_MAX => limit,
        _ => return Err(wrong("limit is 1 to 20")),
    };
    let newest = saved(&call, None).await?.summary.revision;
    let first = match query.cursor.as_deref().map(str::parse::<u32>) {
        None => newest,
        Some(Ok(cursor)) => cursor.min(newest),
        Some(Err(_)) => return Err(wrong("unknown cursor; expected one from an earlier response")),
    };
    let last = first.saturating_sub(limit);
    let mut items = Vec::new();
    for revision in (last + 1..=first).rev() {
        items.push(PlanView::of(&saved(&call, Some(revision)).await?.summary));
    }
    Ok(call.list(ListPage { items, next: (last > 0).then(|| ListCursor(last.to_string())) }))
}

async fn revision(call: ApiRequest, _: NoParameters) -> Result<ApiReply<PlanJson>, AppError> {
    let number = call.part("revision").parse::<u32>().ok().filter(|number| *number > 0);
    let missing = || AppError::missing("revision", call.part("revision"));
    Ok(ApiReply::ok(PlanJson::of(&saved(&call, Some(number.ok_or_else(missing)?)).await?)))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanDiffQuery {
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
    plan: Vec<PlanChangeJson>,
    /// The same, one line for each change.
    lines: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ChangedStep {
    step: String,
    changes: Vec<PlanChangeJson>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Change")]
struct PlanChangeJson {
    kind: String,
    text: String,
}

fn changes(changes: &[PlanChange]) -> Vec<PlanChangeJson> {
    changes.iter().map(|change| PlanChangeJson { kind: spelled(&change.kind), text: change.text.clone() }).collect()
}

async fn differences(call: ApiRequest, query: PlanDiffQuery) -> Result<ApiReply<DiffAnswer>, AppError> {
    let new = saved(&call, query.to).await?;
    let to = new.summary.revision;
    let from = query.from.unwrap_or(to.saturating_sub(1).max(1));
    let old = saved(&call, Some(from)).await?;
    let diff = diff(&old.plan, &new.plan);
    let names = |steps: &[rutter_core::id::StepId]| steps.iter().map(ToString::to_string).collect();
    let changed = diff.changed.iter();
    Ok(ApiReply::ok(DiffAnswer {
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
pub(crate) async fn saved(call: &ApiRequest, revision: Option<u32>) -> Result<SavedPlan, AppError> {
    let id = PlanId::new(call.id());
    let saved = call.app().query.plan(&call.principal.tenant, &id, revision).await?;
    saved.ok_or_else(|| no_plan(&id).hint("GET /api/v1/plans lists plans"))
}
