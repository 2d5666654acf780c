//! The projection of the ledger to daily tallies; it reads each entry once, in order.

use super::apply::EventCounter;
use super::day::{CalendarDate, DailyTally};
use super::open::{ExecutionOrigin, OpenExecution, ProjectionState};
use crate::hash::Hash;
use crate::id::ExecutionId;
use crate::journal::event::Event;
use crate::plan::Driver;
use crate::port::feed::FeedEntry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The name for a plan whose name is no longer known.
pub const UNKNOWN: &str = "(unknown)";

/// The tallies of a ledger up to a position. Entries up to it are ignored: nothing is counted twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LedgerProjection {
    open: ProjectionState,
    /// The days loaded or changed here, which need not be all.
    days: BTreeMap<CalendarDate, DailyTally>,
    /// Days that have changed since they were last stored.
    changed: BTreeSet<CalendarDate>,
}

/// Data a projection needs before it can apply an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProjectionNeed {
    /// The stored tally of this day. See [`LedgerProjection::supply`].
    Day(CalendarDate),
    /// The name of the plan of an execution that starts. See [`LedgerProjection::learn`].
    Plan(Hash),
    /// The origin of an execution that has ended before, or was dropped. See [`LedgerProjection::introduce`].
    Execution(ExecutionId),
}

impl LedgerProjection {
    /// Resumes from a stored state. Days are requested when they are needed.
    pub fn resume(open: ProjectionState) -> LedgerProjection {
        LedgerProjection { open, ..LedgerProjection::default() }
    }

    /// The next data missing for this entry, if any. Without it, an empty day or an unknown plan is assumed.
    pub fn needs(&self, placed: &FeedEntry) -> Option<ProjectionNeed> {
        if placed.position <= self.open.place {
            return None;
        }
        let date = CalendarDate::of(placed.stored.at);
        if !self.days.contains_key(&date) {
            return Some(ProjectionNeed::Day(date));
        }
        match &placed.stored.event {
            Event::PlanSaved { .. }
            | Event::PayloadsErased { .. }
            | Event::ExecutionsRemoved { .. }
            | Event::LedgerRestored { .. } => None,
            Event::ExecutionOpened { plan, .. } => {
                let is_known = self.open.plans.contains_key(&plan.hash);
                (!is_known).then_some(ProjectionNeed::Plan(plan.hash))
            }
            _ => {
                let execution = &placed.stored.execution;
                let is_known = self.open.executions.contains_key(execution);
                (!is_known).then(|| ProjectionNeed::Execution(execution.clone()))
            }
        }
    }

    /// Provides the stored tally of a day; a day that is already here is not replaced.
    pub fn supply(&mut self, date: CalendarDate, day: DailyTally) {
        self.days.entry(date).or_insert(day);
    }

    pub fn learn(&mut self, plan: Hash, name: &str) {
        let place = self.open.place;
        self.open.learn(plan, name, place);
    }

    pub fn introduce(&mut self, execution: &ExecutionId, origin: ExecutionOrigin) {
        let place = self.open.place;
        self.open.enter(execution, OpenExecution::new(origin, place));
    }

    pub fn apply(&mut self, placed: &FeedEntry) {
        if placed.position <= self.open.place {
            return;
        }
        self.open.place = placed.position;
        let (place, stored) = (placed.position, &placed.stored);
        let date = CalendarDate::of(stored.at);
        let is_opening = match &stored.event {
            Event::PlanSaved { plan, name, .. } => {
                self.open.learn(*plan, name, place);
                let day = self.days.entry(date).or_default();
                day.hours.entry(CalendarDate::hour(stored.at)).or_default().saved += 1;
                self.changed.insert(date);
                return;
            }
            Event::PayloadsErased { .. } | Event::ExecutionsRemoved { .. } | Event::LedgerRestored { .. } => {
                return;
            }
            Event::ExecutionOpened { plan, driver, .. } => {
                let origin =
                    ExecutionOrigin { plan: self.name_of(plan.hash, place), driver: *driver, opened_at: stored.at };
                self.open.enter(&stored.execution, OpenExecution::new(origin, place));
                true
            }
            _ => false,
        };
        if !is_opening && !self.open.executions.contains_key(&stored.execution) {
            let origin = ExecutionOrigin { plan: UNKNOWN.into(), driver: Driver::Server, opened_at: stored.at };
            self.open.enter(&stored.execution, OpenExecution::new(origin, place));
        }
        let day = self.days.entry(date).or_default();
        self.changed.insert(date);
        let Some(underway) = self.open.executions.get_mut(&stored.execution) else { return };
        underway.place = place;
        EventCounter { at: stored.at, day, underway }.take(stored.seq, &stored.event);
        if !underway.is_live {
            self.open.executions.remove(&stored.execution);
        }
    }

    /// Skips to this position: the entries up to it were cleaned up.
    pub fn pass(&mut self, place: u64) {
        self.open.place = self.open.place.max(place);
    }

    pub fn place(&self) -> u64 {
        self.open.place
    }

    /// The state to store with the days, to resume from here.
    pub fn open(&self) -> &ProjectionState {
        &self.open
    }

    pub fn day(&self, date: CalendarDate) -> Option<&DailyTally> {
        self.days.get(&date)
    }

    pub fn days(&self) -> impl Iterator<Item = (CalendarDate, &DailyTally)> {
        self.days.iter().map(|(date, day)| (*date, day))
    }

    /// Days that have changed since [`LedgerProjection::written`].
    pub fn changed(&self) -> impl Iterator<Item = (CalendarDate, &DailyTally)> {
        self.changed.iter().filter_map(|date| Some((*date, self.days.get(date)?)))
    }

    /// The changes are stored; drops the days before this one.
    pub fn written(&mut self, keep_from: CalendarDate) {
        self.changed.clear();
        self.days.retain(|date, _| *date >= keep_from);
    }

    fn name_of(&mut self, plan: Hash, place: u64) -> Arc<str> {
        match self.open.plans.get_mut(&plan) {
            Some(named) => {
                named.place = place;
                named.name.clone()
            }
            None => UNKNOWN.into(),
        }
    }
}
