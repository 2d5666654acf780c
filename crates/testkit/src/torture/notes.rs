//! What the harness itself knows: its requests, acknowledgements, and when it killed.

use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

#[derive(Debug)]
pub(super) struct TortureLog(File);

impl TortureLog {
    pub(super) fn open(path: &Path) -> Result<TortureLog, String> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        file.map(TortureLog).map_err(|error| format!("{}: {error}", path.display()))
    }

    /// Writes one line. The harness itself is not killed, so nothing has to be synced.
    pub(super) fn write(&mut self, note: &Value) {
        writeln!(self.0, "{note}").expect("the directory was just created");
    }
}

/// Milliseconds since 1970, as journals have them.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
