//! Builds a value from the tokens of a parser, and enforces the limits.

use super::place_of;
use super::spans::ValueSpan;
use crate::diagnostic::Diagnostic;
use crate::limits::{DEPTH_MAX, INTEGER_MAX, ITEMS_MAX, KEYS_MAX, STRING_BYTES_MAX};
use crate::plan::findings::FindingCollector;
use crate::pointer;
use crate::text::cut;
use crate::wording::quoted;
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};
use std::ops::Range;

/// Parsing cannot continue; the findings say why.
#[derive(Debug)]
pub(super) struct ReadAborted;

/// A document under construction. Open lists and objects are on a stack of bounded height.
#[derive(Debug)]
pub(super) struct DocumentBuilder<'t> {
    text: &'t str,
    open: Vec<OpenContainer>,
    root: Option<Value>,
    nodes: Vec<ValueSpan>,
    /// The end of the last token that has text.
    last_end: usize,
    findings: FindingCollector,
    /// Whether the limits of plans apply.
    is_limited: bool,
}

#[derive(Debug)]
struct OpenContainer {
    holder: ContainerValue,
    node: usize,
}

#[derive(Debug)]
enum ContainerValue {
    Object { fields: Map<String, Value>, key: Option<(String, Range<usize>)> },
    Array(Vec<Value>),
}

/// What the innermost open container expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContainerState {
    /// Nothing is open.
    Nothing,
    ObjectBeforeKey,
    ObjectBeforeValue,
    Array,
}

