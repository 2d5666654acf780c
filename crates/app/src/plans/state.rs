//! What can be done with a saved plan as a whole: archive, restore, rename, delete.

use super::{identity, no_plan, save_accepted};
use crate::app::App;
use crate::command::required_reason;
use crate::error::AppError;
use crate::principal::Principal;
use crate::rights::Operation;
use rutter_core::id::PlanId;
use rutter_core::plan::document::{DocumentFormat, PlanDocument};
use rutter_core::port::journal::{PlanState, PlanStateChange};
use rutter_core::port::query::SavedPlan;
use rutter_engine::submit::PlanText;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A change of a plan as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanAction {
    /// It is no longer listed and cannot be started.
    Archive,
    Restore,
    /// As a new revision: the name is part of the text.
    Rename {
        name: String,
    },
    Delete,
}

/// What became of a plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(rename = "PlanChange")]
pub struct PlanChangeView {
    pub plan_id: String,
    pub name: String,
    /// False if it was so before.
    pub is_new: bool,
    /// Ended executions whose journals need the text of a deleted plan; it goes with the last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub executions_kept: Option<u64>,
    pub summary: String,
}

/// Changes a plan, by its id or name.
pub async fn change_plan(
    app: &App,
    caller: &Principal,
    plan: &str,
    action: PlanAction,
    reason: Option<String>,
) -> Result<PlanChangeView, AppError> {
    let (operation, to) = match &action {
        PlanAction::Archive => (Operation::ArchivePlan, PlanState::Archived),
        PlanAction::Restore => (Operation::ArchivePlan, PlanState::Active),
        PlanAction::Delete => (Operation::DeletePlan, PlanState::Deleted),
        PlanAction::Rename { name } => {
            app.require(caller, Operation::ArchivePlan)?;
            let saved = identity::whole(app, &caller.tenant, plan, "renamed as a whole").await?;
            return rename(app, caller, saved, name).await;
        }
    };
    app.require(caller, operation)?;
    let reason = match action {
        PlanAction::Delete => required_reason("deleting a plan", reason)?,
        _ => reason.unwrap_or_default(),
    };
    let saved = match to {
        PlanState::Active => restorable(app, caller, plan).await?,
        PlanState::Archived => identity::whole(app, &caller.tenant, plan, "archived as a whole").await?,
        PlanState::Deleted => identity::whole(app, &caller.tenant, plan, "deleted as a whole").await?,
    };
    let (id, name) = (saved.summary.id, saved.summary.name);
    let change = PlanStateChange {
        tenant: caller.tenant.clone(),
        id: id.clone(),
        to,
        actor: caller.actor(),
        at: app.now(),
        reason,
    };
    let outcome = app.engine.change_plan(change).await?;
    let what = match to {
        PlanState::Active => "restored",
        PlanState::Archived => "archived",
        PlanState::Deleted => "deleted",
    };
    let executions_kept = (to == PlanState::Deleted).then_some(outcome.executions);
    let summary = match (outcome.is_new, outcome.executions) {
        (false, _) => format!("plan {name:?} was {what} before"),
        (true, 0) => format!("plan {name:?} is {what}"),
        (true, count) => format!(
            "plan {name:?} is {what}; its text stays until the executions that need it are cleaned up: {count} have ended"
        ),
    };
    Ok(PlanChangeView { plan_id: id.to_string(), name, is_new: outcome.is_new, executions_kept, summary })
}

/// The plan to restore: the archived one, where a name belongs to another plan too.
async fn restorable(app: &App, caller: &Principal, plan: &str) -> Result<SavedPlan, AppError> {
    let saved = match identity::by_name(app, &caller.tenant, plan, true).await? {
        Some(id) => app.query.plan(&caller.tenant, &id, None).await?.ok_or_else(|| no_plan(&id))?,
        None => identity::whole(app, &caller.tenant, plan, "restored as a whole").await?,
    };
    refuse_taken(app, caller, &saved.summary.id, &saved.summary.name).await?;
    Ok(saved)
}

