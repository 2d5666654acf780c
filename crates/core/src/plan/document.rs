//! The text of a plan, read strictly: what two readers could understand differently is refused by name.
//!
//! JSON and YAML go the same way: a reader of the format reports what it meets to a [`builder`], which
//! keeps the bounds and builds the value together with the places in the text. A second key of the same
//! name, an integer that not every program can hold, a `NaN`, an alias, a tag: all of them are findings.

mod builder;
mod json;
mod spans;
mod yaml;

pub use spans::Spans;

use super::diagnostic::{Diagnostic, Place};
use super::findings::Findings;
use crate::limits::PLAN_BYTES_MAX;
use builder::Builder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::ops::Range;
use std::sync::Arc;

/// A text that has been understood in the one way there is.
#[derive(Clone, Debug)]
pub struct Document {
    /// The exact bytes.
    pub source: Arc<[u8]>,
    pub format: Format,
    pub value: Arc<Value>,
    /// Where in the source each part of the value stands.
    pub spans: Spans,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    Json,
    Yaml,
}

impl Format {
    /// Guesses by the first byte that is not space: a JSON plan begins with `{` or `[`.
    pub fn guess(bytes: &[u8]) -> Format {
        let bytes = bytes.strip_prefix(BOM).unwrap_or(bytes);
        match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{' | b'[') => Format::Json,
            _ => Format::Yaml,
        }
    }
}

impl Document {
    /// Reads a text; when it is refused, all that is wrong with it, as far as it could be read.
    pub fn read(bytes: &[u8], format: Format) -> Result<Document, Vec<Diagnostic>> {
        let text = text_of(bytes)?;
        let mut builder = Builder::new(text);
        // Whoever stops early has left a finding that says why.
        let _ = match format {
            Format::Json => json::read(text, start_of(text), &mut builder),
            Format::Yaml => yaml::read(text, start_of(text), &mut builder),
        };
        let (value, nodes) = builder.finish().map_err(Findings::into_list)?;
        let value = Arc::new(value);
        Ok(Document { source: bytes.into(), format, spans: Spans::new(Arc::clone(&value), nodes), value })
    }
}

/// The byte order mark some editors put first; it is skipped.
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
        let place = Place { end: at + 1, ..place_of(before, at..at) };
        let message = "expected UTF-8 text, found a byte that is none";
        vec![Diagnostic::error("document.encoding", "", message).place(place)]
    })
}

/// Returns line and column of the start of a range.
fn place_of(text: &str, range: Range<usize>) -> Place {
    let before = text.get(..range.start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Place {
        line: before.bytes().filter(|&byte| byte == b'\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        start: range.start,
        end: range.end,
    }
}

#[cfg(test)]
mod tests;
