//! Rate limits per principal: one token bucket for reads and one for changes.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use rutter_app::error::AppError;
use rutter_app::limits::RATE_LIMITED_PRINCIPALS_MAX;
use rutter_app::principal::Principal;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio::time::Instant;

/// Requests per second on average, and in a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestRate {
    /// 0 means unlimited.
    pub per_second: u32,
    pub burst: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RequestKind {
    Read,
    Change,
}

#[derive(Debug)]
pub(crate) struct RequestRateLimiter {
    reads: RequestRate,
    changes: RequestRate,
    buckets: Mutex<HashMap<(String, RequestKind), TokenBucket>>,
}

#[derive(Clone, Copy, Debug)]
struct TokenBucket {
    tokens: f64,
    at: Instant,
}

/// The remaining allowance of a principal, for the response headers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateAllowance {
    limit: u32,
    remaining: u32,
    /// Seconds until the bucket is full.
    reset: u64,
    /// Seconds until the next request is allowed, if this one is not.
    wait: Option<u64>,
}

impl RequestRateLimiter {
    pub(crate) fn new(look: RequestRate, change: RequestRate) -> RequestRateLimiter {
        RequestRateLimiter { reads: look, changes: change, buckets: Mutex::default() }
    }

    /// Takes one token; `None` when there is no limit.
    pub(crate) fn take(&self, principal: &Principal, pursuit: RequestKind, now: Instant) -> Option<RateAllowance> {
        let rate = match pursuit {
            RequestKind::Read => self.reads,
            RequestKind::Change => self.changes,
        };
        if rate.per_second == 0 {
            return None;
        }
        let burst = f64::from(rate.burst.max(1));
        let (per_second, name) = (f64::from(rate.per_second), format!("{}/{}", principal.tenant, principal.id()));
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if buckets.len() >= RATE_LIMITED_PRINCIPALS_MAX {
            // Full buckets need not be remembered.
            buckets.retain(|_, bucket| bucket.filled(per_second, now) < burst);
        }
        let bucket = buckets.entry((name, pursuit)).or_insert(TokenBucket { tokens: burst, at: now });
        let tokens = bucket.filled(per_second, now).min(burst);
        let (tokens, wait) = match tokens >= 1.0 {
            true => (tokens - 1.0, None),
            false => (tokens, Some(((1.0 - tokens) / per_second).ceil().max(1.0) as u64)),
        };
        *bucket = TokenBucket { tokens, at: now };
        let reset = ((burst - tokens) / per_second).ceil() as u64;
        Some(RateAllowance { limit: rate.burst.max(1), remaining: tokens as u32, reset, wait })
    }
}

impl TokenBucket {
    fn filled(&self, per_second: f64, now: Instant) -> f64 {
        self.tokens + now.saturating_duration_since(self.at).as_secs_f64() * per_second
    }
}

impl RateAllowance {
    pub(crate) fn fault(&self) -> Option<AppError> {
        let wait = self.wait?;
        let error = AppError::new("server.rate_limited", "too many requests");
        Some(AppError { retryable: true, ..error.hint(format!("wait {wait} s and send requests more slowly")) })
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
    use rutter_app::principal::Credential;
    use rutter_core::id::TenantId;
    use std::time::Duration;

    fn principal(name: &str) -> Principal {
        let principal = Principal::local(TenantId::new("default"), "operator", Default::default());
        Principal { credential: Credential::Token { name: name.to_owned() }, ..principal }
    }

    fn let_through(pace: &RequestRateLimiter, name: &str, times: usize, now: Instant) -> usize {
        let taken = (0..times).map(|_| pace.take(&principal(name), RequestKind::Change, now));
        taken.filter(|allowance| allowance.is_some_and(|allowance| allowance.wait.is_none())).count()
    }

    #[test]
    fn a_burst_is_allowed_and_then_the_steady_rate() {
        let rate = RequestRate { per_second: 20, burst: 40 };
        let (pace, now) = (RequestRateLimiter::new(rate, rate), Instant::now());
        assert_eq!(let_through(&pace, "a", 100, now), 40);
        assert_eq!(let_through(&pace, "a", 100, now + Duration::from_millis(500)), 10);
        assert_eq!(let_through(&pace, "b", 100, now), 40, "others have their own");
        assert_eq!(let_through(&pace, "a", 100, now + Duration::from_secs(60)), 40, "and never more than that");
        assert!(
            pace.take(&principal("a"), RequestKind::Read, now).unwrap().wait.is_none(),
            "reads are counted separately"
        );
    }

    #[test]
    fn a_refusal_says_when_to_retry() {
        let rate = RequestRate { per_second: 1, burst: 1 };
        let (pace, now) = (RequestRateLimiter::new(rate, rate), Instant::now());
        pace.take(&principal("a"), RequestKind::Read, now);
        let refused = pace.take(&principal("a"), RequestKind::Read, now).unwrap();
        assert_eq!(refused, RateAllowance { limit: 1, remaining: 0, reset: 1, wait: Some(1) });
        assert!(pace.take(&principal("a"), RequestKind::Read, now + Duration::from_secs(1)).unwrap().wait.is_none());
    }

    #[test]
    fn zero_per_second_means_no_limit() {
        let pace =
            RequestRateLimiter::new(RequestRate { per_second: 0, burst: 0 }, RequestRate { per_second: 0, burst: 0 });
        assert_eq!(pace.take(&principal("a"), RequestKind::Change, Instant::now()), None);
    }
}
