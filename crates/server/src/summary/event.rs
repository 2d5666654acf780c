//! What one entry of the journal says, as a fact. Entries that only repeat what the steps show say nothing here.

use super::{Fact, Kind, Length, because, quote};
use rutter_core::journal::event::{DoubtSource, Event, LateAnswer, Question, Record, Side, SkipReason, Then};
use rutter_core::plan::Driver;
use rutter_core::tool::Failure;
use serde::Serialize;

/// The kinds of events that say something.
pub(super) const TOLD: &[&str] = &[
    "steps_skipped",
    "approval_requested",
    "approval_granted",
    "approval_denied",
    "approval_expired",
    "approval_voided",
    "tool_asked",
    "tool_answered",
    "attempt_succeeded",
    "attempt_failed",
    "attempt_lost",
    "late_answer_arrived",
    "preparation_failed",
    "retry_abandoned",
    "probe_inconclusive",
    "doubt_settled",
    "failure_handled",
    "question_answered",
    "limit_reached",
    "paused",
    "resumed",
    "cancel_requested",
    "killed",
    "compensation_started",
    "compensation_recorded",
    "replan_begun",
    "replan_abandoned",
    "replanned",
    "handed_over",
    "tool_drifted",
    "tool_accepted",
    "decision_recorded",
    "action_recorded",
    "execution_ended",
];

