//! How a time is written for people: RFC 3339 in UTC.

use super::Timestamp;

const DAY_MS: i64 = 86_400_000;
/// Days of 400 years, after which the calendar repeats.
const ERA_DAYS: i64 = 146_097;
/// Days from 1 March of the year 0 to 1 January 1970.
const EPOCH_DAYS: i64 = 719_468;

/// `2026-11-16T03:55:00.250Z`; what has no year of four digits stays a number.
pub fn utc(at: Timestamp) -> String {
    let (year, month, day) = date(at.0.div_euclid(DAY_MS));
    if !(0..=9_999).contains(&year) {
        return at.0.to_string();
    }
    let ms = at.0.rem_euclid(DAY_MS);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1_000)
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
