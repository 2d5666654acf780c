//! What an event means, in words for the person who reads a journal.

use crate::report::counted;
use rutter_core::id::{PartId, StepId};
use rutter_core::journal::event::{
    DoubtSource, Event, LateAnswer, PlanRef, Question, Side, SkipReason, Then,
};
use rutter_core::journal::payload::Payload;
use serde::Serialize;
use serde_json::json;
use std::fmt::Display;

/// Says what happened. What the event carries is told apart, by [`payloads`].
pub(crate) fn happened<P>(event: &Event<P>) -> String {
    match event {
        Event::ExecutionOpened { plan, revision, driver, .. } => {
            format!("opened for {}, revision {revision}, driven by the {}", named(plan), word(driver))
        }
        Event::ExecutionStarted {} => "started".to_owned(),
        Event::FanOutOpened { step, count, .. } => format!("{step} fans out over {count} items"),
        Event::StepsSkipped { steps, because } => format!("{} skipped: {}", listed(steps), skipped(because)),
        Event::ApprovalRequested { part, tool, call, .. } => {
            format!("{part}: {tool} needs a person's yes to call {}", call.short())
        }
        Event::ApprovalGranted { part, call, reason } => {
            format!("{part}: call {} approved{}", call.short(), because(reason))
        }
        Event::ApprovalDenied { part, call, reason } => {
            format!("{part}: call {} denied{}", call.short(), because(reason))
        }
        Event::ApprovalExpired { part, call } => format!("{part}: nobody approved call {}", call.short()),
        Event::ApprovalVoided { part, call, reason } => {
            format!("{part}: the approval of call {} is void{}", call.short(), because(reason))
        }
        Event::AttemptStarted { part, side, attempt, tool, .. } => {
            format!("{}: calls {tool}, attempt {attempt}", sided(part, *side))
        }
        Event::AttemptAccepted { part, side, attempt, ticket } => {
            format!("{}: the tool works on attempt {attempt} under ticket {ticket:?}", sided(part, *side))
        }
        Event::ToolAsked { part, side, attempt, message, .. } => {
            format!("{}: the tool asks in attempt {attempt}: {message:?}", sided(part, *side))
        }
        Event::ToolAnswered { part, side, attempt, answer, reason } => {
            let answer = if answer.is_some() { "was answered" } else { "got no answer" };
            format!(
                "{}: what the tool asked in attempt {attempt} {answer}{}",
                sided(part, *side),
                because(reason)
            )
        }
        Event::AttemptSucceeded { part, side, attempt, .. } => {
            format!("{}: attempt {attempt} was answered", sided(part, *side))
        }
        Event::AttemptFailed { part, side, attempt, failure, maybe, then } => {
            let maybe = if *maybe { "; it may have happened" } else { "" };
            format!("{}: attempt {attempt} failed: {failure}{maybe}; {}", sided(part, *side), next(*then))
        }
        Event::AttemptLost { part, side, attempt, then } => {
            format!("{}: nobody knows how attempt {attempt} ended; {}", sided(part, *side), next(*then))
        }
        Event::LateAnswerArrived { part, side, attempt, answer, .. } => {
            let answer = match answer {
                LateAnswer::Done(_) => "it was done".to_owned(),
                LateAnswer::NotDone(failure) => format!("it was not done: {failure}"),
                LateAnswer::Maybe(failure) => format!("it may have been done: {failure}"),
            };
            format!("{}: a late answer to attempt {attempt}: {answer}", sided(part, *side))
        }
        Event::PreparationFailed { part, side, failure } => {
            format!("{}: no call could be made: {failure}", sided(part, *side))
        }
        Event::RetryAbandoned { part, side, failure } => {
            format!("{}: not tried again: {failure}", sided(part, *side))
        }
        Event::ProbeInconclusive { part, reason } => {
            format!("{part}: the probe does not tell{}", because(reason))
        }
        Event::DoubtSettled { part, side, happened, source, reason, then, .. } => {
            let who = match source {
                DoubtSource::Probe => "the probe",
                DoubtSource::LateAnswer => "a late answer",
                DoubtSource::Person => "a person",
            };
            let what = if *happened { "it happened" } else { "it did not happen" };
            let then = if *happened { String::new() } else { format!("; {}", next(*then)) };
            format!("{}: {what}, says {who}{}{then}", sided(part, *side), because(reason))
        }
        Event::FailureHandled { step, action, reason, cancelled, skipped } => {
            let cancelled = and("cancelled", cancelled);
            let skipped = and("skipped", skipped);
            format!("{step} failed for good, policy {}{}{cancelled}{skipped}", word(action), because(reason))
        }
        Event::QuestionAnswered { about, answer, reason, skipped, .. } => {
            let about = match about {
                Question::Failure(step) => format!("what to do about {step}"),
                Question::Compensation(part) => format!("what to do about undoing {part}"),
                Question::Limit(limit) => format!("what to do about the limit of {}", word(limit)),
            };
            format!("{about}: {}{}{}", word(answer), because(reason), and("skipped", skipped))
        }
        Event::LimitReached { limit, action } => {
            format!("the limit of {} is reached, policy {}", word(limit), word(action))
        }
        Event::Paused { reason } => format!("paused{}", because(reason)),
        Event::Resumed { reason } => format!("resumed{}", because(reason)),
        Event::CancelRequested { reason, undo } => {
            let undo = if *undo { ", with undoing" } else { "" };
            format!("to be cancelled{undo}{}", because(reason))
        }
        Event::Killed { reason } => format!("killed, without clean-up{}", because(reason)),
        Event::CompensationStarted { parts, reason, .. } => {
            format!("undoing {}{}", listed(parts), because(reason))
        }
        Event::CompensationRecorded { part, description, .. } => {
            format!("{part} was undone by hand{}", because(description))
        }
        Event::ReplanBegun { reason } => format!("a new plan is being made{}", because(reason)),
        Event::ReplanAbandoned { reason } => format!("no new plan after all{}", because(reason)),
        Event::Replanned { plan, revision, reason } => {
            format!("goes on with {}, revision {revision}{}", named(plan), because(reason))
        }
        Event::HandedOver { to, reason } => format!("the {} takes over{}", word(to), because(reason)),
        Event::ToolDrifted { tool, pinned, found } => {
            format!("{tool} is no longer the one of the plan: {} is now {}", pinned.short(), found.short())
        }
        Event::ToolAccepted { tool, definition, reason } => {
            format!("{tool} accepted as {}{}", definition.short(), because(reason))
        }
        Event::DecisionRecorded { step, decision, reason, .. } => {
            format!("{}decided: {decision}{}", at(step), because(reason))
        }
        Event::ActionRecorded { step, kind, description, .. } => {
            format!("{}did by hand, {kind}: {description}", at(step))
        }
        Event::ContextSaved { .. } => "saved a context".to_owned(),
        Event::DeviationFound { kind, step, description } => {
            format!("{}not as planned, {}: {description}", at(step), word(kind))
        }
        Event::ExecutionEnded { outcome, reason, remains } => {
            format!("ended {}{}{}", word(outcome), because(reason), and("not undone", remains))
        }
        Event::PlanSaved { id, revision, name, .. } => {
            format!("saved plan {name:?} as {id}, revision {revision}")
        }
        Event::PayloadsErased { execution, payloads, reason } => {
            let payloads = counted(*payloads, "payload", "payloads");
            format!("erased {payloads} of {execution}{}", because(reason))
        }
        Event::ExecutionsRemoved { executions, reason } => {
            let ids: Vec<_> = executions.iter().map(|removed| &removed.execution).collect();
            format!("removed {}{}", listed(&ids), because(reason))
        }
        Event::LedgerRestored { origin, size, reason } => {
            format!("goes on from a backup of {size} entries of {origin}{}", because(reason))
        }
        Event::SettingChanged { setting, id, change } => format!("{setting} {id}: {change}"),
    }
}

