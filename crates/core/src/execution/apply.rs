//! The only way state changes: one event at a time, live and in replay alike.

use super::agenda::{ExecutionAgenda, PartPosition};
use super::part::{PartState, StepPart};
use super::step::{StepStage, StepState};
use super::{Execution, ExecutionIdentity, ExecutionPhase, IllegalEvent, SharedPlan, SpentBudget};
use crate::id::{PartId, StepId};
use crate::journal::event::{CallSide, Event, EventRecord, ExecutionEnding, Question, QuestionAnswer, SkipReason};
use crate::journal::payload::EventPayload;
use crate::limits;
use crate::plan::{Driver, PolicyAction};
use crate::time::Timestamp;
use crate::tool::{Safety, ToolFailure};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub(super) type ApplyResult = Result<(), String>;

impl Execution {
    /// The state after the first event of a journal.
    pub fn open(identity: ExecutionIdentity, record: &EventRecord) -> Result<Execution, IllegalEvent> {
        let Event::ExecutionOpened { plan, revision, lineage, driver, inputs } = &record.event else {
            return Err(IllegalEvent::new(&record.event, "a journal begins with execution_opened"));
        };
        let plan = plan.plan.clone().ok_or_else(|| IllegalEvent::new(&record.event, "its plan is missing"))?;
        let steps: Vec<StepState> = (plan.steps.iter().zip(&plan.graph.needs))
            .map(|(step, needs)| StepState::new(count(needs.len()), step.for_each.is_some()))
            .collect();
        let mut execution = Execution {
            identity,
            lineage: lineage.clone(),
            revision: *revision,
            driver: *driver,
            inputs: inputs.clone(),
            context: Map::new(),
            phase: ExecutionPhase::Pending,
            paused: false,
            replanning: false,
            over: None,
            raised: BTreeMap::new(),
            unsettled: steps.len(),
            steps,
            agenda: ExecutionAgenda::default(),
            undo: None,
            drifted: BTreeMap::new(),
            accepted: BTreeMap::new(),
            gave_up: false,
            deviations: Vec::new(),
            spent: SpentBudget::default(),
            entries: 1,
            rests: 0,
            opened_at: record.at,
            started_at: None,
            last_at: record.at,
            ended_at: None,
            stop_reason: String::new(),
            plan: SharedPlan(plan),
        };
        for step in 0..execution.steps.len() {
            execution.offer(step);
        }
        Ok(execution)
    }

    /// Applies one event. An event that cannot follow the present state is an error; it is never repaired.
    pub fn apply(&mut self, record: &EventRecord) -> Result<(), IllegalEvent> {
        self.entries += 1;
        self.last_at = self.last_at.max(record.at);
        self.apply_event(record.at, &record.event).map_err(|why| IllegalEvent::new(&record.event, why))
    }

