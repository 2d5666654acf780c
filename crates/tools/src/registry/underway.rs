//! The calls that are being made, so that each can be asked to end.

use rutter_core::id::{ExecutionId, PartId};
use rutter_core::port::tools::CallId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(crate) struct Underway {
    calls: Mutex<Calls>,
}

#[derive(Debug, Default)]
struct Calls {
    by_part: HashMap<(ExecutionId, PartId), Vec<Entry>>,
    /// So that two entries for the same call, one after the other, are told apart.
    count: u64,
}

#[derive(Debug)]
struct Entry {
    id: CallId,
    number: u64,
    cancel: CancellationToken,
}

impl Underway {
    /// Notes a call until the answer is dropped.
    pub(crate) fn enter(&self, id: &CallId) -> Entered<'_> {
        let cancel = CancellationToken::new();
        let mut calls = self.lock();
        calls.count += 1;
        let number = calls.count;
        let entry = Entry { id: id.clone(), number, cancel: cancel.clone() };
        calls.by_part.entry(key(id)).or_default().push(entry);
        Entered { underway: self, key: key(id), number, cancel }
    }

    pub(crate) fn cancel(&self, id: &CallId) {
        let calls = self.lock();
        let entries = calls.by_part.get(&key(id)).into_iter().flatten();
        let found: Vec<_> =
            entries.filter(|entry| entry.id == *id).map(|entry| entry.cancel.clone()).collect();
        // Whoever waits for the token may run at once and come back here.
        drop(calls);
        found.iter().for_each(CancellationToken::cancel);
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct Entered<'a> {
    underway: &'a Underway,
    key: (ExecutionId, PartId),
    number: u64,
    pub(crate) cancel: CancellationToken,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut calls = self.underway.lock();
        if let Some(entries) = calls.by_part.get_mut(&self.key) {
            entries.retain(|entry| entry.number != self.number);
            if entries.is_empty() {
                calls.by_part.remove(&self.key);
            }
        }
    }
}

fn key(id: &CallId) -> (ExecutionId, PartId) {
    (id.identity.execution.clone(), id.part.clone())
}
