//! Checks the records as they are appended against the promises, independently of the core.

mod talk;

use rutter_core::hash::Hash;
use rutter_core::id::{PartId, StepId, ToolName};
use rutter_core::journal::event::{
    AttemptFollowUp, CallSide, Event, EventRecord, ExecutionEnding, Question, QuestionAnswer,
};
use rutter_core::plan::graph::NeedKind;
use rutter_core::plan::{Driver, Plan, PolicyAction, Step};
use rutter_core::tool::Safety;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use talk::CallMonitor;

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
    held: BTreeSet<StepId>,
    /// Settled steps, and those among them with a result.
    ended: BTreeSet<StepId>,
    /// Items of fan-outs that were started at some time.
    started_items: BTreeSet<PartId>,
    flags: BTreeMap<StepId, bool>,
    completed: BTreeSet<StepId>,
    /// Items of fan-outs that are not completed.
    items: BTreeMap<StepId, BTreeSet<u32>>,
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
    /// Tickets and questions of tools during calls.
    pub talk: CallMonitor,
}

type MonitorResult = Result<(), String>;

impl JournalMonitor {
    pub fn new(plan: Arc<Plan>, inputs: &Value) -> JournalMonitor {
        JournalMonitor {
            plan,
            go: inputs["go"] == Value::Bool(true),
            paused: false,
            stopped: false,
            killed: false,
            over: false,
            replanning: false,
            held: BTreeSet::new(),
            ended: BTreeSet::new(),
            started_items: BTreeSet::new(),
            flags: BTreeMap::new(),
            completed: BTreeSet::new(),
            items: BTreeMap::new(),
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
            talk: CallMonitor::default(),
        }
    }

    /// Checks one more record. `plan` is the execution's plan after it.
    pub fn observe(&mut self, record: &EventRecord, plan: &Arc<Plan>) -> MonitorResult {
        self.check(&record.event)?;
        self.talk.observe(record, &self.plan)?;
        self.follow(&record.event, plan);
        Ok(())
    }

    fn step(&self, part: &PartId) -> Result<(usize, Arc<Step>), String> {
        let at = self.plan.find(part.step.as_str()).ok_or_else(|| format!("{part} is not in the plan"))?;
        Ok((at, self.plan.steps[at].clone()))
    }

