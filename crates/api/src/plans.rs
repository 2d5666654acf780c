//! Plans: check, save and find them, read revisions and the diff of two.

use crate::idempotent_replies::Idempotency;
use crate::reply::{ApiReply, ListReply};
use crate::request::ApiRequest;
use crate::route::{ApiRoute, NoParameters, RouteSpec};
use rutter_app::error::AppError;
use rutter_app::executions::PlanFindings;
use rutter_app::optimize::{OptimizedPlan, SuggestionsView, optimize_plan};
use rutter_app::plans::archive::{self, ImportResult, ImportedPlanView, PlanArchive};
use rutter_app::plans::identity::revision_before;
use rutter_app::plans::state::{PlanAction, PlanChangeView, change_plan};
use rutter_app::plans::{DriverChoice, PlanInput, save_plan, saved_plan};
use rutter_app::rights::Operation;
use rutter_app::view::{DiagnosticView, PlanView, SavedPlanView, StepRulesView, UnreachableServerView};
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
                .idempotency(Idempotency::ReplyOrRerun),
            save,
        ),
        ApiRoute::new(RouteSpec::get("/plans", "listPlans", "Saved plans, last saved first"), list),
        ApiRoute::with_body(
            RouteSpec::post("/plans/check", "checkPlan", "Check a plan without saving it").right(Operation::CheckPlan),
            check,
        ),
        ApiRoute::with_body(
            RouteSpec::post("/plans/optimize", "optimizePlan", "Suggestions that improve a plan; saves nothing")
                .right(Operation::CheckPlan)
                .refuses(&[404, 422]),
            optimize,
        ),
        ApiRoute::with_body(
            RouteSpec::post("/plans/import", "importPlans", "Save every plan of an export; refusals are per plan")
                .right(Operation::SavePlan)
                .idempotency(Idempotency::ReplyOrRerun),
            import,
        ),
        ApiRoute::new(RouteSpec::get("/plans/{id}", "getPlan", "A plan with its source"), show),
        ApiRoute::new(
            RouteSpec::get(
                "/plans/{id}/export",
                "exportPlan",
                "A plan's document as JSON, to be edited and saved again",
            ),
            export,
        ),
        ApiRoute::with_body(
            RouteSpec::post("/plans/{id}/archive", "archivePlan", "Put a plan away: not listed, not startable")
                .right(Operation::ArchivePlan)
                .refuses(&[409, 422]),
            put_away,
        ),
        ApiRoute::with_body(
            RouteSpec::post("/plans/{id}/restore", "restorePlan", "Take an archived plan back into use")
                .right(Operation::ArchivePlan)
                .refuses(&[409, 422]),
            restore,
        ),
        ApiRoute::with_body(
            RouteSpec::post("/plans/{id}/rename", "renamePlan", "Give a plan another name, as its next revision")
                .right(Operation::ArchivePlan)
                .refuses(&[409, 422]),
            rename,
        ),
        ApiRoute::with_body(
            RouteSpec::post("/plans/{id}/delete", "deletePlan", "Delete a plan and its text")
                .right(Operation::DeletePlan)
                .refuses(&[409, 422]),
            delete,
        ),
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
    /// Save as the next revision of this plan, by id or name.
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
    let stored =
        save_plan(call.app(), &caller, text, new.plan_id.as_deref(), new.expected_revision, call.key.as_deref())
            .await?;
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
    /// Words of name, goal, tags and tools, or their beginnings; or parts of the name. All of them.
    text: Option<String>,
    /// Archived plans instead of the others.
    archived: Option<bool>,
    #[schemars(range(min = 1, max = 100))]
    limit: Option<u32>,
    cursor: Option<String>,
}

async fn list(call: ApiRequest, query: PlansQuery) -> Result<ApiReply<ListReply<PlanView>>, AppError> {
    let filter =
        PlanFilter { archived: query.archived.unwrap_or(false), name: query.name, tag: query.tag, text: query.text };
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
    /// Steps to which a rule of the operator's policy will or may apply, if the plan is accepted.
    policy: Vec<StepRulesView>,
}

