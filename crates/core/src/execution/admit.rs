//! Checks whether an input is possible in the present state. Nothing here changes the state.

use super::input::{ExecutionInput, Refusal};
use super::part::{PartState, ProbeProgress};
use super::step::StepStage;
use super::{Execution, ExecutionPhase};
use crate::actor::{Actor, ActorKind};
use crate::hash::Hash;
use crate::id::{ExecutionId, PartId};
use crate::journal::event::{CallSide, Event, EventRecord, PlanReference, Question, QuestionAnswer};
use crate::journal::payload::EventPayload;
use crate::limits;
use crate::plan::schema::CompiledSchema;
use crate::plan::{Driver, Plan};
use crate::time::Timestamp;
use serde_json::Value;
use std::sync::Arc;

pub(super) type AdmissionResult = Result<(), Refusal>;

impl Execution {
    /// Refuses an input that is not possible in this state. [`Execution::decide`] calls this first.
    pub fn admit(&self, actor: &Actor, input: &ExecutionInput) -> AdmissionResult {
        self.admit_texts(input)?;
        match input {
            ExecutionInput::Start => match self.phase {
                ExecutionPhase::Pending => Ok(()),
                ExecutionPhase::Ended { .. } => self.not_ended(),
                _ => Err(Refusal::new("execution.started", "this execution has started already")),
            },
            ExecutionInput::Wake | ExecutionInput::Recovered => Ok(()),
            ExecutionInput::Returned { part, side, attempt, .. } => match self.part(part) {
                Some(part) if *attempt >= 1 && *attempt <= part.attempts_of(*side) => Ok(()),
                _ => Err(Refusal::new(
                    "execution.unknown_attempt",
                    format!("attempt {attempt} of {part} was never made"),
                )),
            },
            ExecutionInput::Accepted { part, side, attempt, ticket } => {
                self.admit_ticket(part, *side, *attempt, ticket)
            }
            ExecutionInput::ToolAsks { part, side, attempt, schema, .. } => {
                self.admit_inquiry(part, *side, *attempt, schema)
            }
            ExecutionInput::AnswerTool { part, attempt, answer, .. } => {
                self.admit_tool_answer(actor, part, *attempt, answer.as_deref())
            }
            ExecutionInput::Approve { part, call, .. } | ExecutionInput::Deny { part, call, .. } => {
                self.admit_approval(actor, part, call)
            }
            ExecutionInput::Answer { about, answer, result, evidence, .. } => {
                let is_visible = evidence.is_some() || result.is_some();
                self.admit_answer(about, *answer, is_visible)
            }
            ExecutionInput::Settle { part, .. } => self.admit_settling(actor, part),
            ExecutionInput::Pause { .. } => {
                self.under_way()?;
                if self.paused {
                    Err(Refusal::new("execution.paused", "this execution is paused already"))
                } else {
                    Ok(())
                }
            }
            ExecutionInput::Resume { .. } => {
                self.not_ended()?;
                if self.paused {
                    Ok(())
                } else {
                    Err(Refusal::new("execution.not_paused", "this execution is not paused"))
                }
            }
            ExecutionInput::Cancel { .. } => match self.phase {
                ExecutionPhase::Pending | ExecutionPhase::Forward => Ok(()),
                ExecutionPhase::Draining { .. } | ExecutionPhase::Undoing | ExecutionPhase::Killed => {
                    Err(Refusal::new("execution.stopping", "this execution is stopping or undoing already")
                        .hint("pause it to hold it, or kill it to stop without clean-up"))
                }
                ExecutionPhase::Ended { .. } => self.not_ended(),
            },
            ExecutionInput::Kill { .. } => self.not_ended(),
            ExecutionInput::Compensate { steps, .. } => {
                if !matches!(self.phase, ExecutionPhase::Ended { .. }) {
                    return Err(Refusal::new("execution.not_ended", "this execution is still under way")
                        .hint("cancel it with undo, or answer its question with compensate"));
                }
                if let Some(part) = self.agenda.doubts.first() {
                    return Err(Refusal::new("execution.in_doubt", format!("{} is in doubt", self.name(*part)))
                        .hint("settle the doubt first: an effect cannot be undone before it is known"));
                }
                for step in steps.iter().flatten() {
                    self.known_step(step.as_str())?;
                }
                if self.undo_scope(steps.as_deref()).is_empty() {
                    return Err(Refusal::new("execution.nothing_to_undo", "nothing here can be undone"));
                }
                Ok(())
            }
            ExecutionInput::BeginReplan { .. } => {
                self.forward()?;
                if self.replanning {
                    return Err(Refusal::new("execution.replanning", "this execution is being replanned already"));
                }
                Ok(())
            }
            ExecutionInput::AbandonReplan { .. } => {
                self.not_ended()?;
                if self.replanning {
                    Ok(())
                } else {
                    Err(Refusal::new("execution.not_replanning", "this execution is not being replanned"))
                }
            }
            ExecutionInput::Replan { plan, .. } => {
                self.forward()?;
                if self.driver == Driver::Server {
                    tools_are_there(plan)?;
                }
                inputs_fit(plan, self.inputs.value().map_or(&Value::Null, |value| value))?;
                self.admit_replan(plan)
            }
            ExecutionInput::HandOver { to, .. } => {
                self.not_ended()?;
                if *to == self.driver {
                    return Err(Refusal::new("execution.driver", "this execution already has this driver"));
                }
                match to {
                    Driver::Server => tools_are_there(self.plan()),
                    Driver::Agent => Ok(()),
                }
            }
            ExecutionInput::ReportDrift { tool, .. } | ExecutionInput::AcceptTool { tool, .. } => {
                self.not_ended()?;
                if !self.plan.tools.contains_key(tool) {
                    return Err(Refusal::new("execution.unknown_tool", format!("the plan does not use {tool}")));
                }
                match input {
                    ExecutionInput::AcceptTool { .. } => person(actor, "accept a changed tool"),
                    _ => Ok(()),
                }
            }
            ExecutionInput::RecordStarted { .. }
            | ExecutionInput::RecordFinished { .. }
            | ExecutionInput::RecordFailed { .. } => self.admit_agent_record(),
            ExecutionInput::RecordEnd { .. } => {
                self.admit_agent_record()?;
                self.started()
            }
            ExecutionInput::RecordCompensation { part, .. } => match self.part(part) {
                Some(found) => match &found.state {
                    _ if found.effect.is_none() => Err(Refusal::new(
                        "execution.nothing_to_undo",
                        format!("{part} has no effect that could be undone"),
                    )),
                    PartState::Completed { .. }
                    | PartState::Failed { .. }
                    | PartState::CompensationFailed { .. }
                    | PartState::BackingOff { side: CallSide::Undo, .. } => Ok(()),
                    _ => Err(Refusal::new(
                        "execution.nothing_to_undo",
                        format!("{part} is still being done, or its effect is in doubt"),
                    )),
                },
                None => Err(unknown(part)),
            },
            ExecutionInput::RecordDecision { step, .. } => match step {
                Some(step) => self.known_step(step.as_str()),
                None => Ok(()),
            },
            ExecutionInput::RecordAction { .. } | ExecutionInput::SaveContext { .. } => Ok(()),
        }
    }

