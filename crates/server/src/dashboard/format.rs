//! How things are written on pages: times, spans, ids, status, addresses.

use crate::auth::enter::escaped;
use askama::filters::HtmlSafe;
use rutter_core::time::calendar::{self, utc};
use rutter_core::time::{Millis, Timestamp};
use std::fmt::{self, Write as _};

/// How a status looks: a tone, a sign and a word, the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub tone: &'static str,
    pub sign: &'static str,
    pub word: &'static str,
}

impl Look {
    /// Of an execution or a step, by the word the API uses.
    pub fn of(status: &'static str) -> Look {
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
        Look { tone, sign, word }
    }

    /// The look of a status for something that has none.
    pub fn like(status: &'static str, word: &'static str) -> Look {
        Look { word, ..Look::of(status) }
    }
}

/// A template that shows one writes it out whole.
impl fmt::Display for Look {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Look { tone, sign, word } = self;
        let sign = format_args!("<span class=\"sign\" aria-hidden=\"true\">{sign}</span>");
        write!(f, "<span class=\"status {tone}\">{sign}{}</span>", escaped(word))
    }
}

impl HtmlSafe for Look {}

/// A point in time: how long ago, and exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    pub exact: String,
    pub relative: String,
}

impl Moment {
    pub fn of(at: Timestamp, now: Timestamp) -> Moment {
        Moment { exact: utc(at), relative: relative(at, now) }
    }
}

/// Scripts keep the relative part right while the page is open.
impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Moment { exact, relative } = self;
        write!(f, "<time datetime=\"{exact}\" title=\"{exact}\">{relative}</time>")
    }
}

impl HtmlSafe for Moment {}

/// An id with its page, short, and a button that copies it whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Id {
    pub full: String,
    pub href: String,
}

/// What the ledger's own journal goes by.
pub const LEDGER: &str = "ledger";

impl Id {
    /// The ledger's own journal has no page but the journal's.
    pub fn execution(id: &str) -> Id {
        let href = match id {
            LEDGER => format!("/journal?execution={LEDGER}"),
            id => format!("/executions/{}", encoded(id)),
        };
        Id { full: id.to_owned(), href }
    }
}

impl fmt::Display for Id {
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

impl HtmlSafe for Id {}

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

/// Begins large and ends with a stop.
pub fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// The beginning and the end of an id, enough to tell it from others by eye.
pub fn short(id: &str) -> String {
    const KEPT: usize = 6;
    match id.split_once('_') {
        Some((kind, rest)) if rest.is_ascii() && rest.len() > 2 * KEPT => {
            format!("{kind}_…{}", &rest[rest.len() - KEPT..])
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
        encode(name, &mut text);
        text.push('=');
        encode(value, &mut text);
    }
    text
}

/// One piece of an address.
pub fn encoded(piece: &str) -> String {
    let mut text = String::new();
    encode(piece, &mut text);
    text
}

fn encode(piece: &str, text: &mut String) {
    for byte in piece.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'@' => {
                text.push(char::from(byte));
            }
            _ => write!(text, "%{byte:02X}").expect("writing to a string cannot fail"),
        }
    }
}

/// What somebody asks for as a time: `24h` ago, a day, or a minute, in UTC where nothing else is said.
pub fn instant(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    if let Some(span) = Millis::parse(text) {
        return Some(Timestamp(now.0.saturating_sub_unsigned(span.0)));
    }
    let endings = ["", "Z", ":00Z", "T00:00:00Z"];
    endings.into_iter().find_map(|ending| calendar::read(&format!("{text}{ending}")))
}

/// One end of a span that a list is filtered by; nothing written is no end.
pub fn bound(text: &str, now: Timestamp) -> Result<Option<Timestamp>, String> {
    let wrong = || format!("{text:?} is no time; write 24h, 7d, 2026-11-16 or 2026-11-16T08:30");
    match text {
        "" => Ok(None),
        text => instant(text, now).map(Some).ok_or_else(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_they_are_written() {
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
    fn times_are_said_shortly() {
        let now = Timestamp(1_000_000_000);
        for (ms, text) in [(0, "now"), (5_000, "5 s ago"), (-90_000, "in 1 min"), (200_000_000, "2 d ago")] {
            assert_eq!(relative(Timestamp(now.0 - ms), now), text);
        }
    }

    #[test]
    fn addresses_carry_everything_as_data() {
        let pairs = [("a".to_owned(), "x&y=<ü>".to_owned()), ("none".to_owned(), String::new())];
        assert_eq!(query(&pairs), "?a=x%26y%3D%3C%C3%BC%3E");
        assert_eq!(
            (short("exec_01ARZ3NDEKTSV4RRFFQ69G5FAV").as_str(), short("ledger").as_str()),
            ("exec_…9G5FAV", "ledger")
        );
        assert_eq!(count(1_234_567), "1\u{2009}234\u{2009}567");
    }
}
