//! What a tool says while it is being called: a ticket to ask it under, and questions of its own.

use super::Execution;
use super::admit::{Admitted, person, unknown};
use super::agenda::PartAt;
use super::decide::{Draft, Recorded};
use super::input::{Refusal, ToolCall};
use super::part::{Attempt, Inquiry};
use super::view::Ask;
use crate::actor::{Actor, Party};
use crate::id::PartId;
use crate::journal::event::{Event, Side};
use crate::journal::payload::Payload;
use crate::limits;
use crate::mutation::Mutation;
use crate::plan::Driver;
use crate::plan::schema::Schema;
use serde_json::Value;

impl Execution {
    pub(super) fn admit_ticket(&self, part: &PartId, side: Side, attempt: u32, ticket: &str) -> Admitted {
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

    pub(super) fn admit_inquiry(&self, part: &PartId, side: Side, attempt: u32, schema: &Value) -> Admitted {
        let running = self.made_here(part, side, attempt)?;
        if running.inquiry.is_some() {
            return Err(Refusal::new("execution.told_already", "this attempt asks something already")
                .hint("ask again once that was answered"));
        }
        let invalid = |why: String| Refusal::new("execution.question_invalid", why);
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(invalid("the schema of a question must be that of an object".into()));
        }
        let compiled = Schema::compile(schema);
        compiled.map(|_| ()).map_err(|error| invalid(format!("schema{}: {error}", error.pointer)))
    }

    pub(super) fn admit_tool_answer(
        &self,
        actor: &Actor,
        id: &PartId,
        attempt: u32,
        answer: Option<&Value>,
    ) -> Admitted {
        let part = self.part(id).ok_or_else(|| unknown(id))?;
        let running = part.running().filter(|running| running.number == attempt);
        let Some(inquiry) = running.and_then(|running| running.inquiry.as_ref()) else {
            return Err(Refusal::new("execution.no_question", "this question is not open"));
        };
        let careless = Mutation::AgentAnswersForPerson.is_active();
        if actor.party == Party::Rutter || (self.wants_a_person(id) && !careless) {
            person(actor, "answer the tool of a step that needs approval")?;
        }
        answer.map_or(Ok(()), |answer| fits(inquiry, answer))
    }

    /// The attempt, if Rutter is making it.
    fn made_here(&self, id: &PartId, side: Side, attempt: u32) -> Result<&Attempt, Refusal> {
        let running = self.part(id).and_then(|part| part.running());
        let is_it = |running: &&Attempt| {
            (running.side, running.number, running.by) == (side, attempt, Driver::Server)
        };
        running.filter(is_it).ok_or_else(|| {
            let what = format!("attempt {attempt} of {id} is not being made by Rutter");
            Refusal::new("execution.unknown_attempt", what)
        })
    }

    /// Whoever may not approve a call may not shape it half-way either.
    fn wants_a_person(&self, id: &PartId) -> bool {
        self.locate(id).is_some_and(|at| self.plan.steps[at.step()].approval.is_some())
    }

    pub(super) fn ask_of_tool(&self, at: PartAt) -> Option<Ask> {
        let attempt = self.part_at(at)?.running()?;
        let inquiry = attempt.inquiry.as_ref()?;
        let part = self.name(at);
        Some(Ask::Tool {
            side: attempt.side,
            attempt: attempt.number,
            message: inquiry.message.clone(),
            schema: inquiry.schema.value().cloned(),
            person_only: self.wants_a_person(&part),
            part,
        })
    }
}

/// Whether an answer is what the tool asked for.
fn fits(inquiry: &Inquiry, answer: &Value) -> Admitted {
    let invalid = |why: String| Refusal::new("execution.answer_invalid", why);
    let is_scalar = |value: &Value| !value.is_object() && !value.is_array();
    let is_flat =
        |value: &Value| value.as_array().map_or(is_scalar(value), |list| list.iter().all(is_scalar));
    if !answer.as_object().is_some_and(|fields| fields.values().all(is_flat)) {
        return Err(invalid("expected an object without objects in it".into()));
    }
    if answer.to_string().len() > limits::VALUE_BYTES_MAX {
        let what = format!("an answer has at most {} bytes", limits::VALUE_BYTES_MAX);
        return Err(Refusal::new("execution.too_large", what));
    }
    let schema = inquiry.schema.value().and_then(|schema| Schema::compile(schema).ok());
    let Some(schema) = schema else {
        return Err(invalid("what the tool asked for was erased, so no answer can be checked".into())
            .hint("decline it"));
    };
    match schema.validate(answer).first() {
        Some(violation) => Err(invalid(format!("answer{}: {}", violation.pointer, violation.message))
            .hint("the question has the schema of its answers")),
        None => Ok(()),
    }
}

impl Draft<'_> {
    pub fn answer_tool(
        &mut self,
        part: PartId,
        attempt: u32,
        answer: Option<Payload>,
        reason: String,
    ) -> Recorded {
        let Some(side) = self.execution.part(&part).and_then(|part| part.running()).map(|run| run.side)
        else {
            return Ok(());
        };
        self.note(Event::ToolAnswered { part, side, attempt, answer, reason })
    }

    /// What ran when its driver vanished is lost, whichever side it was on, unless the tool can be asked about it.
    pub fn recover(&mut self) -> Recorded {
        let mut left: Vec<PartAt> = self.execution.agenda.running.iter().copied().collect();
        left.retain(|at| self.execution.runs_here(*at));
        for at in left {
            let Some(attempt) = self.running_attempt(at) else { continue };
            if attempt.ticket.is_none() || Mutation::LoseDespiteTicket.is_active() {
                self.lose(at)?;
            } else if attempt.inquiry.is_some() {
                // Nobody is left who could be told the answer; the tool asks again under its ticket.
                let (part, side, attempt) = (self.execution.name(at), attempt.side, attempt.number);
                let reason = "whoever would have passed on the answer is gone".to_owned();
                self.follow(Event::ToolAnswered { part, side, attempt, answer: None, reason })?;
            }
        }
        Ok(())
    }

    /// Goes on with the calls that tools can be asked about. Their attempts are on record and have their room.
    pub fn go_on(&mut self) {
        let execution = &*self.execution;
        let attempts = execution.agenda.running.iter().filter(|at| execution.runs_here(**at));
        let attempts = attempts.filter_map(|at| Some((*at, execution.part_at(*at)?.running()?)));
        let calls = attempts.filter(|(_, attempt)| attempt.ticket.is_some()).map(|(at, attempt)| ToolCall {
            part: execution.name(at),
            side: attempt.side,
            attempt: attempt.number,
            tool: attempt.sent.tool.clone(),
            definition: attempt.sent.definition,
            // Nothing is sent under a ticket, so parameters that were erased are not missed.
            parameters: attempt.sent.parameters.value().cloned().unwrap_or_default(),
            key: attempt.sent.key,
            deadline: attempt.deadline.unwrap_or(self.now),
            ticket: attempt.ticket.clone().filter(|_| !Mutation::ForgetTicket.is_active()),
        });
        self.decision.calls.extend(calls.collect::<Vec<_>>());
    }
}