    fn admit_texts(&self, input: &ExecutionInput) -> AdmissionResult {
        let texts: [&str; 2] = match input {
            ExecutionInput::Approve { reason, .. }
            | ExecutionInput::Deny { reason, .. }
            | ExecutionInput::Answer { reason, .. }
            | ExecutionInput::Settle { reason, .. }
            | ExecutionInput::Pause { reason }
            | ExecutionInput::Resume { reason }
            | ExecutionInput::Cancel { reason, .. }
            | ExecutionInput::Kill { reason }
            | ExecutionInput::Compensate { reason, .. }
            | ExecutionInput::BeginReplan { reason }
            | ExecutionInput::AbandonReplan { reason }
            | ExecutionInput::Replan { reason, .. }
            | ExecutionInput::HandOver { reason, .. }
            | ExecutionInput::AcceptTool { reason, .. }
            | ExecutionInput::AnswerTool { reason, .. }
            | ExecutionInput::RecordEnd { reason } => [reason, ""],
            ExecutionInput::ToolAsks { message, .. } => [message, ""],
            ExecutionInput::RecordCompensation { description, .. } => [description, ""],
            ExecutionInput::RecordDecision { decision, reason, .. } => [decision, reason],
            ExecutionInput::RecordAction { kind, description, .. } => [kind, description],
            ExecutionInput::RecordFailed { failure, .. } => [&failure.message, ""],
            ExecutionInput::SaveContext { values } => {
                let mut merged = self.context.clone();
                merged.extend(values.clone());
                let size = serde_json::to_vec(&merged).map_or(usize::MAX, |bytes| bytes.len());
                return if size <= limits::VALUE_BYTES_MAX {
                    Ok(())
                } else {
                    Err(Refusal::new(
                        "execution.too_large",
                        format!("a context has at most {} bytes", limits::VALUE_BYTES_MAX),
                    ))
                };
            }
            ExecutionInput::Start
            | ExecutionInput::Wake
            | ExecutionInput::Recovered
            | ExecutionInput::Returned { .. }
            | ExecutionInput::Accepted { .. }
            | ExecutionInput::ReportDrift { .. }
            | ExecutionInput::RecordStarted { .. }
            | ExecutionInput::RecordFinished { .. } => return Ok(()),
        };
        match texts.iter().find(|text| text.len() > limits::REASON_BYTES_MAX) {
            Some(_) => Err(Refusal::new(
                "execution.text_too_long",
                format!("reasons and descriptions have at most {} bytes", limits::REASON_BYTES_MAX),
            )),
            None => Ok(()),
        }
    }

