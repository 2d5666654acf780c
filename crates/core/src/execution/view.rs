//! Snapshots for people and agents: status, steps, open questions. Derived, never stored.

use super::agenda::{PartPosition, TimerKind};
use super::agent_due::DueCompensation;
use super::denied_call::EarlierDenial;
use super::part::{PartState, StepPart};
use super::step::{StepStage, StepState};
use super::summary::PartFailure;
use super::unmet::UnmetStep;
use super::{Execution, ExecutionPhase};
use crate::actor::RequiredProof;
use crate::glob::NamePattern;
use crate::hash::Hash;
use crate::id::{ExecutionId, PartId, StepId, ToolName};
use crate::journal::event::{
    CallSide, Deviation, ExecutionEnding, ExecutionLimit, OverdueTimer, Question, QuestionAnswer,
};
use crate::plan::Driver;
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
        /// How often the call may be sent with this approval, retries included.
        sends: u32,
        /// The rule of the operator's policy that asks, and the people who may approve; any person if none are named.
        #[serde(skip_serializing_if = "Option::is_none")]
        rule: Option<String>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        by: Vec<NamePattern>,
        /// What they must have proved.
        #[serde(skip_serializing_if = "Option::is_none")]
        proof: Option<RequiredProof>,
        /// Who said no to the same call before.
        #[serde(skip_serializing_if = "Option::is_none")]
        denied: Option<EarlierDenial>,
    },
    Doubt {
        part: PartId,
        side: CallSide,
        attempt: u32,
        /// The call that was sent.
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<ToolName>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parameters: Option<Arc<Value>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<Hash>,
        #[serde(skip_serializing_if = "Option::is_none")]
        sent_at: Option<Timestamp>,
        reason: String,
        /// Why its call was closed, if that is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<ToolFailure>,
    },
    Failure {
        step: StepId,
        failures: Vec<(PartId, ToolFailure)>,
        answers: &'static [QuestionAnswer],
        /// What a person must have proved who goes on past it or says that it is done.
        #[serde(skip_serializing_if = "Option::is_none")]
        proof: Option<RequiredProof>,
        /// The answers that are refused from an agent.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        only_people: Vec<QuestionAnswer>,
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
    /// An agent's new plan weakens the present one; a person approves or rejects it.
    Replan {
        plan: Hash,
        revision: u32,
        weakens: Vec<String>,
        /// Everything that it changes, one line each.
        changes: Vec<String>,
        reason: String,
        /// What the person must have proved.
        #[serde(skip_serializing_if = "Option::is_none")]
        proof: Option<RequiredProof>,
    },
    /// A late answer says something else than what was settled: most often that a call took effect beside another one.
    SecondEffect {
        part: PartId,
        surprise: SurpriseKind,
        /// The attempts that were answered late.
        attempts: Vec<u32>,
        effects: Vec<EffectSnapshot>,
        answers: &'static [QuestionAnswer],
    },
    Drift {
        tool: ToolName,
        pinned: Hash,
        found: Hash,
    },
    /// Time stands still until a person resumes the execution.
    Hold {
        reason: String,
        since: Timestamp,
        due: Vec<OverdueTimer>,
        more: u32,
    },
    /// The agent that drives is silent. Besides these answers, the execution can be handed to Rutter or another agent.
    Silence {
        since: Timestamp,
        answers: &'static [QuestionAnswer],
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

/// What came to light with a late answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SurpriseKind {
    /// An effect beside another one.
    Second,
    /// The only effect of a step that had failed.
    Only,
    /// Another result than the one that was given by hand.
    OtherResult,
}

impl SurpriseKind {
    /// Every answer that its question can take.
    pub fn answers(self) -> &'static [QuestionAnswer] {
        match self {
            SurpriseKind::Second => Question::SECOND_EFFECT_ANSWERS,
            SurpriseKind::Only => Question::LATE_EFFECT_ANSWERS,
            SurpriseKind::OtherResult => Question::OTHER_RESULT_ANSWERS,
        }
    }
}

/// An effect of a part, as a question shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EffectSnapshot {
    pub side: CallSide,
    pub attempt: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Arc<Value>>,
    /// `null` if nobody knows it.
    pub result: Option<Arc<Value>>,
    pub is_late: bool,
    /// Its result was given by hand.
    pub by_hand: bool,
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
    /// Steps that are completed and were not undone.
    pub completed: usize,
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
    /// What failed, could not be undone, or is in doubt; not what was tolerated.
    #[serde(skip)]
    pub failures: Vec<PartFailure>,
    /// While an agent drives: the part that is due, and its tool.
    #[serde(skip)]
    pub due: Option<(PartId, ToolName)>,
    /// While an agent drives and the execution is being undone: the compensation that is due.
    #[serde(skip)]
    pub compensation_due: Option<DueCompensation>,
    /// It has ended, and what failed or was cancelled can be taken up again.
    #[serde(skip)]
    pub can_reopen: bool,
    /// A person stopped or undid it, so that only a person takes it up again.
    #[serde(skip)]
    pub ended_by_person: bool,
    pub deviations: Vec<DeviationSnapshot>,
    /// Steps that were compensated; of a fan-out that was undone in part the items.
    pub undone: Vec<PartId>,
    /// Parts whose effect remains, or may remain, although the execution did not complete.
    pub remains: Vec<PartId>,
    /// What the plan and its revisions wanted and the execution did not deliver.
    pub unmet: Vec<UnmetStep>,
    /// Why the execution did not complete, is being stopped, or what it waits for. Text of others is quoted.
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
    /// A call of it waits because its server takes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait: Option<ServerWaitSnapshot>,
    /// It has taken effect, or may have.
    pub touched: bool,
    pub began_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

