//! Checks the records as they are appended against the promises, independently of the core.

mod answers;
mod effects;
mod items;
mod places;
mod rules;
mod talk;
mod time;
mod word;

use effects::EffectMonitor;
use rutter_core::hash::Hash;
use rutter_core::id::{PartId, StepId, ToolName};
use rutter_core::journal::event::{
    AttemptFollowUp, CallSide, Event, EventRecord, Question, QuestionAnswer, SkipReason,
};
use rutter_core::plan::{Plan, PolicyAction, Step};
use rutter_core::policy::OperatorPolicy;
use rutter_core::tool::Safety;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use talk::CallMonitor;
use time::TimeMonitor;
use word::WordMonitor;

/// What the journal so far allows and forbids.
#[derive(Clone, Debug)]
pub struct JournalMonitor {
    plan: Arc<Plan>,
    go: bool,
    paused: bool,
    /// No forward attempt may start any more.
    stopped: bool,
    killed: bool,
    over: bool,
    replanning: bool,
    /// A new plan waits for a person.
    proposed: bool,
    held: BTreeSet<StepId>,
    /// Settled steps, and those among them with a result.
    ended: BTreeSet<StepId>,
    /// Items of fan-outs that were started at some time.
    started_items: BTreeSet<PartId>,
    flags: BTreeMap<StepId, bool>,
    /// Steps that were skipped because their own condition was false.
    passed_over: BTreeSet<StepId>,
    completed: BTreeSet<StepId>,
    /// Steps that were skipped by decision, and steps that were undone and have not run since.
    left_out: BTreeSet<StepId>,
    undone_steps: BTreeSet<StepId>,
    /// Items of fan-outs that are neither completed nor failed for good, and how many items there are.
    items: BTreeMap<StepId, BTreeSet<u32>>,
    item_counts: BTreeMap<StepId, u32>,
    /// Items that failed for good; not those that somebody decided to go on without.
    failed_items: BTreeMap<StepId, BTreeSet<u32>>,
    /// Parts whose forward effect may be present, by whichever call; and those with an unsettled undo.
    at_risk: BTreeMap<PartId, CallSide>,
    undo_at_risk: BTreeSet<PartId>,
    in_doubt: BTreeSet<PartId>,
    running: BTreeMap<PartId, CallSide>,
    /// Parts whose last attempt was sent as a call that must not be repeated.
    sent_once: BTreeSet<PartId>,
    /// Started parts that wait for a retry, their fallback or an approval.
    waiting: BTreeSet<PartId>,
    /// Tools that have changed, until they are accepted.
    drifted: BTreeSet<ToolName>,
    grants: BTreeMap<PartId, Hash>,
    /// Parts of the current undo that are not undone.
    to_undo: BTreeSet<PartId>,
    /// How often a part's effect was undone, and how often that was requested.
    pub undone: BTreeMap<PartId, u32>,
    pub undo_asked: BTreeMap<PartId, u32>,
    pub completed_steps: u64,
    /// Parts that failed for good.
    failed: BTreeSet<PartId>,
    /// Known effects, and doubts.
    pub effects: EffectMonitor,
    /// Tickets and questions of tools during calls.
    pub talk: CallMonitor,
    /// Time limits and holds.
    time: TimeMonitor,
    /// What people and the policy said.
    word: WordMonitor,
}

type MonitorResult = Result<(), String>;

impl JournalMonitor {
    /// Whether the agent that drives is on record as silent.
    pub fn is_agent_silent(&self) -> bool {
        self.time.is_agent_silent()
    }

