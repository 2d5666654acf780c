//! Notes with versions.

use super::find::page_size;
use super::state::{Outcome, State};
use super::{Memory, answer};
use rutter_core::id::TenantId;
use rutter_core::limits::{CHANGES_MAX, ID_CHARS_MAX, NOTE_BYTES_MAX};
use rutter_core::port::query::{Cursor, Listing, Page};
use rutter_core::port::register::{Change, Changes, Kind, Note, Register};
use rutter_core::port::{Answer, Error};
use std::sync::Arc;

impl Register for Memory {
    fn find(&self, tenant: &TenantId, kind: Kind, id: &str) -> Answer<'_, Option<Note>> {
        answer(Ok(self.state().note(tenant, kind, id).cloned()))
    }

    fn list(&self, tenant: &TenantId, kind: Kind, page: Page) -> Answer<'_, Listing<Note>> {
        answer(self.state().notes(tenant, kind, &page))
    }

    fn write(&self, changes: Changes) -> Answer<'_, ()> {
        answer(self.adding(|state| state.change(changes)))
    }
}

impl State {
    fn note(&self, tenant: &TenantId, kind: Kind, id: &str) -> Option<&Note> {
        self.tenants.get(tenant)?.notes.get(&(kind, id.to_owned()))
    }

    fn notes(&self, tenant: &TenantId, kind: Kind, page: &Page) -> Outcome<Listing<Note>> {
        let limit = page_size(page.limit)?;
        let after = match &page.after {
            Some(Cursor(text)) => {
                let id = text.strip_prefix(kind.as_str()).and_then(|rest| rest.strip_prefix('.'));
                id.ok_or_else(|| Error::Invalid(format!("{text:?} is not a cursor")))?
            }
            None => "",
        };
        let all = self.tenants.get(tenant).into_iter().flat_map(|ledger| &ledger.notes);
        let of_kind = all.filter(|((found, id), _)| *found == kind && id.as_str() > after);
        let mut items: Vec<Note> = of_kind.map(|(_, note)| note.clone()).collect();
        let is_more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| is_more);
        let next = next.map(|last| Cursor(format!("{}.{}", kind.as_str(), last.id)));
        Ok(Listing { items, next })
    }

    fn change(&mut self, changes: Changes) -> Outcome<()> {
        let Changes { tenant, at, changes, record } = changes;
        check(&changes)?;
        for change in &changes {
            let found = self.note(&tenant, change.kind, &change.id).map_or(0, |note| note.version);
            if let Some(expected) = change.expected.filter(|expected| *expected != found) {
                let what = format!("{} {}", change.kind.as_str(), change.id);
                return Err(Error::Conflict { what, expected, found });
            }
        }
        let ledger = self.ledger_mut(&tenant);
        for Change { kind, id, value, .. } in changes {
            let before = ledger.notes.remove(&(kind, id.clone()));
            if let Some(value) = value {
                let version = before.map_or(0, |note| note.version) + 1;
                let note = Note { id: id.clone(), version, changed_at: at, value: Arc::new(value) };
                ledger.notes.insert((kind, id), note);
            }
        }
        if let Some(record) = record {
            ledger.note(&tenant, &record);
        }
        Ok(())
    }
}

fn check(changes: &[Change]) -> Outcome<()> {
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

pub(super) fn check_id(id: &str) -> Outcome<()> {
    check_limit("id_chars_max", ID_CHARS_MAX, id.chars().count())?;
    match id.is_empty() || id.contains(|c: char| c.is_control() || c.is_whitespace()) {
        true => Err(Error::Invalid(format!("{id:?} is not an id"))),
        false => Ok(()),
    }
}

pub(super) fn check_limit(limit: &'static str, max: usize, found: usize) -> Outcome<()> {
    match found > max {
        true => Err(Error::Limit { limit, max: max as u64, found: found as u64 }),
        false => Ok(()),
    }
}