    /// Checks what must not happen now.
    fn check(&self, event: &Event) -> MonitorResult {
        match event {
            Event::AttemptStarted { part, side, attempt, by: Driver::Server, call, tool, .. } => {
                if self.paused {
                    return Err(format!("{part} was started while paused"));
                }
                if self.drifted.contains(tool) {
                    return Err(format!("{part} was started although {tool} has changed"));
                }
                match side {
                    CallSide::Do | CallSide::Fallback => self.check_forward(part, *side, *attempt, *call),
                    CallSide::Undo => self.check_undo(part, tool),
                    CallSide::Probe if self.in_doubt.contains(part) => Ok(()),
                    CallSide::Probe => Err(format!("{part} was probed without doubt")),
                }
            }
            Event::AttemptFailed { part, side, maybe: true, then, .. }
            | Event::AttemptLost { part, side, then, .. } => {
                let once = *side != CallSide::Probe && self.sent_once.contains(part);
                if once && *then != AttemptFollowUp::InDoubt {
                    return Err(format!("{part} was sent as a call that must not be repeated, and is not in doubt"));
                }
                Ok(())
            }
            Event::Replanned { plan, .. } => {
                let new = plan.plan.as_ref().ok_or("a replan without a plan")?;
                let dropped = self.in_doubt.iter().find(|part| new.find(part.step.as_str()).is_none());
                if let Some(part) = dropped {
                    return Err(format!("{part} is in doubt and was dropped by a replan"));
                }
                let forgotten = self.at_risk.iter().find(|(part, side)| {
                    let step = new.find(part.step.as_str()).map(|at| &new.steps[at]);
                    **side == CallSide::Fallback && step.is_some_and(|step| step.fallback.is_none())
                });
                forgotten.map_or(Ok(()), |(part, _)| {
                    Err(format!("the fallback of {part} may have taken effect and was dropped by a replan"))
                })
            }
            Event::ExecutionEnded { outcome, .. } => {
                let excused = self.killed;
                if let Some(part) = self.running.keys().next().filter(|_| !excused) {
                    return Err(format!("ended {outcome:?} while {part} was running"));
                }
                if let Some(part) = self.in_doubt.iter().next().filter(|_| !excused) {
                    return Err(format!("ended {outcome:?} while {part} was in doubt"));
                }
                if *outcome == ExecutionEnding::Compensated && !self.to_undo.is_empty() {
                    return Err(format!("ended compensated, not undone: {:?}", self.to_undo));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_forward(&self, part: &PartId, side: CallSide, attempt: u32, call_hash: Hash) -> MonitorResult {
        let (at, step) = self.step(part)?;
        if self.stopped || self.over || self.replanning || !self.held.is_empty() {
            return Err(format!("{part} was started while the execution was stopped or held"));
        }
        let waits_for =
            self.plan.graph.needs[at].iter().find(|need| !self.ended.contains(&self.plan.steps[need.step].id));
        if let Some(need) = waits_for {
            return Err(format!("{part} was started before {:?} ended", self.plan.steps[need.step].id));
        }
        let forward = self.running.values().filter(|side| matches!(side, CallSide::Do | CallSide::Fallback)).count();
        if forward >= self.plan.max_parallel as usize {
            return Err(format!("{part} was started although all {} slots are taken", self.plan.max_parallel));
        }
        let call = match (side, &step.fallback) {
            (CallSide::Fallback, Some(fallback)) => &fallback.call,
            _ => &step.call,
        };
        if self.at_risk.get(part).is_some_and(|by| !call.is_repeatable() || *by != side) {
            return Err(format!("{part} was sent again although it may have happened"));
        }
        if step.approval.is_some() && self.grants.get(part) != Some(&call_hash) {
            return Err(format!("{part} was started without approval of this call"));
        }
        // A step that has begun may continue, whatever the condition is by then: an agent's attempt, a call that was
        // approved, or other items of a fan-out.
        let mut begun = self.started_items.iter().chain(&self.waiting);
        let has_begun = begun.any(|begun| begun.step == part.step);
        if attempt == 1 && side == CallSide::Do && !has_begun && self.condition(&step) == Some(false) {
            return Err(format!("{part} was started although its condition is false"));
        }
        Ok(())
    }

    /// The values of the generated conditions, computed independently.
    fn condition(&self, step: &Step) -> Option<bool> {
        let source = step.when.as_ref()?.source.trim();
        if source == "inputs.go" {
            return Some(self.go);
        }
        let needed = source.strip_prefix("steps.")?.strip_suffix(".result.flag")?;
        self.flags.get(needed).copied()
    }

    fn check_undo(&self, part: &PartId, tool: &ToolName) -> MonitorResult {
        let (at, step) = self.step(part)?;
        if !self.to_undo.contains(part) {
            return Err(format!("{part} was undone without a request, or twice"));
        }
        let undo = match (self.at_risk.get(part), &step.fallback) {
            (Some(CallSide::Fallback), Some(fallback)) => fallback.compensation.as_ref(),
            _ => step.compensation.as_ref(),
        };
        let undo = undo.ok_or_else(|| format!("{part} was undone, and the plan has no compensation for it"))?;
        if undo.call.tool != *tool {
            return Err(format!("{part} was undone by {tool}, and the plan says {}", undo.call.tool));
        }
        if self.undo_at_risk.contains(part) && !undo.call.is_repeatable() {
            return Err(format!("{part} was undone again although that may have happened"));
        }
        let dependents = self.plan.graph.dependents_of(&[at], |_: NeedKind| true);
        let open = |dependent: &usize| {
            let id = &self.plan.steps[*dependent].id;
            self.to_undo.iter().find(|part| part.step == *id)
        };
        match dependents.iter().find_map(open) {
            Some(dependent) => Err(format!("{part} was undone before {dependent}, which depends on it")),
            None => Ok(()),
        }
    }

    fn follow(&mut self, event: &Event, plan: &Arc<Plan>) {
        match event {
            Event::FanOutOpened { step, count, .. } => {
                self.items.insert(step.clone(), (0..*count).collect());
                self.complete_if_done(step, None);
            }
            Event::StepsSkipped { steps, .. } => self.ended.extend(steps.iter().cloned()),
            Event::ApprovalRequested { part, .. } => {
                self.waiting.insert(part.clone());
            }
            Event::ApprovalGranted { part, call, .. } => {
                self.grants.insert(part.clone(), *call);
            }
            Event::ApprovalVoided { part, .. }
            | Event::ApprovalDenied { part, .. }
            | Event::ApprovalExpired { part, .. }
            | Event::PreparationFailed { part, side: CallSide::Do | CallSide::Fallback, .. }
            | Event::RetryAbandoned { part, .. } => {
                self.grants.remove(part);
            }
            Event::AttemptStarted { part, side, .. } => {
                self.running.insert(part.clone(), *side);
                self.waiting.remove(part);
                self.note_safety(part, *side);
                if *side == CallSide::Do && part.item.is_some() {
                    self.started_items.insert(part.clone());
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
            Event::DoubtSettled { part, side, happened, result, .. } => {
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
                    }
                }
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
            Event::QuestionAnswered { about, answer, skipped, .. } => self.answered(about, *answer, skipped),
            Event::LimitReached { action, .. } => match action {
                PolicyAction::ManualDecision => self.over = true,
                _ => self.stopped = true,
            },
            Event::Paused { .. } => self.paused = true,
            Event::Resumed { .. } => self.paused = false,
            Event::CancelRequested { .. } => self.stopped = true,
            Event::Killed { .. } => {
                (self.stopped, self.killed) = (true, true);
                let running = std::mem::take(&mut self.running);
                for (part, side) in running {
                    if self
                        .step(&part)
                        .is_ok_and(|(_, step)| step.call.safety != Safety::ReadOnly || side != CallSide::Do)
                    {
                        self.in_doubt.insert(part);
                    }
                }
            }
            Event::CompensationStarted { parts, .. } => {
                self.to_undo = parts.iter().cloned().collect();
                for part in parts {
                    *self.undo_asked.entry(part.clone()).or_default() += 1;
                }
            }
            Event::CompensationRecorded { part, .. } => self.undone(part),
            Event::ReplanBegun { .. } => self.replanning = true,
            Event::ReplanAbandoned { .. } => self.replanning = false,
            Event::Replanned { .. } => {
                self.plan = plan.clone();
                self.replanning = false;
                self.over = false;
                self.held.clear();
                self.drifted.clear();
                // A fan-out goes on where it is under way or may have taken effect; any other begins anew.
                let open = self.running.keys().chain(&self.in_doubt).chain(&self.waiting).chain(self.at_risk.keys());
                let open: BTreeSet<StepId> = open.map(|part| part.step.clone()).collect();
                self.started_items.retain(|item| open.contains(&item.step));
                self.ended = self.completed.clone();
                // Steps missing from the new plan stay for their compensation, and are settled.
                self.ended.extend(
                    self.plan
                        .steps
                        .iter()
                        .map(|step| step.id.clone())
                        .filter(|id| !self.completed.contains(id) && event_names_not(event, id)),
                );
            }
            Event::ToolDrifted { tool, .. } => {
                self.drifted.insert(tool.clone());
            }
            Event::ToolAccepted { tool, .. } => {
                self.drifted.remove(tool);
            }
            Event::ExecutionEnded { .. } => (self.paused, self.replanning, self.over) = (false, false, false),
            Event::ExecutionOpened { .. }
            | Event::ExecutionStarted {}
            | Event::AttemptAccepted { .. }
            | Event::ToolAsked { .. }
            | Event::ToolAnswered { .. }
            | Event::LateAnswerArrived { .. }
            | Event::PreparationFailed { .. }
            | Event::ProbeInconclusive { .. }
            | Event::HandedOver { .. }
            | Event::DecisionRecorded { .. }
            | Event::ActionRecorded { .. }
            | Event::ContextSaved { .. }
            | Event::DeviationFound { .. }
            | Event::PlanSaved { .. }
            | Event::PayloadsErased { .. }
            | Event::ExecutionsRemoved { .. }
            | Event::LedgerRestored { .. }
            | Event::SettingChanged { .. } => {}
        }
    }

    fn answered(&mut self, about: &Question, answer: QuestionAnswer, skipped: &[StepId]) {
        match (about, answer) {
            (Question::Failure(step), QuestionAnswer::Replan) => {
                self.replanning = true;
                self.held.insert(step.clone());
            }
            (Question::Failure(step), answer) => {
                self.held.remove(step);
                match answer {
                    QuestionAnswer::Skip | QuestionAnswer::Continue => {
                        self.ended.insert(step.clone());
                        self.ended.extend(skipped.iter().cloned());
                    }
                    QuestionAnswer::Resolve => {
                        self.ended.insert(step.clone());
                        self.completed.insert(step.clone());
                    }
                    QuestionAnswer::Stop | QuestionAnswer::Compensate => self.stopped = true,
                    QuestionAnswer::Retry | QuestionAnswer::Replan => {}
                }
            }
            (Question::Compensation(part), QuestionAnswer::Resolve) => self.undone(part),
            (Question::Compensation(part), QuestionAnswer::Skip) => {
                self.to_undo.remove(part);
            }
            (Question::Compensation(_), _) => {}
            (Question::Limit(_), QuestionAnswer::Continue) => self.over = false,
            (Question::Limit(_), QuestionAnswer::Replan) => self.replanning = true,
            (Question::Limit(_), _) => self.stopped = true,
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

    fn complete_if_done(&mut self, step: &StepId, result: Option<&Value>) {
        if self.items.get(step).is_some_and(|items| !items.is_empty()) {
            return;
        }
        self.ended.insert(step.clone());
        self.completed.insert(step.clone());
        self.completed_steps += 1;
        if let Some(flag) = result.and_then(|result| result["flag"].as_bool()) {
            self.flags.insert(step.clone(), flag);
        }
    }

    fn undone(&mut self, part: &PartId) {
        self.at_risk.remove(part);
        self.undo_at_risk.remove(part);
        self.to_undo.remove(part);
        *self.undone.entry(part.clone()).or_default() += 1;
        // Once undone by hand, a replan may do it again.
        self.completed.remove(&part.step);
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
        if matches!(then, AttemptFollowUp::RetryAt(_) | AttemptFollowUp::FallBack) && side != CallSide::Probe {
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
        if !matches!(then, AttemptFollowUp::RetryAt(_)) && side != CallSide::Probe {
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