    pub fn new(plan: Arc<Plan>, inputs: &Value, policy: OperatorPolicy) -> JournalMonitor {
        JournalMonitor {
            plan,
            go: inputs["go"] == Value::Bool(true),
            paused: false,
            stopped: false,
            killed: false,
            over: false,
            replanning: false,
            proposed: false,
            held: BTreeSet::new(),
            ended: BTreeSet::new(),
            started_items: BTreeSet::new(),
            flags: BTreeMap::new(),
            passed_over: BTreeSet::new(),
            completed: BTreeSet::new(),
            left_out: BTreeSet::new(),
            undone_steps: BTreeSet::new(),
            items: BTreeMap::new(),
            item_counts: BTreeMap::new(),
            failed_items: BTreeMap::new(),
            at_risk: BTreeMap::new(),
            undo_at_risk: BTreeSet::new(),
            in_doubt: BTreeSet::new(),
            running: BTreeMap::new(),
            sent_once: BTreeSet::new(),
            waiting: BTreeSet::new(),
            drifted: BTreeSet::new(),
            grants: BTreeMap::new(),
            to_undo: BTreeSet::new(),
            undone: BTreeMap::new(),
            undo_asked: BTreeMap::new(),
            completed_steps: 0,
            failed: BTreeSet::new(),
            effects: EffectMonitor::default(),
            talk: CallMonitor::default(),
            time: TimeMonitor::default(),
            word: WordMonitor::new(policy),
        }
    }

    /// Checks one more record. `plan` is the execution's plan after it.
    pub fn observe(&mut self, record: &EventRecord, plan: &Arc<Plan>) -> MonitorResult {
        self.check(&record.event)?;
        self.effects.observe(record, &self.plan)?;
        self.word.observe(record, &self.plan)?;
        self.talk.observe(record, &self.plan)?;
        let forward = self.running.iter().find(|(_, side)| matches!(side, CallSide::Do | CallSide::Fallback));
        self.time.observe(record, &self.plan, forward.map(|(part, _)| part))?;
        self.follow(&record.event, plan);
        if let Some(part) = self.effects.take_ended() {
            self.waiting.remove(&part);
            self.undone(&part);
        }
        Ok(())
    }

    fn step(&self, part: &PartId) -> Result<(usize, Arc<Step>), String> {
        let at = self.plan.find(part.step.as_str()).ok_or_else(|| format!("{part} is not in the plan"))?;
        Ok((at, self.plan.steps[at].clone()))
    }

