//! One execution of a plan: its state, and the three functions that work on it.
//!
//! [`Execution::decide`] turns an input into events to record and calls to make.
//! [`Execution::apply`] is the only way state changes, live and in replay. [`Execution::admit`] refuses
//! impossible inputs, and changes nothing. Timers ([`Execution::wake_at`]) and questions
//! ([`Execution::questions`]) are derived from state, so a crash cannot lose them.

pub mod admit;
pub mod agenda;
pub mod agent_due;
pub mod agent_lease;
mod answers;
pub mod apply;
pub mod brief;
mod by_hand;
mod call_digest;
pub mod call_words;
mod calls;
mod claims;
mod correct;
pub mod decide;
mod denial;
pub mod denied_call;
mod follow;
mod forward;
mod gates;
pub mod hold;
pub mod input;
pub mod opening;
pub mod part;
mod prepare;
mod questions;
mod record;
mod reopen;
mod replace;
mod retire;
pub mod row;
mod second;
mod settle;
mod standing;
pub mod step;
mod stop;
pub mod summary;
mod talk;
mod time_limits;
mod undo;
pub mod unmet;
mod unwind;
pub mod view;
mod weaken;

use crate::actor::Actor;
use crate::hash::Hash;
use crate::id::{ExecutionId, PartId, StepId, TenantId, ToolName};
use crate::journal::event::{Deviation, Event, EventRecord, ExecutionEnding, ExecutionLimit};
use crate::journal::payload::EventPayload;
use crate::plan::{Driver, Plan};
use crate::text::first_chars;
use crate::time::{Millis, Timestamp};
use agenda::{ExecutionAgenda, PartPosition};
use denied_call::DeniedCall;
use gates::ApprovalGates;
use hold::ExecutionHold;
use part::StepPart;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use step::StepState;
use undo::UndoProgress;
use unmet::DroppedStep;
use weaken::{PendingReplan, ToolGuard};

/// An execution and its tenant. Part of every idempotency key and of every journal entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecutionIdentity {
    pub tenant: TenantId,
    pub execution: ExecutionId,
}

/// The state of an execution, derived from its journal alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    pub(crate) identity: ExecutionIdentity,
    /// Unchanged by hand-overs and replans, so that idempotency keys are too.
    pub(crate) lineage: String,
    pub(crate) plan: SharedPlan,
    /// The number its plan is saved under. Versions before counted the plans of each execution from one.
    pub(crate) revision: u32,
    pub(crate) replans: u32,
    pub(crate) driver: Driver,
    pub(crate) inputs: EventPayload,
    pub(crate) context: Map<String, Value>,
    pub(crate) phase: ExecutionPhase,
    pub(crate) paused: bool,
    /// Time stands still.
    pub(crate) held: Option<ExecutionHold>,
    /// The agent that drives, its last sign of life, and since when it is silent.
    pub(crate) agent: Option<Actor>,
    pub(crate) agent_seen_at: Option<Timestamp>,
    pub(crate) silent_since: Option<Timestamp>,
    pub(crate) replanning: bool,
    /// A new plan that weakens the old one and waits for a person's approval.
    pub(crate) proposal: Option<PendingReplan>,
    /// The strictest that any revision was about each tool, until a person's plan calls it otherwise.
    pub(crate) guarded: BTreeMap<ToolName, ToolGuard>,
    pub(crate) gates: ApprovalGates,
    /// How many new plans a person rejected since one approved or made one.
    pub(crate) rejections: u32,
    pub(crate) principals: Vec<Actor>,
    /// Calls that a person denied, or that nobody approved in time, by tool and parameters, until a person approves one.
    pub(crate) denied: BTreeMap<Hash, DeniedCall>,
    /// Steps that an agent began without the approval they need, or against the policy, until a person takes over, and
    /// the last entry that says so.
    pub(crate) defied: BTreeMap<StepId, u64>,
    /// A limit that was reached and waits for a decision.
    pub(crate) over: Option<ExecutionLimit>,
    /// How often each limit was raised by its own amount.
    pub(crate) raised: BTreeMap<ExecutionLimit, u32>,
    /// How much time each time limit has besides its own span.
    pub(crate) time_added: BTreeMap<ExecutionLimit, Millis>,
    pub(crate) steps: Vec<StepState>,
    /// The number of steps that are not settled.
    pub(crate) unsettled: usize,
    pub(crate) agenda: ExecutionAgenda,
    pub(crate) undo: Option<UndoProgress>,
    /// Tools whose definition differs from the pinned one, and definitions accepted instead.
    pub(crate) drifted: BTreeMap<ToolName, Hash>,
    pub(crate) accepted: BTreeMap<ToolName, Hash>,
    /// A step of the plan was left out by decision.
    pub(crate) gave_up: bool,
    pub(crate) deviations: Vec<(Deviation, Option<StepId>, String)>,
    pub(crate) spent: SpentBudget,
    pub(crate) entries: u64,
    pub(crate) rests: u64,
    pub(crate) opened_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    /// A person stopped or undid it: only a person takes it up again.
    pub(crate) ended_by_person: bool,
    /// When it was taken up again after its end; deadlines count from here.
    pub(crate) reopened_at: Option<Timestamp>,
    pub(crate) last_at: Timestamp,
    /// When it ended the last time; an undo begins it again.
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) stop_reason: String,
    /// The limit that stopped it.
    pub(crate) stop_limit: Option<ExecutionLimit>,
    /// Why it was compensated the last time.
    pub(crate) undo_reason: String,
    /// Steps that a new revision left out before they were completed.
    pub(crate) dropped: BTreeMap<StepId, DroppedStep>,
}

