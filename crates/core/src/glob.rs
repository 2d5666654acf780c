//! Patterns for names: `payments.*`, in which a star stands for any text.

use serde::{Deserialize, Serialize};

/// A pattern for names of tools, servers, principals and tenants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NamePattern(String);

impl NamePattern {
    pub fn new(pattern: &str) -> NamePattern {
        NamePattern(pattern.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the whole name fits the pattern.
    pub fn matches(&self, name: &str) -> bool {
        let mut pieces = self.0.split('*');
        let first = pieces.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(first) else { return false };
        let Some(last) = pieces.next_back() else { return rest.is_empty() };
        // The leftmost place for each piece leaves the most for the pieces after it.
        for piece in pieces {
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        rest.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text_and_everything_else_for_itself() {
        for (pattern, name, expected) in [
            ("payments.charge", "payments.charge", true),
            ("payments.charge", "payments.charge2", false),
            ("payments.*", "payments.charge", true),
            ("payments.*", "payments.", true),
            ("payments.*", "payment.charge", false),
            ("*", "", true),
            ("*.delete_*", "files.delete_all", true),
            ("*.delete_*", "files.undelete", false),
            ("a*a", "a", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c-b", false),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(NamePattern::new(pattern).matches(name), expected, "{pattern} {name}");
        }
    }
}
