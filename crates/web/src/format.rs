//! Formatting on pages: times, durations, ids, status badges, URLs.

use askama::filters::HtmlSafe;
use rutter_api::encode::escaped;
use rutter_core::encoding::percent_encoded;
use rutter_core::time::calendar::{self, utc};
use rutter_core::time::{Millis, Timestamp};
use std::fmt;

/// A status badge: tone, sign and word, the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusBadge {
    pub tone: &'static str,
    pub sign: &'static str,
    pub word: &'static str,
}

impl StatusBadge {
    /// The badge of an execution or step, by its status in the API.
    pub fn of(status: &'static str) -> StatusBadge {
        let (tone, sign, word) = match status {
            "planned" => ("muted", "−", "planned"),
            "pending" => ("muted", "○", "pending"),
            "running" => ("run", "▸", "running"),
            "retrying" => ("warn", "↻", "retrying"),
            "paused" => ("muted", "‖", "paused"),
            "waiting" => ("wait", "?", "waiting"),
            "in_doubt" => ("wait", "?", "in doubt"),
            "replanning" => ("warn", "↻", "replanning"),
            "compensating" => ("warn", "↩", "compensating"),
            "completed" => ("ok", "✓", "completed"),
            "partial" => ("warn", "±", "partial"),
            "failed" => ("bad", "✗", "failed"),
            "compensation_failed" => ("bad", "!", "compensation failed"),
            "cancelled" => ("muted", "⊘", "cancelled"),
            "skipped" => ("muted", "·", "skipped"),
            "compensated" => ("muted", "↩", "compensated"),
            other => ("muted", "·", other),
        };
        StatusBadge { tone, sign, word }
    }

    /// A badge with the look of a status and another word.
    pub fn like(status: &'static str, word: &'static str) -> StatusBadge {
        StatusBadge { word, ..StatusBadge::of(status) }
    }
}

/// Templates print it as HTML.
impl fmt::Display for StatusBadge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StatusBadge { tone, sign, word } = self;
        let sign = format_args!("<span class=\"sign\" aria-hidden=\"true\">{sign}</span>");
        write!(f, "<span class=\"status {tone}\">{sign}{}</span>", escaped(word))
    }
}

impl HtmlSafe for StatusBadge {}

/// A point in time: relative and exact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeLabel {
    pub exact: String,
    pub relative: String,
}

impl TimeLabel {
    pub fn of(at: Timestamp, now: Timestamp) -> TimeLabel {
        TimeLabel { exact: utc(at), relative: relative(at, now) }
    }
}

/// Scripts keep the relative time up to date.
impl fmt::Display for TimeLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TimeLabel { exact, relative } = self;
        write!(f, "<time datetime=\"{exact}\" title=\"{exact}\">{relative}</time>")
    }
}

impl HtmlSafe for TimeLabel {}

/// A shortened id with a link, and a button that copies the full id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentifierLink {
    pub full: String,
    pub href: String,
}

/// The id of the ledger's own journal.
pub const LEDGER: &str = "ledger";

impl IdentifierLink {
    /// The ledger's own journal has no page of its own but the Journal page.
    pub fn execution(id: &str) -> IdentifierLink {
        let href = match id {
            LEDGER => format!("/journal?execution={LEDGER}"),
            id => format!("/executions/{}", encoded(id)),
        };
        IdentifierLink { full: id.to_owned(), href }
    }
}

impl fmt::Display for IdentifierLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (full, href, short) = (escaped(&self.full), escaped(&self.href), escaped(&short(&self.full)));
        write!(
            f,
            "<span class=\"nowrap\"><a class=\"mono\" href=\"{href}\" title=\"{full}\">{short}</a>\
             <button class=\"copy\" type=\"button\" data-copy=\"{full}\" aria-label=\"Copy {full}\">\
             <svg class=\"icon\" aria-hidden=\"true\"><use href=\"#icon-copy\"/></svg></button></span>"
        )
    }
}

impl HtmlSafe for IdentifierLink {}

