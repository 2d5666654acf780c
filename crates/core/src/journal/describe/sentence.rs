//! The sentences: one for every event.

use super::{Description, EventTone, EventTopic, Fragment, NAME_CHARS_MAX};
use crate::hash::Hash;
use crate::journal::event::{
    AttemptFollowUp, CallSide, DoubtSource, Event, ExecutionEnding, ExecutionLimit, LateAnswer, NO_PROBE, OverdueTimer,
    PlanReference, Question,
};
use crate::plan::Driver;
use crate::text::{cut, escape_hidden, listed, spelled};
use crate::time::calendar::{utc, utc_seconds};
use crate::tool::{FailureCategory, ToolFailure};
use std::fmt::Display;

/// Names printed of a list of steps or executions; the rest is counted.
const NAMES_MAX: usize = 10;

/// Describes an event. A new variant does not compile until it has a sentence.
pub fn describe<P>(event: &Event<P>) -> Description {
    use EventTone::{Attention, Bad, Good, Neutral};
    use EventTopic as Topic;
    let occurrence = |topic, tone| Description::new(event, topic, tone, false);
    let act = |topic, tone| Description::new(event, topic, tone, true);
    match event {
        Event::ExecutionOpened { plan, revision, driver, .. } => act(Topic::Progress, Neutral)
            .words("opened an execution of ")
            .plan(plan)
            .words(format!(", revision {revision}, driven by the {}", driver.as_str())),
        Event::ExecutionStarted {} => occurrence(Topic::Progress, Neutral).words("the execution started"),
        Event::FanOutOpened { count, .. } => {
            occurrence(Topic::Progress, Neutral).subject("", " ").words(format!("fans out over {count} items"))
        }
        Event::StepsSkipped { steps, because } => {
            let were = if steps.len() == 1 { "was" } else { "were" };
            occurrence(Topic::Control, Neutral)
                .naming(format!("{} {were} ", listed(steps, NAMES_MAX)))
                .words(format!("skipped: {because}"))
        }
        Event::ApprovalRequested { tool, call, basis, .. } => {
            let rule = basis.as_ref().and_then(|basis| basis.rule.as_deref());
            occurrence(Topic::Approval, Attention)
                .subject("", " ")
                .words(format!("needs a person's approval to call {tool}"))
                .call(call)
                .labelled(", by rule ", rule.unwrap_or_default())
        }
        Event::CallForbidden { tool, rule, reason, .. } => occurrence(Topic::Failure, Bad)
            .subject("", " ")
            .words(format!("may not call {tool}"))
            .labelled(", by rule ", rule.as_deref().unwrap_or_default())
            .because(reason),
        Event::CallDelayed { until, failure: Some(failure), .. } => occurrence(Topic::Control, Attention)
            .subject("", " ")
            .words(format!("waits until {} for its server", utc(*until)))
            .reason(failure),
        Event::CallDelayed { rule, until, .. } => occurrence(Topic::Control, Neutral)
            .subject("", " ")
            .words(format!("waits until {}", utc(*until)))
            .labelled(" for the limit of rule ", rule),
        Event::ApprovalGranted { call, reason, .. } => {
            act(Topic::Approval, Good).words("approved").subject(" ", "").call(call).because(reason)
        }
        Event::ApprovalDenied { call, reason, .. } => {
            act(Topic::Approval, Bad).words("denied").subject(" ", "").call(call).because(reason)
        }
        Event::ApprovalExpired { call, .. } => {
            occurrence(Topic::Approval, Bad).words("the approval").subject(" of ", "").call(call).words(" expired")
        }
        Event::ApprovalVoided { call, reason, .. } => occurrence(Topic::Approval, Attention)
            .words("the approval")
            .subject(" of ", "")
            .call(call)
            .words(" is void")
            .because(reason),
        Event::AttemptStarted { tool, by, .. } => {
            let by = if *by == Driver::Agent { ", called by the agent" } else { "" };
            occurrence(Topic::Progress, Neutral).subject("", " ").words(format!("started: {tool}{by}"))
        }
        Event::AttemptAccepted { ticket, .. } => occurrence(Topic::Progress, Neutral)
            .words("the tool accepted")
            .subject(" ", "")
            .words(" under ticket ")
            .quote(ticket),
        Event::ToolAsked { message, .. } => {
            occurrence(Topic::Action, Attention).words("the tool asked").subject(" in ", "").because(message)
        }
        Event::ToolAnswered { answer, reason, .. } => {
            let what = if answer.is_some() { "answered the tool" } else { "declined to answer the tool" };
            act(Topic::Action, Neutral).words(what).subject(" in ", "").because(reason)
        }
        Event::AttemptSucceeded { side, .. } => {
            let topic = if *side == CallSide::Undo { Topic::Compensation } else { Topic::Progress };
            occurrence(topic, Good).subject("", " ").words("succeeded")
        }
        Event::AttemptFailed { side, failure, maybe, then, .. } => {
            attempt_without_success(event, *then).failed(failure).effect(*side, *maybe, *then).follow(*then)
        }
        Event::AttemptLost { side, then, .. } => {
            attempt_without_success(event, *then).words("was lost").effect(*side, true, *then).follow(*then)
        }
        Event::LateAnswerArrived { answer, .. } => {
            let late = occurrence(Topic::Doubt, Attention).words("a late answer").subject(" to ", "");
            match answer {
                LateAnswer::Done(_) => late.words(" says that it took effect"),
                LateAnswer::Maybe(failure) if failure.is_answer() => {
                    late.words(" says that it took effect").reason(failure)
                }
                LateAnswer::NotDone(failure) => late.words(" says that it took no effect").reason(failure),
                LateAnswer::Maybe(failure) => late.words(" does not say whether it took effect").reason(failure),
            }
        }
        Event::PreparationFailed { failure, .. } => {
            occurrence(Topic::Failure, Bad).subject("", " ").words("could not be called").reason(failure)
        }
        Event::RetryAbandoned { failure, .. } => {
            occurrence(Topic::Failure, Bad).subject("", " ").words("is not retried").reason(failure)
        }
        Event::ProbeInconclusive { reason, .. } if reason == NO_PROBE => {
            occurrence(Topic::Doubt, Attention).subject("", " ").words("waits for a person").because(reason)
        }
        Event::ProbeInconclusive { reason, .. } => {
            occurrence(Topic::Doubt, Attention).subject("", " ").words("was inconclusive").because(reason)
        }
        Event::ProbePostponed { until, .. } => occurrence(Topic::Doubt, Attention)
            .subject("", " ")
            .words("found nothing too early to count; it is asked again ")
            .with(Fragment::Due(*until)),
        Event::KeyExpired { .. } => occurrence(Topic::Doubt, Attention)
            .subject("", " ")
            .words("is not sent again: the tool may have forgotten its key; the step is in doubt"),
        Event::DoubtSettled { happened, source, reason, then, .. } => {
            let (tone, effect) = if *happened { (Good, "took effect") } else { (Attention, "took no effect") };
            // Unless a person settled it, the reason only repeats the sentence.
            let (settled, reason) = match source {
                DoubtSource::Probe => (occurrence(Topic::Doubt, tone).words("the probe "), ""),
                DoubtSource::LateAnswer => (occurrence(Topic::Doubt, tone).words("a late answer "), ""),
                DoubtSource::Person => (act(Topic::Doubt, tone), reason.as_str()),
            };
            let settled = settled.words("settled the doubt").subject(" about ", "");
            let settled = settled.words(format!(": it {effect}")).because(reason);
            if *happened { settled } else { settled.follow(*then) }
        }
        Event::SettlementCorrected { happened, effect, reason, .. } => {
            let corrected = match (happened, effect) {
                (true, None) => "its result is another",
                (true, Some(_)) => "it took effect",
                (false, _) => "it took no effect",
            };
            let act = act(Topic::Doubt, Attention).words("corrected what was settled").subject(" about ", "");
            act.words(format!(": {corrected}")).because(reason)
        }
        Event::FailureHandled { action, reason, cancelled, skipped, .. } => occurrence(Topic::Control, Bad)
            .subject("", " ")
            .words(format!("failed for good; its failure policy is {}", spelled(action)))
            .because(reason)
            .list("cancelled", cancelled)
            .list("skipped", skipped),
        Event::QuestionAnswered { about, answer, reason, skipped, .. } => {
            let answered = act(Topic::Decision, Neutral).words("answered");
            let answered = match about {
                Question::SecondEffect(_) => answered.words(" the second effect").subject(" of ", ""),
                Question::Failure(_) | Question::Item(_) | Question::Compensation(_) => {
                    answered.words(" the failure").subject(" of ", "")
                }
                Question::Limit(limit) => answered.words(format!(" {}", limit_words(*limit))),
                Question::Silence => answered.words(" the silence of the agent"),
            };
            answered.words(format!(" with {}", spelled(answer))).because(reason).list("skipped", skipped)
        }
        Event::LimitReached { limit, action } => occurrence(Topic::Failure, Bad).words(format!(
            "{} was reached; the failure policy is {}",
            limit_words(*limit),
            spelled(action)
        )),
        Event::Paused { reason } => act(Topic::Control, Attention).words("paused the execution").because(reason),
        Event::Resumed { reason } => act(Topic::Control, Neutral).words("resumed the execution").because(reason),
        Event::Held { reason, due, more, .. } => {
            let due = due.len() as u64 + u64::from(*more);
            let timers = if due == 1 { "timer" } else { "timers" };
            act(Topic::Control, Attention)
                .words(format!(
                    "held the execution: time stands still until a person has looked, {due} {timers} came due"
                ))
                .because(reason)
        }
        Event::HoldEnded { reason, frozen, expired } => {
            let mut names: Vec<String> = expired.iter().map(OverdueTimer::name).collect();
            names.dedup();
            let what = match frozen {
                Some(span) if names.is_empty() => format!("ended the hold: {span} do not count"),
                Some(span) => {
                    format!(
                        "ended the hold: {span} do not count, but what came due of {} happens now",
                        names.join(", ")
                    )
                }
                None => "ended the hold: what came due happens now".to_owned(),
            };
            act(Topic::Control, Neutral).words(what).because(reason)
        }
        Event::CancelRequested { reason, undo } => {
            let undo = if *undo { ", with undo" } else { "" };
            act(Topic::Control, Attention).words(format!("cancelled the execution{undo}")).because(reason)
        }
        Event::Killed { reason } => {
            act(Topic::Control, Bad).words("killed the execution, without clean-up").because(reason)
        }
        Event::Reopened { steps, reason, .. } => {
            act(Topic::Control, Attention).words("reopened the execution").because(reason).list("pending again", steps)
        }
        Event::CompensationStarted { parts, whole, reason } => {
            let everything = if *whole { "everything: " } else { "" };
            act(Topic::Compensation, Neutral)
                .words(format!("started to undo {everything}{}", listed(parts, NAMES_MAX)))
                .because(reason)
        }
        Event::CompensationRecorded { description, .. } => {
            act(Topic::Compensation, Good).words("undid").subject(" ", "").words(" by hand").because(description)
        }
        Event::ReplanBegun { reason } => act(Topic::Control, Neutral).words("began to replan").because(reason),
        Event::ReplanAbandoned { reason } => {
            act(Topic::Control, Neutral).words("abandoned the new plan").because(reason)
        }
        Event::Replanned { plan, revision, reason } => {
            act(Topic::Control, Neutral).words(format!("replanned to revision {revision}, ")).plan(plan).because(reason)
        }
        Event::ReplanProposed { plan, revision, weakens, reason } => act(Topic::Control, Attention)
            .words(format!("proposed revision {revision}, "))
            .plan(plan)
            .words(", which needs a person's approval")
            .because(&weakens.join("; "))
            .labelled("; reason: ", reason),
        Event::ReplanRejected { plan, reason } => act(Topic::Control, Bad)
            .words("rejected the proposed plan")
            .reference(format!(" ({})", plan.short()))
            .because(reason),
        Event::HandedOver { to, reason } => act(Topic::Control, Neutral)
            .words(format!("handed the execution over to the {}", to.as_str()))
            .because(reason),
        Event::AgentSeen {} => act(Topic::Progress, Neutral).words("gave a sign of life"),
        Event::AgentSilent { since, .. } => occurrence(Topic::Failure, Attention)
            .words(format!("the agent has been silent since {}", utc_seconds(*since))),
        Event::ToolDrifted { tool, pinned, found } => occurrence(Topic::Failure, Attention)
            .words(format!("the definition of {tool} is no longer the one of the plan"))
            .reference(format!(" ({} instead of {})", found.short(), pinned.short())),
        Event::ToolRestored { tool, definition } => occurrence(Topic::Progress, Good)
            .words(format!("the definition of {tool} is again the one of the plan"))
            .reference(format!(" ({})", definition.short())),
        Event::ToolAccepted { tool, definition, reason } => act(Topic::Decision, Good)
            .words(format!("accepted the new definition of {tool}"))
            .reference(format!(" ({})", definition.short()))
            .because(reason),
        Event::DecisionRecorded { decision, reason, .. } => act(Topic::Decision, Neutral)
            .words("recorded a decision")
            .subject(" on ", "")
            .because(decision)
            .labelled("; reason: ", reason),
        Event::ActionRecorded { kind, description, .. } => act(Topic::Action, Neutral)
            .words("recorded an action")
            .subject(" on ", "")
            .labelled(", ", kind)
            .because(description),
        Event::ContextSaved { .. } => act(Topic::Progress, Neutral).words("saved context"),
        Event::DeviationFound { kind, step, description } => {
            let found = occurrence(Topic::Deviation, Attention);
            let found = match step {
                Some(_) => found.subject("", " "),
                None => found.naming("the execution ".to_owned()),
            };
            found.words(format!("deviates from the plan ({})", spelled(kind))).because(description)
        }
        Event::ExecutionEnded { outcome, reason, remains } => {
            let (tone, how) = match outcome {
                ExecutionEnding::Completed => (Good, "completed"),
                ExecutionEnding::Partial => (Attention, "ended partial"),
                ExecutionEnding::Failed => (Bad, "failed"),
                ExecutionEnding::Cancelled => (Attention, "was cancelled"),
                ExecutionEnding::Compensated => (Attention, "was compensated"),
            };
            occurrence(Topic::Outcome, tone)
                .words(format!("the execution {how}"))
                .because(reason)
                .list("effects that remain", remains)
        }
        Event::PlanSaved { id, revision, name, .. } => {
            act(Topic::Ledger, Neutral).words("saved plan ").quote(name).words(format!(" as {id}, revision {revision}"))
        }
        Event::PayloadsErased { execution, payloads, reason } => {
            let payloads = if *payloads == 1 { "1 payload".to_owned() } else { format!("{payloads} payloads") };
            act(Topic::Ledger, Attention).words(format!("erased {payloads} of {execution}")).because(reason)
        }
        Event::ExecutionsRemoved { executions, reason } => {
            let executions: Vec<_> = executions.iter().map(|removed| &removed.execution).collect();
            act(Topic::Ledger, Attention).words(format!("removed {}", listed(&executions, NAMES_MAX))).because(reason)
        }
        Event::LedgerRestored { origin, size, reason } => act(Topic::Ledger, Attention)
            .words(format!("restored the ledger from a backup of {size} entries of "))
            .quote(origin)
            .because(reason),
        Event::SettingChanged { setting, id, change } => {
            act(Topic::Ledger, Neutral).words(format!("changed {setting} ")).quote(id).because(change)
        }
        Event::ActRefused { act: what, execution, reason, count, .. } => {
            let times = if *count == 1 { String::new() } else { format!(", {count} times") };
            let of = execution.as_ref().map(|execution| format!(" of {execution}")).unwrap_or_default();
            act(Topic::Ledger, Attention).words(format!("was refused {what}{of}{times}")).because(reason)
        }
    }
}

