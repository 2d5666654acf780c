//! One revision of a plan: its graph, what would happen, what is doubtful, how it changed, how it went, and a form that
//! starts it.

mod preview;
pub(super) mod start;
mod versions;

use super::execution::picture::{Picture, draw_graph, select};
use super::executions;
use super::format::{self, Id, Moment};
use super::page::{self, Answer, Visitor};
use super::question::{Field, field, pretty};
use super::shell::{Section, Shell};
use crate::deed::forecast;
use crate::deed::plan::no_plan;
use crate::desk::Desk;
use crate::drawing::graph;
use crate::fault::Fault;
use crate::words::span;
use askama::Template;
use axum::extract::{Path, State};
use rutter_core::id::{PlanId, TenantId};
use rutter_core::plan::diagnostic::{Diagnostic, Severity};
use rutter_core::plan::{Driver, Plan};
use rutter_core::port::query::{ExecutionFilter, Page, SavedPlan};
use rutter_engine::Error;
use rutter_engine::submit::PlanText;
use serde_json::Value;
use std::sync::Arc;
use versions::Version;

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
struct Shown {
    shell: Shell,
    id: Id,
    name: String,
    goal: String,
    revision: u32,
    saved: Moment,
    by: String,
    tags: Vec<String>,
    about: String,
    facts: Vec<(&'static str, String)>,
    tab: &'static str,
    tabs: Vec<(&'static str, String, bool)>,
    picture: Option<Picture>,
    steps: Vec<preview::StepCard>,
    chosen: Option<preview::WhatIfCard>,
    no_return: Option<(String, String)>,
    /// What is likely, in a sentence.
    forecast: String,
    findings: Vec<Finding>,
    absent: Vec<String>,
    versions: Vec<Version>,
    changes: Vec<String>,
    compared: Option<u32>,
    rows: Vec<executions::Row>,
    source: String,
    /// For the form that starts it.
    start_href: String,
    fields: Vec<Field>,
    schema: Option<String>,
    missing: Vec<String>,
    command: String,
}

/// Something the check has to say.
struct Finding {
    is_error: bool,
    code: &'static str,
    pointer: String,
    message: String,
    hint: String,
}

pub(super) async fn show(
    State(desk): State<Arc<Desk>>,
    Path(address): Path<String>,
    visitor: Visitor,
) -> Answer {
    let tenant = &visitor.guest.tenant;
    let saved = find(&desk, tenant, &address).await?;
    let (summary, plan) = (&saved.summary, &saved.plan);
    let asked = visitor.asked("tab").unwrap_or("graph");
    let (tab, _) = TABS.iter().find(|(name, _)| *name == asked).copied().unwrap_or(TABS[0]);
    let title = format!("{} @{}", summary.name, summary.revision);
    let shell = Shell::open(&desk, &visitor, Section::Plans, title).await?;
    let base = format!("/plans/{}@{}", format::encoded(summary.id.as_str()), summary.revision);
    let here = |tab: &str, name: &str, value: &str| {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        format!("{base}{}", format::query(&[pair("tab", tab), pair(name, value)]))
    };
    let picture = (tab == "graph").then(|| {
        let mut graph = graph::of_plan(plan, &|step| here("preview", "step", step));
        select(&mut graph, visitor.asked("step"));
        draw_graph(&graph, visitor.asked("group"), &|group| here("graph", "group", group))
    });
    let (findings, absent) = match tab {
        "checks" => checked(&desk, tenant, plan).await?,
        _ => (Vec::new(), Vec::new()),
    };
    let told = (tab == "preview").then(|| rutter_core::plan::preview::preview(plan));
    let (versions, compared, changes) = match tab {
        "versions" => versions::read(&desk, tenant, &saved, visitor.asked("from"), shell.now).await?,
        _ => (Vec::new(), None, Vec::new()),
    };
    let rows = match tab {
        "executions" => {
            let filter = ExecutionFilter { plan: Some(summary.id.clone()), ..ExecutionFilter::default() };
            let found = desk.query.executions(tenant, filter, Page::first(EXECUTIONS_MAX)).await?;
            found.items.iter().map(|found| executions::Row::of(found, shell.now)).collect()
        }
        _ => Vec::new(),
    };
    let inputs: Option<&Value> = plan.inputs.as_deref();
    let shown = Shown {
        id: Id { full: summary.id.to_string(), href: base.clone() },
        name: summary.name.clone(),
        goal: summary.goal.clone(),
        revision: summary.revision,
        saved: Moment::of(summary.saved_at, shell.now),
        by: summary.actor.to_string(),
        tags: summary.tags.clone(),
        about: plan.about.description.clone(),
        facts: facts(plan),
        tab,
        tabs: TABS.iter().map(|(name, label)| (*label, here(name, "", ""), *name == tab)).collect(),
        picture,
        steps: told
            .as_ref()
            .map(|told| preview::cards(told, &|step| here("preview", "step", step)))
            .unwrap_or_default(),
        chosen: told.as_ref().and_then(|told| preview::chosen(told, visitor.asked("step")?)),
        no_return: told
            .and_then(|told| told.point_of_no_return)
            .map(|point| (point.step.to_string(), point.reason)),
        forecast: format::sentence(&forecast::of_plan(&desk, plan).text),
        findings,
        absent,
        versions,
        changes,
        compared,
        rows,
        source: if tab == "source" { source(plan) } else { String::new() },
        start_href: format!("{base}/start"),
        fields: inputs.map(field::of).unwrap_or_default(),
        schema: inputs.map(|inputs| pretty(inputs).0),
        missing: plan.tools_missing().map(ToString::to_string).collect(),
        command: format!("rutter run {}", summary.id),
        shell,
    };
    page::show(&shown)
}

/// The plan an address names: `plan_…` is its newest revision, `plan_…@2` the second.
async fn find(desk: &Desk, tenant: &TenantId, address: &str) -> Result<SavedPlan, Fault> {
    let (id, revision) = match address.rsplit_once('@') {
        None => (address, None),
        Some((id, revision)) => {
            let number = revision.parse::<u32>().ok().filter(|number| *number > 0);
            (id, Some(number.ok_or_else(|| Fault::missing("revision", revision))?))
        }
    };
    let id = PlanId::new(id);
    let saved = desk.query.plan(tenant, &id, revision).await?;
    saved.ok_or_else(|| no_plan(&id).hint("the page Plans lists what there is"))
}

fn facts(plan: &Plan) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Steps", plan.steps.len().to_string()),
        ("At once", plan.max_parallel.to_string()),
        ("Deadline", span(plan.deadline)),
        ("Hash", plan.hash.short()),
    ];
    facts.extend(plan.budget.calls.map(|calls| ("Calls at the most", calls.to_string())));
    facts
}

/// What the check says today: tools may have changed since the plan was saved.
async fn checked(desk: &Desk, tenant: &TenantId, plan: &Plan) -> Result<(Vec<Finding>, Vec<String>), Fault> {
    let text = PlanText {
        tenant: tenant.clone(),
        source: plan.source.to_vec(),
        format: plan.format,
        driver: if plan.tools_missing().next().is_some() { Driver::Agent } else { Driver::Server },
    };
    let (found, absent) = match desk.engine.check(&text).await {
        Ok(accepted) => (accepted.found, accepted.absent),
        Err(Error::Plan { found, absent }) => (found, absent),
        Err(error) => return Err(error.into()),
    };
    let absent = absent.into_iter().map(|(server, failure)| format!("{server}: {failure}")).collect();
    Ok((found.into_iter().map(finding).collect(), absent))
}

fn finding(found: Diagnostic) -> Finding {
    Finding {
        is_error: found.severity == Severity::Error,
        code: found.code,
        pointer: found.pointer,
        message: found.message,
        hint: found.hint.unwrap_or_default(),
    }
}

fn source(plan: &Plan) -> String {
    crate::words::cut(&String::from_utf8_lossy(&plan.source), SOURCE_BYTES_MAX)
}
