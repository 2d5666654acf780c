//! Which days an address asks about, and by what.

use crate::dashboard::format::{instant, query};
use crate::dashboard::page::Visitor;
use crate::insight::DAYS_MAX;
use crate::insight::report::By;
use rutter_core::insight::day::Date;
use rutter_core::time::Timestamp;

const DAYS_DEFAULT: i64 = 7;

pub(super) struct Period {
    pub(super) from: Date,
    pub(super) until: Date,
    pub(super) by: By,
    /// The last days people ask for most.
    pub(super) chips: Vec<(String, &'static str, bool)>,
    pub(super) kinds: Vec<(&'static str, &'static str, bool)>,
}

impl Period {
    /// What cannot be read is told, and the last week is shown.
    pub(super) fn read(visitor: &Visitor, now: Timestamp) -> (Period, Option<String>) {
        let today = Date::of(now);
        let by = visitor.asked("by").unwrap_or_default();
        let by = By::ALL.into_iter().find(|known| known.as_str() == by).unwrap_or_default();
        let usual = (today.plus(1 - DAYS_DEFAULT), today);
        let (days, problem) = match days(visitor, now) {
            Ok((from, until)) => {
                ((from.unwrap_or(usual.0.min(until.unwrap_or(today))), until.unwrap_or(today)), None)
            }
            Err(problem) => (usual, Some(problem)),
        };
        let (from, until) = days;
        let chip = |(days, label): (i64, &'static str)| {
            let first = today.plus(1 - days);
            let is_on = from == first && until == today;
            (address("/analytics", first, today, by), label, is_on)
        };
        let chips = [(1, "Today"), (7, "7 days"), (30, "30 days"), (90, "90 days")].map(chip).into();
        let word = |by: By| match by {
            By::Plan => "plans",
            By::Tool => "tools",
            By::Day => "days",
            By::Driver => "drivers",
        };
        let kinds = By::ALL.map(|kind| (kind.as_str(), word(kind), kind == by)).into();
        (Period { from, until, by, chips, kinds }, problem)
    }

    pub(super) fn csv(&self, by: By) -> String {
        address("/analytics/csv", self.from, self.until, by)
    }

    /// Of the table that is shown.
    pub(super) fn table(&self) -> String {
        self.csv(self.by)
    }

    pub(super) fn is_today(&self, now: Timestamp) -> bool {
        self.until == Date::of(now)
    }
}

fn days(visitor: &Visitor, now: Timestamp) -> Result<(Option<Date>, Option<Date>), String> {
    let day = |name: &str| match visitor.asked(name) {
        None => Ok(None),
        Some(text) => instant(text, now)
            .map(|at| Some(Date::of(at)))
            .ok_or_else(|| format!("{text:?} is no day; write 7d or 2026-11-16")),
    };
    let (from, until) = (day("from")?, day("until")?);
    let (first, last) = (from.unwrap_or(until.unwrap_or(Date::of(now))), until.unwrap_or(Date::of(now)));
    match last.since(first) {
        days if days < 0 => Err("the first day must not be after the last".to_owned()),
        days if days >= DAYS_MAX => Err(format!("at most {DAYS_MAX} days are counted at once")),
        _ => Ok((from, until)),
    }
}

fn address(path: &str, from: Date, until: Date, by: By) -> String {
    let pair = |name: &str, value: String| (name.to_owned(), value);
    let pairs = [
        pair("from", from.to_string()),
        pair("until", until.to_string()),
        pair("by", by.as_str().to_owned()),
    ];
    format!("{path}{}", query(&pairs))
}
