//! Which plan a text belongs to, and which plan a name means.
//!
//! Within a tenant a name belongs to one plan. The id of a new plan is derived from its name, so that two processes that
//! save the same new name at once save one plan; nobody chooses an id. A plan without a name is its content; it is listed
//! under the beginning of its request, which several plans may share.

use crate::app::App;
use crate::error::AppError;
use rutter_core::canonical::canonical;
use rutter_core::hash::Hash;
use rutter_core::id::{PlanId, TenantId};
use rutter_core::limits::PAGE_MAX;
use rutter_core::plan::Plan;
use rutter_core::plan::document::PlanDocument;
use rutter_core::plan::name::split_revision;
use rutter_core::port::query::{Pagination, PlanFilter, SavedPlan};
use rutter_core::wording::{SpellingGuess, guess};
use serde_json::Value;

/// The id under which a plan is saved: of the plan with its name, or a new one. A text without a name is identified by
/// its content. Ids before the `nth` of a name belong to deleted plans.
pub(super) async fn of(app: &App, tenant: &TenantId, plan: &Plan, mut nth: u64) -> Result<PlanId, AppError> {
    if !is_named(plan) {
        return Ok(derived("rutter/plan-of-content/v1", &canonical(&document_of(plan)), nth));
    }
    // An archived plan keeps its name; that it is archived is said when this one is saved as its revision.
    for archived in [false, true] {
        if let Some(id) = by_name(app, tenant, &plan.name, archived).await? {
            return Ok(id);
        }
    }
    loop {
        let id = derived("rutter/plan-of-name/v1", &plan.name, nth);
        // A plan that had this name once, and was renamed, keeps its id.
        match app.query.plan(tenant, &id, None).await? {
            Some(other) if other.summary.name != plan.name => nth += 1,
            _ => return Ok(id),
        }
    }
}

fn derived(domain: &str, text: &str, nth: u64) -> PlanId {
    let hash = Hash::of_fields(domain, &[text.as_bytes(), &nth.to_be_bytes()]);
    PlanId::new(&format!("plan_{}", &hash.to_string()[..26]))
}

fn document_of(plan: &Plan) -> Value {
    let document = PlanDocument::read(&plan.source, plan.format);
    document.map(|document| Value::clone(&document.value)).unwrap_or_default()
}

/// Whether the author gave it its name.
pub(super) fn is_named(plan: &Plan) -> bool {
    let document = document_of(plan);
    ["/name", "/plan/name"].iter().any(|pointer| document.pointer(pointer).is_some())
}

/// The plan whose author gave it this name. Databases of earlier versions may have several; then it is the one saved
/// last.
pub(super) async fn by_name(
    app: &App,
    tenant: &TenantId,
    name: &str,
    archived: bool,
) -> Result<Option<PlanId>, AppError> {
    let found = listed(app, tenant, name, archived).await?.into_iter();
    Ok(found.filter(|saved| is_named(&saved.plan)).map(|saved| saved.summary.id).next())
}

/// The plans that are listed under a name, last saved first.
async fn listed(app: &App, tenant: &TenantId, name: &str, archived: bool) -> Result<Vec<SavedPlan>, AppError> {
    let filter = PlanFilter { name: Some(name.to_owned()), archived, ..PlanFilter::default() };
    let mut found = Vec::new();
    for plan in app.query.plans(tenant, filter, Pagination::first(PAGE_MAX)).await?.items {
        found.extend(app.query.plan(tenant, &plan.id, None).await?);
    }
    Ok(found)
}

/// The plan that a name means, of all that are listed under it, last saved first.
pub fn meant(name: &str, mut listed: Vec<SavedPlan>) -> Result<Option<SavedPlan>, AppError> {
    if let Some(at) = listed.iter().position(|saved| is_named(&saved.plan)) {
        return Ok(Some(listed.swap_remove(at)));
    }
    if listed.len() <= 1 {
        return Ok(listed.pop());
    }
    let ids: Vec<&str> = listed.iter().take(IDS_MAX).map(|saved| saved.summary.id.as_str()).collect();
    let message = format!("{} plans without a name are listed as {name:?}: {}", listed.len(), ids.join(", "));
    Err(AppError::new("server.plan_ambiguous", message).hint("name one by its id, or rename it"))
}

