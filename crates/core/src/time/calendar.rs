//! Formats and parses times as RFC 3339. Formatted times are in UTC.

use super::Timestamp;

const DAY_MS: i64 = 86_400_000;
/// Days of 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;
/// Days from 1 March of the year 0 to 1 January 1970.
const EPOCH_DAYS: i64 = 719_468;

/// `2026-11-16T03:55:00.250Z`; a time outside the years 0 to 9999 is printed in milliseconds.
pub fn utc(at: Timestamp) -> String {
    let (year, month, day) = date(at.0.div_euclid(DAY_MS));
    if !(0..=9_999).contains(&year) {
        return at.0.to_string();
    }
    let ms = at.0.rem_euclid(DAY_MS);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1_000)
}

/// As [`utc`], without a fraction that is zero: `2026-11-16T03:55:00Z`.
pub fn utc_short(at: Timestamp) -> String {
    utc(at).replace(".000Z", "Z")
}

/// `2026-11-16 03:55:00Z`: to the second, for sentences.
pub fn utc_seconds(at: Timestamp) -> String {
    format!("{} {}", utc_date(at), utc_clock(at))
}

/// `2026-11-16`
pub fn utc_date(at: Timestamp) -> String {
    let (year, month, day) = date(at.0.div_euclid(DAY_MS));
    format!("{year:04}-{month:02}-{day:02}")
}

/// `03:55:00Z`
pub fn utc_clock(at: Timestamp) -> String {
    let ms = at.0.rem_euclid(DAY_MS);
    format!("{:02}:{:02}:{:02}Z", ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60)
}

/// Parses times of the years 1970 to 9999, with an offset. Digits below a millisecond are dropped.
pub fn read(text: &str) -> Option<Timestamp> {
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let is = |at: usize, allowed: &[u8]| text.as_bytes().get(at).is_some_and(|byte| allowed.contains(byte));
    if !(is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if year < 1970 || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let rest = text.get(19..)?;
    let (part_ms, zone) = match rest.strip_prefix('.') {
        None => (0, rest),
        Some(part) => {
            let length = part.find(|c: char| !c.is_ascii_digit()).filter(|length| *length > 0)?;
            let three: String = part[..length].chars().chain("00".chars()).take(3).collect();
            (three.parse::<i64>().ok()?, &part[length..])
        }
    };
    let days = days(year, month, day)?;
    let ms = ((hour * 60 + minute) * 60 + second) * 1_000 + part_ms;
    Some(Timestamp(days * DAY_MS + ms - offset_ms(zone)?))
}

fn offset_ms(zone: &str) -> Option<i64> {
    if zone == "Z" || zone == "z" {
        return Some(0);
    }
    let sign = match zone.get(..1)? {
        "+" => 1,
        "-" => -1,
        _ => return None,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let two = |text: &str, most: i64| {
        let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|number| is_plain && *number <= most)
    };
    Some(sign * (two(hours, 23)? * 60 + two(minutes, 59)?) * 60_000)
}

/// Days from 1970-01-01 to a date of the years 0 to 9999; `None` for a day that the month does not have.
pub fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(0..=9_999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Counted in years that begin in March, so that a leap day is the last of its year.
    let (from_march, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before = from_march * 365 + from_march.div_euclid(4) - from_march.div_euclid(100) + from_march.div_euclid(400);
    let days = before + (months * 153 + 2) / 5 + day - 1 - EPOCH_DAYS;
    (date(days) == (year, month, day)).then_some(days)
}

/// Year, month and day from the days since 1970. Years begin in March here, so that a leap day is the last of its year.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + EPOCH_DAYS;
    let (era, day_of_era) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * months + 2) / 5 + 1;
    let month = if months < 10 { months + 3 } else { months - 9 };
    (400 * era + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_rfc_3339() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_794_801_300_250, "2026-11-16T03:55:00.250Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "253402300800000"),
            (i64::MAX, "9223372036854775807"),
            (i64::MIN, "-9223372036854775808"),
        ] {
            assert_eq!(utc(Timestamp(ms)), text);
        }
    }

    #[test]
    fn times_are_read_as_they_are_written() {
        for ms in [0, 250, 951_782_400_000, 1_709_164_800_000, 1_794_801_300_250, 253_402_300_799_999] {
            assert_eq!(read(&utc(Timestamp(ms))), Some(Timestamp(ms)));
        }
        assert_eq!(read("2026-11-16T05:55:00.25+02:00"), read("2026-11-16T03:55:00.250Z"));
        assert_eq!(read("2026-11-16 06:30:00.25+01:00"), read("2026-11-16T05:30:00.250Z"));
        assert_eq!(read("2026-11-16T05:30:00.2509999Z"), read("2026-11-16T05:30:00.250Z"));
        for text in [
            "",
            "tomorrow",
            "2026-11-16",
            "2026-11-16T05:30Z",
            "2026-11-16T05:30:00",
            "2026-02-29T00:00:00Z",
            "2026-02-30T00:00:00Z",
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

    #[test]
    fn sentences_have_times_to_the_second() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00Z"),
            (951_782_400_000, "2000-02-29 00:00:00Z"),
            (1_709_251_199_999, "2024-02-29 23:59:59Z"),
            (1_794_807_000_250, "2026-11-16 05:30:00Z"),
        ] {
            assert_eq!(utc_seconds(Timestamp(ms)), text);
        }
        assert_eq!(utc_short(Timestamp(1_794_807_000_250)), "2026-11-16T05:30:00.250Z");
        assert_eq!(utc_short(Timestamp(1_794_807_000_000)), "2026-11-16T05:30:00Z");
    }

    #[test]
    fn every_day_is_counted_from_the_epoch() {
        for day in -719_528..2_932_897 {
            let (year, month, date) = date(day);
            assert_eq!(days(year, month, date), Some(day));
        }
        for (year, month, day) in [(2026, 2, 29), (2100, 2, 29), (2026, 4, 31), (2026, 0, 1), (10_000, 1, 1)] {
            assert_eq!(days(year, month, day), None);
        }
    }

    #[test]
    fn each_day_follows_the_one_before() {
        let mut last = date(-800_000);
        for days in -799_999..800_000 {
            let next = date(days);
            let follows = match next {
                (year, 1, 1) => last == (year - 1, 12, 31),
                (year, month, 1) => (last.0, last.1) == (year, month - 1) && last.2 >= 28,
                (year, month, day) => last == (year, month, day - 1),
            };
            assert!(follows, "{last:?} {next:?}");
            last = next;
        }
    }
}
