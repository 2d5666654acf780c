//! After a run: compares the journal with the actual effects, and recovers from every prefix of the journal.

use super::append::called_for;
use super::monitor::JournalMonitor;
use super::simulated_run::{SimulatedCapacity, SimulatedRun};
use rutter_core::actor::Actor;
use rutter_core::execution::input::{DecisionTerms, ExecutionInput};
use rutter_core::execution::part::{PartState, StepPart};
use rutter_core::execution::step::StepStage;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::execution::{Execution, ExecutionPhase};
use rutter_core::id::PartId;
use rutter_core::journal::event::{CallSide, Event, ExecutionEnding};
use rutter_core::plan::Driver;
use rutter_core::policy::window::LimitWindows;
use rutter_core::time::Millis;
use std::sync::Arc;

impl SimulatedRun<'_> {
    /// Compares the records with the actual effects.
    pub(super) fn inspect(&mut self) -> Result<(), String> {
        self.tally.entries = self.journal.records.len() as u64;
        self.tally.calls = self.world.calls;
        let read_back = self.journal.load()?.records;
        let replayed = Execution::replay(self.identity.clone(), &read_back).map_err(|error| error.to_string())?;
        if replayed != self.execution {
            return Err("the journal read back does not give the live state".into());
        }
        for (part, done) in &self.world.done {
            let undone = self.monitor.undone.get(part).copied().unwrap_or(0);
            let late = self.world.late.as_ref().map_or(0, |late| late.surprises_of(part, false));
            if *done > 1 + undone + late {
                return Err(format!("{part} took effect {done} times, undone {undone} times"));
            }
        }
        for (part, undone) in &self.world.undone {
            let asked = self.monitor.undo_asked.get(part).copied().unwrap_or(0);
            let late = self.world.late.as_ref().map_or(0, |late| late.surprises_of(part, true));
            if *undone > asked + late {
                return Err(format!("{part} was undone {undone} times, requested {asked} times"));
            }
        }
        for part in self.world.standing.iter().filter(|part| !self.surprised(part)) {
            if self.execution.part(part).is_none_or(|part| part.effect.is_none() && !part.is_active()) {
                return Err(format!("{part} took effect, and the execution does not know it"));
            }
        }
        self.monitor.effects.settled()?;
        self.inspect_effects()?;
        self.inspect_items()?;
        self.inspect_end()
    }

    /// Whether an effect came when nobody could know of it.
    fn surprised(&self, part: &PartId) -> bool {
        self.world.late.as_ref().is_some_and(|late| late.has_surprised(part))
    }

    /// Every effect that is on record, and was not undone, is part of what the execution knows, asks and shows.
    fn inspect_effects(&self) -> Result<(), String> {
        let (view, outcome) = (self.execution.view(), self.execution.outcome());
        let wanted = matches!(outcome, Some(ExecutionEnding::Completed | ExecutionEnding::Partial));
        for (id, effects) in self.monitor.effects.standing() {
            let part = self.execution.part(id).ok_or_else(|| format!("{id} took effect and is not there"))?;
            let aside = part.aside.as_ref().is_some_and(|own| own.effect.is_some());
            let known = part.second.len() + usize::from(part.effect.is_some()) + usize::from(aside);
            if effects > known {
                return Err(format!("{id} is on record with {effects} effects, and the execution knows {known}"));
            }
            let asks = |ask: &PendingQuestion| matches!(ask, PendingQuestion::SecondEffect { part, .. } if part == id);
            let is_failed =
                matches!(part.state, PartState::Failed { .. }) && part.effect.is_some_and(|own| own.certain);
            let is_asked = view.questions.iter().any(asks);
            if outcome.is_some() && is_failed && self.monitor.effects.is_late_only(id) && !is_asked {
                return Err(format!("{id} failed and took effect after all, and nobody is asked"));
            }
            let is_wanted = wanted && effects == 1 && matches!(part.state, PartState::Completed { .. });
            let is_accepted = wanted && self.monitor.effects.is_accepted(id);
            if outcome.is_none() || is_wanted || is_accepted {
                continue;
            }
            if !view.remains.contains(id) {
                return Err(format!(
                    "{id} has {effects} effects, ended {outcome:?}, and nothing says that they remain"
                ));
            }
            if wanted && effects > 1 && !is_asked {
                return Err(format!("{id} took effect {effects} times, and nobody is asked"));
            }
        }
        Ok(())
    }

    /// A fan-out that completed has the result of every item that did, at its place.
    fn inspect_items(&self) -> Result<(), String> {
        for (step, stage) in self.execution.stages().filter(|(_, stage)| *stage == StepStage::Completed) {
            let list = self.execution.result_of(step.as_str());
            let items = self.execution.parts().filter(|(id, _)| id.step == *step && id.item.is_some());
            for (id, part) in items {
                let (at, done) =
                    (id.item.unwrap_or_default() as usize, matches!(part.state, PartState::Completed { .. }));
                let own = part.result.as_ref().and_then(|result| result.value().map(|value| &**value));
                let listed = list.and_then(|list| list.get(at)).filter(|value| !value.is_null());
                if done && own != listed && own.is_some_and(|own| !own.is_null()) {
                    return Err(format!("{id} completed, and the list of {stage:?} {step:?} lacks its result"));
                }
            }
        }
        Ok(())
    }

    fn inspect_end(&self) -> Result<(), String> {
        let view = self.execution.view();
        if self.execution.brief().is_empty() {
            return Err("an empty brief".into());
        }
        let Some(outcome) = self.execution.outcome() else { return Ok(()) };
        for (part, state) in self.execution.parts() {
            if state.is_active() && !matches!(state.state, PartState::InDoubt { .. }) {
                return Err(format!("{part} is {:?} after the end", state.state));
            }
        }
        for (step, stage) in self.execution.stages() {
            if !stage.is_settled() && !view.questions.iter().any(|ask| matches!(ask, PendingQuestion::Doubt { .. })) {
                return Err(format!("step {step:?} is {stage:?} after the end"));
            }
            let done = |part: &PartState| {
                matches!(
                    part,
                    PartState::Completed { .. }
                        | PartState::Compensated { .. }
                        | PartState::CompensationFailed { .. }
                        | PartState::InDoubt { side: CallSide::Undo, .. }
                )
            };
            let parts = self.execution.parts().filter(|(id, _)| id.step == *step);
            let lacks = |(id, part): (PartId, &StepPart)| {
                let tolerated = id.item.is_some() && matches!(part.state, PartState::Failed { .. });
                !done(&part.state) && !tolerated
            };
            if stage == StepStage::Completed && parts.into_iter().any(lacks) {
                return Err(format!("step {step:?} is completed and one of its parts is not"));
            }
            if outcome == ExecutionEnding::Completed && !matches!(stage, StepStage::Completed | StepStage::Skipped) {
                return Err(format!("completed, and step {step:?} is {stage:?}"));
            }
        }
        if outcome == ExecutionEnding::Compensated {
            for part in self.world.standing.iter().filter(|part| !self.surprised(part)) {
                let undoable = self.execution.undo_scope(None).contains(part);
                if undoable || !view.remains.contains(part) {
                    return Err(format!("compensated, and {part} still has its effect"));
                }
            }
        }
        Ok(())
    }

    /// A due wake-up must lead to something as soon as there is capacity.
    pub(super) fn woken_for_something(&mut self) -> Result<(), String> {
        if self.execution.wake_at().is_none_or(|when| when > self.now) {
            return Ok(());
        }
        let (mut ahead, mut windows) = (self.execution.clone(), self.windows.clone());
        let mut room = SimulatedCapacity { room: 64, windows: &mut windows, identity: &self.identity };
        let terms = DecisionTerms { now: self.now, room: &mut room, policy: &self.policy };
        match ahead.decide_within(&Actor::rutter(), ExecutionInput::Wake, terms) {
            Ok(decision) if decision.records.is_empty() => Err("woke up for nothing".into()),
            Ok(_) => Ok(()),
            Err(error) => Err(format!("waking up failed: {error}")),
        }
    }

    /// An execution that stops does not wait for an agent that is known to be silent.
    pub(super) fn waits_for_no_silent_agent(&self) -> Result<(), String> {
        let stops = matches!(self.execution.phase(), ExecutionPhase::Draining { .. });
        let by_agent = |part: &StepPart| part.running().is_some_and(|attempt| attempt.by == Driver::Agent);
        let waits = || self.execution.parts().find(|(_, part)| by_agent(part));
        match self.monitor.is_agent_silent().then(waits).flatten().filter(|_| stops) {
            Some((part, _)) => Err(format!("{part} of a silent agent is open although the execution stops")),
            None => Ok(()),
        }
    }

    /// With capacity for everything, a step that could start is not kept waiting by doubts.
    pub(super) fn kept_waiting_by_no_doubt(&mut self) -> Result<(), String> {
        let goes_on = *self.execution.phase() == ExecutionPhase::Forward && self.execution.driver() == Driver::Server;
        if !goes_on || !self.monitor.has_doubts() {
            return Ok(());
        }
        let (mut ahead, mut windows) = (self.execution.clone(), self.windows.clone());
        let mut room = SimulatedCapacity { room: 64, windows: &mut windows, identity: &self.identity };
        let terms = DecisionTerms { now: self.now, room: &mut room, policy: &self.policy };
        let decided = ahead.decide_within(&Actor::rutter(), ExecutionInput::Wake, terms);
        let decision = decided.map_err(|error| format!("waking up failed: {error}"))?;
        let mut monitor = self.monitor.clone();
        decision.records.iter().try_for_each(|record| monitor.observe(record, ahead.plan()))?;
        monitor.check_places()
    }

    /// Recovers from every prefix of the journal.
    pub(super) fn recover_every_prefix(&mut self) -> Result<(), String> {
        let records = &self.journal.records;
        let mut execution = Execution::open(self.identity.clone(), &records[0]).map_err(|error| error.to_string())?;
        let inputs = match &records[0].event {
            Event::ExecutionOpened { inputs, .. } => inputs.value().cloned().unwrap_or_default(),
            _ => Arc::default(),
        };
        let mut monitor = JournalMonitor::new(execution.plan().clone(), &inputs, self.first_policy.clone());
        let mut windows = LimitWindows::default();
        for (at, record) in records.iter().enumerate().skip(1) {
            if let Some((_, policy)) = self.later_policy.as_ref().filter(|(since, _)| *since == at) {
                monitor.change_rules(policy.clone());
            }
            execution.count_call(&self.policy, record, &mut windows);
            execution.apply(record).map_err(|error| error.to_string())?;
            monitor.observe(record, execution.plan())?;
            self.tally.prefixes += 1;
            let (mut recovered, mut watch) = (execution.clone(), monitor.clone());
            watch.effects.is_cut_off();
            watch.is_cut_off();
            let mut room = SimulatedCapacity { room: 2, windows: &mut windows.clone(), identity: &self.identity };
            let now = record.at.plus(Millis(1));
            let terms = DecisionTerms { now, room: &mut room, policy: &self.policy };
            let decision = recovered.decide_within(&Actor::rutter(), ExecutionInput::Recovered, terms);
            let decision = decision.map_err(|error| format!("a prefix does not recover: {error}"))?;
            called_for(&decision).map_err(|why| format!("recovering a prefix: {why}"))?;
            for record in &decision.records {
                watch.observe(record, recovered.plan()).map_err(|why| format!("recovering a prefix: {why}"))?;
            }
            let answer = decision.calls.iter().try_for_each(|call| watch.talk.called(call));
            // While held, a call with a ticket waits for the end of the hold.
            let resumed = |()| match recovered.hold() {
                Some(_) => Ok(()),
                None => watch.talk.gone_on_with(&decision.calls),
            };
            answer.and_then(resumed).map_err(|why| format!("recovering a prefix: {why}"))?;
        }
        Ok(())
    }
}
