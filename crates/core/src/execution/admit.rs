//! What is possible now, and why not. Nothing here changes anything.

use super::input::{Input, Refusal};
use super::part::{PartState, Probing};
use super::step::Stage;
use super::{Execution, Phase};
use crate::actor::{Actor, Party};
use crate::hash::Hash;
use crate::id::{ExecutionId, PartId};
use crate::journal::event::{Answer, Event, PlanRef, Question, Record, Side};
use crate::journal::payload::Payload;
use crate::limits;
use crate::plan::schema::Schema;
use crate::plan::{Driver, Plan};
use crate::time::Timestamp;
use serde_json::Value;
use std::sync::Arc;

pub(super) type Admitted = Result<(), Refusal>;

impl Execution {
    /// Whether this input is possible in this state. [`Execution::decide`] asks this first.
    pub fn admit(&self, actor: &Actor, input: &Input) -> Admitted {
        self.admit_texts(input)?;
        match input {
            Input::Start => match self.phase {
                Phase::Pending => Ok(()),
                Phase::Ended { .. } => self.not_ended(),
                _ => Err(Refusal::new("execution.started", "this execution has started already")),
            },
            Input::Wake | Input::Recovered => Ok(()),
            Input::Returned { part, side, attempt, .. } => match self.part(part) {
                Some(part) if *attempt >= 1 && *attempt <= part.attempts_of(*side) => Ok(()),
                _ => Err(Refusal::new(
                    "execution.unknown_attempt",
                    format!("attempt {attempt} of {part} was never made"),
                )),
            },
            Input::Accepted { part, side, attempt, ticket } => {
                self.admit_ticket(part, *side, *attempt, ticket)
            }
            Input::ToolAsks { part, side, attempt, schema, .. } => {
                self.admit_inquiry(part, *side, *attempt, schema)
            }
            Input::AnswerTool { part, attempt, answer, .. } => {
                self.admit_tool_answer(actor, part, *attempt, answer.as_deref())
            }
            Input::Approve { part, call, .. } | Input::Deny { part, call, .. } => {
                self.admit_approval(actor, part, call)
            }
            Input::Answer { about, answer, result, evidence, .. } => {
                let shown = evidence.is_some() || result.is_some();
                self.admit_answer(about, *answer, shown)
            }
            Input::Settle { part, .. } => self.admit_settling(actor, part),
            Input::Pause { .. } => {
                self.under_way()?;
                if self.paused {
                    Err(Refusal::new("execution.paused", "this execution is paused already"))
                } else {
                    Ok(())
                }
            }
            Input::Resume { .. } => {
                self.not_ended()?;
                if self.paused {
                    Ok(())
                } else {
                    Err(Refusal::new("execution.not_paused", "this execution is not paused"))
                }
            }
            Input::Cancel { .. } => match self.phase {
                Phase::Pending | Phase::Forward => Ok(()),
                Phase::Draining { .. } | Phase::Undoing | Phase::Killed => {
                    Err(Refusal::new("execution.stopping", "this execution is stopping or undoing already")
                        .hint("pause it to hold it, or kill it to stop without clean-up"))
                }
                Phase::Ended { .. } => self.not_ended(),
            },
            Input::Kill { .. } => self.not_ended(),
            Input::Compensate { steps, .. } => {
                if !matches!(self.phase, Phase::Ended { .. }) {
                    return Err(Refusal::new("execution.not_ended", "this execution is still under way")
                        .hint("cancel it with undo, or answer its question with compensate"));
                }
                if let Some(part) = self.agenda.doubts.first() {
                    return Err(Refusal::new(
                        "execution.in_doubt",
                        format!("{} is in doubt", self.name(*part)),
                    )
                    .hint("settle it first: what may have happened cannot be undone blindly"));
                }
                for step in steps.iter().flatten() {
                    self.known_step(step.as_str())?;
                }
                if self.undo_scope(steps.as_deref()).is_empty() {
                    return Err(Refusal::new("execution.nothing_to_undo", "nothing here can be undone"));
                }
                Ok(())
            }
            Input::BeginReplan { .. } => {
                self.forward()?;
                if self.replanning {
                    return Err(Refusal::new(
                        "execution.replanning",
                        "this execution is being replanned already",
                    ));
                }
                Ok(())
            }
            Input::AbandonReplan { .. } => {
                self.not_ended()?;
                if self.replanning {
                    Ok(())
                } else {
                    Err(Refusal::new("execution.not_replanning", "this execution is not being replanned"))
                }
            }
            Input::Replan { plan, .. } => {
                self.forward()?;
                if self.driver == Driver::Server {
                    tools_are_there(plan)?;
                }
                inputs_fit(plan, self.inputs.value().map_or(&Value::Null, |value| value))?;
                self.admit_replan(plan)
            }
            Input::HandOver { to, .. } => {
                self.not_ended()?;
                if *to == self.driver {
                    return Err(Refusal::new("execution.driver", "it is driven this way already"));
                }
                match to {
                    Driver::Server => tools_are_there(self.plan()),
                    Driver::Agent => Ok(()),
                }
            }
            Input::ReportDrift { tool, .. } | Input::AcceptTool { tool, .. } => {
                self.not_ended()?;
                if !self.plan.tools.contains_key(tool) {
                    return Err(Refusal::new(
                        "execution.unknown_tool",
                        format!("the plan does not use {tool}"),
                    ));
                }
                match input {
                    Input::AcceptTool { .. } => person(actor, "accept a changed tool"),
                    _ => Ok(()),
                }
            }
            Input::RecordStarted { .. } | Input::RecordFinished { .. } | Input::RecordFailed { .. } => {
                self.admit_deed()
            }
            Input::RecordEnd { .. } => {
                self.admit_deed()?;
                self.started()
            }
            Input::RecordCompensation { part, .. } => match self.part(part) {
                Some(found) => match &found.state {
                    _ if found.effect.is_none() => Err(Refusal::new(
                        "execution.nothing_to_undo",
                        format!("{part} has no effect that could be undone"),
                    )),
                    PartState::Completed { .. }
                    | PartState::Failed { .. }
                    | PartState::CompensationFailed { .. }
                    | PartState::BackingOff { side: Side::Undo, .. } => Ok(()),
                    _ => Err(Refusal::new(
                        "execution.nothing_to_undo",
                        format!("{part} is still being done, or its effect is in doubt"),
                    )),
                },
                None => Err(unknown(part)),
            },
            Input::RecordDecision { step, .. } => match step {
                Some(step) => self.known_step(step.as_str()),
                None => Ok(()),
            },
            Input::RecordAction { .. } | Input::SaveContext { .. } => Ok(()),
        }
    }

