//! Removes secrets from texts and values before they are hashed, stored, logged or streamed.
//!
//! A secret is recognised by its known value, by the format of a key, or by the name of its field. It is
//! replaced with a marker, `[redacted:payments_token]`; text inside markers is not searched again, so
//! redaction is idempotent. docs/guarantees.md lists what is not recognised.

mod known;
mod layers;
mod marker;
mod name;
mod shape;

use crate::tool::Elicitation;
use crate::tool::{CallOutcome, ToolFailure};
use known::KnownSecrets;
use marker::{KEY_NAME, marker};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;
use std::iter::zip;
use std::ops::Range;
use std::sync::Arc;

/// Shorter values are not looked for: they would shred ordinary text.
pub const SECRET_CHARS_MIN: usize = 6;

/// A replacement can change how the rest reads, for example when half an escape goes with it. The first pass
/// that finds nothing is the last one, usually the second.
const PASSES_MAX: usize = 4;

#[derive(Clone)]
pub struct Redactor {
    known: Arc<KnownSecrets>,
}

/// A secret in a text, and the label of its marker.
struct SecretMatch<'a> {
    range: Range<usize>,
    label: &'a str,
}

impl Redactor {
    /// Recognises key formats and secret field names, but no secret by its value.
    pub fn standard() -> Redactor {
        Redactor { known: Arc::new(KnownSecrets::new(Vec::new())) }
    }