/// Which call waits for its server, until when, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerWaitSnapshot {
    pub part: PartId,
    pub until: Timestamp,
    pub failure: Arc<ToolFailure>,
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
        let is_silent = self.ask_silence().is_some();
        let ages = self.aging().next().is_some();
        is_silent || (!calls_back && !retries && !ages && !self.wants_room() && self.has_questions())
    }

    /// Whether a call would start at once if there were capacity for it.
    pub fn wants_room(&self) -> bool {
        let begins = self.has_place() && self.agenda.ready.iter().any(|turn| self.is_free(turn.part));
        let in_turn = |at: &PartPosition| self.steps[at.step()].unmet == 0 && !self.is_drifted(*at, CallSide::Do);
        let approved = self.has_line() && self.agenda.approved.iter().any(in_turn);
        let approved_undo = self.phase == ExecutionPhase::Undoing
            && self.agenda.approved.iter().any(|at| !self.is_drifted(*at, CallSide::Undo));
        let undoing = self.undo.as_ref().is_some_and(|undo| {
            self.has_undo_place() && undo.ready_at_once().is_some_and(|at| !self.is_drifted(at, CallSide::Undo))
        });
        let probes = self.agenda.to_probe.iter().any(|at| !self.is_drifted(*at, CallSide::Probe));
        let ended =
            matches!(self.phase, ExecutionPhase::Pending | ExecutionPhase::Killed | ExecutionPhase::Ended { .. });
        (self.may_begin() && (begins || approved))
            || (!ended && self.may_call() && (undoing || approved_undo || probes))
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
            completed: self.steps.iter().filter(|state| state.status() == "completed").count(),
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
            failures: self.failures(),
            due: self.due_to_agent(),
            compensation_due: self.compensation_due(),
            can_reopen: self.can_reopen(),
            ended_by_person: self.ended_by_person,
            deviations: self
                .deviations
                .iter()
                .map(|(kind, step, description)| DeviationSnapshot {
                    kind: *kind,
                    step: step.clone(),
                    description: description.clone(),
                })
                .collect(),
            undone: self.undone(),
            remains: self.outcome().map(|outcome| self.remaining(outcome)).unwrap_or_default(),
            unmet: self.unmet(),
            cause: self.cause(),
        }
    }

    /// Whether nothing of a step goes on before a person has looked at a tool that changed.
    fn waits_for_a_tool(&self, step: usize) -> bool {
        let parts = &self.steps[step].parts;
        let is_stopped = |(item, part): (usize, &StepPart)| {
            let side = match &part.state {
                PartState::Pending => Some(CallSide::Do),
                PartState::BackingOff { side, .. } => Some(*side),
                _ => None,
            };
            side.is_some_and(|side| self.is_drifted(PartPosition::new(step, item), side))
        };
        self.steps[step].stage == StepStage::Begun
            && parts.iter().all(|part| part.running().is_none())
            && parts.iter().enumerate().any(is_stopped)
    }

    /// The call of a step that waits for its server, and goes on first.
    pub(super) fn server_wait(&self, step: usize) -> Option<ServerWaitSnapshot> {
        let waits = self.steps[step].parts.iter().enumerate().filter_map(|(item, part)| {
            let (pause, until) = part.state.awaited_pause()?;
            let part = self.name(PartPosition::new(step, item));
            Some(ServerWaitSnapshot { part, until, failure: Arc::clone(&pause.failure) })
        });
        waits.min_by_key(|wait| wait.until)
    }

    pub(super) fn view_step(&self, step: usize) -> StepSnapshot {
        let (planned, state) = (&self.plan.steps[step], &self.steps[step]);
        StepSnapshot {
            id: planned.id.clone(),
            tool: planned.call.tool.clone(),
            status: if self.waits_for_a_tool(step) { "waiting" } else { state.status() },
            by_hand: state.parts.iter().any(|part| {
                matches!(part.state, PartState::Completed { by_hand: true } | PartState::Compensated { by_hand: true })
            }),
            attempts: state
                .parts
                .iter()
                .map(|part| part.attempts_of(CallSide::Do) + part.attempts_of(CallSide::Fallback))
                .sum(),
            items: planned.for_each.is_some().then(|| items(state)),
            failure: self.failures_of(step).into_iter().next().map(|failed| failed.failure),
            skip_reason: state.skip_reason.as_deref().map(str::to_owned),
            wait: self.server_wait(step),
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
