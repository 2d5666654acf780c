//! The page of one plan revision: graph, preview, checks, revisions, executions, source, and a form that starts it.

pub(super) mod change;
mod preview;
pub(super) mod start;
mod versions;

use super::execution::picture::{DiagramPanel, draw_graph, select};
use super::executions;
use super::format::{self, IdentifierLink, TimeLabel};
use super::page::{self, PageRequest, PageResult};
use super::question::{FormField, field, pretty};
use super::shell::{PageSection, PageShell};
use crate::drawing::graph;
use askama::Template;
use axum::extract::{Path, State};
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::executions::{PlanFindings, PlanText};
use rutter_app::forecast;
use rutter_app::plans::saved_plan;
use rutter_app::wording::span;
use rutter_core::diagnostic::{Diagnostic, DiagnosticSeverity};
use rutter_core::id::TenantId;
use rutter_core::plan::Plan;
use rutter_core::port::query::{ExecutionFilter, Pagination, SavedPlan};
use serde_json::Value;
use std::sync::Arc;
use versions::RevisionRow;

const EXECUTIONS_MAX: u32 = 50;
const SOURCE_BYTES_MAX: usize = 256 << 10;

const TABS: [(&str, &str); 6] = [
    ("graph", "Graph"),
    ("preview", "Preview"),
    ("checks", "Checks"),
    ("versions", "Versions"),
    ("executions", "Executions"),
    ("source", "Source"),
];

