//! Leaves a server alone for a while when its calls fail one after the other, then tries with a single call.

use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::report::BreakerReport;
use rutter_core::tool::{Category, Failure, Outcome};
use std::sync::{Mutex, MutexGuard, PoisonError};

const PAUSE_MAX: Millis = Millis::seconds(300);

#[derive(Debug)]
pub struct Breaker {
    /// So many failures in a row open it.
    failures_max: u32,
    pause_first: Millis,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// In a row.
    failures: u32,
    open: Option<Open>,
}

#[derive(Clone, Debug)]
struct Open {
    since: Timestamp,
    /// When this pause began; it moves with every trial that fails.
    paused_at: Timestamp,
    pause: Millis,
    /// A call is under way that will show whether the server is back.
    on_trial: bool,
    reason: String,
}

impl Breaker {
    pub fn new(failures_max: u32, pause_first: Millis) -> Breaker {
        let state = Mutex::new(State { failures: 0, open: None });
        Breaker { failures_max: failures_max.max(1), pause_first, state }
    }

    /// Lets a call through, or says why not. What is let through says how it ended, or counts as not made.
    pub fn enter(&self, now: Timestamp) -> Result<Passage<'_>, Failure> {
        let mut state = self.lock();
        let failures = state.failures;
        let Some(open) = &mut state.open else { return Ok(Passage { breaker: self, on_trial: false }) };
        let rest = open.rest(now);
        if rest == Millis(0) && !open.on_trial {
            open.on_trial = true;
            return Ok(Passage { breaker: self, on_trial: true });
        }
        // While a trial is under way nobody knows how long it will take; a short look later costs nothing.
        let retry_after = if rest == Millis(0) { Millis::seconds(1) } else { rest };
        let message = format!(
            "the server is left alone for {} now, after {failures} failures in a row, the last one {}; next try in {}",
            now.since(open.since),
            open.reason,
            retry_after
        );
        Err(Failure { retry_after: Some(retry_after), ..Failure::new(Category::Unavailable, message) })
    }

    pub fn report(&self, now: Timestamp) -> BreakerReport {
        let mut state = self.lock();
        let failures = state.failures;
        let Some(open) = &mut state.open else { return BreakerReport::Closed { failures } };
        let (since, reason) = (open.since, open.reason.clone());
        match open.rest(now) {
            Millis(0) => BreakerReport::HalfOpen { since, reason },
            rest => BreakerReport::Open { since, rest, reason },
        }
    }

    /// Forgets every failure: the next call goes through.
    pub fn reset(&self) {
        *self.lock() = State { failures: 0, open: None };
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// How long the server is still left alone.
    fn rest(&mut self, now: Timestamp) -> Millis {
        // A clock that was set back must not make the pause longer.
        self.paused_at = self.paused_at.min(now);
        self.since = self.since.min(now);
        Millis(self.pause.0.saturating_sub(now.since(self.paused_at).0))
    }
}

/// A call that was let through. Dropped without a word about how it ended, it shows nothing of the server.
#[derive(Debug)]
pub struct Passage<'a> {
    breaker: &'a Breaker,
    on_trial: bool,
}

impl Passage<'_> {
    pub fn ended(mut self, outcome: &Outcome, now: Timestamp) {
        let mut state = self.breaker.lock();
        match (verdict(outcome), &mut state.open) {
            (Verdict::Unknown, _) => return,
            // Calls from before it opened show how the server was then.
            (_, Some(_)) if !self.on_trial => return,
            (Verdict::Well, _) => *state = State { failures: 0, open: None },
            (Verdict::Ill(reason), Some(open)) => {
                open.pause = Millis(open.pause.0.saturating_mul(2).min(PAUSE_MAX.0));
                (open.paused_at, open.on_trial, open.reason) = (now, false, reason);
                state.failures = state.failures.saturating_add(1);
            }
            (Verdict::Ill(reason), None) => {
                state.failures += 1;
                if state.failures >= self.breaker.failures_max {
                    let pause = self.breaker.pause_first.min(PAUSE_MAX);
                    let open = Open { since: now, paused_at: now, pause, on_trial: false, reason };
                    state.open = Some(open);
                }
            }
        }
        self.on_trial = false;
    }
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        if let Some(open) = self.breaker.lock().open.as_mut().filter(|_| self.on_trial) {
            open.on_trial = false;
        }
    }
}

/// What an outcome says of the server.
enum Verdict {
    Well,
    Ill(String),
    Unknown,
}

/// Whoever answers, even to refuse, is there.
fn verdict(outcome: &Outcome) -> Verdict {
    let failure = match outcome {
        Outcome::Done { .. } => return Verdict::Well,
        Outcome::NotDone(failure) | Outcome::Maybe(failure) => failure,
    };
    match failure.category {
        Category::Unavailable | Category::Timeout | Category::Protocol | Category::Internal => {
            Verdict::Ill(failure.to_string())
        }
        Category::Cancelled => Verdict::Unknown,
        Category::InvalidInput
        | Category::Unauthorized
        | Category::NotFound
        | Category::Conflict
        | Category::RateLimited
        | Category::ToolError => Verdict::Well,
    }
}
