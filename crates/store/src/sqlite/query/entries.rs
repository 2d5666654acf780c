//! Listing entries: of one journal in its order, of all journals newest first.

use super::super::payloads;
use super::super::plans::PlanCache;
use super::super::position::EntryPosition;
use super::super::session::party;
use super::super::{fault, load, own};
use super::cursor::{CursorKey, ListKind, ListPaging};
use super::search::{self, SearchWords};
use super::select::{SelectStatement, list_of, span};
use super::{nothing, one};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params};
use rutter_core::id::{ExecutionId, TenantId};
use rutter_core::journal::codec;
use rutter_core::journal::label::KINDS;
use rutter_core::limits::PAYLOAD_BYTES_MAX;
use rutter_core::port::Error;
use rutter_core::port::query::{EntryFilter, EntrySummary, ListPage, Pagination};

/// The most payload bytes on one page, enough for the largest payload; a page that would exceed it is shorter.
const PAGE_BYTES_MAX: u64 = PAYLOAD_BYTES_MAX as u64;
/// The schema has no index of kinds and actors up to these numbers.
const FREQUENT_KIND: i64 = 2;
const FREQUENT_ACTOR: i64 = 1;

/// A validated filter.
#[derive(Debug)]
pub(super) struct EntrySelection {
    pub filter: EntryFilter,
    pub words: Option<SearchWords>,
    pub paging: ListPaging,
}

impl EntrySelection {
    pub fn read(filter: EntryFilter, page: &Pagination) -> Result<EntrySelection, Error> {
        if let Some(unknown) = filter.kinds.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
            return Err(Error::Invalid(format!("there is no event type {unknown:?}")));
        }
        let words = search::read(filter.text.as_deref())?;
        let list = match (&filter.execution, &words) {
            (Some(_), _) => ListKind::Journal,
            (None, None) => ListKind::Entries,
            (None, Some(_)) => ListKind::FoundEntries,
        };
        Ok(EntrySelection { paging: ListPaging::read(list, page)?, words, filter })
    }
}

pub(super) const EXECUTION: &str = "select number from execution where tenant = ?1 and id = ?2";
pub(super) const KIND: &str = "select number from kind where name = ?1";
pub(super) const ACTOR: &str = "select number from actor where party = ?1 and name = ?2";

/// The names in a filter as numbers.
#[derive(Debug, Default)]
pub(super) struct FilterNumbers {
    pub tenant: i64,
    pub journal: Option<i64>,
    pub kinds: Vec<i64>,
    pub actor: Option<i64>,
}

impl FilterNumbers {
    /// `None` when no entry can match one of the names.
    fn find(connection: &Connection, tenant: i64, filter: &EntryFilter) -> Result<Option<FilterNumbers>, Error> {
        let mut numbers = FilterNumbers { tenant, ..FilterNumbers::default() };
        if let Some(execution) = &filter.execution {
            numbers.journal = match execution.as_str() {
                own::JOURNAL => Some(-tenant),
                id => one(connection, EXECUTION, params![tenant, id])?,
            };
            if numbers.journal.is_none() {
                return Ok(None);
            }
        }
        for kind in &filter.kinds {
            numbers.kinds.extend(one::<i64>(connection, KIND, [kind])?);
        }
        numbers.kinds.sort_unstable();
        numbers.kinds.dedup();
        if let Some(actor) = &filter.actor {
            let name: &str = &actor.name;
            numbers.actor = one(connection, ACTOR, params![party(actor.party), name])?;
        }
        let unknown = (!filter.kinds.is_empty() && numbers.kinds.is_empty())
            || (filter.actor.is_some() && numbers.actor.is_none());
        Ok((!unknown).then_some(numbers))
    }
}

