//! Which timers fire now, and when to check again.

use super::TimerRecord;
use crate::builtin::notes::{NoteStore, StoredNote};
use rutter_core::id::TenantId;
use rutter_core::port::Error;
use rutter_core::port::register::RegisterKind;
use rutter_core::time::{Millis, Timestamp};
use serde::Deserialize;
use serde_json::Value;
use std::collections::HashMap;

/// Timers that are fired before the store is asked for more.
const DUE_MAX: usize = 64;

/// The first pause before a delivery is tried again; it doubles.
const RETRY_AFTER: Millis = Millis::seconds(2);

/// A timer and its tenant.
#[derive(Clone, Debug)]
pub(super) struct DueTimer {
    pub tenant: TenantId,
    pub note: StoredNote<TimerRecord>,
}

#[derive(Debug, Default)]
pub(super) struct DueTimers {
    /// The longest due first.
    pub due: Vec<DueTimer>,
    /// When the next of the others fires.
    pub next: Option<Timestamp>,
}

/// How often the delivery of each timer failed, and when to retry. Not stored: a restart tries again at once.
#[derive(Debug, Default)]
pub(super) struct DeliveryRetries {
    /// By tenant and by the key of the call that set the timer.
    retries: HashMap<(TenantId, String), (u32, Timestamp)>,
}

impl DeliveryRetries {
    pub fn count(&self, timer: &DueTimer) -> u32 {
        self.retries.get(&timer.instance()).map_or(0, |(count, _)| *count)
    }

    pub fn failed(&mut self, timer: &DueTimer, now: Timestamp) {
        let count = self.count(timer);
        let pause = Millis(RETRY_AFTER.0 << count.min(5));
        self.retries.insert(timer.instance(), (count + 1, now.plus(pause)));
    }

    pub fn ended(&mut self, timer: &DueTimer) {
        self.retries.remove(&timer.instance());
    }

    fn fires_at(&self, timer: &DueTimer) -> Timestamp {
        self.retries.get(&timer.instance()).map_or(timer.note.value.at, |(_, again)| *again)
    }
}

impl DueTimer {
    /// Distinguishes a timer from a later one of the same name.
    fn instance(&self) -> (TenantId, String) {
        (self.tenant.clone(), self.note.value.key.clone())
    }
}

/// Finds the due timers of all tenants.
pub(super) async fn find(notes: &NoteStore, now: Timestamp, retries: &DeliveryRetries) -> Result<DueTimers, Error> {
    let mut found = DueTimers::default();
    for tenant in notes.tenants(RegisterKind::Timer).await? {
        let request = |StoredNote { id, version, value }: StoredNote<Value>| {
            let timer = match TimerRecord::deserialize(value) {
                Ok(value) => DueTimer { tenant: tenant.clone(), note: StoredNote { id, version, value } },
                // It must not block the others.
                Err(error) => return tracing::warn!(timer = id, %error, "a stored timer cannot be read"),
            };
            match retries.fires_at(&timer) {
                at if at > now => found.wait_until(at),
                _ => found.due.push(timer),
            }
            if found.due.len() >= 2 * DUE_MAX {
                found.keep_longest_due();
            }
        };
        notes.for_each(&tenant, RegisterKind::Timer, request).await?;
    }
    found.keep_longest_due();
    Ok(found)
}

impl DueTimers {
    fn wait_until(&mut self, at: Timestamp) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    fn keep_longest_due(&mut self) {
        self.due.sort_by_key(|timer| timer.note.value.at);
        self.due.truncate(DUE_MAX);
    }
}
