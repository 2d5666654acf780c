//! Points in time as people and agents write them: RFC 3339, in UTC when we write.

use rutter_core::time::Timestamp;
pub(super) use rutter_core::time::calendar::read;

const DAY_MS: i64 = 86_400_000;

/// Writes `2026-11-16T05:30:00.250Z`.
pub(super) fn write(at: Timestamp) -> String {
    let (days, ms) = (at.0.div_euclid(DAY_MS), at.0.rem_euclid(DAY_MS));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    let part = match ms % 1_000 {
        0 => String::new(),
        ms => format!(".{ms:03}"),
    };
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{part}Z")
}

/// The date so many days after 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (centuries, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let year = centuries * 400 + year;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_read_and_written_back() {
        for (text, ms) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:00:00Z", 951_825_600_000),
            ("2026-11-16T05:30:00.250Z", 1_794_807_000_250),
            ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ] {
            assert_eq!(read(text), Some(Timestamp(ms)), "{text}");
            assert_eq!(write(Timestamp(ms)), text);
        }
        assert_eq!(read("2026-11-16 06:30:00.25+01:00"), read("2026-11-16T05:30:00.250Z"));
        assert_eq!(read("2026-11-16T05:30:00.2509999Z"), read("2026-11-16T05:30:00.250Z"));
    }

    #[test]
    fn every_day_of_four_centuries_comes_back() {
        for day in 0..146_100 {
            let at = Timestamp(day * DAY_MS);
            assert_eq!(read(&write(at)), Some(at));
        }
    }

    #[test]
    fn what_is_no_moment_is_not_guessed_at() {
        for text in [
            "",
            "tomorrow",
            "2026-11-16",
            "2026-11-16T05:30Z",
            "2026-11-16T05:30:00",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-16T24:00:00Z",
            "2026-11-16T05:30:00.Z",
            "2026-11-16T05:30:00+1:00",
            "+026-11-16T05:30:00Z",
            "2026-11-16T05:30:00ZZ",
            "1969-12-31T23:59:59Z",
            "2026-11-16T05:30:00é",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