/// The beginning of a sentence about an attempt that failed or was lost.
fn attempt_without_success<P>(event: &Event<P>, then: AttemptFollowUp) -> Description {
    let (topic, tone) = match then {
        AttemptFollowUp::InDoubt => (EventTopic::Doubt, EventTone::Attention),
        AttemptFollowUp::Withdrawn => (EventTopic::Failure, EventTone::Attention),
        AttemptFollowUp::RetryAt(_) | AttemptFollowUp::FallBack | AttemptFollowUp::GiveUp => {
            (EventTopic::Failure, EventTone::Bad)
        }
    };
    Description { then: Some(then), ..Description::new(event, topic, tone, false) }.subject("", " ")
}

fn limit_words(limit: ExecutionLimit) -> String {
    match limit {
        ExecutionLimit::Deadline => "the deadline".to_owned(),
        ExecutionLimit::Entries => "the limit of journal entries".to_owned(),
        ExecutionLimit::Calls | ExecutionLimit::Cost | ExecutionLimit::Time => {
            format!("the budget of {}", spelled(&limit))
        }
    }
}

/// A builder: sentences are written from left to right.
impl Description {
    fn new<P>(event: &Event<P>, topic: EventTopic, tone: EventTone, is_act: bool) -> Description {
        Description {
            kind: event.kind(),
            topic,
            tone,
            subject: event.subject(),
            is_act,
            then: None,
            fragments: Vec::with_capacity(4),
            actor: None,
            at: None,
        }
    }

