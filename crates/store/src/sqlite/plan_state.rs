//! Archiving, restoring and deleting plans, each on record in the ledger's own journal.

use super::fault;
use super::own;
use super::plans::{UNINDEX, UNTAG, text_row};
use super::session::WriteSession;
use super::upkeep::clean::merge_plan_words;
use rusqlite::{OptionalExtension, params};
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::journal::event::EventRecord;
use rutter_core::port::Error;
use rutter_core::port::journal::{PlanState, PlanStateChange, PlanStateOutcome};

const FIND: &str = "select number, name, state from plan where tenant = ?1 and id = ?2 and state <> 'deleted'";
const SET: &str = "update plan set state = ?2 where number = ?1";
const USERS: &str = "select status, count(*) from execution where plan = ?1 group by status";
const REMOVE_REVISIONS: &str = "delete from revision where plan = ?1";
const REMOVE: &str = "delete from plan where number = ?1";
const COUNT: &str = "update tenant set plans = plans - 1 where number = ?1";

pub(super) fn change(session: &mut WriteSession, change: &PlanStateChange) -> Result<PlanStateOutcome, Error> {
    let missing = || Error::NotFound { what: "plan", id: change.id.to_string() };
    let tenant = session.find_tenant(&change.tenant)?.ok_or_else(missing)?;
    let found: Option<(i64, String, String)> = session
        .connection
        .prepare_cached(FIND)
        .and_then(|mut statement| {
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            statement.query_row(params![tenant, change.id.as_str()], read).optional()
        })
        .map_err(fault::of)?;
    let (number, name, state) = found.ok_or_else(missing)?;
    if state == change.to.as_str() {
        return Ok(PlanStateOutcome { is_new: false, executions: 0 });
    }
    let mut executions = 0;
    if change.to == PlanState::Deleted {
        executions = users(session, number, change)?;
        session.execute(UNTAG, [number])?;
        session.execute(UNINDEX, [text_row(tenant, number)?])?;
        merge_plan_words(session)?;
        session.execute(COUNT, [tenant])?;
    }
    match (change.to, executions) {
        (PlanState::Deleted, 0) => remove(session, number)?,
        _ => session.execute(SET, params![number, change.to.as_str()]).map(drop)?,
    }
    let record = EventRecord { at: change.at, actor: change.actor.clone(), event: change.event(&name) };
    own::record(session, tenant, &change.tenant, &record)?;
    Ok(PlanStateOutcome { is_new: true, executions })
}

/// How many ended executions need the plan's text; refused if one has not ended.
fn users(session: &WriteSession, plan: i64, change: &PlanStateChange) -> Result<u64, Error> {
    let read = || -> rusqlite::Result<Vec<(String, u64)>> {
        let mut statement = session.connection.prepare_cached(USERS)?;
        statement.query_map([plan], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
    };
    let (mut open, mut ended) = (0, 0);
    for (status, count) in read().map_err(fault::of)? {
        match ExecutionStatus::parse(&status).is_some_and(|status| status.has_ended()) {
            true => ended += count,
            false => open += count,
        }
    }
    match open {
        0 => Ok(ended),
        _ => Err(Error::InUse { what: "plan", id: change.id.to_string(), executions: open }),
    }
}

fn remove(session: &mut WriteSession, plan: i64) -> Result<(), Error> {
    // The text must not stay in the write-ahead log either.
    session.log_holds_erased = true;
    session.execute(REMOVE_REVISIONS, [plan])?;
    session.execute(REMOVE, [plan])?;
    Ok(())
}

const UNUSED: &str = "
    select plan.number
    from plan
    where plan.tenant = ?1 and plan.state = 'deleted'
        and not exists (select 1 from execution where execution.plan = plan.number)";

/// Removes the texts of deleted plans that no execution needs any more.
pub(super) fn remove_unused(session: &mut WriteSession, tenant: i64) -> Result<(), Error> {
    let read = || -> rusqlite::Result<Vec<i64>> {
        let mut statement = session.connection.prepare_cached(UNUSED)?;
        statement.query_map([tenant], |row| row.get(0))?.collect()
    };
    let unused = read().map_err(fault::of)?;
    unused.into_iter().try_for_each(|plan| remove(session, plan))?;
    // Words of revisions that newer ones replaced.
    merge_plan_words(session)
}
