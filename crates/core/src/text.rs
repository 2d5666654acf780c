//! Text for people: cut to a length, put on one line, quoted, listed.

use serde::Serialize;
use serde_json::Value;
use std::fmt::Display;

/// Returns the text, or its first characters and an ellipsis if it has more than `chars_max`.
pub fn cut(text: &str, chars_max: usize) -> String {
    match first_chars(text, chars_max) {
        whole if whole.len() == text.len() => text.to_owned(),
        first => format!("{first}…"),
    }
}

/// Returns the text like [`cut`], and says how long it is in all: for a text that somebody must not judge by its beginning.
pub fn cut_counted(text: &str, chars_max: usize) -> String {
    match cut(text, chars_max) {
        whole if whole == text => whole,
        first => format!("{first} ({} characters in all)", text.chars().count()),
    }
}

/// Returns the first characters of the text, at most `chars_max`.
pub fn first_chars(text: &str, chars_max: usize) -> &str {
    text.char_indices().nth(chars_max).map_or(text, |(end, _)| &text[..end])
}

/// Returns as much of the text as fits into `bytes_max` bytes, without splitting a character.
pub fn cut_bytes(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

/// Returns the text on one line: every run of white space is one space, hidden characters are escaped.
pub fn one_line(text: &str) -> String {
    escape_hidden(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Returns the text with line breaks and hidden characters escaped.
pub fn escape_hidden(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match is_hidden(character) || character.is_control() {
            true => escaped.extend(character.escape_unicode()),
            false => escaped.push(character),
        }
    }
    escaped
}

/// Whether a character has no width, changes the text direction, or belongs to no script: an agent would read what a
/// person cannot see. Joiners and colours of emoji are not hidden, nor are line breaks and tabs.
pub fn is_hidden(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' => false,
        '\u{200D}' | '\u{FE0F}' => false,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{3164}' | '\u{FEFF}' | '\u{FFA0}' => true,
        '\u{115F}'..='\u{1160}' | '\u{17B4}'..='\u{17B5}' | '\u{180B}'..='\u{180F}' => true,
        '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' => true,
        '\u{FE00}'..='\u{FE0E}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1D173}'..='\u{1D17A}' => true,
        '\u{E0000}'..='\u{E0FFF}' => true,
        other => other.is_control(),
    }
}

/// Returns text from a tool, an agent or a person as data: on one line, in quotation marks, cut to `chars_max`.
pub fn quoted(text: &str, chars_max: usize) -> String {
    let line = cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), chars_max);
    format!("\"{}\"", escape_hidden(&line.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// Returns the names separated by commas. A list longer than `names_max` by more than one is cut, and the rest
/// counted: `a, b and 9 more`.
pub fn listed<T: Display>(names: &[T], names_max: usize) -> String {
    let join = |names: &[T]| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(names_max) {
        0 | 1 => join(names),
        rest => format!("{} and {rest} more", join(&names[..names_max])),
    }
}

/// Returns the serialized name of a variant: `manual_decision`.
pub fn spelled(variant: &impl Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(Value::String(name)) => name,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        for (text, chars_max, expected) in
            [("", 0, ""), ("größer", 6, "größer"), ("größer", 5, "größe…"), ("größer", 3, "grö…"), ("größer", 0, "…")]
        {
            assert_eq!(cut(text, chars_max), expected);
        }
        assert_eq!(cut_counted("größer", 6), "größer");
        assert_eq!(cut_counted("größer", 5), "größe… (6 characters in all)");
        for (bytes_max, expected) in [(0, ""), (2, "gr"), (3, "gr"), (4, "grö"), (99, "größer")] {
            assert_eq!(cut_bytes("größer", bytes_max), expected);
        }
    }

    #[test]
    fn quoted_text_cannot_leave_its_quotation_marks_or_its_line() {
        for (text, expected) in [
            ("", r#""""#),
            ("it's fine", r#""it's fine""#),
            ("a \"b\"\r\n\tc\\", r#""a \"b\" c\\""#),
            ("\u{1b}[31mred\u{202e}", r#""\u{1b}[31mred\u{202e}""#),
        ] {
            assert_eq!(quoted(text, 100), expected);
        }
        assert_eq!(quoted("a \"b\" c", 4), r#""a \"b…""#);
        assert_eq!(one_line(" a\n\u{7}b \u{2028} c "), "a \\u{7}b c");
    }

    #[test]
    fn long_lists_are_counted() {
        let names = ["a", "b", "c", "d"];
        for (names_max, list) in [(1, "a and 3 more"), (2, "a, b and 2 more"), (3, "a, b, c, d"), (4, "a, b, c, d")] {
            assert_eq!(listed(&names, names_max), list);
        }
        assert_eq!(listed::<u32>(&[], 2), "");
    }
}