    fn apply_event(&mut self, at: Timestamp, event: &Event) -> ApplyResult {
        self.may_follow(event)?;
        match event {
            Event::ExecutionOpened { .. }
            | Event::PlanSaved { .. }
            | Event::PayloadsErased { .. }
            | Event::ExecutionsRemoved { .. }
            | Event::LedgerRestored { .. }
            | Event::SettingChanged { .. } => return Err("it never follows in an execution".into()),
            Event::ExecutionStarted {} => {
                self.phase = ExecutionPhase::Forward;
                self.started_at = Some(at);
            }
            Event::FanOutOpened { step, count, items } => {
                let step = self.expect_step(step)?;
                self.expect_list(step, *count, items)?;
                self.withdraw(step, 0);
                let state = &mut self.steps[step];
                state.stage = StepStage::Begun;
                state.items = Some(items.clone());
                state.parts = vec![StepPart::new(); *count as usize];
                state.unsettled = *count;
                self.feed(step);
                self.conclude(step);
            }
            Event::StepsSkipped { steps, because } => {
                self.gave_up |= *because == SkipReason::LeftUndone;
                self.settle_all(steps, StepStage::Skipped, &because.to_string())?;
            }
            Event::PreparationFailed { part: PartId { step, item: None }, failure, .. }
                if self.plan.find(step.as_str()).is_some_and(|step| self.plan.steps[step].for_each.is_some()) =>
            {
                self.fail_unopened(step, failure)?;
            }
            Event::ApprovalRequested { part, .. }
            | Event::ApprovalGranted { part, .. }
            | Event::ApprovalDenied { part, .. }
            | Event::ApprovalExpired { part, .. }
            | Event::ApprovalVoided { part, .. }
            | Event::AttemptAccepted { part, .. }
            | Event::ToolAsked { part, .. }
            | Event::ToolAnswered { part, .. }
            | Event::AttemptLost { part, .. }
            | Event::AttemptFailed { part, .. }
            | Event::PreparationFailed { part, .. }
            | Event::RetryAbandoned { part, .. }
            | Event::ProbeInconclusive { part, .. }
            | Event::DoubtSettled { part, .. }
            | Event::CompensationRecorded { part, .. } => self.change_part(part, at, event)?,
            Event::LateAnswerArrived { part, cost_micros, .. } => {
                self.change_part(part, at, event)?;
                self.spent.cost_micros = self.spent.cost_micros.saturating_add(*cost_micros);
            }
            Event::AttemptStarted { part, side, .. } => {
                self.change_part(part, at, event)?;
                if matches!(side, CallSide::Do | CallSide::Fallback) {
                    self.spent.calls += 1;
                }
            }
            Event::AttemptSucceeded { part, cost_micros, .. } => {
                self.change_part(part, at, event)?;
                self.spent.cost_micros = self.spent.cost_micros.saturating_add(*cost_micros);
            }
            Event::FailureHandled { step: id, action, cancelled, skipped, .. } => {
                let step = self.expect_step(id)?;
                if !self.agenda.failing.remove(&step) {
                    return Err("the step has no failure to handle".into());
                }
                if *action == PolicyAction::ManualDecision {
                    self.steps[step].stage = StepStage::Held;
                    self.agenda.held.insert(step);
                    return Ok(());
                }
                let why = format!("{id} failed");
                self.settle_all(cancelled, StepStage::Cancelled, &why)?;
                self.settle_all(skipped, StepStage::Skipped, &why)?;
                self.settle(step, StepStage::Failed);
                match action {
                    PolicyAction::CancelAll => self.stop_forward(at, false, ExecutionEnding::Failed),
                    PolicyAction::Compensate => self.stop_forward(at, true, ExecutionEnding::Failed),
                    PolicyAction::ManualDecision | PolicyAction::CancelDependent | PolicyAction::ContinueOthers => {}
                }
            }
            Event::QuestionAnswered { about, answer, skipped, .. } => match about {
                Question::Failure(step) => self.answer_failure(at, step, *answer, skipped, event)?,
                Question::Compensation(part) => {
                    let stuck = self.locate(part).is_some_and(|at| self.agenda.stuck.contains(&at));
                    if !stuck || !Question::COMPENSATION_ANSWERS.contains(answer) {
                        return Err(format!("the compensation of {part} has no such question"));
                    }
                    self.change_part(part, at, event)?;
                }
                Question::Limit(limit) => {
                    if self.over != Some(*limit) {
                        return Err("this limit was not reached".into());
                    }
                    match answer {
                        QuestionAnswer::Continue => {
                            *self.raised.entry(*limit).or_default() += 1;
                            self.over = None;
                        }
                        QuestionAnswer::Stop => self.stop_forward(at, false, ExecutionEnding::Failed),
                        QuestionAnswer::Compensate => self.stop_forward(at, true, ExecutionEnding::Failed),
                        QuestionAnswer::Replan => self.replanning = true,
                        QuestionAnswer::Retry | QuestionAnswer::Skip | QuestionAnswer::Resolve => {
                            return Err("a limit does not accept this answer".into());
                        }
                    }
                }
            },
            Event::LimitReached { limit, action } => match action {
                PolicyAction::ManualDecision => self.over = Some(*limit),
                PolicyAction::CancelAll | PolicyAction::CancelDependent | PolicyAction::ContinueOthers => {
                    self.stop_forward(at, false, ExecutionEnding::Failed);
                }
                PolicyAction::Compensate => self.stop_forward(at, true, ExecutionEnding::Failed),
            },
            Event::Paused { .. } => self.paused = true,
            Event::Resumed { .. } => self.paused = false,
            Event::CancelRequested { undo, reason } => {
                self.stop_reason = reason.clone();
                self.stop_forward(at, *undo, ExecutionEnding::Cancelled);
            }
            Event::Killed { reason } => {
                self.stop_reason = reason.clone();
                self.stop_forward(at, false, ExecutionEnding::Cancelled);
                self.abandon();
                self.phase = ExecutionPhase::Killed;
            }
            Event::CompensationStarted { parts, whole, .. } => self.start_undo(parts, *whole)?,
            Event::ReplanBegun { .. } => self.replanning = true,
            Event::ReplanAbandoned { .. } => self.replanning = false,
            Event::Replanned { plan, revision, .. } => {
                let plan = plan.plan.clone().ok_or("its plan is missing")?;
                if *revision != self.revision + 1 {
                    return Err(format!("the next revision is {}", self.revision + 1));
                }
                self.adopt(plan, *revision)?;
            }
            Event::HandedOver { to, .. } => self.driver = *to,
            Event::ToolDrifted { tool, found, .. } => {
                self.drifted.insert(tool.clone(), *found);
            }
            Event::ToolAccepted { tool, definition, .. } => {
                self.drifted.remove(tool);
                self.accepted.insert(tool.clone(), *definition);
            }
            Event::DecisionRecorded { .. } | Event::ActionRecorded { .. } => {}
            Event::ContextSaved { values } => {
                if let Some(Value::Object(values)) = values.value().map(|value| &**value) {
                    self.context.extend(values.clone());
                }
            }
            Event::DeviationFound { kind, step, description } => {
                self.deviations.push((*kind, step.clone(), description.clone()));
            }
            Event::ExecutionEnded { outcome, .. } => {
                self.phase = ExecutionPhase::Ended { outcome: *outcome };
                self.ended_at = Some(at);
                self.undo = None;
                self.paused = false;
                self.replanning = false;
                self.over = None;
            }
        }
        Ok(())
    }

