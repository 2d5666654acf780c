//! Analytics of one ledger, maintained as it grows: queries read memory, or daily tallies that were saved before.
//!
//! One loop follows the ledger ([`TenantInsight::run`]) and feeds the pure projection in core. Every few seconds it
//! saves the days that changed together with the projection's state in one write, so a restart resumes exactly where it
//! stopped.

mod csv;
mod notes;
pub mod report;

use notes::{InsightNotes, WriteSchedule};
use report::{HourlyCounts, InsightReport, ReportGrouping};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::TenantId;
use rutter_core::insight::day::{CalendarDate, DailyTally};
use rutter_core::insight::figures::{self, ToolHistory};
use rutter_core::insight::forecast::PlanHistory;
use rutter_core::insight::histogram::MergeableHistogram;
use rutter_core::insight::open::ExecutionOrigin;
use rutter_core::insight::projection::{LedgerProjection, ProjectionNeed, UNKNOWN};
use rutter_core::plan::{Driver, Plan};
use rutter_core::port::Error;
use rutter_core::port::feed::{FeedEntry, LedgerFeed};
use rutter_core::port::query::{ExecutionSummary, StoreQuery};
use rutter_core::port::register::Register;
use rutter_core::time::{Millis, Timestamp};
use rutter_engine::SystemClock;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Days held in memory; older ones are read from the store on demand.
const DAYS_RETAINED: i64 = 40;
/// The longest period of one report, in days.
pub const DAYS_MAX: i64 = 400;
/// Entries read at once.
const STRETCH: u32 = 1_000;
/// The shortest interval between two saves; large saves wait longer.
const WRITE_EVERY: Millis = Millis::seconds(2);
/// Average write rate.
const WRITE_BYTES_PER_SECOND: u64 = 256 << 10;
/// Pause after a store error.
const AGAIN: Duration = Duration::from_secs(1);

/// Counts and durations of one tenant. Queries are cheap.
pub struct TenantInsight {
    tenant: TenantId,
    feed: Arc<dyn LedgerFeed>,
    query: Arc<dyn StoreQuery>,
    notes: InsightNotes,
    clock: SystemClock,
    fold: RwLock<LedgerProjection>,
}

impl TenantInsight {
    /// Loads the saved state; counting starts with [`TenantInsight::run`].
    pub async fn open(
        tenant: TenantId,
        feed: Arc<dyn LedgerFeed>,
        query: Arc<dyn StoreQuery>,
        register: Arc<dyn Register>,
        clock: SystemClock,
    ) -> Result<Arc<TenantInsight>, Error> {
        let notes = InsightNotes::new(tenant.clone(), register);
        let insight = TenantInsight { tenant, feed, query, notes, clock, fold: RwLock::default() };
        insight.load().await?;
        Ok(Arc::new(insight))
    }

    /// Follows the ledger until shutdown, then saves what is not saved yet.
    pub async fn run(self: Arc<TenantInsight>, shutdown: CancellationToken) {
        let mut stored = WriteSchedule { position: self.position(), due_at: Timestamp::default() };
        loop {
            let pause = match self.step(&mut stored).await {
                Ok(pause) => pause,
                Err(error) => {
                    tracing::warn!(error.code = error.code(), "analytics could not read the ledger: {error}");
                    Some(self.clock.now().plus(Millis(AGAIN.as_millis() as u64)))
                }
            };
            tokio::select! {
                biased;
                () = shutdown.cancelled() => break,
                () = self.rest(pause) => {}
            }
        }
        if let Err(error) = self.write_notes(&mut stored).await {
            // Nothing is lost: unsaved entries are counted again after the restart.
            tracing::warn!(error.code = error.code(), "analytics could not be saved: {error}");
        }
    }

