//! One execution of a plan: its state, and the three functions that carry everything.
//!
//! [`Execution::decide`] says what follows from an input: facts to record, then calls to make.
//! [`Execution::apply`] is the only way state changes, live and in replay. [`Execution::admit`] refuses
//! what is not possible, and changes nothing. Timers ([`Execution::wake_at`]) and questions
//! ([`Execution::questions`]) are derived from state, so a crash cannot lose them.

pub mod admit;
pub mod agenda;
mod answers;
pub mod apply;
pub mod brief;
pub mod decide;
mod follow;
mod forward;
pub mod input;
pub mod part;
mod prepare;
mod record;
mod retire;
pub mod row;
mod settle;
pub mod step;
mod stop;
mod talk;
mod undo;
mod unwind;
pub mod view;

use crate::hash::Hash;
use crate::id::{ExecutionId, PartId, StepId, TenantId, ToolName};
use crate::journal::event::{Deviation, EndedAs, Event, Limit, Record};
use crate::journal::payload::Payload;
use crate::plan::{Driver, Plan};
use crate::time::Timestamp;
use agenda::{Agenda, PartAt};
use part::Part;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use step::StepState;
use undo::Undo;

/// Whose execution this is. Part of every idempotency key and of every journal entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pub tenant: TenantId,
    pub execution: ExecutionId,
}

/// The state of an execution: what its journal says, and nothing else.
#[derive(Clone, Debug, PartialEq)]
pub struct Execution {
    pub(crate) identity: Identity,
    /// Stays the same over hand-overs and replans, so that keys do.
    pub(crate) lineage: String,
    pub(crate) plan: SharedPlan,
    pub(crate) revision: u32,
    pub(crate) driver: Driver,
    pub(crate) inputs: Payload,
    pub(crate) context: Map<String, Value>,
    pub(crate) phase: Phase,
    pub(crate) paused: bool,
    pub(crate) replanning: bool,
    /// A limit that was reached and waits for somebody's decision.
    pub(crate) over: Option<Limit>,
    /// How often each limit was raised by its own amount.
    pub(crate) raised: BTreeMap<Limit, u32>,
    pub(crate) steps: Vec<StepState>,
    /// Steps that have not come to rest.
    pub(crate) unsettled: usize,
    pub(crate) agenda: Agenda,
    pub(crate) undo: Option<Undo>,
    /// Tools whose definition is not the pinned one, and definitions accepted instead.
    pub(crate) drifted: BTreeMap<ToolName, Hash>,
    pub(crate) accepted: BTreeMap<ToolName, Hash>,
    /// Something the plan asked for was left out by decision.
    pub(crate) gave_up: bool,
    pub(crate) deviations: Vec<(Deviation, Option<StepId>, String)>,
    pub(crate) spent: Spent,
    pub(crate) entries: u64,
    pub(crate) rests: u64,
    pub(crate) opened_at: Timestamp,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) last_at: Timestamp,
    pub(crate) stop_reason: String,
}

/// Where in its life an execution is. Pausing and waiting are not phases: they hold one up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Phase {
    Pending,
    Forward,
    /// Nothing new begins; what is under way comes to rest, then the end or the undoing.
    Draining {
        undo: bool,
        outcome: EndedAs,
    },
    Undoing,
    /// Stopped without clean-up; only the last entry is missing.
    Killed,
    Ended {
        outcome: EndedAs,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
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

/// A journal that does not fit the rules: a mistake of ours, or somebody else's bytes.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("event {event} cannot follow: {why}")]
pub struct IllegalEvent {
    pub event: String,
    pub why: String,
}

impl IllegalEvent {
    pub(crate) fn new(event: &Event, why: impl Into<String>) -> IllegalEvent {
        let mut event = format!("{event:?}");
        event.truncate(event.char_indices().nth(200).map_or(event.len(), |(at, _)| at));
        IllegalEvent { event, why: why.into() }
    }
}

impl Execution {
    /// Rebuilds the state from the journal.
    pub fn replay<'a>(
        identity: Identity,
        records: impl IntoIterator<Item = &'a Record>,
    ) -> Result<Execution, IllegalEvent> {
        let mut records = records.into_iter();
        let first = records.next().ok_or(IllegalEvent {
            event: "none".into(),
            why: "a journal begins with execution_opened".into(),
        })?;
        let mut execution = Execution::open(identity, first)?;
        for record in records {
            execution.apply(record)?;
        }
        Ok(execution)
    }

    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    pub fn plan(&self) -> &Arc<Plan> {
        &self.plan.0
    }

    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    pub fn driver(&self) -> Driver {
        self.driver
    }

    pub fn revision(&self) -> u32 {
        self.revision
    }

    /// When its newest entry was written.
    pub fn last_at(&self) -> Timestamp {
        self.last_at
    }

    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// What it was opened with; `None` once that was erased.
    pub fn inputs(&self) -> Option<&Arc<Value>> {
        self.inputs.value()
    }

    pub fn context(&self) -> &Map<String, Value> {
        &self.context
    }

    pub fn spent(&self) -> Spent {
        self.spent
    }

    pub fn entries(&self) -> u64 {
        self.entries
    }

    pub fn outcome(&self) -> Option<EndedAs> {
        match self.phase {
            Phase::Ended { outcome } => Some(outcome),
            _ => None,
        }
    }

    pub fn deviations(&self) -> &[(Deviation, Option<StepId>, String)] {
        &self.deviations
    }

    pub fn part(&self, id: &PartId) -> Option<&Part> {
        self.locate(id).and_then(|at| self.part_at(at))
    }

    /// Every part there is, in plan order.
    pub fn parts(&self) -> impl Iterator<Item = (PartId, &Part)> {
        self.steps.iter().enumerate().flat_map(move |(step, state)| {
            state.parts.iter().enumerate().map(move |(item, part)| (self.name(PartAt::new(step, item)), part))
        })
    }

    pub(crate) fn locate(&self, id: &PartId) -> Option<PartAt> {
        let step = self.plan.find(id.step.as_str())?;
        match (self.plan.steps[step].for_each.is_some(), id.item) {
            (true, Some(item)) => Some(PartAt::new(step, item as usize)),
            (false, None) => Some(PartAt::new(step, 0)),
            (true, None) | (false, Some(_)) => None,
        }
    }

    pub(crate) fn part_at(&self, at: PartAt) -> Option<&Part> {
        self.steps[at.step()].parts.get(at.item())
    }

    pub(crate) fn name(&self, at: PartAt) -> PartId {
        let step = &self.plan.steps[at.step()];
        PartId { step: step.id.clone(), item: step.for_each.is_some().then_some(at.item) }
    }
}
