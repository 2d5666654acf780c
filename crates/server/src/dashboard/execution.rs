//! One execution: how it stands, what it asks, its graph, its timeline, its entries, what it knows and what can be
//! undone. Which step is chosen and which tab is open stand in the address.

pub(super) mod act;
mod entries;
mod now;
pub(super) mod picture;
mod step;
mod table;

use super::format::{self, Id, Look, Moment};
use super::page::{self, Answer, Visitor};
use super::question::{Card, pretty};
use super::shell::{Section, Shell};
use crate::deed::forecast;
use crate::deed::rollback::Rollback;
use crate::desk::Desk;
use crate::fault::Fault;
use crate::words::span;
use act::{Act, Offer};
use askama::Template;
use axum::extract::{Path, State};
use entries::Entries;
use picture::Picture;
use rutter_core::execution::view::View;
use rutter_core::execution::{Execution, Identity};
use rutter_core::plan::{Driver, Plan};
use rutter_core::time::Timestamp;
use serde_json::Value;
use std::sync::Arc;
use step::StepPanel;
use table::StepRow;

/// Above this many steps a page is brought up to date less often.
const STEPS_MANY: usize = 200;
const INTERVAL_MANY_MS: u32 = 1_000;
/// What steps brought, all together.
const RESULTS_BYTES_MAX: usize = 256 << 10;

