//! What the harness knows of its own accord: what it asked, what was acknowledged, when it killed.

use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

#[derive(Debug)]
pub(super) struct Notes(File);

impl Notes {
    pub(super) fn open(path: &Path) -> Result<Notes, String> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map(Notes).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Writes one line. The harness itself is not killed, so nothing has to be synced.
    pub(super) fn write(&mut self, note: &Value) {
        writeln!(self.0, "{note}").expect("the directory was just made, and it is ours");
    }
}

/// Milliseconds since 1970, as journals have them.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