    pub(super) fn expect_step(&self, id: &StepId) -> Result<usize, String> {
        self.plan.find(id.as_str()).ok_or_else(|| format!("step {id:?} is not in the plan"))
    }

    fn expect_list(&self, step: usize, count: u32, items: &EventPayload) -> ApplyResult {
        let fan_out = self.plan.steps[step].for_each.as_ref();
        let Some(fan_out) = fan_out.filter(|_| self.steps[step].stage == StepStage::Waiting) else {
            return Err("the step has no list to open".into());
        };
        if count > fan_out.max_items.min(limits::FAN_OUT_MAX) {
            return Err(format!("the list has at most {} items", fan_out.max_items));
        }
        match items.value().map(|items| items.as_array().map(Vec::len)) {
            Some(length) if length != Some(count as usize) => Err("the list has another length than recorded".into()),
            Some(_) | None => Ok(()),
        }
    }

    /// A fan-out failed before its list was known.
    fn fail_unopened(&mut self, id: &StepId, failure: &ToolFailure) -> ApplyResult {
        let step = self.expect_step(id)?;
        if self.steps[step].stage != StepStage::Waiting {
            return Err(format!("step {id:?} has begun"));
        }
        self.withdraw(step, 0);
        self.steps[step].failure = Some(failure.clone());
        self.steps[step].stage = StepStage::Failing;
        self.agenda.failing.insert(step);
        Ok(())
    }

    /// Applies an event to one part, and updates everything derived from the part.
    pub(super) fn change_part(&mut self, id: &PartId, at: Timestamp, event: &Event) -> ApplyResult {
        let place = self.locate(id).ok_or_else(|| format!("part {id} is not in the plan"))?;
        let harmless = self.is_harmless(place, event);
        let mut part = self.part_at(place).ok_or_else(|| format!("part {id} is not there yet"))?.clone();
        part.apply(at, event, harmless).map_err(|why| format!("part {id} {why}"))?;
        self.replace(place, part);
        Ok(())
    }

