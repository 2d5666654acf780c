//! Tickets and questions of tools during a call.

use super::Execution;
use super::admit::{AdmissionResult, person, unknown};
use super::agenda::PartPosition;
use super::decide::{DecisionDraft, RecordResult};
use super::input::Refusal;
use super::part::{Attempt, ToolInquiry};
use super::view::PendingQuestion;
use crate::actor::{Actor, ActorKind};
use crate::id::PartId;
use crate::journal::event::{CallSide, Event};
use crate::journal::payload::EventPayload;
use crate::limits;
use crate::plan::Driver;
use crate::plan::schema::CompiledSchema;
use crate::tool::Elicitation;
use serde_json::Value;

impl Execution {
    pub(super) fn admit_ticket(&self, part: &PartId, side: CallSide, attempt: u32, ticket: &str) -> AdmissionResult {
        let running = self.made_here(part, side, attempt)?;
        if running.ticket.is_some() {
            return Err(Refusal::new("execution.told_already", "this attempt has a ticket already"));
        }
        if ticket.len() > limits::TICKET_BYTES_MAX {
            return Err(Refusal::new(
                "execution.text_too_long",
                format!("a ticket has at most {} bytes", limits::TICKET_BYTES_MAX),
            ));
        }
        Ok(())
    }

    pub(super) fn admit_inquiry(
        &self,
        part: &PartId,
        side: CallSide,
        attempt: u32,
        question: &Elicitation,
    ) -> AdmissionResult {
        let Elicitation { schema, continuation, .. } = question;
        let running = self.made_here(part, side, attempt)?;
        if running.inquiry.is_some() {
            return Err(Refusal::new("execution.told_already", "this attempt already has an open question")
                .hint("ask again once it is answered"));
        }
        let invalid = |why: String| Refusal::new("execution.question_invalid", why);
        let size = continuation.as_ref().map_or(0, |continuation| continuation.to_string().len());
        if size > limits::CONTINUATION_BYTES_MAX {
            return Err(invalid(format!("a continuation has at most {} bytes", limits::CONTINUATION_BYTES_MAX)));
        }
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(invalid("the schema of a question must describe an object".into()));
        }
        let compiled = CompiledSchema::compile(schema);
        compiled.map(|_| ()).map_err(|error| invalid(format!("schema{}: {error}", error.pointer)))
    }

    pub(super) fn admit_tool_answer(
        &self,
        actor: &Actor,
        id: &PartId,
        attempt: u32,
        answer: Option<&Value>,
    ) -> AdmissionResult {
        let part = self.part(id).ok_or_else(|| unknown(id))?;
        let running = part.running().filter(|running| running.number == attempt);
        let Some(inquiry) = running.and_then(|running| running.inquiry.as_ref()) else {
            return Err(Refusal::new("execution.no_question", "this question is not open"));
        };
        if self.held.is_some() {
            // The call that would pass the answer on is resumed only then.
            let what = "the execution is held, so no answer can reach the tool";
            return Err(Refusal::new("execution.held", what).hint("resume it, then answer"));
        }
        if actor.party == ActorKind::Rutter || self.wants_a_person(id) {
            person(actor, "answer the tool of a step that needs approval")?;
        }
        answer.map_or(Ok(()), |answer| fits(inquiry, answer))
    }

    /// Whether this question of the attempt is open: a call that was resumed puts it again.
    pub fn is_asked(&self, part: &PartId, side: CallSide, attempt: u32, question: &Elicitation) -> bool {
        let open = self.attempt_under_way(part, side, attempt).and_then(Attempt::continuation);
        open.is_some() && open == question.continuation.as_ref()
    }

    /// The attempt, if Rutter is making it.
    fn made_here(&self, id: &PartId, side: CallSide, attempt: u32) -> Result<&Attempt, Refusal> {
        let running = self.part(id).and_then(|part| part.running());
        let is_it = |running: &&Attempt| (running.side, running.number, running.by) == (side, attempt, Driver::Server);
        running.filter(is_it).ok_or_else(|| {
            let what = format!("attempt {attempt} of {id} is not being made by Rutter");
            Refusal::new("execution.unknown_attempt", what)
        })
    }

    /// An actor that may not approve a call may not answer its questions either.
    fn wants_a_person(&self, id: &PartId) -> bool {
        let is_approved = self.part(id).is_some_and(|part| part.approved.is_some());
        is_approved || self.locate(id).is_some_and(|at| self.plan.steps[at.step()].approval.is_some())
    }

    pub(super) fn ask_of_tool(&self, at: PartPosition) -> Option<PendingQuestion> {
        let attempt = self.part_at(at)?.running()?;
        let inquiry = attempt.inquiry.as_ref()?;
        let part = self.name(at);
        Some(PendingQuestion::Tool {
            side: attempt.side,
            attempt: attempt.number,
            message: inquiry.message.clone(),
            schema: inquiry.schema.value().cloned(),
            person_only: self.wants_a_person(&part),
            part,
        })
    }
}

/// Checks an answer against the tool's question.
fn fits(inquiry: &ToolInquiry, answer: &Value) -> AdmissionResult {
    let invalid = |why: String| Refusal::new("execution.answer_invalid", why);
    let is_scalar = |value: &Value| !value.is_object() && !value.is_array();
    let is_flat = |value: &Value| value.as_array().map_or(is_scalar(value), |list| list.iter().all(is_scalar));
    if !answer.as_object().is_some_and(|fields| fields.values().all(is_flat)) {
        return Err(invalid("expected an object without objects in it".into()));
    }
    if answer.to_string().len() > limits::VALUE_BYTES_MAX {
        let what = format!("an answer has at most {} bytes", limits::VALUE_BYTES_MAX);
        return Err(Refusal::new("execution.too_large", what));
    }
    let schema = inquiry.schema.value().and_then(|schema| CompiledSchema::compile(schema).ok());
    let Some(schema) = schema else {
        return Err(
            invalid("the schema of the question was erased, so no answer can be checked".into()).hint("decline it")
        );
    };
    match schema.validate(answer).first() {
        Some(violation) => Err(invalid(format!("answer{}: {}", violation.pointer, violation.message))
            .hint("the question has the schema of its answers")),
        None => Ok(()),
    }
}

impl DecisionDraft<'_> {
    pub fn answer_tool(
        &mut self,
        part: PartId,
        attempt: u32,
        answer: Option<EventPayload>,
        reason: String,
    ) -> RecordResult {
        let Some(side) = self.execution.part(&part).and_then(|part| part.running()).map(|run| run.side) else {
            return Ok(());
        };
        self.note(Event::ToolAnswered { part, side, attempt, answer, reason })
    }

    /// Attempts that were open when the worker disappeared are lost, except those that can be resumed.
    pub fn recover(&mut self) -> RecordResult {
        let mut left: Vec<PartPosition> = self.execution.agenda.running.iter().copied().collect();
        left.retain(|at| self.execution.runs_here(*at));
        for at in left {
            let Some(attempt) = self.running_attempt(at) else { continue };
            if !attempt.is_resumable() {
                self.lose(at)?;
            } else if attempt.ticket.is_some() && attempt.inquiry.is_some() {
                // The connection for the answer is gone; the tool asks again under its ticket.
                let (part, side, attempt) = (self.execution.name(at), attempt.side, attempt.number);
                let reason = "the process that would pass on the answer is gone".to_owned();
                self.follow(Event::ToolAnswered { part, side, attempt, answer: None, reason })?;
            }
        }
        Ok(())
    }
}
