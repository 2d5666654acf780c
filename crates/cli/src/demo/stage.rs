//! Carries one execution out as an engine would: record, then call, then give the answer back.

use super::journal::{Book, Journal, identity};
use super::narrate::Narrator;
use super::teller::Teller;
use super::tools::Tools;
use anyhow::{Context, bail};
use rutter_core::actor::Actor;
use rutter_core::execution::Execution;
use rutter_core::execution::admit::opening;
use rutter_core::execution::decide::Error;
use rutter_core::execution::input::{Input, Moment, Refusal, ToolCall};
use rutter_core::execution::view::{Ask, Status};
use rutter_core::hash::Hash;
use rutter_core::id::PartId;
use rutter_core::journal::event::Record;
use rutter_core::plan::{Driver, Plan};
use rutter_core::time::Millis;
use serde_json::Value;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// Calls are played one after the other, so there is always room for more.
const ROOM: u32 = 100;
/// Between two things that happen.
const TICK: Millis = Millis(1);

#[derive(Debug)]
pub(crate) struct Stage<'a> {
    teller: &'a Teller,
    pub(crate) execution: Execution,
    pub(crate) journal: Journal,
    pub(crate) tools: Tools,
    narrator: Narrator,
    calls: VecDeque<ToolCall>,
}

impl<'a> Stage<'a> {
    pub(crate) fn open(
        teller: &'a Teller,
        (book, name): (&Rc<Book>, &str),
        (plan, driver): (&Arc<Plan>, Driver),
        inputs: Value,
        tools: Tools,
    ) -> anyhow::Result<Stage<'a>> {
        book.pass_until(book.now().plus(TICK));
        teller.set_names(plan.steps.iter().map(|step| step.id.as_str().len()).max().unwrap_or(0));
        let identity = identity(name);
        let opened = opening(plan, driver, Arc::new(inputs), &identity.execution, person(), book.now())?;
        let execution = Execution::open(identity, &opened)?;
        let journal = Journal::open(book, plan, &execution, &opened)?;
        let (narrator, calls) = (Narrator::default(), VecDeque::new());
        Ok(Stage { teller, execution, journal, tools, narrator, calls })
    }

    /// Takes an input; none of the story's is refused unless it says so.
    pub(crate) fn give(&mut self, actor: &Actor, input: Input) -> anyhow::Result<()> {
        match self.offer(actor, input)? {
            None => Ok(()),
            Some(refusal) => bail!("refused: {refusal} ({})", refusal.code),
        }
    }

    /// Takes an input, or says why not. What is decided is on the disk before any call is made.
    pub(crate) fn offer(&mut self, actor: &Actor, input: Input) -> anyhow::Result<Option<Refusal>> {
        let book = &self.journal.book;
        book.pass_until(book.now().plus(TICK));
        let moment = Moment { now: book.now(), room: ROOM };
        let decision = match self.execution.decide(actor, input, moment) {
            Ok(decision) => decision,
            Err(Error::Refused(refusal)) => return Ok(Some(refusal)),
            Err(error) => return Err(error.into()),
        };
        self.journal.append(&decision.records, self.execution.row())?;
        self.calls.extend(decision.calls);
        self.tell(&decision.records)?;
        Ok(None)
    }

    /// Makes calls until nothing more follows. An answer that gets lost ends this process's part of the story.
    pub(crate) fn play(&mut self) -> anyhow::Result<Played> {
        loop {
            let Some(call) = self.calls.pop_front() else {
                let waits_for_time =
                    matches!(self.execution.status(), Status::Running | Status::Compensating);
                match self.execution.wake_at().filter(|_| waits_for_time) {
                    Some(when) => self.journal.book.pass_until(when),
                    None => return Ok(Played::ToItsRest),
                }
                self.give(&Actor::rutter(), Input::Wake)?;
                if self.calls.is_empty() {
                    return Ok(Played::ToItsRest);
                }
                continue;
            };
            let Some(outcome) = self.tools.call(&call.tool, &call.parameters) else {
                return Ok(Played::AnswerLost);
            };
            let ToolCall { part, side, attempt, .. } = call;
            self.give(&Actor::rutter(), Input::Returned { part, side, attempt, outcome })?;
        }
    }

    /// The process dies and another takes over: all it has is the database.
    pub(crate) fn crash_and_recover(&mut self) -> anyhow::Result<()> {
        self.calls.clear();
        self.execution = self.journal.recover()?;
        self.give(&Actor::rutter(), Input::Recovered)
    }

    /// The call that waits for a person's yes.
    pub(crate) fn asked(&self) -> anyhow::Result<(PartId, Hash)> {
        let questions = self.execution.questions();
        let asked = questions.into_iter().find_map(|ask| match ask {
            Ask::Approval { part, call, .. } => Some((part, call)),
            _ => None,
        });
        asked.context("no call waits for approval")
    }

    pub(crate) fn approve(&mut self, reason: &str) -> anyhow::Result<()> {
        let (part, call) = self.asked()?;
        self.give(&person(), Input::Approve { part, call, reason: reason.to_owned() })
    }

    /// Signs the journal; whether what is on the disk is intact and gives the same execution again.
    pub(crate) fn close(&mut self) -> anyhow::Result<bool> {
        Ok(self.journal.sign_and_replay()? == self.execution)
    }

    fn tell(&mut self, records: &[Record]) -> anyhow::Result<()> {
        for record in records {
            if let Some(progress) = self.narrator.line(record) {
                self.teller.progress(&progress)?;
            }
        }
        Ok(())
    }
}

/// How far the calls went.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Played {
    ToItsRest,
    AnswerLost,
}

pub(crate) fn person() -> Actor {
    Actor::person("the operator")
}

pub(crate) fn agent() -> Actor {
    Actor::agent("pilot")
}
