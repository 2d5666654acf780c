//! Coming to a stop: what has not begun is cancelled, what is under way comes to rest, undoing begins.

use super::agenda::PartAt;
use super::apply::Applied;
use super::part::{Effect, PartState, Probing};
use super::step::Stage;
use super::undo::Undo;
use super::{Execution, Phase};
use crate::id::PartId;
use crate::journal::event::{EndedAs, Side};
use crate::time::Timestamp;
use crate::tool::{Category, Failure};
use std::collections::BTreeMap;

impl Execution {
    /// Nothing new begins. What certainly has no effect is cancelled; what is under way comes to rest by itself.
    pub(super) fn stop_forward(&mut self, at: Timestamp, undo: bool, outcome: EndedAs) {
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
        for state in &mut self.steps {
            state.queued = 0;
        }
    }

    pub(super) fn stop_part(&mut self, at: Timestamp, place: PartAt) {
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

    /// After a kill nobody waits for what is under way: a read is dropped, everything else stays unknown.
    pub(super) fn abandon(&mut self) {
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

    pub(super) fn start_undo(&mut self, parts: &[PartId], whole: bool) -> Applied {
        let mut scope = BTreeMap::new();
        for id in parts {
            let place = self.locate(id).ok_or_else(|| format!("part {id} is not in the plan"))?;
            let part = self.part_at(place).ok_or_else(|| format!("part {id} is not there"))?;
            if part.effect.is_none() || part.is_active() || scope.insert(place, part.rest).is_some() {
                return Err(format!("part {id} has nothing to undo, or is named twice"));
            }
        }
        for place in scope.keys() {
            let mut part = self.steps[place.step()].parts[place.item()].clone();
            if let PartState::CompensationFailed { accepted: accepted @ false, .. } = &mut part.state {
                // It failed in an undoing that is over; this one tries anew.
                *accepted = true;
                self.replace(*place, part);
            }
        }
        let scope: Vec<(PartAt, u64)> = scope.into_iter().collect();
        self.undo = Some(Undo::new(&self.plan.0.graph, &scope, whole));
        self.phase = Phase::Undoing;
        Ok(())
    }
}
