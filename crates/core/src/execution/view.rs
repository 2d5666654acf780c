//! Snapshots for people and agents: status, steps, open questions. Derived, never stored.

use super::agenda::{PartPosition, TimerKind};
use super::part::{PartState, ProbeProgress, StepPart};
use super::step::{StepStage, StepState};
use super::{Execution, ExecutionPhase};
use crate::hash::Hash;
use crate::id::{ExecutionId, PartId, StepId, ToolName};
use crate::journal::event::{CallSide, Deviation, ExecutionEnding, ExecutionLimit, Question, QuestionAnswer};
use crate::plan::Driver;
use crate::text::spelled;
use crate::time::Timestamp;
use crate::tool::ToolFailure;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStatus {
    Pending,
    Running,
    Paused,
    /// Waits for an answer of a person or an agent.
    Waiting,
    Replanning,
    Compensating,
    Completed,
    Partial,
    Failed,
    Cancelled,
    Compensated,
}

impl ExecutionStatus {
    pub const ALL: [ExecutionStatus; 11] = [
        ExecutionStatus::Pending,
        ExecutionStatus::Running,
        ExecutionStatus::Paused,
        ExecutionStatus::Waiting,
        ExecutionStatus::Replanning,
        ExecutionStatus::Compensating,
        ExecutionStatus::Completed,
        ExecutionStatus::Partial,
        ExecutionStatus::Failed,
        ExecutionStatus::Cancelled,
        ExecutionStatus::Compensated,
    ];

    pub fn parse(text: &str) -> Option<ExecutionStatus> {
        ExecutionStatus::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// The status that a person or program named, or why there is none.
    pub fn named(text: &str) -> Result<ExecutionStatus, String> {
        let known = || ExecutionStatus::ALL.map(ExecutionStatus::as_str).join(", ");
        ExecutionStatus::parse(text).ok_or_else(|| format!("there is no status {text:?}; there are {}", known()))
    }

    pub fn has_ended(self) -> bool {
        match self {
            ExecutionStatus::Completed
            | ExecutionStatus::Partial
            | ExecutionStatus::Failed
            | ExecutionStatus::Cancelled
            | ExecutionStatus::Compensated => true,
            ExecutionStatus::Pending
            | ExecutionStatus::Running
            | ExecutionStatus::Paused
            | ExecutionStatus::Waiting
            | ExecutionStatus::Replanning
            | ExecutionStatus::Compensating => false,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            ExecutionStatus::Pending => "pending",
            ExecutionStatus::Running => "running",
            ExecutionStatus::Paused => "paused",
            ExecutionStatus::Waiting => "waiting",
            ExecutionStatus::Replanning => "replanning",
            ExecutionStatus::Compensating => "compensating",
            ExecutionStatus::Completed => "completed",
            ExecutionStatus::Partial => "partial",
            ExecutionStatus::Failed => "failed",
            ExecutionStatus::Cancelled => "cancelled",
            ExecutionStatus::Compensated => "compensated",
        }
    }
}

/// A question that a person or an agent must answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PendingQuestion {
    Approval {
        part: PartId,
        call: Hash,
        tool: ToolName,
        parameters: Option<Arc<Value>>,
        expires_at: Timestamp,
    },
    Doubt {
        part: PartId,
        side: CallSide,
        attempt: u32,
        reason: String,
    },
    Failure {
        step: StepId,
        failures: Vec<(PartId, ToolFailure)>,
        answers: &'static [QuestionAnswer],
    },
    Compensation {
        part: PartId,
        failure: ToolFailure,
        answers: &'static [QuestionAnswer],
    },
    Limit {
        limit: ExecutionLimit,
        answers: &'static [QuestionAnswer],
    },
    Drift {
        tool: ToolName,
        pinned: Hash,
        found: Hash,
    },
    /// A tool asks a question during a call. The message is the tool's and is untrusted.
    Tool {
        part: PartId,
        side: CallSide,
        attempt: u32,
        message: String,
        /// JSON Schema of a flat object; `None` once it is erased.
        schema: Option<Arc<Value>>,
        /// The step needs a person's approval, so only a person may answer.
        person_only: bool,
    },
}

