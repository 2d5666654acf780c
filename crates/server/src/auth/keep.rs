//! What is kept of keys and sessions: read once, and written now and then, so that no request waits for the disk.

use super::key::Key;
use super::session::Session;
use super::{Auth, held};
use crate::fault::Fault;
use rutter_core::hash::Hash;
use rutter_core::limits::CHANGES_MAX;
use rutter_core::port;
use rutter_core::port::query::Page;
use rutter_core::port::register::{Change, Kind, Note};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// When something was last used is written this often.
const EVERY: Duration = Duration::from_secs(300);
const PAGE: u32 = 100;

impl Auth {
    pub(super) async fn read(&self) -> Result<(), port::Error> {
        let damaged = |what: &str, note: &Note, error: serde_json::Error| {
            port::Error::Corrupt(format!("{what} {}: {error}", note.id))
        };
        for note in self.notes(Kind::Key).await? {
            let key = Key::deserialize(&*note.value).map_err(|error| damaged("key", &note, error))?;
            held(&self.keys).insert(note.id, key);
        }
        for note in self.notes(Kind::Session).await? {
            // Whoever cannot be read has to enter again.
            let session = Session::deserialize(&*note.value).ok();
            if let Some((id, session)) = Hash::parse(&note.id).zip(session) {
                held(&self.sessions).insert(id, session);
            }
        }
        Ok(())
    }

    async fn notes(&self, kind: Kind) -> Result<Vec<Note>, port::Error> {
        let (mut notes, mut page) = (Vec::new(), Page::first(PAGE));
        loop {
            let listing = self.register.list(&self.tenant, kind, page).await?;
            notes.extend(listing.items);
            match listing.next {
                Some(cursor) => page = Page { limit: PAGE, after: Some(cursor) },
                None => return Ok(notes),
            }
        }
    }

    /// Keeps what was used since, until it is told to end.
    pub async fn run(self: Arc<Auth>, closing: CancellationToken) {
        loop {
            let is_over = tokio::select! {
                () = closing.cancelled() => true,
                () = tokio::time::sleep(EVERY) => false,
            };
            if let Err(fault) = self.keep().await {
                tracing::warn!(error.code = %fault.code, "when keys were used could not be kept: {}", fault.message);
            }
            if is_over {
                return;
            }
        }
    }

    /// Writes when things were last used, and forgets sessions that have ended.
    pub async fn keep(&self) -> Result<(), Fault> {
        let _pen = self.pen.lock().await;
        let now = self.now();
        let mut changes = Vec::new();
        for (id, key) in held(&self.keys).iter_mut().filter(|(_, key)| key.is_touched) {
            key.is_touched = false;
            changes.push(Change::put(Kind::Key, id, json!(key)));
        }
        held(&self.sessions).retain(|id, session| {
            let id = id.to_string();
            if session.has_ended(now) {
                changes.push(Change::remove(Kind::Session, &id));
                return false;
            }
            if session.is_touched {
                session.is_touched = false;
                changes.push(Change::put(Kind::Session, &id, json!(session)));
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
