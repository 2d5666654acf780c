//! Listing plans, newest first, and reading one back.

use super::super::fault;
use super::super::plans::{PlanCache, tags_of};
use super::super::position::EntryPosition;
use super::super::session::{actor_of, hash_of};
use super::cursor::ListPaging;
use super::search::{self, SearchWords};
use super::select::{SelectStatement, span};
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params};
use rutter_core::id::{ExecutionId, PlanId};
use rutter_core::port::Error;
use rutter_core::port::journal::PlanState;
use rutter_core::port::query::{ListPage, PlanFilter, PlanSummary, SavedPlan, TimeRange};
use rutter_core::time::Timestamp;

const NAMED: &str = "
    select plan.saved_at, plan.number
    from plan indexed by plan_name
    where plan.tenant = ? and plan.name = ? and plan.state = ?";
const TAGGED: &str = "
    select plan_tag.saved_at, plan_tag.plan
    from plan_tag
    where plan_tag.tenant = ? and plan_tag.tag = ?
        and (select plan.state from plan where plan.number = plan_tag.plan) = ?";
const SAVED: &str = "
    select plan.saved_at, plan.number
    from plan indexed by plan_saved
    where plan.tenant = ? and plan.state = ?";
const WRITTEN: &str = "
    select plan.saved_at, plan.number
    from plan_text
    cross join plan on plan.number = plan_text.rowid - ?
    where plan_text match ? and plan_text.rowid between ? and ? and plan.state = ?";
const LIKE: &str = "
    and plan.name like ? escape '!'";

const SPAN: &str = "
    and plan.saved_at >= ? and (plan.saved_at, plan.number) < (?, ?)";
const TAG_SPAN: &str = "
    and plan_tag.saved_at >= ? and (plan_tag.saved_at, plan_tag.plan) < (?, ?)";
const AND_NAME: &str = "
    and plan.name = ?";
const AND_TAG: &str = "
    and exists (
        select 1
        from plan_tag as mark
        where mark.tenant = ? and mark.tag = ? and mark.saved_at = plan.saved_at and mark.plan = plan.number)";
const NEWEST: &str = "
    order by 1 desc, 2 desc
    limit ?";

pub(super) fn list(
    connection: &Connection,
    tenant: i64,
    filter: &PlanFilter,
    words: Option<&SearchWords>,
    paging: ListPaging,
) -> Result<ListPage<PlanSummary>, Error> {
    let mut keys = match words {
        Some(words) => {
            let selects = [written(tenant, filter, words, &paging), named_like(tenant, filter, words, &paging)];
            search::newest(connection, &selects, &paging)?
        }
        None => select(tenant, filter, &paging).keys(connection)?,
    };
    let next = paging.cut(&mut keys);
    let mut statement = connection.prepare_cached(NEWEST_REVISION).map_err(fault::of)?;
    let read = |number: i64| {
        let found = statement.query_row([number], |row| Ok(summary(row))).optional().map_err(fault::of)?;
        found.unwrap_or_else(|| Err(Error::Corrupt(format!("plan {number} is in an index but not stored"))))
    };
    let items = keys.iter().map(|(_, number)| *number).map(read);
    Ok(ListPage { items: items.collect::<Result<_, _>>()?, next })
}

pub(super) fn select(tenant: i64, filter: &PlanFilter, paging: &ListPaging) -> SelectStatement {
    let bounds = span(&TimeRange::default(), paging.after);
    let mark = |tag: &String| [Value::from(tenant), tag.clone().into()];
    let state = state(filter);
    let mut select = SelectStatement::default();
    match (&filter.name, &filter.tag) {
        (Some(name), tag) => {
            select.add(NAMED, [tenant.into(), name.clone().into(), state]);
            select.add(SPAN, bounds);
            if let Some(tag) = tag {
                select.add(AND_TAG, mark(tag));
            }
        }
        (None, Some(tag)) => {
            select.add(TAGGED, [tenant.into(), tag.clone().into(), state]);
            select.add(TAG_SPAN, bounds);
        }
        (None, None) => {
            select.add(SAVED, [tenant.into(), state]);
            select.add(SPAN, bounds);
        }
    }
    select.add(NEWEST, [paging.look_for().into()]);
    select
}

pub(super) fn written(tenant: i64, filter: &PlanFilter, words: &SearchWords, paging: &ListPaging) -> SelectStatement {
    let (first, last) = EntryPosition::range(tenant);
    let mut select = SelectStatement::default();
    select.add(WRITTEN, [first.into(), words.prefixes(), first.into(), last.into(), state(filter)]);
    select.add(SPAN, span(&TimeRange::default(), paging.after));
    narrow(select, tenant, filter)
}

