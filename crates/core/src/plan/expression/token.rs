//! The tokens of an expression.

use super::ExpressionError;
use serde_json::Number;
use std::ops::Range;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TokenKind {
    Name(String),
    Text(String),
    Number(Number),
    Symbol(&'static str),
    End,
}

/// A token and its source range.
#[derive(Clone, Debug)]
pub(super) struct ExpressionToken {
    pub(super) word: TokenKind,
    pub(super) at: Range<usize>,
}

/// A longer symbol comes before its prefixes.
const SYMBOLS: [&str; 24] = [
    "**", "//", "==", "!=", "<=", ">=", "(", ")", "[", "]", "{", "}", ".", ",", ":", "|", "~", "+", "-", "*", "/", "%",
    "<", ">",
];

/// Operators of other languages, and ours.
const FOREIGN: [(&str, &str); 5] =
    [("&&", "and"), ("||", "or"), ("!", "not"), ("?", "value if condition else other"), ("&", "and")];

pub(super) fn tokenize(source: &str) -> Result<Vec<ExpressionToken>, ExpressionError> {
    let mut tokens: Vec<ExpressionToken> = Vec::new();
    let mut at = 0;
    while let Some(next) = source[at..].chars().next() {
        if next.is_whitespace() {
            at += next.len_utf8();
            continue;
        }
        let rest = &source[at..];
        let (word, length) = match next {
            '\'' | '"' => read_text(rest, at)?,
            '0'..='9' => {
                let after_dot = tokens.last().is_some_and(|token| token.word == TokenKind::Symbol("."));
                read_number(rest, at, after_dot)?
            }
            _ if starts_name(next) => {
                let length = rest.find(|c| !continues_name(c)).unwrap_or(rest.len());
                (TokenKind::Name(rest[..length].to_owned()), length)
            }
            _ => read_symbol(rest, at)?,
        };
        tokens.push(ExpressionToken { word, at: at..at + length });
        at += length;
    }
    tokens.push(ExpressionToken { word: TokenKind::End, at: source.len()..source.len() });
    Ok(tokens)
}

/// The position of the `}}` that ends the expression at `start`, skipping strings and nested braces.
pub(crate) fn find_close(source: &str, start: usize) -> Option<usize> {
    let bytes = source.as_bytes();
    let mut at = start;
    let mut open_braces = 0_usize;
    let mut quote = None;
    while let Some(&byte) = bytes.get(at) {
        match (quote, byte) {
            (Some(_), b'\\') => at += 1,
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'\'' | b'"') => quote = Some(byte),
            (None, b'{') => open_braces += 1,
            (None, b'}') if open_braces > 0 => open_braces -= 1,
            (None, b'}') if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            (None, _) => {}
        }
        at += 1;
    }
    None
}

fn starts_name(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

fn continues_name(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn read_symbol(rest: &str, at: usize) -> Result<(TokenKind, usize), ExpressionError> {
    let foreign = FOREIGN.iter().find(|(symbol, _)| rest.starts_with(symbol) && !rest.starts_with("!="));
    if let Some((symbol, ours)) = foreign {
        return Err(
            wrong(format!("\"{symbol}\" is not an operator"), at..at + symbol.len()).hint(format!("write `{ours}`"))
        );
    }
    if let Some(symbol) = SYMBOLS.iter().find(|symbol| rest.starts_with(**symbol)) {
        return Ok((TokenKind::Symbol(symbol), symbol.len()));
    }
    if rest.starts_with('=') {
        return Ok((TokenKind::Symbol("="), 1));
    }
    let length = rest.chars().next().map_or(0, char::len_utf8);
    Err(wrong(format!("unexpected character {:?}", &rest[..length]), at..at + length))
}

/// Reads digits, a fraction and an exponent. After a dot only digits: `list.0.1` has two positions.
fn read_number(rest: &str, at: usize, after_dot: bool) -> Result<(TokenKind, usize), ExpressionError> {
    let bytes = rest.as_bytes();
    let digits_from = |from: usize| from + bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut end = digits_from(0);
    let mut is_float = false;
    if !after_dot {
        if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
            is_float = true;
            end = digits_from(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            let exponent = digits_from((end + 1 + sign).min(bytes.len()));
            if exponent > end + 1 + sign {
                is_float = true;
                end = exponent;
            }
        }
    }
    let range = at..at + end;
    if rest[end..].starts_with(continues_name) {
        return Err(wrong("a name cannot begin with a digit".to_owned(), range).hint("put it in brackets: `[\"1st\"]`"));
    }
    let number = match is_float {
        true => rest[..end].parse().ok().and_then(Number::from_f64),
        false => rest[..end].parse::<u64>().ok().map(Number::from),
    };
    match number {
        Some(number) => Ok((TokenKind::Number(number), end)),
        None => Err(wrong("the number does not fit into 64 bits".to_owned(), range)),
    }
}

fn read_text(rest: &str, at: usize) -> Result<(TokenKind, usize), ExpressionError> {
    let quote = rest.as_bytes()[0];
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((position, c)) = chars.next() {
        if c.len_utf8() == 1 && c as u32 == u32::from(quote) {
            return Ok((TokenKind::Text(text), position + 1));
        }
        if c != '\\' {
            text.push(c);
            continue;
        }
        let Some((escape_at, escape)) = chars.next() else { break };
        match escape {
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            '\\' | '\'' | '"' | '/' => text.push(escape),
            'u' => {
                let (c, length) = read_unicode(&rest[escape_at + 1..]).ok_or_else(|| {
                    wrong(
                        "expected four hex digits of a character after \\u".to_owned(),
                        at + position..at + escape_at + 1,
                    )
                })?;
                text.push(c);
                // `chars` counts characters, and everything just read is ASCII.
                chars.nth(length - 1);
            }
            _ => {
                let end = at + escape_at + escape.len_utf8();
                return Err(wrong(format!("unknown escape \"\\{escape}\""), at + position..end)
                    .hint("write `\\\\` for a backslash"));
            }
        }
    }
    Err(wrong("the text has no closing quote".to_owned(), at..at + rest.len()))
}

/// Parses what follows `\u`: four hex digits, or a surrogate pair as `XXXX\uXXXX`. Also returns the bytes read.
fn read_unicode(rest: &str) -> Option<(char, usize)> {
    let unit = |from: usize| -> Option<u32> {
        let digits = rest.get(from..from + 4)?;
        digits.bytes().all(|b| b.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    };
    let first = unit(0)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, 4));
    }
    let second = unit(6).filter(|low| rest.get(4..6) == Some("\\u") && (0xdc00..0xe000).contains(low))?;
    Some((char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))?, 10))
}

pub(super) fn wrong(message: String, range: Range<usize>) -> ExpressionError {
    ExpressionError { message, range: Some(range), hint: None }
}

impl ExpressionError {
    pub(super) fn hint(mut self, hint: impl Into<String>) -> ExpressionError {
        self.hint = Some(hint.into());
        self
    }
}
