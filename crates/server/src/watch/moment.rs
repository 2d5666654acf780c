//! A point in time as it is kept and shown: RFC 3339 in UTC.

use rutter_core::time::{Timestamp, calendar};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::borrow::Cow;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(pub Timestamp);

impl Moment {
    /// Reads `2026-11-16T03:55:00Z`, with a fraction or another offset too.
    pub fn parse(text: &str) -> Option<Moment> {
        let (date, rest) = text.split_once(['T', 't', ' '])?;
        let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
        let zone = rest.find(['Z', 'z', '+', '-'])?;
        let (clock, zone) = rest.split_at(zone);
        let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
        let [hour @ 0..24, minute @ 0..60, second @ 0..=60] = numbers(clock, ':', [2, 2, 2])? else {
            return None;
        };
        if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let ms: i64 = format!("{fraction:0<3}")[..3].parse().ok()?;
        let offset = match zone {
            "Z" | "z" => 0,
            _ => {
                let [hours @ 0..24, minutes @ 0..60] = numbers(&zone[1..], ':', [2, 2])? else { return None };
                (hours * 60 + minutes) * if zone.starts_with('-') { -1 } else { 1 }
            }
        };
        let days = days(year, month, day)?;
        Some(Moment(Timestamp((((days * 24 + hour) * 60 + minute - offset) * 60 + second) * 1_000 + ms)))
    }
}

impl std::fmt::Display for Moment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&calendar::utc(self.0))
    }
}

impl From<Timestamp> for Moment {
    fn from(at: Timestamp) -> Moment {
        Moment(at)
    }
}

impl Serialize for Moment {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Moment, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        Moment::parse(&text).ok_or_else(|| de::Error::custom("expected a time such as 2026-11-16T03:55:00Z"))
    }
}

impl JsonSchema for Moment {
    fn schema_name() -> Cow<'static, str> {
        "Moment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time" })
    }

    fn inline_schema() -> bool {
        true
    }
}

fn numbers<const N: usize>(text: &str, between: char, lengths: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(between);
    let mut numbers = [0; N];
    for (number, length) in numbers.iter_mut().zip(lengths) {
        let digits = parts.next().filter(|part| part.len() == length)?;
        *number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())??;
    }
    parts.next().is_none().then_some(numbers)
}

/// Days since 1970-01-01. A year that begins in March has its leap day last.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    const LENGTHS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = LENGTHS.get(usize::try_from(month - 1).ok()?)? + i64::from(is_leap && month == 2);
    if !(1..=length).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(year * 365 + leap_days + ((month + 9) % 12 * 153 + 2) / 5 + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
        for ms in [
            0,
            -1,
            951_782_399_999,
            951_782_400_000,
            1_709_164_800_000,
            1_794_801_300_250,
            253_402_300_799_999,
        ] {
            let moment = Moment(Timestamp(ms));
            assert_eq!(Moment::parse(&moment.to_string()), Some(moment), "{moment}");
        }
        for (text, ms) in [
            ("1970-01-01T01:00:00+01:00", 0),
            ("1969-12-31T23:30:00-00:30", 0),
            ("1970-01-01 00:00:01.5z", 1_500),
            ("1970-01-01T00:00:00.123456789Z", 123),
        ] {
            assert_eq!(Moment::parse(text), Some(Moment(Timestamp(ms))), "{text}");
        }
        for text in [
            "",
            "2026-11-16",
            "2026-11-16T03:55:00",
            "2026-11-16T03:55Z",
            "2026-11-16T24:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-00T00:00:00Z",
            "2026-11-16T03:55:00.Z",
            "2026-11-16T03:55:00+0100",
            "26-11-16T03:55:00Z",
            "-026-11-16T03:55:00Z",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }
}
