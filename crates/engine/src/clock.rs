//! The clock. The only place that reads the system's time.
//!
//! Spans are measured on a clock that nobody can set and that also runs while the machine sleeps. Recorded times are the
//! wall clock's when the process started, plus the time elapsed since. If the wall clock is set ahead, this clock
//! follows; if it is set back, this clock runs on. So no time is given twice, and what has expired stays expired.

use rutter_core::time::Timestamp;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

/// How far the wall clock may be ahead before this clock follows it, and how far behind before it is worth a warning.
pub const JUMP_MAX: Duration = Duration::from_secs(2);
/// Timers of the runtime stand still while the machine sleeps, so a long sleep is divided and the clock read in between.
const SLEEP_MAX: Duration = Duration::from_secs(5);

/// What a clock reads.
pub trait ClockSource: fmt::Debug + Send + Sync {
    /// The time since some fixed moment: never set, never back, and not stopped while the machine sleeps.
    fn elapsed(&self) -> Duration;
    /// The wall clock, which may be set to anything.
    fn wall(&self) -> Timestamp;
}

/// Copies show the same time. A process has one clock for its whole life, so its state is never freed.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    source: &'static dyn ClockSource,
    state: &'static ClockState,
}

#[derive(Debug)]
struct ClockState {
    /// What is added to the elapsed time; it only grows.
    offset_ms: AtomicI64,
    /// The newest time that was given.
    newest_ms: AtomicI64,
    /// By how much the clock has followed the wall clock ahead, in all.
    followed_ms: AtomicI64,
}

impl SystemClock {
    pub fn system() -> SystemClock {
        SystemClock::reading(Box::new(System { shift_ms: 0 }))
    }

    /// A clock on which it is this time now.
    pub fn starting_at(now: Timestamp) -> SystemClock {
        let shift_ms = now.0.saturating_sub(System { shift_ms: 0 }.wall().0);
        SystemClock::reading(Box::new(System { shift_ms }))
    }

    pub fn reading(source: Box<dyn ClockSource>) -> SystemClock {
        let wall_ms = source.wall().0;
        let state = ClockState {
            offset_ms: AtomicI64::new(wall_ms.saturating_sub(millis(source.elapsed()))),
            newest_ms: AtomicI64::new(wall_ms),
            followed_ms: AtomicI64::new(0),
        };
        SystemClock { source: Box::leak(source), state: Box::leak(Box::new(state)) }
    }

    pub fn now(&self) -> Timestamp {
        let (elapsed_ms, wall_ms) = (millis(self.source.elapsed()), self.source.wall().0);
        let ahead_ms = wall_ms.saturating_sub(self.state.offset_ms.load(Ordering::SeqCst).saturating_add(elapsed_ms));
        if ahead_ms > millis(JUMP_MAX) {
            let offset_ms = wall_ms.saturating_sub(elapsed_ms);
            let before_ms = self.state.offset_ms.fetch_max(offset_ms, Ordering::SeqCst);
            // Another thread may have followed the same jump.
            self.state.followed_ms.fetch_add(offset_ms.saturating_sub(before_ms).max(0), Ordering::SeqCst);
        }
        let now_ms = self.state.offset_ms.load(Ordering::SeqCst).saturating_add(elapsed_ms);
        Timestamp(self.state.newest_ms.fetch_max(now_ms, Ordering::SeqCst).max(now_ms))
    }

    /// Time does not run backwards over a restart: it is at least this time, which an earlier process recorded.
    pub fn not_before(&self, recorded: Timestamp) {
        let offset_ms = recorded.0.saturating_sub(millis(self.source.elapsed()));
        self.state.offset_ms.fetch_max(offset_ms, Ordering::SeqCst);
    }

    /// What the wall clock of the machine says, right or wrong.
    pub fn wall(&self) -> Timestamp {
        self.source.wall()
    }

    /// By how many milliseconds the clock has followed the wall clock ahead, in all.
    pub fn followed_ms(&self) -> i64 {
        self.now();
        self.state.followed_ms.load(Ordering::SeqCst)
    }

