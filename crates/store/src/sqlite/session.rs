//! The state of the writer thread: its connection, and a cache of row numbers.

use super::fault;
use super::key;
use super::position::{self, EntryPosition};
use rusqlite::{Connection, OptionalExtension, params};
use rutter_core::actor::{Actor, ActorKind};
use rutter_core::hash::Hash;
use rutter_core::id::{ExecutionId, TenantId, WorkerId};
use rutter_core::journal::chain::HashChain;
use rutter_core::port::Error;
use std::collections::HashMap;

/// The most actors or workers in the cache; further ones are looked up each time.
const ACTORS_MAX: usize = 10_000;

/// Everything a write job needs. The caches include the open transaction, so a rollback clears them.
#[derive(Debug)]
pub(super) struct WriteSession {
    pub connection: Connection,
    tenants: HashMap<TenantId, i64>,
    kinds: HashMap<&'static str, i64>,
    actors: HashMap<Actor, i64>,
    workers: HashMap<WorkerId, i64>,
    /// How many entries each tenant's ledger has.
    sizes: HashMap<i64, u64>,
    /// Entries written since the last report, by tenant; for the signing thread.
    pub added: HashMap<i64, u64>,
    /// Something was erased, and the WAL may still hold it.
    pub log_holds_erased: bool,
}

const TENANT: &str = "select number from tenant where name = ?1";
const NEW_TENANT: &str = "insert into tenant (name, origin, head) values (?1, ?2, ?3) returning number";
const KIND: &str = "select number from kind where name = ?1";
const NEW_KIND: &str = "insert into kind (name) values (?1) returning number";
const WORKER: &str = "select number from worker where name = ?1";
const ACTOR: &str = "select number from actor where party = ?1 and name = ?2";
const NEW_ACTOR: &str = "insert into actor (party, name) values (?1, ?2) returning number";
pub(super) const SIZE: &str = "select max(place) from entry where place between ?1 and ?2";

impl WriteSession {
    pub fn new(connection: Connection) -> WriteSession {
        WriteSession {
            connection,
            tenants: HashMap::new(),
            kinds: HashMap::new(),
            actors: HashMap::new(),
            workers: HashMap::new(),
            sizes: HashMap::new(),
            added: HashMap::new(),
            log_holds_erased: false,
        }
    }

    /// Clears the caches, which may be wrong after a rollback.
    pub fn forget(&mut self) {
        self.tenants.clear();
        self.kinds.clear();
        self.actors.clear();
        self.workers.clear();
        self.sizes.clear();
        self.added.clear();
    }

    pub fn find_tenant(&mut self, tenant: &TenantId) -> Result<Option<i64>, Error> {
        if let Some(number) = self.tenants.get(tenant) {
            return Ok(Some(*number));
        }
        let number = self.one(TENANT, [tenant.as_str()])?;
        if let Some(number) = number {
            self.tenants.insert(tenant.clone(), number);
        }
        Ok(number)
    }

    pub fn tenant(&mut self, tenant: &TenantId) -> Result<i64, Error> {
        if let Some(number) = self.find_tenant(tenant)? {
            return Ok(number);
        }
        let head = HashChain::new(tenant.clone(), ExecutionId::new(super::own::JOURNAL)).head().hash;
        let number: i64 = self.new_number(NEW_TENANT, params![tenant.as_str(), key::new_origin()?, head.0])?;
        if number > position::TENANTS_MAX {
            let (max, found) = (position::TENANTS_MAX as u64, number as u64);
            return Err(Error::Limit { limit: "tenants_max", max, found });
        }
        self.tenants.insert(tenant.clone(), number);
        Ok(number)
    }

    pub fn kind(&mut self, kind: &'static str) -> Result<i64, Error> {
        if let Some(number) = self.kinds.get(kind) {
            return Ok(*number);
        }
        let number = match self.one(KIND, [kind])? {
            Some(number) => number,
            None => self.new_number(NEW_KIND, params![kind])?,
        };
        self.kinds.insert(kind, number);
        Ok(number)
    }