    /// Whether the call of the event is read-only.
    fn is_harmless(&self, at: PartPosition, event: &Event) -> bool {
        let side = match event {
            Event::AttemptSucceeded { side, .. }
            | Event::AttemptFailed { side, .. }
            | Event::AttemptLost { side, .. }
            | Event::DoubtSettled { side, .. } => *side,
            _ => CallSide::Do,
        };
        self.is_read(at.step(), side)
    }

    /// Whether this side of a step only reads.
    pub(super) fn is_read(&self, step: usize, side: CallSide) -> bool {
        let step = &self.plan.steps[step];
        match side {
            CallSide::Do => step.call.safety == Safety::ReadOnly,
            CallSide::Fallback => step.fallback.as_ref().is_some_and(|other| other.call.safety == Safety::ReadOnly),
            CallSide::Undo => false,
            CallSide::Probe => true,
        }
    }

    /// Replaces a part with its new state and updates everything derived from it.
    pub(super) fn replace(&mut self, at: PartPosition, mut new: StepPart) {
        let timeout_total = self.plan.steps[at.step()].timeout_total;
        let state = &mut self.steps[at.step()];
        let old = &state.parts[at.item()];
        let (was_pending, was_resting) = (old.state == PartState::Pending, is_resting(&old.state));
        let (is_pending, rests) = (new.state == PartState::Pending, is_resting(&new.state));
        let (was_active, is_active) = (old.is_active(), new.is_active());
        let began_undo = !old.is_undoing() && new.is_undoing();
        let failed = matches!(new.state, PartState::Failed { .. });
        let undone = match &new.state {
            PartState::Compensated { .. } | PartState::CompensationFailed { accepted: true, .. } => true,
            PartState::CompensationFailed { accepted: false, .. } => {
                // It was tried and failed; it stays open until its question is answered.
                if let Some(undo) = &mut self.undo {
                    undo.begun(at);
                }
                false
            }
            _ => false,
        };
        if rests && !was_resting {
            self.rests += 1;
            new.rest = self.rests;
        }
        self.agenda.delist(at, old, timeout_total);
        self.agenda.enlist(at, &new, timeout_total);
        state.parts[at.item()] = new;
        match (was_active, is_active) {
            (false, true) => state.active += 1,
            (true, false) => state.active = state.active.saturating_sub(1),
            (true, true) | (false, false) => {}
        }
        if state.stage == StepStage::Waiting && !is_pending {
            state.stage = StepStage::Begun;
        }
        if was_pending && !is_pending && state.halted {
            // The item was held back and not counted as unsettled; from here on it is.
            state.unsettled += 1;
        }
        if was_pending && !is_pending {
            self.withdraw(at.step(), at.item());
        }
        if is_pending && !was_pending {
            if self.steps[at.step()].halted {
                self.hold_back(at);
                self.conclude(at.step());
            } else {
                self.enqueue(at);
            }
        }
        if let Some(undo) = &mut self.undo {
            if began_undo {
                undo.begun(at);
            }
            if undone {
                undo.closed(&self.plan.0.graph, at);
            }
        }
        if rests && !was_resting && self.steps[at.step()].stage == StepStage::Begun {
            let state = &mut self.steps[at.step()];
            state.unsettled = state.unsettled.saturating_sub(1);
            if failed {
                self.halt_unless_others_go_on(at.step());
            }
            self.feed(at.step());
            self.conclude(at.step());
        }
    }

    /// Whether the server makes the part's call, so that a crash loses it.
    pub(crate) fn runs_here(&self, at: PartPosition) -> bool {
        let running = self.steps[at.step()].parts[at.item()].running();
        running.is_some_and(|attempt| attempt.by == Driver::Server)
    }
}

/// Whether a part is settled going forward; undoing starts from these states.
fn is_resting(state: &PartState) -> bool {
    match state {
        PartState::Completed { .. } | PartState::Failed { .. } | PartState::Cancelled => true,
        PartState::Pending
        | PartState::Asking { .. }
        | PartState::Approved { .. }
        | PartState::Running(_)
        | PartState::BackingOff { .. }
        | PartState::InDoubt { .. }
        | PartState::Compensated { .. }
        | PartState::CompensationFailed { .. } => false,
    }
}

pub(super) fn count(n: usize) -> u32 {
    u32::try_from(n).expect("plans and fan-outs are far smaller")
}
