//! The facts of an execution: where its steps stand, and what its journal tells of the way there.

use super::event::{TOLD, fact, spelled, told};
use super::{Account, Fact, Kind, Length, moment, quote};
use crate::desk::Desk;
use crate::fault::Fault;
use crate::words;
use rutter_core::execution::Identity;
use rutter_core::execution::view::{Ask, StepView, View};
use rutter_core::plan::Driver;
use rutter_core::port::query::{EntryFilter, Page};
use rutter_core::time::Millis;
use std::collections::BTreeMap;

const ENTRIES_PER_PAGE: u32 = 500;
/// Entries that are read for one account; an execution with more is told so.
const ENTRIES_MAX: usize = 2_000;

pub async fn account(desk: &Desk, identity: &Identity, length: Length) -> Result<Account, Fault> {
    let view = desk.engine.view(identity).await?;
    let mut facts = of_view(&view, length);
    let filter = EntryFilter {
        execution: Some(identity.execution.clone()),
        kinds: TOLD.iter().map(|kind| (*kind).to_owned()).collect(),
        ..EntryFilter::default()
    };
    let (mut page, mut read) = (Page::first(ENTRIES_PER_PAGE), 0);
    loop {
        let listing = desk.query.entries(&identity.tenant, filter.clone(), page).await?;
        read += listing.items.len();
        facts.extend(listing.items.iter().filter_map(|entry| fact(&entry.record, length)));
        let Some(next) = listing.next else { break };
        if read >= ENTRIES_MAX {
            let text = format!("only the first {read} entries of the journal that tell something were read");
            facts.push(Fact::new(Kind::Outcome, None, text));
            break;
        }
        page = Page { limit: ENTRIES_PER_PAGE, after: Some(next) };
    }
    facts.extend(patterns(&view));
    Ok(Account {
        headline: words::summary(&view),
        facts,
        next: words::next(&view),
        uri: format!("rutter://executions/{}", view.execution),
    })
}

fn of_view(view: &View, length: Length) -> Vec<Fact> {
    let mut facts = vec![outcome(view, length)];
    if !view.goal.is_empty() {
        facts.push(Fact::new(Kind::Plan, None, format!("the goal is {}", quote(&view.goal, length))));
    }
    let questions = view.questions.iter();
    facts.extend(questions.map(|ask| {
        let how = words::how(&view.execution, ask);
        let text = format!("open: {}; answered with {how}", question(ask, length));
        Fact::new(Kind::Question, None, text)
    }));
    let remains = view.remains.iter();
    facts.extend(remains.map(|part| {
        Fact::new(Kind::Remains, None, format!("the effect of step {part} is, or may be, still there"))
    }));
    facts.extend(view.deviations.iter().map(|deviation| {
        let step = deviation.step.as_ref().map(|step| format!(" step {step}")).unwrap_or_default();
        let (kind, what) = (spelled(&deviation.kind), quote(&deviation.description, length));
        Fact::new(Kind::Deviation, None, format!("differs from the plan, {kind}{step}: {what}"))
    }));
    facts.push(spent(view));
    facts.extend(view.steps.iter().map(|step| of_step(step, length)));
    facts
}

/// What is asked, with the words of tools in quotes.
fn question(ask: &Ask, length: Length) -> String {
    match ask {
        Ask::Failure { step, failures, .. } => {
            let why = failures.first().map(|(_, failure)| format!(" with {}", told(failure, length)));
            format!("step {step} failed{}, and somebody must decide", why.unwrap_or_default())
        }
        Ask::Compensation { part, failure, .. } => {
            format!("undoing step {part} failed with {}, and somebody must decide", told(failure, length))
        }
        Ask::Tool { part, message, .. } => format!("the tool of step {part} asks {}", quote(message, length)),
        Ask::Approval { .. } | Ask::Doubt { .. } | Ask::Limit { .. } | Ask::Drift { .. } => ask.to_string(),
    }
}

fn outcome(view: &View, length: Length) -> Fact {
    let driver = if view.driver == Driver::Agent { "an agent" } else { "Rutter" };
    let began = view.started_at.unwrap_or(view.opened_at);
    let text = format!(
        "plan {}, revision {}, is {}: {} of {} steps settled, driven by {driver}, from {} to {}",
        quote(&view.plan, length),
        view.revision,
        view.status.as_str(),
        view.settled,
        view.total,
        moment::full(began),
        moment::full(view.last_at)
    );
    Fact::new(Kind::Outcome, None, text)
}

fn spent(view: &View) -> Fact {
    let took = view.last_at.since(view.started_at.unwrap_or(view.opened_at));
    let mut text = format!("took {took} so far, {} calls", view.calls);
    if view.status.has_ended() {
        text = format!("took {took}, {} calls", view.calls);
    }
    if view.cost_micros > 0 {
        text.push_str(&format!(
            ", cost {}.{:06}",
            view.cost_micros / 1_000_000,
            view.cost_micros % 1_000_000
        ));
    }
    Fact::new(Kind::Spent, None, text)
}

fn of_step(step: &StepView, length: Length) -> Fact {
    let mut text = format!("step {} ({}) is {}", step.id, step.tool, step.status);
    if step.by_hand {
        text.push_str(", by hand");
    }
    if let Some((done, all)) = step.items {
        text.push_str(&format!(", {done} of {all} items at rest"));
    }
    if step.attempts > 1 {
        text.push_str(&format!(", {} attempts", step.attempts));
    }
    if let Some(took) = duration(step) {
        text.push_str(&format!(", took {took}"));
    }
    if let Some(failure) = &step.failure {
        text.push_str(&format!("; {}", told(failure, length)));
    }
    Fact::new(Kind::Step, step.began_at, text)
}

fn duration(step: &StepView) -> Option<Millis> {
    Some(step.ended_at?.since(step.began_at?))
}

/// What only shows when steps are compared.
fn patterns(view: &View) -> Vec<Fact> {
    let mut found = Vec::new();
    let slowest =
        view.steps.iter().filter_map(|step| Some((duration(step)?, step))).max_by_key(|(took, _)| *took);
    if let Some((took, step)) = slowest.filter(|(took, _)| view.steps.len() > 1 && took.0 > 0) {
        found.push(Fact::new(Kind::Spent, None, format!("the longest step was {}, {took}", step.id)));
    }
    let repeated: Vec<String> =
        view.steps.iter().filter(|step| step.attempts > 1).take(10).map(|step| step.id.to_string()).collect();
    if !repeated.is_empty() {
        found.push(Fact::new(Kind::Spent, None, format!("tried more than once: {}", repeated.join(", "))));
    }
    let mut categories: BTreeMap<&str, usize> = BTreeMap::new();
    for failure in view.steps.iter().filter_map(|step| step.failure.as_ref()) {
        *categories.entry(failure.category.as_str()).or_default() += 1;
    }
    if !categories.is_empty() {
        let parts: Vec<String> = categories.iter().map(|(word, count)| format!("{word} {count}")).collect();
        let text = format!("steps that failed, by category: {}", parts.join(", "));
        found.push(Fact::new(Kind::Failure, None, text));
    }
    found
}