    pub fn actor(&mut self, actor: &Actor) -> Result<i64, Error> {
        if let Some(number) = self.actors.get(actor) {
            return Ok(*number);
        }
        let name: &str = &actor.name;
        let number = match self.one(ACTOR, params![party(actor.party), name])? {
            Some(number) => number,
            None => self.new_number(NEW_ACTOR, params![party(actor.party), name])?,
        };
        if self.actors.len() < ACTORS_MAX {
            self.actors.insert(actor.clone(), number);
        }
        Ok(number)
    }

    pub fn find_worker(&mut self, worker: &WorkerId) -> Result<Option<i64>, Error> {
        if let Some(number) = self.workers.get(worker) {
            return Ok(Some(*number));
        }
        let number = self.one(WORKER, [worker.as_str()])?;
        if let Some(number) = number.filter(|_| self.workers.len() < ACTORS_MAX) {
            self.workers.insert(worker.clone(), number);
        }
        Ok(number)
    }

    /// The next free position in a tenant's ledger.
    pub fn next_position(&mut self, tenant: i64) -> Result<EntryPosition, Error> {
        let size = match self.sizes.get(&tenant) {
            Some(size) => *size,
            None => size_of(&self.connection, tenant).map_err(fault::of)?,
        };
        self.sizes.insert(tenant, size + 1);
        *self.added.entry(tenant).or_default() += 1;
        EntryPosition::new(tenant, size)
    }

    /// Runs a statement from the statement cache.
    pub fn execute(&self, sql: &str, params: impl rusqlite::Params) -> Result<usize, Error> {
        let mut statement = self.connection.prepare_cached(sql).map_err(fault::of)?;
        statement.execute(params).map_err(fault::of)
    }

    /// Returns the one value of the one row, if there is one.
    pub fn one<T: rusqlite::types::FromSql>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<Option<T>, Error> {
        one(&self.connection, sql, params)
    }

    fn new_number(&self, sql: &str, params: impl rusqlite::Params) -> Result<i64, Error> {
        let mut statement = self.connection.prepare_cached(sql).map_err(fault::of)?;
        statement.query_row(params, |row| row.get(0)).map_err(fault::of)
    }
}

/// The one value of the one row, if there is one.
pub(super) fn one<T: rusqlite::types::FromSql>(
    connection: &Connection,
    sql: &str,
    params: impl rusqlite::Params,
) -> Result<Option<T>, Error> {
    let mut statement = connection.prepare_cached(sql).map_err(fault::of)?;
    statement.query_row(params, |row| row.get(0)).optional().map_err(fault::of)
}

/// How many entries a tenant's ledger has.
pub(super) fn size_of(connection: &Connection, tenant: i64) -> rusqlite::Result<u64> {
    let (first, last) = EntryPosition::range(tenant);
    let mut statement = connection.prepare_cached(SIZE)?;
    let newest: Option<i64> = statement.query_row([first, last], |row| row.get(0))?;
    Ok(newest.map_or(0, |place| EntryPosition::from(place).leaf() + 1))
}

pub(super) fn party(party: ActorKind) -> &'static str {
    match party {
        ActorKind::Rutter => "rutter",
        ActorKind::Agent => "agent",
        ActorKind::Person => "person",
    }
}

pub(super) fn actor_of(party: &str, name: &str) -> Result<Actor, Error> {
    let party = match party {
        "rutter" => ActorKind::Rutter,
        "agent" => ActorKind::Agent,
        "person" => ActorKind::Person,
        other => return Err(Error::Corrupt(format!("unknown party {other:?}"))),
    };
    Ok(Actor::new(party, name))
}

/// Reads a stored hash.
pub(super) fn hash_of(bytes: &[u8]) -> Result<Hash, Error> {
    let bytes = bytes.try_into().map_err(|_| Error::Corrupt(format!("a hash has {} bytes", bytes.len())))?;
    Ok(Hash(bytes))
}