    /// The report from one day to another, both included.
    pub async fn report(
        &self,
        from: CalendarDate,
        until: CalendarDate,
        by: ReportGrouping,
    ) -> Result<InsightReport, Error> {
        let days = until.since(from) + 1;
        if days < 1 {
            return Err(Error::Invalid(format!("expected `from` on or before `until`, not {from} and {until}")));
        }
        if days > DAYS_MAX {
            let limit = "report_days_max";
            return Err(Error::Limit { limit, max: DAYS_MAX as u64, found: days as u64 });
        }
        let mut report = report::ReportBuilder::new(from, until, by);
        for ahead in 0..days {
            let date = from.plus(ahead);
            let is_here = self.fold().day(date).map(|day| report.add(date, day)).is_some();
            if !is_here {
                report.add(date, &self.notes.day(date).await?);
            }
        }
        Ok(report.finish(self.clock.now()))
    }

    /// The last hours, oldest first, including the current one.
    pub fn hours(&self, count: u32) -> Vec<HourlyCounts> {
        let fold = self.fold();
        let present = self.clock.now().0.div_euclid(report::HOUR_MS);
        let row = |back: u32| {
            let start = Timestamp((present - i64::from(back)) * report::HOUR_MS);
            let day = fold.day(CalendarDate::of(start));
            let hour = day.and_then(|day| day.hours.get(&CalendarDate::hour(start))).copied().unwrap_or_default();
            HourlyCounts::new(start, &hour)
        };
        (0..count).rev().map(row).collect()
    }

    /// The 95th percentile of the duration of executions that ended in the last days, today included.
    pub fn p95(&self, days: u32) -> Option<Millis> {
        let (fold, today) = (self.fold(), CalendarDate::of(self.clock.now()));
        let mut durations = MergeableHistogram::default();
        for back in 0..i64::from(days) {
            if let Some(day) = fold.day(today.plus(-back)) {
                durations.add(&day.server.duration_ms);
                durations.add(&day.agent.duration_ms);
            }
        }
        durations.percentile(95).map(Millis)
    }

    /// Statistics of the last days about a plan and its tools.
    pub fn history(&self, plan: &Plan) -> PlanHistory {
        let (fold, first) = (self.fold(), CalendarDate::of(self.clock.now()).plus(1 - DAYS_RETAINED));
        let days = fold.days().filter(|(date, _)| *date >= first).map(|(_, day)| day);
        PlanHistory::of(plan, days)
    }

    /// How the calls of a plan's tools went in the last days.
    pub fn tool_history(&self, plan: &Plan) -> ToolHistory {
        let (fold, first) = (self.fold(), CalendarDate::of(self.clock.now()).plus(1 - DAYS_RETAINED));
        let days = fold.days().filter(|(date, _)| *date >= first).map(|(_, day)| day);
        figures::of(plan, days)
    }

    /// The position of the last entry counted.
    pub fn position(&self) -> u64 {
        self.fold().place()
    }

