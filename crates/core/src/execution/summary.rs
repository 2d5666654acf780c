//! Why an execution is where it is, and its state in one line: the same words in every answer, list, notice and log.
//!
//! Text of tools, agents and people is quoted, on one line and cut: it is data.

use super::agenda::PartPosition;
use super::call_words::name_of_call;
use super::part::{PartState, StepPart};
use super::step::StepStage;
use super::unmet::{UnmetKind, UnmetStep};
use super::view::{ExecutionSnapshot, ExecutionStatus, ServerWaitSnapshot, StepSnapshot};
use super::{Execution, ExecutionPhase};
use crate::id::PartId;
use crate::journal::event::{CallSide, ExecutionEnding};
use crate::text::{cut, listed, quoted};
use crate::time::calendar::utc_seconds;
use crate::tool::ToolFailure;
use std::fmt;

/// The length of a cause, and of a quotation in it.
pub(super) const CAUSE_CHARS_MAX: usize = 300;
const QUOTE_CHARS_MAX: usize = 200;
/// Steps that are named in each list of a summary.
const NAMED_MAX: usize = 5;
/// Calls that wait for their servers, each with its reason.
const WAITS_MAX: usize = 2;
/// Unmet steps that are named, each with its reason.
const UNMET_MAX: usize = 3;

impl Execution {
    /// Why it did not complete or is being stopped, or what it waits for; at most 300 characters.
    ///
    /// What stopped it comes first, then the first failure, then why it was undone or what was left out.
    pub fn cause(&self) -> Option<String> {
        let cause = match self.phase {
            ExecutionPhase::Ended { outcome: ExecutionEnding::Completed } => None,
            ExecutionPhase::Pending | ExecutionPhase::Forward => {
                let waits = matches!(self.status(), ExecutionStatus::Waiting | ExecutionStatus::Paused);
                waits.then(|| self.questions().first().map(ToString::to_string)).flatten()
            }
            _ => self.stop_cause(),
        };
        cause.map(|cause| cut(&cause, CAUSE_CHARS_MAX))
    }

    fn stop_cause(&self) -> Option<String> {
        self.stopped_because().or_else(|| self.unmet().first().map(ToString::to_string))
    }

    /// Why the rest of it is not done: a limit, a person's word, or what failed.
    pub(super) fn stopped_because(&self) -> Option<String> {
        let of_person = |reason: &String| (!reason.is_empty()).then(|| quoted(reason, QUOTE_CHARS_MAX));
        let limit = self.stop_limit.or(self.over).map(super::time_limits::limit_reached);
        let failed = || self.failures().first().map(ToString::to_string);
        limit.or_else(|| of_person(&self.stop_reason)).or_else(failed).or_else(|| of_person(&self.undo_reason))
    }
}

/// A step or an item that failed, that could not be undone, or of which it is not known whether it happened.
#[derive(Clone, Debug, PartialEq)]
pub struct PartFailure {
    pub part: PartId,
    pub kind: PartFailureKind,
    pub failure: ToolFailure,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartFailureKind {
    Failed,
    /// Undoing it failed.
    NotUndone,
    /// A call of it may have happened.
    InDoubt(CallSide),
}

/// `charge failed (unavailable: "connection refused")`
impl fmt::Display for PartFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PartFailure { part, kind, failure } = self;
        let failure = failure.quoted(QUOTE_CHARS_MAX);
        match kind {
            PartFailureKind::Failed => write!(f, "{part} failed ({failure})"),
            PartFailureKind::NotUndone => write!(f, "undoing {part} failed ({failure})"),
            PartFailureKind::InDoubt(side) => write!(f, "{} may have happened ({failure})", name_of_call(part, *side)),
        }
    }
}

impl Execution {
    /// What failed and was not tolerated or skipped, what could not be undone, and what is in doubt; in plan order,
    /// what failed first.
    pub fn failures(&self) -> Vec<PartFailure> {
        let mut failures: Vec<PartFailure> = (0..self.steps.len()).flat_map(|step| self.failures_of(step)).collect();
        failures.sort_by_key(|failure| failure.kind != PartFailureKind::Failed);
        failures
    }

    pub(super) fn failures_of(&self, step: usize) -> Vec<PartFailure> {
        let state = &self.steps[step];
        let has_failed = matches!(state.stage, StepStage::Failing | StepStage::Held | StepStage::Failed);
        let of_part = |(item, part): (usize, &StepPart)| {
            let (kind, failure) = match &part.state {
                PartState::Failed { failure } if has_failed && !part.accepted => (PartFailureKind::Failed, failure),
                PartState::CompensationFailed { failure, .. } => (PartFailureKind::NotUndone, failure),
                PartState::InDoubt { side, failure: Some(failure), .. } => (PartFailureKind::InDoubt(*side), failure),
                _ => return None,
            };
            Some(PartFailure { part: self.name(PartPosition::new(step, item)), kind, failure: failure.clone() })
        };
        let mut failures: Vec<PartFailure> = state.parts.iter().enumerate().filter_map(of_part).collect();
        let is_named = failures.iter().any(|failure| failure.kind == PartFailureKind::Failed);
        let remembered = state.failed_with.as_ref().filter(|_| state.stage == StepStage::Failed);
        if let Some(failure) = state.failure.as_ref().or(remembered).filter(|_| has_failed && !is_named) {
            let part = PartId::whole(self.plan.steps[step].id.clone());
            failures.insert(0, PartFailure { part, kind: PartFailureKind::Failed, failure: failure.clone() });
        }
        failures
    }
}

