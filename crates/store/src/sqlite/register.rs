//! The register: small JSON values by kind and id, each with a version that counts its changes.

use super::query::{nothing, number_of, size_of_page};
use super::session::WriteSession;
use super::{SqliteStore, fault, own, refused};
use rusqlite::{Connection, OptionalExtension, params};
use rutter_core::id::TenantId;
use rutter_core::limits::{CHANGES_MAX, ID_CHARS_MAX, NOTE_BYTES_MAX};
use rutter_core::port::query::{ListCursor, ListPage, Pagination};
use rutter_core::port::register::{Register, RegisterItem, RegisterKind, RegisterWrite};
use rutter_core::port::{Error, StoreFuture};
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
pub(super) const COUNT: &str = "select count(*) from note where tenant = ?1 and kind = ?2";
pub(super) const NEXT_TENANT: &str = "
    select tenant.number, tenant.name
    from note
    join tenant on tenant.number = note.tenant
    where note.kind = ?1 and note.tenant > ?2
    order by note.tenant
    limit 1";
pub(super) const VERSION: &str = "select version from note where tenant = ?1 and kind = ?2 and id = ?3";
const PUT: &str = "
    insert into note (tenant, kind, id, version, changed_at, value)
    values (?1, ?2, ?3, 1, ?4, ?5)
    on conflict (tenant, kind, id)
    do update set version = version + 1, changed_at = excluded.changed_at, value = excluded.value";
const REMOVE: &str = "delete from note where tenant = ?1 and kind = ?2 and id = ?3";
const OWN_SEQ: &str = "select seq from tenant where number = ?1";

impl Register for SqliteStore {
    fn find(&self, tenant: &TenantId, kind: RegisterKind, id: &str) -> StoreFuture<'_, Option<RegisterItem>> {
        let (tenant, id) = (tenant.clone(), id.to_owned());
        self.read(move |connection| match number_of(connection, &tenant)? {
            Some(tenant) => find(connection, tenant, kind, &id),
            None => Ok(None),
        })
    }

    fn list(&self, tenant: &TenantId, kind: RegisterKind, page: Pagination) -> StoreFuture<'_, ListPage<RegisterItem>> {
        let tenant = tenant.clone();
        self.read(move |connection| page_of(connection, &tenant, kind, &page))
    }

    fn count(&self, tenant: &TenantId, kind: RegisterKind) -> StoreFuture<'_, u64> {
        let tenant = tenant.clone();
        self.read(move |connection| match number_of(connection, &tenant)? {
            Some(tenant) => count(connection, tenant, kind).map_err(fault::of),
            None => Ok(0),
        })
    }

    fn tenants(&self, kind: RegisterKind) -> StoreFuture<'_, Vec<TenantId>> {
        self.read(move |connection| tenants(connection, kind).map_err(fault::of))
    }

    fn write(&self, changes: RegisterWrite) -> StoreFuture<'_, ()> {
        match prepare(changes) {
            Ok((changes, texts)) => {
                let mut before = None;
                let is_outcome = !is_new_work(&changes);
                self.write(is_outcome, move |session| write(session, &changes, &texts, &mut before))
            }
            Err(error) => refused(error),
        }
    }
}

/// Whether it is refused while the disk is nearly full. A new timer or memory can wait for space; every other change
/// records something that already happened, or removes.
fn is_new_work(changes: &RegisterWrite) -> bool {
    let adds = |kind: RegisterKind| matches!(kind, RegisterKind::Timer | RegisterKind::Memory);
    changes.changes.iter().any(|change| adds(change.kind) && change.value.is_some())
}

/// Refuses an id that is empty, too long or has invisible characters.
pub(super) fn check_id(id: &str) -> Result<(), Error> {
    let (max, found) = (ID_CHARS_MAX as u64, id.chars().count() as u64);
    match found {
        0 => Err(Error::Invalid("an id must not be empty".to_owned())),
        _ if found > max => Err(Error::Limit { limit: "id_chars_max", max, found }),
        _ if id.contains(|c: char| c.is_control() || c.is_whitespace()) => {
            Err(Error::Invalid(format!("expected an id of visible characters, not {id:?}")))
        }
        _ => Ok(()),
    }
}

