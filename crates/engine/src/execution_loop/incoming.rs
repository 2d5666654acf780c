//! Turns messages into inputs of the execution: outcomes of calls, reports of tools, commands.

use super::{ExecutionLoop, LoopError};
use crate::active_executions::{CallMessage, CallReport};
use crate::call_task::CallEnded;
use crate::command::{CommandBody, CommandEnvelope, ReplanCommand};
use crate::command_replies::CommandResult;
use rutter_core::actor::Actor;
use rutter_core::execution::input::{ExecutionInput, Refusal};
use rutter_core::id::PartId;
use rutter_core::journal::event::CallSide;
use rutter_core::plan::schema::CompiledSchema;
use rutter_core::port::journal::StoredCommand;
use rutter_core::port::tools::CallReturn;
use rutter_core::tool::{CallOutcome, ToolFailure};

impl ExecutionLoop {
    pub(super) fn on_call_ended(&mut self, ended: CallEnded) -> Result<(), LoopError> {
        let CallEnded { part, side, attempt, tool, returned } = ended;
        self.active_calls.retain(|call| (&call.part, call.side, call.attempt) != (&part, side, attempt));
        let call = (part.clone(), attempt);
        self.elicitation_replies.remove(&call);
        self.early_answers.remove(&call);
        let input = match returned {
            CallReturn::Outcome(outcome) => {
                let outcome = self.checked_outcome(&part, side, outcome);
                ExecutionInput::Returned { part, side, attempt, outcome }
            }
            CallReturn::Drifted { found } => ExecutionInput::Withdraw { part, side, attempt, tool, found },
        };
        if let Err(refusal) = self.decide(&Actor::rutter(), input)? {
            tracing::warn!(execution = %self.execution.identity().execution, "outcome refused: {refusal}");
        }
        Ok(())
    }

    /// Handles what a tool reports during its call.
    pub(super) fn on_report(&mut self, report: CallReport) -> Result<(), LoopError> {
        let CallReport { part, side, attempt, message: call_message } = report;
        let refused = match call_message {
            CallMessage::Accepted { ticket, recorded } => {
                let input = ExecutionInput::Accepted { part, side, attempt, ticket };
                let refused = self.decide(&Actor::rutter(), input)?.err();
                self.pending.recorded.push(recorded);
                refused
            }
            CallMessage::Asked { question, answer } => {
                let asked = (part.clone(), attempt);
                if let Some(early) = self.early_answers.remove(&asked) {
                    // The call may have ended meanwhile.
                    let _ = answer.send(early);
                    return Ok(());
                }
                // A resumed call asks for the answer to a question that is on record.
                let refused = match self.execution.is_asked(&part, side, attempt, &question) {
                    true => None,
                    false => {
                        let input = ExecutionInput::ToolAsks { part, side, attempt, question };
                        self.decide(&Actor::rutter(), input)?.err()
                    }
                };
                if refused.is_none() {
                    self.elicitation_replies.insert(asked, answer);
                }
                refused
            }
            CallMessage::Late(outcome) => {
                let outcome = self.checked_outcome(&part, side, outcome);
                self.decide(&Actor::rutter(), ExecutionInput::Returned { part, side, attempt, outcome })?.err()
            }
        };
        if let Some(refusal) = refused {
            tracing::warn!(execution = %self.execution.identity().execution, "report refused: {refusal}");
        }
        Ok(())
    }

    /// A result that violates the step's schema does not count, but the call may have had its effect.
    fn checked_outcome(&mut self, part: &PartId, side: CallSide, outcome: CallOutcome) -> CallOutcome {
        let (CallOutcome::Done { result, .. }, CallSide::Do | CallSide::Fallback) = (&outcome, side) else {
            return outcome;
        };
        let plan = self.execution.plan();
        let Some(step) = plan.find(part.step.as_str()).map(|at| &plan.steps[at]) else { return outcome };
        let Some(wanted) = &step.output else { return outcome };
        let schema = self.schemas.entry(step.id.clone()).or_insert_with(|| CompiledSchema::compile(wanted).ok());
        // The plan's check compiled it; a schema that no longer compiles refuses nothing.
        let violation = schema.as_ref().and_then(|schema| schema.validate(result).into_iter().next());
        match violation {
            None => outcome,
            Some(violation) => {
                let why = format!("result{}: {}", violation.pointer, violation.message);
                CallOutcome::Maybe(ToolFailure::answered(&why))
            }
        }
    }

    pub(super) async fn on_command(&mut self, mut command: StoredCommand) -> Result<(), LoopError> {
        if !self.seen.insert(command.number) {
            return Ok(());
        }
        let envelope: Result<CommandEnvelope, Refusal> = serde_json::from_slice(&command.bytes)
            .map_err(|error| Refusal::new("engine.unreadable", error.to_string()));
        let (key, body) = match envelope {
            Ok(CommandEnvelope { key, seen, proof, body }) => {
                command.actor.proof = proof;
                match self.has_changed_since(seen) {
                    Some(refusal) => (key, Err(refusal)),
                    None => (key, Ok(body)),
                }
            }
            Err(refusal) => (None, Err(refusal)),
        };
        let decided = match body {
            Ok(body) => self.on_body(&command.actor, body).await?,
            Err(refusal) => Err(refusal),
        };
        self.pending.decided_commands.push(command.number);
        self.pending.refused_keys.extend(key.filter(|_| decided.is_err()));
        self.pending.replies.push((command.number, decided));
        Ok(())
    }

    async fn on_body(&mut self, actor: &Actor, body: CommandBody) -> Result<CommandResult, LoopError> {
        let input = match body {
            CommandBody::Report { report } => return self.on_agent_report(actor, &report),
            CommandBody::Input(input) => input,
            CommandBody::Control { control, reason } => match control.input(&self.execution, reason) {
                Ok(input) => input,
                Err(refusal) => return Ok(Err(refusal)),
            },
            CommandBody::Late(late) => {
                let (part, side, attempt, outcome) = late.into_outcome();
                let outcome = self.checked_outcome(&part, side, outcome);
                ExecutionInput::Returned { part, side, attempt, outcome }
            }
            CommandBody::Replan(command) => match self.replan_input(command).await {
                Ok(input) => input,
                Err(refusal) => return Ok(Err(refusal)),
            },
        };
        let answered = match &input {
            ExecutionInput::AnswerTool { part, attempt, answer, .. } => {
                Some((part.clone(), *attempt, answer.as_deref().cloned()))
            }
            _ => None,
        };
        let decided = self.decide(actor, input)?;
        self.pending.answered.extend(answered.filter(|_| decided.is_ok()));
        Ok(decided)
    }

    /// Refuses a command whose caller has not seen the newest entries.
    fn has_changed_since(&self, seen: Option<u64>) -> Option<Refusal> {
        let (seen, entries) = (seen?, self.execution.entries());
        let message = || format!("it has changed since: it had {seen} entries and has {entries} now");
        let refusal = || Refusal::new("engine.changed", message()).hint("look at it again, then decide");
        (seen != entries).then(refusal)
    }

    async fn replan_input(&mut self, command: ReplanCommand) -> Result<ExecutionInput, Refusal> {
        let ReplanCommand { plan, revision, reason } = command;
        let unreadable = |why: String| Refusal::new("engine.unreadable", why);
        let saved = self.shared.query.plan_of(self.execution.identity(), revision).await;
        let saved = saved.map_err(|error| unreadable(error.to_string()))?;
        let missing = || unreadable(format!("there is no plan {plan} revision {revision}"));
        Ok(ExecutionInput::Replan { plan: saved.ok_or_else(missing)?.plan, revision, reason })
    }
}
