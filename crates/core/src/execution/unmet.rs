//! What a plan wanted and its execution did not deliver.

use super::Execution;
use super::agenda::PartPosition;
use super::part::PartState;
use super::step::{SkipCause, StepStage, StepState};
use super::weaken::{WrittenCall, own_calls, written};
use crate::id::PartId;
use crate::plan::Plan;
use crate::text::{quoted, spelled};
use serde::Serialize;
use std::cell::LazyCell;
use std::fmt;

/// The length of a quoted message or reason.
const QUOTE_CHARS_MAX: usize = 120;

/// A step of the plan, or an item of one, that was not delivered. A step that its own condition skipped is not unmet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnmetStep {
    pub step: PartId,
    pub kind: UnmetKind,
    /// Why, on one line; text of tools and people is quoted. May be empty.
    pub reason: String,
    /// Of a dropped step: the revision that dropped it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UnmetKind {
    /// A new revision no longer has it.
    Dropped,
    Failed,
    /// It was left out by decision, or because it needs the result of a step that has none.
    Skipped,
    Cancelled,
    /// It was done, and its effect was taken back.
    Undone,
    /// The execution ended before the step did.
    Unfinished,
}

/// `charge (dropped by revision 2, after it failed: unavailable: "connection refused")`
impl fmt::Display for UnmetStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UnmetStep { step, kind, reason, revision } = self;
        let by = revision.map(|revision| format!(" by revision {revision}")).unwrap_or_default();
        let separator = match (reason.is_empty(), kind) {
            (true, _) => "",
            (false, UnmetKind::Dropped) => ", ",
            (false, _) => ": ",
        };
        write!(f, "{step} ({}{by}{separator}{reason})", spelled(kind))
    }
}

/// A step that a revision left out before it was completed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DroppedStep {
    pub(super) revision: u32,
    reason: String,
    /// It was skipped by decision or undone before.
    pub(super) set_aside: Option<&'static str>,
    /// The calls that it would have made, if it was skipped by decision.
    pub(super) skipped: Vec<WrittenCall>,
    /// A call of it would have had an effect of its own.
    pub(super) has_own_effect: bool,
}

impl Execution {
    /// Dropped steps first, then those of the present plan in its order.
    pub(super) fn unmet(&self) -> Vec<UnmetStep> {
        let dropped = self.dropped.iter().map(|(step, dropped)| UnmetStep {
            step: PartId::whole(step.clone()),
            kind: UnmetKind::Dropped,
            reason: dropped.reason.clone(),
            revision: Some(dropped.revision),
        });
        let mut unmet: Vec<UnmetStep> = dropped.collect();
        let stopped_because = LazyCell::new(|| self.stopped_because().unwrap_or_default());
        for (step, state) in self.steps.iter().enumerate().filter(|(_, state)| !state.retired) {
            let id = || PartId::whole(self.plan.steps[step].id.clone());
            let whole = |kind, reason| UnmetStep { step: id(), kind, reason, revision: None };
            match state.stage {
                StepStage::Completed if state.is_undone() => unmet.push(whole(UnmetKind::Undone, String::new())),
                StepStage::Completed => unmet.extend(self.failed_items(step, false)),
                StepStage::Skipped if self.is_left_out(step) => {}
                StepStage::Skipped => unmet.push(whole(UnmetKind::Skipped, skip_reason(state))),
                StepStage::Cancelled => {
                    let reason = Some(skip_reason(state)).filter(|reason| !reason.is_empty());
                    unmet.push(whole(UnmetKind::Cancelled, reason.unwrap_or_else(|| stopped_because.clone())));
                }
                StepStage::Failed => unmet.extend(self.failed_step(step)),
                StepStage::Failing | StepStage::Held if self.outcome().is_some() => {
                    unmet.extend(self.failed_step(step));
                }
                StepStage::Waiting | StepStage::Begun if self.outcome().is_some() => {
                    unmet.push(whole(UnmetKind::Unfinished, state.status().replace('_', " ")));
                }
                StepStage::Waiting | StepStage::Begun | StepStage::Failing | StepStage::Held => {}
            }
        }
        unmet
    }

    /// Steps whose effect was taken back; of a fan-out that was undone in part the items.
    pub(super) fn undone(&self) -> Vec<PartId> {
        let of_step = |(step, state): (usize, &StepState)| -> Vec<PartId> {
            if state.status() == "compensated" {
                return vec![PartId::whole(self.plan.steps[step].id.clone())];
            }
            let parts = state.parts.iter().enumerate();
            let undone = parts.filter(|(_, part)| matches!(part.state, PartState::Compensated { .. }));
            undone.map(|(item, _)| self.name(PartPosition::new(step, item))).collect()
        };
        self.steps.iter().enumerate().flat_map(of_step).collect()
    }