/// The phase of an execution. Pausing and waiting are not phases: they suspend one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutionPhase {
    Pending,
    Forward,
    /// Nothing new starts; calls in flight finish, then the execution ends or compensates.
    Draining {
        undo: bool,
        outcome: ExecutionEnding,
    },
    Undoing,
    /// Stopped without clean-up; only the final entry is missing.
    Killed,
    Ended {
        outcome: ExecutionEnding,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpentBudget {
    pub calls: u64,
    pub cost_micros: u64,
}

/// A plan that compares by its hash.
#[derive(Clone, Debug)]
pub(crate) struct SharedPlan(pub Arc<Plan>);

impl PartialEq for SharedPlan {
    fn eq(&self, other: &SharedPlan) -> bool {
        self.0.hash == other.0.hash
    }
}

impl Deref for SharedPlan {
    type Target = Plan;
    fn deref(&self) -> &Plan {
        &self.0
    }
}

/// A journal that breaks the rules: a bug in Rutter, or bytes that Rutter did not write.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("event {event} cannot follow: {why}")]
pub struct IllegalEvent {
    pub event: String,
    pub why: String,
}

impl IllegalEvent {
    pub(crate) fn new(event: &Event, why: impl Into<String>) -> IllegalEvent {
        IllegalEvent { event: first_chars(&format!("{event:?}"), 200).to_owned(), why: why.into() }
    }
}

impl Execution {
    /// Rebuilds the state from the journal.
    pub fn replay<'a>(
        identity: ExecutionIdentity,
        records: impl IntoIterator<Item = &'a EventRecord>,
    ) -> Result<Execution, IllegalEvent> {
        let mut records = records.into_iter();
        let first = records
            .next()
            .ok_or(IllegalEvent { event: "none".into(), why: "a journal begins with execution_opened".into() })?;
        let mut execution = Execution::open(identity, first)?;
        for record in records {
            execution.apply(record)?;
        }
        Ok(execution)
    }

    pub fn identity(&self) -> &ExecutionIdentity {
        &self.identity
    }

    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan.0
    }

    pub fn phase(&self) -> &ExecutionPhase {
        &self.phase
    }

    pub fn driver(&self) -> Driver {
        self.driver
    }

    pub fn revision(&self) -> u32 {
        self.revision
    }

    /// The time of the newest entry.
    pub fn last_at(&self) -> Timestamp {
        self.last_at
    }

    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// The inputs it was opened with; `None` once they are erased.
    pub fn inputs(&self) -> Option<&Arc<Value>> {
        self.inputs.value()
    }

    pub fn context(&self) -> &Map<String, Value> {
        &self.context
    }

    pub fn spent(&self) -> SpentBudget {
        self.spent
    }

    pub fn entries(&self) -> u64 {
        self.entries
    }

    pub fn outcome(&self) -> Option<ExecutionEnding> {
        match self.phase {
            ExecutionPhase::Ended { outcome } => Some(outcome),
            _ => None,
        }
    }

    pub fn deviations(&self) -> &[(Deviation, Option<StepId>, String)] {
        &self.deviations
    }

    pub fn part(&self, id: &PartId) -> Option<&StepPart> {
        self.locate(id).and_then(|at| self.part_at(at))
    }

    /// Every part, in plan order.
    pub fn parts(&self) -> impl Iterator<Item = (PartId, &StepPart)> {
        self.steps.iter().enumerate().flat_map(move |(step, state)| {
            state.parts.iter().enumerate().map(move |(item, part)| (self.name(PartPosition::new(step, item)), part))
        })
    }

    pub(crate) fn locate(&self, id: &PartId) -> Option<PartPosition> {
        let step = self.plan.find(id.step.as_str())?;
        match (self.plan.steps[step].for_each.is_some(), id.item) {
            (true, Some(item)) => Some(PartPosition::new(step, item as usize)),
            (false, None) => Some(PartPosition::new(step, 0)),
            (true, None) | (false, Some(_)) => None,
        }
    }

    pub(crate) fn part_at(&self, at: PartPosition) -> Option<&StepPart> {
        self.steps[at.step()].parts.get(at.item())
    }

    pub(crate) fn name(&self, at: PartPosition) -> PartId {
        let step = &self.plan.steps[at.step()];
        PartId { step: step.id.clone(), item: step.for_each.is_some().then_some(at.item) }
    }
}
