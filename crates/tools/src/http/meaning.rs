//! What an answer's status means, and when the server wants to be asked again.
//!
//! Only statuses that HTTP defines as a refusal prove that nothing was done. A 5xx proves nothing, unless the server
//! also says when to come back: then it has not begun.

use crate::config::http::{Meaning, Statuses, Verdict};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use rutter_core::time::{Millis, Timestamp};
use rutter_core::tool::Category;
use std::collections::BTreeMap;

/// What a status means here: as configured, otherwise as usual.
pub(super) fn of(
    status: u16,
    comes_back: bool,
    configured: &BTreeMap<Statuses, Meaning>,
) -> (Verdict, Category) {
    let (verdict, category) = usual(status, comes_back);
    let meaning =
        configured.get(&Statuses::One(status)).or_else(|| configured.get(&Statuses::Class(status / 100)));
    meaning.map_or((verdict, category), |meaning| {
        (meaning.verdict.unwrap_or(verdict), meaning.category.unwrap_or(category))
    })
}

fn usual(status: u16, comes_back: bool) -> (Verdict, Category) {
    match status {
        200..=299 => (Verdict::Done, Category::ToolError),
        300..=399 => (Verdict::Maybe, Category::Protocol),
        400 | 405 | 411 | 413 | 414 | 415 | 422 | 428 | 431 => (Verdict::NotDone, Category::InvalidInput),
        401 | 403 => (Verdict::NotDone, Category::Unauthorized),
        404 | 410 => (Verdict::NotDone, Category::NotFound),
        409 | 412 => (Verdict::NotDone, Category::Conflict),
        429 => (Verdict::NotDone, Category::RateLimited),
        503 if comes_back => (Verdict::NotDone, Category::Unavailable),
        408 | 504 => (Verdict::Maybe, Category::Timeout),
        502 | 503 => (Verdict::Maybe, Category::Unavailable),
        400..=599 => (Verdict::Maybe, Category::ToolError),
        _ => (Verdict::Maybe, Category::Protocol),
    }
}

/// The span in `Retry-After`. A date counts from the server's own clock, where it tells it.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Millis> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds: u64 = text.parse().unwrap_or(u64::MAX);
        return Some(Millis(seconds.saturating_mul(1_000)));
    }
    let date = headers.get(DATE).and_then(|date| http_date(date.to_str().ok()?));
    Some(http_date(text)?.since(date.unwrap_or(now)))
}

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT`, the only form that may still be sent.
fn http_date(text: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.trim().split_once(", ")?;
    let [day, month, year, time, "GMT"] = rest.split(' ').collect::<Vec<_>>()[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)?;
    let clock: Vec<i64> = time.split(':').map(number).collect::<Option<_>>()?;
    let [hour @ 0..24, minute @ 0..60, second @ 0..=60] = clock[..] else { return None };
    let days = days(number(year)?, i64::try_from(month).ok()? + 1, number(day)?)?;
    Some(Timestamp((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000))
}

fn number(digits: &str) -> Option<i64> {
    let plain = (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok())?
}

/// Days since 1970-01-01. A year that begins in March has its leap day last.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1970..=9999).contains(&year) || !(1..=31).contains(&day) {
        return None;
    }
    let year = if month <= 2 { year - 1 } else { year };
    let since_march = (month + 9) % 12;
    let leap_days = year / 4 - year / 100 + year / 400;
    Some(year * 365 + leap_days + (since_march * 153 + 2) / 5 + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::HeaderValue;

    #[test]
    fn dates_are_read_as_http_writes_them() {
        for (text, seconds) in [
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0),
            ("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_777),
            ("Thu, 29 Feb 2024 12:00:00 GMT", 1_709_208_000),
            ("Wed, 01 Mar 2000 00:00:00 GMT", 951_868_800),
            ("Mon, 16 Nov 2026 05:30:00 GMT", 1_794_807_000),
        ] {
            assert_eq!(http_date(text), Some(Timestamp(seconds * 1_000)), "{text}");
        }
        for text in [
            "",
            "soon",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 06 Nov -994 08:49:37 GMT",
        ] {
            assert_eq!(http_date(text), None, "{text}");
        }
    }

    #[test]
    fn a_date_to_come_back_counts_from_the_clock_of_the_server() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("Sun, 06 Nov 1994 08:50:37 GMT"));
        assert_eq!(retry_after(&headers, Timestamp(784_111_777_000)), Some(Millis(60_000)));
        assert_eq!(retry_after(&headers, Timestamp(784_111_999_000)), Some(Millis(0)));
        headers.insert(DATE, HeaderValue::from_static("Sun, 06 Nov 1994 08:50:07 GMT"));
        assert_eq!(retry_after(&headers, Timestamp(0)), Some(Millis(30_000)));
        headers.insert(RETRY_AFTER, HeaderValue::from_static("99999999999999999999999"));
        assert_eq!(retry_after(&headers, Timestamp(0)), Some(Millis(u64::MAX)));
        headers.insert(RETRY_AFTER, HeaderValue::from_static("-5"));
        assert_eq!(retry_after(&headers, Timestamp(0)), None);
    }

    #[test]
    fn only_a_refusal_proves_that_nothing_was_done() {
        let refusals = [400, 401, 403, 404, 405, 409, 410, 411, 412, 413, 414, 415, 422, 428, 429, 431];
        for status in 100..=999 {
            let expected = match status {
                200..=299 => Verdict::Done,
                status if refusals.contains(&status) => Verdict::NotDone,
                _ => Verdict::Maybe,
            };
            assert_eq!(of(status, false, &BTreeMap::new()).0, expected, "{status}");
        }
        assert_eq!(of(503, true, &BTreeMap::new()), (Verdict::NotDone, Category::Unavailable));
        assert_eq!(of(500, true, &BTreeMap::new()).0, Verdict::Maybe);
    }
}
