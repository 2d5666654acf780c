//! Findings for people and programs, with their position in the text.

use crate::table::{COLUMNS, wrapped_to};
use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet, normalize_untrusted_str};
use rutter_core::diagnostic::{Diagnostic, DiagnosticSeverity};
use rutter_core::plan::document::SourceSpans;
use rutter_core::pointer::field;
use serde_json::{Map, Value, json};
use std::ops::Range;

/// How much of a line is read on either side of the underlined part; more does not fit a terminal.
const EXCERPT_BYTES: usize = 400;

/// The text that findings refer to.
#[derive(Debug)]
pub(crate) struct FindingSource<'a> {
    name: &'a str,
    text: &'a str,
    spans: Option<&'a SourceSpans>,
    /// Where each line starts.
    lines: Vec<usize>,
}

impl<'a> FindingSource<'a> {
    /// `spans` is none if the text could not be parsed; findings then bring their own position.
    pub(crate) fn new(name: &'a str, text: &'a str, spans: Option<&'a SourceSpans>) -> FindingSource<'a> {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        FindingSource { name, text, spans, lines: std::iter::once(0).chain(breaks).collect() }
    }

    /// Renders a finding like a compiler does, in colour.
    pub(crate) fn render(&self, found: &Diagnostic) -> String {
        self.render_to(found, COLUMNS)
    }

    /// The same with the given width.
    pub(crate) fn render_to(&self, found: &Diagnostic, width: usize) -> String {
        let level = match found.severity {
            DiagnosticSeverity::Error => Level::ERROR,
            DiagnosticSeverity::Warning => Level::WARNING,
        };
        let mut group = level
            .primary_title(normalize_untrusted_str(&found.message))
            .id(found.code)
            .elements(Vec::<annotate_snippets::Element<'_>>::new());
        if let Some(range) = self.range(found) {
            let (line, column) = self.position(range.start);
            let visible = self.excerpt(&range);
            let within = range.start - visible.start..range.end.min(visible.end) - visible.start;
            let is_whole = self.lines.binary_search(&visible.start).is_ok();
            let snippet =
                Snippet::source(&self.text[visible]).line_start(line).annotation(AnnotationKind::Primary.span(within));
            group = match is_whole {
                true => group.element(snippet.path(self.name)),
                // The renderer counts columns from the start of the snippet, so they are passed to it.
                false => group.element(Origin::path(self.name).line(line).char_column(column)).element(snippet),
            };
        }
        if let Some(hint) = &found.hint {
            group = group.element(Level::HELP.message(wrapped_to(&normalize_untrusted_str(hint), 0, width)));
        }
        let mut text = Renderer::styled().term_width(width).render(&[group]);
        text.push_str("\n\n");
        text
    }

    /// A finding for programs, with its position in the text.
    pub(crate) fn json(&self, found: &Diagnostic) -> Value {
        let mut fields = Map::new();
        fields.insert("code".into(), found.code.into());
        fields.insert("severity".into(), json!(found.severity));
        fields.insert("pointer".into(), found.pointer.as_str().into());
        if let Some(range) = self.range(found) {
            let (line, column) = self.position(range.start);
            let (end_line, end_column) = self.position(range.end);
            fields.insert("line".into(), line.into());
            fields.insert("column".into(), column.into());
            fields.insert("end_line".into(), end_line.into());
            fields.insert("end_column".into(), end_column.into());
        }
        fields.insert("message".into(), found.message.as_str().into());
        if let Some(hint) = &found.hint {
            fields.insert("hint".into(), hint.as_str().into());
        }
        if let Some(fix) = &found.fix {
            fields.insert("fix".into(), json!(fix));
        }
        Value::Object(fields)
    }

    /// The position of a finding in the text, for sorting.
    pub(crate) fn start(&self, found: &Diagnostic) -> usize {
        self.range(found).map_or(0, |range| range.start)
    }

    /// The part of the text to underline: at most one line of it.
    fn range(&self, found: &Diagnostic) -> Option<Range<usize>> {
        let range = match (found.place, self.spans) {
            (Some(place), _) => place.start..place.end,
            (None, Some(spans)) => self.name_of(spans, found),
            (None, None) => return None,
        };
        let start = self.text.floor_char_boundary(range.start);
        let end = self.text.ceil_char_boundary(range.end.max(start));
        let first_line = self.text[start..end].lines().next().unwrap_or_default().trim_end().len();
        Some(start..start + first_line)
    }

    /// The range to underline: of an object or list only its key, of a step its id.
    fn name_of(&self, spans: &SourceSpans, found: &Diagnostic) -> Range<usize> {
        let mut pointer = found.pointer.as_str();
        while spans.value(pointer).is_none()
            && let Some(parent) = pointer.rfind('/')
        {
            pointer = &pointer[..parent];
        }
        let value = spans.nearest(pointer);
        let text = self.text.get(value.clone()).unwrap_or_default();
        let is_container = text.starts_with(['{', '[']) || text.contains('\n');
        let is_about_key = ["unknown_field", "unknown_parameter"].iter().any(|code| found.code.ends_with(code));
        let key = spans.key(pointer).filter(|_| is_container || is_about_key);
        let id = || ["id", "step_number", "name"].iter().find_map(|name| spans.value(&field(pointer, name)));
        key.or_else(|| id().filter(|_| is_container)).unwrap_or(value)
    }

    /// The line around a range, or the visible part of it: a document may be one line of a million bytes.
    fn excerpt(&self, range: &Range<usize>) -> Range<usize> {
        let (line, _) = self.position(range.start);
        let start = self.lines[line - 1].max(range.start.saturating_sub(EXCERPT_BYTES));
        let line_end = self.lines.get(line).map_or(self.text.len(), |next| next - 1);
        let end = line_end.min(range.start + 2 * EXCERPT_BYTES);
        let visible = self.text.ceil_char_boundary(start)..self.text.floor_char_boundary(end);
        // A line of a Windows file ends with one more character, which is not printed.
        visible.start..visible.start + self.text[visible.clone()].trim_end_matches('\r').len()
    }

    /// Line and column of a byte, both from 1; columns count characters.
    fn position(&self, byte: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= byte);
        let before = &self.text[self.lines[line - 1]..byte];
        (line, before.chars().count() + 1)
    }
}

/// `1 step`, `2 steps`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The same for large counts and irregular nouns: `1 entry`, `2 entries`.
pub(crate) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rutter_core::plan::document::{DocumentFormat, PlanDocument};

