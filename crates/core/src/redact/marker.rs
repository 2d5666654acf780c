//! Markers, which replace secrets in redacted text.

use std::collections::BTreeSet;
use std::ops::Range;

pub(super) const KEY_NAME: &str = "key name";
/// For a secret whose name contains a secret, or is not a valid label.
pub(super) const SECRET: &str = "secret";

const OPENING: &str = "[redacted:";
const LABEL_BYTES_MAX: usize = 128;

pub(super) fn marker(label: &str) -> String {
    format!("{OPENING}{label}]")
}

/// Whether a name can be the label of a marker.
pub(super) fn is_label(name: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

/// Every label in use. Only markers with these count, or a secret could be hidden inside a made-up marker.
pub(super) struct MarkerLabels {
    labels: BTreeSet<String>,
}

impl MarkerLabels {
    pub(super) fn new<'a>(labels: impl Iterator<Item = &'a str>) -> MarkerLabels {
        MarkerLabels { labels: labels.map(str::to_owned).collect() }
    }

    /// Whether a text is one marker and nothing else.
    pub(super) fn is_marker(&self, text: &str) -> bool {
        self.marker_length(text) == Some(text.len())
    }

    pub(super) fn between_markers(&self, text: &str) -> Vec<Range<usize>> {
        let mut pieces = Vec::new();
        let mut rest = 0;
        for (at, _) in text.match_indices(OPENING) {
            if let Some(length) = self.marker_length(&text[at..]) {
                pieces.push(rest..at);
                rest = at + length;
            }
        }
        pieces.push(rest..text.len());
        pieces
    }

    fn marker_length(&self, text: &str) -> Option<usize> {
        let inside = text.strip_prefix(OPENING)?;
        let length = inside.bytes().take(LABEL_BYTES_MAX + 1).position(|byte| byte == b']')?;
        self.labels.contains(&inside[..length]).then_some(OPENING.len() + length + 1)
    }
}