    /// Whether the plan itself left the step out: by its condition, or because it needs the result of such steps only.
    fn is_left_out(&self, step: usize) -> bool {
        let state = &self.steps[step];
        if state.skip_cause != Some(SkipCause::NoResult) {
            return is_intended(state);
        }
        let needs = self.plan.graph.needs[step].iter().map(|need| need.step);
        let mut without = needs.filter(|need| self.steps[*need].stage != StepStage::Completed).peekable();
        without.peek().is_some() && without.all(|need| self.is_left_out(need))
    }

    /// Items of a fan-out that failed, or were skipped by decision; with those that never ran, if there is no more to come.
    fn failed_items(&self, step: usize, with_rest: bool) -> impl Iterator<Item = UnmetStep> {
        let parts = self.steps[step].parts.iter().enumerate();
        parts.filter_map(move |(item, part)| {
            let (kind, reason) = match (&part.state, part.accepted, part.accepted_because.is_empty()) {
                (PartState::Failed { failure }, false, _) => (UnmetKind::Failed, failure.quoted(QUOTE_CHARS_MAX)),
                (PartState::Failed { .. }, true, true) => (UnmetKind::Skipped, String::new()),
                (PartState::Failed { .. }, true, false) => {
                    (UnmetKind::Skipped, quoted(&part.accepted_because, QUOTE_CHARS_MAX))
                }
                (PartState::Pending, ..) if with_rest => (UnmetKind::Unfinished, "it did not run".to_owned()),
                (PartState::Cancelled, ..) if with_rest => (UnmetKind::Cancelled, String::new()),
                _ => return None,
            };
            Some(UnmetStep { step: self.name(PartPosition::new(step, item)), kind, reason, revision: None })
        })
    }

    /// A failed step; of a fan-out the items that failed, if there are any.
    fn failed_step(&self, step: usize) -> Vec<UnmetStep> {
        let planned = &self.plan.steps[step];
        let items: Vec<UnmetStep> = match planned.for_each {
            Some(_) => self.failed_items(step, true).collect(),
            None => Vec::new(),
        };
        if !items.is_empty() {
            return items;
        }
        let reason = failure(&self.steps[step]);
        vec![UnmetStep { step: PartId::whole(planned.id.clone()), kind: UnmetKind::Failed, reason, revision: None }]
    }

    /// Remembers the steps that a new revision does not have and that were not completed.
    pub(super) fn remember_dropped(&mut self, new: &Plan, revision: u32) {
        self.dropped.retain(|step, _| new.find(step.as_str()).is_none());
        for (step, state) in self.plan.0.steps.iter().zip(&self.steps) {
            let is_delivered = state.status() == "completed" || is_intended(state);
            if !is_delivered && !state.retired && new.find(step.id.as_str()).is_none() {
                let dropped = DroppedStep {
                    revision,
                    reason: reason_before(state),
                    set_aside: state.set_aside(),
                    skipped: match state.skip_cause {
                        Some(SkipCause::Decision) => own_calls(step).map(written).collect(),
                        _ => Vec::new(),
                    },
                    has_own_effect: own_calls(step).any(|call| !call.is_repeatable()),
                };
                self.dropped.insert(step.id.clone(), dropped);
            }
        }
    }
}

/// Whether the plan itself left the step out.
fn is_intended(state: &StepState) -> bool {
    let by_plan = matches!(state.skip_cause, Some(SkipCause::Condition | SkipCause::OtherBranch));
    state.stage == StepStage::Skipped && by_plan
}

/// A reason of Rutter names steps of the plan; that of a decision is the text of a person or an agent.
fn skip_reason(state: &StepState) -> String {
    match (state.skip_reason.as_deref().unwrap_or_default(), state.skip_cause) {
        ("", _) => String::new(),
        (reason, Some(SkipCause::Decision)) => quoted(reason, QUOTE_CHARS_MAX),
        (reason, _) => reason.to_owned(),
    }
}

fn failure(state: &StepState) -> String {
    state.first_failure().map(|failure| failure.quoted(QUOTE_CHARS_MAX)).unwrap_or_default()
}

/// What a step had come to before it was dropped.
fn reason_before(state: &StepState) -> String {
    let with = |what: &str, why: String| match why.is_empty() {
        true => what.to_owned(),
        false => format!("{what}: {why}"),
    };
    match state.stage {
        StepStage::Failing | StepStage::Failed | StepStage::Held => with("after it failed", failure(state)),
        StepStage::Skipped => with("after it was skipped", skip_reason(state)),
        StepStage::Cancelled => with("after it was cancelled", skip_reason(state)),
        StepStage::Completed => "after it was undone".to_owned(),
        StepStage::Waiting => "before it started".to_owned(),
        StepStage::Begun => "before it ended".to_owned(),
    }
}