#[derive(Clone, Debug, Serialize)]
pub struct ExecutionSnapshot {
    pub execution: ExecutionId,
    pub plan: String,
    pub goal: String,
    pub plan_hash: Hash,
    pub revision: u32,
    pub driver: Driver,
    pub status: ExecutionStatus,
    pub settled: usize,
    pub total: usize,
    pub calls: u64,
    pub cost_micros: u64,
    pub opened_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub last_at: Timestamp,
    /// The time of the entry that ended it; later entries, such as a late answer, do not move it.
    pub ended_at: Option<Timestamp>,
    pub wake_at: Option<Timestamp>,
    pub steps: Vec<StepSnapshot>,
    pub questions: Vec<PendingQuestion>,
    pub deviations: Vec<DeviationSnapshot>,
    /// Parts whose effect remains, or may remain, although the execution did not complete.
    pub remains: Vec<PartId>,
    /// Why the execution did not complete, or is being stopped.
    pub cause: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct DeviationSnapshot {
    pub kind: Deviation,
    pub step: Option<StepId>,
    pub description: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct StepSnapshot {
    pub id: StepId,
    pub tool: ToolName,
    pub status: &'static str,
    pub by_hand: bool,
    pub attempts: u32,
    /// Of a fan-out: the number of settled parts, and of all parts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<(usize, usize)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<ToolFailure>,
    /// Of a skipped or cancelled step: why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skip_reason: Option<String>,
    /// It has taken effect, or may have.
    pub touched: bool,
    pub began_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

impl Execution {
    pub fn status(&self) -> ExecutionStatus {
        match self.phase {
            ExecutionPhase::Ended { outcome: ExecutionEnding::Completed } => ExecutionStatus::Completed,
            ExecutionPhase::Ended { outcome: ExecutionEnding::Partial } => ExecutionStatus::Partial,
            ExecutionPhase::Ended { outcome: ExecutionEnding::Failed } => ExecutionStatus::Failed,
            ExecutionPhase::Ended { outcome: ExecutionEnding::Cancelled } | ExecutionPhase::Killed => {
                ExecutionStatus::Cancelled
            }
            ExecutionPhase::Ended { outcome: ExecutionEnding::Compensated } => ExecutionStatus::Compensated,
            ExecutionPhase::Pending => ExecutionStatus::Pending,
            ExecutionPhase::Forward | ExecutionPhase::Draining { .. } | ExecutionPhase::Undoing if self.paused => {
                ExecutionStatus::Paused
            }
            ExecutionPhase::Forward if self.replanning => ExecutionStatus::Replanning,
            ExecutionPhase::Forward | ExecutionPhase::Draining { .. } | ExecutionPhase::Undoing
                if self.is_waiting() =>
            {
                ExecutionStatus::Waiting
            }
            ExecutionPhase::Undoing => ExecutionStatus::Compensating,
            ExecutionPhase::Forward | ExecutionPhase::Draining { .. } => ExecutionStatus::Running,
        }
    }

    /// Whether nothing proceeds until a question is answered.
    fn is_waiting(&self) -> bool {
        let agenda = &self.agenda;
        let calls_back = agenda.running.len() > agenda.inquiring.len() || !agenda.to_evaluate.is_empty();
        let retries = [TimerKind::Retry, TimerKind::RetryUndo, TimerKind::RetryProbe];
        let retries = retries.into_iter().any(|timer| self.minds(timer) && self.timers_of(timer).next().is_some());
        !calls_back && !retries && !self.wants_room() && self.has_questions()
    }

    /// Whether a call would start at once if there were capacity for it.
    pub fn wants_room(&self) -> bool {
        let begins = self.has_place() && self.agenda.ready.iter().any(|turn| self.is_free(turn.part));
        let in_turn = |at: &PartPosition| self.steps[at.step()].unmet == 0 && !self.is_drifted(*at, CallSide::Do);
        let approved = self.has_line() && self.agenda.approved.iter().any(in_turn);
        let undoing = self.undo.as_ref().is_some_and(|undo| {
            let has_place = self.agenda.busy_undoing < self.plan.max_parallel as usize;
            has_place && undo.ready.first().is_some_and(|(_, at)| !self.is_drifted(*at, CallSide::Undo))
        });
        let probes = self.agenda.to_probe.iter().any(|at| !self.is_drifted(*at, CallSide::Probe));
        let ended =
            matches!(self.phase, ExecutionPhase::Pending | ExecutionPhase::Killed | ExecutionPhase::Ended { .. });
        (self.may_begin() && (begins || approved)) || (!ended && self.may_call() && (undoing || probes))
    }

    fn has_questions(&self) -> bool {
        let agenda = &self.agenda;
        let doubts = agenda.doubts.iter().any(|at| self.needs_a_word(*at));
        doubts
            || !agenda.asking.is_empty()
            || !agenda.inquiring.is_empty()
            || !agenda.stuck.is_empty()
            || !agenda.held.is_empty()
            || self.over.is_some()
            || !self.drifted.is_empty()
    }

    /// All open questions, in a fixed order.
    pub fn questions(&self) -> Vec<PendingQuestion> {
        let agenda = &self.agenda;
        let doubts = agenda.doubts.iter().filter(|at| self.needs_a_word(**at));
        let mut asks: Vec<PendingQuestion> = doubts.filter_map(|at| self.ask_doubt(*at)).collect();
        if self.outcome().is_some() {
            return asks;
        }
        asks.extend(agenda.asking.iter().filter_map(|at| self.ask_approval(*at)));
        asks.extend(agenda.inquiring.iter().filter_map(|at| self.ask_of_tool(*at)));
        asks.extend(agenda.held.iter().map(|step| self.ask_failure(*step)));
        asks.extend(agenda.stuck.iter().filter_map(|at| self.ask_compensation(*at)));
        asks.extend(self.over.map(|limit| PendingQuestion::Limit { limit, answers: Question::LIMIT_ANSWERS }));
        asks.extend(self.drifted.iter().map(|(tool, found)| PendingQuestion::Drift {
            tool: tool.clone(),
            pinned: self.definition(tool),
            found: *found,
        }));
        asks
    }

    /// Whether a doubt is not being probed: the probe is exhausted or its tool changed, or an agent drives.
    fn needs_a_word(&self, at: PartPosition) -> bool {
        let Some(PartState::InDoubt { probing, .. }) = self.part_at(at).map(|part| &part.state) else {
            return false;
        };
        match probing {
            ProbeProgress::Exhausted { .. } => true,
            ProbeProgress::NotYet | ProbeProgress::BackingOff { .. } => {
                self.driver == Driver::Agent || self.is_drifted(at, CallSide::Probe)
            }
            ProbeProgress::Running(_) | ProbeProgress::Answered(_) => false,
        }
    }

    fn ask_approval(&self, at: PartPosition) -> Option<PendingQuestion> {
        let PartState::Asking { side, call, expires_at } = self.part_at(at)?.state else { return None };
        let prepared = self.prepare(at, side).ok().filter(|prepared| prepared.hash == call);
        let tool = self.call_of(at, side)?.tool.clone();
        let parameters = prepared.map(|prepared| prepared.parameters);
        Some(PendingQuestion::Approval { part: self.name(at), call, tool, parameters, expires_at })
    }

    fn ask_doubt(&self, at: PartPosition) -> Option<PendingQuestion> {
        let PartState::InDoubt { side, attempt, probing } = &self.part_at(at)?.state else { return None };
        let reason = match probing {
            ProbeProgress::Exhausted { reason } => reason.clone(),
            _ => "it was not probed, and Rutter may not call the probe now".to_owned(),
        };
        Some(PendingQuestion::Doubt { part: self.name(at), side: *side, attempt: *attempt, reason })
    }

    fn ask_failure(&self, step: usize) -> PendingQuestion {
        let state = &self.steps[step];
        let failed = |(item, part): (usize, &StepPart)| match &part.state {
            PartState::Failed { failure } => Some((self.name(PartPosition::new(step, item)), failure.clone())),
            _ => None,
        };
        let mut failures: Vec<_> = state.parts.iter().enumerate().filter_map(failed).collect();
        let id = self.plan.steps[step].id.clone();
        failures.extend(state.failure.clone().map(|failure| (PartId::whole(id.clone()), failure)));
        PendingQuestion::Failure { step: id, failures, answers: Question::FAILURE_ANSWERS }
    }

    fn ask_compensation(&self, at: PartPosition) -> Option<PendingQuestion> {
        let PartState::CompensationFailed { failure, .. } = &self.part_at(at)?.state else { return None };
        let answers = Question::COMPENSATION_ANSWERS;
        Some(PendingQuestion::Compensation { part: self.name(at), failure: failure.clone(), answers })
    }

    pub fn view(&self) -> ExecutionSnapshot {
        ExecutionSnapshot {
            execution: self.identity.execution.clone(),
            plan: self.plan.name.clone(),
            goal: self.plan.goal.clone(),
            plan_hash: self.plan.hash,
            revision: self.revision,
            driver: self.driver,
            status: self.status(),
            settled: self.steps.len() - self.unsettled,
            total: self.steps.len(),
            calls: self.spent.calls,
            cost_micros: self.spent.cost_micros,
            opened_at: self.opened_at,
            started_at: self.started_at,
            last_at: self.last_at,
            ended_at: self.ended_at.filter(|_| self.status().has_ended()),
            wake_at: self.wake_at(),
            steps: (0..self.steps.len()).map(|step| self.view_step(step)).collect(),
            questions: self.questions(),
            deviations: self
                .deviations
                .iter()
                .map(|(kind, step, description)| DeviationSnapshot {
                    kind: *kind,
                    step: step.clone(),
                    description: description.clone(),
                })
                .collect(),
            remains: self.outcome().map(|outcome| self.remaining(outcome)).unwrap_or_default(),
            cause: self.cause(),
        }
    }

    /// The reason it was stopped, or else the first failure.
    fn cause(&self) -> Option<String> {
        match self.phase {
            ExecutionPhase::Pending
            | ExecutionPhase::Forward
            | ExecutionPhase::Ended { outcome: ExecutionEnding::Completed } => return None,
            _ if !self.stop_reason.is_empty() => return Some(self.stop_reason.clone()),
            _ => {}
        }
        let failed = (0..self.steps.len())
            .map(|step| self.view_step(step))
            .find_map(|step| step.failure.map(|failure| format!("{} failed: {failure}", step.id)));
        let limit = self.over.map(|limit| format!("the limit of {} was reached", spelled(&limit)));
        failed.or(limit)
    }

    fn view_step(&self, step: usize) -> StepSnapshot {
        let (planned, state) = (&self.plan.steps[step], &self.steps[step]);
        let failure = state.parts.iter().find_map(|part| match &part.state {
            PartState::Failed { failure } | PartState::CompensationFailed { failure, .. } => Some(failure.clone()),
            _ => None,
        });
        StepSnapshot {
            id: planned.id.clone(),
            tool: planned.call.tool.clone(),
            status: state.status(),
            by_hand: state.parts.iter().any(|part| {
                matches!(part.state, PartState::Completed { by_hand: true } | PartState::Compensated { by_hand: true })
            }),
            attempts: state
                .parts
                .iter()
                .map(|part| part.attempts_of(CallSide::Do) + part.attempts_of(CallSide::Fallback))
                .sum(),
            items: planned.for_each.is_some().then(|| items(state)),
            failure: failure.or_else(|| state.failure.clone()),
            skip_reason: state.skip_reason.as_deref().map(str::to_owned),
            touched: state.parts.iter().any(|part| part.effect.is_some()),
            began_at: state.parts.iter().filter_map(|part| part.began_at).min(),
            ended_at: state.parts.iter().filter_map(|part| part.ended_at).max().filter(|_| state.stage.is_settled()),
        }
    }
}

fn items(state: &StepState) -> (usize, usize) {
    let at_rest = state.parts.iter().filter(|part| part.state != PartState::Pending && !part.is_active()).count();
    (at_rest, state.parts.len())
}

impl Execution {
    /// The stage of each step, for tests and for comparing executions.
    pub fn stages(&self) -> impl Iterator<Item = (&StepId, StepStage)> {
        self.plan.0.steps.iter().map(|step| &step.id).zip(self.steps.iter().map(|state| state.stage))
    }
}
