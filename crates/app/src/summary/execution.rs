//! The facts of an execution: the state of its steps, and its journal.

use super::event::{fact, failure_text, kinds};
use super::{FactKind, SummaryContent, SummaryFact, SummaryLength, quote};
use crate::app::App;
use crate::error::AppError;
use crate::reader::AnswerReader;
use crate::wording;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::view::{ExecutionSnapshot, PendingQuestion, StepSnapshot};
use rutter_core::plan::Driver;
use rutter_core::port::query::EntryFilter;
use rutter_core::text::spelled;
use rutter_core::time::Millis;
use rutter_core::time::calendar::utc_seconds;
use rutter_engine::all_pages;
use std::collections::BTreeMap;

/// The most entries read for one summary; the summary says if there are more.
const ENTRIES_MAX: usize = 2_000;

pub async fn account(
    app: &App,
    reader: &AnswerReader,
    identity: &ExecutionIdentity,
    length: SummaryLength,
) -> Result<SummaryContent, AppError> {
    let view = app.engine.view(identity).await?;
    let mut facts = of_view(&view, reader, length);
    let filter = EntryFilter { execution: Some(identity.execution.clone()), kinds: kinds(), ..EntryFilter::default() };
    let read = |page| app.query.entries(&identity.tenant, filter.clone(), page);
    let (entries, is_whole) = all_pages(ENTRIES_MAX, read).await?;
    facts.extend(entries.iter().filter_map(|entry| fact(&entry.record, length)));
    if !is_whole {
        let count = entries.len();
        let text = format!("only the first {count} entries of the journal that say something were read");
        facts.push(SummaryFact::new(FactKind::Outcome, None, text));
    }
    facts.extend(patterns(&view));
    Ok(SummaryContent {
        headline: wording::summary(&view),
        facts,
        next: wording::next(&view, reader),
        uri: format!("rutter://executions/{}", view.execution),
    })
}

fn of_view(view: &ExecutionSnapshot, reader: &AnswerReader, length: SummaryLength) -> Vec<SummaryFact> {
    let mut facts = vec![outcome(view, length)];
    if !view.goal.is_empty() {
        facts.push(SummaryFact::new(FactKind::Plan, None, format!("the goal is {}", quote(&view.goal, length))));
    }
    let questions = view.questions.iter();
    facts.extend(questions.map(|ask| {
        let how = crate::question::how(reader, &view.execution, ask);
        let text = format!("open: {}; {how}", question(ask, length));
        SummaryFact::new(FactKind::Question, None, text)
    }));
    let remains = view.remains.iter();
    facts.extend(remains.map(|part| {
        SummaryFact::new(FactKind::Remains, None, format!("the effect of step {part} is, or may be, still there"))
    }));
    facts.extend(
        view.unmet.iter().map(|unmet| SummaryFact::new(FactKind::Remains, None, format!("not delivered: {unmet}"))),
    );
    facts.extend(view.deviations.iter().map(|deviation| {
        let step = deviation.step.as_ref().map(|step| format!(" step {step}")).unwrap_or_default();
        let (kind, what) = (spelled(&deviation.kind), quote(&deviation.description, length));
        SummaryFact::new(FactKind::Deviation, None, format!("differs from the plan, {kind}{step}: {what}"))
    }));
    facts.push(spent(view));
    facts.extend(view.steps.iter().map(|step| of_step(step, length)));
    facts
}

/// The question, with the tool's words in quotes.
fn question(ask: &PendingQuestion, length: SummaryLength) -> String {
    match ask {
        PendingQuestion::Failure { step, failures, .. } => {
            let why = failures.first().map(|(_, failure)| format!(" with {}", failure_text(failure, length)));
            format!("step {step} failed{}, and waits for a decision", why.unwrap_or_default())
        }
        PendingQuestion::Compensation { part, failure, .. } => {
            format!("undoing step {part} failed with {}, and waits for a decision", failure_text(failure, length))
        }
        PendingQuestion::Tool { part, message, .. } => {
            format!("the tool of step {part} asks {}", quote(message, length))
        }
        PendingQuestion::Approval { .. }
        | PendingQuestion::Doubt { .. }
        | PendingQuestion::Limit { .. }
        | PendingQuestion::Replan { .. }
        | PendingQuestion::SecondEffect { .. }
        | PendingQuestion::Hold { .. }
        | PendingQuestion::Silence { .. }
        | PendingQuestion::Drift { .. } => ask.to_string(),
    }
}

