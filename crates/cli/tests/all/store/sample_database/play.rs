//! Executes a plan as an engine would: record, then call, then pass on the response.

use super::journal::{Book, Journal, identity};
use super::tools::Tools;
use rutter_core::actor::Actor;
use rutter_core::execution::Execution;
use rutter_core::execution::decide::Error;
use rutter_core::execution::input::{DecisionContext, ExecutionInput, ToolCall};
use rutter_core::execution::opening::opening;
use rutter_core::execution::view::{ExecutionStatus, PendingQuestion};
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, StepId, ToolName};
use rutter_core::plan::{Driver, Plan};
use rutter_core::time::Millis;
use rutter_core::tool::CallOutcome;
use serde_json::Value;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// Calls are made one after the other, so there is always capacity.
const ROOM: u32 = 100;
/// Between two events.
const TICK: Millis = Millis(1);

#[derive(Debug)]
pub struct Play {
    pub execution: Execution,
    pub journal: Journal,
    tools: Tools,
    calls: VecDeque<ToolCall>,
}

/// How far the calls went.
#[derive(Debug, PartialEq, Eq)]
pub enum Played {
    ToItsRest,
    AnswerLost,
}

pub fn person() -> Actor {
    Actor::person("the operator")
}

pub fn agent() -> Actor {
    Actor::agent("pilot")
}

impl Play {
    pub fn open(
        (book, name): (&Rc<Book>, &str),
        (plan, driver): (&Arc<Plan>, Driver),
        inputs: Value,
        tools: Tools,
    ) -> Play {
        book.pass_until(book.now().plus(TICK));
        let identity = identity(name);
        let opened = opening(plan, 1, driver, Arc::new(inputs), &identity.execution, person(), book.now()).unwrap();
        let execution = Execution::open(identity, &opened).unwrap();
        let journal = Journal::open(book, plan, &execution, &opened);
        Play { execution, journal, tools, calls: VecDeque::new() }
    }

    /// Sends an input that must be accepted.
    pub fn give(&mut self, actor: &Actor, input: ExecutionInput) {
        assert_eq!(self.offer(actor, input), None);
    }

    /// Sends an input, and returns the code of a refusal. Decisions are on disk before any call.
    pub fn offer(&mut self, actor: &Actor, input: ExecutionInput) -> Option<String> {
        let book = &self.journal.book;
        book.pass_until(book.now().plus(TICK));
        let moment = DecisionContext { now: book.now(), room: ROOM };
        let decision = match self.execution.decide(actor, input, moment) {
            Ok(decision) => decision,
            Err(Error::Refused(refusal)) => return Some(refusal.code.to_string()),
            Err(error) => panic!("{error}"),
        };
        self.journal.append(&decision.records, self.execution.row());
        self.calls.extend(decision.calls);
        None
    }

    /// Makes calls until nothing more follows or a response is lost.
    pub fn play(&mut self) -> Played {
        loop {
            let Some(call) = self.calls.pop_front() else {
                let waits_for_time =
                    matches!(self.execution.status(), ExecutionStatus::Running | ExecutionStatus::Compensating);
                match self.execution.wake_at().filter(|_| waits_for_time) {
                    Some(when) => self.journal.book.pass_until(when),
                    None => return Played::ToItsRest,
                }
                self.give(&Actor::rutter(), ExecutionInput::Wake);
                if self.calls.is_empty() {
                    return Played::ToItsRest;
                }
                continue;
            };
            let Some(outcome) = self.tools.call(&call.tool, &call.parameters) else {
                return Played::AnswerLost;
            };
            let ToolCall { part, side, attempt, .. } = call;
            self.give(&Actor::rutter(), ExecutionInput::Returned { part, side, attempt, outcome });
        }
    }

    /// The process dies and another takes over from the database.
    pub fn crash_and_recover(&mut self) {
        self.calls.clear();
        self.execution = self.journal.recover();
        self.give(&Actor::rutter(), ExecutionInput::Recovered);
    }

    /// The call that waits for a person's approval.
    pub fn asked(&self) -> (PartId, Hash) {
        let asked = self.execution.questions().into_iter().find_map(|ask| match ask {
            PendingQuestion::Approval { part, call, .. } => Some((part, call)),
            _ => None,
        });
        asked.expect("a call waits for approval")
    }

    pub fn approve(&mut self, reason: &str) {
        let (part, call) = self.asked();
        self.give(&person(), ExecutionInput::Approve { part, call, reason: reason.to_owned() });
    }

    /// The agent calls the tool itself, and records the result.
    pub fn agent_does(&mut self, step: &str, tool: &str, parameters: &Value) {
        let Some(CallOutcome::Done { result, .. }) = self.agent_calls(step, tool, parameters) else {
            panic!("{tool} did not respond to the agent");
        };
        let part = PartId::whole(StepId::new(step));
        self.give(&agent(), ExecutionInput::RecordFinished { part, result });
    }

    /// The agent records the start, and calls the tool.
    pub fn agent_calls(&mut self, step: &str, tool: &str, parameters: &Value) -> Option<CallOutcome> {
        let tool = ToolName::new(tool);
        let started = ExecutionInput::RecordStarted {
            part: PartId::whole(StepId::new(step)),
            tool: Some(tool.clone()),
            parameters: Some(Arc::new(parameters.clone())),
        };
        self.give(&agent(), started);
        self.tools.call(&tool, parameters)
    }
}
