//! Commands to several executions at once, after a confirmation page.

use super::ExecutionRow;
use crate::page::{self, FormRequest, PageResult};
use crate::shell::{PageSection, PageShell};
use askama::Template;
use axum::extract::State;
use rutter_app::app::App;
use rutter_app::command::CommandArguments;
use rutter_app::error::AppError;
use rutter_app::verb::{OfferedTo, Verb, VerbRow};
use std::sync::Arc;

/// More than a page of the list has.
const CHOSEN_MAX: usize = 100;

#[derive(Template)]
#[template(path = "executions_confirm.html")]
struct ConfirmBulkPage {
    shell: PageShell,
    verb: &'static VerbRow,
    rows: Vec<ExecutionRow>,
    back: String,
}

#[derive(Template)]
#[template(path = "executions_done.html")]
struct BulkResultPage {
    shell: PageShell,
    verb: &'static VerbRow,
    done: usize,
    refused: Vec<(ExecutionRow, AppError)>,
    back: String,
}

pub(crate) async fn run(State(app): State<Arc<App>>, form: FormRequest) -> PageResult {
    let request = &form.request;
    let wrong = |message: &str| AppError::new("server.arguments", message);
    let verb = form.value("action").and_then(Verb::parse).filter(|verb| verb.is_offered_to(OfferedTo::ExecutionList));
    // A principal that may send none of the commands learns that first.
    app.require_verb(&request.principal, verb.unwrap_or(Verb::Pause))?;
    let verb = verb.ok_or_else(|| wrong("expected action pause, resume or cancel"))?.row();
    let chosen: Vec<&str> = form.values("execution").collect();
    if chosen.is_empty() {
        return Ok(page::redirect_with_flash(form.back(), "nothing_chosen"));
    }
    if chosen.len() > CHOSEN_MAX {
        return Err(wrong("select at most 100 executions at once").into());
    }
    let now = app.now();
    let mut rows = Vec::new();
    for id in chosen {
        let found = app.query.execution(&request.identity(id)).await?;
        rows.push(ExecutionRow::of(&found.ok_or_else(|| AppError::missing("execution", id))?, now));
    }
    let back = form.back().to_owned();
    let title = format!("{} {} executions", verb.label, rows.len());
    if form.value("confirm").is_none() {
        let shell = PageShell::open(&app, request, PageSection::Executions, title).await?;
        return page::render(&ConfirmBulkPage { shell, verb, rows, back });
    }
    let (mut done, mut refused) = (0, Vec::new());
    for row in rows {
        match app.perform(form.command(&row.id.full, verb.verb, CommandArguments::default())).await {
            Ok(()) => done += 1,
            Err(error) => refused.push((row, error)),
        }
    }
    if refused.is_empty() {
        return Ok(page::redirect_with_flash(&back, &format!("{}-{done}", verb.notice)));
    }
    let shell = PageShell::open(&app, request, PageSection::Executions, title).await?;
    page::render(&BulkResultPage { shell, verb, done, refused, back })
}
