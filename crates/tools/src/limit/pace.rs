//! So many calls per span, as many at once: the generic cell rate algorithm.
//!
//! Looking is not taking here. Two rates hold for one call, and a call that one of them forbids must not use up the
//! other; limiters that take while they look cannot promise that.

use crate::config::Rate;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Pace {
    /// Between two calls, once the ones at once are used up.
    interval: Duration,
    /// How far ahead of the pace one may be.
    lead: Duration,
    /// When everything used so far will be made up for.
    even_at: Option<Instant>,
}

impl Pace {
    pub(super) fn new(rate: Rate) -> Pace {
        let calls = rate.calls.max(1);
        let nanos = Duration::from_millis(rate.per.0).as_nanos().div_ceil(u128::from(calls));
        let interval = Duration::from_nanos(nanos.try_into().unwrap_or(u64::MAX));
        Pace { interval, lead: interval * (calls - 1), even_at: None }
    }

    /// When the next call is allowed, if not now.
    pub(super) fn not_before(&self, now: Instant) -> Option<Instant> {
        let even_at = self.even_at.filter(|even_at| *even_at > now + self.lead)?;
        Some(even_at - self.lead)
    }

    pub(super) fn take(&mut self, now: Instant) {
        let from = self.even_at.map_or(now, |even_at| even_at.max(now));
        self.even_at = Some(from + self.interval);
    }
}
