//! The time axis: positions of times, and labels.

use rutter_core::time::{Millis, Timestamp};

const TICKS_MAX: u64 = 8;

/// Round intervals.
const STEPS_MS: &[u64] = &[
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    15_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    900_000,
    1_800_000,
    3_600_000,
    7_200_000,
    10_800_000,
    21_600_000,
    43_200_000,
    86_400_000,
    172_800_000,
    604_800_000,
    1_209_600_000,
    2_592_000_000,
];

pub(super) struct TimeAxis {
    from: Timestamp,
    span_ms: u64,
    left: f64,
    width: f64,
}

impl TimeAxis {
    pub(super) fn new(from: Timestamp, to: Timestamp, left: f64, width: f64) -> TimeAxis {
        TimeAxis { from, span_ms: to.since(from).0.max(1), left, width }
    }

    pub(super) fn x(&self, at: Timestamp) -> f64 {
        let part = at.since(self.from).0 as f64 / self.span_ms as f64;
        self.left + part.min(1.0) * self.width
    }

    /// Positions and texts of the labels, from the start on.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let longest = STEPS_MS[STEPS_MS.len() - 1];
        let fits = |step: &&u64| self.span_ms / **step < TICKS_MAX;
        let step = STEPS_MS.iter().find(fits).copied().unwrap_or_else(|| {
            // For years of waiting: multiples of the longest interval.
            longest * (self.span_ms / longest / TICKS_MAX + 1)
        });
        let label = |tick: u64| if tick == 0 { "0".to_owned() } else { span_in_words(Millis(tick * step)) };
        let at = |tick: u64| self.from.plus(Millis(tick * step));
        (0..=self.span_ms / step).map(|tick| (self.x(at(tick)), label(tick))).collect()
    }
}

/// A duration as text, with at most two units: `420 ms`, `2.1 s`, `1 m 30 s`, `3 d 2 h`.
pub fn span_in_words(span: Millis) -> String {
    let ms = span.0;
    let two = |large: u64, large_name: &str, small: u64, small_name: &str| match (ms % large) / small {
        0 => format!("{} {large_name}", ms / large),
        rest => format!("{} {large_name} {rest} {small_name}", ms / large),
    };
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 if ms % 1_000 < 100 => format!("{} s", ms / 1_000),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => two(60_000, "m", 1_000, "s"),
        3_600_000..86_400_000 => two(3_600_000, "h", 60_000, "m"),
        _ => two(86_400_000, "d", 3_600_000, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units() {
        for (ms, words) in [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (2_060, "2 s"),
            (2_160, "2.1 s"),
            (90_000, "1 m 30 s"),
            (3_600_000, "1 h"),
            (5_430_000, "1 h 30 m"),
            (266_400_000, "3 d 2 h"),
        ] {
            assert_eq!(span_in_words(Millis(ms)), words, "{ms}");
        }
    }

    #[test]
    fn an_axis_has_few_ticks_and_all_lie_on_it() {
        for span_ms in [0, 1, 7, 950, 6_000, 61_000, 86_400_000, 40_000_000_000, 900_000_000_000] {
            let ticks = TimeAxis::new(Timestamp(5), Timestamp(5 + span_ms), 100.0, 800.0).ticks();
            assert!((1..=8).contains(&ticks.len()), "{span_ms}: {ticks:?}");
            assert!(ticks.iter().all(|(x, _)| (100.0..=900.0).contains(x)), "{span_ms}: {ticks:?}");
        }
    }
}
