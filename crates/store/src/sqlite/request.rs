//! Idempotency keys: each is stored with the digest of its request and the execution it was for.

use super::fault;
use super::session::{WriteSession, hash_of};
use rusqlite::{Connection, OptionalExtension, params};
use rutter_core::id::ExecutionId;
use rutter_core::limits::REQUEST_KEY_BYTES_MAX;
use rutter_core::port::Error;
use rutter_core::port::journal::IdempotentRequest;
use rutter_core::port::query::KnownRequest;
use rutter_core::time::Timestamp;

const FIND: &str = "select digest, execution from request where tenant = ?1 and key = ?2";
const KEEP: &str = "insert into request (tenant, key, digest, execution, at) values (?1, ?2, ?3, ?4, ?5)";

const FORGET: &str = "delete from request where tenant = ?1 and key = ?2 and execution = ?3";

pub(super) fn check(request: &IdempotentRequest) -> Result<(), Error> {
    let is_printable = request.key.bytes().all(|byte| byte.is_ascii_graphic());
    match request.key.len() {
        0 => Err(Error::Invalid("a request key must not be empty".to_owned())),
        found if found > REQUEST_KEY_BYTES_MAX => {
            let (max, found) = (REQUEST_KEY_BYTES_MAX as u64, found as u64);
            Err(Error::Limit { limit: "request_key_bytes_max", max, found })
        }
        _ if !is_printable => Err(Error::Invalid("a request key has visible ASCII characters only".to_owned())),
        _ => Ok(()),
    }
}

/// Returns the execution of an earlier identical request, if there was one.
pub(super) fn find(
    session: &WriteSession,
    tenant: i64,
    request: &IdempotentRequest,
) -> Result<Option<ExecutionId>, Error> {
    match known(&session.connection, tenant, &request.key)? {
        None => Ok(None),
        Some(found) if found.digest == request.digest => Ok(Some(found.execution)),
        Some(_) => Err(Error::KeyReused { key: request.key.clone() }),
    }
}

/// Returns the request a key was used for.
pub(super) fn known(connection: &Connection, tenant: i64, key: &str) -> Result<Option<KnownRequest>, Error> {
    let mut statement = connection.prepare_cached(FIND).map_err(fault::of)?;
    let found: Option<(Vec<u8>, String)> = statement
        .query_row(params![tenant, key], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()
        .map_err(fault::of)?;
    let Some((digest, execution)) = found else { return Ok(None) };
    Ok(Some(KnownRequest { digest: hash_of(&digest)?, execution: ExecutionId::new(&execution) }))
}

pub(super) fn keep(
    session: &WriteSession,
    tenant: i64,
    request: &IdempotentRequest,
    execution: &ExecutionId,
    at: Timestamp,
) -> Result<(), Error> {
    session.execute(KEEP, params![tenant, request.key, request.digest.0, execution.as_str(), at.0])?;
    Ok(())
}

pub(super) fn forget(session: &WriteSession, tenant: i64, key: &str, execution: &ExecutionId) -> Result<(), Error> {
    session.execute(FORGET, params![tenant, key, execution.as_str()])?;
    Ok(())
}