pub(super) fn list(
    connection: &Connection,
    tenant: (i64, &TenantId),
    wanted: &EntrySelection,
    plans: &PlanCache,
) -> Result<ListPage<EntrySummary>, Error> {
    let (number, name) = tenant;
    let paging = &wanted.paging;
    let Some(numbers) = FilterNumbers::find(connection, number, &wanted.filter)? else {
        return Ok(nothing());
    };
    let select = match numbers.journal {
        Some(journal) => {
            let mut part = (i64::MIN, i64::MAX);
            if wanted.words.is_some() {
                match part_of(connection, journal, paging.after)? {
                    Some(found) => part = found,
                    None => return Ok(nothing()),
                }
            }
            select_journal(&numbers, journal, wanted, part)
        }
        None => select(&numbers, wanted),
    };
    let mut keys = select.keys(connection)?;
    let mut next = paging.cut(&mut keys);
    let mut items = Vec::new();
    let mut bytes = 0;
    for (nth, key) in keys.iter().enumerate() {
        bytes +=
            payloads::of_entry(connection, EntryPosition::from(key.1))?.iter().map(|stored| stored.bytes).sum::<u64>();
        if bytes > PAGE_BYTES_MAX && nth > 0 {
            next = Some(paging.at(keys[nth - 1]));
            break;
        }
        items.push(read(connection, name, *key, plans)?);
    }
    Ok(ListPage { items, next })
}

pub(super) const PART: &str = "
    select min(place), max(place)
    from (
        select place from (select place from entry where execution = ?1 and seq > ?2 order by seq limit 1)
        union all
        select place from (select place from entry where execution = ?1 and seq > ?2 order by seq desc limit 1))";

/// The first and last positions of the rest of a journal.
fn part_of(connection: &Connection, journal: i64, after: Option<CursorKey>) -> Result<Option<CursorKey>, Error> {
    let seq = after.map_or(0, |(seq, _)| seq);
    let mut statement = connection.prepare_cached(PART).map_err(fault::of)?;
    let read = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?));
    let (first, last) = statement.query_row([journal, seq], read).map_err(fault::of)?;
    Ok(first.zip(last))
}

const JOURNAL: &str = "
    select entry.seq, entry.place
    from entry indexed by entry_seq
    where entry.execution = ? and entry.seq > ?";
const MATCHES_IN_JOURNAL: &str = "
    select entry.seq, entry.place
    from entry_text
    cross join entry on entry.place = entry_text.rowid
    where entry_text match ? and entry_text.rowid between ? and ? and entry.execution = ?";
const MATCHES: &str = "
    select entry.at, entry.place
    from entry_text
    cross join entry on entry.place = entry_text.rowid
    where entry_text match ? and entry_text.rowid >= ? and entry_text.rowid < ?";
const KINDS_OF: &str = "
    select entry.at, entry.place
    from entry indexed by entry_kind
    where entry.tenant = ? and entry.kind = ? and entry.kind > 2";
const BY_ACTOR: &str = "
    select entry.at, entry.place
    from entry indexed by entry_actor
    where entry.tenant = ? and entry.actor = ? and entry.actor > 1";
const BY_TIME: &str = "
    select entry.at, entry.place
    from entry indexed by entry_at
    where entry.tenant = ?";

const SPAN: &str = "
    and entry.at >= ? and (entry.at, entry.place) < (?, ?)";
const AND_KIND: &str = "
    and entry.kind in (select value from json_each(?))";
const AND_ACTOR: &str = "
    and entry.actor = ?";
const OR: &str = "
    union all";
const NEWEST: &str = "
    order by 1 desc, 2 desc
    limit ?";
const IN_ORDER: &str = "
    order by entry.seq
    limit ?";
const BY_PLACE: &str = "
    order by entry_text.rowid
    limit ?";
const BY_PLACE_NEWEST: &str = "
    order by entry_text.rowid desc
    limit ?";

