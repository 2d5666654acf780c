//! Access to the payloads of an event, whatever their form.

use crate::journal::event::{Event, LateAnswer};

impl<P> Event<P> {
    /// Returns the event with every payload mapped by `f`, in the order of the fields.
    pub fn try_map<Q, E>(self, f: &mut dyn FnMut(P) -> Result<Q, E>) -> Result<Event<Q>, E> {
        Ok(match self {
            Event::ExecutionOpened { plan, revision, lineage, driver, inputs } => {
                Event::ExecutionOpened { plan, revision, lineage, driver, inputs: f(inputs)? }
            }
            Event::ExecutionStarted {} => Event::ExecutionStarted {},
            Event::FanOutOpened { step, count, items } => Event::FanOutOpened { step, count, items: f(items)? },
            Event::StepsSkipped { steps, because } => Event::StepsSkipped { steps, because },
            Event::ApprovalRequested { part, side, call, tool, parameters, expires_at, basis } => {
                Event::ApprovalRequested { part, side, call, tool, parameters: f(parameters)?, expires_at, basis }
            }
            Event::ApprovalGranted { part, call, reason } => Event::ApprovalGranted { part, call, reason },
            Event::ApprovalDenied { part, call, reason } => Event::ApprovalDenied { part, call, reason },
            Event::ApprovalExpired { part, call } => Event::ApprovalExpired { part, call },
            Event::ApprovalVoided { part, call, reason } => Event::ApprovalVoided { part, call, reason },
            Event::CallForbidden { part, side, call, tool, rule, reason, digest } => {
                Event::CallForbidden { part, side, call, tool, rule, reason, digest }
            }
            Event::CallDelayed { part, side, rule, until, failure } => {
                Event::CallDelayed { part, side, rule, until, failure }
            }
            Event::AttemptStarted { part, side, attempt, by, tool, definition, call, key, parameters, deadline } => {
                Event::AttemptStarted {
                    part,
                    side,
                    attempt,
                    by,
                    tool,
                    definition,
                    call,
                    key,
                    parameters: f(parameters)?,
                    deadline,
                }
            }
            Event::AttemptAccepted { part, side, attempt, ticket } => {
                Event::AttemptAccepted { part, side, attempt, ticket }
            }
            Event::ToolAsked { part, side, attempt, message, schema, continuation } => {
                let (schema, continuation) = (f(schema)?, continuation.map(&mut *f).transpose()?);
                Event::ToolAsked { part, side, attempt, message, schema, continuation }
            }
            Event::ToolAnswered { part, side, attempt, answer, reason } => {
                let answer = answer.map(&mut *f).transpose()?;
                Event::ToolAnswered { part, side, attempt, answer, reason }
            }
            Event::AttemptSucceeded { part, side, attempt, result, cost_micros } => {
                Event::AttemptSucceeded { part, side, attempt, result: f(result)?, cost_micros }
            }
            Event::AttemptFailed { part, side, attempt, failure, maybe, then } => {
                Event::AttemptFailed { part, side, attempt, failure, maybe, then }
            }
            Event::AttemptLost { part, side, attempt, then } => Event::AttemptLost { part, side, attempt, then },
            Event::LateAnswerArrived { part, side, attempt, answer, cost_micros, effect } => {
                Event::LateAnswerArrived { part, side, attempt, answer: answer.try_map(f)?, cost_micros, effect }
            }
            Event::PreparationFailed { part, side, failure } => Event::PreparationFailed { part, side, failure },
            Event::RetryAbandoned { part, side, failure } => Event::RetryAbandoned { part, side, failure },
            Event::ProbeInconclusive { part, reason } => Event::ProbeInconclusive { part, reason },
            Event::ProbePostponed { part, until } => Event::ProbePostponed { part, until },
            Event::KeyExpired { part, side } => Event::KeyExpired { part, side },
            Event::DoubtSettled { part, side, happened, source, reason, result, evidence, then } => {
                Event::DoubtSettled {
                    part,
                    side,
                    happened,
                    source,
                    reason,
                    result: result.map(&mut *f).transpose()?,
                    evidence: evidence.map(&mut *f).transpose()?,
                    then,
                }
            }
            Event::SettlementCorrected { part, side, attempt, happened, reason, result, evidence, effect } => {
                Event::SettlementCorrected {
                    part,
                    side,
                    attempt,
                    happened,
                    reason,
                    result: result.map(&mut *f).transpose()?,
                    evidence: evidence.map(&mut *f).transpose()?,
                    effect,
                }
            }
            Event::FailureHandled { step, action, reason, cancelled, skipped } => {
                Event::FailureHandled { step, action, reason, cancelled, skipped }
            }
            Event::QuestionAnswered { about, answer, reason, result, evidence, skipped } => Event::QuestionAnswered {
                about,
                answer,
                reason,
                result: result.map(&mut *f).transpose()?,
                evidence: evidence.map(&mut *f).transpose()?,
                skipped,
            },
            Event::LimitReached { limit, action } => Event::LimitReached { limit, action },
            Event::Paused { reason } => Event::Paused { reason },
            Event::Resumed { reason } => Event::Resumed { reason },
            Event::Held { reason, since, due, more } => Event::Held { reason, since, due, more },
            Event::HoldEnded { reason, frozen, expired } => Event::HoldEnded { reason, frozen, expired },
            Event::CancelRequested { reason, undo } => Event::CancelRequested { reason, undo },
            Event::Killed { reason } => Event::Killed { reason },
            Event::Reopened { steps, held, reason } => Event::Reopened { steps, held, reason },
            Event::CompensationStarted { parts, whole, reason } => Event::CompensationStarted { parts, whole, reason },
            Event::CompensationRecorded { part, description, evidence } => {
                Event::CompensationRecorded { part, description, evidence: evidence.map(&mut *f).transpose()? }
            }
            Event::ReplanBegun { reason } => Event::ReplanBegun { reason },
            Event::ReplanAbandoned { reason } => Event::ReplanAbandoned { reason },
            Event::Replanned { plan, revision, reason } => Event::Replanned { plan, revision, reason },
            Event::ReplanProposed { plan, revision, weakens, reason } => {
                Event::ReplanProposed { plan, revision, weakens, reason }
            }
            Event::ReplanRejected { plan, reason } => Event::ReplanRejected { plan, reason },
            Event::HandedOver { to, reason } => Event::HandedOver { to, reason },
            Event::AgentSeen {} => Event::AgentSeen {},
            Event::AgentSilent { since, agent } => Event::AgentSilent { since, agent },
            Event::ToolDrifted { tool, pinned, found } => Event::ToolDrifted { tool, pinned, found },
            Event::ToolRestored { tool, definition } => Event::ToolRestored { tool, definition },
            Event::ToolAccepted { tool, definition, reason } => Event::ToolAccepted { tool, definition, reason },
            Event::DecisionRecorded { step, decision, reason, details } => {
                Event::DecisionRecorded { step, decision, reason, details: details.map(&mut *f).transpose()? }
            }
            Event::ActionRecorded { step, kind, description, details } => {
                Event::ActionRecorded { step, kind, description, details: details.map(&mut *f).transpose()? }
            }
            Event::ContextSaved { values } => Event::ContextSaved { values: f(values)? },
            Event::DeviationFound { kind, step, description } => Event::DeviationFound { kind, step, description },
            Event::ExecutionEnded { outcome, reason, remains } => Event::ExecutionEnded { outcome, reason, remains },
            Event::PlanSaved { id, revision, plan, name } => Event::PlanSaved { id, revision, plan, name },
            Event::PayloadsErased { execution, payloads, reason } => {
                Event::PayloadsErased { execution, payloads, reason }
            }
            Event::ExecutionsRemoved { executions, reason } => Event::ExecutionsRemoved { executions, reason },
            Event::LedgerRestored { origin, size, reason } => Event::LedgerRestored { origin, size, reason },
            Event::SettingChanged { setting, id, change } => Event::SettingChanged { setting, id, change },
            Event::ActRefused { act, execution, code, reason, count } => {
                Event::ActRefused { act, execution, code, reason, count }
            }
        })
    }

