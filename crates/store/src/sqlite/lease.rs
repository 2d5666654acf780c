//! Leases: which worker drives which execution. Claiming, renewing, releasing.

use super::executions::{check_lease, find};
use super::fault;
use super::session::WriteSession;
use rusqlite::params;
use rutter_core::execution::ExecutionIdentity;
use rutter_core::id::{ExecutionId, TenantId, WorkerId};
use rutter_core::port::Error;
use rutter_core::port::journal::{ClaimRequest, Lease};
use rutter_core::time::Timestamp;

const NEW_WORKER: &str = "insert into worker (name, until) values (?1, ?2) returning number";
const RENEW: &str = "
    insert into worker (name, until)
    values (?1, ?2)
    on conflict (name) do update set until = max(until, ?2)";
const DUE: &str = "
    select execution.number, tenant.name, execution.id, execution.epoch
    from execution
    join tenant on tenant.number = execution.tenant
    left join worker on worker.number = execution.owner
    where execution.due_at <= ?1 and (worker.number is null or worker.until < ?1)
    order by execution.due_at, execution.number
    limit ?2";
pub(super) const TAKE: &str = "update execution set owner = ?2, epoch = epoch + 1 where number = ?1";
const GIVE_BACK: &str = "update execution set owner = null where number = ?1";

/// A worker that never renewed, or belongs to an earlier process, has the minimum time.
pub(super) const ALL_GONE: &str = "
    update worker
    set until = -9223372036854775808
    where until > -9223372036854775808";

/// The number of a worker. One that never renewed counts as dead.
pub(super) fn worker(session: &mut WriteSession, name: &WorkerId) -> Result<i64, Error> {
    if let Some(number) = session.find_worker(name)? {
        return Ok(number);
    }
    let number = session.one(NEW_WORKER, params![name.as_str(), i64::MIN])?;
    number.ok_or_else(|| Error::Io("the insert returned no worker number".to_owned()))
}

pub(super) fn renew(session: &WriteSession, name: &WorkerId, until: Timestamp) -> Result<(), Error> {
    session.execute(RENEW, params![name.as_str(), until.0])?;
    Ok(())
}

pub(super) fn claim(session: &mut WriteSession, claim: &ClaimRequest) -> Result<Vec<Lease>, Error> {
    let owner = worker(session, &claim.worker)?;
    let due = || -> rusqlite::Result<Vec<(i64, String, String, u64)>> {
        let mut statement = session.connection.prepare_cached(DUE)?;
        let rows = statement.query_map(params![claim.now.0, claim.limit], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })?;
        rows.collect()
    };
    let mut leases = Vec::new();
    for (number, tenant, execution, epoch) in due().map_err(fault::of)? {
        session.execute(TAKE, params![number, owner])?;
        let identity = ExecutionIdentity { tenant: TenantId::new(&tenant), execution: ExecutionId::new(&execution) };
        leases.push(Lease { identity, worker: claim.worker.clone(), epoch: epoch + 1 });
    }
    Ok(leases)
}

pub(super) fn release(session: &mut WriteSession, lease: &Lease) -> Result<(), Error> {
    let found = find(session, &lease.identity)?;
    // Already released, and not claimed since: the same request once more.
    if found.owner.is_none() && found.epoch == lease.epoch {
        return Ok(());
    }
    check_lease(session, &found, lease)?;
    session.execute(GIVE_BACK, [found.number])?;
    Ok(())
}