    fn follow(&mut self, event: &Event, plan: &Arc<Plan>) {
        match event {
            Event::FanOutOpened { step, count, .. } => {
                self.items.insert(step.clone(), (0..*count).collect());
                self.item_counts.insert(step.clone(), *count);
                self.failed_items.remove(step);
                self.complete_if_done(step, None);
            }
            Event::StepsSkipped { steps, because } => {
                self.ended.extend(steps.iter().cloned());
                if *because == SkipReason::Condition {
                    self.passed_over.extend(steps.iter().cloned());
                }
            }
            Event::ApprovalRequested { part, .. } => {
                self.failed.remove(part);
                self.waiting.insert(part.clone());
            }
            Event::ApprovalGranted { part, call, .. } => {
                self.grants.insert(part.clone(), *call);
            }
            Event::ApprovalVoided { part, .. }
            | Event::ApprovalDenied { part, .. }
            | Event::ApprovalExpired { part, .. }
            | Event::PreparationFailed { part, side: CallSide::Do | CallSide::Fallback, .. }
            | Event::CallForbidden { part, side: CallSide::Do | CallSide::Fallback, .. }
            | Event::RetryAbandoned { part, .. } => {
                self.grants.remove(part);
                if !matches!(event, Event::ApprovalVoided { .. }) {
                    self.gave_up(part);
                }
            }
            Event::AttemptStarted { part, side, .. } => {
                if *side == CallSide::Do {
                    self.undone_steps.remove(&part.step);
                }
                self.running.insert(part.clone(), *side);
                self.failed.remove(part);
                self.waiting.remove(part);
                self.note_safety(part, *side);
                if *side == CallSide::Do {
                    self.item_started(part);
                }
            }
            Event::AttemptSucceeded { part, side, result, .. } => {
                self.running.remove(part);
                match side {
                    CallSide::Do | CallSide::Fallback => self.done(part, *side, result.value().map(|value| &**value)),
                    CallSide::Undo => self.undone(part),
                    CallSide::Probe => {}
                }
            }
            Event::AttemptFailed { part, side, maybe, then, .. } => self.closed(part, *side, *maybe, *then),
            Event::AttemptLost { part, side, then, .. } => self.closed(part, *side, true, *then),
            Event::DoubtSettled { part, side, happened, result, then, .. } => {
                self.in_doubt.remove(part);
                // A running probe no longer matters.
                self.running.remove(part);
                match (side, happened) {
                    (CallSide::Undo, true) => self.undone(part),
                    (CallSide::Undo, false) => {
                        self.undo_at_risk.remove(part);
                    }
                    (_, true) => {
                        self.done(part, *side, result.as_ref().and_then(|result| result.value().map(|value| &**value)))
                    }
                    (_, false) => {
                        self.at_risk.remove(part);
                        match then {
                            AttemptFollowUp::GiveUp => self.gave_up(part),
                            _ => drop(self.waiting.insert(part.clone())),
                        }
                    }
                }
            }
            Event::KeyExpired { part, .. } => {
                self.in_doubt.insert(part.clone());
                self.waiting.remove(part);
                self.grants.remove(part);
            }
            Event::FailureHandled { step, action, cancelled, skipped, .. } => {
                if *action == PolicyAction::ManualDecision {
                    self.held.insert(step.clone());
                    return;
                }
                self.ended.insert(step.clone());
                self.ended.extend(cancelled.iter().chain(skipped).cloned());
                self.stopped |= matches!(action, PolicyAction::CancelAll | PolicyAction::Compensate);
            }
            Event::QuestionAnswered { about, answer, skipped, .. } => {
                if let (Question::Failure(step), QuestionAnswer::Skip) = (about, answer) {
                    self.left_out.insert(step.clone());
                }
                self.answered(about, *answer, skipped);
            }
            Event::LimitReached { action, .. } => match action {
                PolicyAction::ManualDecision => self.over = true,
                _ => self.stopped = true,
            },
            Event::Paused { .. } => self.paused = true,
            Event::Resumed { .. } | Event::HoldEnded { .. } => self.paused = false,
            Event::Held { .. } => self.paused = true,
            Event::CancelRequested { .. } => self.stopped = true,
            Event::Killed { .. } => {
                (self.stopped, self.killed) = (true, true);
                let running = std::mem::take(&mut self.running);
                for (part, side) in running {
                    let is_read = self.step(&part).is_ok_and(|(_, step)| match side {
                        CallSide::Do => step.call.safety == Safety::ReadOnly,
                        CallSide::Fallback => {
                            step.fallback.as_ref().is_some_and(|other| other.call.safety == Safety::ReadOnly)
                        }
                        CallSide::Undo | CallSide::Probe => false,
                    });
                    if !is_read {
                        self.in_doubt.insert(part);
                    }
                }
            }
            Event::CompensationStarted { parts, .. } => {
                self.to_undo = parts.iter().cloned().collect();
                for part in parts {
                    let effects = self.effects.to_undo(part, self.at_risk.get(part).copied());
                    *self.undo_asked.entry(part.clone()).or_default() += u32::try_from(effects).unwrap_or(u32::MAX);
                }
            }
            Event::Reopened { steps, held, .. } => {
                (self.stopped, self.killed) = (false, false);
                self.held = held.iter().cloned().collect();
                self.stop_items();
                // At the end everything had settled that is not in doubt.
                let doubted = |id: &StepId| self.in_doubt.iter().any(|part| part.step == *id);
                let ids = self.plan.steps.iter().map(|step| step.id.clone());
                self.ended.extend(ids.filter(|id| !doubted(id)).collect::<Vec<_>>());
                for step in steps.iter().chain(held) {
                    self.ended.remove(step);
                    self.completed.remove(step);
                    self.passed_over.remove(step);
                    self.left_out.remove(step);
                    self.undone_steps.remove(step);
                }
                // Nor does anything wait any more.
                self.waiting.clear();
                self.grants.clear();
                for step in steps {
                    self.retry_items(step);
                    let touched = self.at_risk.keys().any(|part| part.step == *step);
                    if !touched {
                        self.started_items.retain(|part| part.step != *step);
                    }
                    self.retry_failed(step);
                }
            }
            Event::CompensationRecorded { part, .. } => self.undone(part),
            Event::ReplanBegun { .. } => self.replanning = true,
            Event::ReplanAbandoned { .. } => (self.replanning, self.proposed) = (false, false),
            Event::ReplanProposed { .. } => (self.replanning, self.proposed) = (false, true),
            Event::ReplanRejected { .. } => self.proposed = false,
            Event::CallDelayed { part, .. } => {
                self.waiting.insert(part.clone());
            }
            Event::Replanned { .. } => {
                let out = self.left_out.iter().chain(self.undone_steps.intersection(&self.ended));
                let stays = |id: &&StepId| is_same_call(&self.plan, plan, id);
                let out: BTreeSet<StepId> = out.filter(stays).cloned().collect();
                self.left_out.retain(|step| out.contains(step));
                self.plan = plan.clone();
                (self.replanning, self.proposed) = (false, false);
                self.over = false;
                self.held.clear();
                self.drifted.clear();
                self.passed_over.clear();
                // A fan-out goes on where it is under way or may have taken effect; any other begins anew.
                let open = self.running.keys().chain(&self.in_doubt).chain(&self.waiting).chain(self.at_risk.keys());
                let open: BTreeSet<StepId> = open.map(|part| part.step.clone()).collect();
                self.started_items.retain(|item| open.contains(&item.step));
                let active = self.running.keys().chain(&self.in_doubt).chain(&self.waiting);
                let active: BTreeSet<StepId> = active.map(|part| part.step.clone()).collect();
                let is_again = |step: &&StepId| !active.contains(*step) && !self.completed.contains(*step);
                let again: Vec<StepId> = self.failed_items.keys().filter(is_again).cloned().collect();
                for step in &again {
                    self.retry_items(step);
                }
                // A step that is gone for good and comes back in a later plan is another one.
                self.completed.retain(|step| self.plan.find(step.as_str()).is_some());
                self.ended = self.completed.union(&out).cloned().collect();
                // Steps missing from the new plan stay for their compensation, and are settled.
                self.ended.extend(
                    self.plan
                        .steps
                        .iter()
                        .map(|step| step.id.clone())
                        .filter(|id| !self.completed.contains(id) && event_names_not(event, id)),
                );
                let kept = self.plan.steps.iter().map(|step| step.id.clone());
                // A fan-out under way goes on as it is, with the items that failed.
                for step in kept.filter(|id| !self.ended.contains(id) && !active.contains(id)).collect::<Vec<_>>() {
                    self.retry_failed(&step);
                }
            }
            Event::ToolDrifted { tool, .. } => {
                self.drifted.insert(tool.clone());
            }
            Event::ToolRestored { tool, .. } | Event::ToolAccepted { tool, .. } => {
                self.drifted.remove(tool);
            }
            Event::ExecutionEnded { .. } => {
                (self.paused, self.replanning, self.over, self.proposed) = (false, false, false, false);
            }
            Event::LateAnswerArrived { part, side, effect: Some(effect), answer, .. } if *side != CallSide::Undo => {
                self.came_late(part, *side, *effect, answer);
            }
            Event::SettlementCorrected { part, side, happened, result, effect, .. } => {
                self.corrected(part, *side, *happened, result.as_ref(), *effect);
            }
            Event::ExecutionOpened { .. }
            | Event::ExecutionStarted {}
            | Event::AttemptAccepted { .. }
            | Event::ToolAsked { .. }
            | Event::ToolAnswered { .. }
            | Event::LateAnswerArrived { .. }
            | Event::PreparationFailed { .. }
            | Event::CallForbidden { .. }
            | Event::ProbeInconclusive { .. }
            | Event::ProbePostponed { .. }
            | Event::HandedOver { .. }
            | Event::AgentSeen {}
            | Event::AgentSilent { .. }
            | Event::DecisionRecorded { .. }
            | Event::ActionRecorded { .. }
            | Event::ContextSaved { .. }
            | Event::DeviationFound { .. }
            | Event::PlanSaved { .. }
            | Event::PayloadsErased { .. }
            | Event::ExecutionsRemoved { .. }
            | Event::LedgerRestored { .. }
            | Event::SettingChanged { .. }
            | Event::ActRefused { .. } => {}
        }
    }

