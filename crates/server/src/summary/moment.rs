//! Points in time for people: UTC, to the second.

use rutter_core::time::Timestamp;

const DAY_MS: i64 = 86_400_000;

/// `2026-11-16 05:30:00Z`
pub(super) fn full(at: Timestamp) -> String {
    format!("{} {}", date(at), clock(at))
}

/// `2026-11-16`
pub(super) fn date(at: Timestamp) -> String {
    // Days are counted from a 1 March, so that leap days come last; years in groups of 400, which are all alike.
    let days = at.0.div_euclid(DAY_MS) + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

/// `05:30:00Z`
pub(super) fn clock(at: Timestamp) -> String {
    let ms = at.0.rem_euclid(DAY_MS);
    format!("{:02}:{:02}:{:02}Z", ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_in_time_are_written_in_utc() {
        for (ms, text) in [
            (0, "1970-01-01 00:00:00Z"),
            (951_782_400_000, "2000-02-29 00:00:00Z"),
            (1_709_251_199_999, "2024-02-29 23:59:59Z"),
            (1_794_807_000_250, "2026-11-16 05:30:00Z"),
        ] {
            assert_eq!(full(Timestamp(ms)), text);
        }
    }
}
