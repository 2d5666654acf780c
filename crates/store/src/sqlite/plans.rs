//! Plans and their revisions: the author's bytes and the pinned tools, rebuilt when a journal names them.

use super::fault;
use super::own;
use super::position::EntryPosition;
use super::session::WriteSession;
use crate::compress;
use rusqlite::{Connection, OptionalExtension, params};
use rutter_core::hash::Hash;
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::limits::PLAN_BYTES_MAX;
use rutter_core::plan::document::DocumentFormat;
use rutter_core::plan::{Plan, stored};
use rutter_core::port::Error;
use rutter_core::port::journal::{NewRevision, SaveOutcome};
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
    select plan.number, plan.revision, revision.hash
    from plan
    join revision on revision.plan = plan.number and revision.revision = plan.revision
    where plan.tenant = ?1 and plan.id = ?2";
const NEW: &str = "
    insert into plan (tenant, id, name, revision, saved_at)
    values (?1, ?2, ?3, 1, ?4)
    returning number";
const RENAME: &str = "update plan set name = ?2, revision = ?3, saved_at = ?4 where number = ?1";
const REVISION: &str = "
    insert into revision (plan, revision, hash, actor, saved_at, name, goal, tags, steps, format, source, tools)
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)";
const COUNT: &str = "update tenant set plans = plans + 1 where number = ?1";
const UNTAG: &str = "delete from plan_tag where plan = ?1";
const TAG: &str = "insert or ignore into plan_tag (tenant, tag, saved_at, plan) values (?1, ?2, ?3, ?4)";
const UNINDEX: &str = "delete from plan_text where rowid = ?1";
const INDEX: &str = "insert into plan_text (rowid, words) values (?1, ?2)";

pub(super) fn save(session: &mut WriteSession, packed: &PackedPlan) -> Result<SaveOutcome, Error> {
    let NewRevision { tenant: name, id, plan, expected, actor, at } = &packed.plan;
    let tenant = session.tenant(name)?;
    let newest: Option<(i64, u32, Vec<u8>)> = session
        .connection
        .prepare_cached(NEWEST)
        .and_then(|mut statement| {
            statement
                .query_row(params![tenant, id.as_str()], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
                .optional()
        })
        .map_err(fault::of)?;
    if let Some((_, revision, hash)) = &newest
        && *hash == plan.hash.0
    {
        return Ok(SaveOutcome::Already { revision: *revision });
    }
    let found = newest.as_ref().map_or(0, |(_, revision, _)| *revision);
    if let Some(expected) = expected.filter(|expected| *expected != found) {
        let (what, expected, found) = (format!("plan {id}"), expected.into(), found.into());
        return Err(Error::Conflict { what, expected, found });
    }
    let revision = found + 1;
    let number = match newest {
        Some((number, ..)) => {
            session.execute(RENAME, params![number, plan.name, revision, at.0])?;
            session.execute(UNTAG, [number])?;
            session.execute(UNINDEX, [text_row(tenant, number)?])?;
            number
        }
        None => {
            session.execute(COUNT, [tenant])?;
            let number = session.one(NEW, params![tenant, id.as_str(), plan.name, at.0])?;
            number.ok_or_else(|| Error::Io("the insert returned no plan number".to_owned()))?
        }
    };
    let by = session.actor(actor)?;
    let steps = plan.steps.len() as u64;
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
            steps,
            format_name(plan.format),
            packed.source,
            packed.tools
        ],
    )?;
    for tag in &plan.about.tags {
        session.execute(TAG, params![tenant, tag, at.0, number])?;
    }
    session.execute(INDEX, params![text_row(tenant, number)?, words(plan)])?;
    let (id, hash, title) = (id.clone(), plan.hash, plan.name.clone());
    let event = Event::PlanSaved { id, revision, plan: hash, name: title };
    own::record(session, tenant, name, &EventRecord { at: *at, actor: actor.clone(), event })?;
    Ok(SaveOutcome::New { revision })
}

/// The rowid of a plan in the text index: in the tenant's range, like those of entries.
fn text_row(tenant: i64, number: i64) -> Result<i64, Error> {
    Ok(EntryPosition::new(tenant, number.unsigned_abs())?.number())
}

/// The text a search finds a plan by.
fn words(plan: &Plan) -> String {
    let mut words = vec![plan.name.as_str(), &plan.goal, &plan.about.description, &plan.about.request];
    words.extend(plan.about.tags.iter().map(String::as_str));
    words.join("\n")
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