/// "3 min ago", "in 2 h", "now".
pub fn relative(at: Timestamp, now: Timestamp) -> String {
    let (ahead, behind) = (at.since(now), now.since(at));
    let rough = |span: Millis| {
        let seconds = span.0 / 1_000;
        match seconds {
            0..60 => format!("{seconds} s"),
            60..3_600 => format!("{} min", seconds / 60),
            3_600..172_800 => format!("{} h", seconds / 3_600),
            _ => format!("{} d", seconds / 86_400),
        }
    };
    match (ahead.0, behind.0) {
        (0..1_000, 0..1_000) => "now".to_owned(),
        (0, _) => format!("{} ago", rough(behind)),
        _ => format!("in {}", rough(ahead)),
    }
}

/// Capitalizes the text and adds a full stop.
pub fn sentence(text: &str) -> String {
    let mut commands = text.chars();
    let first = commands.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", commands.as_str())
}

/// The beginning and end of an id, enough to recognize it.
pub fn short(id: &str) -> String {
    const ID_CHARS: usize = 6;
    match id.split_once('_') {
        Some((kind, rest)) if rest.is_ascii() && rest.len() > 2 * ID_CHARS => {
            format!("{kind}_…{}", &rest[rest.len() - ID_CHARS..])
        }
        _ => id.to_owned(),
    }
}

/// With a separator between thousands.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{2009}');
        }
        text.push(digit);
    }
    text
}

/// `?a=1&b=2`, or nothing.
pub fn query(pairs: &[(String, String)]) -> String {
    let mut text = String::new();
    for (name, value) in pairs.iter().filter(|(_, value)| !value.is_empty()) {
        text.push(if text.is_empty() { '?' } else { '&' });
        text.push_str(&encoded(name));
        text.push('=');
        text.push_str(&encoded(value));
    }
    text
}

/// A URL path segment.
pub fn encoded(piece: &str) -> String {
    percent_encoded(piece, "@")
}

/// Parses a time: `24h` ago, a day, or a minute, in UTC by default.
pub fn instant(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    if let Some(span) = Millis::parse(text) {
        return Some(Timestamp(now.0.saturating_sub_unsigned(span.0)));
    }
    let endings = ["", "Z", ":00Z", "T00:00:00Z"];
    endings.into_iter().find_map(|ending| calendar::read(&format!("{text}{ending}")))
}

/// Parses one end of a time range; empty means open.
pub fn bound(text: &str, now: Timestamp) -> Result<Option<Timestamp>, String> {
    let wrong = || format!("{text:?} is not a time; use 24h, 7d, 2026-11-16 or 2026-11-16T08:30");
    match text {
        "" => Ok(None),
        text => instant(text, now).map(Some).ok_or_else(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed() {
        let now = Timestamp(1_794_801_300_250);
        for text in ["2026-11-16T03:55:00.250Z", "2000-02-29T00:00:00.000Z", "2024-12-31T23:59:59.999Z"] {
            assert_eq!(instant(text, now).map(utc).as_deref(), Some(text));
        }
        assert_eq!(instant("2026-11-16", now).map(utc).as_deref(), Some("2026-11-16T00:00:00.000Z"));
        assert_eq!(instant("2026-11-16T08:30", now).map(utc).as_deref(), Some("2026-11-16T08:30:00.000Z"));
        assert_eq!(instant("24h", now), Some(Timestamp(now.0 - 86_400_000)));
        for text in ["", "yesterday", "2026-13-01", "2026-1", "2026-01-01T25:00", "9999999999999d"] {
            assert!(instant(text, now).is_none_or(|at| at < now), "{text}");
        }
    }

    #[test]
    fn relative_times_are_short() {
        let now = Timestamp(1_000_000_000);
        for (ms, text) in [(0, "now"), (5_000, "5 s ago"), (-90_000, "in 1 min"), (200_000_000, "2 d ago")] {
            assert_eq!(relative(Timestamp(now.0 - ms), now), text);
        }
    }

    #[test]
    fn queries_are_encoded() {
        let pairs = [("a".to_owned(), "x&y=<ü>".to_owned()), ("none".to_owned(), String::new())];
        assert_eq!(query(&pairs), "?a=x%26y%3D%3C%C3%BC%3E");
        assert_eq!(
            (short("exec_01ARZ3NDEKTSV4RRFFQ69G5FAV").as_str(), short("ledger").as_str()),
            ("exec_…9G5FAV", "ledger")
        );
        assert_eq!(count(1_234_567), "1\u{2009}234\u{2009}567");
    }
}