    /// Returns the payloads of the event, with the names of their fields.
    pub fn payloads(&self) -> Vec<(&'static str, &P)> {
        let mut found = Vec::new();
        match self {
            Event::ExecutionOpened { inputs, .. } => found.push(("inputs", inputs)),
            Event::FanOutOpened { items, .. } => found.push(("items", items)),
            Event::ApprovalRequested { parameters, .. } | Event::AttemptStarted { parameters, .. } => {
                found.push(("parameters", parameters));
            }
            Event::ToolAsked { schema, continuation, .. } => {
                found.push(("schema", schema));
                found.extend(continuation.as_ref().map(|continuation| ("continuation", continuation)));
            }
            Event::ToolAnswered { answer, .. } => {
                found.extend(answer.as_ref().map(|answer| ("answer", answer)));
            }
            Event::AttemptSucceeded { result, .. }
            | Event::LateAnswerArrived { answer: LateAnswer::Done(result), .. } => {
                found.push(("result", result));
            }
            Event::DoubtSettled { result, evidence, .. }
            | Event::SettlementCorrected { result, evidence, .. }
            | Event::QuestionAnswered { result, evidence, .. } => {
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
}

impl<P> LateAnswer<P> {
    fn try_map<Q, E>(self, f: &mut dyn FnMut(P) -> Result<Q, E>) -> Result<LateAnswer<Q>, E> {
        Ok(match self {
            LateAnswer::Done(result) => LateAnswer::Done(f(result)?),
            LateAnswer::NotDone(failure) => LateAnswer::NotDone(failure),
            LateAnswer::Maybe(failure) => LateAnswer::Maybe(failure),
        })
    }
}