#[derive(Template)]
#[template(path = "plan.html")]
struct PlanPage {
    shell: PageShell,
    id: IdentifierLink,
    name: String,
    goal: String,
    revision: u32,
    saved: TimeLabel,
    by: String,
    tags: Vec<String>,
    about: String,
    facts: Vec<(&'static str, String)>,
    tab: &'static str,
    tabs: Vec<(&'static str, String, bool)>,
    picture: Option<DiagramPanel>,
    steps: Vec<preview::StepPreviewCard>,
    chosen: Option<preview::WhatIfCard>,
    no_return: Option<(String, String)>,
    /// The forecast as a sentence.
    forecast: String,
    findings: Vec<PlanFinding>,
    absent: Vec<String>,
    versions: Vec<RevisionRow>,
    changes: Vec<String>,
    compared: Option<u32>,
    rows: Vec<executions::ExecutionRow>,
    source: String,
    is_archived: bool,
    /// For the forms that change it.
    change_href: String,
    /// For the form that starts it.
    start_href: String,
    fields: Vec<FormField>,
    schema: Option<String>,
    missing: Vec<String>,
    command: String,
}

/// A finding of the check.
struct PlanFinding {
    is_error: bool,
    code: &'static str,
    pointer: String,
    message: String,
    hint: String,
}

pub(super) async fn show(State(app): State<Arc<App>>, Path(address): Path<String>, request: PageRequest) -> PageResult {
    let tenant = &request.principal.tenant;
    let saved = find(&app, tenant, &address).await?;
    let (summary, plan) = (&saved.summary, &saved.plan);
    let asked = request.query_value("tab").unwrap_or("graph");
    let (tab, _) = TABS.iter().find(|(name, _)| *name == asked).copied().unwrap_or(TABS[0]);
    let title = format!("{} @{}", summary.name, summary.revision);
    let shell = PageShell::open(&app, &request, PageSection::Plans, title).await?;
    let base = format!("/plans/{}@{}", format::encoded(summary.id.as_str()), summary.revision);
    let here = |tab: &str, name: &str, value: &str| {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        format!("{base}{}", format::query(&[pair("tab", tab), pair(name, value)]))
    };
    let picture = (tab == "graph").then(|| {
        let mut graph = graph::of_plan(plan, &|step| here("preview", "step", step));
        select(&mut graph, request.query_value("step"));
        draw_graph(&graph, request.query_value("group"), &|group| here("graph", "group", group))
    });
    let (findings, absent) = match tab {
        "checks" => checked(&app, tenant, plan).await?,
        _ => (Vec::new(), Vec::new()),
    };
    let plan_preview = (tab == "preview").then(|| rutter_core::preview::preview(plan));
    let (versions, compared, changes) = match tab {
        "versions" => versions::read(&app, tenant, &saved, request.query_value("from"), shell.now).await?,
        _ => (Vec::new(), None, Vec::new()),
    };
    let rows = match tab {
        "executions" => {
            let filter = ExecutionFilter { plan: Some(summary.id.clone()), ..ExecutionFilter::default() };
            let found = app.query.executions(tenant, filter, Pagination::first(EXECUTIONS_MAX)).await?;
            found.items.iter().map(|found| executions::ExecutionRow::of(found, shell.now)).collect()
        }
        _ => Vec::new(),
    };
    let inputs: Option<&Value> = plan.inputs.as_deref();
    let plan_page = PlanPage {
        id: IdentifierLink { full: summary.id.to_string(), href: base.clone() },
        name: summary.name.clone(),
        goal: summary.goal.clone(),
        revision: summary.revision,
        saved: TimeLabel::of(summary.saved_at, shell.now),
        by: summary.actor.to_string(),
        tags: summary.tags.clone(),
        about: plan.about.description.clone(),
        facts: facts(plan),
        tab,
        tabs: TABS.iter().map(|(name, label)| (*label, here(name, "", ""), *name == tab)).collect(),
        picture,
        steps: plan_preview
            .as_ref()
            .map(|plan_preview| preview::cards(plan_preview, &|step| here("preview", "step", step)))
            .unwrap_or_default(),
        chosen: plan_preview
            .as_ref()
            .and_then(|plan_preview| preview::chosen(plan_preview, request.query_value("step")?)),
        no_return: plan_preview
            .and_then(|preview| preview.point_of_no_return)
            .map(|point| (point.step.to_string(), point.reason)),
        forecast: format::sentence(&forecast::of_plan(&app, plan).text),
        findings,
        absent,
        versions,
        changes,
        compared,
        rows,
        source: if tab == "source" { source(plan) } else { String::new() },
        is_archived: summary.is_archived,
        change_href: format!("/plans/{}/change", format::encoded(summary.id.as_str())),
        start_href: format!("{base}/start"),
        fields: inputs.map(field::of).unwrap_or_default(),
        schema: inputs.map(|inputs| pretty(inputs).0),
        missing: plan.tools_missing().map(ToString::to_string).collect(),
        command: format!("rutter run {}", summary.id),
        shell,
    };
    page::render(&plan_page)
}

/// The plan in the URL, by id or name: `plan_…` is its newest revision, `plan_…@2` the second.
async fn find(app: &App, tenant: &TenantId, address: &str) -> Result<SavedPlan, AppError> {
    saved_plan(app, tenant, address, None).await.map_err(|error| error.hint("see the Plans page"))
}

fn facts(plan: &Plan) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Steps", plan.steps.len().to_string()),
        ("Max parallel", plan.max_parallel.to_string()),
        ("Deadline", span(plan.deadline)),
        ("Hash", plan.hash.short()),
    ];
    facts.extend(plan.budget.calls.map(|calls| ("Max calls", calls.to_string())));
    facts
}

/// Checks the plan again: tools may have changed since it was saved.
async fn checked(app: &App, tenant: &TenantId, plan: &Plan) -> Result<(Vec<PlanFinding>, Vec<String>), AppError> {
    let text =
        PlanText { tenant: tenant.clone(), source: plan.source.to_vec(), format: plan.format, driver: plan.driver() };
    let PlanFindings { found, absent, .. } = app.findings(&text).await?;
    let absent = absent.into_iter().map(|(server, failure)| format!("{server}: {failure}")).collect();
    Ok((found.into_iter().map(finding).collect(), absent))
}

fn finding(found: Diagnostic) -> PlanFinding {
    PlanFinding {
        is_error: found.severity == DiagnosticSeverity::Error,
        code: found.code,
        pointer: found.pointer,
        message: found.message,
        hint: found.hint.unwrap_or_default(),
    }
}

fn source(plan: &Plan) -> String {
    rutter_core::text::cut(&String::from_utf8_lossy(&plan.source), SOURCE_BYTES_MAX)
}
