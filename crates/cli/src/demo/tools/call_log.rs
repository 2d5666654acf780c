//! The log that the demo's tools share: a line for every call, and one for every effect.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub(crate) struct ToolCallLog {
    path: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CallLogLine {
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    is_effect: bool,
}

/// The lines of the log, or those since some line.
#[derive(Clone, Debug)]
pub(crate) struct CallLogLines(Vec<CallLogLine>);

impl CallLogLine {
    pub(super) fn call(tool: &str, arguments: &Value) -> CallLogLine {
        CallLogLine { tool: tool.to_owned(), arguments: arguments.clone(), is_effect: false }
    }

    pub(super) fn effect(tool: &str, arguments: &Value) -> CallLogLine {
        CallLogLine { is_effect: true, ..CallLogLine::call(tool, arguments) }
    }
}

impl ToolCallLog {
    pub(crate) fn in_folder(folder: &Path) -> ToolCallLog {
        ToolCallLog { path: folder.join("book.ndjson") }
    }

    /// Appends one line; it is on disk when this returns.
    pub(super) fn write(&self, line: &CallLogLine) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        file.write_all(format!("{}\n", serde_json::to_string(line)?).as_bytes())?;
        file.sync_data()
    }

    pub(crate) fn read(&self) -> io::Result<CallLogLines> {
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            text => text?,
        };
        // The last line may be incomplete.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines: Result<Vec<CallLogLine>, _> = whole.lines().map(serde_json::from_str).collect();
        Ok(CallLogLines(lines?))
    }
}

impl CallLogLines {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The lines from this one on.
    pub(crate) fn since(mut self, line: usize) -> CallLogLines {
        self.0.drain(..line.min(self.0.len()));
        self
    }

    pub(crate) fn calls(&self) -> usize {
        self.0.iter().filter(|line| !line.is_effect).count()
    }

    pub(crate) fn effects(&self) -> impl Iterator<Item = &CallLogLine> {
        self.0.iter().filter(|line| line.is_effect)
    }

    pub(crate) fn effects_of(&self, tool: &str) -> usize {
        self.effects().filter(|line| line.tool == tool).count()
    }

    /// Effects that occurred before with the same arguments.
    pub(crate) fn done_twice(&self) -> usize {
        let mut seen: BTreeMap<(&str, String), usize> = BTreeMap::new();
        for line in self.effects() {
            *seen.entry((&line.tool, line.arguments.to_string())).or_default() += 1;
        }
        seen.values().filter(|count| **count > 1).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn effects_are_counted_and_repeats_detected() {
        let folder = tempfile::tempdir().unwrap();
        let book = ToolCallLog::in_folder(folder.path());
        assert_eq!(book.read().unwrap().len(), 0);
        let (one, other) = (json!({ "reference": "a" }), json!({ "reference": "b" }));
        for line in [
            CallLogLine::call("payments.charge", &one),
            CallLogLine::effect("payments.charge", &one),
            CallLogLine::effect("payments.charge", &other),
        ] {
            book.write(&line).unwrap();
        }
        let lines = book.read().unwrap();
        assert_eq!((lines.calls(), lines.effects_of("payments.charge"), lines.done_twice()), (1, 2, 0));
        book.write(&CallLogLine::effect("payments.charge", &one)).unwrap();
        assert_eq!(book.read().unwrap().done_twice(), 1);
        assert_eq!(book.read().unwrap().since(2).done_twice(), 0);
    }
}