pub(super) fn fact(record: &Record, length: Length) -> Option<Fact> {
    let actor = &record.actor;
    let why = |reason: &str| because(reason, length);
    let (kind, text) = match &record.event {
        Event::StepsSkipped { steps, because } => {
            let steps: Vec<String> = steps.iter().take(10).map(ToString::to_string).collect();
            let reason = match because {
                SkipReason::Condition => "the condition was false".to_owned(),
                SkipReason::NeedsResultOf(step) => format!("step {step} has no result"),
                SkipReason::LeftUndone => "left undone".to_owned(),
            };
            (Kind::Control, format!("skipped {}: {reason}", steps.join(", ")))
        }
        Event::ApprovalRequested { part, tool, .. } => {
            (Kind::Approval, format!("approval asked for step {part} ({tool})"))
        }
        Event::ApprovalGranted { part, reason, .. } => {
            (Kind::Approval, format!("approved step {part} by {actor}{}", why(reason)))
        }
        Event::ApprovalDenied { part, reason, .. } => {
            (Kind::Approval, format!("denied step {part} by {actor}{}", why(reason)))
        }
        Event::ApprovalExpired { part, .. } => (Kind::Approval, format!("approval of step {part} expired")),
        Event::ApprovalVoided { part, reason, .. } => {
            (Kind::Approval, format!("approval of step {part} does not hold any more{}", why(reason)))
        }
        Event::ToolAsked { part, message, .. } => {
            (Kind::Action, format!("the tool of step {part} asked {}", quote(message, length)))
        }
        Event::ToolAnswered { part, answer, reason, .. } => {
            let what = if answer.is_some() { "answered" } else { "left unanswered" };
            (Kind::Action, format!("question of the tool of step {part} {what} by {actor}{}", why(reason)))
        }
        Event::AttemptSucceeded { part, side: Side::Undo, attempt, .. } => {
            (Kind::Compensation, format!("undid step {part}, attempt {attempt}"))
        }
        Event::AttemptFailed { part, side, attempt, failure, maybe, then } => {
            let maybe = if *maybe { ", and it may have taken effect" } else { "" };
            let call = call(*side);
            let text = format!(
                "{call} of step {part}, attempt {attempt}, failed with {}{maybe}; {}",
                told(failure, length),
                follows(*then)
            );
            (if *then == Then::InDoubt { Kind::Doubt } else { Kind::Failure }, text)
        }
        Event::AttemptLost { part, side, attempt, then } => {
            let text =
                format!("{} of step {part}, attempt {attempt}, was lost; {}", call(*side), follows(*then));
            (if *then == Then::InDoubt { Kind::Doubt } else { Kind::Failure }, text)
        }
        Event::LateAnswerArrived { part, answer, .. } => {
            let answer = match answer {
                LateAnswer::Done(_) => "it was done".to_owned(),
                LateAnswer::NotDone(failure) => format!("it was not done, {}", told(failure, length)),
                LateAnswer::Maybe(failure) => format!("it may have been done, {}", told(failure, length)),
            };
            (Kind::Doubt, format!("late answer for step {part}: {answer}"))
        }
        Event::PreparationFailed { part, failure, .. } => {
            (Kind::Failure, format!("step {part} could not be called: {}", told(failure, length)))
        }
        Event::RetryAbandoned { part, failure, .. } => {
            (Kind::Failure, format!("no more attempts of step {part}: {}", told(failure, length)))
        }
        Event::ProbeInconclusive { part, reason } => {
            (Kind::Doubt, format!("the probe could not tell whether step {part} happened{}", why(reason)))
        }
        Event::DoubtSettled { part, happened, source, reason, .. } => {
            let what = if *happened { "happened" } else { "did not happen" };
            let who = match source {
                DoubtSource::Probe => "the probe".to_owned(),
                DoubtSource::LateAnswer => "a late answer".to_owned(),
                DoubtSource::Person => actor.to_string(),
            };
            (Kind::Doubt, format!("doubt about step {part} settled by {who}: it {what}{}", why(reason)))
        }
        Event::FailureHandled { step, action, reason, cancelled, skipped } => {
            let mut text = format!("after step {step} failed: {}{}", spelled(action), why(reason));
            for (what, steps) in [("cancelled", cancelled), ("skipped", skipped)] {
                if !steps.is_empty() {
                    text.push_str(&format!(", {what} {}", steps.len()));
                }
            }
            (Kind::Control, text)
        }
        Event::QuestionAnswered { about, answer, reason, .. } => {
            let about = match about {
                Question::Failure(step) => format!("the failure of step {step}"),
                Question::Compensation(part) => format!("undoing step {part}"),
                Question::Limit(limit) => format!("the limit of {}", spelled(limit)),
            };
            (Kind::Decision, format!("decided {} by {actor} about {about}{}", spelled(answer), why(reason)))
        }
        Event::LimitReached { limit, action } => {
            (Kind::Failure, format!("the limit of {} was reached: {}", spelled(limit), spelled(action)))
        }
        Event::Paused { reason } => (Kind::Control, format!("paused by {actor}{}", why(reason))),
        Event::Resumed { reason } => (Kind::Control, format!("resumed by {actor}{}", why(reason))),
        Event::CancelRequested { reason, undo } => {
            let undo = if *undo { ", with undoing" } else { "" };
            (Kind::Control, format!("cancelled by {actor}{undo}{}", why(reason)))
        }
        Event::Killed { reason } => {
            (Kind::Control, format!("killed by {actor}, without clean-up{}", why(reason)))
        }
        Event::CompensationStarted { parts, whole, reason } => {
            let what = if *whole { "everything" } else { "a part" };
            let count = parts.len();
            (Kind::Compensation, format!("undoing of {what} began, {count} to undo{}", why(reason)))
        }
        Event::CompensationRecorded { part, description, .. } => {
            let what = quote(description, length);
            (Kind::Compensation, format!("undone by hand by {actor}, step {part}: {what}"))
        }
        Event::ReplanBegun { reason } => {
            (Kind::Control, format!("replanning begun by {actor}{}", why(reason)))
        }
        Event::ReplanAbandoned { reason } => {
            (Kind::Control, format!("replanning abandoned by {actor}{}", why(reason)))
        }
        Event::Replanned { revision, reason, .. } => {
            (Kind::Control, format!("replanned to revision {revision} by {actor}{}", why(reason)))
        }
        Event::HandedOver { to, reason } => {
            let to = if *to == Driver::Agent { "an agent" } else { "Rutter" };
            (Kind::Control, format!("handed over to {to} by {actor}{}", why(reason)))
        }
        Event::ToolDrifted { tool, .. } => (Kind::Failure, format!("tool {tool} changed its definition")),
        Event::ToolAccepted { tool, reason, .. } => {
            (Kind::Decision, format!("accepted the changed tool {tool} by {actor}{}", why(reason)))
        }
        Event::DecisionRecorded { step, decision, reason, .. } => {
            let step = step.as_ref().map(|step| format!(" on step {step}")).unwrap_or_default();
            (Kind::Decision, format!("decided by {actor}{step} {}{}", quote(decision, length), why(reason)))
        }
        Event::ActionRecorded { step, kind, description, .. } => {
            let step = step.as_ref().map(|step| format!(" for step {step}")).unwrap_or_default();
            let (kind, description) = (quote(kind, length), quote(description, length));
            (Kind::Action, format!("done by {actor}{step}, {kind}: {description}"))
        }
        Event::ExecutionEnded { outcome, reason, .. } => {
            (Kind::Outcome, format!("ended {}{}", spelled(outcome), why(reason)))
        }
        _ => return None,
    };
    Some(Fact::new(kind, record.at, text))
}

/// The category is ours, the words are the tool's.
pub(super) fn told(failure: &Failure, length: Length) -> String {
    format!("{}{}", failure.category.as_str(), because(&failure.message, length))
}

fn call(side: Side) -> &'static str {
    match side {
        Side::Do => "the call",
        Side::Fallback => "the fallback",
        Side::Undo => "the compensation",
        Side::Probe => "the probe",
    }
}

fn follows(then: Then) -> &'static str {
    match then {
        Then::RetryAt(_) => "tried again",
        Then::FallBack => "the fallback follows",
        Then::InDoubt => "in doubt",
        Then::GiveUp => "given up",
    }
}

/// As it is spelled in the journal.
pub(super) fn spelled(word: &impl Serialize) -> String {
    serde_json::to_value(word).ok().and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}
