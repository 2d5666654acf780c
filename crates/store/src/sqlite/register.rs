//! Notes: small things that are remembered by kind and id, each with a version that counts its changes.

use super::query::{nothing, number_of, size_of_page};
use super::session::Session;
use super::{Store, fault, own, refused};
use rusqlite::{Connection, OptionalExtension, params};
use rutter_core::id::TenantId;
use rutter_core::limits::{CHANGES_MAX, ID_CHARS_MAX, NOTE_BYTES_MAX};
use rutter_core::port::query::{Cursor, Listing, Page};
use rutter_core::port::register::{Changes, Kind, Note, Register};
use rutter_core::port::{Answer, Error};
use rutter_core::time::Timestamp;
use std::collections::HashSet;
use std::sync::Arc;

pub(super) const FIND: &str = "
    select id, version, changed_at, value
    from note
    where tenant = ?1 and kind = ?2 and id = ?3";
pub(super) const LIST: &str = "
    select id, version, changed_at, value
    from note
    where tenant = ?1 and kind = ?2 and id > ?3
    order by id
    limit ?4";
pub(super) const VERSION: &str = "select version from note where tenant = ?1 and kind = ?2 and id = ?3";
const PUT: &str = "
    insert into note (tenant, kind, id, version, changed_at, value)
    values (?1, ?2, ?3, 1, ?4, ?5)
    on conflict (tenant, kind, id)
    do update set version = version + 1, changed_at = excluded.changed_at, value = excluded.value";
const REMOVE: &str = "delete from note where tenant = ?1 and kind = ?2 and id = ?3";
const OWN_SEQ: &str = "select seq from tenant where number = ?1";

impl Register for Store {
    fn find(&self, tenant: &TenantId, kind: Kind, id: &str) -> Answer<'_, Option<Note>> {
        let (tenant, id) = (tenant.clone(), id.to_owned());
        self.read(move |connection| match number_of(connection, &tenant)? {
            Some(tenant) => find(connection, tenant, kind, &id),
            None => Ok(None),
        })
    }

    fn list(&self, tenant: &TenantId, kind: Kind, page: Page) -> Answer<'_, Listing<Note>> {
        let tenant = tenant.clone();
        let wanted = size_of_page(page.limit).and_then(|limit| Ok((limit, last_seen(kind, &page)?)));
        match wanted {
            Ok((limit, after)) => self.read(move |connection| match number_of(connection, &tenant)? {
                Some(tenant) => list(connection, tenant, kind, limit, &after),
                None => Ok(nothing()),
            }),
            Err(error) => refused(error),
        }
    }

    // It waits for its turn: who changes a note records what has happened already.
    fn write(&self, changes: Changes) -> Answer<'_, ()> {
        match prepare(changes) {
            Ok((changes, texts)) => {
                let mut before = None;
                self.write(true, move |session| write(session, &changes, &texts, &mut before))
            }
            Err(error) => refused(error),
        }
    }
}

/// Refuses an id that is empty, too long or cannot be seen.
pub(super) fn check_id(id: &str) -> Result<(), Error> {
    let (max, found) = (ID_CHARS_MAX as u64, id.chars().count() as u64);
    match found {
        0 => Err(Error::Invalid("an id is not empty".to_owned())),
        _ if found > max => Err(Error::Limit { limit: "id_chars_max", max, found }),
        _ if id.contains(|c: char| c.is_control() || c.is_whitespace()) => {
            Err(Error::Invalid(format!("expected an id of visible characters, not {id:?}")))
        }
        _ => Ok(()),
    }
}

/// Checks the changes and returns what will be stored for each; `None` removes.
fn prepare(changes: Changes) -> Result<(Changes, Vec<Option<String>>), Error> {
    let (max, found) = (CHANGES_MAX as u64, changes.changes.len() as u64);
    if found > max {
        return Err(Error::Limit { limit: "changes_max", max, found });
    }
    let (mut seen, mut texts) = (HashSet::new(), Vec::new());
    for change in &changes.changes {
        check_id(&change.id)?;
        if !seen.insert((change.kind, change.id.as_str())) {
            let (kind, id) = (change.kind.as_str(), &change.id);
            return Err(Error::Invalid(format!("{kind} {id:?} is changed twice at once")));
        }
        let text = change.value.as_ref().map(|value| value.to_string());
        let (max, found) = (NOTE_BYTES_MAX as u64, text.as_ref().map_or(0, |text| text.len() as u64));
        if found > max {
            return Err(Error::Limit { limit: "note_bytes_max", max, found });
        }
        texts.push(text);
    }
    Ok((changes, texts))
}