/// What the event carries, by the names of its fields.
pub(super) fn payloads(event: &Event) -> Vec<(&'static str, &Payload)> {
    let mut found = Vec::new();
    match event {
        Event::ExecutionOpened { inputs, .. } => found.push(("inputs", inputs)),
        Event::FanOutOpened { items, .. } => found.push(("items", items)),
        Event::ApprovalRequested { parameters, .. } | Event::AttemptStarted { parameters, .. } => {
            found.push(("parameters", parameters));
        }
        Event::ToolAsked { schema, .. } => found.push(("schema", schema)),
        Event::ToolAnswered { answer, .. } => found.extend(answer.as_ref().map(|answer| ("answer", answer))),
        Event::AttemptSucceeded { result, .. }
        | Event::LateAnswerArrived { answer: LateAnswer::Done(result), .. } => found.push(("result", result)),
        Event::DoubtSettled { result, evidence, .. } | Event::QuestionAnswered { result, evidence, .. } => {
            found.extend(result.as_ref().map(|result| ("result", result)));
            found.extend(evidence.as_ref().map(|evidence| ("evidence", evidence)));
        }
        Event::CompensationRecorded { evidence, .. } => {
            found.extend(evidence.as_ref().map(|evidence| ("evidence", evidence)));
        }
        Event::DecisionRecorded { details, .. } | Event::ActionRecorded { details, .. } => {
            found.extend(details.as_ref().map(|details| ("details", details)));
        }
        Event::ContextSaved { values } => found.push(("values", values)),
        _ => {}
    }
    found
}

fn named(plan: &PlanRef) -> String {
    match &plan.plan {
        Some(known) => format!("plan {:?} ({})", known.name, plan.hash.short()),
        None => format!("plan {}", plan.hash.short()),
    }
}

fn sided(part: &PartId, side: Side) -> String {
    match side {
        Side::Do => part.to_string(),
        Side::Fallback => format!("{part}, fallback"),
        Side::Undo => format!("{part}, undo"),
        Side::Probe => format!("{part}, probe"),
    }
}

fn next(then: Then) -> &'static str {
    match then {
        Then::RetryAt(_) => "to be tried again",
        Then::FallBack => "falls back",
        Then::InDoubt => "in doubt",
        Then::GiveUp => "given up",
    }
}

fn skipped(because: &SkipReason) -> String {
    match because {
        SkipReason::Condition => "the condition does not hold".to_owned(),
        SkipReason::NeedsResultOf(step) => format!("there is no result of {step}"),
        SkipReason::LeftUndone => "left undone".to_owned(),
    }
}

fn at(step: &Option<StepId>) -> String {
    step.as_ref().map(|step| format!("{step}: ")).unwrap_or_default()
}

fn because(reason: &str) -> String {
    if reason.is_empty() { String::new() } else { format!(" ({reason})") }
}

fn and<T: Display>(what: &str, names: &[T]) -> String {
    if names.is_empty() { String::new() } else { format!("; {what}: {}", listed(names)) }
}

fn listed<T: Display>(names: &[T]) -> String {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    crate::table::listed(&names)
}

/// A word as journals spell it, with spaces.
pub(crate) fn word(word: &impl Serialize) -> String {
    json!(word).as_str().unwrap_or_default().replace('_', " ")
}

#[cfg(test)]
mod tests;
