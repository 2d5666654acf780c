//! The meaning of a response's status, and when the server wants a retry.
//!
//! Only statuses that HTTP defines as a refusal prove that nothing was done. A 5xx proves nothing, unless the server
//! also sends `Retry-After`: then it has not begun.

use crate::config::http::{OutcomeVerdict, StatusMeaning, StatusPattern};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use rutter_core::time::{Millis, Timestamp, calendar};
use rutter_core::tool::FailureCategory;
use std::collections::BTreeMap;

/// What a status means here: as configured, otherwise as usual.
pub(super) fn of(
    status: u16,
    comes_back: bool,
    configured: &BTreeMap<StatusPattern, StatusMeaning>,
) -> (OutcomeVerdict, FailureCategory) {
    let (verdict, category) = usual(status, comes_back);
    let meaning =
        configured.get(&StatusPattern::One(status)).or_else(|| configured.get(&StatusPattern::Class(status / 100)));
    meaning.map_or((verdict, category), |meaning| {
        (meaning.verdict.unwrap_or(verdict), meaning.category.unwrap_or(category))
    })
}

fn usual(status: u16, comes_back: bool) -> (OutcomeVerdict, FailureCategory) {
    match status {
        200..=299 => (OutcomeVerdict::Done, FailureCategory::ToolError),
        300..=399 => (OutcomeVerdict::Maybe, FailureCategory::Protocol),
        400 | 405 | 411 | 413 | 414 | 415 | 422 | 428 | 431 => (OutcomeVerdict::NotDone, FailureCategory::InvalidInput),
        401 | 403 => (OutcomeVerdict::NotDone, FailureCategory::Unauthorized),
        404 | 410 => (OutcomeVerdict::NotDone, FailureCategory::NotFound),
        409 | 412 => (OutcomeVerdict::NotDone, FailureCategory::Conflict),
        429 => (OutcomeVerdict::NotDone, FailureCategory::RateLimited),
        503 if comes_back => (OutcomeVerdict::NotDone, FailureCategory::Unavailable),
        408 | 504 => (OutcomeVerdict::Maybe, FailureCategory::Timeout),
        502 | 503 => (OutcomeVerdict::Maybe, FailureCategory::Unavailable),
        400..=599 => (OutcomeVerdict::Maybe, FailureCategory::ToolError),
        _ => (OutcomeVerdict::Maybe, FailureCategory::Protocol),
    }
}

/// The span in `Retry-After`. A date counts from the server's own clock, if it sends one.
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
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.trim().split_once(", ")?;
    let [day, month, year, time, "GMT"] = rest.split(' ').collect::<Vec<_>>()[..] else { return None };
    let month = MONTHS.iter().position(|name| *name == month)?;
    let clock: Vec<i64> = time.split(':').map(number).collect::<Option<_>>()?;
    let [hour @ 0..24, minute @ 0..60, second @ 0..=60] = clock[..] else { return None };
    let year = number(year).filter(|year| *year >= 1970)?;
    let days = calendar::days(year, i64::try_from(month).ok()? + 1, number(day)?)?;
    Some(Timestamp((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000))
}

fn number(digits: &str) -> Option<i64> {
    let plain = (1..=4).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok())?
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
    fn a_retry_date_counts_from_the_clock_of_the_server() {
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
                200..=299 => OutcomeVerdict::Done,
                status if refusals.contains(&status) => OutcomeVerdict::NotDone,
                _ => OutcomeVerdict::Maybe,
            };
            assert_eq!(of(status, false, &BTreeMap::new()).0, expected, "{status}");
        }
        assert_eq!(of(503, true, &BTreeMap::new()), (OutcomeVerdict::NotDone, FailureCategory::Unavailable));
        assert_eq!(of(500, true, &BTreeMap::new()).0, OutcomeVerdict::Maybe);
    }
}