    /// Adds secrets, given as name and value. White space around a value is ignored.
    pub fn with_secrets(&self, secrets: impl IntoIterator<Item = (String, String)>) -> Redactor {
        let mut all = self.known.secrets().to_vec();
        all.extend(secrets);
        Redactor { known: Arc::new(KnownSecrets::new(all)) }
    }

    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut text = Cow::Borrowed(text);
        for _ in 0..PASSES_MAX {
            match self.pass(&text) {
                Some(redacted) => text = Cow::Owned(redacted),
                None => break,
            }
        }
        text
    }

    /// Returns the same `Arc` when nothing was found.
    pub fn value(&self, value: &Arc<Value>) -> Arc<Value> {
        self.changed(value).map_or_else(|| Arc::clone(value), Arc::new)
    }

    pub fn failure(&self, failure: ToolFailure) -> ToolFailure {
        match self.text(&failure.message) {
            Cow::Borrowed(_) => failure,
            Cow::Owned(message) => ToolFailure { message, ..failure },
        }
    }

    pub fn outcome(&self, outcome: CallOutcome) -> CallOutcome {
        match outcome {
            CallOutcome::Done { result, cost_micros } => CallOutcome::Done { result: self.value(&result), cost_micros },
            CallOutcome::NotDone(failure) => CallOutcome::NotDone(self.failure(failure)),
            CallOutcome::Maybe(failure) => CallOutcome::Maybe(self.failure(failure)),
        }
    }

    /// Redacts a tool's question. A continuation has to be sent back unchanged: one that holds a secret we know is left
    /// out, and what only looks like one stays, because servers sign theirs with tokens of their own.
    pub fn elicitation(&self, elicitation: Elicitation) -> Elicitation {
        let Elicitation { message, schema, continuation } = elicitation;
        let continuation = continuation.filter(|text| self.known.find(&text.to_string()).is_empty());
        Elicitation { message: self.text(&message).into_owned(), schema: self.value(&schema), continuation }
    }

    fn pass(&self, text: &str) -> Option<String> {
        let found = self.find(text);
        if found.is_empty() {
            return None;
        }
        let mut redacted = String::with_capacity(text.len());
        let mut rest = 0;
        for secret in found {
            redacted.push_str(&text[rest..secret.range.start]);
            redacted.push_str(&marker(secret.label));
            rest = secret.range.end;
        }
        redacted.push_str(&text[rest..]);
        Some(redacted)
    }

    /// Known secrets take precedence: their names say more, and their ends are certain.
    fn find(&self, text: &str) -> Vec<SecretMatch<'_>> {
        let mut all = Vec::new();
        for piece in self.known.labels().between_markers(text) {
            let mut rest = piece.start;
            for known in found_in(text, piece.clone(), |text| self.known.find(text)) {
                all.extend(found_in(text, rest..known.range.start, shape::find));
                rest = known.range.end;
                all.push(known);
            }
            all.extend(found_in(text, rest..piece.end, shape::find));
        }
        all
    }

    fn changed(&self, value: &Value) -> Option<Value> {
        match value {
            Value::String(text) => self.changed_text(text).map(Value::String),
            Value::Array(items) => changed_items(items, |item| self.changed(item)),
            Value::Object(fields) => self.changed_fields(fields).map(Value::Object),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }

    /// Redacts a value with a secret field name. Inside objects the objects' own keys decide.
    fn changed_by_name(&self, value: &Value) -> Option<Value> {
        match value {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) => {
                let redacted = self.text(text);
                if !self.known.labels().is_marker(&redacted) {
                    return Some(Value::String(marker(KEY_NAME)));
                }
                (redacted != text.as_str()).then(|| Value::String(redacted.into_owned()))
            }
            Value::Number(_) => Some(Value::String(marker(KEY_NAME))),
            Value::Array(items) => changed_items(items, |item| self.changed_by_name(item)),
            Value::Object(_) | Value::Null | Value::Bool(_) => self.changed(value),
        }
    }

    fn changed_fields(&self, fields: &Map<String, Value>) -> Option<Map<String, Value>> {
        let is_reference = name::is_reference(fields);
        let change = |(key, value): (&String, &Value)| {
            let new_key = self.changed_text(key);
            let by_name = !is_reference && self.is_telling(new_key.as_ref().unwrap_or(key));
            (new_key, if by_name { self.changed_by_name(value) } else { self.changed(value) })
        };
        let changes: Vec<(Option<String>, Option<Value>)> = fields.iter().map(change).collect();
        if changes.iter().all(|(key, value)| key.is_none() && value.is_none()) {
            return None;
        }
        let mut redacted = Map::with_capacity(fields.len());
        for ((key, value), (new_key, new_value)) in zip(fields, changes) {
            let key = unused_key(&redacted, new_key.unwrap_or_else(|| key.clone()));
            redacted.insert(key, new_value.unwrap_or_else(|| value.clone()));
        }
        Some(redacted)
    }

    /// Whether a redacted key names a secret. The text of its markers is ours and does not count.
    fn is_telling(&self, key: &str) -> bool {
        let pieces = self.known.labels().between_markers(key).into_iter();
        name::is_telling(&pieces.map(|piece| &key[piece]).collect::<String>())
    }

    fn changed_text(&self, text: &str) -> Option<String> {
        match self.text(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(redacted) => Some(redacted),
        }
    }
}

impl fmt::Debug for Redactor {
    /// Never prints the values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("secrets", &self.known.secrets().len()).finish()
    }
}

/// Searches a part of a text; the matches have positions in the whole text.
fn found_in<'a>(text: &str, part: Range<usize>, find: impl Fn(&str) -> Vec<SecretMatch<'a>>) -> Vec<SecretMatch<'a>> {
    let mut found = find(&text[part.clone()]);
    for secret in &mut found {
        secret.range = part.start + secret.range.start..part.start + secret.range.end;
    }
    found
}

fn changed_items(items: &[Value], change: impl Fn(&Value) -> Option<Value>) -> Option<Value> {
    let changes: Vec<Option<Value>> = items.iter().map(change).collect();
    if changes.iter().all(Option::is_none) {
        return None;
    }
    let item = |(item, change): (&Value, Option<Value>)| change.unwrap_or_else(|| item.clone());
    Some(zip(items, changes).map(item).collect())
}

/// Two keys can be redacted to the same text; both fields must survive.
fn unused_key(fields: &Map<String, Value>, key: String) -> String {
    if !fields.contains_key(&key) {
        return key;
    }
    let numbered = |number: usize| format!("{key} {number}");
    let mut number = fields.len() + 1;
    while fields.contains_key(&numbered(number)) {
        number += 1;
    }
    numbered(number)
}

#[cfg(test)]
mod tests;
