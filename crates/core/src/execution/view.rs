//! What people and agents see: status, steps, open questions. Derived, never stored.

use super::agenda::{PartAt, Timer};
use super::part::{Part, PartState, Probing};
use super::step::{Stage, StepState};
use super::{Execution, Phase};
use crate::hash::Hash;
use crate::id::{ExecutionId, PartId, StepId, ToolName};
use crate::journal::event::{Answer, Deviation, EndedAs, Limit, Question, Side};
use crate::plan::Driver;
use crate::time::Timestamp;
use crate::tool::Failure;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Pending,
    Running,
    Paused,
    /// For a person or an agent to say something.
    Waiting,
    Replanning,
    Compensating,
    Completed,
    Partial,
    Failed,
    Cancelled,
    Compensated,
}

impl Status {
    pub const ALL: [Status; 11] = [
        Status::Pending,
        Status::Running,
        Status::Paused,
        Status::Waiting,
        Status::Replanning,
        Status::Compensating,
        Status::Completed,
        Status::Partial,
        Status::Failed,
        Status::Cancelled,
        Status::Compensated,
    ];

    pub fn parse(text: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == text)
    }

    pub fn has_ended(self) -> bool {
        match self {
            Status::Completed
            | Status::Partial
            | Status::Failed
            | Status::Cancelled
            | Status::Compensated => true,
            Status::Pending
            | Status::Running
            | Status::Paused
            | Status::Waiting
            | Status::Replanning
            | Status::Compensating => false,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Status::Pending => "pending",
            Status::Running => "running",
            Status::Paused => "paused",
            Status::Waiting => "waiting",
            Status::Replanning => "replanning",
            Status::Compensating => "compensating",
            Status::Completed => "completed",
            Status::Partial => "partial",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
            Status::Compensated => "compensated",
        }
    }
}

/// Something only somebody else can say.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ask {
    Approval {
        part: PartId,
        call: Hash,
        tool: ToolName,
        parameters: Option<Arc<Value>>,
        expires_at: Timestamp,
    },
    Doubt {
        part: PartId,
        side: Side,
        attempt: u32,
        reason: String,
    },
    Failure {
        step: StepId,
        failures: Vec<(PartId, Failure)>,
        answers: &'static [Answer],
    },
    Compensation {
        part: PartId,
        failure: Failure,
        answers: &'static [Answer],
    },
    Limit {
        limit: Limit,
        answers: &'static [Answer],
    },
    Drift {
        tool: ToolName,
        pinned: Hash,
        found: Hash,
    },
    /// A tool wants to know something in the middle of a call. The words are the tool's and not to be trusted.
    Tool {
        part: PartId,
        side: Side,
        attempt: u32,
        message: String,
        /// JSON Schema of a flat object; `None` once it was erased.
        schema: Option<Arc<Value>>,
        /// The plan wants a person's yes for this step, so only a person may answer.
        person_only: bool,
    },
}

#[derive(Clone, Debug, Serialize)]
pub struct View {
    pub execution: ExecutionId,
    pub plan: String,
    pub goal: String,
    pub plan_hash: Hash,
    pub revision: u32,
    pub driver: Driver,
    pub status: Status,
    pub settled: usize,
    pub total: usize,
    pub calls: u64,
    pub cost_micros: u64,
    pub opened_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub last_at: Timestamp,
    pub wake_at: Option<Timestamp>,
    pub steps: Vec<StepView>,
    pub questions: Vec<Ask>,
    pub deviations: Vec<DeviationView>,
    /// Parts whose effect is, or may be, still there although the execution did not complete.
    pub remains: Vec<PartId>,
}

