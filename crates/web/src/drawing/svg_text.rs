//! Text and numbers in SVG: formatting, fitting and escaping.

use rutter_core::text::is_hidden;
use std::fmt;

/// Widths of sans-serif letters per pixel of font size. Overestimated: a text that is cut too early is still
/// readable, one that overlaps its neighbour is not.
const NARROW: f64 = 0.36;
const USUAL: f64 = 0.58;
const CAPITAL: f64 = 0.70;
const WIDE: f64 = 0.92;
const FULL: f64 = 1.05;
const BOLD: f64 = 1.07;

/// A coordinate to a tenth of a pixel, as short as possible.
pub(super) fn number(value: f64) -> SvgNumber {
    SvgNumber((value * 10.0).round() as i64)
}

pub(super) struct SvgNumber(i64);

impl fmt::Display for SvgNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, tenths) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        match tenths % 10 {
            0 => write!(f, "{sign}{}", tenths / 10),
            tenth => write!(f, "{sign}{}.{tenth}", tenths / 10),
        }
    }
}

/// Escapes text for element content and quoted attributes. Removes hidden characters, because names are
/// untrusted.
pub(super) fn text(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for command in text.chars() {
        match command {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' | '\r' => safe.push(' '),
            _ if is_hidden(command) => {}
            _ => safe.push(command),
        }
    }
    safe
}

/// The beginning of a text that fits into this width, with an ellipsis if it is cut.
pub(super) fn fit(text: &str, size: f64, width: f64) -> String {
    if length(text, size) <= width {
        return text.to_owned();
    }
    let room = width - character_width('…') * size;
    let mut used = 0.0;
    let fits = |command: &char| {
        used += character_width(*command) * size;
        used <= room
    };
    let beginning: String = text.chars().take_while(fits).collect();
    format!("{}…", beginning.trim_end())
}

/// The same for bold letters, which are wider.
pub(super) fn fit_bold(text: &str, size: f64, width: f64) -> String {
    fit(text, size * BOLD, width)
}

/// The approximate width of a text.
pub(super) fn length(text: &str, size: f64) -> f64 {
    text.chars().map(character_width).sum::<f64>() * size
}

fn character_width(command: char) -> f64 {
    match command {
        'i' | 'j' | 'l' | 't' | 'f' | 'r' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | '(' | ')' | '[' | ']' | ' '
        | '-' | 'I' => NARROW,
        'm' | 'w' | 'M' | 'W' | '@' | '%' | '…' => WIDE,
        'A'..='Z' => CAPITAL,
        _ if command < '\u{1100}' => USUAL,
        _ => FULL,
    }
}

/// An element id from a step's name: equal for equal names, different for different ones.
pub(super) fn id(name: &str) -> String {
    let mut id = String::with_capacity(name.len());
    for command in name.chars() {
        match command {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => id.push(command),
            _ => id.push_str(&format!(".{:x}.", command as u32)),
        }
    }
    id
}

/// `1 step`, `3 steps`.
pub(super) fn count(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, written) in [(0.0, "0"), (1.0, "1"), (1.25, "1.3"), (-0.04, "0"), (-12.5, "-12.5")] {
            assert_eq!(number(value).to_string(), written);
        }
    }

    #[test]
    fn texts_cannot_leave_their_place() {
        assert_eq!(text("<a href=\"x\">&'\u{202e}\u{0}\n"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39; ");
    }

    #[test]
    fn texts_are_cut_only_when_they_must_be() {
        assert_eq!(fit("charge", 12.0, 80.0), "charge");
        assert_eq!(fit("charge the card of the customer", 12.0, 80.0), "charge the…");
        assert_eq!(fit("", 12.0, 0.0), "");
    }

    #[test]
    fn ids_tell_names_apart() {
        assert_eq!(id("charge_1"), "charge_1");
        assert_ne!(id("a b"), id("a_b"));
    }
}
