//! What an answer means for a delivery, and when it is tried again.

use rutter_core::port::outbox::{DeliveryAttempt, Receipt, Then};
use rutter_core::time::{Millis, Timestamp};

/// Between one try and the next; a little more or less by chance, so that not everything comes back at once.
const DELAYS: [Millis; 7] = [
    Millis::seconds(5),
    Millis::seconds(5 * 60),
    Millis::seconds(30 * 60),
    Millis::hours(2),
    Millis::hours(5),
    Millis::hours(10),
    Millis::hours(14),
];
/// A receiver may ask for more time than the next delay, though not for ever.
const RETRY_AFTER_MAX: Millis = Millis::hours(24);
/// How long a receiver that does not answer well is left alone at most.
const REST_MAX: Millis = Millis::seconds(5 * 60);

pub(super) struct Judged {
    /// When it was known.
    pub at: Timestamp,
    pub then: Then,
    /// The receiver has trouble that has nothing to do with this very delivery.
    pub is_unwell: bool,
    /// The receiver does not want to hear of us again.
    pub is_gone: bool,
    pub retry_after: Option<Millis>,
    status: Option<u16>,
    outcome: String,
}

impl Judged {
    /// There is nobody to send it to.
    pub fn pointless(why: &str, at: Timestamp) -> Judged {
        let (then, outcome) = (Then::Dead, why.to_owned());
        Judged { at, then, is_unwell: false, is_gone: false, retry_after: None, status: None, outcome }
    }

    pub fn attempt(&self, began: Timestamp) -> DeliveryAttempt {
        let outcome = self.outcome.clone();
        DeliveryAttempt { at: began, took_ms: self.at.since(began).0, status: self.status, outcome }
    }
}

/// What follows from an answer to the try after so many others.
pub(super) fn after(receipt: &Receipt, attempts: u32, now: Timestamp) -> Judged {
    let (status, retry_after, outcome) = match receipt {
        Receipt::Answered { status, retry_after, text } => (Some(*status), *retry_after, text.clone()),
        Receipt::Failed { why } | Receipt::Refused { why } => (None, None, why.clone()),
    };
    let retry_after = retry_after.map(|span| span.min(RETRY_AFTER_MAX));
    let is_gone = status == Some(410);
    let is_unwell = !matches!(status, Some(200..=299 | 300..=407 | 409..=428 | 430..=499));
    let then = match status {
        Some(200..=299) => Then::Delivered,
        _ if is_gone => Then::Dead,
        _ => match DELAYS.get(attempts as usize) {
            Some(delay) => Then::Again { at: now.plus(spread(*delay).max(retry_after.unwrap_or_default())) },
            None => Then::Dead,
        },
    };
    Judged { at: now, then, is_unwell, is_gone, retry_after, status, outcome }
}

/// How long a receiver is left alone after so many failures before this one.
pub(super) fn rest(failures: u32) -> Millis {
    Millis(DELAYS[0].0.saturating_mul(1 << failures.min(16))).min(REST_MAX)
}

/// Between 80 and 120 percent.
fn spread(delay: Millis) -> Millis {
    let mut chance = [0; 4];
    getrandom::fill(&mut chance).expect("the system has chance to give");
    Millis(delay.0 * (800 + u64::from(u32::from_le_bytes(chance)) % 401) / 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, retry_after: Option<Millis>) -> Receipt {
        Receipt::Answered { status, retry_after, text: String::new() }
    }

    #[test]
    fn each_try_waits_longer_than_the_one_before_and_the_last_is_the_eighth() {
        let now = Timestamp(1_000_000);
        for (attempts, delay) in DELAYS.iter().enumerate() {
            for _ in 0..100 {
                let Then::Again { at } = after(&answered(500, None), attempts as u32, now).then else {
                    panic!()
                };
                let waited = at.since(now).0;
                assert!((delay.0 * 8 / 10..=delay.0 * 12 / 10).contains(&waited), "{waited} for {delay}");
            }
        }
        assert_eq!(after(&answered(500, None), 7, now).then, Then::Dead);
        assert_eq!(after(&answered(200, None), 7, now).then, Then::Delivered);
    }

    #[test]
    fn a_receiver_may_ask_for_more_time_but_not_for_ever() {
        let now = Timestamp(0);
        let waits = |retry_after: u64| match after(&answered(429, Some(Millis(retry_after))), 0, now).then {
            Then::Again { at } => at.0,
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
            let found = (judged.then == Then::Delivered, judged.is_gone, judged.is_unwell);
            assert_eq!(found, expected, "{status}");
            assert_eq!(judged.then == Then::Dead, status == 410);
        }
        let failed = after(&Receipt::Failed { why: "no".to_owned() }, 0, Timestamp(0));
        assert!(failed.is_unwell && matches!(failed.then, Then::Again { .. }));
    }

    #[test]
    fn rests_grow_to_five_minutes() {
        let rests: Vec<u64> = (0..9).map(|failures| rest(failures).0 / 1_000).collect();
        assert_eq!(rests, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        assert_eq!(rest(u32::MAX), REST_MAX);
    }
}