    fn admit_approval(&self, actor: &Actor, part: &PartId, call: &Hash) -> AdmissionResult {
        person(actor, "approve a call")?;
        match self.part(part).map(|part| &part.state) {
            None => Err(unknown(part)),
            Some(PartState::Asking { call: asked, .. }) if asked == call => self.forward(),
            Some(PartState::Asking { .. }) => {
                Err(Refusal::new("execution.other_call", format!("the call of {part} is not the one you saw"))
                    .hint("look at the question again: the approval is for one exact call"))
            }
            Some(_) => Err(Refusal::new("execution.not_asked", format!("{part} does not wait for approval"))),
        }
    }

    fn admit_answer(&self, about: &Question, answer: QuestionAnswer, is_visible: bool) -> AdmissionResult {
        self.not_ended()?;
        let (asked, answers): (bool, &[QuestionAnswer]) = match about {
            Question::Failure(step) => {
                let held = self.plan.find(step.as_str()).is_some_and(|step| self.steps[step].stage == StepStage::Held);
                (held, Question::FAILURE_ANSWERS)
            }
            Question::Compensation(part) => {
                let stuck = self.locate(part).is_some_and(|at| self.agenda.stuck.contains(&at));
                (stuck, Question::COMPENSATION_ANSWERS)
            }
            Question::Limit(limit) => (self.over == Some(*limit), Question::LIMIT_ANSWERS),
        };
        if !asked {
            return Err(Refusal::new("execution.no_question", "this question is not open"));
        }
        if !answers.contains(&answer) {
            return Err(Refusal::new("execution.no_such_answer", "this question does not accept this answer"));
        }
        if answer == QuestionAnswer::Resolve && !is_visible {
            return Err(Refusal::new("execution.evidence_missing", "a step done by hand needs evidence or a result"));
        }
        if answer == QuestionAnswer::Replan && self.replanning {
            return Err(Refusal::new("execution.replanning", "this execution is being replanned already"));
        }
        Ok(())
    }

    fn admit_settling(&self, actor: &Actor, part: &PartId) -> AdmissionResult {
        person(actor, "settle a doubt")?;
        match self.part(part).map(|part| &part.state) {
            None => Err(unknown(part)),
            Some(PartState::InDoubt { probing: ProbeProgress::Running(_), .. }) => {
                Err(Refusal::new("execution.not_in_doubt", format!("{part} is being probed"))
                    .hint("wait for the probe's answer"))
            }
            Some(PartState::InDoubt { .. }) => Ok(()),
            Some(_) => Err(Refusal::new("execution.not_in_doubt", format!("{part} is not in doubt"))),
        }
    }

