//! The calls in flight, so that each can be cancelled.

use rutter_core::id::{ExecutionId, PartId};
use rutter_core::port::tools::ToolCallId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(crate) struct RunningCalls {
    calls: Mutex<RunningCallTable>,
}

#[derive(Debug, Default)]
struct RunningCallTable {
    by_part: HashMap<(ExecutionId, PartId), Vec<RunningCall>>,
    /// Distinguishes two entries for the same call, one after the other.
    count: u64,
}

#[derive(Debug)]
struct RunningCall {
    id: ToolCallId,
    number: u64,
    cancel: CancellationToken,
}

impl RunningCalls {
    /// Registers a call until the guard is dropped.
    pub(crate) fn enter(&self, id: &ToolCallId) -> RunningCallGuard<'_> {
        let cancel = CancellationToken::new();
        let mut calls = self.lock();
        calls.count += 1;
        let number = calls.count;
        let entry = RunningCall { id: id.clone(), number, cancel: cancel.clone() };
        calls.by_part.entry(key(id)).or_default().push(entry);
        RunningCallGuard { running_calls: self, key: key(id), number, cancel }
    }

    pub(crate) fn cancel(&self, id: &ToolCallId) {
        let calls = self.lock();
        let entries = calls.by_part.get(&key(id)).into_iter().flatten();
        let found: Vec<_> = entries.filter(|entry| entry.id == *id).map(|entry| entry.cancel.clone()).collect();
        // A task that waits for the token may run at once and come back here.
        drop(calls);
        found.iter().for_each(CancellationToken::cancel);
    }

    fn lock(&self) -> MutexGuard<'_, RunningCallTable> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct RunningCallGuard<'a> {
    running_calls: &'a RunningCalls,
    key: (ExecutionId, PartId),
    number: u64,
    pub(crate) cancel: CancellationToken,
}

impl Drop for RunningCallGuard<'_> {
    fn drop(&mut self) {
        let mut calls = self.running_calls.lock();
        if let Some(entries) = calls.by_part.get_mut(&self.key) {
            entries.retain(|entry| entry.number != self.number);
            if entries.is_empty() {
                calls.by_part.remove(&self.key);
            }
        }
    }
}

fn key(id: &ToolCallId) -> (ExecutionId, PartId) {
    (id.identity.execution.clone(), id.part.clone())
}
