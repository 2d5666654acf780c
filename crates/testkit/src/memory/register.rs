//! Register items with versions.

use super::find::page_size;
use super::state::{MemoryState, StoreResult};
use super::{MemoryStore, answer};
use rutter_core::id::TenantId;
use rutter_core::limits::{CHANGES_MAX, ID_CHARS_MAX, NOTE_BYTES_MAX};
use rutter_core::port::query::{ListCursor, ListPage, Pagination};
use rutter_core::port::register::{Register, RegisterChange, RegisterItem, RegisterKind, RegisterWrite};
use rutter_core::port::{Error, StoreFuture};
use std::sync::Arc;

impl Register for MemoryStore {
    fn find(&self, tenant: &TenantId, kind: RegisterKind, id: &str) -> StoreFuture<'_, Option<RegisterItem>> {
        answer(Ok(self.state().note(tenant, kind, id).cloned()))
    }

    fn list(&self, tenant: &TenantId, kind: RegisterKind, page: Pagination) -> StoreFuture<'_, ListPage<RegisterItem>> {
        answer(self.state().notes(tenant, kind, &page))
    }

    fn count(&self, tenant: &TenantId, kind: RegisterKind) -> StoreFuture<'_, u64> {
        let state = self.state();
        let notes = state.tenants.get(tenant).into_iter().flat_map(|ledger| ledger.notes.keys());
        answer(Ok(notes.filter(|(found, _)| *found == kind).count() as u64))
    }

    fn tenants(&self, kind: RegisterKind) -> StoreFuture<'_, Vec<TenantId>> {
        let state = self.state();
        let with_any = state.tenants.iter().filter(|(_, ledger)| ledger.notes.keys().any(|(found, _)| *found == kind));
        answer(Ok(with_any.map(|(name, _)| name.clone()).collect()))
    }

    fn write(&self, changes: RegisterWrite) -> StoreFuture<'_, ()> {
        answer(self.adding(|state| state.change(changes)))
    }
}

impl MemoryState {
    fn note(&self, tenant: &TenantId, kind: RegisterKind, id: &str) -> Option<&RegisterItem> {
        self.tenants.get(tenant)?.notes.get(&(kind, id.to_owned()))
    }

    fn notes(&self, tenant: &TenantId, kind: RegisterKind, page: &Pagination) -> StoreResult<ListPage<RegisterItem>> {
        let limit = page_size(page.limit)?;
        let after = match &page.after {
            Some(ListCursor(text)) => {
                let id = text.strip_prefix(kind.as_str()).and_then(|rest| rest.strip_prefix('.'));
                id.ok_or_else(|| Error::Invalid(format!("{text:?} is not a cursor")))?
            }
            None => "",
        };
        let all = self.tenants.get(tenant).into_iter().flat_map(|ledger| &ledger.notes);
        let of_kind = all.filter(|((found, id), _)| *found == kind && id.as_str() > after);
        let mut items: Vec<RegisterItem> = of_kind.map(|(_, note)| note.clone()).collect();
        let is_more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| is_more);
        let next = next.map(|last| ListCursor(format!("{}.{}", kind.as_str(), last.id)));
        Ok(ListPage { items, next })
    }

    fn change(&mut self, changes: RegisterWrite) -> StoreResult<()> {
        let RegisterWrite { tenant, at, changes, record } = changes;
        check(&changes)?;
        for change in &changes {
            let found = self.note(&tenant, change.kind, &change.id).map_or(0, |note| note.version);
            if let Some(expected) = change.expected.filter(|expected| *expected != found) {
                let what = format!("{} {}", change.kind.as_str(), change.id);
                return Err(Error::Conflict { what, expected, found });
            }
        }
        let ledger = self.ledger_mut(&tenant);
        for RegisterChange { kind, id, value, .. } in changes {
            let before = ledger.notes.remove(&(kind, id.clone()));
            if let Some(value) = value {
                let version = before.map_or(0, |note| note.version) + 1;
                let note = RegisterItem { id: id.clone(), version, changed_at: at, value: Arc::new(value) };
                ledger.notes.insert((kind, id), note);
            }
        }
        if let Some(record) = record {
            ledger.note(&tenant, &record);
        }
        Ok(())
    }
}

fn check(changes: &[RegisterChange]) -> StoreResult<()> {
    check_limit("changes_max", CHANGES_MAX, changes.len())?;
    for (at, change) in changes.iter().enumerate() {
        check_id(&change.id)?;
        let bytes = change.value.as_ref().map_or(0, |value| value.to_string().len());
        check_limit("note_bytes_max", NOTE_BYTES_MAX, bytes)?;
        if changes[..at].iter().any(|other| other.kind == change.kind && other.id == change.id) {
            return Err(Error::Invalid(format!("{:?} is changed twice at once", change.id)));
        }
    }
    Ok(())
}

pub(super) fn check_id(id: &str) -> StoreResult<()> {
    check_limit("id_chars_max", ID_CHARS_MAX, id.chars().count())?;
    match id.is_empty() || id.contains(|c: char| c.is_control() || c.is_whitespace()) {
        true => Err(Error::Invalid(format!("{id:?} is not an id"))),
        false => Ok(()),
    }
}

pub(super) fn check_limit(limit: &'static str, max: usize, found: usize) -> StoreResult<()> {
    match found > max {
        true => Err(Error::Limit { limit, max: max as u64, found: found as u64 }),
        false => Ok(()),
    }
}
