//! The period and grouping in the page's URL.

use crate::format::{instant, query};
use crate::page::PageRequest;
use rutter_core::insight::day::CalendarDate;
use rutter_core::time::Timestamp;
use rutter_observe::insight::DAYS_MAX;
use rutter_observe::insight::report::ReportGrouping;

const DAYS_DEFAULT: i64 = 7;

pub(super) struct ReportPeriod {
    pub(super) from: CalendarDate,
    pub(super) until: CalendarDate,
    pub(super) by: ReportGrouping,
    /// Links to common periods.
    pub(super) chips: Vec<(String, &'static str, bool)>,
    pub(super) kinds: Vec<(&'static str, &'static str, bool)>,
}

impl ReportPeriod {
    /// Reports what cannot be parsed, and falls back to the last week.
    pub(super) fn read(request: &PageRequest, now: Timestamp) -> (ReportPeriod, Option<String>) {
        let today = CalendarDate::of(now);
        let by = request.query_value("by").unwrap_or_default();
        let by = ReportGrouping::ALL.into_iter().find(|known| known.as_str() == by).unwrap_or_default();
        let usual = (today.plus(1 - DAYS_DEFAULT), today);
        let (days, problem) = match days(request, now) {
            Ok((from, until)) => ((from.unwrap_or(usual.0.min(until.unwrap_or(today))), until.unwrap_or(today)), None),
            Err(problem) => (usual, Some(problem)),
        };
        let (from, until) = days;
        let chip = |(days, label): (i64, &'static str)| {
            let first = today.plus(1 - days);
            let is_on = from == first && until == today;
            (address("/analytics", first, today, by), label, is_on)
        };
        let chips = [(1, "Today"), (7, "7 days"), (30, "30 days"), (90, "90 days")].map(chip).into();
        let word = |by: ReportGrouping| match by {
            ReportGrouping::Plan => "plans",
            ReportGrouping::Tool => "tools",
            ReportGrouping::Day => "days",
            ReportGrouping::Driver => "drivers",
        };
        let kinds = ReportGrouping::ALL.map(|kind| (kind.as_str(), word(kind), kind == by)).into();
        (ReportPeriod { from, until, by, chips, kinds }, problem)
    }

    pub(super) fn csv(&self, by: ReportGrouping) -> String {
        address("/analytics/csv", self.from, self.until, by)
    }

    /// The CSV of the table on the page.
    pub(super) fn table(&self) -> String {
        self.csv(self.by)
    }

    pub(super) fn is_today(&self, now: Timestamp) -> bool {
        self.until == CalendarDate::of(now)
    }
}

fn days(request: &PageRequest, now: Timestamp) -> Result<(Option<CalendarDate>, Option<CalendarDate>), String> {
    let day = |name: &str| match request.query_value(name) {
        None => Ok(None),
        Some(text) => instant(text, now)
            .map(|at| Some(CalendarDate::of(at)))
            .ok_or_else(|| format!("{text:?} is not a day; use 7d or 2026-11-16")),
    };
    let (from, until) = (day("from")?, day("until")?);
    let (first, last) =
        (from.unwrap_or(until.unwrap_or(CalendarDate::of(now))), until.unwrap_or(CalendarDate::of(now)));
    match last.since(first) {
        days if days < 0 => Err("expected a first day on or before the last".to_owned()),
        days if days >= DAYS_MAX => Err(format!("expected at most {DAYS_MAX} days")),
        _ => Ok((from, until)),
    }
}

fn address(path: &str, from: CalendarDate, until: CalendarDate, by: ReportGrouping) -> String {
    let pair = |name: &str, value: String| (name.to_owned(), value);
    let pairs = [pair("from", from.to_string()), pair("until", until.to_string()), pair("by", by.as_str().to_owned())];
    format!("{path}{}", query(&pairs))
}