    fn with(mut self, fragment: Fragment) -> Description {
        self.fragments.push(fragment);
        self
    }

    /// Our own text. Names of steps and tools in it are escaped, so that they cannot control a terminal.
    fn words(self, words: impl AsRef<str>) -> Description {
        self.with(Fragment::Words(escape_hidden(words.as_ref())))
    }

    /// The step, with the words that connect it to its neighbours; nothing if there is no step.
    fn subject(self, before: &str, after: &str) -> Description {
        match &self.subject {
            None => self,
            Some(subject) => {
                let name = cut(&escape_hidden(&subject.to_string()), NAME_CHARS_MAX);
                self.with(Fragment::Subject(format!("{before}{name}{after}")))
            }
        }
    }

    /// The subject of a sentence that is not about one step.
    fn naming(self, words: String) -> Description {
        self.with(Fragment::Subject(escape_hidden(&words)))
    }

    fn reference(self, words: String) -> Description {
        self.with(Fragment::Reference(words))
    }

    fn call(self, call: &Hash) -> Description {
        self.reference(format!(" (call {})", call.short()))
    }

    fn quote(self, text: &str) -> Description {
        self.with(Fragment::Quote(text.to_owned()))
    }

    fn labelled(self, label: &str, text: &str) -> Description {
        if text.trim().is_empty() { self } else { self.words(label).quote(text) }
    }

