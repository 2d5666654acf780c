//! What time it is. The only place that asks the system.
//!
//! Spans are measured on the monotonic clock: somebody setting the wall clock neither fires a timer early nor late.
//! Times on record are the wall clock's as it was when the process started, plus what has passed since.

use rutter_core::time::Timestamp;
use std::time::{Duration, Instant, SystemTime};

/// How far the wall clock may run away before somebody should know.
pub const JUMP_MAX: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
pub struct Clock {
    began: Instant,
    wall: Timestamp,
}

impl Clock {
    pub fn system() -> Clock {
        Clock { began: Instant::now(), wall: wall() }
    }

    pub fn now(&self) -> Timestamp {
        let passed = i64::try_from(self.began.elapsed().as_millis()).unwrap_or(i64::MAX);
        Timestamp(self.wall.0.saturating_add(passed))
    }

    /// How far the wall clock has moved away from ours since the start, if it is worth telling.
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