/// Selects from one journal. With search words, `part` bounds the positions.
pub(super) fn select_journal(
    numbers: &FilterNumbers,
    journal: i64,
    wanted: &EntrySelection,
    part: CursorKey,
) -> SelectStatement {
    let EntrySelection { filter, words, paging } = wanted;
    let after = paging.after.map_or(0, |(seq, _)| seq);
    let mut select = SelectStatement::default();
    match words {
        None => select.add(JOURNAL, [journal.into(), after.into()]),
        Some(words) => {
            select.add(MATCHES_IN_JOURNAL, [words.value(), part.0.into(), part.1.into(), journal.into()]);
        }
    }
    select.add(SPAN, span(&filter.at, None));
    select.append(&conditions(numbers, true, true));
    select.add(if words.is_none() { IN_ORDER } else { BY_PLACE }, [paging.look_for().into()]);
    select
}

/// Selects from all journals of a tenant: search words lead, then rare kinds or actors, then time.
pub(super) fn select(numbers: &FilterNumbers, wanted: &EntrySelection) -> SelectStatement {
    let EntrySelection { filter, words, paging } = wanted;
    let tenant = Value::from(numbers.tenant);
    let mut select = SelectStatement::default();
    if let Some(words) = words {
        let (first, last) = EntryPosition::range(numbers.tenant);
        let before = paging.after.map_or(last + 1, |(_, place)| place.clamp(first, last));
        select.add(MATCHES, [words.value(), first.into(), before.into()]);
        select.add(SPAN, span(&filter.at, None));
        select.append(&conditions(numbers, true, true));
        select.add(BY_PLACE_NEWEST, [paging.look_for().into()]);
        return select;
    }
    let bounds = span(&filter.at, paging.after);
    let rare_kinds = numbers.kinds.iter().all(|kind| *kind > FREQUENT_KIND);
    if rare_kinds && !numbers.kinds.is_empty() {
        for (nth, kind) in numbers.kinds.iter().enumerate() {
            if nth > 0 {
                select.add(OR, []);
            }
            select.add(KINDS_OF, [tenant.clone(), (*kind).into()]);
            select.add(SPAN, bounds.clone());
            select.append(&conditions(numbers, false, true));
        }
    } else if let Some(actor) = numbers.actor.filter(|actor| *actor > FREQUENT_ACTOR) {
        select.add(BY_ACTOR, [tenant, actor.into()]);
        select.add(SPAN, bounds);
        select.append(&conditions(numbers, true, false));
    } else {
        select.add(BY_TIME, [tenant]);
        select.add(SPAN, bounds);
        select.append(&conditions(numbers, true, true));
    }
    select.add(NEWEST, [paging.look_for().into()]);
    select
}

fn conditions(numbers: &FilterNumbers, kind: bool, actor: bool) -> SelectStatement {
    let mut conditions = SelectStatement::default();
    if kind && !numbers.kinds.is_empty() {
        conditions.add(AND_KIND, [list_of(&numbers.kinds)]);
    }
    if let Some(actor) = numbers.actor.filter(|_| actor) {
        conditions.add(AND_ACTOR, [actor.into()]);
    }
    conditions
}

pub(super) const ENTRY: &str = "select place, seq, hash, bytes from entry where place = ?1";

fn read(
    connection: &Connection,
    tenant: &TenantId,
    (_, place): CursorKey,
    plans: &PlanCache,
) -> Result<EntrySummary, Error> {
    let mut statement = connection.prepare_cached(ENTRY).map_err(fault::of)?;
    let found = statement.query_row([place], |row| Ok(load::entry_of(row))).optional().map_err(fault::of)?;
    let missing = || Error::Corrupt(format!("entry {place} is in an index but not stored"));
    let (place, entry) = found.ok_or_else(missing)??;
    let damaged = |why: &dyn std::fmt::Display| Error::Corrupt(format!("entry {}: {why}", entry.seq));
    let stored = codec::decode(&entry.bytes).map_err(|error| damaged(&error))?;
    if stored.tenant != *tenant || stored.seq != entry.seq {
        return Err(damaged(&"its bytes are those of another entry"));
    }
    let execution: ExecutionId = stored.execution.clone();
    let record = load::open(connection, place, stored, plans)?;
    Ok(EntrySummary { execution, seq: entry.seq, hash: entry.hash, record })
}
