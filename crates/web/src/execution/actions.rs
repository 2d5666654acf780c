//! Commands to an execution. Irreversible ones ask for confirmation and show what would be undone.

use super::read_page_state;
use crate::format::{self, IdentifierLink, StatusBadge};
use crate::page::{self, FormRequest, PageRequest, PageResult};
use crate::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::{Path, State};
use rutter_app::app::App;
use rutter_app::command::CommandArguments;
use rutter_app::error::AppError;
use rutter_app::rollback::Rollback;
use rutter_app::verb::{OfferedTo, Verb, VerbRow};
use rutter_core::execution::view::{ExecutionSnapshot, ExecutionStatus};
use rutter_core::plan::Driver;
use std::sync::Arc;

/// One button. One that asks for confirmation is a link to a page, which scripts open as a dialog.
pub(super) struct ActionButton {
    pub(super) verb: &'static VerbRow,
    pub(super) confirm_href: String,
    pub(super) act_href: String,
}

impl ActionButton {
    fn of(verb: Verb, base: &str) -> ActionButton {
        ActionButton {
            verb: verb.row(),
            confirm_href: format!("{base}/confirm?act={verb}"),
            act_href: format!("{base}/act"),
        }
    }

    /// The commands possible in the present state.
    pub(super) fn all(view: &ExecutionSnapshot, rollback: &Rollback, base: &str) -> Vec<ActionButton> {
        let is_fitting = |verb: &Verb| match verb {
            Verb::Pause => !view.status.has_ended() && view.status != ExecutionStatus::Paused,
            Verb::Resume => view.status == ExecutionStatus::Paused,
            Verb::Reopen => {
                matches!(view.status, ExecutionStatus::Failed | ExecutionStatus::Partial | ExecutionStatus::Cancelled)
            }
            Verb::Undo => view.status.has_ended() && !rollback.parts.is_empty(),
            Verb::TakeOver => !view.status.has_ended() && view.driver == Driver::Server,
            Verb::HandBack => !view.status.has_ended() && view.driver == Driver::Agent,
            _ => !view.status.has_ended(),
        };
        Verb::offered_to(OfferedTo::ExecutionPage).filter(is_fitting).map(|verb| ActionButton::of(verb, base)).collect()
    }

    pub(super) fn label(&self) -> String {
        if self.is_harmless() { self.verb.label.to_owned() } else { format!("{}…", self.verb.label) }
    }

    pub(super) fn class(&self) -> &'static str {
        match self.verb.verb {
            Verb::Resume => "main",
            Verb::Cancel | Verb::Undo | Verb::Kill => "risky",
            _ => "",
        }
    }

    /// Whether it needs no confirmation, because it is easily reverted.
    pub(super) fn is_harmless(&self) -> bool {
        matches!(self.verb.verb, Verb::Pause | Verb::Resume)
    }

    pub(super) fn shows_rollback(&self) -> bool {
        matches!(self.verb.verb, Verb::Cancel | Verb::Undo)
    }

    pub(super) fn is_cancel(&self) -> bool {
        self.verb.verb == Verb::Cancel
    }
}

/// The arguments in a form.
fn arguments(form: &FormRequest) -> Result<CommandArguments, AppError> {
    let steps: Vec<String> = form.values("step").map(str::to_owned).collect();
    let undo = match form.value("undo") {
        None | Some("plan") => None,
        Some("yes") => Some(true),
        Some("no") => Some(false),
        Some(_) => return Err(wrong("expected undo plan, yes or no")),
    };
    let steps = Some(steps).filter(|steps| !steps.is_empty());
    Ok(CommandArguments { steps, undo, ..Default::default() })
}

fn offered(text: Option<&str>) -> Result<Verb, AppError> {
    let verb = text.and_then(Verb::parse).filter(|verb| verb.is_offered_to(OfferedTo::ExecutionPage));
    verb.ok_or_else(|| wrong("unknown action"))
}

#[derive(Template)]
#[template(path = "execution_confirm.html")]
struct ConfirmActionPage {
    shell: PageShell,
    id: IdentifierLink,
    name: String,
    look: StatusBadge,
    offer: ActionButton,
    rollback: Rollback,
    step: String,
}

/// The confirmation page, for browsers without scripts and for links.
pub(crate) async fn confirm(
    State(app): State<Arc<App>>,
    Path(execution): Path<String>,
    request: PageRequest,
) -> PageResult {
    let verb = offered(request.query_value("act"))?;
    app.require_verb(&request.principal, verb)?;
    let seen = read_page_state(&app, &request.identity(&execution), "graph", None).await?;
    let shell = PageShell::open(&app, &request, PageSection::Executions, verb.row().question).await?;
    let base = format!("/executions/{}", format::encoded(&execution));
    let offer = ActionButton::of(verb, &base);
    let confirm = ConfirmActionPage {
        id: IdentifierLink::execution(&execution),
        name: seen.view.plan.clone(),
        look: StatusBadge::of(seen.view.status.as_str()),
        offer,
        rollback: seen.rollback,
        step: request.query_value("step").unwrap_or_default().to_owned(),
        shell,
    };
    page::render(&confirm)
}

pub(crate) async fn run(State(app): State<Arc<App>>, Path(execution): Path<String>, form: FormRequest) -> PageResult {
    let verb = offered(form.value("act"))?;
    app.perform(form.command(&execution, verb, arguments(&form)?)).await?;
    Ok(page::redirect_with_flash(&format!("/executions/{}", format::encoded(&execution)), verb.row().notice))
}

fn wrong(message: &str) -> AppError {
    AppError::new("server.arguments", message)
}