#[derive(Clone, Debug, Serialize)]
pub struct DeviationView {
    pub kind: Deviation,
    pub step: Option<StepId>,
    pub description: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct StepView {
    pub id: StepId,
    pub tool: ToolName,
    pub status: &'static str,
    pub by_hand: bool,
    pub attempts: u32,
    /// Of a fan-out: parts at rest, and all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<(usize, usize)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// It has, or may have, taken effect.
    pub touched: bool,
    pub began_at: Option<Timestamp>,
    pub ended_at: Option<Timestamp>,
}

impl Execution {
    pub fn status(&self) -> Status {
        match self.phase {
            Phase::Ended { outcome: EndedAs::Completed } => Status::Completed,
            Phase::Ended { outcome: EndedAs::Partial } => Status::Partial,
            Phase::Ended { outcome: EndedAs::Failed } => Status::Failed,
            Phase::Ended { outcome: EndedAs::Cancelled } | Phase::Killed => Status::Cancelled,
            Phase::Ended { outcome: EndedAs::Compensated } => Status::Compensated,
            Phase::Pending => Status::Pending,
            Phase::Forward | Phase::Draining { .. } | Phase::Undoing if self.paused => Status::Paused,
            Phase::Forward if self.replanning => Status::Replanning,
            Phase::Forward | Phase::Draining { .. } | Phase::Undoing if self.is_waiting() => Status::Waiting,
            Phase::Undoing => Status::Compensating,
            Phase::Forward | Phase::Draining { .. } => Status::Running,
        }
    }

    /// Nothing moves until somebody answers.
    fn is_waiting(&self) -> bool {
        let agenda = &self.agenda;
        let calls_back = agenda.running.len() > agenda.inquiring.len() || !agenda.to_judge.is_empty();
        let retries = [Timer::Retry, Timer::RetryUndo, Timer::RetryProbe];
        let retries =
            retries.into_iter().any(|timer| self.minds(timer) && self.timers_of(timer).next().is_some());
        !calls_back && !retries && !self.wants_room() && self.has_questions()
    }