    /// The position of a finding, and the lines that show it.
    fn located(text: &str, format: DocumentFormat, pointer: &str) -> (usize, usize, String) {
        let document = PlanDocument::read(text.as_bytes(), format).unwrap();
        let subject = FindingSource::new("plan", text, Some(&document.spans));
        let found = Diagnostic::error("plan.x", pointer, "x");
        let json = subject.json(&found);
        let number = |key: &str| usize::try_from(json[key].as_u64().unwrap()).unwrap();
        let rendered = anstream::adapter::strip_str(&subject.render(&found)).to_string();
        assert!(rendered.contains(&format!("plan:{}:{}", number("line"), number("column"))), "{rendered}");
        (number("line"), number("column"), rendered)
    }

    #[test]
    fn a_position_in_one_long_line_is_rendered_correctly() {
        let text = format!(r#"{{"a": "{}", "b": 7, "c": "{}"}}"#, "ä".repeat(2_000), "x".repeat(2_000));
        let (line, column, rendered) = located(&text, DocumentFormat::Json, "/b");
        assert_eq!((line, column), (1, 2_016));
        assert!(rendered.contains(r#""b": 7"#) && rendered.lines().all(|line| line.chars().count() <= 110));
    }

    #[test]
    fn steps_are_named_by_their_id_and_objects_by_their_key() {
        let text = "steps:\r\n  - tool: a.b\r\n    id: first\r\n    parameters: { x: 1 }\r\n";
        for (pointer, place) in [
            ("/steps/0", (3, 9)),
            ("/steps/0/missing", (3, 9)),
            ("/steps/0/parameters", (4, 5)),
            ("/steps/0/parameters/x", (4, 22)),
            ("/steps", (1, 1)),
            ("", (1, 1)),
            ("not a pointer", (1, 1)),
        ] {
            let (line, column, rendered) = located(text, DocumentFormat::Yaml, pointer);
            assert_eq!((line, column), place, "{pointer}");
            assert!(!rendered.contains(['\r', '\u{240d}']), "{rendered}");
        }
    }
}