async fn check(call: ApiRequest, input: PlanToCheck) -> Result<ApiReply<CheckAnswer>, AppError> {
    let text = input.plan.text(&call.principal.tenant, input.driver.into())?;
    let PlanFindings { is_accepted, found, absent, policy } = call.app().findings(&text).await?;
    Ok(ApiReply::ok(CheckAnswer {
        is_accepted,
        diagnostics: DiagnosticView::all(&found),
        servers_not_reached: UnreachableServerView::all(&absent),
        policy: StepRulesView::all(&policy),
    }))
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanToOptimize {
    /// One of plan and plan_id.
    plan: Option<PlanInput>,
    /// A saved plan, by id or name.
    plan_id: Option<String>,
    #[serde(default)]
    driver: DriverChoice,
}

async fn optimize(call: ApiRequest, input: PlanToOptimize) -> Result<ApiReply<SuggestionsView>, AppError> {
    let plan = match (input.plan, input.plan_id) {
        (Some(plan), None) => OptimizedPlan::Given(plan.text(&call.principal.tenant, input.driver.into())?),
        (None, Some(id)) => OptimizedPlan::Saved(id),
        _ => return Err(AppError::new("server.arguments", "give one of plan and plan_id")),
    };
    Ok(ApiReply::ok(optimize_plan(call.app(), &call.principal, plan).await?))
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
struct PlanExportQuery {
    /// Default: the newest.
    #[schemars(range(min = 1))]
    revision: Option<u32>,
}

async fn export(call: ApiRequest, query: PlanExportQuery) -> Result<ApiReply<Value>, AppError> {
    Ok(ApiReply::ok(archive::document(&saved(&call, query.revision).await?)?))
}

#[derive(Debug, Serialize, JsonSchema)]
struct ImportAnswer {
    /// In the order of the request.
    plans: Vec<ImportedPlanView>,
    /// How many were refused.
    refused: usize,
}

async fn import(call: ApiRequest, body: PlanArchive) -> Result<ApiReply<ImportAnswer>, AppError> {
    let plans = archive::import(call.app(), &call.principal, body.plans()?).await?;
    let refused = plans.iter().filter(|plan| plan.result == ImportResult::Refused).count();
    Ok(ApiReply::ok(ImportAnswer { plans, refused }))
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
        let found = saved(&call, Some(revision)).await?.summary;
        items.extend((!found.is_for_execution).then(|| PlanView::of(&found)));
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
    /// Default: the one before `to`, leaving out those made for one execution.
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
    let from = match query.from {
        Some(from) => from,
        None => revision_before(call.app(), &new, &call.principal.tenant).await?.unwrap_or(to),
    };
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

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanReason {
    /// Recorded in the ledger; deleting needs one.
    reason: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlanNewName {
    name: String,
}

async fn put_away(call: ApiRequest, body: PlanReason) -> Result<ApiReply<PlanChangeView>, AppError> {
    change(call, PlanAction::Archive, body.reason).await
}

async fn restore(call: ApiRequest, body: PlanReason) -> Result<ApiReply<PlanChangeView>, AppError> {
    change(call, PlanAction::Restore, body.reason).await
}

async fn rename(call: ApiRequest, body: PlanNewName) -> Result<ApiReply<PlanChangeView>, AppError> {
    change(call, PlanAction::Rename { name: body.name }, None).await
}

async fn delete(call: ApiRequest, body: PlanReason) -> Result<ApiReply<PlanChangeView>, AppError> {
    change(call, PlanAction::Delete, body.reason).await
}

async fn change(
    call: ApiRequest,
    action: PlanAction,
    reason: Option<String>,
) -> Result<ApiReply<PlanChangeView>, AppError> {
    Ok(ApiReply::ok(change_plan(call.app(), &call.principal, call.id(), action, reason).await?))
}

/// The plan the path names.
pub(crate) async fn saved(call: &ApiRequest, revision: Option<u32>) -> Result<SavedPlan, AppError> {
    saved_plan(call.app(), &call.principal.tenant, call.id(), revision).await
}