#[derive(Template)]
#[template(path = "execution.html")]
struct Shown {
    shell: Shell,
    id: Id,
    name: String,
    goal: String,
    look: Look,
    plan_href: String,
    revision: u32,
    facts: Vec<(&'static str, String)>,
    opened: Moment,
    now_line: String,
    /// What is likely from here, in a sentence; nothing when it goes forward no more.
    forecast: Option<String>,
    offers: Vec<Offer>,
    /// Why there is nothing to press.
    refusal: Option<&'static str>,
    cards: Vec<Card>,
    remains: Vec<String>,
    deviations: Vec<String>,
    tabs: Vec<Tab>,
    tab: &'static str,
    picture: Option<Picture>,
    rows: Vec<StepRow>,
    rows_note: Option<String>,
    entries: Option<Entries>,
    known: Vec<Known>,
    rollback: Rollback,
    step: Option<StepPanel>,
    command: String,
}

/// A link to another way of looking at the execution.
struct Tab {
    label: &'static str,
    href: String,
    is_open: bool,
}

/// A value the execution holds.
struct Known {
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

/// What is read of an execution at one moment.
struct Seen {
    view: View,
    plan: Arc<Plan>,
    rollback: Rollback,
    known: Vec<Known>,
    step: Option<step::Held>,
}

impl Seen {
    fn of(execution: &Execution, tab: &str, step: Option<&str>) -> Seen {
        Seen {
            view: execution.view(),
            plan: Arc::clone(execution.plan()),
            rollback: Rollback::of(execution),
            known: if tab == "context" { known(execution) } else { Vec::new() },
            step: step.and_then(|step| step::Held::of(execution, step)),
        }
    }
}

pub(super) async fn show(
    State(desk): State<Arc<Desk>>,
    Path(execution): Path<String>,
    visitor: Visitor,
) -> Answer {
    let identity = visitor.identity(&execution);
    let asked = visitor.asked("tab").unwrap_or("graph");
    let (tab, _) = TABS.iter().find(|(name, _)| *name == asked).copied().unwrap_or(TABS[0]);
    let shell = Shell::open(&desk, &visitor, Section::Executions, "").await?;
    let step = visitor.asked("step").map(str::to_owned);
    let seen = seen(&desk, &identity, tab, step).await?;
    let summary = desk.query.execution(&identity).await?;
    let summary = summary.ok_or_else(|| Fault::missing("execution", &execution))?;
    let shell = framed(shell, &seen.view);
    let address = Address { base: format!("/executions/{}", format::encoded(&execution)), visitor: &visitor };
    let picture = picture::draw(&desk, &identity, &seen, tab, &address, shell.now).await?;
    let members = picture.as_ref().and_then(|picture| picture.members.clone());
    let (rows, rows_note) = match tab {
        "graph" => table::rows(&seen, members.as_deref(), &address, shell.now),
        _ => (Vec::new(), None),
    };
    let entries = match tab {
        "events" => Some(Entries::read(&desk, &identity, &address, shell.now).await?),
        _ => None,
    };
    let panel = match &seen.step {
        Some(held) => Some(StepPanel::read(&desk, &identity, &seen, held, &address, shell.now).await?),
        None => None,
    };
    let view = &seen.view;
    let shown = Shown {
        id: Id::execution(&execution),
        name: view.plan.clone(),
        goal: view.goal.clone(),
        look: Look::of(view.status.as_str()),
        plan_href: format!("/plans/{}@{}", format::encoded(summary.plan.as_str()), view.revision),
        revision: view.revision,
        facts: facts(view, shell.now),
        opened: Moment::of(view.opened_at, shell.now),
        now_line: now::line(view, shell.now),
        forecast: forecast::of_execution(&desk, &seen.plan, view).map(|told| format::sentence(&told.text)),
        offers: if shell.may_operate() {
            Act::offers(view, &seen.rollback, &address.base)
        } else {
            Vec::new()
        },
        refusal: (!shell.may_operate()).then_some("Steering needs the scope operate, which you do not have."),
        cards: Card::all(view, &shell),
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
    page::show(&shown)
}

async fn seen(
    desk: &Desk,
    identity: &Identity,
    tab: &'static str,
    step: Option<String>,
) -> Result<Seen, Fault> {
    let look = move |execution: &Execution| Seen::of(execution, tab, step.as_deref());
    Ok(desk.engine.look(identity, look).await?)
}

fn framed(mut shell: Shell, view: &View) -> Shell {
    shell.title = format!("{} · {}", view.plan, view.status.as_str());
    if view.total > STEPS_MANY {
        shell.interval_ms = INTERVAL_MANY_MS;
    }
    let stream = format!("/api/v1/executions/{}/events", format::encoded(view.execution.as_str()));
    if view.status.has_ended() && view.questions.is_empty() { shell } else { shell.live(stream) }
}

fn facts(view: &View, now: Timestamp) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Progress", format!("{} of {} steps settled", view.settled, view.total)),
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

/// What it was given, what steps brought and what was saved.
fn known(execution: &Execution) -> Vec<Known> {
    let inputs = execution.inputs().map(|inputs| Known::of("inputs".to_owned(), inputs));
    let mut known: Vec<Known> = inputs.into_iter().collect();
    if !execution.context().is_empty() {
        known.push(Known::of("saved context".to_owned(), &Value::Object(execution.context().clone())));
    }
    let mut left = RESULTS_BYTES_MAX;
    for step in &execution.plan().steps {
        let Some(result) = execution.result_of(step.id.as_str()) else { continue };
        let value = Known::of(format!("result of {}", step.id), result);
        let Some(rest) = left.checked_sub(value.json.len()) else { break };
        left = rest;
        known.push(value);
    }
    known
}

impl Known {
    fn of(name: String, value: &Value) -> Known {
        let (json, is_cut) = pretty(value);
        Known { name, json, is_cut }
    }
}

/// Where this page is, and what its address says.
struct Address<'a> {
    base: String,
    visitor: &'a Visitor,
}

impl Address<'_> {
    /// The same page with some of its query changed; an empty value takes it away.
    fn with(&self, changes: &[(&str, &str)]) -> String {
        let kept = ["tab", "step", "group", "kind", "text", "zoom"];
        let mut pairs: Vec<(String, String)> = Vec::new();
        for name in kept {
            let changed = changes.iter().find(|(changed, _)| *changed == name).map(|(_, value)| *value);
            let value = changed.or_else(|| self.visitor.asked(name)).unwrap_or_default();
            pairs.push((name.to_owned(), value.to_owned()));
        }
        let others = changes.iter().filter(|(name, _)| !kept.contains(name));
        pairs.extend(others.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        format!("{}{}", self.base, format::query(&pairs))
    }

    fn tab(&self, name: &'static str, label: &'static str, open: &str) -> Tab {
        let href = self.with(&[("tab", name), ("kind", ""), ("text", ""), ("zoom", "")]);
        Tab { label, href, is_open: name == open }
    }
}