/// Plans whose name contains every word.
pub(super) fn named_like(
    tenant: i64,
    filter: &PlanFilter,
    words: &SearchWords,
    paging: &ListPaging,
) -> SelectStatement {
    let mut select = SelectStatement::default();
    select.add(SAVED, [tenant.into(), state(filter)]);
    select.add(SPAN, span(&TimeRange::default(), paging.after));
    for pattern in words.patterns() {
        select.add(LIKE, [pattern]);
    }
    narrow(select, tenant, filter)
}

fn state(filter: &PlanFilter) -> Value {
    let state = if filter.archived { PlanState::Archived } else { PlanState::Active };
    Value::Text(state.as_str().to_owned())
}

fn narrow(mut select: SelectStatement, tenant: i64, filter: &PlanFilter) -> SelectStatement {
    if let Some(name) = &filter.name {
        select.add(AND_NAME, [name.clone().into()]);
    }
    if let Some(tag) = &filter.tag {
        select.add(AND_TAG, [tenant.into(), tag.clone().into()]);
    }
    select
}

pub(super) const NEWEST_REVISION: &str = "
    select plan.id, revision.revision, revision.hash, revision.name, revision.goal, revision.tags, revision.steps,
        actor.party, actor.name, revision.saved_at, plan.state, revision.for_execution
    from plan
    join revision on revision.plan = plan.number and revision.revision = plan.revision
    join actor on actor.number = revision.actor
    where plan.number = ?1";
pub(super) const ONE_REVISION: &str = "
    select plan.id, revision.revision, revision.hash, revision.name, revision.goal, revision.tags, revision.steps,
        actor.party, actor.name, revision.saved_at, plan.state, revision.for_execution
    from plan
    join revision on revision.plan = plan.number and revision.revision = coalesce(?3, plan.revision)
    join actor on actor.number = revision.actor
    where plan.tenant = ?1 and plan.id = ?2 and plan.state <> 'deleted'";

pub(super) const EXECUTED_REVISION: &str = "
    select plan.id, revision.revision, revision.hash, revision.name, revision.goal, revision.tags, revision.steps,
        actor.party, actor.name, revision.saved_at, plan.state, revision.for_execution
    from execution
    join plan on plan.number = execution.plan
    join revision on revision.plan = plan.number and revision.revision = ?3
    join actor on actor.number = revision.actor
    where execution.tenant = ?1 and execution.id = ?2";

pub(super) fn find(
    connection: &Connection,
    tenant: i64,
    id: &PlanId,
    revision: Option<u32>,
    plans: &PlanCache,
) -> Result<Option<SavedPlan>, Error> {
    one(connection, ONE_REVISION, params![tenant, id.as_str(), revision], plans)
}

/// A revision of the plan of an execution.
pub(super) fn of_execution(
    connection: &Connection,
    tenant: i64,
    execution: &ExecutionId,
    revision: u32,
    plans: &PlanCache,
) -> Result<Option<SavedPlan>, Error> {
    one(connection, EXECUTED_REVISION, params![tenant, execution.as_str(), revision], plans)
}

fn one(
    connection: &Connection,
    sql: &str,
    key: &[&dyn rusqlite::ToSql],
    plans: &PlanCache,
) -> Result<Option<SavedPlan>, Error> {
    let mut statement = connection.prepare_cached(sql).map_err(fault::of)?;
    let found = statement.query_row(key, |row| Ok(summary(row))).optional().map_err(fault::of)?;
    let Some(summary) = found.transpose()? else { return Ok(None) };
    let plan = plans.by_hash(connection, summary.hash)?;
    Ok(Some(SavedPlan { summary, plan }))
}

fn summary(row: &Row<'_>) -> Result<PlanSummary, Error> {
    let get = || -> rusqlite::Result<_> {
        let (id, hash, tags): (String, Vec<u8>, String) = (row.get(0)?, row.get(2)?, row.get(5)?);
        let (party, actor): (String, String) = (row.get(7)?, row.get(8)?);
        Ok((id, hash, tags, party, actor))
    };
    let (id, hash, tags, party, actor) = get().map_err(fault::of)?;
    Ok(PlanSummary {
        id: PlanId::new(&id),
        revision: row.get(1).map_err(fault::of)?,
        hash: hash_of(&hash)?,
        name: row.get(3).map_err(fault::of)?,
        goal: row.get(4).map_err(fault::of)?,
        tags: tags_of(&tags)?,
        steps: row.get(6).map_err(fault::of)?,
        actor: actor_of(&party, &actor)?,
        saved_at: Timestamp(row.get(9).map_err(fault::of)?),
        is_archived: row.get::<_, String>(10).map_err(fault::of)? == PlanState::Archived.as_str(),
        is_for_execution: row.get(11).map_err(fault::of)?,
    })
}