    fn admit_texts(&self, input: &Input) -> Admitted {
        let texts: [&str; 2] = match input {
            Input::Approve { reason, .. }
            | Input::Deny { reason, .. }
            | Input::Answer { reason, .. }
            | Input::Settle { reason, .. }
            | Input::Pause { reason }
            | Input::Resume { reason }
            | Input::Cancel { reason, .. }
            | Input::Kill { reason }
            | Input::Compensate { reason, .. }
            | Input::BeginReplan { reason }
            | Input::AbandonReplan { reason }
            | Input::Replan { reason, .. }
            | Input::HandOver { reason, .. }
            | Input::AcceptTool { reason, .. }
            | Input::AnswerTool { reason, .. }
            | Input::RecordEnd { reason } => [reason, ""],
            Input::ToolAsks { message, .. } => [message, ""],
            Input::RecordCompensation { description, .. } => [description, ""],
            Input::RecordDecision { decision, reason, .. } => [decision, reason],
            Input::RecordAction { kind, description, .. } => [kind, description],
            Input::RecordFailed { failure, .. } => [&failure.message, ""],
            Input::SaveContext { values } => {
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
            Input::Start
            | Input::Wake
            | Input::Recovered
            | Input::Returned { .. }
            | Input::Accepted { .. }
            | Input::ReportDrift { .. }
            | Input::RecordStarted { .. }
            | Input::RecordFinished { .. } => return Ok(()),
        };
        match texts.iter().find(|text| text.len() > limits::REASON_BYTES_MAX) {
            Some(_) => Err(Refusal::new(
                "execution.text_too_long",
                format!("reasons and descriptions have at most {} bytes", limits::REASON_BYTES_MAX),
            )),
            None => Ok(()),
        }
    }

    fn admit_approval(&self, actor: &Actor, part: &PartId, call: &Hash) -> Admitted {
        person(actor, "approve a call")?;
        match self.part(part).map(|part| &part.state) {
            None => Err(unknown(part)),
            Some(PartState::Asking { call: asked, .. })
                if asked == call || crate::mutation::Mutation::ApprovalNotBoundToCall.is_active() =>
            {
                self.forward()
            }
            Some(PartState::Asking { .. }) => Err(Refusal::new(
                "execution.other_call",
                format!("the call of {part} is not the one you saw"),
            )
            .hint("look at the question again: the approval is for one exact call")),
            Some(_) => Err(Refusal::new("execution.not_asked", format!("{part} does not wait for approval"))),
        }
    }

    fn admit_answer(&self, about: &Question, answer: Answer, shown: bool) -> Admitted {
        self.not_ended()?;
        let (asked, answers): (bool, &[Answer]) = match about {
            Question::Failure(step) => {
                let held =
                    self.plan.find(step.as_str()).is_some_and(|step| self.steps[step].stage == Stage::Held);
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
            return Err(Refusal::new(
                "execution.no_such_answer",
                "this question is not answered in this way",
            ));
        }
        if answer == Answer::Resolve && !shown {
            return Err(Refusal::new(
                "execution.evidence_missing",
                "what was done by hand needs evidence or a result",
            ));
        }
        if answer == Answer::Replan && self.replanning {
            return Err(Refusal::new("execution.replanning", "this execution is being replanned already"));
        }
        Ok(())
    }

    fn admit_settling(&self, actor: &Actor, part: &PartId) -> Admitted {
        person(actor, "settle a doubt")?;
        match self.part(part).map(|part| &part.state) {
            None => Err(unknown(part)),
            Some(PartState::InDoubt { probing: Probing::Running(_), .. }) => {
                Err(Refusal::new("execution.not_in_doubt", format!("{part} is being probed"))
                    .hint("wait for the probe's answer"))
            }
            Some(PartState::InDoubt { .. }) => Ok(()),
            Some(_) => Err(Refusal::new("execution.not_in_doubt", format!("{part} is not in doubt"))),
        }
    }

    fn admit_deed(&self) -> Admitted {
        if self.driver != Driver::Agent {
            return Err(Refusal::new("execution.driver", "Rutter drives this execution")
                .hint("take it over first; then record what you do"));
        }
        match self.phase {
            Phase::Pending | Phase::Forward => Ok(()),
            Phase::Draining { .. } => Ok(()),
            Phase::Undoing | Phase::Killed => {
                Err(Refusal::new("execution.stopping", "this execution is being undone"))
            }
            Phase::Ended { .. } => self.not_ended(),
        }
    }

    fn not_ended(&self) -> Admitted {
        match self.phase {
            Phase::Ended { .. } => Err(Refusal::new("execution.ended", "this execution has ended")),
            _ => Ok(()),
        }
    }

    fn started(&self) -> Admitted {
        match self.phase {
            Phase::Pending => Err(Refusal::new("execution.not_started", "this execution has not started")),
            _ => Ok(()),
        }
    }

    fn under_way(&self) -> Admitted {
        self.not_ended()?;
        self.started()
    }

    fn forward(&self) -> Admitted {
        self.under_way()?;
        match self.phase {
            Phase::Forward => Ok(()),
            _ => Err(Refusal::new("execution.stopping", "this execution is stopping or undoing already")),
        }
    }

    fn known_step(&self, step: &str) -> Admitted {
        match self.plan.find(step) {
            Some(_) => Ok(()),
            None => Err(Refusal::new("execution.unknown_part", format!("the plan has no step {step:?}"))),
        }
    }
}

/// The first record of an execution, if its inputs fit and the driver can make its calls.
pub fn opening(
    plan: &Arc<Plan>,
    driver: Driver,
    inputs: Arc<Value>,
    lineage: &ExecutionId,
    actor: Actor,
    now: Timestamp,
) -> Result<Record, Refusal> {
    if driver == Driver::Server {
        tools_are_there(plan)?;
    }
    inputs_fit(plan, &inputs)?;
    let event = Event::ExecutionOpened {
        plan: PlanRef::of(plan),
        revision: 1,
        lineage: lineage.to_string(),
        driver,
        inputs: Payload::Present(inputs),
    };
    Ok(Record { at: now, actor, event })
}

fn tools_are_there(plan: &Plan) -> Admitted {
    match plan.tools_missing().next() {
        Some(tool) => Err(Refusal::new(
            "execution.unknown_tool",
            format!("the plan names {tool}, which nobody registered"),
        )
        .hint("only an agent can carry out this plan")),
        None => Ok(()),
    }
}

fn inputs_fit(plan: &Plan, inputs: &Value) -> Admitted {
    let Some(schema) = &plan.inputs else { return Ok(()) };
    // The schema compiled when the plan was checked; one that no longer does cannot refuse anything.
    let Ok(schema) = Schema::compile(schema) else { return Ok(()) };
    match schema.validate(inputs).first() {
        Some(violation) => Err(Refusal::new(
            "execution.inputs",
            format!("inputs{}: {}", violation.pointer, violation.message),
        )),
        None => Ok(()),
    }
}

pub(super) fn person(actor: &Actor, what: &str) -> Admitted {
    match actor.party {
        Party::Person => Ok(()),
        Party::Agent | Party::Rutter => {
            Err(Refusal::new("execution.not_a_person", format!("only a person may {what}")))
        }
    }
}

pub(super) fn unknown(part: &PartId) -> Refusal {
    Refusal::new("execution.unknown_part", format!("the execution has no part {part}"))
}
