//! What was counted on one day, by UTC.

use super::steps::Steps;
use super::tally::{Endings, Tally, is_zero};
use crate::plan::Driver;
use crate::time::Timestamp;
use crate::time::calendar;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

const DAY_MS: i64 = 86_400_000;
const HOUR_MS: i64 = 3_600_000;
/// 31 December 9999; what claims to be later is counted there.
const LAST: i64 = 2_932_896;

/// Plans, or tools, that are counted by name on one day; those that come later are counted together.
pub const NAMES_MAX: usize = 1_000;
/// Under which name.
pub const OTHERS: &str = "(others)";

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Day {
    /// From 0 to 23; one in which nothing happened is left out.
    pub hours: BTreeMap<u8, Hour>,
    pub plans: Names,
    pub tools: Names,
    #[serde(skip_serializing_if = "Steps::is_empty")]
    pub steps: Steps,
    pub server: Tally,
    pub agent: Tally,
}

impl Day {
    pub fn add(&mut self, other: &Day) {
        for (hour, theirs) in &other.hours {
            self.hours.entry(*hour).or_default().add(theirs);
        }
        self.plans.add(&other.plans);
        self.tools.add(&other.tools);
        self.steps.add(&other.steps);
        self.server.add(&other.server);
        self.agent.add(&other.agent);
    }

    pub fn of(&mut self, driver: Driver) -> &mut Tally {
        match driver {
            Driver::Server => &mut self.server,
            Driver::Agent => &mut self.agent,
        }
    }

    /// Everything, whoever drove it.
    pub fn total(&self) -> Tally {
        let mut total = self.server.clone();
        total.add(&self.agent);
        total
    }

    /// Plans that were saved, new revisions among them.
    pub fn saved(&self) -> u64 {
        self.hours.values().map(|hour| hour.saved).sum()
    }
}

/// What people look at by the hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Hour {
    #[serde(skip_serializing_if = "is_zero")]
    pub opened: u64,
    #[serde(skip_serializing_if = "Endings::is_empty")]
    pub ended: Endings,
    /// Plans that were saved, new revisions among them.
    #[serde(skip_serializing_if = "is_zero")]
    pub saved: u64,
}

impl Hour {
    pub fn add(&mut self, other: &Hour) {
        self.opened += other.opened;
        self.ended.add(&other.ended);
        self.saved += other.saved;
    }
}

/// Tallies by name, as many as there may be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Names(BTreeMap<Arc<str>, Tally>);

impl Names {
    /// The tally of a name, or that of all others when there are too many.
    pub fn of(&mut self, name: &str) -> &mut Tally {
        let is_known = self.0.contains_key(name);
        let named = self.0.len() - usize::from(self.0.contains_key(OTHERS));
        let name = if is_known || named < NAMES_MAX { name } else { OTHERS };
        self.0.entry(name.into()).or_default()
    }

    pub fn add(&mut self, other: &Names) {
        for (name, tally) in &other.0 {
            self.of(name).add(tally);
        }
    }

    pub fn get(&self, name: &str) -> Option<&Tally> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Tally)> {
        self.0.iter()
    }
}

/// A day of the calendar, counted from 1 January 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date(i64);

impl Date {
    pub fn of(at: Timestamp) -> Date {
        Date(at.0.div_euclid(DAY_MS).clamp(0, LAST))
    }

    /// From 0 to 23.
    pub fn hour(at: Timestamp) -> u8 {
        u8::try_from(at.0.rem_euclid(DAY_MS) / HOUR_MS).expect("a day has 24 hours")
    }

    /// Its first moment.
    pub fn start(self) -> Timestamp {
        Timestamp(self.0 * DAY_MS)
    }

    /// So many days later, or earlier.
    pub fn plus(self, days: i64) -> Date {
        Date(self.0.saturating_add(days).clamp(0, LAST))
    }

    /// Days from another one to this.
    pub fn since(self, earlier: Date) -> i64 {
        self.0 - earlier.0
    }

    /// Reads `2026-11-16`.
    pub fn parse(text: &str) -> Option<Date> {
        let number = |part: &str, digits: usize| {
            (part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()))
                .then(|| part.parse::<i64>().ok())?
        };
        let mut parts = text.split('-');
        let (year, month, day) =
            (number(parts.next()?, 4)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
        if parts.next().is_some() || !(1970..=9999).contains(&year) || !(1..=12).contains(&month) {
            return None;
        }
        // Years that begin in March have their leap day at the end.
        let year = year - i64::from(month <= 2);
        let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        let date = Date(year * 365 + year / 4 - year / 100 + year / 400 + day_of_year - 719_468);
        // A day that its month does not have is written as another one.
        (date.to_string() == text).then_some(date)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = calendar::utc(self.start());
        f.write_str(written.split('T').next().unwrap_or(&written))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_they_are_written() {
        for days in (0..40_000).chain(LAST - 1_000..=LAST) {
            let date = Date(days);
            assert_eq!(Date::parse(&date.to_string()), Some(date));
        }
        for text in
            ["", "2026", "2026-02-29", "2026-13-01", "2026-00-10", "2026-11-31", "2026-1-1", "1969-12-31"]
        {
            assert_eq!(Date::parse(text), None, "{text}");
        }
        assert_eq!(Date::of(Timestamp(1_794_801_300_250)).to_string(), "2026-11-16");
        assert_eq!(Date::hour(Timestamp(1_794_801_300_250)), 3);
        assert_eq!(Date::of(Timestamp(i64::MAX)).to_string(), "9999-12-31");
        assert_eq!(Date::of(Timestamp(-5)).to_string(), "1970-01-01");
    }

    #[test]
    fn names_beyond_the_bound_are_counted_together() {
        for (names, own, others) in
            [(NAMES_MAX - 1, 999, 0), (NAMES_MAX, 1_000, 0), (NAMES_MAX + 1, 1_000, 1)]
        {
            let mut tallies = Names::default();
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
            let mut names = Names::default();
            range.for_each(|name| names.of(&format!("{name:05}")).opened += 1);
            names
        };
        let mut all = of(0..1_500);
        all.add(&of(1_400..2_500));
        assert_eq!(all.iter().count(), NAMES_MAX + 1);
        assert_eq!(all.iter().map(|(_, tally)| tally.opened).sum::<u64>(), 2_600);
    }
}