/// What an attempt found before it changed anything.
#[derive(Debug)]
struct Before {
    versions: Vec<u64>,
    own_seq: u64,
}

/// Changes all or nothing. `before` is what an earlier attempt found, whose commit may have been lost or not.
fn write(
    session: &mut Session,
    changes: &Changes,
    texts: &[Option<String>],
    before: &mut Option<Before>,
) -> Result<(), Error> {
    let Changes { tenant: name, at, changes, record } = changes;
    let tenant = session.tenant(name)?;
    let versions = changes.iter().map(|change| {
        let key = params![tenant, change.kind.as_str(), change.id];
        Ok(session.one(VERSION, key)?.unwrap_or(0))
    });
    let versions = versions.collect::<Result<Vec<u64>, Error>>()?;
    let own_seq = session.one(OWN_SEQ, [tenant])?.unwrap_or(0);
    let now = Before { versions, own_seq };
    if before.as_ref().is_some_and(|before| has_happened(before, &now, record.is_some(), texts)) {
        return Ok(());
    }
    // Everything is looked at before anything is changed: a refusal does not undo the transaction under way.
    for (change, found) in changes.iter().zip(&now.versions) {
        if let Some(expected) = change.expected.filter(|expected| expected != found) {
            let what = format!("{} {}", change.kind.as_str(), change.id);
            return Err(Error::Conflict { what, expected, found: *found });
        }
    }
    *before = Some(now);
    if let Some(record) = record {
        own::record(session, tenant, name, record)?;
    }
    for (change, text) in changes.iter().zip(texts) {
        let (kind, id) = (change.kind.as_str(), &change.id);
        match text {
            Some(text) => session.execute(PUT, params![tenant, kind, id, at.0, text])?,
            None => session.execute(REMOVE, params![tenant, kind, id])?,
        };
    }
    Ok(())
}

fn has_happened(before: &Before, now: &Before, is_recorded: bool, texts: &[Option<String>]) -> bool {
    if is_recorded {
        return now.own_seq > before.own_seq;
    }
    let versions = before.versions.iter().zip(&now.versions).zip(texts);
    versions.into_iter().any(|((before, now), text)| match text {
        Some(_) => now > before,
        None => *before > 0 && *now == 0,
    })
}

fn find(connection: &Connection, tenant: i64, kind: Kind, id: &str) -> Result<Option<Note>, Error> {
    let mut statement = connection.prepare_cached(FIND).map_err(fault::of)?;
    let found = statement.query_row(params![tenant, kind.as_str(), id], row_of).optional();
    found.map_err(fault::of)?.map(note_of).transpose()
}

fn list(
    connection: &Connection,
    tenant: i64,
    kind: Kind,
    limit: usize,
    after: &str,
) -> Result<Listing<Note>, Error> {
    let rows = || -> rusqlite::Result<Vec<Row>> {
        let mut statement = connection.prepare_cached(LIST)?;
        let rows = statement.query_map(params![tenant, kind.as_str(), after, limit as i64 + 1], row_of)?;
        rows.collect()
    };
    let mut items =
        rows().map_err(fault::of)?.into_iter().map(note_of).collect::<Result<Vec<Note>, Error>>()?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|last| Cursor(format!("{}.{}", kind.as_str(), last.id)));
    Ok(Listing { items, next })
}

/// The id behind which the list goes on. An empty one comes before all others.
fn last_seen(kind: Kind, page: &Page) -> Result<String, Error> {
    let Some(Cursor(text)) = &page.after else { return Ok(String::new()) };
    let id = text.strip_prefix(kind.as_str()).and_then(|rest| rest.strip_prefix('.'));
    let id = id.filter(|id| check_id(id).is_ok());
    id.map(str::to_owned).ok_or_else(|| Error::Invalid(format!("{text:?} is not a cursor of this list")))
}

type Row = (String, u64, i64, String);

fn row_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<Row> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

fn note_of((id, version, changed_at, value): Row) -> Result<Note, Error> {
    let damaged = |error| Error::Corrupt(format!("the note {id:?} is not JSON: {error}"));
    let value = Arc::new(serde_json::from_str(&value).map_err(damaged)?);
    Ok(Note { id, version, changed_at: Timestamp(changed_at), value })
}

#[cfg(test)]
mod tests;
