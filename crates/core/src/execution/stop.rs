//! Stopping: cancels parts that have not started, lets open attempts finish, starts undoing.

use super::agenda::PartPosition;
use super::apply::ApplyResult;
use super::part::{PartEffect, PartState, ProbeProgress};
use super::step::StepStage;
use super::undo::UndoProgress;
use super::{Execution, ExecutionPhase};
use crate::id::PartId;
use crate::journal::event::{CallSide, ExecutionEnding};
use crate::time::Timestamp;
use crate::tool::{FailureCategory, ToolFailure};
use std::collections::BTreeMap;

impl Execution {
    /// Starts nothing new. Parts that certainly had no effect are cancelled; open attempts finish by themselves.
    pub(super) fn stop_forward(&mut self, at: Timestamp, undo: bool, outcome: ExecutionEnding) {
        if matches!(self.phase, ExecutionPhase::Pending | ExecutionPhase::Forward) {
            self.phase = ExecutionPhase::Draining { undo, outcome };
        }
        self.over = None;
        self.replanning = false;
        self.proposal = None;
        for step in 0..self.steps.len() {
            match self.steps[step].stage {
                StepStage::Waiting => {
                    // A step that runs again may have an effect from before.
                    self.steps[step].stage = StepStage::Begun;
                    if self.steps[step].parts.is_empty() {
                        self.settle(step, StepStage::Cancelled);
                    }
                    for item in 0..self.steps[step].parts.len() {
                        self.stop_part(at, PartPosition::new(step, item));
                    }
                }
                StepStage::Failing | StepStage::Held => {
                    // An agent may have begun items while a person was asked about the step.
                    for item in 0..self.steps[step].parts.len() {
                        self.stop_part(at, PartPosition::new(step, item));
                    }
                    self.settle(step, StepStage::Failed);
                }
                StepStage::Begun => {
                    self.halt(step);
                    for item in 0..self.steps[step].parts.len() {
                        self.stop_part(at, PartPosition::new(step, item));
                    }
                    self.conclude(step);
                }
                StepStage::Completed | StepStage::Failed | StepStage::Skipped | StepStage::Cancelled => {}
            }
        }
        self.agenda.ready.clear();
        for state in &mut self.steps {
            state.queued = 0;
        }
    }

    pub(super) fn stop_part(&mut self, at: Timestamp, place: PartPosition) {
        let part = &self.steps[place.step()].parts[place.item()];
        let held_back = part.effect.is_none() && self.plan.steps[place.step()].for_each.is_some();
        if part.state == PartState::Pending && held_back {
            return;
        }
        let mut part = part.clone();
        if !part.stop() {
            return;
        }
        part.ended_at.get_or_insert(at);
        self.replace(place, part);
    }

    /// After a kill, open attempts are not awaited: a read is dropped, everything else stays unknown.
    pub(super) fn abandon(&mut self, at: Timestamp) {
        for step in 0..self.steps.len() {
            for item in 0..self.steps[step].parts.len() {
                let place = PartPosition::new(step, item);
                let mut part = self.steps[step].parts[item].clone();
                let unknown = |side, attempt, since, failure| PartState::InDoubt {
                    side,
                    attempt,
                    since,
                    failure,
                    probing: ProbeProgress::Exhausted {
                        reason: "the execution was killed while it was under way".into(),
                    },
                };
                part.state = match &part.state {
                    PartState::Running(attempt) if self.is_read(step, attempt.side) => PartState::Cancelled,
                    PartState::Running(attempt) => {
                        if attempt.side != CallSide::Undo {
                            let (side, attempt) = (attempt.side, attempt.number);
                            part.effect.get_or_insert(PartEffect { side, certain: false, attempt });
                        }
                        unknown(attempt.side, attempt.number, at, None)
                    }
                    PartState::InDoubt { side, attempt, since, failure, .. } => {
                        unknown(*side, *attempt, *since, failure.clone())
                    }
                    PartState::CompensationFailed { failure, .. } => {
                        PartState::CompensationFailed { failure: failure.clone(), accepted: true }
                    }
                    PartState::BackingOff { side: CallSide::Undo, .. }
                    | PartState::Asking { side: CallSide::Undo, .. }
                    | PartState::Approved { side: CallSide::Undo, .. } => PartState::CompensationFailed {
                        failure: ToolFailure::new(
                            FailureCategory::Cancelled,
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

    pub(super) fn start_undo(&mut self, parts: &[PartId], whole: bool) -> ApplyResult {
        let mut scope = BTreeMap::new();
        for id in parts {
            let place = self.locate(id).ok_or_else(|| format!("part {id} is not in the plan"))?;
            let part = self.part_at(place).ok_or_else(|| format!("part {id} is not there"))?;
            let has_effect = part.effect.is_some() || !part.second.is_empty();
            if !has_effect || part.is_active() || scope.insert(place, part.rest).is_some() {
                return Err(format!("part {id} has nothing to undo, or is named twice"));
            }
        }
        for place in scope.keys() {
            let mut part = self.steps[place.step()].parts[place.item()].clone();
            if let PartState::CompensationFailed { accepted: accepted @ false, .. } = &mut part.state {
                // It failed in an earlier undoing; this one tries again.
                *accepted = true;
                self.replace(*place, part);
            }
            self.choose_effect(*place)?;
        }
        let only_second = scope.keys().all(|place| self.part_at(*place).is_some_and(|part| part.only_second));
        let restores = self.outcome().filter(|_| only_second && !whole);
        let scope: Vec<(PartPosition, u64)> = scope.into_iter().collect();
        let mut undo = UndoProgress::new(&self.plan.0.graph, &scope, whole);
        undo.restores = restores;
        for (at, _) in &scope {
            let part = &self.steps[at.step()].parts[at.item()];
            if let Some(until) = self.undoable_from(*at, part) {
                undo.wait(*at, until);
            }
        }
        self.undo = Some(undo);
        self.proposal = None;
        self.phase = ExecutionPhase::Undoing;
        Ok(())
    }
}
