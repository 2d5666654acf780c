//! Changes a plan as a whole from its page: archive, restore, rename, delete.

use crate::format;
use crate::page::{self, FormRequest, PageResult};
use axum::extract::{Path, State};
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::plans::state::{PlanAction, change_plan};
use std::sync::Arc;

pub(crate) async fn run(State(app): State<Arc<App>>, Path(address): Path<String>, form: FormRequest) -> PageResult {
    let text = |name: &str| form.value(name).filter(|text| !text.is_empty()).map(str::to_owned);
    let (action, message) = match form.value("action") {
        Some("archive") => (PlanAction::Archive, "plan_archived"),
        Some("restore") => (PlanAction::Restore, "plan_restored"),
        Some("rename") => (PlanAction::Rename { name: text("name").unwrap_or_default() }, "plan_renamed"),
        Some("delete") => (PlanAction::Delete, "plan_deleted"),
        _ => return Err(AppError::new("server.arguments", "expected archive, restore, rename or delete").into()),
    };
    let is_gone = action == PlanAction::Delete;
    let changed = change_plan(&app, &form.request.principal, &address, action, text("reason")).await?;
    let plan = format!("/plans/{}", format::encoded(&changed.plan_id));
    Ok(page::redirect_with_flash(if is_gone { "/plans" } else { &plan }, message))
}
