//! What is wrong or doubtful in a plan, told like a good compiler: where, what was expected, what to do.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One finding. All findings of a plan are reported at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnostic {
    /// Stable and documented in docs/errors.md: `plan.cycle`.
    pub code: &'static str,
    pub severity: Severity,
    /// JSON Pointer into the document as it was written.
    pub pointer: String,
    /// Set when there is no document to point into, because the text itself is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// A JSON Patch that removes the finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Vec<PatchOp>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    Error,
    Warning,
}

/// A stretch of the source text: where it starts for people, and its bytes for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
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
pub enum PatchOp {
    Add { path: String, value: Value },
    Remove { path: String },
    Replace { path: String, value: Value },
}

impl Diagnostic {
    pub fn error(code: &'static str, pointer: impl Into<String>, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            pointer: pointer.into(),
            place: None,
            message: message.into(),
            hint: None,
            fix: None,
        }
    }

    pub fn warning(code: &'static str, pointer: impl Into<String>, message: impl Into<String>) -> Diagnostic {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(code, pointer, message) }
    }

    pub fn place(mut self, place: Place) -> Diagnostic {
        self.place = Some(place);
        self
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }

    pub fn fix(mut self, fix: Vec<PatchOp>) -> Diagnostic {
        self.fix = Some(fix);
        self
    }
}
