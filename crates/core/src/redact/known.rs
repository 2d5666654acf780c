//! Secrets known by their value, found in every likely encoding.

use super::layers::DecodedLayers;
use super::marker::{KEY_NAME, MarkerLabels, SECRET, is_label};
use super::{SECRET_CHARS_MIN, SecretMatch, shape};
use crate::encoding::hex;
use base64::Engine;
use base64::prelude::{BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Patterns are indexed by their first bytes; even the shortest secret has this many in every encoding.
const HEAD: usize = 4;

pub(super) struct KnownSecrets {
    /// Name and value.
    secrets: Vec<(String, String)>,
    /// Every label a marker can have.
    labels: MarkerLabels,
    /// By their first bytes, the longest first.
    needles: BTreeMap<[u8; HEAD], Vec<SecretPattern>>,
    /// Pairs of bytes that a pattern begins with. Rules out nearly every position of a text quickly.
    begins: Vec<bool>,
}

/// One encoding of a secret.
struct SecretPattern {
    bytes: Vec<u8>,
    label: String,
    /// Whether the neighbouring base64 digit holds bits of the secret too.
    shares_before: bool,
    shares_after: bool,
}

impl KnownSecrets {
    pub(super) fn new(secrets: Vec<(String, String)>) -> KnownSecrets {
        let values: Vec<&str> = secrets.iter().filter_map(|(_, value)| worth_finding(value)).collect();
        let label = |name: &str| {
            let tells = values.iter().any(|value| name.contains(value));
            if is_label(name) && !tells { name.to_owned() } else { SECRET.to_owned() }
        };
        let mut forms = BTreeSet::new();
        let mut needles: BTreeMap<[u8; HEAD], Vec<SecretPattern>> = BTreeMap::new();
        let mut labels = Vec::new();
        for (name, value) in &secrets {
            let Some(value) = worth_finding(value) else { continue };
            labels.push(label(name));
            for needle in ways_to_write(value, &label(name)) {
                if let Some(head) = needle.bytes.first_chunk()
                    && forms.insert(needle.bytes.clone())
                {
                    needles.entry(*head).or_default().push(needle);
                }
            }
        }
        let mut begins = vec![false; if needles.is_empty() { 0 } else { 1 << 16 }];
        for (head, needles) in &mut needles {
            begins[pair(head)] = true;
            needles.sort_by_key(|needle| Reverse(needle.bytes.len()));
        }
        let fixed = shape::LABELS.into_iter().chain([KEY_NAME, SECRET]);
        let labels = MarkerLabels::new(fixed.chain(labels.iter().map(String::as_str)));
        KnownSecrets { secrets, labels, needles, begins }
    }

    pub(super) fn secrets(&self) -> &[(String, String)] {
        &self.secrets
    }

    pub(super) fn labels(&self) -> &MarkerLabels {
        &self.labels
    }

    /// Every secret in a text, in order and without overlaps.
    pub(super) fn find(&self, text: &str) -> Vec<SecretMatch<'_>> {
        if self.needles.is_empty() {
            return Vec::new();
        }
        let text = text.as_bytes();
        let mut found = self.search(text);
        for layers in [DecodedLayers::without_percents(text), DecodedLayers::without_backslashes(text)] {
            for (number, bytes) in layers.iter() {
                for SecretMatch { range, label } in self.search(bytes) {
                    found.push(SecretMatch { range: layers.origin(number, range), label });
                }
            }
        }
        found.sort_by_key(|found| (found.range.start, Reverse(found.range.end)));
        found.into_iter().fold(Vec::new(), with)
    }

    /// Overlapping occurrences are merged, so that no end of one survives the removal of the other.
    fn search(&self, bytes: &[u8]) -> Vec<SecretMatch<'_>> {
        let mut found = Vec::new();
        for at in 0..bytes.len() {
            let Some(head) = bytes[at..].first_chunk() else { break };
            if !self.begins[pair(head)] {
                continue;
            }
            let mut needles = self.needles.get(head).into_iter().flatten();
            if let Some(needle) = needles.find(|needle| bytes[at..].starts_with(&needle.bytes)) {
                found = with(found, SecretMatch { range: needle.range(bytes, at), label: &needle.label });
            }
        }
        found
    }
}

impl SecretPattern {
    fn plain(bytes: impl Into<Vec<u8>>, label: &str) -> SecretPattern {
        SecretPattern { bytes: bytes.into(), label: label.to_owned(), shares_before: false, shares_after: false }
    }

    /// The range to cut out when the pattern is found at this position.
    fn range(&self, bytes: &[u8], at: usize) -> Range<usize> {
        let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
        let mut start = at;
        let mut end = at + self.bytes.len();
        if self.shares_before && bytes[..at].last().is_some_and(is_digit) {
            start -= 1;
        }
        if self.shares_after && bytes.get(end).is_some_and(is_digit) {
            end += 1;
            end += bytes[end..].iter().take(2).take_while(|byte| **byte == b'=').count();
        }
        start..end
    }
}

/// The value to search for, trimmed; `None` if it is too short.
fn worth_finding(value: &str) -> Option<&str> {
    let value = value.trim();
    (value.chars().count() >= SECRET_CHARS_MIN).then_some(value)
}

fn ways_to_write(value: &str, label: &str) -> Vec<SecretPattern> {
    let hex = hex(value.as_bytes());
    let mut needles = vec![
        SecretPattern::plain(value, label),
        SecretPattern::plain(hex.to_uppercase(), label),
        SecretPattern::plain(hex, label),
        // As in form data; the rest of percent-encoding is decoded before the search.
        SecretPattern::plain(value.replace(' ', "+"), label),
    ];
    for bytes_before in 0..3 {
        needles.push(in_base64(&BASE64_STANDARD_NO_PAD, value, bytes_before, label));
        needles.push(in_base64(&BASE64_URL_SAFE_NO_PAD, value, bytes_before, label));
    }
    needles
}

/// The base64 digits that depend on the secret alone when `bytes_before` bytes precede it.
fn in_base64(alphabet: &impl Engine, value: &str, bytes_before: usize, label: &str) -> SecretPattern {
    let mut bytes = vec![0; bytes_before];
    bytes.extend_from_slice(value.as_bytes());
    let digits = alphabet.encode(&bytes);
    let first = (bytes_before * 8).div_ceil(6);
    let last = bytes.len() * 8 / 6;
    SecretPattern {
        bytes: digits.as_bytes()[first..last].to_vec(),
        label: label.to_owned(),
        shares_before: bytes_before != 0,
        shares_after: !bytes.len().is_multiple_of(3),
    }
}

/// Appends a match, or merges it with the last one if they overlap.
fn with<'a>(mut all: Vec<SecretMatch<'a>>, next: SecretMatch<'a>) -> Vec<SecretMatch<'a>> {
    match all.last_mut() {
        Some(last) if next.range.start < last.range.end => {
            last.range = last.range.start.min(next.range.start)..last.range.end.max(next.range.end);
        }
        _ => all.push(next),
    }
    all
}

fn pair(head: &[u8; HEAD]) -> usize {
    usize::from(u16::from_be_bytes([head[0], head[1]]))
}
