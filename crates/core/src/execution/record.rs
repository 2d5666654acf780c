//! Records the actions that an agent reports, and their deviations from the plan.

use super::agenda::PartPosition;
use super::decide::{DecisionDraft, RecordResult};
use super::part::{Attempt, PartState};
use super::step::StepStage;
use super::{Execution, ExecutionPhase};
use crate::hash::Hash;
use crate::id::{PartId, StepId, ToolName};
use crate::journal::event::{
    AttemptFollowUp, CallSide, Deviation, Event, LateAnswer, Question, QuestionAnswer, SkipReason,
};
use crate::journal::payload::EventPayload;
use crate::plan::Driver;
use crate::tool::{CallOutcome, FailureCategory, ToolFailure};
use serde_json::Value;
use std::sync::Arc;

impl DecisionDraft<'_> {
    /// The agent started a step. A deviation from the plan is recorded, never refused: it happened.
    pub fn record_started(
        &mut self,
        part: PartId,
        tool: Option<ToolName>,
        parameters: Option<Arc<Value>>,
    ) -> RecordResult {
        if self.execution.phase == ExecutionPhase::Pending {
            self.note(Event::ExecutionStarted {})?;
        }
        let Some(at) = self.known(&part).filter(|_| self.execution.phase == ExecutionPhase::Forward) else {
            return self.undeclared(&part, tool.as_ref(), parameters);
        };
        self.decide_by_doing(at)?;
        let state = self.execution.part_at(at).map(|part| part.state.clone());
        let side = match state {
            Some(PartState::Pending) => CallSide::Do,
            Some(PartState::Approved { side, .. } | PartState::Asking { side, .. }) => side,
            Some(PartState::BackingOff { side: side @ (CallSide::Do | CallSide::Fallback), .. }) => side,
            Some(PartState::Cancelled) | None => {
                self.deviate(Deviation::Undeclared, &part.step, "done although it was cancelled")?;
                return self.compare_word(at, CallSide::Do, tool.as_ref(), parameters.as_deref());
            }
            Some(state) => {
                let side = self.execution.last_side(at);
                self.deviate(Deviation::Duplicate, &part.step, "begun again")?;
                // Said twice of the same attempt, nothing is new.
                let is_under_way = matches!(state, PartState::Running(_)) && tool.is_none() && parameters.is_none();
                return match is_under_way {
                    true => Ok(()),
                    false => self.compare_word(at, side, tool.as_ref(), parameters.as_deref()),
                };
            }
        };
        if self.execution.steps[at.step()].stage.is_settled() {
            self.deviate(Deviation::Undeclared, &part.step, "done although it was skipped or cancelled")?;
            return self.compare_word(at, side, tool.as_ref(), parameters.as_deref());
        }
        self.compare_order(at)?;
        let Some(planned) = self.execution.call_of(at, side).map(|call| call.tool.clone()) else {
            return Ok(());
        };
        self.compare_call(at, &planned, tool.as_ref())?;
        self.compare_word(at, side, tool.as_ref(), parameters.as_deref())?;
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
            parameters: EventPayload::Present(parameters.unwrap_or_else(|| Arc::new(Value::Null))),
            deadline: self.execution.agent_deadline(at, side, self.now),
        })
    }

    /// An agent that continues what failed and waits for a decision has decided to retry it. The other items of a
    /// fan-out decide nothing about the one that failed.
    fn decide_by_doing(&mut self, at: PartPosition) -> RecordResult {
        let part = self.execution.name(at);
        let decides = part.item.is_none() || self.execution.is_failed_item(&part);
        if self.execution.steps[at.step()].stage != StepStage::Held || !decides {
            return Ok(());
        }
        self.note(Event::QuestionAnswered {
            about: if part.item.is_some() { Question::Item(part) } else { Question::Failure(part.step) },
            answer: QuestionAnswer::Retry,
            reason: "the agent went on with it".into(),
            result: None,
            evidence: None,
            skipped: Vec::new(),
        })
    }

    pub fn record_finished(&mut self, part: PartId, result: Arc<Value>) -> RecordResult {
        if let Some((side, attempt)) = self.doubted(&part) {
            let answer = LateAnswer::Done(EventPayload::Present(result));
            return self.note(Event::LateAnswerArrived { part, side, attempt, answer, cost_micros: 0, effect: None });
        }
        if let Some((at, side, attempt)) = self.execution.late_record(&part) {
            return self.late(at, side, attempt, CallOutcome::Done { result, cost_micros: 0 });
        }
        if let Some((side, attempt)) = self.finished(&part) {
            let (step, answer) = (part.step.clone(), LateAnswer::Done(EventPayload::Present(result)));
            self.note(Event::LateAnswerArrived { part, side, attempt, answer, cost_micros: 0, effect: None })?;
            return self.deviate(Deviation::Duplicate, &step, "finished again");
        }
        let Some((at, attempt)) = self.begun(&part)? else { return Ok(()) };
        let part = self.execution.name(at);
        let (side, attempt, result) = (attempt.side, attempt.number, EventPayload::Present(result));
        if self.execution.part_at(at).is_some_and(|part| part.is_defied) {
            return self.doubt_claim(part, side, attempt, result);
        }
        self.note(Event::AttemptSucceeded { part, side, attempt, result, cost_micros: 0 })
    }

    /// What an agent says of a call that it was not allowed to make does not complete its step: a person finds out
    /// whether it happened. What it said is part of their question.
    fn doubt_claim(&mut self, part: PartId, side: CallSide, attempt: u32, result: EventPayload) -> RecordResult {
        let message = "only the agent says that it is done, and it was not allowed to make the call";
        let failure = ToolFailure::new(FailureCategory::Unauthorized, message);
        let then = AttemptFollowUp::InDoubt;
        self.follow(Event::AttemptFailed { part: part.clone(), side, attempt, failure, maybe: true, then })?;
        let answer = LateAnswer::Done(result);
        self.note(Event::LateAnswerArrived { part, side, attempt, answer, cost_micros: 0, effect: None })
    }

    pub fn record_failed(&mut self, part: PartId, failure: ToolFailure, maybe: bool) -> RecordResult {
        if let Some((side, attempt)) = self.doubted(&part) {
            let answer = if maybe { LateAnswer::Maybe(failure) } else { LateAnswer::NotDone(failure) };
            return self.note(Event::LateAnswerArrived { part, side, attempt, answer, cost_micros: 0, effect: None });
        }
        match self.begun(&part)? {
            Some((at, attempt)) => self.close(at, attempt.side, attempt.number, failure, maybe),
            None => Ok(()),
        }
    }

    /// The agent's own attempt, if it is in doubt. What the agent says about it now is on record for the person who
    /// settles the doubt, and settles nothing.
    fn doubted(&self, part: &PartId) -> Option<(CallSide, u32)> {
        let at = self.execution.locate(part)?;
        let part = self.execution.part_at(at).filter(|part| part.sent_by == Some(Driver::Agent))?;
        match part.state {
            PartState::InDoubt { side: side @ (CallSide::Do | CallSide::Fallback), attempt, .. } => {
                Some((side, attempt))
            }
            _ => None,
        }
    }

    /// The agent's own attempt, if it has finished already. The result of a second report is kept.
    fn finished(&self, part: &PartId) -> Option<(CallSide, u32)> {
        let part = self.execution.part(part).filter(|part| part.sent_by == Some(Driver::Agent))?;
        let side = part.sent.as_ref().map(|(side, _)| *side)?;
        matches!(part.state, PartState::Completed { by_hand: false }).then(|| (side, part.attempts_of(side)))
    }

    /// The attempt the agent reports about; one without a recorded start is started now.
    fn begun(&mut self, part: &PartId) -> Result<Option<(PartPosition, Attempt)>, super::IllegalEvent> {
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
        details: Option<EventPayload>,
    ) -> RecordResult {
        let unknown = step.as_ref().is_some_and(|step| self.execution.plan.find(step.as_str()).is_none());
        self.note(Event::ActionRecorded { step: step.clone(), kind, description, details })?;
        match step.filter(|_| unknown) {
            Some(step) => self.deviate(Deviation::Undeclared, &step, "the plan has no such step"),
            None => Ok(()),
        }
    }

    /// The agent has ended: the steps it left out are recorded.
    pub fn record_end(&mut self, reason: String) -> RecordResult {
        self.note(Event::DecisionRecorded { step: None, decision: "end".into(), reason, details: None })?;
        self.lose_agents_attempts()?;
        self.abandon_begun()?;
        let waiting: Vec<usize> = (0..self.execution.steps.len())
            .filter(|step| self.execution.steps[*step].stage == StepStage::Waiting)
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

    /// Fails the parts that were started and will not continue: items, retries, calls to be approved.
    fn abandon_begun(&mut self) -> RecordResult {
        let begun: Vec<(PartPosition, CallSide)> = (0..self.execution.steps.len())
            .filter(|step| self.execution.steps[*step].stage == StepStage::Begun)
            .flat_map(|step| (0..self.execution.steps[step].parts.len()).map(move |item| PartPosition::new(step, item)))
            .filter_map(|at| match self.execution.part_at(at)?.state {
                PartState::Pending if !self.execution.steps[at.step()].halted => Some((at, CallSide::Do)),
                PartState::Asking { side, .. } | PartState::Approved { side, .. } => Some((at, side)),
                PartState::BackingOff { side: side @ (CallSide::Do | CallSide::Fallback), .. } => Some((at, side)),
                _ => None,
            })
            .collect();
        for (at, side) in begun {
            let gone =
                self.execution.part_at(at).is_none_or(|part| !part.is_active() && part.state != PartState::Pending);
            if gone || self.execution.steps[at.step()].stage != StepStage::Begun {
                continue;
            }
            let failure = ToolFailure::new(FailureCategory::Cancelled, "the agent ended without doing it");
            let part = self.execution.name(at);
            self.follow(Event::RetryAbandoned { part, side, failure })?;
        }
        Ok(())
    }

    pub fn hand_over(&mut self, to: Driver, reason: String) -> RecordResult {
        // From an agent that is silent, to Rutter or to another agent.
        if self.execution.driver == Driver::Agent {
            self.lose_agents_attempts()?;
        }
        self.note(Event::HandedOver { to, reason })
    }

    /// Attempts that the agent started and never finished are lost, as in a crash.
    pub(super) fn lose_agents_attempts(&mut self) -> RecordResult {
        for at in self.execution.agenda.running.clone() {
            if !self.execution.runs_here(at) {
                let step = self.execution.plan.steps[at.step()].id.clone();
                self.deviate(Deviation::Dangling, &step, "begun, never finished")?;
                self.lose(at)?;
            }
        }
        Ok(())
    }

    fn known(&self, part: &PartId) -> Option<PartPosition> {
        self.execution.locate(part).filter(|at| self.execution.part_at(*at).is_some())
    }

    fn undeclared(&mut self, part: &PartId, tool: Option<&ToolName>, parameters: Option<Arc<Value>>) -> RecordResult {
        let description = match tool {
            Some(tool) => format!("{part}: called {tool}"),
            None => part.to_string(),
        };
        let details = parameters.clone().map(EventPayload::Present);
        self.note(Event::ActionRecorded { step: None, kind: "undeclared".into(), description, details })?;
        let known = self.known(part);
        let is_step = self.execution.plan.find(part.step.as_str()).is_some();
        let why = match (known.is_some(), is_step, part.item) {
            (true, ..) => "begun after the execution was stopped".to_owned(),
            (false, true, Some(_)) => format!("the step has no item {part}"),
            (false, true, None) => "the step has items, and none was named".to_owned(),
            (false, false, _) => "the plan has no such step".to_owned(),
        };
        self.deviate(Deviation::Undeclared, &part.step, &why)?;
        match (known, tool) {
            (Some(at), _) => self.compare_word(at, CallSide::Do, tool, parameters.as_deref()),
            (None, Some(tool)) => self.compare_undeclared(&part.step, tool, parameters.as_deref()),
            (None, None) => Ok(()),
        }
    }

    /// Records a deviation for every dependency that is not settled.
    fn compare_order(&mut self, at: PartPosition) -> RecordResult {
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
                StepStage::Waiting if !was_passed_over(self, needed) => {
                    self.deviate(Deviation::Skipped, needed, &format!("passed over by {id:?}"))?;
                }
                StepStage::Begun | StepStage::Failing | StepStage::Held => {
                    self.deviate(Deviation::OutOfOrder, id, &format!("begun before {needed:?} ended"))?;
                }
                StepStage::Waiting
                | StepStage::Completed
                | StepStage::Failed
                | StepStage::Skipped
                | StepStage::Cancelled => {}
            }
        }
        Ok(())
    }

    fn compare_call(&mut self, at: PartPosition, planned: &ToolName, tool: Option<&ToolName>) -> RecordResult {
        if let Some(tool) = tool.filter(|tool| *tool != planned) {
            let step = self.execution.plan.steps[at.step()].id.clone();
            let description = format!("called {tool}, the plan says {planned}");
            self.deviate(Deviation::OtherTool, &step, &description)?;
        }
        Ok(())
    }

    pub(super) fn deviate(&mut self, kind: Deviation, step: &StepId, description: &str) -> RecordResult {
        self.follow(Event::DeviationFound { kind, step: Some(step.clone()), description: description.to_owned() })
    }
}

impl Execution {
    /// Which call of a part was made last: its own, or its fallback.
    pub(super) fn last_side(&self, at: PartPosition) -> CallSide {
        let side = self.part_at(at).and_then(|part| part.sent.as_ref()).map(|(side, _)| *side);
        side.filter(|side| *side == CallSide::Fallback).unwrap_or(CallSide::Do)
    }

    /// The attempt that an agent reports about late: it was the agent's, and has been settled otherwise since, while the
    /// agent does not drive any more, while the execution stops, or after the end.
    pub(super) fn late_record(&self, id: &PartId) -> Option<(PartPosition, CallSide, u32)> {
        let starts_none = matches!(self.phase, ExecutionPhase::Draining { .. });
        if self.admit_agent_record().is_ok() && !starts_none {
            return None;
        }
        let at = self.locate(id)?;
        let part = self.part_at(at)?;
        let mut by_agent = part.calls.iter().rev().filter(|call| call.by == Driver::Agent);
        let call = by_agent.find(|call| call.side != CallSide::Undo)?;
        let is_settled_so = part.is_done(call.side, call.attempt) || self.is_under_way(id, call.side, call.attempt);
        (!is_settled_so).then_some((at, call.side, call.attempt))
    }
}