    fn admit_agent_record(&self) -> AdmissionResult {
        if self.driver != Driver::Agent {
            return Err(Refusal::new("execution.driver", "Rutter drives this execution")
                .hint("take it over first; then record what you do"));
        }
        match self.phase {
            ExecutionPhase::Pending | ExecutionPhase::Forward => Ok(()),
            ExecutionPhase::Draining { .. } => Ok(()),
            ExecutionPhase::Undoing | ExecutionPhase::Killed => {
                Err(Refusal::new("execution.stopping", "this execution is being undone"))
            }
            ExecutionPhase::Ended { .. } => self.not_ended(),
        }
    }

    fn not_ended(&self) -> AdmissionResult {
        match self.phase {
            ExecutionPhase::Ended { .. } => Err(Refusal::new("execution.ended", "this execution has ended")),
            _ => Ok(()),
        }
    }

    fn started(&self) -> AdmissionResult {
        match self.phase {
            ExecutionPhase::Pending => Err(Refusal::new("execution.not_started", "this execution has not started")),
            _ => Ok(()),
        }
    }

    fn under_way(&self) -> AdmissionResult {
        self.not_ended()?;
        self.started()
    }

    fn forward(&self) -> AdmissionResult {
        self.under_way()?;
        match self.phase {
            ExecutionPhase::Forward => Ok(()),
            _ => Err(Refusal::new("execution.stopping", "this execution is stopping or undoing already")),
        }
    }

    fn known_step(&self, step: &str) -> AdmissionResult {
        match self.plan.find(step) {
            Some(_) => Ok(()),
            None => Err(Refusal::new("execution.unknown_part", format!("the plan has no step {step:?}"))),
        }
    }
}

/// The first record of an execution, if its inputs are valid and the driver can make its calls.
pub fn opening(
    plan: &Arc<Plan>,
    driver: Driver,
    inputs: Arc<Value>,
    lineage: &ExecutionId,
    actor: Actor,
    now: Timestamp,
) -> Result<EventRecord, Refusal> {
    if driver == Driver::Server {
        tools_are_there(plan)?;
    }
    inputs_fit(plan, &inputs)?;
    let event = Event::ExecutionOpened {
        plan: PlanReference::of(plan),
        revision: 1,
        lineage: lineage.to_string(),
        driver,
        inputs: EventPayload::Present(inputs),
    };
    Ok(EventRecord { at: now, actor, event })
}

fn tools_are_there(plan: &Plan) -> AdmissionResult {
    match plan.tools_missing().next() {
        Some(tool) => {
            Err(Refusal::new("execution.unknown_tool", format!("the plan names {tool}, which is not registered"))
                .hint("only an agent can carry out this plan"))
        }
        None => Ok(()),
    }
}

fn inputs_fit(plan: &Plan, inputs: &Value) -> AdmissionResult {
    let Some(schema) = &plan.inputs else { return Ok(()) };
    // The schema compiled when the plan was checked; if it no longer does, the inputs are not validated.
    let Ok(schema) = CompiledSchema::compile(schema) else { return Ok(()) };
    match schema.validate(inputs).first() {
        Some(violation) => {
            Err(Refusal::new("execution.inputs", format!("inputs{}: {}", violation.pointer, violation.message)))
        }
        None => Ok(()),
    }
}

pub(super) fn person(actor: &Actor, what: &str) -> AdmissionResult {
    match actor.party {
        ActorKind::Person => Ok(()),
        ActorKind::Agent | ActorKind::Rutter => {
            Err(Refusal::new("execution.not_a_person", format!("only a person may {what}")))
        }
    }
}

pub(super) fn unknown(part: &PartId) -> Refusal {
    Refusal::new("execution.unknown_part", format!("the execution has no part {part}"))
}