/// Saves the newest revision under another name.
async fn rename(app: &App, caller: &Principal, saved: SavedPlan, name: &str) -> Result<PlanChangeView, AppError> {
    let id = saved.summary.id.clone();
    refuse_name(app, caller, &id, name).await?;
    let (tenant, driver) = (caller.tenant.clone(), saved.plan.driver());
    let (source, format) = renamed(&saved, name)?;
    let accepted = app.check(&PlanText { tenant, source, format, driver }).await?;
    let submitted = save_accepted(app, caller, accepted, id.clone(), Some(saved.summary.revision)).await?;
    let is_new = saved.summary.name != name;
    let summary = format!("plan {:?} is {name:?} now, revision {}", saved.summary.name, submitted.saved.revision());
    Ok(PlanChangeView { plan_id: id.to_string(), name: name.to_owned(), is_new, executions_kept: None, summary })
}

/// The text of a plan with another name, otherwise as its author wrote it.
fn renamed(saved: &SavedPlan, name: &str) -> Result<(Vec<u8>, DocumentFormat), AppError> {
    let unreadable = |_| AppError::new("server.internal", "a saved plan can no longer be read");
    let (source, format) = (&saved.plan.source, saved.plan.format);
    let document = PlanDocument::read(source, format).map_err(unreadable)?;
    let mut value = Value::clone(&document.value);
    let (fields, pointer) = match value.get("plan").is_some_and(Value::is_object) {
        true => (&mut value["plan"], "/plan/name"),
        false => (&mut value, "/name"),
    };
    fields["name"] = json!(name);
    // Quoted as in JSON, which is YAML too.
    let name = json!(name).to_string();
    let replaced = document
        .spans
        .value(pointer)
        .map(|range| [&source[..range.start], name.as_bytes(), &source[range.end..]].concat());
    let line = format!("name: {name}\n");
    let added = (format == DocumentFormat::Yaml).then(|| [line.as_bytes(), &source[..]].concat());
    let is_as_meant = |text: &Vec<u8>| PlanDocument::read(text, format).is_ok_and(|document| *document.value == value);
    let kept = replaced.into_iter().chain(added).find(is_as_meant);
    Ok(kept.map_or_else(|| (format!("{value:#}").into_bytes(), DocumentFormat::Json), |text| (text, format)))
}

/// Refuses a name that another plan has, or had when it was archived.
pub(super) async fn refuse_name(app: &App, caller: &Principal, id: &PlanId, name: &str) -> Result<(), AppError> {
    refuse_taken(app, caller, id, name).await?;
    match identity::by_name(app, &caller.tenant, name, true).await? {
        Some(other) if other != *id => {
            Err(AppError::new("server.plan_archived", format!("an archived plan has the name {name:?}: {other}"))
                .hint("restore it with `rutter plan restore`, or choose another name"))
        }
        _ => Ok(()),
    }
}

/// Refuses a name that another plan has.
async fn refuse_taken(app: &App, caller: &Principal, id: &PlanId, name: &str) -> Result<(), AppError> {
    match identity::by_name(app, &caller.tenant, name, false).await? {
        Some(other) if other != *id => {
            Err(AppError::new("server.plan_name_taken", format!("another plan has the name {name:?}: {other}"))
                .hint("rename that one first: an archived plan keeps its name too"))
        }
        _ => Ok(()),
    }
}

/// Refuses an archived plan.
pub(crate) fn refuse_archived(saved: &SavedPlan) -> Result<(), AppError> {
    match saved.summary.is_archived {
        false => Ok(()),
        true => {
            let message = format!("plan {:?} is archived", saved.summary.name);
            Err(AppError::new("server.plan_archived", message)
                .hint("restore it with `rutter plan restore`, or save the plan under another name"))
        }
    }
}