/// The most ids in an error.
const IDS_MAX: usize = 5;

/// What a text may mean, first what counts: a revision of a plan, then a plan. Earlier versions let a plan be called
/// `NAME@1`; it is found so only while there is no plan NAME.
pub fn readings(text: &str) -> impl Iterator<Item = (&str, Option<u32>)> {
    let revision = split_revision(text).map(|(name, revision)| (name, Some(revision)));
    revision.into_iter().chain([(text, None)])
}

/// Finds the newest revision of a saved plan by its id or name, with or without `@revision`.
pub async fn find_plan(app: &App, tenant: &TenantId, text: &str) -> Result<(SavedPlan, Option<u32>), AppError> {
    for (name, revision) in readings(text) {
        if let Some(saved) = exactly(app, tenant, name).await? {
            return Ok((saved, revision));
        }
    }
    let saved = app.query.plans(tenant, PlanFilter::default(), Pagination::first(PAGE_MAX)).await?.items;
    let error = AppError::missing("plan", text);
    Err(match guess(text, saved.iter().map(|plan| plan.name.as_str())) {
        Some(SpellingGuess::Clear(near) | SpellingGuess::Vague(near)) => error.hint(format!("did you mean {near:?}?")),
        None => error.hint("find_plans finds saved plans; save_plan saves a new one"),
    })
}

/// One revision of a saved plan, by its id or name: that of `@revision` or `revision`, else the newest.
pub async fn saved_plan(
    app: &App,
    tenant: &TenantId,
    text: &str,
    revision: Option<u32>,
) -> Result<SavedPlan, AppError> {
    let (newest, named) = find_plan(app, tenant, text).await?;
    let Some(revision) = one_revision(text, named, revision)? else { return Ok(newest) };
    let saved = app.query.plan(tenant, &newest.summary.id, Some(revision)).await?;
    saved.ok_or_else(|| no_revision(&newest, revision))
}

/// The revision, if it is named only once.
pub fn one_revision(text: &str, named: Option<u32>, revision: Option<u32>) -> Result<Option<u32>, AppError> {
    match (named, revision) {
        (Some(named), Some(revision)) if named != revision => {
            let message = format!("{text:?} names revision {named}, and the request revision {revision}");
            Err(AppError::new("server.arguments", message).hint("give one of them"))
        }
        _ => Ok(named.or(revision)),
    }
}

pub fn no_revision(newest: &SavedPlan, revision: u32) -> AppError {
    let (name, newest) = (&newest.summary.name, newest.summary.revision);
    AppError::new("store.not_found", format!("plan {name:?} has no revision {revision}; the newest is {newest}"))
}

/// A plan that a request changes as a whole: `what` it does to it.
pub(super) async fn whole(app: &App, tenant: &TenantId, text: &str, what: &str) -> Result<SavedPlan, AppError> {
    match find_plan(app, tenant, text).await? {
        (saved, None) => Ok(saved),
        (_, Some(_)) => {
            let message = format!("{text:?} names a revision, but a plan is {what}");
            Err(AppError::new("server.arguments", message).hint("name the plan without `@`"))
        }
    }
}

/// The revision before this one that was for everybody.
pub async fn revision_before(app: &App, saved: &SavedPlan, tenant: &TenantId) -> Result<Option<u32>, AppError> {
    for revision in (1..saved.summary.revision).rev() {
        let before = app.query.plan(tenant, &saved.summary.id, Some(revision)).await?;
        if before.is_some_and(|before| !before.summary.is_for_execution) {
            return Ok(Some(revision));
        }
    }
    Ok(None)
}

async fn exactly(app: &App, tenant: &TenantId, text: &str) -> Result<Option<SavedPlan>, AppError> {
    if let Some(saved) = app.query.plan(tenant, &PlanId::new(text), None).await? {
        return Ok(Some(saved));
    }
    for archived in [false, true] {
        let listed = listed(app, tenant, text, archived).await?;
        if let Some(saved) = meant(text, listed)? {
            return Ok(Some(saved));
        }
    }
    Ok(None)
}
