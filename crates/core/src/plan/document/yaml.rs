//! Parses YAML 1.2 (core schema) and reports its tokens to the builder.
//!
//! Only the part of YAML that corresponds to JSON is accepted: one document of lists, objects with text keys,
//! texts, numbers, `true`, `false` and `null`. `yes`, `on`, `12:30` and dates are texts, as in YAML 1.2.

use super::builder::{ContainerState, DocumentBuilder, ReadAborted};
use crate::diagnostic::Diagnostic;
use crate::limits::DEPTH_MAX;
use crate::wording::quoted;
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StructureStyle};
use serde_json::Value;
use std::ops::Range;

pub(super) fn read(text: &str, start: usize, builder: &mut DocumentBuilder<'_>) -> Result<(), ReadAborted> {
    // One more than the builder allows, so that the builder refuses first, with a pointer.
    let options = granit_parser::options! {
        flow_nesting_limit: DEPTH_MAX + 1,
        block_nesting_limit: DEPTH_MAX + 1,
    };
    let mut reader = YamlReader { text, start, builder, documents: 0, open: Vec::new() };
    for next in Parser::new_from_str_with_options(&text[start..], options) {
        match next {
            Ok((event, span)) => reader.event(event, span)?,
            Err(error) => return reader.refuse(&error),
        }
    }
    Ok(())
}

struct YamlReader<'t, 'b, 'x> {
    text: &'t str,
    /// The offset at which the parser's text begins.
    start: usize,
    builder: &'b mut DocumentBuilder<'x>,
    documents: usize,
    /// For each open list and object: whether it has a closing bracket.
    open: Vec<bool>,
}

impl YamlReader<'_, '_, '_> {
    fn event(&mut self, event: Event<'_>, span: Span) -> Result<(), ReadAborted> {
        let at = self.range(span);
        match event {
            Event::DocumentStart(..) => {
                self.documents += 1;
                if self.documents > 1 {
                    let message = "expected one document, found a second".to_owned();
                    return self.builder.stop("document.yaml_documents", at, message);
                }
            }
            Event::Scalar(text, style, anchor, tag) => {
                self.refuse_properties(anchor, tag.is_some(), at.clone());
                if self.builder.inside() == ContainerState::ObjectBeforeKey {
                    return self.key(text.into_owned(), style, at);
                }
                if style != ScalarStyle::Plain {
                    return self.builder.text(text.into_owned(), at);
                }
                return self.plain(&text, at);
            }
            Event::MappingStart(style, anchor, tag) => {
                self.open(style, anchor, tag.is_some(), at.clone())?;
                return self.builder.open_object(at);
            }
            Event::SequenceStart(style, anchor, tag) => {
                self.open(style, anchor, tag.is_some(), at.clone())?;
                return self.builder.open_array(at);
            }
            Event::MappingEnd | Event::SequenceEnd => {
                let bracket = self.open.pop().unwrap_or(false);
                self.builder.close(bracket.then_some(at.end));
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                self.alias(at.clone());
                if self.builder.inside() == ContainerState::ObjectBeforeKey {
                    return Err(ReadAborted);
                }
                return self.builder.scalar(Value::Null, at);
            }
            _ => {}
        }
        Ok(())
    }

    fn open(
        &mut self,
        style: StructureStyle,
        anchor: usize,
        tagged: bool,
        at: Range<usize>,
    ) -> Result<(), ReadAborted> {
        self.refuse_properties(anchor, tagged, at.clone());
        if self.builder.inside() == ContainerState::ObjectBeforeKey {
            let message = "expected a text as key, found a list or an object".to_owned();
            return self.builder.stop("document.yaml_key", at, message);
        }
        self.open.push(style == StructureStyle::Flow);
        Ok(())
    }

    fn key(&mut self, name: String, style: ScalarStyle, at: Range<usize>) -> Result<(), ReadAborted> {
        if style == ScalarStyle::Plain {
            if name == "<<" {
                let hint = "write the fields out";
                let message = "merge keys are not supported";
                let diagnostic = Diagnostic::error("document.yaml_merge_key", "", message).hint(hint);
                self.builder.find(diagnostic, at.clone());
            } else if resolve(&name) != ResolvedScalar::Text {
                let message = format!("expected a text as key, found {name}");
                let hint = format!("write {}", quoted(&name));
                let diagnostic = Diagnostic::error("document.yaml_key", "", message).hint(hint);
                self.builder.find(diagnostic, at.clone());
            }
        }
        self.builder.key(name, at)
    }

    /// Adds an unquoted text, which may be a number or a constant.
    fn plain(&mut self, text: &str, at: Range<usize>) -> Result<(), ReadAborted> {
        match resolve(text) {
            ResolvedScalar::Text => self.builder.text(text.to_owned(), at),
            ResolvedScalar::Null => self.builder.scalar(Value::Null, at),
            ResolvedScalar::Bool(yes) => self.builder.scalar(Value::Bool(yes), at),
            ResolvedScalar::Integer(digits, radix) => self.builder.integer(digits, radix, at),
            ResolvedScalar::Float => self.builder.float(text, at),
            ResolvedScalar::NotFinite => self.builder.not_finite(text, at),
            ResolvedScalar::LeadingZeros => {
                let message = format!("{text} has leading zeros, which YAML readers understand differently");
                let hint = format!("write {} if it is a text, or leave the zeros out", quoted(text));
                let diagnostic = Diagnostic::error("document.yaml_number", "", message).hint(hint);
                self.builder.find(diagnostic, at.clone());
                self.builder.scalar(Value::Null, at)
            }
        }
    }

    fn refuse_properties(&mut self, anchor: usize, tagged: bool, at: Range<usize>) {
        if anchor != 0 {
            self.alias(at.clone());
        }
        if tagged {
            let hint = "leave the tag out; quotes make a text of anything";
            let diagnostic = Diagnostic::error("document.yaml_tag", "", "tags are not supported").hint(hint);
            self.builder.find(diagnostic, at);
        }
    }

    fn alias(&mut self, at: Range<usize>) {
        let diagnostic = Diagnostic::error("document.yaml_alias", "", "anchors and aliases are not supported");
        self.builder.find(diagnostic.hint("write the value out"), at);
    }

    fn refuse(&mut self, error: &ScanError) -> Result<(), ReadAborted> {
        let at = (error.marker().byte_offset().unwrap_or(0) + self.start).min(self.text.len());
        let (code, message) = match error.kind() {
            ErrorKind::RecursionLimitExceeded => {
                ("document.too_deep", format!("lists and objects are nested more than {DEPTH_MAX} deep"))
            }
            ErrorKind::UnknownAnchor => ("document.yaml_alias", "anchors and aliases are not supported".to_owned()),
            _ => ("document.syntax", error.info()),
        };
        self.builder.stop(code, at..at, message)
    }

    /// Returns the bytes of a span without trailing line breaks.
    fn range(&self, span: Span) -> Range<usize> {
        let range = span.byte_range().unwrap_or(0..0);
        let (start, end) = (range.start + self.start, range.end + self.start);
        match self.text.get(start..end) {
            Some(text) => start..start + text.trim_end().len(),
            None => 0..0,
        }
    }
}

