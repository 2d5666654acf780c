//! Persistence of keys and sessions: loaded once, written every few minutes, so that no request waits for the disk.

use super::key::StoredApiKey;
use super::session::StoredSession;
use super::{Authenticator, lock};
use crate::error::AppError;
use rutter_core::hash::Hash;
use rutter_core::limits::CHANGES_MAX;
use rutter_core::port;
use rutter_core::port::register::{RegisterChange, RegisterItem, RegisterKind};
use rutter_engine::all_pages;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often the times of last use are written.
const EVERY: Duration = Duration::from_secs(300);

impl Authenticator {
    pub async fn read(&self) -> Result<(), port::Error> {
        let damaged = |what: &str, note: &RegisterItem, error: serde_json::Error| {
            port::Error::Corrupt(format!("{what} {}: {error}", note.id))
        };
        for note in self.notes(RegisterKind::Key).await? {
            let key = StoredApiKey::deserialize(&*note.value).map_err(|error| damaged("key", &note, error))?;
            lock(&self.keys).insert(note.id, key);
        }
        for note in self.notes(RegisterKind::Session).await? {
            // A session that cannot be read has ended: its user signs in again.
            let session = StoredSession::deserialize(&*note.value).ok();
            if let Some((id, session)) = Hash::parse(&note.id).zip(session) {
                lock(&self.sessions).insert(id, session);
            }
        }
        Ok(())
    }

    async fn notes(&self, kind: RegisterKind) -> Result<Vec<RegisterItem>, port::Error> {
        let read = |page| self.register.list(&self.tenant, kind, page);
        all_pages(usize::MAX, read).await.map(|(notes, _)| notes)
    }

    /// Writes the times of last use periodically, until shutdown.
    pub async fn run(self: Arc<Authenticator>, closing: CancellationToken) {
        loop {
            let is_over = tokio::select! {
                () = closing.cancelled() => true,
                () = tokio::time::sleep(EVERY) => false,
                () = self.expired.notified() => false,
            };
            if let Err(app_error) = self.write_changes().await {
                tracing::warn!(error.code = %app_error.code, "could not write the last use of keys: {}", app_error.message);
            }
            if is_over {
                return;
            }
        }
    }

    /// Notes which keys have expired, and writes it.
    pub(super) async fn latch_expired(&self) {
        let now = self.now();
        let is_new = lock(&self.keys).values_mut().filter_map(|key| key.latch(now).then_some(())).count() > 0;
        if is_new && let Err(app_error) = self.write_changes().await {
            tracing::warn!(error.code = %app_error.code, "could not write which keys have expired: {}", app_error.message);
        }
    }

    /// Writes the times of last use and which keys have expired, and removes sessions that have ended.
    pub async fn write_changes(&self) -> Result<(), AppError> {
        let _pen = self.write_lock.lock().await;
        let now = self.now();
        let mut changes = Vec::new();
        for (id, key) in lock(&self.keys).iter_mut() {
            key.latch(now);
            if !key.is_touched {
                continue;
            }
            key.is_touched = false;
            changes.push(RegisterChange::put(RegisterKind::Key, id, json!(key)));
        }
        lock(&self.sessions).retain(|id, session| {
            let id = id.to_string();
            if session.has_ended(now) {
                changes.push(RegisterChange::remove(RegisterKind::Session, &id));
                return false;
            }
            if session.is_touched {
                session.is_touched = false;
                changes.push(RegisterChange::put(RegisterKind::Session, &id, json!(session)));
            }
            true
        });
        while !changes.is_empty() {
            let rest = changes.split_off(changes.len().min(CHANGES_MAX));
            self.write(std::mem::replace(&mut changes, rest), now).await?;
        }
        Ok(())
    }
}
