//! After a run: compares the journal with the actual effects, and recovers from every prefix of the journal.

use super::append::called_for;
use super::monitor::JournalMonitor;
use super::simulated_run::SimulatedRun;
use rutter_core::actor::Actor;
use rutter_core::execution::Execution;
use rutter_core::execution::input::{DecisionContext, ExecutionInput};
use rutter_core::execution::part::PartState;
use rutter_core::execution::step::StepStage;
use rutter_core::execution::view::PendingQuestion;
use rutter_core::journal::event::{CallSide, Event, ExecutionEnding};
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
            if *done > 1 + undone {
                return Err(format!("{part} took effect {done} times, undone {undone} times"));
            }
        }
        for (part, undone) in &self.world.undone {
            let asked = self.monitor.undo_asked.get(part).copied().unwrap_or(0);
            if *undone > asked {
                return Err(format!("{part} was undone {undone} times, requested {asked} times"));
            }
        }
        for part in &self.world.standing {
            if self.execution.part(part).is_none_or(|part| part.effect.is_none() && !part.is_active()) {
                return Err(format!("{part} took effect, and the execution does not know it"));
            }
        }
        self.inspect_end()
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
            if stage == StepStage::Completed && parts.into_iter().any(|(_, part)| !done(&part.state)) {
                return Err(format!("step {step:?} is completed and one of its parts is not"));
            }
            if outcome == ExecutionEnding::Completed && !matches!(stage, StepStage::Completed | StepStage::Skipped) {
                return Err(format!("completed, and step {step:?} is {stage:?}"));
            }
        }
        if outcome == ExecutionEnding::Compensated {
            for part in &self.world.standing {
                let undoable = self.execution.undo_scope(None).contains(part);
                if undoable || !view.remains.contains(part) {
                    return Err(format!("compensated, and {part} still has its effect"));
                }
            }
        }
        Ok(())
    }

    /// Recovers from every prefix of the journal.
    pub(super) fn recover_every_prefix(&mut self) -> Result<(), String> {
        let records = &self.journal.records;
        let mut execution = Execution::open(self.identity.clone(), &records[0]).map_err(|error| error.to_string())?;
        let inputs = match &records[0].event {
            Event::ExecutionOpened { inputs, .. } => inputs.value().cloned().unwrap_or_default(),
            _ => Arc::default(),
        };
        let mut monitor = JournalMonitor::new(execution.plan().clone(), &inputs);
        for record in &records[1..] {
            execution.apply(record).map_err(|error| error.to_string())?;
            monitor.observe(record, execution.plan())?;
            self.tally.prefixes += 1;
            let (mut recovered, mut watch) = (execution.clone(), monitor.clone());
            let moment = DecisionContext { now: record.at.plus(Millis(1)), room: 2 };
            let decision = recovered.decide(&Actor::rutter(), ExecutionInput::Recovered, moment);
            let decision = decision.map_err(|error| format!("a prefix does not recover: {error}"))?;
            called_for(&decision).map_err(|why| format!("recovering a prefix: {why}"))?;
            for record in &decision.records {
                watch.observe(record, recovered.plan()).map_err(|why| format!("recovering a prefix: {why}"))?;
            }
            let answer = decision.calls.iter().try_for_each(|call| watch.talk.called(call));
            answer
                .and_then(|()| watch.talk.gone_on_with(&decision.calls))
                .map_err(|why| format!("recovering a prefix: {why}"))?;
        }
        Ok(())
    }
}
