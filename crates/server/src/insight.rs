//! What the ledger amounts to, kept up as it grows: who asks reads memory, or notes that were written before.
//!
//! One loop follows the ledger ([`Insight::run`]) and feeds the pure fold of the core. Every few seconds it writes the
//! days that have changed together with what it must remember, in one piece, so that a restart goes on exactly where
//! it stopped.

mod csv;
mod notes;
pub mod report;

use notes::{Kept, Notes};
use report::{By, HourRow, Report};
use rutter_core::execution::Identity;
use rutter_core::id::TenantId;
use rutter_core::insight::day::{Date, Day};
use rutter_core::insight::fold::{Fold, Need, UNKNOWN};
use rutter_core::insight::forecast::History;
use rutter_core::insight::histogram::Histogram;
use rutter_core::insight::open::Origin;
use rutter_core::plan::{Driver, Plan};
use rutter_core::port::Error;
use rutter_core::port::feed::{Feed, Placed};
use rutter_core::port::query::{ExecutionSummary, Query};
use rutter_core::port::register::Register;
use rutter_core::time::{Millis, Timestamp};
use rutter_engine::Clock;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Days that are kept in memory; older ones are read when somebody asks.
const DAYS_KEPT: i64 = 40;
/// Days of one report.
pub const DAYS_MAX: i64 = 400;
/// Entries taken in one go.
const STRETCH: u32 = 1_000;
/// Between two writings, at least; longer when there is much to write.
const WRITE_EVERY: Millis = Millis::seconds(2);
/// What is written in one second, on the average.
const WRITE_BYTES_PER_SECOND: u64 = 256 << 10;
/// After a failure of the store.
const AGAIN: Duration = Duration::from_secs(1);

/// Counts and times of one tenant. Cheap to ask.
pub struct Insight {
    tenant: TenantId,
    feed: Arc<dyn Feed>,
    query: Arc<dyn Query>,
    notes: Notes,
    clock: Clock,
    fold: RwLock<Fold>,
}

impl Insight {
    /// Reads what was written before; nothing is counted yet.
    pub async fn open(
        tenant: TenantId,
        feed: Arc<dyn Feed>,
        query: Arc<dyn Query>,
        register: Arc<dyn Register>,
        clock: Clock,
    ) -> Result<Arc<Insight>, Error> {
        let notes = Notes::new(tenant.clone(), register);
        let insight = Insight { tenant, feed, query, notes, clock, fold: RwLock::default() };
        insight.load().await?;
        Ok(Arc::new(insight))
    }