    fn done(&mut self, part: &PartId, side: CallSide, result: Option<&Value>) {
        let Ok((_, step)) = self.step(part) else { return };
        let call = match (side, &step.fallback) {
            (CallSide::Fallback, Some(fallback)) => &fallback.call,
            _ => &step.call,
        };
        if call.safety != Safety::ReadOnly {
            self.at_risk.insert(part.clone(), side);
        }
        self.grants.remove(part);
        if let (Some(items), Some(item)) = (self.items.get_mut(&part.step), part.item) {
            items.remove(&item);
        }
        self.complete_if_done(&part.step, result);
    }

    fn undone(&mut self, part: &PartId) {
        self.at_risk.remove(part);
        self.undo_at_risk.remove(part);
        if self.effects.undoable(&self.plan, part) <= self.effects.left_standing(part) {
            self.to_undo.remove(part);
        }
        *self.undone.entry(part.clone()).or_default() += 1;
        self.undone_steps.insert(part.step.clone());
        if self.effects.known(part) == 0 {
            self.completed.remove(&part.step);
        }
    }

    /// Remembers whether the attempt that starts may be repeated, under the plan it starts with.
    fn note_safety(&mut self, part: &PartId, side: CallSide) {
        let Ok((_, step)) = self.step(part) else { return };
        let by_fallback = self.at_risk.get(part) == Some(&CallSide::Fallback);
        let fallback = step.fallback.as_ref();
        let call = match side {
            CallSide::Do => Some(&step.call),
            CallSide::Fallback => fallback.map(|fallback| &fallback.call),
            CallSide::Undo if by_fallback => {
                fallback.and_then(|fallback| fallback.compensation.as_ref()).map(|undo| &undo.call)
            }
            CallSide::Undo => step.compensation.as_ref().map(|undo| &undo.call),
            CallSide::Probe => return,
        };
        if call.is_some_and(|call| !call.is_repeatable()) {
            self.sent_once.insert(part.clone());
        } else {
            self.sent_once.remove(part);
        }
    }