/// Checks the changes and returns the text to store for each; `None` removes.
fn prepare(changes: RegisterWrite) -> Result<(RegisterWrite, Vec<Option<String>>), Error> {
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

/// The state that an attempt found before it changed anything.
#[derive(Debug)]
struct RegisterBaseline {
    versions: Vec<u64>,
    own_seq: u64,
}

/// Changes all or nothing. `before` is what an earlier attempt, whose commit is uncertain, found.
fn write(
    session: &mut WriteSession,
    changes: &RegisterWrite,
    texts: &[Option<String>],
    before: &mut Option<RegisterBaseline>,
) -> Result<(), Error> {
    let RegisterWrite { tenant: name, at, changes, record } = changes;
    let tenant = session.tenant(name)?;
    let versions = changes.iter().map(|change| {
        let key = params![tenant, change.kind.as_str(), change.id];
        Ok(session.one(VERSION, key)?.unwrap_or(0))
    });
    let versions = versions.collect::<Result<Vec<u64>, Error>>()?;
    let own_seq = session.one(OWN_SEQ, [tenant])?.unwrap_or(0);
    let now = RegisterBaseline { versions, own_seq };
    if before.as_ref().is_some_and(|before| has_happened(before, &now, record.is_some(), texts)) {
        return Ok(());
    }
    // Everything is checked before anything is changed: a refusal does not roll back the shared transaction.
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

fn has_happened(
    before: &RegisterBaseline,
    now: &RegisterBaseline,
    is_recorded: bool,
    texts: &[Option<String>],
) -> bool {
    if is_recorded {
        return now.own_seq > before.own_seq;
    }
    let versions = before.versions.iter().zip(&now.versions).zip(texts);
    versions.into_iter().any(|((before, now), text)| match text {
        Some(_) => now > before,
        None => *before > 0 && *now == 0,
    })
}

fn find(connection: &Connection, tenant: i64, kind: RegisterKind, id: &str) -> Result<Option<RegisterItem>, Error> {
    let mut statement = connection.prepare_cached(FIND).map_err(fault::of)?;
    let found = statement.query_row(params![tenant, kind.as_str(), id], row_of).optional();
    found.map_err(fault::of)?.map(note_of).transpose()
}

fn count(connection: &Connection, tenant: i64, kind: RegisterKind) -> rusqlite::Result<u64> {
    let mut statement = connection.prepare_cached(COUNT)?;
    statement.query_row(params![tenant, kind.as_str()], |row| row.get(0))
}

fn tenants(connection: &Connection, kind: RegisterKind) -> rusqlite::Result<Vec<TenantId>> {
    let mut statement = connection.prepare_cached(NEXT_TENANT)?;
    let (mut last, mut tenants) = (0, Vec::new());
    loop {
        let next = statement.query_row(params![kind.as_str(), last], |row| Ok((row.get(0)?, row.get(1)?)));
        let next: Option<(i64, String)> = next.optional()?;
        let Some((number, name)) = next else { break };
        tenants.push(TenantId::new(&name));
        last = number;
    }
    tenants.sort();
    Ok(tenants)
}

/// One page of the items of a kind.
pub(super) fn page_of(
    connection: &mut Connection,
    tenant: &TenantId,
    kind: RegisterKind,
    page: &Pagination,
) -> Result<ListPage<RegisterItem>, Error> {
    let (limit, after) = (size_of_page(page.limit)?, last_seen(kind, page)?);
    match number_of(connection, tenant)? {
        Some(tenant) => list(connection, tenant, kind, limit, &after),
        None => Ok(nothing()),
    }
}

fn list(
    connection: &Connection,
    tenant: i64,
    kind: RegisterKind,
    limit: usize,
    after: &str,
) -> Result<ListPage<RegisterItem>, Error> {
    let rows = || -> rusqlite::Result<Vec<RegisterRow>> {
        let mut statement = connection.prepare_cached(LIST)?;
        let rows = statement.query_map(params![tenant, kind.as_str(), after, limit as i64 + 1], row_of)?;
        rows.collect()
    };
    let mut items =
        rows().map_err(fault::of)?.into_iter().map(note_of).collect::<Result<Vec<RegisterItem>, Error>>()?;
    let more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| more).map(|last| ListCursor(format!("{}.{}", kind.as_str(), last.id)));
    Ok(ListPage { items, next })
}

/// The id after which the list continues; the empty one sorts before all others.
fn last_seen(kind: RegisterKind, page: &Pagination) -> Result<String, Error> {
    let Some(ListCursor(text)) = &page.after else { return Ok(String::new()) };
    let id = text.strip_prefix(kind.as_str()).and_then(|rest| rest.strip_prefix('.'));
    let id = id.filter(|id| check_id(id).is_ok());
    id.map(str::to_owned).ok_or_else(|| Error::Invalid(format!("{text:?} is not a cursor of this list")))
}

type RegisterRow = (String, u64, i64, String);

fn row_of(row: &rusqlite::Row<'_>) -> rusqlite::Result<RegisterRow> {
    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
}

fn note_of((id, version, changed_at, value): RegisterRow) -> Result<RegisterItem, Error> {
    let damaged = |error| Error::Corrupt(format!("the note {id:?} is not JSON: {error}"));
    let value = Arc::new(serde_json::from_str(&value).map_err(damaged)?);
    Ok(RegisterItem { id, version, changed_at: Timestamp(changed_at), value })
}

#[cfg(test)]
mod tests;