    /// A reason, or nothing if none was given.
    fn because(self, reason: &str) -> Description {
        self.labelled(": ", reason)
    }

    fn failed(self, failure: &ToolFailure) -> Description {
        match failure.category {
            FailureCategory::Timeout => self.words("timed out").because(&failure.message),
            FailureCategory::Cancelled => self.words("was cancelled").because(&failure.message),
            _ => self.words("failed").reason(failure),
        }
    }

    fn reason(self, failure: &ToolFailure) -> Description {
        self.words(format!(" ({})", failure.category.as_str())).because(&failure.message)
    }

    fn effect(self, side: CallSide, maybe: bool, then: AttemptFollowUp) -> Description {
        let is_unknown = side != CallSide::Probe && (maybe || then == AttemptFollowUp::InDoubt);
        if is_unknown { self.words("; whether it took effect is unknown") } else { self }
    }

    fn follow(self, then: AttemptFollowUp) -> Description {
        let described = match then {
            AttemptFollowUp::RetryAt(due) => self.words("; retry ").with(Fragment::Due(due)),
            AttemptFollowUp::FallBack => self.words("; the fallback is next"),
            AttemptFollowUp::InDoubt => self.words("; the step is in doubt"),
            AttemptFollowUp::GiveUp => self.words("; no further attempt"),
            AttemptFollowUp::Withdrawn => self.words("; it is made once the tool is accepted"),
        };
        Description { then: Some(then), ..described }
    }

    fn list<T: Display>(self, what: &str, names: &[T]) -> Description {
        if names.is_empty() { self } else { self.words(format!("; {what}: {}", listed(names, NAMES_MAX))) }
    }

    fn plan(self, plan: &PlanReference) -> Description {
        match &plan.plan {
            None => self.words(format!("plan {}", plan.hash.short())),
            Some(known) => {
                let hash = format!(" ({})", plan.hash.short());
                self.words("plan ").quote(&known.name).reference(hash)
            }
        }
    }
}