    /// Follows the ledger until it is asked to end, and writes down what has not been written.
    pub async fn run(self: Arc<Insight>, shutdown: CancellationToken) {
        let mut kept = Kept { place: self.place(), due_at: Timestamp::default() };
        loop {
            let pause = match self.step(&mut kept).await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(error.code = error.code(), "the counts do not go on: {error}");
                    Some(self.clock.now().plus(Millis(AGAIN.as_millis() as u64)))
                }
            };
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                () = self.rest(pause) => {}
            }
        }
        if let Err(error) = self.keep(&mut kept).await {
            // Nothing is lost: what is not written is counted again.
            tracing::warn!(error.code = error.code(), "the counts could not be written: {error}");
        }
    }

    /// What was counted from one day to another, both included.
    pub async fn report(&self, from: Date, until: Date, by: By) -> Result<Report, Error> {
        let days = until.since(from) + 1;
        if days < 1 {
            return Err(Error::Invalid(format!(
                "expected a first day that is not after the last, not {from} and {until}"
            )));
        }
        if days > DAYS_MAX {
            let limit = "report_days_max";
            return Err(Error::Limit { limit, max: DAYS_MAX as u64, found: days as u64 });
        }
        let mut report = report::Draft::new(from, until, by);
        for ahead in 0..days {
            let date = from.plus(ahead);
            let is_here = self.fold().day(date).map(|day| report.add(date, day)).is_some();
            if !is_here {
                report.add(date, &self.notes.day(date).await?);
            }
        }
        Ok(report.finish(self.clock.now()))
    }

    /// The last hours, oldest first, the present one included.
    pub fn hours(&self, count: u32) -> Vec<HourRow> {
        let fold = self.fold();
        let present = self.clock.now().0.div_euclid(report::HOUR_MS);
        let row = |back: u32| {
            let start = Timestamp((present - i64::from(back)) * report::HOUR_MS);
            let day = fold.day(Date::of(start));
            let hour = day.and_then(|day| day.hours.get(&Date::hour(start))).copied().unwrap_or_default();
            HourRow::new(start, &hour)
        };
        (0..count).rev().map(row).collect()
    }

    /// How long executions took that ended in the last days, today included: all but five in a hundred took less.
    pub fn p95(&self, days: u32) -> Option<Millis> {
        let (fold, today) = (self.fold(), Date::of(self.clock.now()));
        let mut durations = Histogram::default();
        for back in 0..i64::from(days) {
            if let Some(day) = fold.day(today.plus(-back)) {
                durations.add(&day.server.duration_ms);
                durations.add(&day.agent.duration_ms);
            }
        }
        durations.percentile(95).map(Millis)
    }

    /// What the last days know of a plan and of its tools.
    pub fn history(&self, plan: &Plan) -> History {
        let (fold, first) = (self.fold(), Date::of(self.clock.now()).plus(1 - DAYS_KEPT));
        let days = fold.days().filter(|(date, _)| *date >= first).map(|(_, day)| day);
        History::of(plan, days)
    }

    /// The last entry that is counted.
    pub fn place(&self) -> u64 {
        self.fold().place()
    }

    /// Begins with what was written, and with the days people ask for most.
    async fn load(&self) -> Result<(), Error> {
        let open = self.notes.begin(self.feed.size(&self.tenant).await?, self.clock.now()).await?;
        let mut fold = Fold::resume(open);
        let today = Date::of(self.clock.now());
        for back in 0..DAYS_KEPT {
            let date = today.plus(-back);
            match self.notes.day(date).await {
                Ok(day) => fold.supply(date, day),
                Err(Error::Corrupt(why)) => {
                    self.count_again(&why);
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        *self.fold_mut() = fold;
        Ok(())
    }

    /// What was written is of no use any more.
    fn count_again(&self, why: &str) {
        tracing::warn!("everything is counted again: {why}");
        self.notes.begin_anew(self.clock.now());
        *self.fold_mut() = Fold::default();
    }

    /// Takes what is new, and writes when it is time. Answers until when there is nothing else to do: `None` when
    /// nothing is left to write.
    async fn step(&self, kept: &mut Kept) -> Result<Option<Timestamp>, Error> {
        loop {
            let has_more = self.take().await?;
            // A counting that began anew has everything to write.
            kept.place = kept.place.min(self.place());
            let is_behind = self.place() > kept.place;
            if is_behind && self.clock.now() >= kept.due_at {
                self.keep(kept).await?;
            }
            if !has_more {
                let is_behind = self.place() > kept.place;
                return Ok(is_behind.then_some(kept.due_at));
            }
        }
    }

    /// Until there is more, or until it is time to write.
    async fn rest(&self, until: Option<Timestamp>) {
        let place = self.place();
        let alarm = async {
            match until {
                Some(until) => self.clock.sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            grown = self.feed.beyond(&self.tenant, place) => {
                if grown.is_err() {
                    tokio::time::sleep(AGAIN).await;
                }
            }
            () = alarm => {}
        }
    }

    /// Counts the next entries. False when there are none.
    async fn take(&self) -> Result<bool, Error> {
        let place = self.place();
        let stretch = self.feed.after(&self.tenant, place, STRETCH).await?;
        let mut rest = stretch.items.as_slice();
        while let Some(need) = self.take_until_need(&mut rest) {
            match self.supply(&rest[0], need).await {
                Ok(()) => {}
                Err(Error::Corrupt(why)) => {
                    self.count_again(&why);
                    return Ok(true);
                }
                Err(error) => return Err(error),
            }
        }
        self.fold_mut().pass(stretch.until);
        Ok(stretch.until > place)
    }

    /// Stops before an entry of which something must be known first.
    fn take_until_need(&self, rest: &mut &[Placed]) -> Option<Need> {
        let mut fold = self.fold_mut();
        while let Some((placed, after)) = rest.split_first() {
            if let Some(need) = fold.needs(placed) {
                return Some(need);
            }
            fold.take(placed);
            *rest = after;
        }
        None
    }

    async fn supply(&self, placed: &Placed, need: Need) -> Result<(), Error> {
        match need {
            Need::Day(date) => {
                let day: Day = self.notes.day(date).await?;
                self.fold_mut().supply(date, day);
            }
            Need::Plan(hash) => {
                let summary = self.summary(placed).await?;
                let name = summary.as_ref().map_or(UNKNOWN, |summary| summary.name.as_str());
                self.fold_mut().learn(hash, name);
            }
            Need::Execution(execution) => {
                let summary = self.summary(placed).await?;
                let origin = match &summary {
                    Some(ExecutionSummary { name, row, .. }) => {
                        Origin { plan: name.as_str().into(), driver: row.driver, opened_at: row.opened_at }
                    }
                    None => {
                        Origin { plan: UNKNOWN.into(), driver: Driver::Server, opened_at: placed.stored.at }
                    }
                };
                self.fold_mut().introduce(&execution, origin);
            }
        }
        Ok(())
    }

    async fn summary(&self, placed: &Placed) -> Result<Option<ExecutionSummary>, Error> {
        let (tenant, execution) = (self.tenant.clone(), placed.stored.execution.clone());
        match self.query.execution(&Identity { tenant, execution }).await {
            // Somebody must look at it; what it did can be counted all the same.
            Err(Error::Corrupt(_)) => Ok(None),
            found => found,
        }
    }

    /// Writes what has changed. Whoever else wrote meanwhile was further, or began anew: what they wrote counts.
    async fn keep(&self, kept: &mut Kept) -> Result<(), Error> {
        let now = self.clock.now();
        let (changes, bytes, place) = {
            let fold = self.fold();
            if fold.place() <= kept.place {
                return Ok(());
            }
            let (changes, bytes) = self.notes.changes(&fold)?;
            (changes, bytes, fold.place())
        };
        match self.notes.write(changes, now).await {
            Ok(()) => {}
            Err(Error::Conflict { .. }) => {
                self.load().await?;
                kept.place = self.place();
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        kept.place = place;
        kept.due_at = now.plus(WRITE_EVERY.max(Millis(bytes * 1_000 / WRITE_BYTES_PER_SECOND)));
        self.fold_mut().written(Date::of(now).plus(-DAYS_KEPT));
        Ok(())
    }

    fn fold(&self) -> RwLockReadGuard<'_, Fold> {
        self.fold.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn fold_mut(&self) -> RwLockWriteGuard<'_, Fold> {
        self.fold.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Insight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Insight")
            .field("tenant", &self.tenant)
            .field("place", &self.place())
            .finish_non_exhaustive()
    }
}