fn outcome(view: &ExecutionSnapshot, length: SummaryLength) -> SummaryFact {
    let driver = if view.driver == Driver::Agent { "an agent" } else { "Rutter" };
    let began = view.started_at.unwrap_or(view.opened_at);
    let text = format!(
        "plan {}, revision {}, is {}: {} of {} steps completed, driven by {driver}, from {} to {}",
        quote(&view.plan, length),
        view.revision,
        view.status.as_str(),
        view.completed,
        view.total,
        utc_seconds(began),
        utc_seconds(view.last_at)
    );
    SummaryFact::new(FactKind::Outcome, None, text)
}

fn spent(view: &ExecutionSnapshot) -> SummaryFact {
    let took = view.last_at.since(view.started_at.unwrap_or(view.opened_at));
    let mut text = format!("took {took} so far, {} calls", view.calls);
    if view.status.has_ended() {
        text = format!("took {took}, {} calls", view.calls);
    }
    if view.cost_micros > 0 {
        text.push_str(&format!(", cost {}.{:06}", view.cost_micros / 1_000_000, view.cost_micros % 1_000_000));
    }
    SummaryFact::new(FactKind::Spent, None, text)
}

fn of_step(step: &StepSnapshot, length: SummaryLength) -> SummaryFact {
    let mut text = format!("step {} ({}) is {}", step.id, step.tool, step.status);
    if step.by_hand {
        text.push_str(", by hand");
    }
    if let Some((done, all)) = step.items {
        text.push_str(&format!(", {done} of {all} items settled"));
    }
    if step.attempts > 1 {
        text.push_str(&format!(", {} attempts", step.attempts));
    }
    if let Some(took) = duration(step) {
        text.push_str(&format!(", took {took}"));
    }
    if let Some(failure) = &step.failure {
        text.push_str(&format!("; {}", failure_text(failure, length)));
    }
    SummaryFact::new(FactKind::Step, step.began_at, text)
}

fn duration(step: &StepSnapshot) -> Option<Millis> {
    Some(step.ended_at?.since(step.began_at?))
}

/// Facts that result from comparing steps.
fn patterns(view: &ExecutionSnapshot) -> Vec<SummaryFact> {
    let mut found = Vec::new();
    let slowest = view.steps.iter().filter_map(|step| Some((duration(step)?, step))).max_by_key(|(took, _)| *took);
    if let Some((took, step)) = slowest.filter(|(took, _)| view.steps.len() > 1 && took.0 > 0) {
        found.push(SummaryFact::new(FactKind::Spent, None, format!("the longest step was {}, {took}", step.id)));
    }
    let repeated: Vec<String> =
        view.steps.iter().filter(|step| step.attempts > 1).take(10).map(|step| step.id.to_string()).collect();
    if !repeated.is_empty() {
        found.push(SummaryFact::new(FactKind::Spent, None, format!("tried more than once: {}", repeated.join(", "))));
    }
    let mut categories: BTreeMap<&str, usize> = BTreeMap::new();
    for failure in view.steps.iter().filter_map(|step| step.failure.as_ref()) {
        *categories.entry(failure.category.as_str()).or_default() += 1;
    }
    if !categories.is_empty() {
        let parts: Vec<String> = categories.iter().map(|(word, count)| format!("{word} {count}")).collect();
        let text = format!("steps that failed, by category: {}", parts.join(", "));
        found.push(SummaryFact::new(FactKind::Failure, None, text));
    }
    found
}
