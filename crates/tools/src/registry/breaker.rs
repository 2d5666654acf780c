//! A circuit breaker: pauses a server when its calls fail one after the other, then tries with a single call.

use rutter_core::time::calendar::utc_seconds;
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::report::BreakerReport;
use rutter_core::tool::{CallOutcome, FailureCategory, ToolFailure};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const PAUSE_MAX: Millis = Millis::seconds(300);
/// How long a trial call will take is unknown. This much later it is looked at again, which other calls have on record.
const TRIAL_PAUSE: Millis = Millis::seconds(10);

#[derive(Debug)]
pub struct CircuitBreaker {
    /// So many failures in a row open it.
    failures_max: u32,
    pause_first: Millis,
    state: Mutex<BreakerState>,
}

#[derive(Debug)]
struct BreakerState {
    /// In a row.
    failures: u32,
    open: Option<OpenBreaker>,
}

#[derive(Clone, Debug)]
struct OpenBreaker {
    since: Timestamp,
    /// When this pause began; it moves with every trial that fails.
    paused_at: Timestamp,
    pause: Millis,
    /// A call is in flight that will show whether the server is back.
    on_trial: bool,
    reason: String,
}

impl CircuitBreaker {
    pub fn new(failures_max: u32, pause_first: Millis) -> CircuitBreaker {
        let state = Mutex::new(BreakerState { failures: 0, open: None });
        CircuitBreaker { failures_max: failures_max.max(1), pause_first, state }
    }

    /// Lets a call through, or returns why not. A call that is let through reports its outcome, or does not count.
    pub fn enter(self: &Arc<Self>, now: Timestamp) -> Result<BreakerPass, ToolFailure> {
        let mut state = self.lock();
        if let Some(mut refusal) = state.refusal(now) {
            refusal.message.push_str(&format!("; next try in {}", refusal.retry_after.unwrap_or_default()));
            return Err(refusal);
        }
        let on_trial = state.open.is_some();
        if let Some(open) = &mut state.open {
            open.on_trial = true;
        }
        Ok(BreakerPass { breaker: Arc::clone(self), on_trial })
    }

    /// Why a call would not be let through now, and for how long.
    pub fn refusal(&self, now: Timestamp) -> Option<ToolFailure> {
        self.lock().refusal(now)
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
        *self.lock() = BreakerState { failures: 0, open: None };
    }

    fn lock(&self) -> MutexGuard<'_, BreakerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BreakerState {
    fn refusal(&mut self, now: Timestamp) -> Option<ToolFailure> {
        let failures = self.failures;
        let open = self.open.as_mut()?;
        let retry_after = match open.rest(now) {
            Millis(0) if open.on_trial => TRIAL_PAUSE,
            Millis(0) => return None,
            rest => rest,
        };
        let message = format!(
            "the circuit breaker is open since {}, after {failures} failures in a row, the last one {}",
            utc_seconds(open.since),
            open.reason,
        );
        let failure = ToolFailure::new(FailureCategory::Unavailable, message);
        Some(ToolFailure { retry_after: Some(retry_after), ..failure })
    }
}

impl OpenBreaker {
    /// How long the pause still lasts.
    fn rest(&mut self, now: Timestamp) -> Millis {
        // A clock that was set back must not make the pause longer.
        self.paused_at = self.paused_at.min(now);
        self.since = self.since.min(now);
        Millis(self.pause.0.saturating_sub(now.since(self.paused_at).0))
    }
}

/// A call that was let through. Dropped without an outcome, it says nothing about the server.
#[derive(Debug)]
pub struct BreakerPass {
    breaker: Arc<CircuitBreaker>,
    on_trial: bool,
}

impl BreakerPass {
    pub fn ended(mut self, outcome: &CallOutcome, now: Timestamp) {
        let mut state = self.breaker.lock();
        match (verdict(outcome), &mut state.open) {
            (ServerHealth::Unknown, _) => return,
            // A call from before the breaker opened says nothing about the server now.
            (_, Some(_)) if !self.on_trial => return,
            (ServerHealth::Well, _) => *state = BreakerState { failures: 0, open: None },
            (ServerHealth::Ill(reason), Some(open)) => {
                open.pause = Millis(open.pause.0.saturating_mul(2).min(PAUSE_MAX.0));
                (open.paused_at, open.on_trial, open.reason) = (now, false, reason);
                state.failures = state.failures.saturating_add(1);
            }
            (ServerHealth::Ill(reason), None) => {
                state.failures += 1;
                if state.failures >= self.breaker.failures_max {
                    let pause = self.breaker.pause_first.min(PAUSE_MAX);
                    let open = OpenBreaker { since: now, paused_at: now, pause, on_trial: false, reason };
                    state.open = Some(open);
                }
            }
        }
        self.on_trial = false;
    }
}

impl Drop for BreakerPass {
    fn drop(&mut self) {
        if let Some(open) = self.breaker.lock().open.as_mut().filter(|_| self.on_trial) {
            open.on_trial = false;
        }
    }
}

/// What an outcome says about the server.
enum ServerHealth {
    Well,
    Ill(String),
    Unknown,
}

/// A server that answers works, even if it refuses.
fn verdict(outcome: &CallOutcome) -> ServerHealth {
    let failure = match outcome {
        CallOutcome::Done { .. } => return ServerHealth::Well,
        CallOutcome::NotDone(failure) | CallOutcome::Maybe(failure) => failure,
    };
    match failure.category {
        FailureCategory::Unavailable
        | FailureCategory::Timeout
        | FailureCategory::Protocol
        | FailureCategory::Internal => ServerHealth::Ill(failure.to_string()),
        FailureCategory::Cancelled => ServerHealth::Unknown,
        FailureCategory::InvalidInput
        | FailureCategory::Unauthorized
        | FailureCategory::NotFound
        | FailureCategory::Conflict
        | FailureCategory::RateLimited
        | FailureCategory::ToolError => ServerHealth::Well,
    }
}