impl<'t> DocumentBuilder<'t> {
    pub(super) fn new(text: &'t str) -> DocumentBuilder<'t> {
        DocumentBuilder {
            text,
            open: Vec::new(),
            root: None,
            nodes: Vec::new(),
            last_end: 0,
            findings: FindingCollector::default(),
            is_limited: true,
        }
    }

    pub(super) fn without_limits(text: &'t str) -> DocumentBuilder<'t> {
        DocumentBuilder { is_limited: false, ..DocumentBuilder::new(text) }
    }

    pub(super) fn inside(&self) -> ContainerState {
        match self.open.last().map(|frame| &frame.holder) {
            None => ContainerState::Nothing,
            Some(ContainerValue::Object { key: None, .. }) => ContainerState::ObjectBeforeKey,
            Some(ContainerValue::Object { .. }) => ContainerState::ObjectBeforeValue,
            Some(ContainerValue::Array(_)) => ContainerState::Array,
        }
    }

    pub(super) fn open_object(&mut self, at: Range<usize>) -> Result<(), ReadAborted> {
        self.open(ContainerValue::Object { fields: Map::new(), key: None }, at)
    }

    pub(super) fn open_array(&mut self, at: Range<usize>) -> Result<(), ReadAborted> {
        self.open(ContainerValue::Array(Vec::new()), at)
    }

    /// Closes the innermost container. Without a closing token it ends with its content.
    pub(super) fn close(&mut self, end: Option<usize>) {
        let Some(frame) = self.open.pop() else { return };
        self.last_end = end.unwrap_or(self.last_end);
        let next = position(self.nodes.len());
        let node = &mut self.nodes[frame.node];
        node.next = next;
        node.value.1 = position(self.last_end).max(node.value.0);
        self.put(match frame.holder {
            ContainerValue::Object { fields, .. } => Value::Object(fields),
            ContainerValue::Array(items) => Value::Array(items),
        });
    }

    pub(super) fn key(&mut self, name: String, at: Range<usize>) -> Result<(), ReadAborted> {
        let full = match self.open.last().map(|frame| &frame.holder) {
            Some(ContainerValue::Object { fields, .. }) => self.is_limited && fields.len() >= KEYS_MAX,
            _ => return Err(ReadAborted),
        };
        if full {
            let message = format!("the object has more than {KEYS_MAX} keys");
            return self.stop("document.too_many_keys", at, message);
        }
        self.check_text(&name, at.clone());
        self.last_end = at.end;
        if let Some(OpenContainer { holder: ContainerValue::Object { key, .. }, .. }) = self.open.last_mut() {
            *key = Some((name, at));
        }
        Ok(())
    }

    pub(super) fn text(&mut self, text: String, at: Range<usize>) -> Result<(), ReadAborted> {
        self.check_text(&text, at.clone());
        self.scalar(Value::String(text), at)
    }

    /// Adds an integer given by its digits: it may be larger than any integer type.
    pub(super) fn integer(&mut self, digits: &str, radix: u32, at: Range<usize>) -> Result<(), ReadAborted> {
        let number = i64::from_str_radix(digits, radix).ok();
        let Some(number) = number.filter(|number| number.unsigned_abs() <= INTEGER_MAX.unsigned_abs()) else {
            let message = format!("the integer {} is beyond ±{INTEGER_MAX}", shortened(digits));
            let hint = "not every program can hold it exactly: write it as text, in quotes";
            self.find(Diagnostic::error("document.integer_range", "", message).hint(hint), at.clone());
            return self.scalar(Value::Null, at);
        };
        self.scalar(Value::from(number), at)
    }

    pub(super) fn float(&mut self, digits: &str, at: Range<usize>) -> Result<(), ReadAborted> {
        match digits.parse().ok().and_then(Number::from_f64) {
            Some(number) => self.scalar(Value::Number(number), at),
            None => self.not_finite(digits, at),
        }
    }

    pub(super) fn not_finite(&mut self, written: &str, at: Range<usize>) -> Result<(), ReadAborted> {
        let message = format!("expected a finite number, found {}", shortened(written));
        self.find(Diagnostic::error("document.not_finite", "", message), at.clone());
        self.scalar(Value::Null, at)
    }

    /// Adds a value that is not a container.
    pub(super) fn scalar(&mut self, value: Value, at: Range<usize>) -> Result<(), ReadAborted> {
        if !at.is_empty() {
            self.last_end = at.end;
        }
        let node = self.begin(at)?;
        self.nodes[node].next = position(self.nodes.len());
        self.put(value);
        Ok(())
    }

    /// Adds a finding at the current position.
    pub(super) fn find(&mut self, diagnostic: Diagnostic, at: Range<usize>) {
        let (text, open) = (self.text, &self.open);
        self.findings.push_with(|| Diagnostic { pointer: pointer_of(open), ..diagnostic.place(place_of(text, at)) });
    }

    pub(super) fn stop<T>(&mut self, code: &'static str, at: Range<usize>, message: String) -> Result<T, ReadAborted> {
        self.find(Diagnostic::error(code, "", message), at);
        Err(ReadAborted)
    }

    /// Returns the whole value, or the findings.
    pub(super) fn finish(self) -> Result<(Value, Vec<ValueSpan>), FindingCollector> {
        let mut findings = self.findings;
        match self.root {
            Some(root) if findings.is_empty() => Ok((root, self.nodes)),
            _ => {
                if findings.is_empty() {
                    findings.push(Diagnostic::error("document.empty", "", "expected a plan, found nothing"));
                }
                Err(findings)
            }
        }
    }

    fn open(&mut self, holder: ContainerValue, at: Range<usize>) -> Result<(), ReadAborted> {
        if self.is_limited && self.open.len() >= DEPTH_MAX {
            let message = format!("lists and objects are nested more than {DEPTH_MAX} deep");
            return self.stop("document.too_deep", at, message);
        }
        let node = self.begin(at)?;
        self.open.push(OpenContainer { holder, node });
        Ok(())
    }

    /// Checks the limits and reserves a span before a value is added.
    fn begin(&mut self, at: Range<usize>) -> Result<usize, ReadAborted> {
        let key = match self.open.last().map(|frame| &frame.holder) {
            Some(ContainerValue::Array(items)) if self.is_limited && items.len() >= ITEMS_MAX => {
                let message = format!("the list has more than {ITEMS_MAX} items");
                return self.stop("document.too_many_items", at, message);
            }
            Some(ContainerValue::Object { key: Some((_, key)), .. }) => (position(key.start), position(key.end)),
            _ => (0, 0),
        };
        self.nodes.push(ValueSpan { key, value: (position(at.start), position(at.end)), next: 0 });
        Ok(self.nodes.len() - 1)
    }

    /// Adds a finished value to its container.
    fn put(&mut self, value: Value) {
        let mut duplicate = None;
        match self.open.last_mut().map(|frame| &mut frame.holder) {
            None => self.root = Some(value),
            Some(ContainerValue::Array(items)) => items.push(value),
            Some(ContainerValue::Object { fields, key }) => {
                let Some((name, at)) = key.take() else { return };
                match fields.entry(name) {
                    Entry::Vacant(free) => {
                        free.insert(value);
                    }
                    Entry::Occupied(taken) => duplicate = Some((taken.key().clone(), at)),
                }
            }
        }
        if let Some((name, at)) = duplicate {
            let (text, open) = (self.text, &self.open);
            self.findings.push_with(|| {
                let message = format!("the key {} occurs twice in this object", quoted(&name));
                let pointer = pointer::field(&pointer_of(open), &name);
                Diagnostic::error("document.duplicate_key", pointer, message).place(place_of(text, at))
            });
        }
    }

    fn check_text(&mut self, text: &str, at: Range<usize>) {
        if text.len() > STRING_BYTES_MAX {
            let message = format!("the text has {} bytes, the limit is {STRING_BYTES_MAX}", text.len());
            self.find(Diagnostic::error("document.string_too_long", "", message), at.clone());
        }
        if text.contains('\0') {
            let message = "the text holds a NUL character, which databases and programs cut off";
            self.find(Diagnostic::error("document.nul", "", message), at);
        }
    }
}

/// Returns the pointer to the current position.
fn pointer_of(open: &[OpenContainer]) -> String {
    let mut pointer = String::new();
    for frame in open {
        match &frame.holder {
            ContainerValue::Object { key: Some((name, _)), .. } => pointer::push(&mut pointer, name),
            ContainerValue::Object { key: None, .. } => break,
            ContainerValue::Array(items) => pointer = pointer::item(&pointer, items.len()),
        }
    }
    pointer
}

/// Shortens a number, which can be as long as the document.
fn shortened(digits: &str) -> String {
    cut(digits, 40)
}

fn position(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