/// The meaning of an unquoted text in the core schema.
#[derive(Debug, PartialEq)]
enum ResolvedScalar<'t> {
    Text,
    Null,
    Bool(bool),
    /// Digits with their sign, and their base.
    Integer(&'t str, u32),
    Float,
    NotFinite,
    LeadingZeros,
}

fn resolve(text: &str) -> ResolvedScalar<'_> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return ResolvedScalar::Null,
        "true" | "True" | "TRUE" => return ResolvedScalar::Bool(true),
        "false" | "False" | "FALSE" => return ResolvedScalar::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return ResolvedScalar::NotFinite,
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return ResolvedScalar::NotFinite;
    }
    if let Some(digits) = text.strip_prefix("0x").filter(|digits| are_digits(digits, 16)) {
        return ResolvedScalar::Integer(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o").filter(|digits| are_digits(digits, 8)) {
        return ResolvedScalar::Integer(digits, 8);
    }
    let whole = unsigned.find(|c: char| !c.is_ascii_digit()).unwrap_or(unsigned.len());
    if whole > 0 && whole == unsigned.len() {
        return match unsigned.as_bytes() {
            [b'0', _, ..] => ResolvedScalar::LeadingZeros,
            _ if text == "-0" => ResolvedScalar::Float,
            _ => ResolvedScalar::Integer(text, 10),
        };
    }
    if is_float(unsigned, whole) { ResolvedScalar::Float } else { ResolvedScalar::Text }
}

/// Whether a text without its sign is `12.5`, `12.`, `.5`, `1e3`: digits, a fraction, an exponent.
fn is_float(unsigned: &str, whole: usize) -> bool {
    let mut rest = &unsigned[whole..];
    let mut digits = whole;
    if let Some(fraction) = rest.strip_prefix('.') {
        let length = fraction.find(|c: char| !c.is_ascii_digit()).unwrap_or(fraction.len());
        digits += length;
        rest = &fraction[length..];
    }
    let exponent = rest.strip_prefix(['e', 'E']).map(|power| power.strip_prefix(['-', '+']).unwrap_or(power));
    digits > 0 && exponent.map_or(rest.is_empty(), |power| are_digits(power, 10))
}

fn are_digits(text: &str, radix: u32) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_digit(radix))
}