    fn closed(&mut self, part: &PartId, side: CallSide, maybe: bool, then: AttemptFollowUp) {
        self.running.remove(part);
        if matches!(then, AttemptFollowUp::RetryAt(_) | AttemptFollowUp::FallBack | AttemptFollowUp::Withdrawn)
            && side != CallSide::Probe
        {
            self.waiting.insert(part.clone());
        }
        let harmless = self.step(part).is_ok_and(|(_, step)| match (side, &step.fallback) {
            (CallSide::Do, _) => step.call.safety == Safety::ReadOnly,
            (CallSide::Fallback, Some(fallback)) => fallback.call.safety == Safety::ReadOnly,
            (CallSide::Probe, _) => true,
            (CallSide::Fallback, None) | (CallSide::Undo, _) => false,
        });
        if maybe && !harmless {
            if side == CallSide::Undo {
                self.undo_at_risk.insert(part.clone());
            } else {
                self.at_risk.insert(part.clone(), side);
            }
        }
        if then == AttemptFollowUp::InDoubt {
            self.in_doubt.insert(part.clone());
        }
        if then == AttemptFollowUp::GiveUp && matches!(side, CallSide::Do | CallSide::Fallback) {
            self.gave_up(part);
        }
        if !matches!(then, AttemptFollowUp::RetryAt(_) | AttemptFollowUp::Withdrawn) && side != CallSide::Probe {
            self.grants.remove(part);
        }
    }
}

/// Whether the new plan of a replan does not have this step.
fn event_names_not(event: &Event, id: &StepId) -> bool {
    match event {
        Event::Replanned { plan, .. } => plan.plan.as_ref().is_some_and(|plan| plan.find(id.as_str()).is_none()),
        _ => false,
    }
}

/// Whether a step makes the same call in two plans, for the same items, and is undone by the same one.
fn is_same_call(old: &Plan, new: &Plan, id: &StepId) -> bool {
    let written = |plan: &Plan| {
        let step = &plan.steps[plan.find(id.as_str())?];
        let undo =
            step.compensation.as_ref().map(|undo| (undo.call.tool.clone(), undo.call.parameters.source().clone()));
        let items = step.for_each.as_ref().map(|fan_out| fan_out.items.source.clone());
        Some((step.call.tool.clone(), step.call.parameters.source().clone(), undo, items))
    };
    written(old).is_some() && written(old) == written(new)
}
