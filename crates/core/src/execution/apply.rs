//! The only way state changes: one event at a time, live and in replay alike.

use super::agenda::{ExecutionAgenda, PartPosition};
use super::agent_lease::is_driving_agent;
use super::gates::ApprovalGates;
use super::hold::ExecutionHold;
use super::part::StepPart;
use super::step::{SkipCause, StepStage, StepState};
use super::weaken::{PendingReplan, guards};
use super::{Execution, ExecutionIdentity, ExecutionPhase, IllegalEvent, SharedPlan, SpentBudget};
use crate::id::{PartId, StepId};
use crate::journal::event::{
    AttemptFollowUp, CallSide, Event, EventRecord, ExecutionEnding, LateEffect, Question, QuestionAnswer, SkipReason,
};
use crate::journal::payload::EventPayload;
use crate::limits;
use crate::plan::{Driver, PolicyAction};
use crate::time::Timestamp;
use crate::tool::Safety;
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
            replans: 0,
            driver: *driver,
            inputs: inputs.clone(),
            context: Map::new(),
            phase: ExecutionPhase::Pending,
            paused: false,
            held: None,
            agent: Some(record.actor.clone())
                .filter(|opener| *driver == Driver::Agent && is_driving_agent(None, opener)),
            agent_seen_at: Some(record.at),
            silent_since: None,
            replanning: false,
            proposal: None,
            guarded: guards(&plan),
            gates: ApprovalGates::of(&plan),
            rejections: 0,
            principals: vec![record.actor.clone()],
            denied: BTreeMap::new(),
            defied: BTreeMap::new(),
            over: None,
            raised: BTreeMap::new(),
            time_added: BTreeMap::new(),
            unsettled: steps.len(),
            steps,
            agenda: ExecutionAgenda::default(),
            undo: None,
            drifted: BTreeMap::new(),
            accepted: BTreeMap::new(),
            gave_up: false,
            ended_by_person: false,
            deviations: Vec::new(),
            spent: SpentBudget::default(),
            entries: 1,
            rests: 0,
            opened_at: record.at,
            started_at: None,
            reopened_at: None,
            last_at: record.at,
            ended_at: None,
            stop_reason: String::new(),
            stop_limit: None,
            undo_reason: String::new(),
            dropped: BTreeMap::new(),
            plan: SharedPlan(plan),
        };
        for step in 0..execution.steps.len() {
            execution.offer(step);
        }
        Ok(execution)
    }

    /// Applies one event. An event that cannot follow the present state is an error; it is never repaired.
    pub fn apply(&mut self, record: &EventRecord) -> Result<(), IllegalEvent> {
        let was_its_turn = self.agent_lease_end().is_some();
        self.entries += 1;
        self.last_at = self.last_at.max(record.at);
        self.remember_principal(record);
        self.remember_gates(record);
        self.apply_event(record.at, &record.event).map_err(|why| IllegalEvent::new(&record.event, why))?;
        self.remember_word(record);
        self.remember_who_ended(record);
        self.notice_actor(record, was_its_turn);
        Ok(())
    }

    fn apply_event(&mut self, at: Timestamp, event: &Event) -> ApplyResult {
        self.may_follow(event)?;
        match event {
            Event::ExecutionOpened { .. }
            | Event::PlanSaved { .. }
            | Event::PayloadsErased { .. }
            | Event::ExecutionsRemoved { .. }
            | Event::LedgerRestored { .. }
            | Event::SettingChanged { .. }
            | Event::ActRefused { .. } => return Err("it never follows in an execution".into()),
            Event::ExecutionStarted {} => {
                self.phase = ExecutionPhase::Forward;
                self.started_at = Some(at);
                self.agent_seen_at = Some(at);
            }
            Event::FanOutOpened { step, count, items } => {
                let step = self.expect_step(step)?;
                self.expect_list(step, *count, items)?;
                self.withdraw(step, 0);
                let state = &mut self.steps[step];
                state.stage = StepStage::Begun;
                state.items = Some(items.clone());
                state.parts = vec![StepPart { generation: state.generation, ..StepPart::new() }; *count as usize];
                state.unsettled = *count;
                self.feed(step);
                self.conclude(step);
            }
            Event::StepsSkipped { steps, because } => {
                self.gave_up |= *because == SkipReason::LeftUndone;
                let cause = match because {
                    SkipReason::Condition => SkipCause::Condition,
                    SkipReason::ElseOf(_) => SkipCause::OtherBranch,
                    SkipReason::NeedsResultOf(_) => SkipCause::NoResult,
                    SkipReason::LeftUndone => SkipCause::LeftUndone,
                };
                self.settle_all(steps, StepStage::Skipped, &because.to_string(), Some(cause))?;
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
            | Event::CallForbidden { part, .. }
            | Event::CallDelayed { part, .. }
            | Event::AttemptAccepted { part, .. }
            | Event::ToolAsked { part, .. }
            | Event::ToolAnswered { part, .. }
            | Event::AttemptLost { part, .. }
            | Event::PreparationFailed { part, .. }
            | Event::RetryAbandoned { part, .. }
            | Event::ProbeInconclusive { part, .. }
            | Event::ProbePostponed { part, .. }
            | Event::KeyExpired { part, .. }
            | Event::DoubtSettled { part, .. }
            | Event::CompensationRecorded { part, .. } => self.change_part(part, at, event)?,
            Event::AttemptFailed { part, side, then, .. } => {
                self.change_part(part, at, event)?;
                if *then == AttemptFollowUp::Withdrawn && matches!(side, CallSide::Do | CallSide::Fallback) {
                    self.spent.calls = self.spent.calls.saturating_sub(1);
                }
            }
            Event::SettlementCorrected { part, happened, .. } => self.apply_correction(part, at, *happened, event)?,
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
                self.settle_all(cancelled, StepStage::Cancelled, &why, None)?;
                // Only in journals of versions that skipped dependents before evaluating them.
                self.settle_all(skipped, StepStage::Skipped, &why, Some(SkipCause::NoResult))?;
                self.settle(step, StepStage::Failed);
                self.steps[step].left_behind = *action == PolicyAction::ContinueOthers;
                match action {
                    PolicyAction::CancelAll => self.stop_forward(at, false, ExecutionEnding::Failed),
                    PolicyAction::Compensate => self.stop_forward(at, true, ExecutionEnding::Failed),
                    PolicyAction::ManualDecision | PolicyAction::CancelDependent | PolicyAction::ContinueOthers => {}
                }
            }
            Event::QuestionAnswered { about, answer, skipped, .. } => match about {
                Question::Failure(step) => self.answer_failure(at, step, *answer, skipped, event)?,
                Question::Item(part) => self.answer_item(at, part, *answer, event)?,
                Question::Compensation(part) => {
                    let stuck = self.locate(part).is_some_and(|at| self.agenda.stuck.contains(&at));
                    if !stuck || !Question::COMPENSATION_ANSWERS.contains(answer) {
                        return Err(format!("the compensation of {part} has no such question"));
                    }
                    self.change_part(part, at, event)?;
                }
                Question::SecondEffect(part) => self.answer_second(part, *answer)?,
                Question::Silence => match answer {
                    QuestionAnswer::Continue => self.begin_lease(at),
                    // It stays silent: what it left open is closed, and what is to be undone is not left to it unasked.
                    QuestionAnswer::Stop | QuestionAnswer::Compensate => {
                        self.stop_forward(at, *answer == QuestionAnswer::Compensate, ExecutionEnding::Failed);
                    }
                    QuestionAnswer::Retry | QuestionAnswer::Skip | QuestionAnswer::Resolve | QuestionAnswer::Replan => {
                        return Err("a silent agent does not accept this answer".into());
                    }
                },
                Question::Limit(limit) => {
                    if self.over != Some(*limit) {
                        return Err("this limit was not reached".into());
                    }
                    match answer {
                        QuestionAnswer::Continue => {
                            self.raise_limit(*limit, at);
                            self.over = None;
                        }
                        QuestionAnswer::Stop | QuestionAnswer::Compensate => {
                            self.stop_limit = Some(*limit);
                            self.stop_forward(at, *answer == QuestionAnswer::Compensate, ExecutionEnding::Failed);
                        }
                        QuestionAnswer::Replan => self.replanning = true,
                        QuestionAnswer::Retry | QuestionAnswer::Skip | QuestionAnswer::Resolve => {
                            return Err("a limit does not accept this answer".into());
                        }
                    }
                }
            },
            Event::LimitReached { limit, action } => match action {
                PolicyAction::ManualDecision => self.over = Some(*limit),
                PolicyAction::CancelAll
                | PolicyAction::CancelDependent
                | PolicyAction::ContinueOthers
                | PolicyAction::Compensate => {
                    self.stop_reason = super::time_limits::limit_reached(*limit);
                    self.stop_limit = Some(*limit);
                    self.stop_forward(at, *action == PolicyAction::Compensate, ExecutionEnding::Failed);
                }
            },
            Event::Paused { .. } => self.paused = true,
            Event::Resumed { .. } => self.paused = false,
            Event::Held { reason, since, due, more } => {
                self.paused = true;
                let (reason, since, due, more) = (reason.clone(), *since, due.clone(), *more);
                self.held = Some(ExecutionHold { reason, since, at, due, more });
            }
            Event::HoldEnded { frozen, expired, .. } => {
                self.paused = false;
                if let (Some(hold), Some(span)) = (self.held.take(), frozen) {
                    self.thaw(&hold, *span, expired);
                }
            }
            Event::CancelRequested { undo, reason } => {
                self.stop_reason = reason.clone();
                self.stop_forward(at, *undo, ExecutionEnding::Cancelled);
            }
            Event::Killed { reason } => {
                self.stop_reason = reason.clone();
                self.stop_forward(at, false, ExecutionEnding::Cancelled);
                self.abandon(at);
                self.phase = ExecutionPhase::Killed;
            }
            Event::Reopened { steps, held, .. } => self.reopen(at, steps, held)?,
            Event::CompensationStarted { parts, whole, reason } => {
                self.undo_reason = reason.clone();
                self.start_undo(parts, *whole)?;
            }
            Event::ReplanBegun { .. } => self.replanning = true,
            Event::ReplanAbandoned { .. } => (self.replanning, self.proposal) = (false, None),
            Event::ReplanProposed { plan, revision, weakens, reason } => {
                let (plan, revision) = (SharedPlan(plan.plan.clone().ok_or("its plan is missing")?), saved(*revision)?);
                let (weakens, reason) = (weakens.clone(), reason.clone());
                self.replanning = false;
                self.proposal = Some(PendingReplan { plan, revision, weakens, reason, by: None });
            }
            Event::ReplanRejected { plan, .. } => {
                let proposal = self.proposal.take().filter(|proposal| proposal.plan.hash == *plan);
                proposal.ok_or("another plan, or none, is proposed")?;
                self.rejections += 1;
            }
            Event::Replanned { plan, revision, .. } => {
                let plan = plan.plan.clone().ok_or("its plan is missing")?;
                self.adopt(plan, saved(*revision)?)?;
            }
            Event::HandedOver { to, .. } => {
                self.driver = *to;
                self.begin_lease(at);
            }
            Event::AgentSeen {} => {}
            Event::AgentSilent { since, .. } => self.silent_since = Some(*since),
            Event::ToolDrifted { tool, found, .. } => {
                self.drifted.insert(tool.clone(), *found);
            }
            Event::ToolRestored { tool, .. } => {
                self.drifted.remove(tool);
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
                self.held = None;
                self.silent_since = None;
                self.replanning = false;
                self.proposal = None;
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

    /// Applies an event to one part, and updates everything derived from the part.
    pub(super) fn change_part(&mut self, id: &PartId, at: Timestamp, event: &Event) -> ApplyResult {
        let place = self.locate(id).ok_or_else(|| format!("part {id} is not in the plan"))?;
        let harmless = self.is_harmless(place, event);
        let before = self.part_at(place).ok_or_else(|| format!("part {id} is not there yet"))?;
        let mut part = before.clone();
        part.apply(at, event, harmless).map_err(|why| format!("part {id} {why}"))?;
        if let Some(hold) = &self.held {
            part.set_back(before, at.since(hold.since));
        }
        let is_over = self.turn_to_next_effect(place, at, &mut part);
        let is_late =
            matches!(event, Event::LateAnswerArrived { side: CallSide::Undo, effect: Some(LateEffect::Only), .. });
        if is_late && self.undo.as_ref().is_none_or(|undo| !undo.open.contains_key(&place)) {
            // It was undone after the undoing had ended: its own effect remains.
            part.turn_to_own();
        }
        self.replace(place, part);
        if let Some(undo) = self.undo.as_mut().filter(|_| is_over) {
            undo.closed(&self.plan.0.graph, place);
        }
        Ok(())
    }

    /// Whether the call of the event is read-only.
    fn is_harmless(&self, at: PartPosition, event: &Event) -> bool {
        let side = match event {
            Event::AttemptSucceeded { side, .. }
            | Event::AttemptFailed { side, .. }
            | Event::AttemptLost { side, .. }
            | Event::DoubtSettled { side, .. }
            | Event::SettlementCorrected { side, .. } => *side,
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

    /// Whether the server makes the part's call, so that a crash loses it.
    pub(crate) fn runs_here(&self, at: PartPosition) -> bool {
        let running = self.steps[at.step()].parts[at.item()].running();
        running.is_some_and(|attempt| attempt.by == Driver::Server)
    }
}

/// A revision is numbered where it is saved, from one.
fn saved(revision: u32) -> Result<u32, String> {
    if revision == 0 { Err("its plan was not saved".to_owned()) } else { Ok(revision) }
}

pub(super) fn count(n: usize) -> u32 {
    u32::try_from(n).expect("plans and fan-outs are far smaller")
}
