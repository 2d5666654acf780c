//! The only way state changes: one event at a time, live and in replay alike.

use super::agenda::{Agenda, PartAt, Turn};
use super::part::{Effect, Part, PartState, Probing};
use super::step::{Stage, StepState};
use super::undo::Undo;
use super::{Execution, Identity, IllegalEvent, Phase, SharedPlan, Spent};
use crate::id::{PartId, StepId};
use crate::journal::event::{Answer, EndedAs, Event, Question, Record, Side, SkipReason};
use crate::limits;
use crate::plan::{Driver, PolicyAction};
use crate::time::Timestamp;
use crate::tool::{Category, Failure, Safety};
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

type Applied = Result<(), String>;

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
        match event {
            Event::ExecutionOpened { .. } => return Err("it is open already".into()),
            Event::ExecutionStarted {} => {
                self.expect_phase(matches!(self.phase, Phase::Pending), "it has started already")?;
                self.phase = Phase::Forward;
                self.started_at = Some(at);
            }
            Event::FanOutOpened { step, count, items } => {
                let step = self.expect_step(step)?;
                if self.steps[step].stage != Stage::Waiting || self.plan.steps[step].for_each.is_none() {
                    return Err("the step has no list to open".into());
                }
                if *count > limits::FAN_OUT_MAX {
                    return Err(format!("a fan-out has at most {} items", limits::FAN_OUT_MAX));
                }
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
                Question::Compensation(part) => self.change_part(part, at, event)?,
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
                let open = matches!(self.phase, Phase::Pending | Phase::Forward);
                self.expect_phase(open, "it is stopping already")?;
                self.stop_reason = reason.clone();
                self.stop_forward(at, *undo, EndedAs::Cancelled);
            }
            Event::Killed { reason } => {
                self.expect_phase(!matches!(self.phase, Phase::Ended { .. }), "it has ended")?;
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
                self.expect_phase(
                    !matches!(self.phase, Phase::Ended { .. } | Phase::Pending),
                    "it is not under way",
                )?;
                self.phase = Phase::Ended { outcome: *outcome };
                self.undo = None;
                self.paused = false;
                self.replanning = false;
                self.over = None;
            }
        }
        Ok(())
    }

    fn expect_phase(&self, holds: bool, otherwise: &str) -> Applied {
        if holds { Ok(()) } else { Err(otherwise.into()) }
    }

    fn expect_step(&self, id: &StepId) -> Result<usize, String> {
        self.plan.find(id.as_str()).ok_or_else(|| format!("step {id:?} is not in the plan"))
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
    fn change_part(&mut self, id: &PartId, at: Timestamp, event: &Event) -> Applied {
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

    /// Puts a part into its new state and everything derived from it along.
    fn replace(&mut self, at: PartAt, mut new: Part) {
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
            self.agenda.ready.insert(self.turn(at));
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

    /// A step whose needs are met may begin.
    fn offer(&mut self, step: usize) {
        if self.steps[step].stage == Stage::Waiting && self.steps[step].unmet == 0 {
            self.agenda.ready.insert(self.turn(PartAt::new(step, 0)));
        }
    }

    fn withdraw(&mut self, step: usize, item: usize) {
        let turn = self.turn(PartAt::new(step, item));
        self.agenda.ready.remove(&turn);
    }

    /// In a sequential plan the order is the plan's; with more places the longest way to the end goes first.
    pub(crate) fn turn(&self, part: PartAt) -> Turn {
        let height = if self.plan.max_parallel == 1 { 0 } else { self.plan.graph.height[part.step()] };
        Turn { priority: Reverse(self.plan.steps[part.step()].priority), height: Reverse(height), part }
    }

    /// Makes the next items of a fan-out ready, as many as may be at work at once.
    pub(crate) fn feed(&mut self, step: usize) {
        let Some(fan_out) = &self.plan.0.steps[step].for_each else { return };
        loop {
            let state = &self.steps[step];
            let begun_or_ready = state.next_item;
            let at_rest = count(state.parts.len()) - state.unsettled;
            let all = count(state.parts.len());
            if state.halted
                || begun_or_ready >= all
                || begun_or_ready.saturating_sub(at_rest) >= fan_out.max_parallel
            {
                return;
            }
            let part = PartAt::new(step, begun_or_ready as usize);
            self.steps[step].next_item += 1;
            self.agenda.ready.insert(self.turn(part));
        }
    }

    /// One item failed: unless the policy lets others go on, no further item begins.
    fn halt_unless_others_go_on(&mut self, step: usize) {
        let fans_out = self.plan.steps[step].for_each.is_some();
        if fans_out && self.plan.steps[step].policy.action != PolicyAction::ContinueOthers {
            self.halt(step);
        }
    }

    fn halt(&mut self, step: usize) {
        if self.steps[step].halted || self.plan.steps[step].for_each.is_none() {
            return;
        }
        for item in 0..self.steps[step].parts.len() {
            if self.steps[step].parts[item].state == PartState::Pending {
                self.withdraw(step, item);
                self.steps[step].unsettled = self.steps[step].unsettled.saturating_sub(1);
            }
        }
        self.steps[step].halted = true;
    }

    /// When the last part has come to rest, so has the step.
    fn conclude(&mut self, step: usize) {
        let state = &self.steps[step];
        if state.stage != Stage::Begun || state.unsettled > 0 {
            return;
        }
        let any = |test: fn(&PartState) -> bool| state.parts.iter().any(|part| test(&part.state));
        if any(|s| matches!(s, PartState::Failed { .. })) {
            if self.phase == Phase::Forward {
                self.steps[step].stage = Stage::Failing;
                self.agenda.failing.insert(step);
            } else {
                self.settle(step, Stage::Failed);
            }
        } else if any(|s| matches!(s, PartState::Cancelled | PartState::Pending)) {
            self.settle(step, Stage::Cancelled);
        } else {
            self.complete(step);
        }
    }

    fn complete(&mut self, step: usize) {
        if self.plan.steps[step].for_each.is_some() {
            let result = |part: &Part| part.result.as_ref().and_then(|r| r.value().map(|v| (**v).clone()));
            let list = self.steps[step].parts.iter().map(|part| result(part).unwrap_or(Value::Null));
            self.steps[step].results = Some(Arc::new(Value::Array(list.collect())));
        }
        self.settle(step, Stage::Completed);
    }

    fn settle_all(&mut self, steps: &[StepId], stage: Stage) -> Applied {
        for step in steps {
            let step = self.expect_step(step)?;
            if self.steps[step].stage != Stage::Waiting {
                return Err(format!("step {:?} has begun", self.plan.steps[step].id));
            }
            self.settle(step, stage);
        }
        Ok(())
    }

    /// The step is at rest, in whatever way: those that only waited for it may go on.
    fn settle(&mut self, step: usize, stage: Stage) {
        self.withdraw(step, 0);
        self.agenda.held.remove(&step);
        self.agenda.failing.remove(&step);
        self.steps[step].stage = stage;
        self.unsettled = self.unsettled.saturating_sub(1);
        let plan = self.plan.0.clone();
        for dependent in &plan.graph.dependents[step] {
            let unmet = &mut self.steps[dependent.step].unmet;
            *unmet = unmet.saturating_sub(1);
            self.offer(dependent.step);
        }
    }

    fn answer_failure(
        &mut self,
        at: Timestamp,
        id: &StepId,
        answer: Answer,
        skipped: &[StepId],
        event: &Event,
    ) -> Applied {
        let step = self.expect_step(id)?;
        if self.steps[step].stage != Stage::Held {
            return Err(format!("step {id:?} does not wait for a decision"));
        }
        match answer {
            Answer::Retry => {
                self.agenda.held.remove(&step);
                self.revive(at, step, event)?;
            }
            Answer::Resolve => {
                for item in 0..self.steps[step].parts.len() {
                    let part = PartId {
                        item: self.plan.steps[step].for_each.as_ref().map(|_| count(item)),
                        step: id.clone(),
                    };
                    if !matches!(self.steps[step].parts[item].state, PartState::Completed { .. }) {
                        self.change_part(&part, at, event)?;
                    }
                }
                self.complete(step);
                if let (true, Event::QuestionAnswered { result: Some(result), .. }) =
                    (self.steps[step].parts.is_empty(), event)
                {
                    self.steps[step].results = result.value().cloned();
                }
            }
            Answer::Skip => {
                self.gave_up = true;
                self.settle_all(skipped, Stage::Skipped)?;
                self.settle(step, Stage::Skipped);
            }
            Answer::Continue => {
                self.settle_all(skipped, Stage::Skipped)?;
                self.settle(step, Stage::Failed);
            }
            Answer::Stop => self.stop_forward(at, false, EndedAs::Failed),
            Answer::Compensate => self.stop_forward(at, true, EndedAs::Failed),
            Answer::Replan => self.replanning = true,
        }
        Ok(())
    }

    /// Failed parts are tried again, and items that were held back get their turn.
    fn revive(&mut self, at: Timestamp, step: usize, event: &Event) -> Applied {
        if self.steps[step].parts.is_empty() {
            self.steps[step].stage = Stage::Waiting;
            self.steps[step].failure = None;
            self.offer(step);
            return Ok(());
        }
        self.steps[step].stage = Stage::Begun;
        self.steps[step].halted = false;
        let unsettled = self.steps[step]
            .parts
            .iter()
            .filter(|part| matches!(part.state, PartState::Failed { .. } | PartState::Pending));
        self.steps[step].unsettled = count(unsettled.count());
        for item in 0..self.steps[step].parts.len() {
            let place = PartAt::new(step, item);
            match self.steps[step].parts[item].state {
                PartState::Failed { .. } | PartState::Compensated { .. } => {
                    let id = self.name(place);
                    self.change_part(&id, at, event)?;
                }
                PartState::Pending if count(item) < self.steps[step].next_item => {
                    self.agenda.ready.insert(self.turn(place));
                }
                _ => {}
            }
        }
        self.feed(step);
        Ok(())
    }

    /// Nothing new begins. What certainly has no effect is cancelled; what is under way comes to rest by itself.
    fn stop_forward(&mut self, at: Timestamp, undo: bool, outcome: EndedAs) {
        if matches!(self.phase, Phase::Pending | Phase::Forward) {
            self.phase = Phase::Draining { undo, outcome };
        }
        self.over = None;
        self.replanning = false;
        for step in 0..self.steps.len() {
            match self.steps[step].stage {
                Stage::Waiting => {
                    // A step that is done anew may have an effect from before.
                    self.steps[step].stage = Stage::Begun;
                    if self.steps[step].parts.is_empty() {
                        self.settle(step, Stage::Cancelled);
                    }
                    for item in 0..self.steps[step].parts.len() {
                        self.stop_part(at, PartAt::new(step, item));
                    }
                }
                Stage::Failing | Stage::Held => self.settle(step, Stage::Failed),
                Stage::Begun => {
                    self.halt(step);
                    for item in 0..self.steps[step].parts.len() {
                        self.stop_part(at, PartAt::new(step, item));
                    }
                    self.conclude(step);
                }
                Stage::Completed | Stage::Failed | Stage::Skipped | Stage::Cancelled => {}
            }
        }
        self.agenda.ready.clear();
    }

    fn stop_part(&mut self, at: Timestamp, place: PartAt) {
        let part = &self.steps[place.step()].parts[place.item()];
        let state = match &part.state {
            PartState::Asking { .. } | PartState::Approved { .. } => PartState::Cancelled,
            PartState::BackingOff { side: Side::Do | Side::Fallback, .. } if part.effect.is_none() => {
                PartState::Cancelled
            }
            PartState::BackingOff { side: Side::Do | Side::Fallback, .. } => PartState::Failed {
                failure: Failure::new(
                    Category::Cancelled,
                    "stopped between two attempts; it may have taken effect",
                ),
            },
            PartState::Pending if self.plan.steps[place.step()].for_each.is_none() => PartState::Cancelled,
            _ => return,
        };
        let mut part = part.clone();
        part.state = state;
        part.approved = None;
        part.ended_at.get_or_insert(at);
        self.replace(place, part);
    }

    /// After a kill nobody waits for what is under way: a read is dropped, everything else stays unknown.
    fn abandon(&mut self) {
        for step in 0..self.steps.len() {
            for item in 0..self.steps[step].parts.len() {
                let place = PartAt::new(step, item);
                let mut part = self.steps[step].parts[item].clone();
                let unknown = |side, attempt| PartState::InDoubt {
                    side,
                    attempt,
                    probing: Probing::Exhausted {
                        reason: "the execution was killed while it was under way".into(),
                    },
                };
                part.state = match &part.state {
                    PartState::Running(attempt) if self.is_read(step, attempt.side) => PartState::Cancelled,
                    PartState::Running(attempt) => {
                        if attempt.side != Side::Undo {
                            part.effect.get_or_insert(Effect { side: attempt.side, certain: false });
                        }
                        unknown(attempt.side, attempt.number)
                    }
                    PartState::InDoubt { side, attempt, .. } => unknown(*side, *attempt),
                    PartState::CompensationFailed { failure, .. } => {
                        PartState::CompensationFailed { failure: failure.clone(), accepted: true }
                    }
                    PartState::BackingOff { side: Side::Undo, .. } => PartState::CompensationFailed {
                        failure: Failure::new(
                            Category::Cancelled,
                            "the execution was killed before it was undone",
                        ),
                        accepted: true,
                    },
                    _ => continue,
                };
                self.replace(place, part);
            }
        }
    }

    fn is_read(&self, step: usize, side: Side) -> bool {
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

    fn start_undo(&mut self, parts: &[PartId], whole: bool) -> Applied {
        self.expect_phase(
            matches!(self.phase, Phase::Draining { undo: true, .. } | Phase::Ended { .. }),
            "it is not the time to undo",
        )?;
        let mut scope = Vec::with_capacity(parts.len());
        for id in parts {
            let place = self.locate(id).ok_or_else(|| format!("part {id} is not in the plan"))?;
            let part = self.part_at(place).ok_or_else(|| format!("part {id} is not there"))?;
            if part.effect.is_none() || part.is_active() {
                return Err(format!("part {id} has nothing to undo"));
            }
            scope.push((place, part.rest));
        }
        self.undo = Some(Undo::new(&self.plan.0.graph, &scope, whole));
        self.phase = Phase::Undoing;
        Ok(())
    }

    /// Whether a part is run by the server, and so lost when the server is.
    pub(crate) fn runs_here(&self, at: PartAt) -> bool {
        let by = match &self.steps[at.step()].parts[at.item()].state {
            PartState::Running(attempt) => attempt.by,
            PartState::InDoubt { probing: Probing::Running(attempt), .. } => attempt.by,
            _ => return false,
        };
        by == Driver::Server
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

fn count(n: usize) -> u32 {
    u32::try_from(n).expect("plans and fan-outs are far smaller")
}
