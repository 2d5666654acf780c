//! Parses JSON (RFC 8259) without recursion and reports its tokens to the builder.

use super::builder::{ContainerState, DocumentBuilder, ReadAborted};
use crate::diagnostic::Diagnostic;
use serde_json::Value;
use std::ops::Range;

pub(super) fn read(text: &str, start: usize, builder: &mut DocumentBuilder<'_>) -> Result<(), ReadAborted> {
    let mut reader = JsonReader { text, bytes: text.as_bytes(), at: start, builder };
    reader.space();
    if reader.at == text.len() {
        return Ok(());
    }
    loop {
        let opened = reader.value()?;
        if !opened && reader.after_value()? {
            return Ok(());
        }
    }
}

struct JsonReader<'t, 'b, 'x> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    builder: &'b mut DocumentBuilder<'x>,
}

impl JsonReader<'_, '_, '_> {
    /// Parses a value. Of a list or object that is not empty, only its opening: its first value comes next.
    fn value(&mut self) -> Result<bool, ReadAborted> {
        self.space();
        let start = self.at;
        match self.peek() {
            Some(b'{') => {
                self.builder.open_object(start..start + 1)?;
                return self.opened(b'}');
            }
            Some(b'[') => {
                self.builder.open_array(start..start + 1)?;
                return self.opened(b']');
            }
            Some(b'"') => {
                let text = self.string()?;
                self.builder.text(text, start..self.at)?;
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        }
        Ok(false)
    }

    fn opened(&mut self, end: u8) -> Result<bool, ReadAborted> {
        self.at += 1;
        self.space();
        if self.peek() == Some(end) {
            self.at += 1;
            self.builder.close(Some(self.at));
            return Ok(false);
        }
        if end == b'}' {
            self.key()?;
        }
        Ok(true)
    }

    /// Closes the containers that end here. Returns whether the document has ended.
    fn after_value(&mut self) -> Result<bool, ReadAborted> {
        loop {
            self.space();
            let (end, expected) = match self.builder.inside() {
                ContainerState::Nothing if self.at == self.bytes.len() => return Ok(true),
                ContainerState::Nothing => return self.unexpected("the end of the document"),
                ContainerState::Array => (b']', "a comma or ]"),
                _ => (b'}', "a comma or }"),
            };
            match self.peek() {
                Some(b',') => {
                    let comma = self.at;
                    self.at += 1;
                    self.space();
                    if matches!(self.peek(), Some(b']' | b'}')) {
                        let message = "expected something after the comma, found the end of the list or object";
                        return self.refuse(comma..comma + 1, message.to_owned(), Some("remove the comma"));
                    }
                    if end == b'}' {
                        self.key()?;
                    }
                    return Ok(false);
                }
                Some(byte) if byte == end => {
                    self.at += 1;
                    self.builder.close(Some(self.at));
                }
                _ => return self.unexpected(expected),
            }
        }
    }

    fn key(&mut self) -> Result<(), ReadAborted> {
        let start = self.at;
        if self.peek() != Some(b'"') {
            return self.unexpected("a key in double quotes");
        }
        let name = self.string()?;
        self.builder.key(name, start..self.at)?;
        self.space();
        if self.peek() != Some(b':') {
            return self.unexpected("a colon after the key");
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Result<String, ReadAborted> {
        let open = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let rest = &self.bytes[self.at..];
            let plain = |byte: &u8| *byte >= 0x20 && *byte != b'"' && *byte != b'\\';
            let run = rest.iter().position(|byte| !plain(byte)).unwrap_or(rest.len());
            let run = &self.text[self.at..self.at + run];
            self.at += run.len();
            // Most strings have no escapes and are copied at once.
            if text.is_empty() {
                text = run.to_owned()
            } else {
                text.push_str(run)
            }
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => {
                    let hint = "write line breaks as \\n and tabs as \\t";
                    let message = "control characters must be escaped in a string".to_owned();
                    return self.refuse(self.at..self.at + 1, message, Some(hint));
                }
                None => {
                    let message = "the string that begins here has no end".to_owned();
                    return self.refuse(open..self.at, message, None);
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, ReadAborted> {
        let start = self.at;
        self.at += 2;
        let plain = match self.bytes.get(start + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => match self.unicode() {
                Some(c) => c,
                None => return self.bad_escape(start),
            },
            _ => return self.bad_escape(start),
        };
        Ok(plain)
    }

    /// Parses the digits after `\u`, and the second half of a surrogate pair.
    fn unicode(&mut self) -> Option<char> {
        let first = self.hex()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        if self.bytes.get(self.at..self.at + 2)? != b"\\u" {
            return None;
        }
        self.at += 2;
        let second = self.hex().filter(|half| (0xdc00..0xe000).contains(half))?;
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self.bytes.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |number, &digit| Some(number << 4 | char::from(digit).to_digit(16)?))
    }

    fn bad_escape(&mut self, start: usize) -> Result<char, ReadAborted> {
        // The range must not end within a character.
        let end = (start + 2..=self.at).find(|&end| self.text.is_char_boundary(end)).unwrap_or(self.text.len());
        let message = "expected an escape such as \\n, \\\" or \\u00e9 (surrogates in pairs)".to_owned();
        self.refuse(start..end.min(self.text.len()), message, None)
    }

    fn number(&mut self) -> Result<(), ReadAborted> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.text[self.at..].starts_with("Infinity") {
            self.at += "Infinity".len();
            return self.builder.not_finite(&self.text[start..self.at], start..self.at);
        }
        let whole = self.digits();
        let leading_zero = whole > 1 && self.bytes[self.at - whole] == b'0';
        let mut well_formed = whole > 0 && !leading_zero;
        let mut float = false;
        if self.peek() == Some(b'.') {
            self.at += 1;
            float = true;
            well_formed &= self.digits() > 0;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            float = true;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            well_formed &= self.digits() > 0;
        }
        let (written, at) = (&self.text[start..self.at], start..self.at);
        if !well_formed {
            let hint = leading_zero.then_some("remove the leading zeros, or write it as text, in quotes");
            return self.refuse(at, "expected a number such as 12, -0.5 or 1e3".to_owned(), hint);
        }
        // Minus zero is not an integer: as one it would lose its sign.
        if float || written == "-0" { self.builder.float(written, at) } else { self.builder.integer(written, 10, at) }
    }

    fn digits(&mut self) -> usize {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - start
    }

    fn word(&mut self) -> Result<(), ReadAborted> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.at += 1;
        }
        let at = start..self.at;
        let hint = match &self.text[at.clone()] {
            "null" => return self.builder.scalar(Value::Null, at),
            "true" => return self.builder.scalar(Value::Bool(true), at),
            "false" => return self.builder.scalar(Value::Bool(false), at),
            "" => {
                self.at = start;
                return self.unexpected("a value");
            }
            written @ ("NaN" | "Infinity") => return self.builder.not_finite(written, at),
            "True" => "write true",
            "False" => "write false",
            "None" | "Null" | "undefined" => "write null, or leave the field out",
            _ => "texts must be in double quotes",
        };
        self.refuse(at, "expected a value, found a word".to_owned(), Some(hint))
    }

    fn unexpected<T>(&mut self, expected: &str) -> Result<T, ReadAborted> {
        let Some(found) = self.text[self.at..].chars().next() else {
            return self.refuse(self.at..self.at, format!("expected {expected}, found the end of the text"), None);
        };
        let hint = match found {
            '\'' => Some("strings must be in double quotes"),
            '/' | '#' => Some("JSON has no comments; YAML has"),
            _ => None,
        };
        let message = format!("expected {expected}, found {found:?}");
        self.refuse(self.at..self.at + found.len_utf8(), message, hint)
    }

    fn refuse<T>(&mut self, at: Range<usize>, message: String, hint: Option<&str>) -> Result<T, ReadAborted> {
        let diagnostic = Diagnostic::error("document.syntax", "", message);
        self.builder.find(Diagnostic { hint: hint.map(str::to_owned), ..diagnostic }, at);
        Err(ReadAborted)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }
}
