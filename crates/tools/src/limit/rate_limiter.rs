//! A limit of calls per span, with bursts of as many: the generic cell rate algorithm (GCRA).
//!
//! Checking and taking are separate. Two rates apply to one call, and a call that one of them forbids must not use up
//! the other; a limiter that takes while it checks cannot guarantee that.

use crate::config::CallRate;
use std::time::Duration;
use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct RateLimiter {
    /// Between two calls, once the burst is used up.
    interval: Duration,
    /// How far calls may run ahead of the rate.
    lead: Duration,
    /// When all calls so far are paid off: GCRA's theoretical arrival time.
    even_at: Option<Instant>,
}

impl RateLimiter {
    pub(super) fn new(rate: CallRate) -> RateLimiter {
        let calls = rate.calls.max(1);
        let nanos = Duration::from_millis(rate.per.0).as_nanos().div_ceil(u128::from(calls));
        let interval = Duration::from_nanos(nanos.try_into().unwrap_or(u64::MAX));
        RateLimiter { interval, lead: interval * (calls - 1), even_at: None }
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
