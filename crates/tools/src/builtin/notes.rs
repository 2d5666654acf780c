//! The storage of the built-in tools: notes in the register, in the same database as the journals.
//!
//! A change is on disk before its call is answered.

use rutter_core::id::TenantId;
use rutter_core::limits::CHANGES_MAX;
use rutter_core::port::Error;
use rutter_core::port::query::PageWalk;
use rutter_core::port::register::{Register, RegisterChange, RegisterItem, RegisterKind, RegisterWrite};
use rutter_core::time::{Millis, Timestamp};
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Answers and delivered notifications are remembered this long, for a call that is repeated with its key.
const RETENTION: Millis = Millis::hours(30 * 24);

const PAGE_SIZE: u32 = 500;

#[derive(Clone)]
pub(super) struct NoteStore {
    register: Arc<dyn Register>,
}

/// A note as it was read. A change of it expects its version.
#[derive(Clone, Debug)]
pub(super) struct StoredNote<T> {
    pub id: String,
    pub version: u64,
    pub value: T,
}

impl NoteStore {
    pub fn new(register: Arc<dyn Register>) -> NoteStore {
        NoteStore { register }
    }

    pub async fn find<T: DeserializeOwned>(
        &self,
        tenant: &TenantId,
        kind: RegisterKind,
        id: &str,
    ) -> Result<Option<StoredNote<T>>, Error> {
        self.register.find(tenant, kind, id).await?.map(|note| decode(kind, note)).transpose()
    }

    /// Reads every note of a kind, page by page.
    pub async fn for_each<T: DeserializeOwned>(
        &self,
        tenant: &TenantId,
        kind: RegisterKind,
        mut request: impl FnMut(StoredNote<T>),
    ) -> Result<(), Error> {
        let mut walk = PageWalk::new(PAGE_SIZE);
        while let Some(page) = walk.next_page() {
            for note in walk.take(self.register.list(tenant, kind, page).await?) {
                request(decode(kind, note)?);
            }
        }
        Ok(())
    }

    pub async fn count(&self, tenant: &TenantId, kind: RegisterKind) -> Result<u64, Error> {
        self.register.count(tenant, kind).await
    }

    pub async fn tenants(&self, kind: RegisterKind) -> Result<Vec<TenantId>, Error> {
        self.register.tenants(kind).await
    }

    /// All changes or none.
    pub async fn write(&self, tenant: &TenantId, at: Timestamp, changes: Vec<RegisterChange>) -> Result<(), Error> {
        self.register.write(RegisterWrite { tenant: tenant.clone(), at, changes, record: None }).await
    }

    /// Any number of changes, in several writes if necessary.
    pub async fn write_many(
        &self,
        tenant: &TenantId,
        at: Timestamp,
        changes: Vec<RegisterChange>,
    ) -> Result<(), Error> {
        for piece in changes.chunks(CHANGES_MAX) {
            self.write(tenant, at, piece.to_vec()).await?;
        }
        Ok(())
    }

    /// Removes the notes of a kind that were written longer ago than they are remembered.
    pub async fn remove_old(&self, kind: RegisterKind, now: Timestamp) -> Result<(), Error> {
        for tenant in self.tenants(kind).await? {
            let mut walk = PageWalk::new(PAGE_SIZE);
            while let Some(page) = walk.next_page() {
                let notes = walk.take(self.register.list(&tenant, kind, page).await?);
                let old = notes.iter().filter(|note| now.since(note.changed_at) >= RETENTION);
                let removals: Vec<RegisterChange> =
                    old.map(|note| RegisterChange::remove(kind, &note.id).expecting(note.version)).collect();
                if !removals.is_empty() {
                    self.write(&tenant, now, removals).await?;
                }
            }
        }
        Ok(())
    }
}

fn decode<T: DeserializeOwned>(kind: RegisterKind, note: RegisterItem) -> Result<StoredNote<T>, Error> {
    let RegisterItem { id, version, value, .. } = note;
    match T::deserialize(&*value) {
        Ok(value) => Ok(StoredNote { id, version, value }),
        Err(error) => Err(Error::Corrupt(format!("the {} {id:?} cannot be read: {error}", kind.as_str()))),
    }
}
