//! The process that owns the database, and what stands still without one.

use crate::terminal::Terminal;
use rutter_core::execution::row::ExecutionProjection;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::plan::Driver;
use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::Path;

/// States of executions that go on by themselves, if a process drives them.
pub(crate) const UNDER_WAY: [ExecutionStatus; 3] =
    [ExecutionStatus::Pending, ExecutionStatus::Running, ExecutionStatus::Compensating];

/// The process that owns the database, if any.
pub(crate) fn holder(directory: &Path) -> Option<String> {
    let mut file = File::open(directory.join("rutter.lock")).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            // The owner may not have written its process id yet.
            let _ = file.read_to_string(&mut pid);
            Some(pid.trim().to_owned())
        }
        Ok(()) | Err(TryLockError::Error(_)) => None,
    }
}

/// Whether Rutter has to carry this execution on. What an agent does goes on without.
pub(crate) fn needs_a_process(row: &ExecutionProjection) -> bool {
    UNDER_WAY.contains(&row.status) && row.driver == Driver::Server
}

/// Says that nothing carries on what is listed as under way.
pub(crate) fn note_unowned(directory: &Path, under_way: usize, terminal: &Terminal) {
    if under_way == 0 || holder(directory).is_some() {
        return;
    }
    let what = match under_way {
        1 => "this execution stands still".to_owned(),
        more => format!("{more} of these executions stand still"),
    };
    terminal.remark(&format!(
        "no process owns the database: {what}; `rutter serve` or `rutter exec watch` carries on what is under way\n"
    ));
}