    /// By how many milliseconds the wall clock is behind this clock, if more than [`JUMP_MAX`].
    pub fn behind(&self) -> Option<i64> {
        let behind_ms = self.now().0.saturating_sub(self.source.wall().0);
        Some(behind_ms).filter(|behind_ms| *behind_ms > millis(JUMP_MAX))
    }

    pub async fn sleep_until(&self, when: Timestamp) {
        loop {
            let left = Duration::from_millis(when.since(self.now()).0);
            tokio::time::sleep(left.min(SLEEP_MAX)).await;
            if left <= SLEEP_MAX {
                return;
            }
        }
    }
}

/// The clocks of the operating system.
#[derive(Debug)]
struct System {
    /// Added to the wall clock.
    shift_ms: i64,
}

impl ClockSource for System {
    fn elapsed(&self) -> Duration {
        #[cfg(target_os = "linux")]
        const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
        #[cfg(not(target_os = "linux"))]
        const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;
        // Neither is negative.
        Duration::try_from(rustix::time::clock_gettime(CLOCK)).unwrap_or_default()
    }

    fn wall(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Timestamp(millis(since).saturating_add(self.shift_ms))
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    const HOUR_MS: i64 = 3_600_000;

    /// The elapsed time and the wall clock, in milliseconds.
    #[derive(Clone, Debug, Default)]
    struct Hands(Arc<Mutex<(u64, i64)>>);

    impl Hands {
        fn turn(&self, elapsed_ms: u64, wall_ms: i64) {
            let mut hands = self.0.lock().expect("no test panics while it holds this");
            *hands = (hands.0 + elapsed_ms, hands.1 + wall_ms);
        }

        fn clock(&self) -> SystemClock {
            SystemClock::reading(Box::new(self.clone()))
        }
    }

    impl ClockSource for Hands {
        fn elapsed(&self) -> Duration {
            Duration::from_millis(self.0.lock().expect("no test panics while it holds this").0)
        }

        fn wall(&self) -> Timestamp {
            Timestamp(self.0.lock().expect("no test panics while it holds this").1)
        }
    }

    fn at(wall_ms: i64) -> (Hands, SystemClock) {
        let hands = Hands::default();
        hands.turn(77, wall_ms);
        let clock = hands.clock();
        (hands, clock)
    }

    #[test]
    fn the_time_the_machine_sleeps_counts() {
        let (hands, clock) = at(1_000);
        hands.turn(3 * HOUR_MS as u64, 3 * HOUR_MS);
        assert_eq!((clock.now(), clock.followed_ms()), (Timestamp(1_000 + 3 * HOUR_MS), 0));
    }

    #[test]
    fn a_wall_clock_set_ahead_is_followed_beyond_the_limit() {
        for (ahead_ms, followed_ms) in [(1_999, 0), (2_000, 0), (2_001, 2_001)] {
            let (hands, clock) = at(1_000);
            hands.turn(0, ahead_ms);
            assert_eq!((clock.now(), clock.followed_ms()), (Timestamp(1_000 + followed_ms), followed_ms));
        }
    }

    #[test]
    fn a_wall_clock_set_back_is_not_followed() {
        let (hands, clock) = at(10_000_000);
        hands.turn(1_000, -9_000_000);
        assert_eq!((clock.now(), clock.behind()), (Timestamp(10_001_000), Some(9_001_000)));
        hands.turn(1_000, 9_002_000);
        assert_eq!((clock.now(), clock.behind(), clock.followed_ms()), (Timestamp(10_002_000), None, 0));
    }

    #[test]
    fn time_does_not_run_backwards_over_a_restart() {
        let (hands, clock) = at(1_000);
        clock.not_before(Timestamp(500));
        assert_eq!(clock.now(), Timestamp(1_000));
        clock.not_before(Timestamp(9_000));
        hands.turn(5, 5);
        assert_eq!((clock.now(), clock.behind()), (Timestamp(9_005), Some(8_000)));
    }
}
