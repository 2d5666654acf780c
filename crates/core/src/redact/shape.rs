//! Secrets recognised by their format.
//!
//! One scan from left to right: find a byte that can begin a key, check the bytes after it, go on behind it.
//! A failed check is short or never repeated for the same bytes, so the scan takes linear time.

use super::SecretMatch;
use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use std::ops::Range;

const PRIVATE_KEY: &str = "private key";
const URL_PASSWORD: &str = "url password";
const BEARER: &str = "bearer token";
const BASIC: &str = "basic credentials";
const JWT: &str = "jwt";
const AWS: &str = "aws key";
const GITHUB: &str = "github token";
const GITLAB: &str = "gitlab token";
const SLACK: &str = "slack token";
const STRIPE: &str = "stripe key";
const MODEL: &str = "model key";
const GOOGLE: &str = "google key";
const NPM: &str = "npm token";

pub(super) const LABELS: [&str; 13] =
    [PRIVATE_KEY, URL_PASSWORD, BEARER, BASIC, JWT, AWS, GITHUB, GITLAB, SLACK, STRIPE, MODEL, GOOGLE, NPM];

/// Every key in a text, in order and without overlaps.
pub(super) fn find(text: &str) -> Vec<SecretMatch<'static>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        match key_at(bytes, at) {
            Some((range, label)) => {
                at = range.end;
                found.push(SecretMatch { range, label });
            }
            None => at += 1,
        }
    }
    found
}

type ShapeMatch = (Range<usize>, &'static str);

fn key_at(bytes: &[u8], at: usize) -> Option<ShapeMatch> {
    match bytes[at] {
        b'-' => private_key(bytes, at),
        b':' => url_password(bytes, at),
        b'A' | b'B' | b'b' | b'e' | b'g' | b'n' | b'r' | b's' | b'x' if begins_word(bytes, at) => {
            credentials(bytes, at)
                .or_else(|| jwt(bytes, at))
                .or_else(|| aws_key(bytes, at))
                .or_else(|| prefixed(bytes, at))
        }
        _ => None,
    }
}

/// Whether a word can begin here: not inside a word, but after an escape like `\n` or `%3D`.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    match bytes[..at] {
        [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => true,
        [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => true,
        [.., before] => !before.is_ascii_alphanumeric(),
        [] => true,
    }
}

/// A PEM block. If its end is missing, everything to the end of the text is cut: the block may be truncated.
fn private_key(bytes: &[u8], at: usize) -> Option<ShapeMatch> {
    const TITLE_BYTES_MAX: usize = 64;
    let title_length = |rest: &[u8]| position(&rest[..rest.len().min(TITLE_BYTES_MAX)], b"-----");
    let rest = bytes[at..].strip_prefix(b"-----BEGIN ")?;
    let title = &rest[..title_length(rest)?];
    position(title, b"PRIVATE KEY")?;
    let body = &rest[title.len()..];
    let end = position(body, b"-----END ").and_then(|end| {
        let behind = &body[end + b"-----END ".len()..];
        Some(bytes.len() - behind.len() + title_length(behind)? + b"-----".len())
    });
    Some((at..end.unwrap_or(bytes.len()), PRIVATE_KEY))
}

/// The password in `scheme://user:password@host`.
fn url_password(bytes: &[u8], at: usize) -> Option<ShapeMatch> {
    let rest = bytes[at..].strip_prefix(b"://")?;
    if !bytes[..at].last()?.is_ascii_alphanumeric() {
        return None;
    }
    let ends = |byte: u8| byte.is_ascii_whitespace() || byte.is_ascii_control() || b"/?#\"'<>\\`".contains(&byte);
    let authority = &rest[..run(rest, |byte| !ends(byte))];
    let end = authority.iter().rposition(|byte| *byte == b'@')?;
    let start = authority[..end].iter().position(|byte| *byte == b':')? + 1;
    let offset = at + b"://".len();
    (start < end).then_some((offset + start..offset + end, URL_PASSWORD))
}

/// The token after `Bearer` or `Basic`, if it is in a header or does not look like an ordinary word.
fn credentials(bytes: &[u8], at: usize) -> Option<ShapeMatch> {
    const SCHEMES: [(&[u8], &str); 2] = [(b"bearer ", BEARER), (b"basic ", BASIC)];
    let rest = &bytes[at..];
    let begins = |scheme: &[u8]| rest.get(..scheme.len()).is_some_and(|word| word.eq_ignore_ascii_case(scheme));
    let (scheme, label) = SCHEMES.into_iter().find(|(scheme, _)| begins(scheme))?;
    let start = scheme.len() + run(&rest[scheme.len()..], |byte| byte == b' ');
    let token = &rest[start..];
    let token = &token[..run(token, |byte| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte))];
    let token = without_dots_behind(token);
    let looks_secret = if label == BASIC { is_name_and_password(token) } else { is_unlike_a_word(token) };
    let is_secret = looks_secret || (!token.is_empty() && is_in_header(&bytes[..at]));
    is_secret.then_some((at + start..at + start + token.len(), label))
}

fn is_unlike_a_word(token: &[u8]) -> bool {
    const WORD_BYTES_MAX: usize = 24;
    let mixes_case = token.iter().any(u8::is_ascii_lowercase) && token.iter().skip(1).any(u8::is_ascii_uppercase);
    token.len() > WORD_BYTES_MAX || (token.len() >= 8 && (mixes_case || token.iter().any(u8::is_ascii_digit)))
}

