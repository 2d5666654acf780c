//! Reads the fields of one object by type, continues after mistakes, and reports unknown fields.

use crate::diagnostic::{Diagnostic, PatchOperation};
use crate::limits::NAME_CHARS_MAX;
use crate::plan::findings::FindingCollector;
use crate::pointer;
use crate::time::Millis;
use crate::wording::{SpellingGuess, choices, guess, named, quoted, spelled_plainly};
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// One object of the document. Every read marks its field as known; [`FieldReader::finish`] reports the others.
pub(super) struct FieldReader<'d, 'f> {
    fields: &'d Map<String, Value>,
    pointer: String,
    known: Vec<&'static str>,
    missing: Vec<&'static str>,
    findings: &'f mut FindingCollector,
}

impl<'d, 'f> FieldReader<'d, 'f> {
    /// Returns `None`, and reports it, when the value is not an object.
    pub(super) fn new(
        value: &'d Value,
        pointer: String,
        what: &str,
        findings: &'f mut FindingCollector,
    ) -> Option<FieldReader<'d, 'f>> {
        let Some(fields) = value.as_object() else {
            findings.push_with(|| {
                let message = format!("expected {what}, which is an object, found {}", named(value));
                Diagnostic::error("plan.wrong_type", pointer, message)
            });
            return None;
        };
        Some(FieldReader { fields, pointer, known: Vec::with_capacity(24), missing: Vec::new(), findings })
    }

