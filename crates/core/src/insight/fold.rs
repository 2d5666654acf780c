//! Reads the ledger once, from the first entry to the last, and keeps what it amounts to.

use super::apply::Scribe;
use super::day::{Date, Day};
use super::open::{Open, Origin, Underway};
use crate::hash::Hash;
use crate::id::ExecutionId;
use crate::journal::event::Event;
use crate::plan::Driver;
use crate::port::feed::Placed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a plan is called of which nobody knows the name any more.
pub const UNKNOWN: &str = "(unknown)";

/// The counts of a ledger up to some place. An entry at or before it is passed over: nothing is counted twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fold {
    open: Open,
    /// Those that were supplied or begun here, which need not be all.
    days: BTreeMap<Date, Day>,
    /// Days that have changed since they were last written.
    changed: BTreeSet<Date>,
}

/// What a fold has to be told before it can take an entry properly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// What was counted on this day before. See [`Fold::supply`].
    Day(Date),
    /// The name of the plan of an execution that begins. See [`Fold::learn`].
    Plan(Hash),
    /// Whose execution this is: it has ended before, or was forgotten. See [`Fold::introduce`].
    Execution(ExecutionId),
}

impl Fold {
    /// Goes on where another one was written down. The days are asked for when they are needed.
    pub fn resume(open: Open) -> Fold {
        Fold { open, ..Fold::default() }
    }

    /// The next thing missing for this entry, if any. What is not supplied is made up: an empty day, an unknown plan.
    pub fn needs(&self, placed: &Placed) -> Option<Need> {
        if placed.place <= self.open.place {
            return None;
        }
        let date = Date::of(placed.stored.at);
        if !self.days.contains_key(&date) {
            return Some(Need::Day(date));
        }
        match &placed.stored.event {
            Event::PlanSaved { .. }
            | Event::PayloadsErased { .. }
            | Event::ExecutionsRemoved { .. }
            | Event::LedgerRestored { .. } => None,
            Event::ExecutionOpened { plan, .. } => {
                let is_known = self.open.plans.contains_key(&plan.hash);
                (!is_known).then_some(Need::Plan(plan.hash))
            }
            _ => {
                let execution = &placed.stored.execution;
                let is_known = self.open.executions.contains_key(execution);
                (!is_known).then(|| Need::Execution(execution.clone()))
            }
        }
    }

    /// Says what was counted on a day before; one that is here already stays as it is.
    pub fn supply(&mut self, date: Date, day: Day) {
        self.days.entry(date).or_insert(day);
    }

    pub fn learn(&mut self, plan: Hash, name: &str) {
        let place = self.open.place;
        self.open.learn(plan, name, place);
    }

    pub fn introduce(&mut self, execution: &ExecutionId, origin: Origin) {
        let place = self.open.place;
        self.open.enter(execution, Underway::new(origin, place));
    }

    pub fn take(&mut self, placed: &Placed) {
        if placed.place <= self.open.place {
            return;
        }
        self.open.place = placed.place;
        let (place, stored) = (placed.place, &placed.stored);
        let date = Date::of(stored.at);
        let is_opening = match &stored.event {
            Event::PlanSaved { plan, name, .. } => {
                self.open.learn(*plan, name, place);
                let day = self.days.entry(date).or_default();
                day.hours.entry(Date::hour(stored.at)).or_default().saved += 1;
                self.changed.insert(date);
                return;
            }
            Event::PayloadsErased { .. } | Event::ExecutionsRemoved { .. } | Event::LedgerRestored { .. } => {
                return;
            }
            Event::ExecutionOpened { plan, driver, .. } => {
                let origin =
                    Origin { plan: self.name_of(plan.hash, place), driver: *driver, opened_at: stored.at };
                self.open.enter(&stored.execution, Underway::new(origin, place));
                true
            }
            _ => false,
        };
        if !is_opening && !self.open.executions.contains_key(&stored.execution) {
            let origin = Origin { plan: UNKNOWN.into(), driver: Driver::Server, opened_at: stored.at };
            self.open.enter(&stored.execution, Underway::new(origin, place));
        }
        let day = self.days.entry(date).or_default();
        self.changed.insert(date);
        let Some(underway) = self.open.executions.get_mut(&stored.execution) else { return };
        underway.place = place;
        Scribe { at: stored.at, day, underway }.take(&stored.event);
        if !underway.is_live {
            self.open.executions.remove(&stored.execution);
        }
    }

    /// Nothing is left up to here: what stood there was cleaned up.
    pub fn pass(&mut self, place: u64) {
        self.open.place = self.open.place.max(place);
    }

    pub fn place(&self) -> u64 {
        self.open.place
    }

    /// What must be written down with the days to go on from here.
    pub fn open(&self) -> &Open {
        &self.open
    }

    pub fn day(&self, date: Date) -> Option<&Day> {
        self.days.get(&date)
    }

    pub fn days(&self) -> impl Iterator<Item = (Date, &Day)> {
        self.days.iter().map(|(date, day)| (*date, day))
    }

    /// Days that have changed since [`Fold::written`].
    pub fn changed(&self) -> impl Iterator<Item = (Date, &Day)> {
        self.changed.iter().filter_map(|date| Some((*date, self.days.get(date)?)))
    }

    /// What has changed is safe elsewhere; days before this one need not be kept here any more.
    pub fn written(&mut self, keep_from: Date) {
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