fn is_name_and_password(token: &[u8]) -> bool {
    let padding = token.iter().rev().take_while(|byte| **byte == b'=').count();
    let decoded = BASE64_STANDARD_NO_PAD.decode(&token[..token.len() - padding]);
    decoded.is_ok_and(|decoded| decoded.contains(&b':'))
}

/// Whether a text ends like `Authorization: ` or `"authorization": "`.
fn is_in_header(before: &[u8]) -> bool {
    const HEADER: &[u8] = b"authorization";
    let punctuation = before.iter().rev().take(8).take_while(|byte| b" :=\"'\\".contains(byte)).count();
    let name = &before[..before.len() - punctuation];
    let start = name.len().saturating_sub(HEADER.len());
    punctuation > 0 && name[start..].eq_ignore_ascii_case(HEADER)
}

/// Three parts or more, of which the first is a JSON object in base64.
fn jwt(bytes: &[u8], at: usize) -> Option<ShapeMatch> {
    const HEADER_BYTES_MIN: usize = 12;
    const BYTES_MIN: usize = 30;
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    let rest = &bytes[at..];
    if !rest.starts_with(b"eyJ") || matches!(bytes[..at], [.., b'_' | b'-']) {
        return None;
    }
    let header = run(rest, is_digit);
    if header < HEADER_BYTES_MIN || rest.get(header) != Some(&b'.') {
        return None;
    }
    let claims = header + 1 + run(&rest[header + 1..], is_digit);
    if rest.get(claims) != Some(&b'.') {
        return None;
    }
    let end = claims + run(&rest[claims..], |byte| is_digit(byte) || byte == b'.');
    let token = without_dots_behind(&rest[..end]);
    (token.len() >= BYTES_MIN).then_some((at..at + token.len(), JWT))
}

fn aws_key(bytes: &[u8], at: usize) -> Option<ShapeMatch> {
    const LENGTH: usize = 20;
    let rest = &bytes[at..];
    let fits = (rest.starts_with(b"AKIA") || rest.starts_with(b"ASIA"))
        && run(rest, |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit()) == LENGTH
        && !rest.get(LENGTH).is_some_and(u8::is_ascii_lowercase);
    fits.then_some((at..at + LENGTH, AWS))
}

/// Keys with the well-known prefix of a vendor.
fn prefixed(bytes: &[u8], at: usize) -> Option<ShapeMatch> {
    const ALPHANUMERIC_ONLY: &[u8] = b"";
    const WORD: &[u8] = b"_";
    const DASHES: &[u8] = b"_-";
    const DOTS: &[u8] = b"_-.";
    /// Prefix, allowed bytes besides letters and digits, minimum length after the prefix.
    const PREFIXES: [(&str, &[u8], usize, &str); 24] = [
        ("ghp_", WORD, 20, GITHUB),
        ("gho_", WORD, 20, GITHUB),
        ("ghu_", WORD, 20, GITHUB),
        ("ghs_", WORD, 20, GITHUB),
        ("ghr_", WORD, 20, GITHUB),
        ("github_pat_", WORD, 20, GITHUB),
        ("glpat-", DOTS, 16, GITLAB),
        ("xoxa-", DASHES, 10, SLACK),
        ("xoxb-", DASHES, 10, SLACK),
        ("xoxp-", DASHES, 10, SLACK),
        ("xoxr-", DASHES, 10, SLACK),
        ("xoxs-", DASHES, 10, SLACK),
        ("sk_live_", ALPHANUMERIC_ONLY, 16, STRIPE),
        ("rk_live_", ALPHANUMERIC_ONLY, 16, STRIPE),
        ("sk_test_", ALPHANUMERIC_ONLY, 16, STRIPE),
        ("rk_test_", ALPHANUMERIC_ONLY, 16, STRIPE),
        ("sk-ant-", DASHES, 20, MODEL),
        ("sk-proj-", DASHES, 20, MODEL),
        ("sk-svcacct-", DASHES, 20, MODEL),
        ("sk-admin-", DASHES, 20, MODEL),
        ("sk-or-v1-", DASHES, 20, MODEL),
        // Without dashes: `sk-learn-for-the-impatient` is no key.
        ("sk-", ALPHANUMERIC_ONLY, 20, MODEL),
        ("AIza", DASHES, 35, GOOGLE),
        ("npm_", ALPHANUMERIC_ONLY, 30, NPM),
    ];
    let rest = &bytes[at..];
    let (prefix, others, least, label) =
        PREFIXES.into_iter().find(|(prefix, ..)| rest.starts_with(prefix.as_bytes()))?;
    let body = &rest[prefix.len()..];
    let body = &body[..run(body, |byte| byte.is_ascii_alphanumeric() || others.contains(&byte))];
    let length = without_dots_behind(body).len();
    (length >= least).then_some((at..at + prefix.len() + length, label))
}

/// The number of leading bytes of this kind.
fn run(bytes: &[u8], kind: impl Fn(u8) -> bool) -> usize {
    bytes.iter().position(|byte| !kind(*byte)).unwrap_or(bytes.len())
}

/// The dot that ends a sentence is not part of a key.
fn without_dots_behind(mut bytes: &[u8]) -> &[u8] {
    while let [before @ .., b'.'] = bytes {
        bytes = before;
    }
    bytes
}

fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|window| window == part)
}