/// `charge waits until 2026-11-19 12:00:30Z for its server (unavailable: "connection refused")`
impl fmt::Display for ServerWaitSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ServerWaitSnapshot { part, until, failure } = self;
        write!(f, "{part} waits until {} for its server ({})", utc_seconds(*until), failure.quoted(QUOTE_CHARS_MAX))
    }
}

impl ExecutionSnapshot {
    /// The state in one line: `failed: charge failed (unavailable: "connection refused"), 2 of 5 steps completed;
    /// undone: reserve; remains: mail`.
    pub fn summary(&self) -> String {
        let question = self.questions.first().map(|question| cut(&question.to_string(), CAUSE_CHARS_MAX));
        let mut text = self.status.as_str().to_owned();
        if let Some(cause) = self.cause.as_ref().filter(|cause| question.as_ref() != Some(cause)) {
            text.push_str(&format!(": {cause}"));
        }
        let word = if self.status == ExecutionStatus::Completed { "" } else { " completed" };
        let steps = if self.total == 1 { "step" } else { "steps" };
        text.push_str(&format!(", {} of {} {steps}{word}", self.completed, self.total));
        let mut add = |label: &str, names: String| {
            if !names.is_empty() {
                text.push_str(&format!("; {label}{names}"));
            }
        };
        add("", question.unwrap_or_default());
        match self.questions.len() {
            0 | 1 => {}
            2 => add("", "1 more question".to_owned()),
            count => add("", format!("{} more questions", count - 1)),
        }
        if self.status.has_ended() {
            self.add_ending(&mut add);
        } else {
            let waits = self.steps.iter().filter_map(|step| step.wait.as_ref());
            add("", listed(&waits.collect::<Vec<_>>(), WAITS_MAX));
        }
        text
    }

    /// Steps that the plan itself left out, with the reason: `mail (the condition is false)`. Other skipped steps are unmet.
    pub fn skipped_as_planned(&self) -> Vec<String> {
        let is_unmet = |step: &StepSnapshot| self.unmet.iter().any(|unmet| unmet.step.step == step.id);
        let skipped = self.steps.iter().filter(|step| step.status == "skipped" && !is_unmet(step));
        let named = skipped.map(|step| match &step.skip_reason {
            Some(reason) if !reason.is_empty() => format!("{} ({})", step.id, cut(reason, QUOTE_CHARS_MAX)),
            _ => step.id.to_string(),
        });
        named.collect()
    }

    /// What an end leaves behind.
    fn add_ending(&self, add: &mut impl FnMut(&str, String)) {
        for (kind, label) in [(PartFailureKind::Failed, "failed: "), (PartFailureKind::NotUndone, "undoing failed: ")] {
            let parts: Vec<&PartFailure> = self.failures.iter().filter(|failure| failure.kind == kind).collect();
            let is_cause = parts.len() == 1 && self.cause.as_ref() == Some(&parts[0].to_string());
            if !is_cause {
                add(label, listed(&parts.iter().map(|failure| &failure.part).collect::<Vec<_>>(), NAMED_MAX));
            }
        }
        add("undone: ", listed(&self.undone, NAMED_MAX));
        add("remains: ", listed(&self.remains, NAMED_MAX));
        add("skipped: ", listed(&self.skipped_as_planned(), NAMED_MAX));
        // What failed or was undone is named already, an item that was tolerated is not.
        let has_failed = |unmet: &UnmetStep| self.failures.iter().any(|failure| failure.part == unmet.step);
        let is_named = |unmet: &UnmetStep| match unmet.kind {
            UnmetKind::Failed => unmet.step.item.is_none() || has_failed(unmet),
            UnmetKind::Undone => true,
            _ => false,
        };
        // The cause of the whole is not said again for each of them.
        let is_cause = |unmet: &UnmetStep| self.cause.as_ref().is_some_and(|cause| *cause == unmet.reason);
        let brief = |unmet: &UnmetStep| match is_cause(unmet) {
            true => UnmetStep { reason: String::new(), ..unmet.clone() },
            false => unmet.clone(),
        };
        let unmet: Vec<UnmetStep> = self.unmet.iter().filter(|unmet| !is_named(unmet)).map(brief).collect();
        add("unmet: ", listed(&unmet, UNMET_MAX));
    }
}
