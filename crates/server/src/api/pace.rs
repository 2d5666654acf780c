//! How fast one guest may ask: a bucket of tokens for looking and one for changing, each refilled as time passes.

use crate::fault::Fault;
use crate::guest::Guest;
use crate::limits::PACED_GUESTS_MAX;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;

/// So many a second in the long run, and so many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// 0 is without limit.
    pub per_second: u32,
    pub burst: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Pursuit {
    Look,
    Change,
}

#[derive(Debug)]
pub(crate) struct Pace {
    look: Rate,
    change: Rate,
    buckets: Mutex<HashMap<(String, Pursuit), Bucket>>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    tokens: f64,
    at: Instant,
}

/// What is left to whoever asked, for the headers of the answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Allowance {
    limit: u32,
    remaining: u32,
    /// Seconds until all of it is there again.
    reset: u64,
    /// Seconds until the next request is let through, if this one is not.
    wait: Option<u64>,
}

impl Pace {
    pub(crate) fn new(look: Rate, change: Rate) -> Pace {
        Pace { look, change, buckets: Mutex::default() }
    }

    /// Takes one token; `None` where there is no limit.
    pub(crate) fn take(&self, guest: &Guest, pursuit: Pursuit, now: Instant) -> Option<Allowance> {
        let rate = match pursuit {
            Pursuit::Look => self.look,
            Pursuit::Change => self.change,
        };
        if rate.per_second == 0 {
            return None;
        }
        let burst = f64::from(rate.burst.max(1));
        let (per_second, name) = (f64::from(rate.per_second), format!("{}/{}", guest.tenant, guest.id));
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= PACED_GUESTS_MAX {
            // Whoever has all tokens again needs no memory of it.
            buckets.retain(|_, bucket| bucket.filled(per_second, now) < burst);
        }
        let bucket = buckets.entry((name, pursuit)).or_insert(Bucket { tokens: burst, at: now });
        let tokens = bucket.filled(per_second, now).min(burst);
        let (tokens, wait) = match tokens >= 1.0 {
            true => (tokens - 1.0, None),
            false => (tokens, Some(((1.0 - tokens) / per_second).ceil().max(1.0) as u64)),
        };
        *bucket = Bucket { tokens, at: now };
        let reset = ((burst - tokens) / per_second).ceil() as u64;
        Some(Allowance { limit: rate.burst.max(1), remaining: tokens as u32, reset, wait })
    }
}

impl Bucket {
    fn filled(&self, per_second: f64, now: Instant) -> f64 {
        self.tokens + now.saturating_duration_since(self.at).as_secs_f64() * per_second
    }
}

impl Allowance {
    pub(crate) fn fault(&self) -> Option<Fault> {
        let wait = self.wait?;
        let fault = Fault::new("server.rate_limited", "these are too many requests at once");
        Some(Fault { retryable: true, ..fault.hint(format!("wait {wait} s, then go on more slowly")) })
    }

    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        let mut put = |name: &'static str, value: u64| {
            headers.insert(HeaderName::from_static(name), HeaderValue::from(value));
        };
        put("ratelimit-limit", u64::from(self.limit));
        put("ratelimit-remaining", u64::from(self.remaining));
        put("ratelimit-reset", self.reset);
        if let Some(wait) = self.wait {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rutter_core::id::TenantId;
    use std::time::Duration;

    fn guest(name: &str) -> Guest {
        let guest = Guest::local(TenantId::new("default"), "operator", Default::default());
        Guest { id: name.to_owned(), ..guest }
    }

    fn let_through(pace: &Pace, name: &str, times: usize, now: Instant) -> usize {
        let taken = (0..times).map(|_| pace.take(&guest(name), Pursuit::Change, now));
        taken.filter(|allowance| allowance.is_some_and(|allowance| allowance.wait.is_none())).count()
    }

    #[test]
    fn a_burst_is_let_through_and_then_as_many_as_time_brings() {
        let rate = Rate { per_second: 20, burst: 40 };
        let (pace, now) = (Pace::new(rate, rate), Instant::now());
        assert_eq!(let_through(&pace, "a", 100, now), 40);
        assert_eq!(let_through(&pace, "a", 100, now + Duration::from_millis(500)), 10);
        assert_eq!(let_through(&pace, "b", 100, now), 40, "others have their own");
        assert_eq!(
            let_through(&pace, "a", 100, now + Duration::from_secs(60)),
            40,
            "and never more than that"
        );
        assert!(
            pace.take(&guest("a"), Pursuit::Look, now).unwrap().wait.is_none(),
            "looking is counted apart"
        );
    }

    #[test]
    fn whoever_is_refused_hears_when_to_come_again() {
        let rate = Rate { per_second: 1, burst: 1 };
        let (pace, now) = (Pace::new(rate, rate), Instant::now());
        pace.take(&guest("a"), Pursuit::Look, now);
        let refused = pace.take(&guest("a"), Pursuit::Look, now).unwrap();
        assert_eq!(refused, Allowance { limit: 1, remaining: 0, reset: 1, wait: Some(1) });
        assert!(pace.take(&guest("a"), Pursuit::Look, now + Duration::from_secs(1)).unwrap().wait.is_none());
    }

    #[test]
    fn nothing_a_second_is_no_limit() {
        let pace = Pace::new(Rate { per_second: 0, burst: 0 }, Rate { per_second: 0, burst: 0 });
        assert_eq!(pace.take(&guest("a"), Pursuit::Change, Instant::now()), None);
    }
}
