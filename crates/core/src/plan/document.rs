//! Strict parsing of a plan's text: anything that two parsers could read differently is refused.
//!
//! JSON and YAML work the same way: a parser of the format reports tokens to a [`builder`], which enforces
//! the limits and builds the value together with its source spans. A duplicate key, an integer that not
//! every program can hold, a `NaN`, an alias, a tag: each of them is a finding.

mod builder;
pub mod embedded;
mod json;
mod spans;
mod yaml;

pub use spans::SourceSpans;

use super::findings::FindingCollector;
use crate::diagnostic::{Diagnostic, SourceLocation};
use crate::limits::PLAN_BYTES_MAX;
use builder::DocumentBuilder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::Range;
use std::sync::Arc;

/// A parsed document, without ambiguities.
#[derive(Clone, Debug)]
pub struct PlanDocument {
    /// The exact bytes.
    pub source: Arc<[u8]>,
    pub format: DocumentFormat,
    pub value: Arc<Value>,
    /// The source range of each part of the value.
    pub spans: SourceSpans,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentFormat {
    Json,
    Yaml,
}

impl DocumentFormat {
    /// Guesses by the first byte that is not white space: a JSON plan begins with `{` or `[`.
    pub fn guess(bytes: &[u8]) -> DocumentFormat {
        let bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
        match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{' | b'[') => DocumentFormat::Json,
            _ => DocumentFormat::Yaml,
        }
    }
}

impl PlanDocument {
    /// Parses a text, or returns all its mistakes, as far as it could be parsed.
    pub fn read(bytes: &[u8], format: DocumentFormat) -> Result<PlanDocument, Vec<Diagnostic>> {
        let text = text_of(bytes)?;
        let mut builder = DocumentBuilder::new(text);
        // A parser that stops early has reported a finding.
        let _ = match format {
            DocumentFormat::Json => json::read(text, start_of(text), &mut builder),
            DocumentFormat::Yaml => yaml::read(text, start_of(text), &mut builder),
        };
        let (value, nodes) = builder.finish().map_err(FindingCollector::into_list)?;
        let value = Arc::new(value);
        Ok(PlanDocument { source: bytes.into(), format, spans: SourceSpans::new(Arc::clone(&value), nodes), value })
    }
}

/// What two programs could read differently in a JSON text that is not a plan, such as the body of a request: keys that
/// occur twice, and integers that not every program can hold. Nothing else is judged, and no limit of plans applies.
pub fn ambiguities(bytes: &[u8]) -> Vec<Diagnostic> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Vec::new() };
    let mut builder = DocumentBuilder::without_limits(text);
    let _ = json::read(text, start_of(text), &mut builder);
    let found = builder.finish().map_or_else(FindingCollector::into_list, |_| Vec::new());
    found.into_iter().filter(|found| AMBIGUOUS.contains(&found.code)).collect()
}

/// Reads a JSON text that is not a plan, or says what is wrong with it, or ambiguous.
pub fn read_exact<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, String> {
    let value = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    match ambiguities(bytes).first() {
        None => Ok(value),
        Some(found) if found.pointer.is_empty() => Err(found.message.clone()),
        Some(found) => Err(format!("{} at {}", found.message, found.pointer)),
    }
}

const AMBIGUOUS: &[&str] = &["document.duplicate_key", "document.integer_range"];

/// The byte order mark that some editors write first; it is skipped.
const BOM: &[u8] = "\u{feff}".as_bytes();

fn start_of(text: &str) -> usize {
    if text.as_bytes().starts_with(BOM) { BOM.len() } else { 0 }
}

fn text_of(bytes: &[u8]) -> Result<&str, Vec<Diagnostic>> {
    if bytes.len() > PLAN_BYTES_MAX {
        let message = format!("the document has {} bytes, the limit is {PLAN_BYTES_MAX}", bytes.len());
        return Err(vec![Diagnostic::error("document.too_large", "", message)]);
    }
    std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let before = std::str::from_utf8(&bytes[..at]).unwrap_or_default();
        let place = SourceLocation { end: at + 1, ..place_of(before, at..at) };
        let message = "expected UTF-8 text, found an invalid byte";
        vec![Diagnostic::error("document.encoding", "", message).place(place)]
    })
}

/// Returns the location of a range, with the line and column of its start.
fn place_of(text: &str, range: Range<usize>) -> SourceLocation {
    let before = text.get(..range.start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    SourceLocation {
        line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        start: range.start,
        end: range.end,
    }
}

#[cfg(test)]
mod tests;
