//! What an agent reports of its own deeds, and where deed and plan differ.

use super::Phase;
use super::agenda::PartAt;
use super::decide::{Draft, Recorded};
use super::part::{Attempt, PartState};
use super::step::Stage;
use crate::hash::Hash;
use crate::id::{PartId, StepId, ToolName};
use crate::journal::event::{Answer, Deviation, Event, Question, Side, SkipReason};
use crate::journal::payload::Payload;
use crate::plan::Driver;
use crate::tool::{Category, Failure};
use serde_json::Value;
use std::sync::Arc;

impl Draft<'_> {
    /// The agent began a step. What does not fit the plan is recorded as such, never refused: it happened.
    pub fn record_started(
        &mut self,
        part: PartId,
        tool: Option<ToolName>,
        parameters: Option<Arc<Value>>,
    ) -> Recorded {
        if self.execution.phase == Phase::Pending {
            self.note(Event::ExecutionStarted {})?;
        }
        let Some(at) = self.known(&part).filter(|_| self.execution.phase == Phase::Forward) else {
            return self.undeclared(&part, tool.as_ref(), parameters);
        };
        self.decide_by_doing(at)?;
        let state = self.execution.part_at(at).map(|part| part.state.clone());
        let side = match state {
            Some(PartState::Pending) => Side::Do,
            Some(PartState::Approved { side, .. } | PartState::Asking { side, .. }) => side,
            Some(PartState::BackingOff { side: side @ (Side::Do | Side::Fallback), .. }) => side,
            Some(PartState::Cancelled) | None => {
                return self.deviate(Deviation::Undeclared, &part.step, "done although it was cancelled");
            }
            Some(_) => return self.deviate(Deviation::Duplicate, &part.step, "begun again"),
        };
        if self.execution.steps[at.step()].stage.is_settled() {
            return self.deviate(
                Deviation::Undeclared,
                &part.step,
                "done although it was skipped or cancelled",
            );
        }
        self.compare_order(at)?;
        let Some(planned) = self.execution.call_of(at, side).map(|call| call.tool.clone()) else {
            return Ok(());
        };
        self.compare_call(at, &planned, tool.as_ref())?;
        let prepared = self.execution.prepare(at, side).ok();
        let attempt = self.execution.part_at(at).map_or(0, |part| part.attempts_of(side)) + 1;
        let parameters = parameters.or_else(|| prepared.as_ref().map(|prepared| prepared.parameters.clone()));
        let definition = self.execution.definition(&planned);
        self.note(Event::AttemptStarted {
            part,
            side,
            attempt,
            by: Driver::Agent,
            tool: tool.unwrap_or(planned),
            definition,
            call: prepared.as_ref().map_or(Hash::ZERO, |prepared| prepared.hash),
            key: prepared.as_ref().map_or(Hash::ZERO, |prepared| prepared.key),
            parameters: Payload::Present(parameters.unwrap_or_else(|| Arc::new(Value::Null))),
            deadline: None,
        })
    }

    /// Going on with a step that waits for a decision is the decision to try it again.
    fn decide_by_doing(&mut self, at: PartAt) -> Recorded {
        if self.execution.steps[at.step()].stage != Stage::Held {
            return Ok(());
        }
        self.note(Event::QuestionAnswered {
            about: Question::Failure(self.execution.plan.steps[at.step()].id.clone()),
            answer: Answer::Retry,
            reason: "the agent went on with it".into(),
            result: None,
            evidence: None,
            skipped: Vec::new(),
        })
    }

    pub fn record_finished(&mut self, part: PartId, result: Arc<Value>) -> Recorded {
        let Some((at, attempt)) = self.begun(&part)? else { return Ok(()) };
        let part = self.execution.name(at);
        let (side, attempt, result) = (attempt.side, attempt.number, Payload::Present(result));
        self.note(Event::AttemptSucceeded { part, side, attempt, result, cost_micros: 0 })
    }

    pub fn record_failed(&mut self, part: PartId, failure: Failure, maybe: bool) -> Recorded {
        match self.begun(&part)? {
            Some((at, attempt)) => self.close(at, attempt.side, attempt.number, failure, maybe),
            None => Ok(()),
        }
    }

    /// The attempt the agent speaks of; one it did not announce is begun now.
    fn begun(&mut self, part: &PartId) -> Result<Option<(PartAt, Attempt)>, super::IllegalEvent> {
        let running = |draft: &Self| {
            let at = draft.execution.locate(part)?;
            let attempt = draft.running_attempt(at).filter(|attempt| attempt.by == Driver::Agent)?;
            Some((at, attempt))
        };
        if running(self).is_none() {
            self.record_started(part.clone(), None, None)?;
        }
        Ok(running(self))
    }

    pub fn record_action(
        &mut self,
        step: Option<StepId>,
        kind: String,
        description: String,
        details: Option<Payload>,
    ) -> Recorded {
        let unknown = step.as_ref().is_some_and(|step| self.execution.plan.find(step.as_str()).is_none());
        self.note(Event::ActionRecorded { step: step.clone(), kind, description, details })?;
        match step.filter(|_| unknown) {
            Some(step) => self.deviate(Deviation::Undeclared, &step, "the plan has no such step"),
            None => Ok(()),
        }
    }

    /// The agent is done: what it left out is named.
    pub fn record_end(&mut self, reason: String) -> Recorded {
        self.note(Event::DecisionRecorded { step: None, decision: "end".into(), reason, details: None })?;
        self.lose_agents_attempts()?;
        self.abandon_begun()?;
        let waiting: Vec<usize> = (0..self.execution.steps.len())
            .filter(|step| self.execution.steps[*step].stage == Stage::Waiting)
            .collect();
        let steps = self.execution.names(&waiting);
        if steps.is_empty() {
            return Ok(());
        }
        for step in &steps {
            self.deviate(Deviation::Skipped, step, "the agent ended without doing it")?;
        }
        self.follow(Event::StepsSkipped { steps, because: SkipReason::LeftUndone })
    }

    /// What was begun and will not be gone on with has failed: items of fan-outs, retries, calls to be approved.
    fn abandon_begun(&mut self) -> Recorded {
        let begun: Vec<(PartAt, Side)> = (0..self.execution.steps.len())
            .filter(|step| self.execution.steps[*step].stage == Stage::Begun)
            .flat_map(|step| {
                (0..self.execution.steps[step].parts.len()).map(move |item| PartAt::new(step, item))
            })
            .filter_map(|at| match self.execution.part_at(at)?.state {
                PartState::Pending if !self.execution.steps[at.step()].halted => Some((at, Side::Do)),
                PartState::Asking { side, .. } | PartState::Approved { side, .. } => Some((at, side)),
                PartState::BackingOff { side: side @ (Side::Do | Side::Fallback), .. } => Some((at, side)),
                _ => None,
            })
            .collect();
        for (at, side) in begun {
            let gone = self
                .execution
                .part_at(at)
                .is_none_or(|part| !part.is_active() && part.state != PartState::Pending);
            if gone || self.execution.steps[at.step()].stage != Stage::Begun {
                continue;
            }
            let failure = Failure::new(Category::Cancelled, "the agent ended without doing it");
            let part = self.execution.name(at);
            self.follow(Event::RetryAbandoned { part, side, failure })?;
        }
        Ok(())
    }

    pub fn hand_over(&mut self, to: Driver, reason: String) -> Recorded {
        if to == Driver::Server {
            self.lose_agents_attempts()?;
        }
        self.note(Event::HandedOver { to, reason })
    }

    /// What the agent began and never finished is lost, like an attempt in a crash.
    fn lose_agents_attempts(&mut self) -> Recorded {
        for at in self.execution.agenda.running.clone() {
            if !self.execution.runs_here(at) {
                let step = self.execution.plan.steps[at.step()].id.clone();
                self.deviate(Deviation::Dangling, &step, "begun, never finished")?;
                self.lose(at)?;
            }
        }
        Ok(())
    }

    fn known(&self, part: &PartId) -> Option<PartAt> {
        self.execution.locate(part).filter(|at| self.execution.part_at(*at).is_some())
    }

    fn undeclared(
        &mut self,
        part: &PartId,
        tool: Option<&ToolName>,
        parameters: Option<Arc<Value>>,
    ) -> Recorded {
        let description = match tool {
            Some(tool) => format!("{part}: called {tool}"),
            None => part.to_string(),
        };
        let details = parameters.map(Payload::Present);
        self.note(Event::ActionRecorded { step: None, kind: "undeclared".into(), description, details })?;
        let known = self.known(part).is_some();
        let why = if known { "begun after the execution was stopped" } else { "the plan has no such step" };
        self.deviate(Deviation::Undeclared, &part.step, why)
    }

    /// Needs that have not come to rest were passed over.
    fn compare_order(&mut self, at: PartAt) -> Recorded {
        let plan = self.execution.plan().clone();
        let id = &plan.steps[at.step()].id;
        let was_passed_over = |draft: &Self, id: &StepId| {
            draft
                .execution
                .deviations
                .iter()
                .any(|(kind, step, _)| *kind == Deviation::Skipped && step.as_ref() == Some(id))
        };
        if was_passed_over(self, id) {
            self.deviate(Deviation::OutOfOrder, id, "done after steps that come after it")?;
        }
        for need in &plan.graph.needs[at.step()] {
            let needed = &plan.steps[need.step].id;
            match self.execution.steps[need.step].stage {
                Stage::Waiting if !was_passed_over(self, needed) => {
                    self.deviate(Deviation::Skipped, needed, &format!("passed over by {id:?}"))?;
                }
                Stage::Begun | Stage::Failing | Stage::Held => {
                    self.deviate(Deviation::OutOfOrder, id, &format!("begun before {needed:?} ended"))?;
                }
                Stage::Waiting | Stage::Completed | Stage::Failed | Stage::Skipped | Stage::Cancelled => {}
            }
        }
        Ok(())
    }

    fn compare_call(&mut self, at: PartAt, planned: &ToolName, tool: Option<&ToolName>) -> Recorded {
        let step = self.execution.plan.steps[at.step()].clone();
        if let Some(tool) = tool.filter(|tool| *tool != planned) {
            let description = format!("called {tool}, the plan says {planned}");
            self.deviate(Deviation::OtherTool, &step.id, &description)?;
        }
        let approved = self.execution.part_at(at).is_some_and(|part| part.approved.is_some());
        if step.approval.is_some() && !approved {
            self.deviate(Deviation::Unapproved, &step.id, "begun without the approval the plan asks for")?;
        }
        Ok(())
    }

    fn deviate(&mut self, kind: Deviation, step: &StepId, description: &str) -> Recorded {
        self.follow(Event::DeviationFound {
            kind,
            step: Some(step.clone()),
            description: description.to_owned(),
        })
    }
}