    pub(super) fn fields(&self) -> &'d Map<String, Value> {
        self.fields
    }

    pub(super) fn pointer(&self) -> &str {
        &self.pointer
    }

    pub(super) fn at(&self, name: &str) -> String {
        pointer::field(&self.pointer, name)
    }

    pub(super) fn findings(&mut self) -> &mut FindingCollector {
        self.findings
    }

    /// Reports at [`FieldReader::finish`] if the field is missing.
    pub(super) fn require(&mut self, name: &'static str) {
        self.missing.push(name);
    }

    /// Returns a field unchanged, even if it is null.
    pub(super) fn raw(&mut self, name: &'static str) -> Option<&'d Value> {
        self.known.push(name);
        // Most objects are small, and comparing a few names is faster than hashing one.
        if self.fields.len() <= FEW_FIELDS {
            return self.fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value);
        }
        self.fields.get(name)
    }

    /// Returns a field; null is reported as a mistake, because its meaning is unclear.
    pub(super) fn take(&mut self, name: &'static str) -> Option<&'d Value> {
        let value = self.raw(name)?;
        if !value.is_null() {
            return Some(value);
        }
        let (at, required) = (self.at(name), self.missing.contains(&name));
        self.findings.push_with(|| {
            let diagnostic = Diagnostic::error("plan.wrong_type", &*at, format!("{} is null", quoted(name)));
            if required {
                return diagnostic;
            }
            diagnostic.hint("leave the field out").fix(vec![PatchOperation::Remove { path: at }])
        });
        None
    }

    /// Reads a text that may be empty.
    pub(super) fn prose(&mut self, name: &'static str, bytes_max: usize) -> Option<&'d str> {
        let text = self.text(name)?;
        if text.len() > bytes_max {
            self.limit(name, format!("{} bytes long", text.len()), format!("{bytes_max} bytes"));
            return None;
        }
        Some(text)
    }

    /// Reads a text that must not be blank.
    pub(super) fn filled(&mut self, name: &'static str) -> Option<&'d str> {
        let text = self.text(name)?;
        if text.trim().is_empty() {
            let at = self.at(name);
            self.findings.push(Diagnostic::error("plan.empty_field", at, format!("{} is empty", quoted(name))));
            return None;
        }
        Some(text)
    }

    /// Reads a short text that must not be blank.
    pub(super) fn name(&mut self, name: &'static str) -> Option<&'d str> {
        let text = self.filled(name)?;
        let chars = text.chars().count();
        if chars > NAME_CHARS_MAX {
            self.limit(name, format!("{chars} characters long"), format!("{NAME_CHARS_MAX} characters"));
        }
        Some(text)
    }

    /// Reads an expression; `{{ }}` around the whole expression is removed.
    pub(super) fn expression(&mut self, name: &'static str) -> Option<&'d str> {
        self.filled(name).map(without_braces)
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Option<bool> {
        let value = self.take(name)?;
        if let Value::Bool(yes) = value {
            return Some(*yes);
        }
        let meant = value.as_str().and_then(|word| match &*spelled_plainly(word) {
            "true" | "yes" | "on" => Some(Value::Bool(true)),
            "false" | "no" | "off" => Some(Value::Bool(false)),
            _ => None,
        });
        self.wrong_type(name, "true or false", value, meant);
        None
    }

    pub(super) fn integer(&mut self, name: &'static str, bounds: RangeInclusive<i64>) -> Option<i64> {
        let value = self.take(name)?;
        let Some(number) = value.as_i64() else {
            let meant = match value {
                Value::String(text) => text.trim().parse::<i64>().ok().map(Value::from),
                Value::Number(number) => number
                    .as_f64()
                    .filter(|number| number.fract() == 0.0 && number.abs() < 1e15)
                    .map(|number| Value::from(number as i64)),
                _ => None,
            };
            self.wrong_type(name, "a whole number", value, meant);
            return None;
        };
        self.within(name, number, bounds)
    }

    pub(super) fn number(&mut self, name: &'static str, bounds: RangeInclusive<f64>) -> Option<f64> {
        let value = self.take(name)?;
        let Some(number) = value.as_f64() else {
            self.wrong_type(name, "a number", value, None);
            return None;
        };
        self.within(name, number, bounds)
    }

    pub(super) fn duration(&mut self, name: &'static str, bounds: RangeInclusive<Millis>) -> Option<Millis> {
        let value = self.take(name)?;
        let Some(duration) = value.as_str().and_then(Millis::parse) else {
            let message = format!("{} must be a duration such as \"1h30m\", found {}", quoted(name), named(value));
            let hint = match value.as_u64() {
                Some(number) => format!("write \"{number}s\" for seconds, \"{number}ms\" for milliseconds"),
                None => "write \"250ms\", \"30s\", \"5m\", \"24h\", \"7d\" or a sum of them".to_owned(),
            };
            let at = self.at(name);
            self.findings.push(Diagnostic::error("plan.duration", at, message).hint(hint));
            return None;
        };
        self.within(name, duration, bounds)
    }

    pub(super) fn one_of<T: Copy>(&mut self, name: &'static str, words: &[(&'static str, T)]) -> Option<T> {
        let value = self.take(name)?;
        match words.iter().find(|(word, _)| value == word) {
            Some((_, meaning)) => Some(*meaning),
            None => self.word(value, self.at(name), words),
        }
    }

    /// Reads a value that must be one of these words.
    pub(super) fn word<T: Copy>(&mut self, value: &Value, at: String, words: &[(&'static str, T)]) -> Option<T> {
        let known = || words.iter().map(|(word, _)| *word);
        let found = value.as_str();
        if let Some((_, meaning)) = words.iter().find(|(word, _)| Some(*word) == found) {
            return Some(*meaning);
        }
        self.findings.push_with(|| {
            let known: Vec<&str> = known().collect();
            let message = format!("expected {}, found {}", choices(&known), named(value));
            let code = if found.is_some() { "plan.unknown_value" } else { "plan.wrong_type" };
            let guess = found.and_then(|found| guess(found, known.iter().copied()));
            let diagnostic = Diagnostic::error(code, &*at, message);
            match guess {
                Some(SpellingGuess::Clear(word)) => diagnostic
                    .hint(format!("did you mean {}?", quoted(word)))
                    .fix(vec![PatchOperation::Replace { path: at, value: word.into() }]),
                Some(SpellingGuess::Vague(word)) => diagnostic.hint(format!("did you mean {}?", quoted(word))),
                None => diagnostic,
            }
        });
        None
    }

    /// Reads a list, each item with its pointer.
    pub(super) fn list(&mut self, name: &'static str, what: &str) -> Option<Vec<(&'d Value, String)>> {
        let value = self.take(name)?;
        let Value::Array(items) = value else {
            let meant = (!value.is_object()).then(|| Value::Array(vec![value.clone()]));
            self.wrong_type(name, &format!("a list of {what}"), value, meant);
            return None;
        };
        let list = self.at(name);
        Some(items.iter().enumerate().map(|(at, item)| (item, pointer::item(&list, at))).collect())
    }

    /// Reads a list of texts that must not be blank, each with its pointer.
    pub(super) fn texts(&mut self, name: &'static str, what: &str) -> Option<Vec<(String, String)>> {
        let mut texts = Vec::new();
        for (item, at) in self.list(name, what)? {
            match item {
                Value::String(text) if !text.trim().is_empty() => texts.push((text.clone(), at)),
                Value::String(_) => {
                    let message = format!("an item of {} is empty", quoted(name));
                    self.findings.push(Diagnostic::error("plan.empty_field", at, message));
                }
                _ => {
                    let message = format!("{} must list {what}, found {}", quoted(name), named(item));
                    self.findings.push(Diagnostic::error("plan.wrong_type", at, message));
                }
            }
        }
        Some(texts)
    }

    pub(super) fn object(&mut self, name: &'static str) -> Option<&'d Map<String, Value>> {
        let value = self.take(name)?;
        if value.as_object().is_none() {
            self.wrong_type(name, "an object", value, None);
        }
        value.as_object()
    }

    /// Returns a reader of the object in a field.
    pub(super) fn child(&mut self, name: &'static str) -> Option<FieldReader<'d, '_>> {
        self.child_or(name, "an object")
    }

    /// Like [`FieldReader::child`], for a field that may have another type, which the caller has checked for.
    pub(super) fn child_or(&mut self, name: &'static str, expected: &str) -> Option<FieldReader<'d, '_>> {
        let value = self.take(name)?;
        if !value.is_object() {
            self.wrong_type(name, expected, value, None);
            return None;
        }
        FieldReader::new(value, self.at(name), "an object", self.findings)
    }

    pub(super) fn wrong_type(&mut self, name: &str, expected: &str, found: &Value, meant: Option<Value>) {
        let path = self.at(name);
        self.findings.push_with(|| {
            let message = format!("{} must be {expected}, found {}", quoted(name), named(found));
            let diagnostic = Diagnostic::error("plan.wrong_type", &*path, message);
            match meant {
                Some(value) => {
                    diagnostic.hint(format!("write {value}")).fix(vec![PatchOperation::Replace { path, value }])
                }
                None => diagnostic,
            }
        });
    }

    pub(super) fn limit(&mut self, name: &str, is: String, limit: String) {
        let message = format!("{} is {is}, the limit is {limit}", quoted(name));
        let at = self.at(name);
        self.findings.push(Diagnostic::error("plan.limit", at, message));
    }

    /// Reports the unknown fields and the missing ones.
    pub(super) fn finish(mut self) {
        #[cfg(test)]
        ASKED.with_borrow_mut(|asked| asked.push((self.pointer.clone(), self.known.clone())));
        for (name, value) in self.fields {
            if self.known.contains(&name.as_str()) {
                continue;
            }
            let (meant, clear) = match self.meant_by(name) {
                Some(SpellingGuess::Clear(meant)) => (Some(meant), true),
                Some(SpellingGuess::Vague(meant)) => (Some(meant), false),
                None => (None, false),
            };
            // One mistake, one finding: the field is there, only its name is wrong.
            self.missing.retain(|missing| Some(*missing) != meant);
            self.unknown_field(name, value, meant, clear);
        }
        for name in std::mem::take(&mut self.missing) {
            if !self.fields.contains_key(name) {
                let pointer = &self.pointer;
                self.findings.push_with(|| {
                    Diagnostic::error("plan.missing_field", &**pointer, format!("{} is missing", quoted(name)))
                });
            }
        }
    }

    fn unknown_field(&mut self, name: &str, value: &Value, meant: Option<&'static str>, clear: bool) {
        let (path, target) = (self.at(name), meant.map(|meant| self.at(meant)));
        let free = meant.is_some_and(|meant| !self.fields.contains_key(meant));
        // The number of attempts that `retries: 3` means is ambiguous.
        let fits = !spelled_plainly(name).ends_with("retries") || value.is_object();
        let known = &self.known;
        self.findings.push_with(|| {
            let message = format!("there is no field {} here", quoted(name));
            let mut diagnostic = Diagnostic::error("plan.unknown_field", &*path, message);
            diagnostic.hint = match meant {
                Some(meant) => Some(format!("did you mean {}?", quoted(meant))),
                None => (known.len() <= KNOWN_NAMED_MAX).then(|| format!("expected {}", choices(known))),
            };
            diagnostic.fix = target.filter(|_| clear && free && fits).map(|target| {
                vec![PatchOperation::Remove { path }, PatchOperation::Add { path: target, value: value.clone() }]
            });
            diagnostic
        });
    }

    fn meant_by(&self, name: &str) -> Option<SpellingGuess<'static>> {
        if self.findings.is_full() {
            return None;
        }
        let plain = spelled_plainly(name);
        let mut others = OTHER_NAMES.iter().filter(|(meant, _)| self.known.contains(meant));
        match others.find(|(_, others)| others.contains(&plain.as_str())) {
            Some((meant, _)) => Some(SpellingGuess::Clear(meant)),
            None => guess(name, self.known.iter().copied()),
        }
    }

    fn text(&mut self, name: &'static str) -> Option<&'d str> {
        let value = self.take(name)?;
        if value.as_str().is_none() {
            let meant = matches!(value, Value::Bool(_) | Value::Number(_)).then(|| value.to_string().into());
            self.wrong_type(name, "a text", value, meant);
        }
        value.as_str()
    }

    fn within<T: PartialOrd + std::fmt::Display>(
        &mut self,
        name: &str,
        value: T,
        bounds: RangeInclusive<T>,
    ) -> Option<T> {
        if value > *bounds.end() {
            self.limit(name, value.to_string(), bounds.end().to_string());
            return None;
        }
        if value < *bounds.start() {
            let message = format!("{} is {value}, expected at least {}", quoted(name), bounds.start());
            let at = self.at(name);
            self.findings.push(Diagnostic::error("plan.limit", at, message));
            return None;
        }
        Some(value)
    }
}

const FEW_FIELDS: usize = 16;
/// With up to this many known fields, a hint lists all of them.
const KNOWN_NAMED_MAX: usize = 10;

/// Names that other systems use for our fields, in plain spelling.
const OTHER_NAMES: &[(&str, &[&str])] = &[
    ("approval", &["approve", "requiresapproval"]),
    ("compensation", &["undo", "rollback", "cancellation", "cancel", "revert"]),
    ("depends_on", &["needs", "after", "depends", "dependencies", "requires"]),
    ("failure_policy", &["onerror", "onfailure"]),
    ("for_each", &["loop", "each", "withitems"]),
    ("max_attempts", &["attempts", "maxretries", "retries"]),
    ("max_parallel", &["concurrency", "maxconcurrency", "parallelism", "parallel"]),
    ("on_failure", &["failurepolicy", "onerror"]),
    ("parameters", &["args", "arguments", "params", "input", "inputs", "with"]),
    ("result", &["output"]),
    ("retry", &["retries", "retrypolicy"]),
    ("steps", &["tasks", "actions"]),
    ("tool", &["toolname", "uses", "action"]),
    ("tool_name", &["tool"]),
    ("total_timeout", &["timeouttotal"]),
    ("when", &["condition", "if"]),
];

fn without_braces(text: &str) -> &str {
    let trimmed = text.trim();
    match trimmed.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}")) {
        Some(inside) if !inside.contains("{{") && !inside.contains("}}") => inside.trim(),
        _ => trimmed,
    }
}

#[cfg(test)]
thread_local! {
    /// The fields that were read, by pointer, for the test that compares them with the schema of plans.
    pub(super) static ASKED: std::cell::RefCell<Vec<(String, Vec<&'static str>)>> = const { std::cell::RefCell::new(Vec::new()) };
}
