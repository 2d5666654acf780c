//! Plans and their revisions: the author's bytes and the pinned tools, rebuilt when a journal names them.

use super::fault;
use super::own;
use super::position::EntryPosition;
use super::session::{WriteSession, hash_of};
use crate::compress;
use rusqlite::{Connection, OptionalExtension, params};
use rutter_core::hash::Hash;
use rutter_core::id::PlanId;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::limits::PLAN_BYTES_MAX;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Plan, stored};
use rutter_core::port::Error;
use rutter_core::port::journal::{NewRevision, PlanState, RevisionScope, SaveOutcome};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The most plans in the cache; a full cache is cleared.
const CACHED_MAX: usize = 512;
/// The pinned tools of one plan may be far larger than the plan.
const TOOLS_BYTES_MAX: usize = 64 << 20;

/// A plan ready to be written.
#[derive(Debug)]
pub(super) struct PackedPlan {
    plan: NewRevision,
    source: Vec<u8>,
    tools: Vec<u8>,
    tags: String,
}

pub(super) fn pack(plan: NewRevision) -> PackedPlan {
    let source = compress::pack(&plan.plan.source);
    let tools = compress::pack(&stored::pinned(&plan.plan.tools));
    let tags = serde_json::to_string(&plan.plan.about.tags).expect("tags are strings");
    PackedPlan { plan, source, tools, tags }
}

const NEWEST: &str = "
    select plan.number, plan.revision, revision.hash, plan.state,
        (select max(every.revision) from revision as every where every.plan = plan.number)
    from plan
    join revision on revision.plan = plan.number and revision.revision = plan.revision
    where plan.tenant = ?1 and plan.id = ?2";
const NEW: &str = "
    insert into plan (tenant, id, name, revision, saved_at)
    values (?1, ?2, ?3, 1, ?4)
    returning number";
const RENAME: &str = "update plan set name = ?2, revision = ?3, saved_at = ?4 where number = ?1";
const REVISION: &str = "
    insert into revision (plan, revision, hash, actor, saved_at, name, goal, tags, steps, format, source, tools,
        for_execution)
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
const SAME: &str = "select max(revision) from revision where plan = ?1 and hash = ?2";
const COUNT: &str = "update tenant set plans = plans + 1 where number = ?1";
pub(super) const UNTAG: &str = "delete from plan_tag where plan = ?1";
const TAG: &str = "insert or ignore into plan_tag (tenant, tag, saved_at, plan) values (?1, ?2, ?3, ?4)";
pub(super) const UNINDEX: &str = "delete from plan_text where rowid = ?1";
const INDEX: &str = "insert into plan_text (rowid, words) values (?1, ?2)";

/// A plan that is there already.
struct FoundPlan {
    number: i64,
    newest: u32,
    hash: Vec<u8>,
    is_deleted: bool,
    /// The highest number of a revision, also of those made for one execution.
    last: u32,
}

fn find(session: &WriteSession, tenant: i64, id: &PlanId) -> Result<Option<FoundPlan>, Error> {
    let read = |row: &rusqlite::Row<'_>| {
        let state: String = row.get(3)?;
        Ok(FoundPlan {
            number: row.get(0)?,
            newest: row.get(1)?,
            hash: row.get(2)?,
            is_deleted: state == PlanState::Deleted.as_str(),
            last: row.get(4)?,
        })
    };
    let found = session.connection.prepare_cached(NEWEST);
    found.and_then(|mut newest| newest.query_row(params![tenant, id.as_str()], read).optional()).map_err(fault::of)
}

pub(super) fn save(session: &mut WriteSession, packed: &PackedPlan) -> Result<SaveOutcome, Error> {
    let NewRevision { tenant: name, id, plan, expected, scope, at, .. } = &packed.plan;
    let tenant = session.tenant(name)?;
    let found = find(session, tenant, id)?;
    let is_missing = match scope {
        // The id of a deleted plan is not given again.
        RevisionScope::Plan => found.as_ref().is_some_and(|found| found.is_deleted),
        RevisionScope::Execution => found.is_none(),
    };
    if is_missing {
        return Err(Error::NotFound { what: "plan", id: id.to_string() });
    }
    if let Some(found) = &found
        && let Some(revision) = same(session, found, packed)?
    {
        return Ok(SaveOutcome::Already { revision });
    }
    let newest = found.as_ref().map_or(0, |found| found.newest);
    if let Some(expected) = expected.filter(|expected| *expected != newest) {
        let (what, expected, found) = (format!("plan {id}"), expected.into(), newest.into());
        return Err(Error::Conflict { what, expected, found });
    }
    let revision = found.as_ref().map_or(0, |found| found.last) + 1;
    let number = match (found, scope) {
        (Some(found), RevisionScope::Execution) => found.number,
        (Some(FoundPlan { number, .. }), RevisionScope::Plan) => {
            session.execute(RENAME, params![number, plan.name, revision, at.0])?;
            session.execute(UNTAG, [number])?;
            session.execute(UNINDEX, [text_row(tenant, number)?])?;
            number
        }
        (None, _) => {
            session.execute(COUNT, [tenant])?;
            let number = session.one(NEW, params![tenant, id.as_str(), plan.name, at.0])?;
            number.ok_or_else(|| Error::Io("the insert returned no plan number".to_owned()))?
        }
    };
    write_revision(session, packed, number, revision)?;
    if *scope == RevisionScope::Plan {
        for tag in &plan.about.tags {
            session.execute(TAG, params![tenant, tag, at.0, number])?;
        }
        session.execute(INDEX, params![text_row(tenant, number)?, words(plan)])?;
    }
    let event = Event::PlanSaved { id: id.clone(), revision, plan: plan.hash, name: plan.name.clone() };
    let actor = packed.plan.actor.clone();
    own::record(session, tenant, name, &EventRecord { at: *at, actor, event })?;
    Ok(SaveOutcome::New { revision })
}

