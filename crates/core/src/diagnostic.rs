//! Diagnostics of a plan, as a compiler reports them: where, what was expected, what to do.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One finding. All findings of a plan are reported at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnostic {
    /// Stable and documented in docs/errors.md: `plan.cycle`.
    pub code: &'static str,
    pub severity: DiagnosticSeverity,
    /// JSON Pointer into the author's document.
    pub pointer: String,
    /// Set when the text cannot be parsed, so that there is no document to point into.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<SourceLocation>,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// A JSON Patch that removes the finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Vec<PatchOperation>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DiagnosticSeverity {
    Error,
    Warning,
}

/// A range of the source text: line and column for people, bytes for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SourceLocation {
    /// From 1.
    pub line: usize,
    /// From 1, in characters.
    pub column: usize,
    pub start: usize,
    pub end: usize,
}

/// One operation of a JSON Patch (RFC 6902).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum PatchOperation {
    Add {
        path: String,
        value: Value,
    },
    Remove {
        path: String,
    },
    Replace {
        path: String,
        value: Value,
    },
    /// Changes nothing; the patch as a whole is refused unless the value is there.
    Test {
        path: String,
        value: Value,
    },
}

/// Returns `2 errors and 1 warning`; `None` if there is nothing.
pub fn count(found: &[Diagnostic]) -> Option<String> {
    let errors = found.iter().filter(|found| found.severity == DiagnosticSeverity::Error).count();
    let some = |count: usize, noun: &str| match count {
        0 => None,
        1 => Some(format!("1 {noun}")),
        count => Some(format!("{count} {noun}s")),
    };
    match (some(errors, "error"), some(found.len() - errors, "warning")) {
        (Some(errors), Some(warnings)) => Some(format!("{errors} and {warnings}")),
        (errors, warnings) => errors.or(warnings),
    }
}

impl Diagnostic {
    pub fn error(code: &'static str, pointer: impl Into<String>, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: DiagnosticSeverity::Error,
            pointer: pointer.into(),
            place: None,
            message: message.into(),
            hint: None,
            fix: None,
        }
    }

    pub fn warning(code: &'static str, pointer: impl Into<String>, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: DiagnosticSeverity::Warning, ..Diagnostic::error(code, pointer, message) }
    }

    pub fn place(mut self, place: SourceLocation) -> Diagnostic {
        self.place = Some(place);
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }

    pub fn fix(mut self, fix: Vec<PatchOperation>) -> Diagnostic {
        self.fix = Some(fix);
        self
    }
}