    /// Whether a call would be made at once if there were room for one.
    pub fn wants_room(&self) -> bool {
        let begins = self.has_place() && self.agenda.ready.iter().any(|turn| self.is_free(turn.part));
        let in_turn = |at: &PartAt| self.steps[at.step()].unmet == 0 && !self.is_drifted(*at, Side::Do);
        let approved = self.has_line() && self.agenda.approved.iter().any(in_turn);
        let undoing = self.undo.as_ref().is_some_and(|undo| {
            let has_place = self.agenda.busy_undoing < self.plan.max_parallel as usize;
            has_place && undo.ready.first().is_some_and(|(_, at)| !self.is_drifted(*at, Side::Undo))
        });
        let probes = self.agenda.to_probe.iter().any(|at| !self.is_drifted(*at, Side::Probe));
        let ended = matches!(self.phase, Phase::Pending | Phase::Killed | Phase::Ended { .. });
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

    /// Everything that waits for somebody, in a fixed order.
    pub fn questions(&self) -> Vec<Ask> {
        let agenda = &self.agenda;
        let doubts = agenda.doubts.iter().filter(|at| self.needs_a_word(**at));
        let mut asks: Vec<Ask> = doubts.filter_map(|at| self.ask_doubt(*at)).collect();
        if self.outcome().is_some() {
            return asks;
        }
        asks.extend(agenda.asking.iter().filter_map(|at| self.ask_approval(*at)));
        asks.extend(agenda.inquiring.iter().filter_map(|at| self.ask_of_tool(*at)));
        asks.extend(agenda.held.iter().map(|step| self.ask_failure(*step)));
        asks.extend(agenda.stuck.iter().filter_map(|at| self.ask_compensation(*at)));
        asks.extend(self.over.map(|limit| Ask::Limit { limit, answers: Question::LIMIT_ANSWERS }));
        asks.extend(self.drifted.iter().map(|(tool, found)| Ask::Drift {
            tool: tool.clone(),
            pinned: self.definition(tool),
            found: *found,
        }));
        asks
    }

    /// A doubt nobody is finding out about: no probe can tell, or an agent drives and Rutter calls nothing.
    fn needs_a_word(&self, at: PartAt) -> bool {
        let Some(PartState::InDoubt { probing, .. }) = self.part_at(at).map(|part| &part.state) else {
            return false;
        };
        match probing {
            Probing::Exhausted { .. } => true,
            Probing::NotYet | Probing::BackingOff { .. } => {
                self.driver == Driver::Agent || self.is_drifted(at, Side::Probe)
            }
            Probing::Running(_) | Probing::Answered(_) => false,
        }
    }

    fn ask_approval(&self, at: PartAt) -> Option<Ask> {
        let PartState::Asking { side, call, expires_at } = self.part_at(at)?.state else { return None };
        let prepared = self.prepare(at, side).ok().filter(|prepared| prepared.hash == call);
        let tool = self.call_of(at, side)?.tool.clone();
        let parameters = prepared.map(|prepared| prepared.parameters);
        Some(Ask::Approval { part: self.name(at), call, tool, parameters, expires_at })
    }

    fn ask_doubt(&self, at: PartAt) -> Option<Ask> {
        let PartState::InDoubt { side, attempt, probing } = &self.part_at(at)?.state else { return None };
        let reason = match probing {
            Probing::Exhausted { reason } => reason.clone(),
            _ => "nobody has looked yet, and Rutter may not".to_owned(),
        };
        Some(Ask::Doubt { part: self.name(at), side: *side, attempt: *attempt, reason })
    }

    fn ask_failure(&self, step: usize) -> Ask {
        let state = &self.steps[step];
        let failed = |(item, part): (usize, &Part)| match &part.state {
            PartState::Failed { failure } => Some((self.name(PartAt::new(step, item)), failure.clone())),
            _ => None,
        };
        let mut failures: Vec<_> = state.parts.iter().enumerate().filter_map(failed).collect();
        let id = self.plan.steps[step].id.clone();
        failures.extend(state.failure.clone().map(|failure| (PartId::whole(id.clone()), failure)));
        Ask::Failure { step: id, failures, answers: Question::FAILURE_ANSWERS }
    }

    fn ask_compensation(&self, at: PartAt) -> Option<Ask> {
        let PartState::CompensationFailed { failure, .. } = &self.part_at(at)?.state else { return None };
        let answers = Question::COMPENSATION_ANSWERS;
        Some(Ask::Compensation { part: self.name(at), failure: failure.clone(), answers })
    }

    pub fn view(&self) -> View {
        View {
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
            wake_at: self.wake_at(),
            steps: (0..self.steps.len()).map(|step| self.view_step(step)).collect(),
            questions: self.questions(),
            deviations: self
                .deviations
                .iter()
                .map(|(kind, step, description)| DeviationView {
                    kind: *kind,
                    step: step.clone(),
                    description: description.clone(),
                })
                .collect(),
            remains: self.outcome().map(|outcome| self.remaining(outcome)).unwrap_or_default(),
        }
    }

    fn view_step(&self, step: usize) -> StepView {
        let (planned, state) = (&self.plan.steps[step], &self.steps[step]);
        let failure = state.parts.iter().find_map(|part| match &part.state {
            PartState::Failed { failure } | PartState::CompensationFailed { failure, .. } => {
                Some(failure.clone())
            }
            _ => None,
        });
        StepView {
            id: planned.id.clone(),
            tool: planned.call.tool.clone(),
            status: state.status(),
            by_hand: state.parts.iter().any(|part| {
                matches!(
                    part.state,
                    PartState::Completed { by_hand: true } | PartState::Compensated { by_hand: true }
                )
            }),
            attempts: state
                .parts
                .iter()
                .map(|part| part.attempts_of(Side::Do) + part.attempts_of(Side::Fallback))
                .sum(),
            items: planned.for_each.is_some().then(|| items(state)),
            failure: failure.or_else(|| state.failure.clone()),
            touched: state.parts.iter().any(|part| part.effect.is_some()),
            began_at: state.parts.iter().filter_map(|part| part.began_at).min(),
            ended_at: state
                .parts
                .iter()
                .filter_map(|part| part.ended_at)
                .max()
                .filter(|_| state.stage.is_settled()),
        }
    }
}

fn items(state: &StepState) -> (usize, usize) {
    let at_rest =
        state.parts.iter().filter(|part| part.state != PartState::Pending && !part.is_active()).count();
    (at_rest, state.parts.len())
}

impl Execution {
    /// Where each step stands, for tests and for those that compare executions.
    pub fn stages(&self) -> impl Iterator<Item = (&StepId, Stage)> {
        self.plan.0.steps.iter().map(|step| &step.id).zip(self.steps.iter().map(|state| state.stage))
    }
}
