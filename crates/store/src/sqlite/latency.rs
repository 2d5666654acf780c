//! A histogram of write latency whose bounds double.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const FIRST_MICROS: u64 = 100;
/// The last bound is three seconds; longer writes are counted beyond it.
const BOUNDS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct AppendLatency {
    counts: [AtomicU64; BOUNDS + 1],
    sum_micros: AtomicU64,
}

impl AppendLatency {
    pub fn count(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let at = (0..BOUNDS).position(|at| micros <= bound(at)).unwrap_or(BOUNDS);
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        self.sum_micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Upper bounds in microseconds, each with the cumulative count; the last bound is infinite.
    pub fn cumulative(&self) -> Vec<(u64, u64)> {
        let mut sum = 0;
        let counts = self.counts.iter().enumerate().map(|(at, count)| {
            sum += count.load(Ordering::Relaxed);
            (if at < BOUNDS { bound(at) } else { u64::MAX }, sum)
        });
        counts.collect()
    }

    pub fn sum_micros(&self) -> u64 {
        self.sum_micros.load(Ordering::Relaxed)
    }
}

fn bound(at: usize) -> u64 {
    FIRST_MICROS << at
}

#[test]
fn each_duration_is_counted_in_its_bucket_and_all_later_ones() {
    let latency = AppendLatency::default();
    for micros in [0, 100, 101, 3_276_800, 3_276_801] {
        latency.count(Duration::from_micros(micros));
    }
    let counts = latency.cumulative();
    assert_eq!((counts[0], counts[1]), ((100, 2), (200, 3)));
    assert_eq!(counts[15..], [(3_276_800, 4), (u64::MAX, 5)]);
    assert_eq!(latency.sum_micros(), 6_553_802);
}