    /// Loads the saved state and the recent days.
    async fn load(&self) -> Result<(), Error> {
        let open = self.notes.begin(self.feed.size(&self.tenant).await?, self.clock.now()).await?;
        let mut fold = LedgerProjection::resume(open);
        let today = CalendarDate::of(self.clock.now());
        for back in 0..DAYS_RETAINED {
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

    /// Discards the saved state and starts over.
    fn count_again(&self, why: &str) {
        tracing::warn!("analytics are recounted from the start of the ledger: {why}");
        self.notes.begin_anew(self.clock.now());
        *self.fold_mut() = LedgerProjection::default();
    }

    /// Counts new entries and saves when a save is due. Returns when the next save is due, or `None` when everything is
    /// saved.
    async fn step(&self, stored: &mut WriteSchedule) -> Result<Option<Timestamp>, Error> {
        loop {
            let has_more = self.take().await?;
            // After a recount the position is behind the saved one, and everything must be saved again.
            stored.position = stored.position.min(self.position());
            let is_behind = self.position() > stored.position;
            if is_behind && self.clock.now() >= stored.due_at {
                self.write_notes(stored).await?;
            }
            if !has_more {
                let is_behind = self.position() > stored.position;
                return Ok(is_behind.then_some(stored.due_at));
            }
        }
    }

    /// Waits for new entries or for the next save.
    async fn rest(&self, until: Option<Timestamp>) {
        let place = self.position();
        let alarm = async {
            match until {
                Some(until) => self.clock.sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            grown = self.feed.wait_beyond(&self.tenant, place) => {
                if grown.is_err() {
                    tokio::time::sleep(AGAIN).await;
                }
            }
            () = alarm => {}
        }
    }

    /// Counts the next entries. False when there are none.
    async fn take(&self) -> Result<bool, Error> {
        let place = self.position();
        let stretch = self.feed.entries_after(&self.tenant, place, STRETCH).await?;
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

    /// Applies entries up to the first one for which the projection needs data from the store.
    fn take_until_need(&self, rest: &mut &[FeedEntry]) -> Option<ProjectionNeed> {
        let mut fold = self.fold_mut();
        while let Some((placed, after)) = rest.split_first() {
            if let Some(need) = fold.needs(placed) {
                return Some(need);
            }
            fold.apply(placed);
            *rest = after;
        }
        None
    }

    async fn supply(&self, placed: &FeedEntry, need: ProjectionNeed) -> Result<(), Error> {
        match need {
            ProjectionNeed::Day(date) => {
                let day: DailyTally = self.notes.day(date).await?;
                self.fold_mut().supply(date, day);
            }
            ProjectionNeed::Plan(hash) => {
                let summary = self.summary(placed).await?;
                let name = summary.as_ref().map_or(UNKNOWN, |summary| summary.name.as_str());
                self.fold_mut().learn(hash, name);
            }
            ProjectionNeed::Execution(execution) => {
                let summary = self.summary(placed).await?;
                let origin = match &summary {
                    Some(ExecutionSummary { name, row, .. }) => {
                        ExecutionOrigin { plan: name.as_str().into(), driver: row.driver, opened_at: row.opened_at }
                    }
                    None => {
                        ExecutionOrigin { plan: UNKNOWN.into(), driver: Driver::Server, opened_at: placed.stored.at }
                    }
                };
                self.fold_mut().introduce(&execution, origin);
            }
        }
        Ok(())
    }

    async fn summary(&self, placed: &FeedEntry) -> Result<Option<ExecutionSummary>, Error> {
        let (tenant, execution) = (self.tenant.clone(), placed.stored.execution.clone());
        match self.query.execution(&ExecutionIdentity { tenant, execution }).await {
            // A damaged execution is reported elsewhere; its entries are counted under an unknown plan.
            Err(Error::Corrupt(_)) => Ok(None),
            found => found,
        }
    }

    /// Saves the changes. On a conflict another process is ahead or has started over, so its state is loaded.
    async fn write_notes(&self, stored: &mut WriteSchedule) -> Result<(), Error> {
        let now = self.clock.now();
        let (changes, bytes, place) = {
            let fold = self.fold();
            if fold.place() <= stored.position {
                return Ok(());
            }
            let (changes, bytes) = self.notes.changes(&fold)?;
            (changes, bytes, fold.place())
        };
        match self.notes.write(changes, now).await {
            Ok(()) => {}
            Err(Error::Conflict { .. }) => {
                self.load().await?;
                stored.position = self.position();
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        stored.position = place;
        stored.due_at = now.plus(WRITE_EVERY.max(Millis(bytes * 1_000 / WRITE_BYTES_PER_SECOND)));
        self.fold_mut().written(CalendarDate::of(now).plus(-DAYS_RETAINED));
        Ok(())
    }

    fn fold(&self) -> RwLockReadGuard<'_, LedgerProjection> {
        self.fold.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn fold_mut(&self) -> RwLockWriteGuard<'_, LedgerProjection> {
        self.fold.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for TenantInsight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TenantInsight")
            .field("tenant", &self.tenant)
            .field("place", &self.position())
            .finish_non_exhaustive()
    }
}