/// The revision that makes another one needless: the newest if it is the same, for one execution any.
fn same(session: &WriteSession, found: &FoundPlan, packed: &PackedPlan) -> Result<Option<u32>, Error> {
    let hash = packed.plan.plan.hash.0;
    match packed.plan.scope {
        _ if *found.hash == hash => Ok(Some(found.newest)),
        RevisionScope::Plan => Ok(None),
        RevisionScope::Execution => Ok(session.one::<Option<u32>>(SAME, params![found.number, hash])?.flatten()),
    }
}

fn write_revision(session: &mut WriteSession, packed: &PackedPlan, number: i64, revision: u32) -> Result<(), Error> {
    let NewRevision { plan, scope, actor, at, .. } = &packed.plan;
    let by = session.actor(actor)?;
    session.execute(
        REVISION,
        params![
            number,
            revision,
            plan.hash.0,
            by,
            at.0,
            plan.name,
            plan.goal,
            packed.tags,
            plan.steps.len() as u64,
            format_name(plan.format),
            packed.source,
            packed.tools,
            *scope == RevisionScope::Execution,
        ],
    )?;
    Ok(())
}

/// The rowid of a plan in the text index: in the tenant's range, like those of entries.
pub(super) fn text_row(tenant: i64, number: i64) -> Result<i64, Error> {
    Ok(EntryPosition::new(tenant, number.unsigned_abs())?.number())
}

/// The text a search finds a plan by.
fn words(plan: &Plan) -> String {
    let mut words = vec![plan.name.as_str(), &plan.goal, &plan.about.description, &plan.about.request];
    words.extend(plan.about.tags.iter().map(String::as_str));
    words.extend(plan.steps.iter().flat_map(|step| step.calls()).map(|call| call.tool.as_str()));
    words.join("\n")
}

const PLANS: &str = "
    select plan.tenant, plan.number, revision.hash
    from plan
    join revision on revision.plan = plan.number and revision.revision = plan.revision";

/// Writes the words of every plan again. Earlier versions left the names of tools out.
pub(super) fn reindex(connection: &Connection) -> Result<(), Error> {
    let plans = PlanCache::default();
    let rows = || -> rusqlite::Result<Vec<(i64, i64, Vec<u8>)>> {
        let mut statement = connection.prepare(PLANS)?;
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?.collect()
    };
    for (tenant, number, hash) in rows().map_err(fault::of)? {
        // A plan that cannot be read keeps the words it has.
        let Ok(plan) = hash_of(&hash).and_then(|hash| plans.by_hash(connection, hash)) else { continue };
        let row = text_row(tenant, number)?;
        connection.execute(UNINDEX, [row]).map_err(fault::of)?;
        connection.execute(INDEX, params![row, words(&plan)]).map_err(fault::of)?;
    }
    Ok(())
}

pub(super) fn tags_of(text: &str) -> Result<Vec<String>, Error> {
    serde_json::from_str(text).map_err(|_| Error::Corrupt("a plan's tags cannot be read".to_owned()))
}

fn format_name(format: DocumentFormat) -> &'static str {
    match format {
        DocumentFormat::Json => "json",
        DocumentFormat::Yaml => "yaml",
    }
}

/// A cache of rebuilt plans; rebuilding one takes milliseconds.
#[derive(Debug, Default)]
pub(super) struct PlanCache {
    cached: Mutex<HashMap<Hash, Arc<Plan>>>,
}

const BY_HASH: &str = "select format, source, tools from revision where hash = ?1 limit 1";

impl PlanCache {
    pub fn by_hash(&self, connection: &Connection, hash: Hash) -> Result<Arc<Plan>, Error> {
        let cached = || self.cached.lock().expect("no thread panics while holding the cache");
        if let Some(plan) = cached().get(&hash) {
            return Ok(Arc::clone(plan));
        }
        let found: Option<(String, Vec<u8>, Vec<u8>)> = connection
            .prepare_cached(BY_HASH)
            .and_then(|mut statement| {
                statement.query_row([hash.0], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).optional()
            })
            .map_err(fault::of)?;
        let missing = || Error::Corrupt(format!("plan {} of a journal is not stored", hash.short()));
        let (format, source, tools) = found.ok_or_else(missing)?;
        let damaged = |error: &dyn std::fmt::Display| Error::Corrupt(format!("plan {}: {error}", hash.short()));
        let source = compress::unpack(&source, PLAN_BYTES_MAX).map_err(|error| damaged(&error))?;
        let tools = compress::unpack(&tools, TOOLS_BYTES_MAX).map_err(|error| damaged(&error))?;
        let format = if format == "yaml" { DocumentFormat::Yaml } else { DocumentFormat::Json };
        let plan = stored::rebuild(hash, &source, format, &tools).map_err(|error| damaged(&error))?;
        let plan = Arc::new(plan);
        let mut cached = cached();
        if cached.len() >= CACHED_MAX {
            cached.clear();
        }
        cached.insert(hash, Arc::clone(&plan));
        Ok(plan)
    }
}
