//! The tally of one day, in UTC.

use super::steps::StepTallies;
use super::tally::{ActivityTally, OutcomeCounts, is_zero};
use crate::plan::Driver;
use crate::time::Timestamp;
use crate::time::calendar;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;
/// 31 December 9999; later times are counted there.
const LAST: i64 = 2_932_896;

/// Plans, or tools, counted by name on one day; any more are counted together.
pub const NAMES_MAX: usize = 1_000;
/// The name under which they are counted together.
pub const OTHERS: &str = "(others)";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DailyTally {
    /// By hour, from 0 to 23; hours without events are left out.
    pub hours: BTreeMap<u8, HourlyTally>,
    pub plans: TallyByName,
    pub tools: TallyByName,
    #[serde(skip_serializing_if = "StepTallies::is_empty")]
    pub steps: StepTallies,
    pub server: ActivityTally,
    pub agent: ActivityTally,
}

impl DailyTally {
    pub fn add(&mut self, other: &DailyTally) {
        for (hour, theirs) in &other.hours {
            self.hours.entry(*hour).or_default().add(theirs);
        }
        self.plans.add(&other.plans);
        self.tools.add(&other.tools);
        self.steps.add(&other.steps);
        self.server.add(&other.server);
        self.agent.add(&other.agent);
    }

    pub fn of(&mut self, driver: Driver) -> &mut ActivityTally {
        match driver {
            Driver::Server => &mut self.server,
            Driver::Agent => &mut self.agent,
        }
    }

    /// The tally of both drivers.
    pub fn total(&self) -> ActivityTally {
        let mut total = self.server.clone();
        total.add(&self.agent);
        total
    }

    /// The number of saved plans, including new revisions.
    pub fn saved(&self) -> u64 {
        self.hours.values().map(|hour| hour.saved).sum()
    }
}

/// The tally of one hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HourlyTally {
    #[serde(skip_serializing_if = "is_zero")]
    pub opened: u64,
    #[serde(skip_serializing_if = "OutcomeCounts::is_empty")]
    pub ended: OutcomeCounts,
    /// The number of saved plans, including new revisions.
    #[serde(skip_serializing_if = "is_zero")]
    pub saved: u64,
}

impl HourlyTally {
    pub fn add(&mut self, other: &HourlyTally) {
        self.opened += other.opened;
        self.ended.add(&other.ended);
        self.saved += other.saved;
    }
}

/// Tallies by name, at most [`NAMES_MAX`] and one for the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TallyByName(BTreeMap<Arc<str>, ActivityTally>);

impl TallyByName {
    /// The tally of a name, or that of all others when there are too many.
    pub fn of(&mut self, name: &str) -> &mut ActivityTally {
        let is_known = self.0.contains_key(name);
        let named = self.0.len() - usize::from(self.0.contains_key(OTHERS));
        let name = if is_known || named < NAMES_MAX { name } else { OTHERS };
        self.0.entry(name.into()).or_default()
    }

    pub fn add(&mut self, other: &TallyByName) {
        for (name, tally) in &other.0 {
            self.of(name).add(tally);
        }
    }

    pub fn get(&self, name: &str) -> Option<&ActivityTally> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &ActivityTally)> {
        self.0.iter()
    }
}

/// A day of the calendar, counted from 1 January 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CalendarDate(i64);

impl CalendarDate {
    pub fn of(at: Timestamp) -> CalendarDate {
        CalendarDate(at.0.div_euclid(DAY_MS).clamp(0, LAST))
    }

    /// From 0 to 23.
    pub fn hour(at: Timestamp) -> u8 {
        u8::try_from(at.0.rem_euclid(DAY_MS) / HOUR_MS).expect("a day has 24 hours")
    }

    /// The start of the day.
    pub fn start(self) -> Timestamp {
        Timestamp(self.0 * DAY_MS)
    }

    /// The date some days later, or earlier.
    pub fn plus(self, days: i64) -> CalendarDate {
        CalendarDate(self.0.saturating_add(days).clamp(0, LAST))
    }

    /// The number of days since another date.
    pub fn since(self, earlier: CalendarDate) -> i64 {
        self.0 - earlier.0
    }

    /// Parses `2026-11-16`.
    pub fn parse(text: &str) -> Option<CalendarDate> {
        let number = |part: &str, digits: usize| {
            (part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()))
                .then(|| part.parse::<i64>().ok())?
        };
        let mut parts = text.split('-');
        let (year, month, day) = (number(parts.next()?, 4)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
        if parts.next().is_some() || year < 1970 {
            return None;
        }
        calendar::days(year, month, day).map(CalendarDate)
    }
}

impl fmt::Display for CalendarDate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&calendar::utc_date(self.start()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_they_are_written() {
        for days in (0..40_000).chain(LAST - 1_000..=LAST) {
            let date = CalendarDate(days);
            assert_eq!(CalendarDate::parse(&date.to_string()), Some(date));
        }
        for text in ["", "2026", "2026-02-29", "2026-13-01", "2026-00-10", "2026-11-31", "2026-1-1", "1969-12-31"] {
            assert_eq!(CalendarDate::parse(text), None, "{text}");
        }
        assert_eq!(CalendarDate::of(Timestamp(1_794_801_300_250)).to_string(), "2026-11-16");
        assert_eq!(CalendarDate::hour(Timestamp(1_794_801_300_250)), 3);
        assert_eq!(CalendarDate::of(Timestamp(i64::MAX)).to_string(), "9999-12-31");
        assert_eq!(CalendarDate::of(Timestamp(-5)).to_string(), "1970-01-01");
    }

    #[test]
    fn names_beyond_the_bound_are_counted_together() {
        for (names, own, others) in [(NAMES_MAX - 1, 999, 0), (NAMES_MAX, 1_000, 0), (NAMES_MAX + 1, 1_000, 1)] {
            let mut tallies = TallyByName::default();
            for name in 0..names {
                tallies.of(&format!("plan {name}")).opened += 1;
            }
            tallies.of("plan 7").opened += 1;
            let together = tallies.get(OTHERS).map_or(0, |tally| tally.opened);
            let named = tallies.iter().filter(|(name, _)| &***name != OTHERS).count();
            assert_eq!((named, together, tallies.get("plan 7").unwrap().opened), (own, others, 2), "{names}");
        }
    }

    #[test]
    fn adding_never_exceeds_the_bound() {
        let of = |range: std::ops::Range<usize>| {
            let mut names = TallyByName::default();
            range.for_each(|name| names.of(&format!("{name:05}")).opened += 1);
            names
        };
        let mut all = of(0..1_500);
        all.add(&of(1_400..2_500));
        assert_eq!(all.iter().count(), NAMES_MAX + 1);
        assert_eq!(all.iter().map(|(_, tally)| tally.opened).sum::<u64>(), 2_600);
    }
}
