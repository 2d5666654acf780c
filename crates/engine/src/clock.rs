//! The clock. The only place that reads the system's time.
//!
//! Spans are measured on the monotonic clock: setting the wall clock fires no timer early or late. Recorded times are
//! the wall clock's when the process started, plus the time elapsed since.

use rutter_core::time::Timestamp;
use std::time::{Duration, Instant, SystemTime};

/// How far the wall clock may drift before it is worth a warning.
pub const JUMP_MAX: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    began: Instant,
    wall: Timestamp,
}

impl SystemClock {
    pub fn system() -> SystemClock {
        SystemClock::starting_at(wall())
    }

    /// A clock on which it is this time now.
    pub fn starting_at(wall: Timestamp) -> SystemClock {
        SystemClock { began: Instant::now(), wall }
    }

    pub fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.wall.0.saturating_add(passed))
    }

    /// How far the wall clock has drifted from this one since the start, if more than [`JUMP_MAX`].
    pub fn jump(&self) -> Option<i64> {
        let apart = wall().0.saturating_sub(self.now().0);
        (u128::from(apart.unsigned_abs()) > JUMP_MAX.as_millis()).then_some(apart)
    }

    pub async fn sleep_until(&self, when: Timestamp) {
        tokio::time::sleep(Duration::from_millis(when.since(self.now()).0)).await;
    }
}

fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
