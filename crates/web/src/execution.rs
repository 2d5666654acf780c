//! The page of one execution: state, questions, graph, timeline, entries, context and compensation. The URL contains
//! the selected step and the open tab.

pub(super) mod actions;
mod entries;
mod now;
pub(super) mod picture;
mod step;
mod table;

use super::format::{self, IdentifierLink, StatusBadge, TimeLabel};
use super::page::{self, PageRequest, PageResult};
use super::question::{QuestionCard, pretty};
use super::shell::{PageSection, PageShell};
use actions::ActionButton;
use askama::Template;
use axum::extract::{Path, State};
use entries::{EntriesTab, read_journal};
use picture::DiagramPanel;
use rutter_app::app::App;
use rutter_app::error::AppError;
use rutter_app::forecast;
use rutter_app::rollback::Rollback;
use rutter_app::wording::span;
use rutter_core::execution::view::ExecutionSnapshot;
use rutter_core::execution::{Execution, ExecutionIdentity};
use rutter_core::plan::{Driver, Plan};
use rutter_core::time::Timestamp;
use serde_json::Value;
use std::sync::Arc;
use step::StepDetailPanel;
use table::StepTableRow;

/// With more steps than this the page is updated less often.
const STEPS_MANY: usize = 200;
const INTERVAL_MANY_MS: u32 = 1_000;
/// Size limit of all step results together.
const RESULTS_BYTES_MAX: usize = 256 << 10;

#[derive(Template)]
#[template(path = "execution.html")]
struct ExecutionPage {
    shell: PageShell,
    id: IdentifierLink,
    name: String,
    goal: String,
    look: StatusBadge,
    plan_href: String,
    revision: u32,
    facts: Vec<(&'static str, String)>,
    opened: TimeLabel,
    now_line: String,
    /// The forecast as a sentence; none when it makes no more forward steps.
    forecast: Option<String>,
    offers: Vec<ActionButton>,
    /// Why there are no buttons.
    refusal: Option<&'static str>,
    cards: Vec<QuestionCard>,
    /// How it ended: label and text.
    ending: Vec<(&'static str, String)>,
    remains: Vec<String>,
    deviations: Vec<String>,
    tabs: Vec<ExecutionTab>,
    tab: &'static str,
    picture: Option<DiagramPanel>,
    rows: Vec<StepTableRow>,
    rows_note: Option<String>,
    entries: Option<EntriesTab>,
    known: Vec<KnownValue>,
    rollback: Rollback,
    step: Option<StepDetailPanel>,
    command: String,
}

/// A link to a tab.
struct ExecutionTab {
    label: &'static str,
    href: String,
    is_open: bool,
}

/// A value of the context.
struct KnownValue {
    name: String,
    json: String,
    is_cut: bool,
}

const TABS: [(&str, &str); 5] = [
    ("graph", "Graph"),
    ("timeline", "Timeline"),
    ("events", "Events"),
    ("context", "Context"),
    ("compensation", "Compensation"),
];

/// A snapshot of the execution for this page.
struct ExecutionPageState {
    view: ExecutionSnapshot,
    plan: Arc<Plan>,
    rollback: Rollback,
    known: Vec<KnownValue>,
    step: Option<step::StepValues>,
}

impl ExecutionPageState {
    fn of(execution: &Execution, tab: &str, step: Option<&str>) -> ExecutionPageState {
        ExecutionPageState {
            view: execution.view(),
            plan: Arc::clone(execution.plan()),
            rollback: Rollback::of(execution),
            known: if tab == "context" { known(execution) } else { Vec::new() },
            step: step.and_then(|step| step::StepValues::of(execution, step)),
        }
    }
}

pub(super) async fn show(
    State(app): State<Arc<App>>,
    Path(execution): Path<String>,
    page_request: PageRequest,
) -> PageResult {
    let identity = page_request.identity(&execution);
    let asked = page_request.query_value("tab").unwrap_or("graph");
    let (tab, _) = TABS.iter().find(|(name, _)| *name == asked).copied().unwrap_or(TABS[0]);
    let shell = PageShell::open(&app, &page_request, PageSection::Executions, "").await?;
    let step = page_request.query_value("step").map(str::to_owned);
    let seen = read_page_state(&app, &identity, tab, step).await?;
    let summary = app.query.execution(&identity).await?;
    let summary = summary.ok_or_else(|| AppError::missing("execution", &execution))?;
    let shell = with_execution_frame(shell, &seen.view);
    let address =
        ExecutionPageUrl { base: format!("/executions/{}", format::encoded(&execution)), request: &page_request };
    let journal = match tab == "timeline" || tab == "events" || seen.step.is_some() {
        true => Some(read_journal(&app, &identity).await?),
        false => None,
    };
    let picture = picture::draw(journal.as_ref(), &seen, tab, &address, shell.now);
    let members = picture.as_ref().and_then(|picture| picture.members.clone());
    let (rows, rows_note) = match tab {
        "graph" => table::rows(&seen, members.as_deref(), &address, shell.now),
        _ => (Vec::new(), None),
    };
    let entries = match tab {
        "events" => journal.as_ref().map(|journal| EntriesTab::of(journal, &address, shell.now)),
        _ => None,
    };
    let panel = seen.step.as_ref().zip(journal.as_ref());
    let panel = panel.map(|(held, journal)| StepDetailPanel::of(journal, &seen, held, &address, shell.now));
    let view = &seen.view;
    let execution_page = ExecutionPage {
        id: IdentifierLink::execution(&execution),
        name: view.plan.clone(),
        goal: view.goal.clone(),
        look: StatusBadge::of(view.status.as_str()),
        plan_href: format!("/plans/{}@{}", format::encoded(summary.plan.as_str()), view.revision),
        revision: view.revision,
        facts: facts(view, shell.now),
        opened: TimeLabel::of(view.opened_at, shell.now),
        now_line: now::line(view, shell.now),
        forecast: forecast::of_execution(&app, &seen.plan, view)
            .map(|forecast_json| format::sentence(&forecast_json.text)),
        offers: if shell.may_command() { ActionButton::all(view, &seen.rollback, &address.base) } else { Vec::new() },
        refusal: (!shell.may_command())
            .then_some("Controlling executions needs the scope operate, which you do not have."),
        cards: QuestionCard::all(view, &shell),
        ending: now::ending(view),
        remains: view.remains.iter().map(ToString::to_string).collect(),
        deviations: view.deviations.iter().map(|deviation| deviation.description.clone()).collect(),
        tabs: TABS.iter().map(|(name, label)| address.tab(name, label, tab)).collect(),
        tab,
        picture,
        rows,
        rows_note,
        entries,
        known: seen.known,
        rollback: seen.rollback,
        step: panel,
        command: format!("rutter exec show {execution}"),
        shell,
    };
    page::render(&execution_page)
}

async fn read_page_state(
    app: &App,
    identity: &ExecutionIdentity,
    tab: &'static str,
    step: Option<String>,
) -> Result<ExecutionPageState, AppError> {
    let look = move |execution: &Execution| ExecutionPageState::of(execution, tab, step.as_deref());
    app.look(identity, look).await
}

fn with_execution_frame(mut shell: PageShell, view: &ExecutionSnapshot) -> PageShell {
    shell.title = format!("{} · {}", view.plan, view.status.as_str());
    if view.total > STEPS_MANY {
        shell.interval_ms = INTERVAL_MANY_MS;
    }
    let stream = format!("/api/v1/executions/{}/events", format::encoded(view.execution.as_str()));
    if view.status.has_ended() && view.questions.is_empty() { shell } else { shell.live(stream) }
}

fn facts(view: &ExecutionSnapshot, now: Timestamp) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Progress", format!("{} of {} steps completed", view.completed, view.total)),
        ("Driver", if view.driver == Driver::Agent { "agent" } else { "Rutter" }.to_owned()),
        ("Calls", view.calls.to_string()),
    ];
    if let Some(started) = view.started_at {
        let until = if view.status.has_ended() { view.last_at } else { now };
        facts.push(("Took", span(until.since(started))));
    }
    if view.cost_micros > 0 {
        facts.push(("Cost", format!("{}.{:06}", view.cost_micros / 1_000_000, view.cost_micros % 1_000_000)));
    }
    facts
}

