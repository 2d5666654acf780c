//! What a response means for a delivery, and when it is retried.

use rutter_core::port::outbox::{DeliveryAttempt, DeliveryFollowUp, SendOutcome};
use rutter_core::time::{Millis, Timestamp};

/// Delays between attempts, with jitter so that not all retries come at once.
const DELAYS: [Millis; 7] = [
    Millis::seconds(5),
    Millis::seconds(5 * 60),
    Millis::seconds(30 * 60),
    Millis::hours(2),
    Millis::hours(5),
    Millis::hours(10),
    Millis::hours(14),
];
/// The longest delay a receiver may request with `Retry-After`.
const RETRY_AFTER_MAX: Millis = Millis::hours(24);
/// The longest backoff from a failing receiver.
const REST_MAX: Millis = Millis::seconds(5 * 60);

pub struct DeliveryVerdict {
    /// When the result was known.
    pub at: Timestamp,
    pub then: DeliveryFollowUp,
    /// The receiver itself fails, whatever is delivered.
    pub is_failing: bool,
    /// The receiver answered 410 Gone.
    pub is_gone: bool,
    pub retry_after: Option<Millis>,
    status: Option<u16>,
    outcome: String,
}

impl DeliveryVerdict {
    /// The webhook is gone or disabled.
    pub fn undeliverable(why: &str, at: Timestamp) -> DeliveryVerdict {
        let (then, outcome) = (DeliveryFollowUp::Dead, why.to_owned());
        DeliveryVerdict { at, then, is_failing: false, is_gone: false, retry_after: None, status: None, outcome }
    }

    pub fn attempt(&self, began: Timestamp) -> DeliveryAttempt {
        let outcome = self.outcome.clone();
        DeliveryAttempt { at: began, took_ms: self.at.since(began).0, status: self.status, outcome }
    }
}

/// The verdict on a response, after `attempts` earlier attempts.
pub fn after(receipt: &SendOutcome, attempts: u32, now: Timestamp) -> DeliveryVerdict {
    let (status, retry_after, outcome) = match receipt {
        SendOutcome::Answered { status, retry_after, text } => (Some(*status), *retry_after, text.clone()),
        SendOutcome::Failed { why } | SendOutcome::Refused { why } => (None, None, why.clone()),
    };
    let retry_after = retry_after.map(|span| span.min(RETRY_AFTER_MAX));
    let is_gone = status == Some(410);
    let is_unwell = !matches!(status, Some(200..=299 | 300..=407 | 409..=428 | 430..=499));
    let then = match status {
        Some(200..=299) => DeliveryFollowUp::Delivered,
        _ if is_gone => DeliveryFollowUp::Dead,
        _ => match DELAYS.get(attempts as usize) {
            Some(delay) => {
                DeliveryFollowUp::Again { at: now.plus(spread(*delay).max(retry_after.unwrap_or_default())) }
            }
            None => DeliveryFollowUp::Dead,
        },
    };
    DeliveryVerdict { at: now, then, is_failing: is_unwell, is_gone, retry_after, status, outcome }
}

/// The backoff from a receiver after this many earlier failures.
pub fn backoff_after(failures: u32) -> Millis {
    Millis(DELAYS[0].0.saturating_mul(1 << failures.min(16))).min(REST_MAX)
}

/// Between 80 and 120 percent.
fn spread(delay: Millis) -> Millis {
    let mut chance = [0; 4];
    getrandom::fill(&mut chance).expect("the system provides random bytes");
    Millis(delay.0 * (800 + u64::from(u32::from_le_bytes(chance)) % 401) / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, retry_after: Option<Millis>) -> SendOutcome {
        SendOutcome::Answered { status, retry_after, text: String::new() }
    }

    #[test]
    fn each_try_waits_longer_than_the_one_before_and_the_last_is_the_eighth() {
        let now = Timestamp(1_000_000);
        for (attempts, delay) in DELAYS.iter().enumerate() {
            for _ in 0..100 {
                let DeliveryFollowUp::Again { at } = after(&answered(500, None), attempts as u32, now).then else {
                    panic!()
                };
                let waited = at.since(now).0;
                assert!((delay.0 * 8 / 10..=delay.0 * 12 / 10).contains(&waited), "{waited} for {delay}");
            }
        }
        assert_eq!(after(&answered(500, None), 7, now).then, DeliveryFollowUp::Dead);
        assert_eq!(after(&answered(200, None), 7, now).then, DeliveryFollowUp::Delivered);
    }

    #[test]
    fn a_receiver_may_ask_for_a_longer_delay_within_a_limit() {
        let now = Timestamp(0);
        let waits = |retry_after: u64| match after(&answered(429, Some(Millis(retry_after))), 0, now).then {
            DeliveryFollowUp::Again { at } => at.0,
            _ => panic!(),
        };
        assert_eq!(waits(60_000), 60_000);
        assert!(waits(0) >= 4_000);
        assert_eq!(waits(u64::MAX), 24 * 3_600_000);
    }

    #[test]
    fn every_status_has_one_meaning() {
        for status in 100..=599 {
            let judged = after(&answered(status, None), 0, Timestamp(0));
            let expected = match status {
                200..=299 => (true, false, false),
                410 => (false, true, false),
                300..=407 | 409..=428 | 430..=499 => (false, false, false),
                _ => (false, false, true),
            };
            let found = (judged.then == DeliveryFollowUp::Delivered, judged.is_gone, judged.is_failing);
            assert_eq!(found, expected, "{status}");
            assert_eq!(judged.then == DeliveryFollowUp::Dead, status == 410);
        }
        let failed = after(&SendOutcome::Failed { why: "no".to_owned() }, 0, Timestamp(0));
        assert!(failed.is_failing && matches!(failed.then, DeliveryFollowUp::Again { .. }));
    }

    #[test]
    fn backoffs_grow_to_five_minutes() {
        let rests: Vec<u64> = (0..9).map(|failures| backoff_after(failures).0 / 1_000).collect();
        assert_eq!(rests, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(backoff_after(u32::MAX), REST_MAX);
    }
}
