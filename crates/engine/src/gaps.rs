//! Gaps: spans in which no worker ran, or in which the clock was wrong. What came due in one must not simply happen.
//!
//! The last sign of a worker is on record, and only a worker advances it, in the same write as the gap that it ends. A gap
//! stays on record: executions are compared with it whenever they are loaded, however often the process ended meanwhile.

use crate::clock::SystemClock;
use crate::options::{GAPS_MAX, JUMP_NOTED, gap_before};
use rutter_core::actor::Actor;
use rutter_core::execution::hold::WorkerGap;
use rutter_core::id::TenantId;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::port::Error;
use rutter_core::port::register::{Register, RegisterChange, RegisterKind, RegisterWrite};
use rutter_core::time::calendar::utc;
use rutter_core::time::{Millis, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

/// The id of the record in the register.
pub const MARK: &str = "worker";

/// The record as it is stored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StoredGaps {
    /// The last sign of a worker.
    pub alive_at: Option<Timestamp>,
    /// Oldest first.
    #[serde(default)]
    pub gaps: Vec<WorkerGap>,
}

pub(crate) struct GapRecord {
    register: Arc<dyn Register>,
    /// As long as there is only one.
    tenant: TenantId,
    state: Mutex<GapState>,
}

#[derive(Debug)]
struct GapState {
    alive_at: Timestamp,
    gaps: Vec<WorkerGap>,
    /// Gaps found by this process, also those that are not kept any more.
    found: usize,
    /// What the ledger's own journal does not say yet.
    unrecorded: VecDeque<String>,
}

impl GapRecord {
    /// Reads the record, and writes the gap before this process into it, before the process does anything else.
    /// `last_entry` stands in for the last sign of a worker in a ledger that has none on record.
    pub(crate) async fn open(
        register: Arc<dyn Register>,
        clock: SystemClock,
        last_entry: Option<Timestamp>,
    ) -> Result<GapRecord, Error> {
        let tenant = TenantId::new("default");
        let stored = match register.find(&tenant, RegisterKind::Mark, MARK).await? {
            Some(note) => StoredGaps::deserialize(&*note.value)
                .map_err(|error| Error::Corrupt(format!("the record of the last worker: {error}")))?,
            None => StoredGaps::default(),
        };
        let newest = stored.alive_at.max(last_entry);
        let found = gap_at_start(stored.alive_at, last_entry, clock.wall());
        clock.not_before(newest.unwrap_or_default());
        let now = clock.now();
        let mut state = GapState { alive_at: now, gaps: stored.gaps, found: 0, unrecorded: VecDeque::new() };
        if let Some(gap) = found {
            state.unrecorded.push_back(jump(gap.since, clock.wall(), &gap.reason));
            state.keep(gap);
        }
        let record = GapRecord { register, tenant, state: Mutex::new(state) };
        record.write().await?;
        Ok(record)
    }

    /// A sign of life. Every decision gives one before it looks at a timer, so that no jump of the clock is overlooked.
    pub(crate) fn beat(&self, now: Timestamp) {
        let mut state = self.state();
        let since = state.alive_at;
        let apart = now.since(since);
        if apart > JUMP_NOTED {
            let gap = gap_before(Some(since), now);
            let reason = gap.as_ref().map_or("no worker decided anything meanwhile", |gap| &gap.reason);
            let noted = jump(since, now, reason);
            state.unrecorded.push_back(noted);
            if let Some(gap) = gap {
                state.keep(gap);
            }
        }
        state.alive_at = since.max(now);
    }

    /// Records that the wall clock was set back. Time does not follow it.
    pub(crate) fn set_back(&self, now: Timestamp, behind: Millis) {
        let wall = Timestamp(now.0.saturating_sub_unsigned(behind.0));
        self.state().unrecorded.push_back(jump(now, wall, "recorded times do not go back with it"));
    }

    /// How many gaps have been found so far.
    pub(crate) fn found(&self) -> usize {
        self.state().found
    }

    pub(crate) fn all(&self) -> Vec<WorkerGap> {
        self.state().gaps.clone()
    }

    /// Writes the last sign of life and the gaps before it, each with an entry in the ledger's own journal.
    pub(crate) async fn write(&self) -> Result<(), Error> {
        loop {
            let (value, at, change) = {
                let state = self.state();
                let stored = StoredGaps { alive_at: Some(state.alive_at), gaps: state.gaps.clone() };
                (json!(stored), state.alive_at, state.unrecorded.front().cloned())
            };
            let record = change.clone().map(|change| {
                let event = Event::SettingChanged { setting: "clock".to_owned(), id: MARK.to_owned(), change };
                EventRecord { at, actor: Actor::rutter(), event }
            });
            let changes = vec![RegisterChange::put(RegisterKind::Mark, MARK, value)];
            self.register.write(RegisterWrite { tenant: self.tenant.clone(), at, changes, record }).await?;
            if change.is_none() {
                return Ok(());
            }
            self.state().unrecorded.pop_front();
        }
    }

    fn state(&self) -> MutexGuard<'_, GapState> {
        self.state.lock().expect("no thread panics while holding it")
    }
}

impl GapState {
    fn keep(&mut self, gap: WorkerGap) {
        self.found += 1;
        self.gaps.push(gap);
        let excess = self.gaps.len().saturating_sub(GAPS_MAX);
        self.gaps.drain(..excess);
    }
}

/// The gap before a process. Entries are newer than the last sign of a worker, which is written now and then: a clock that
/// went back is behind all of them, or what was written last would not be held. They are no sign of a worker otherwise:
/// commands are recorded without one.
fn gap_at_start(alive_at: Option<Timestamp>, last_entry: Option<Timestamp>, wall: Timestamp) -> Option<WorkerGap> {
    let newest = alive_at.max(last_entry);
    let went_back = newest.filter(|newest| *newest > wall).and_then(|newest| gap_before(Some(newest), wall));
    went_back.or_else(|| gap_before(alive_at.or(last_entry), wall))
}

fn jump(from: Timestamp, to: Timestamp, why: &str) -> String {
    format!("time went from {} to {}: {why}", utc(from), utc(to))
}

impl std::fmt::Debug for GapRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GapRecord").field("state", &self.state).finish_non_exhaustive()
    }
}
