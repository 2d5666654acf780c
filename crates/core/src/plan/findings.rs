//! The findings of one document, in order and limited in number and size.

use crate::diagnostic::Diagnostic;
use crate::limits::{FINDINGS_BYTES_MAX, FINDINGS_MAX};

/// Collects findings. A hostile document cannot make it grow without limit.
#[derive(Debug, Default)]
pub struct FindingCollector {
    list: Vec<Diagnostic>,
    bytes: usize,
    left_out: usize,
}

impl FindingCollector {
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.push_with(|| diagnostic);
    }

    /// Adds a finding that is built only if it still fits.
    pub fn push_with(&mut self, find: impl FnOnce() -> Diagnostic) {
        if self.is_full() {
            self.left_out += 1;
            return;
        }
        let diagnostic = find();
        self.bytes += diagnostic.pointer.len() + diagnostic.message.len();
        self.list.push(diagnostic);
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Whether further findings are only counted.
    pub fn is_full(&self) -> bool {
        self.list.len() >= FINDINGS_MAX || self.bytes >= FINDINGS_BYTES_MAX
    }

    /// Returns the findings; when some were left out, the last one says so.
    pub fn into_list(mut self) -> Vec<Diagnostic> {
        if self.left_out > 0 {
            let message = format!("only {} findings are listed, {} more were left out", self.list.len(), self.left_out);
            self.list.push(Diagnostic::error("plan.too_many_findings", "", message));
        }
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_beyond_the_bound_are_only_counted() {
        let long = "x".repeat(FINDINGS_BYTES_MAX);
        for (pointer, made, stored, last) in [
            ("", FINDINGS_MAX, FINDINGS_MAX, "plan.x"),
            ("", FINDINGS_MAX + 1, FINDINGS_MAX + 1, "plan.too_many_findings"),
            ("", FINDINGS_MAX + 9, FINDINGS_MAX + 1, "plan.too_many_findings"),
            (&long, 1, 1, "plan.x"),
            (&long, 9, 2, "plan.too_many_findings"),
        ] {
            let mut findings = FindingCollector::default();
            (0..made).for_each(|_| findings.push(Diagnostic::error("plan.x", pointer, "x")));
            let list = findings.into_list();
            assert_eq!((list.len(), list[list.len() - 1].code), (stored, last));
        }
    }
}
