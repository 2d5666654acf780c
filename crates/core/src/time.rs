//! Points in time and spans between them, in whole milliseconds. Nothing here reads a clock.

pub mod calendar;

use serde::{Deserialize, Serialize};
use std::fmt;

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub i64);

impl Timestamp {
    pub fn plus(self, span: Millis) -> Timestamp {
        Timestamp(self.0.saturating_add_unsigned(span.0))
    }

    /// The span since `earlier`, or zero if the clock went backwards.
    pub fn since(self, earlier: Timestamp) -> Millis {
        Millis(self.0.saturating_sub(earlier.0).try_into().unwrap_or(0))
    }
}

/// A span of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Millis(pub u64);

impl Millis {
    pub const fn seconds(seconds: u64) -> Millis {
        Millis(seconds * 1_000)
    }

    pub const fn hours(hours: u64) -> Millis {
        Millis(hours * 3_600_000)
    }

    /// Whole seconds, for people; spans below a second stay exact.
    pub fn rounded(self) -> Millis {
        if self.0 < 1_000 { self } else { Millis::seconds((self.0 + 500) / 1_000) }
    }

    /// Parses `250ms`, `30s`, `5m`, `24h`, `7d` or a sum such as `1h30m`.
    pub fn parse(text: &str) -> Option<Millis> {
        let mut total: u64 = 0;
        let mut rest = text.trim();
        if rest.is_empty() {
            return None;
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|&at| at > 0)?;
            let count: u64 = rest[..digits].parse().ok()?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let unit = match &rest[..letters] {
                "ms" => 1,
                "s" => 1_000,
                "m" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return None,
            };
            rest = &rest[letters..];
            total = total.checked_add(count.checked_mul(unit)?)?;
        }
        Some(Millis(total))
    }
}

impl fmt::Display for Millis {
    /// Writes the shortest exact form: `90s` is `1m30s`, `0` is `0ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        if rest == 0 {
            return f.write_str("0ms");
        }
        for (unit, name) in [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")] {
            if rest >= unit {
                write!(f, "{}{name}", rest / unit)?;
                rest %= unit;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_written_back() {
        for (text, ms, shortest) in [
            ("250ms", 250, "250ms"),
            ("30s", 30_000, "30s"),
            ("90s", 90_000, "1m30s"),
            ("1h30m", 5_400_000, "1h30m"),
            ("24h", 86_400_000, "1d"),
            ("0s", 0, "0ms"),
        ] {
            assert_eq!(Millis::parse(text), Some(Millis(ms)), "{text}");
            assert_eq!(Millis(ms).to_string(), shortest);
        }
        for text in ["", "s", "10", "10 s", "1y", "-1s", "1.5s", "99999999999999999999s", "18446744073709551615d"] {
            assert_eq!(Millis::parse(text), None, "{text}");
        }
    }

    #[test]
    fn spans_are_rounded_for_people() {
        for (ms, text) in [(0, "0ms"), (999, "999ms"), (1_499, "1s"), (1_500, "2s"), (259_201_546, "3d2s")] {
            assert_eq!(Millis(ms).rounded().to_string(), text);
        }
    }

    #[test]
    fn a_clock_that_went_backwards_gives_no_span() {
        assert_eq!(Timestamp(5).since(Timestamp(9)), Millis(0));
        assert_eq!(Timestamp(i64::MAX).plus(Millis(u64::MAX)), Timestamp(i64::MAX));
    }
}
