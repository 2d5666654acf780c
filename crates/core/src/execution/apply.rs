//! The only way state changes: one event at a time, live and in replay alike.

use super::agenda::{Agenda, PartAt};
use super::part::{Part, PartState};
use super::step::{Stage, StepState};
use super::{Execution, Identity, IllegalEvent, Phase, SharedPlan, Spent};
use crate::id::{PartId, StepId};
use crate::journal::event::{Answer, EndedAs, Event, Question, Record, Side, SkipReason};
use crate::journal::payload::Payload;
use crate::limits;
use crate::plan::{Driver, PolicyAction};
use crate::time::Timestamp;
use crate::tool::{Failure, Safety};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub(super) type Applied = Result<(), String>;

impl Execution {
    /// The state after the first event of a journal.
    pub fn open(identity: Identity, record: &Record) -> Result<Execution, IllegalEvent> {
        let Event::ExecutionOpened { plan, revision, lineage, driver, inputs } = &record.event else {
            return Err(IllegalEvent::new(&record.event, "a journal begins with execution_opened"));
        };
        let plan =
            plan.plan.clone().ok_or_else(|| IllegalEvent::new(&record.event, "its plan is not at hand"))?;
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
            phase: Phase::Pending,
            paused: false,
            replanning: false,
            over: None,
            raised: BTreeMap::new(),
            unsettled: steps.len(),
            steps,
            agenda: Agenda::default(),
            undo: None,
            drifted: BTreeMap::new(),
            accepted: BTreeMap::new(),
            gave_up: false,
            deviations: Vec::new(),
            spent: Spent::default(),
            entries: 1,
            rests: 0,
            opened_at: record.at,
            started_at: None,
            last_at: record.at,
            stop_reason: String::new(),
            plan: SharedPlan(plan),
        };
        for step in 0..execution.steps.len() {
            execution.offer(step);
        }
        Ok(execution)
    }

    /// The state after one more event. An event that cannot follow is an error, never a guess.
    pub fn apply(&mut self, record: &Record) -> Result<(), IllegalEvent> {
        self.entries += 1;
        self.last_at = self.last_at.max(record.at);
        self.apply_event(record.at, &record.event).map_err(|why| IllegalEvent::new(&record.event, why))
    }

    fn apply_event(&mut self, at: Timestamp, event: &Event) -> Applied {
        self.may_follow(event)?;
        match event {
            Event::ExecutionOpened { .. }
            | Event::PlanSaved { .. }
            | Event::PayloadsErased { .. }
            | Event::ExecutionsRemoved { .. }
            | Event::LedgerRestored { .. }
            | Event::SettingChanged { .. } => return Err("it never follows in an execution".into()),
            Event::ExecutionStarted {} => {
                self.phase = Phase::Forward;
                self.started_at = Some(at);
            }
            Event::FanOutOpened { step, count, items } => {
                let step = self.expect_step(step)?;
                self.expect_list(step, *count, items)?;
                self.withdraw(step, 0);
                let state = &mut self.steps[step];
                state.stage = Stage::Begun;
                state.items = Some(items.clone());
                state.parts = vec![Part::new(); *count as usize];
                state.unsettled = *count;
                self.feed(step);
                self.conclude(step);
            }
            Event::StepsSkipped { steps, because } => {
                self.gave_up |= *because == SkipReason::LeftUndone;
                self.settle_all(steps, Stage::Skipped)?;
            }
            Event::PreparationFailed { part: PartId { step, item: None }, failure, .. }
                if self
                    .plan
                    .find(step.as_str())
                    .is_some_and(|step| self.plan.steps[step].for_each.is_some()) =>
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
                if matches!(side, Side::Do | Side::Fallback) {
                    self.spent.calls += 1;
                }
            }
            Event::AttemptSucceeded { part, cost_micros, .. } => {
                self.change_part(part, at, event)?;
                self.spent.cost_micros = self.spent.cost_micros.saturating_add(*cost_micros);
            }
            Event::FailureHandled { step, action, cancelled, skipped, .. } => {
                let step = self.expect_step(step)?;
                if !self.agenda.failing.remove(&step) {
                    return Err("the step has no failure to handle".into());
                }
                if *action == PolicyAction::ManualDecision {
                    self.steps[step].stage = Stage::Held;
                    self.agenda.held.insert(step);
                    return Ok(());
                }
                self.settle_all(cancelled, Stage::Cancelled)?;
                self.settle_all(skipped, Stage::Skipped)?;
                self.settle(step, Stage::Failed);
                match action {
                    PolicyAction::CancelAll => self.stop_forward(at, false, EndedAs::Failed),
                    PolicyAction::Compensate => self.stop_forward(at, true, EndedAs::Failed),
                    PolicyAction::ManualDecision
                    | PolicyAction::CancelDependent
                    | PolicyAction::ContinueOthers => {}
                }
            }
            Event::QuestionAnswered { about, answer, skipped, .. } => match about {
                Question::Failure(step) => self.answer_failure(at, step, *answer, skipped, event)?,
                Question::Compensation(part) => {
                    let stuck = self.locate(part).is_some_and(|at| self.agenda.stuck.contains(&at));
                    if !stuck || !Question::COMPENSATION_ANSWERS.contains(answer) {
                        return Err(format!("the undoing of {part} asks nothing of this kind"));
                    }
                    self.change_part(part, at, event)?;
                }
                Question::Limit(limit) => {
                    if self.over != Some(*limit) {
                        return Err("this limit was not reached".into());
                    }
                    match answer {
                        Answer::Continue => {
                            *self.raised.entry(*limit).or_default() += 1;
                            self.over = None;
                        }
                        Answer::Stop => self.stop_forward(at, false, EndedAs::Failed),
                        Answer::Compensate => self.stop_forward(at, true, EndedAs::Failed),
                        Answer::Replan => self.replanning = true,
                        Answer::Retry | Answer::Skip | Answer::Resolve => {
                            return Err("a limit is not answered in this way".into());
                        }
                    }
                }
            },
            Event::LimitReached { limit, action } => match action {
                PolicyAction::ManualDecision => self.over = Some(*limit),
                PolicyAction::CancelAll | PolicyAction::CancelDependent | PolicyAction::ContinueOthers => {
                    self.stop_forward(at, false, EndedAs::Failed);
                }
                PolicyAction::Compensate => self.stop_forward(at, true, EndedAs::Failed),
            },
            Event::Paused { .. } => self.paused = true,
            Event::Resumed { .. } => self.paused = false,
            Event::CancelRequested { undo, reason } => {
                self.stop_reason = reason.clone();
                self.stop_forward(at, *undo, EndedAs::Cancelled);
            }
            Event::Killed { reason } => {
                self.stop_reason = reason.clone();
                self.stop_forward(at, false, EndedAs::Cancelled);
                self.abandon();
                self.phase = Phase::Killed;
            }
            Event::CompensationStarted { parts, whole, .. } => self.start_undo(parts, *whole)?,
            Event::ReplanBegun { .. } => self.replanning = true,
            Event::ReplanAbandoned { .. } => self.replanning = false,
            Event::Replanned { plan, revision, .. } => {
                let plan = plan.plan.clone().ok_or("its plan is not at hand")?;
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
                self.phase = Phase::Ended { outcome: *outcome };
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

    fn expect_list(&self, step: usize, count: u32, items: &Payload) -> Applied {
        let fan_out = self.plan.steps[step].for_each.as_ref();
        let Some(fan_out) = fan_out.filter(|_| self.steps[step].stage == Stage::Waiting) else {
            return Err("the step has no list to open".into());
        };
        if count > fan_out.max_items.min(limits::FAN_OUT_MAX) {
            return Err(format!("the list has at most {} items", fan_out.max_items));
        }
        match items.value().map(|items| items.as_array().map(Vec::len)) {
            Some(length) if length != Some(count as usize) => {
                Err("the list is not as long as it says".into())
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A fan-out failed before its list was known.
    fn fail_unopened(&mut self, id: &StepId, failure: &Failure) -> Applied {
        let step = self.expect_step(id)?;
        if self.steps[step].stage != Stage::Waiting {
            return Err(format!("step {id:?} has begun"));
        }
        self.withdraw(step, 0);
        self.steps[step].failure = Some(failure.clone());
        self.steps[step].stage = Stage::Failing;
        self.agenda.failing.insert(step);
        Ok(())
    }

    /// Lets an event change one part, and everything that is derived from the part.
    pub(super) fn change_part(&mut self, id: &PartId, at: Timestamp, event: &Event) -> Applied {
        let place = self.locate(id).ok_or_else(|| format!("part {id} is not in the plan"))?;
        let harmless = self.is_harmless(place, event);
        let mut part = self.part_at(place).ok_or_else(|| format!("part {id} is not there yet"))?.clone();
        part.apply(at, event, harmless).map_err(|why| format!("part {id} {why}"))?;
        self.replace(place, part);
        Ok(())
    }

    /// Whether the call that the event is about changes nothing in the world.
    fn is_harmless(&self, at: PartAt, event: &Event) -> bool {
        let side = match event {
            Event::AttemptSucceeded { side, .. }
            | Event::AttemptFailed { side, .. }
            | Event::AttemptLost { side, .. }
            | Event::DoubtSettled { side, .. } => *side,
            _ => Side::Do,
        };
        self.is_read(at.step(), side)
    }

    /// Whether this side of a step only reads.
    pub(super) fn is_read(&self, step: usize, side: Side) -> bool {
        let step = &self.plan.steps[step];
        match side {
            Side::Do => step.call.safety == Safety::ReadOnly,
            Side::Fallback => {
                step.fallback.as_ref().is_some_and(|other| other.call.safety == Safety::ReadOnly)
            }
            Side::Undo => false,
            Side::Probe => true,
        }
    }

    /// Puts a part into its new state and everything derived from it along.
    pub(super) fn replace(&mut self, at: PartAt, mut new: Part) {
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
                // Its turn has come and gone; it stays open until somebody answers.
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
        if state.stage == Stage::Waiting && !is_pending {
            state.stage = Stage::Begun;
        }
        if was_pending && !is_pending && state.halted {
            // It was held back and not waited for; now it is.
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
        if rests && !was_resting && self.steps[at.step()].stage == Stage::Begun {
            let state = &mut self.steps[at.step()];
            state.unsettled = state.unsettled.saturating_sub(1);
            if failed {
                self.halt_unless_others_go_on(at.step());
            }
            self.feed(at.step());
            self.conclude(at.step());
        }
    }

    /// Whether a part is run by the server, and so lost when the server is.
    pub(crate) fn runs_here(&self, at: PartAt) -> bool {
        let running = self.steps[at.step()].parts[at.item()].running();
        running.is_some_and(|attempt| attempt.by == Driver::Server)
    }
}

/// Come to rest going forward; undoing starts from there.
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