/// Inputs, results of steps and saved context.
fn known(execution: &Execution) -> Vec<KnownValue> {
    let inputs = execution.inputs().map(|inputs| KnownValue::of("inputs".to_owned(), inputs));
    let mut known: Vec<KnownValue> = inputs.into_iter().collect();
    if !execution.context().is_empty() {
        known.push(KnownValue::of("saved context".to_owned(), &Value::Object(execution.context().clone())));
    }
    let mut left = RESULTS_BYTES_MAX;
    for step in &execution.plan().steps {
        let Some(result) = execution.result_of(step.id.as_str()) else { continue };
        let value = KnownValue::of(format!("result of {}", step.id), result);
        let Some(rest) = left.checked_sub(value.json.len()) else { break };
        left = rest;
        known.push(value);
    }
    known
}

impl KnownValue {
    fn of(name: String, value: &Value) -> KnownValue {
        let (json, is_cut) = pretty(value);
        KnownValue { name, json, is_cut }
    }
}

/// The page's URL and its query.
struct ExecutionPageUrl<'a> {
    base: String,
    request: &'a PageRequest,
}

impl ExecutionPageUrl<'_> {
    /// The same URL with some parameters changed; an empty value removes one.
    fn with(&self, changes: &[(&str, &str)]) -> String {
        let stored = ["tab", "step", "group", "kind", "text", "zoom"];
        let mut pairs: Vec<(String, String)> = Vec::new();
        for name in stored {
            let changed = changes.iter().find(|(changed, _)| *changed == name).map(|(_, value)| *value);
            let value = changed.or_else(|| self.request.query_value(name)).unwrap_or_default();
            pairs.push((name.to_owned(), value.to_owned()));
        }
        let others = changes.iter().filter(|(name, _)| !stored.contains(name));
        pairs.extend(others.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        format!("{}{}", self.base, format::query(&pairs))
    }

    fn tab(&self, name: &'static str, label: &'static str, open: &str) -> ExecutionTab {
        let href = self.with(&[("tab", name), ("kind", ""), ("text", ""), ("zoom", "")]);
        ExecutionTab { label, href, is_open: name == open }
    }
}
