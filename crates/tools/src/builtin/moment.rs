//! Points in time as people and agents write them: RFC 3339, in UTC when we write.

use rutter_core::time::Timestamp;

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

/// Reads the years 1970 to 9999, with an offset; what is finer than a millisecond is dropped.
pub(super) fn read(text: &str) -> Option<Timestamp> {
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
    let days = days(year, month, day).filter(|days| date(*days) == (year, month, day))?;
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

/// Days from 1970-01-01 to a date, counted in years that begin in March, so that a leap day is the last of its year.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before = year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    Some(before + (month * 153 + 2) / 5 + day - 1 - 719_468)
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
        for day in -1..146_100 {
            let (year, month, number) = date(day);
            assert_eq!(days(year, month, number), Some(day));
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
