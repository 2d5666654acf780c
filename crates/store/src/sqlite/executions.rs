//! Opening executions and appending to them: the fence, the head, the entries and the row in one transaction.

use super::entries::{self, PackedEntry};
use super::fault;
use super::own;
use super::request;
use super::session::{WriteSession, hash_of};
use rusqlite::{OptionalExtension, params};
use rutter_core::execution::ExecutionIdentity;
use rutter_core::execution::row::ExecutionProjection;
use rutter_core::execution::view::ExecutionStatus;
use rutter_core::hash::Hash;
use rutter_core::id::{PlanId, WorkerId};
use rutter_core::journal::chain::{ChainHead, HashChain};
use rutter_core::plan::Driver;
use rutter_core::port::Error;
use rutter_core::port::journal::{
    AppendOutcome, AppendRequest, ExecutionOpening, IdempotentRequest, Lease, OpenOutcome,
};
use rutter_core::time::Timestamp;

/// The stored state that is checked before a write.
#[derive(Debug)]
pub(super) struct FoundExecution {
    pub number: i64,
    pub tenant: i64,
    pub head: ChainHead,
    pub epoch: u64,
    /// The number of the worker that holds the lease.
    pub owner: Option<i64>,
    status: String,
    questions: u32,
    due_at: Option<i64>,
    cause: Option<String>,
    ending: Option<String>,
    deviations: Option<String>,
    pending_commands: u64,
    /// The number of its plan, and the hash of the revision it carries out now.
    plan: i64,
    hash: Vec<u8>,
}

const FIND: &str = "
    select number, seq, head, epoch, owner, status, questions, due_at, commands, plan, hash, cause, ending,
        deviations
    from execution
    where tenant = ?1 and id = ?2";

/// Finds an execution; one of another tenant is reported as not found.
pub(super) fn find(session: &mut WriteSession, identity: &ExecutionIdentity) -> Result<FoundExecution, Error> {
    let unknown = || Error::NotFound { what: "execution", id: identity.execution.to_string() };
    let tenant = session.find_tenant(&identity.tenant)?.ok_or_else(unknown)?;
    let mut statement = session.connection.prepare_cached(FIND).map_err(fault::of)?;
    let read = |row: &rusqlite::Row<'_>| -> rusqlite::Result<_> {
        let head: Vec<u8> = row.get(2)?;
        Ok((
            head,
            FoundExecution {
                number: row.get(0)?,
                tenant,
                head: ChainHead { seq: row.get(1)?, hash: Hash::ZERO },
                epoch: row.get(3)?,
                owner: row.get(4)?,
                status: row.get(5)?,
                questions: row.get(6)?,
                due_at: row.get(7)?,
                pending_commands: row.get(8)?,
                plan: row.get(9)?,
                hash: row.get(10)?,
                cause: row.get(11)?,
                ending: row.get(12)?,
                deviations: row.get(13)?,
            },
        ))
    };
    let found = statement.query_row(params![tenant, identity.execution.as_str()], read).optional();
    let (head, mut found) = found.map_err(fault::of)?.ok_or_else(unknown)?;
    found.head.hash = hash_of(&head)?;
    Ok(found)
}

/// Refuses a lease that is not the newest, or was released.
pub(super) fn check_lease(session: &mut WriteSession, found: &FoundExecution, lease: &Lease) -> Result<(), Error> {
    let worker = session.find_worker(&lease.worker)?;
    match worker.is_some() && found.owner == worker && found.epoch == lease.epoch {
        true => Ok(()),
        false => Err(Error::Fenced { execution: lease.identity.execution.clone(), epoch: found.epoch }),
    }
}

/// An opening with its entries packed.
#[derive(Debug)]
pub(super) struct PackedOpening {
    identity: ExecutionIdentity,
    plan: PlanId,
    request: Option<IdempotentRequest>,
    worker: Option<WorkerId>,
    entries: Vec<PackedEntry>,
    row: ExecutionProjection,
}

impl PackedOpening {
    pub fn prepare(opening: ExecutionOpening) -> Result<PackedOpening, Error> {
        let ExecutionOpening { identity, plan, request, worker, entries, row } = opening;
        let head = HashChain::new(identity.tenant.clone(), identity.execution.clone()).head();
        let entries = entries::pack(head, entries)?;
        if entries.first().is_none_or(|first| first.sealed.kind != "execution_opened") {
            return Err(Error::Invalid("a journal begins with execution_opened".to_owned()));
        }
        if identity.execution.as_str() == own::JOURNAL {
            return Err(Error::Invalid(format!("{} is the ledger's own journal", own::JOURNAL)));
        }
        request.as_ref().map_or(Ok(()), request::check)?;
        Ok(PackedOpening { identity, plan, request, worker, entries, row })
    }
}

const PLAN: &str = "
    select plan.number
    from plan
    join revision on revision.plan = plan.number
    where plan.tenant = ?1 and plan.id = ?2 and plan.state = 'active' and revision.hash = ?3";
const OPEN: &str = "
    insert into execution (tenant, id, plan, status, driver, hash, revision, settled, total, questions, opened_at,
        started_at, last_at, due_at, seq, head, epoch, owner, cause, completed, ending, deviations)
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22)
    returning number";
const TAG: &str = "
    insert or ignore into execution_tag (tenant, tag, opened_at, execution)
    select ?1, tag.value, ?2, ?3
    from revision
    cross join json_each(revision.tags) as tag
    where revision.hash = ?5 and revision.plan = ?4";

pub(super) fn open(session: &mut WriteSession, new: &PackedOpening) -> Result<OpenOutcome, Error> {
    let PackedOpening { identity, plan, request, worker, entries, row } = new;
    let no_plan = || Error::NotFound { what: "plan", id: plan.to_string() };
    let tenant = session.find_tenant(&identity.tenant)?.ok_or_else(no_plan)?;
    if let Some(request) = request
        && let Some(execution) = request::find(session, tenant, request)?
    {
        return Ok(OpenOutcome::Already { execution });
    }
    match find(session, identity) {
        Ok(found) if entries::are_there(session, found.number, entries)? => {
            return Ok(OpenOutcome::Already { execution: identity.execution.clone() });
        }
        Ok(found) => {
            let what = format!("execution {}", identity.execution);
            return Err(Error::Conflict { what, expected: 0, found: found.head.seq });
        }
        Err(Error::NotFound { .. }) => {}
        Err(error) => return Err(error),
    }
    let plan: i64 = session.one(PLAN, params![tenant, plan.as_str(), row.plan.0])?.ok_or_else(no_plan)?;
    let owner = worker.as_ref().map(|worker| super::lease::worker(session, worker)).transpose()?;
    let last = entries.last().expect("a journal begins with execution_opened");
    let epoch = u64::from(owner.is_some());
    let number: i64 = session
        .one(
            OPEN,
            params![
                tenant,
                identity.execution.as_str(),
                plan,
                row.status.as_str(),
                row.driver.as_str(),
                row.plan.0,
                row.revision,
                row.settled,
                row.total,
                row.questions,
                row.opened_at.0,
                row.started_at.map(|at| at.0),
                row.last_at.0,
                row.due_at.map(|at| at.0),
                last.sealed.entry.seq,
                last.sealed.entry.hash.0,
                epoch,
                owner,
                row.cause,
                row.completed,
                row.ending,
                stored_deviations(row),
            ],
        )?
        .ok_or_else(|| Error::Io("the insert returned no execution number".to_owned()))?;
    session.execute(TAG, params![tenant, row.opened_at.0, number, plan, row.plan.0])?;
    entries::write(session, tenant, number, entries)?;
    count(session, tenant, row.status.as_str(), 1)?;
    if let Some(request) = request {
        request::keep(session, tenant, request, &identity.execution, row.opened_at)?;
    }
    let lease = worker.clone().map(|worker| Lease { identity: identity.clone(), worker, epoch });
    Ok(OpenOutcome::New { lease })
}

/// An append with its entries packed.
#[derive(Debug)]
pub(super) struct PackedAppend {
    lease: Lease,
    expected: ChainHead,
    entries: Vec<PackedEntry>,
    row: ExecutionProjection,
    consumed: Vec<u64>,
    forgotten: Vec<String>,
}

impl PackedAppend {
    pub fn prepare(append: AppendRequest) -> Result<PackedAppend, Error> {
        let AppendRequest { lease, expected, entries, row, decided_commands: consumed, refused_keys: forgotten } =
            append;
        let entries = entries::pack(expected, entries)?;
        Ok(PackedAppend { lease, expected, entries, row, consumed, forgotten })
    }
}

const HAS_REVISION: &str = "select 1 from revision where plan = ?1 and hash = ?2 limit 1";
/// Columns that change with every step are in no index of an open execution; the rest is set only when it changes.
const MOVE_ON: &str = "
    update execution
    set driver = ?2, hash = ?3, revision = ?4, settled = ?5, total = ?6, started_at = ?7, last_at = ?8, seq = ?9,
        head = ?10, completed = ?11
    where number = ?1";
const CHANGE: &str = "
    update execution
    set status = ?2, questions = ?3, due_at = ?4, cause = ?5, ending = ?6, deviations = ?7
    where number = ?1";
const CONSUME: &str = "delete from command where number = ?1 and execution = ?2";
const RECOUNT: &str = "
    update execution
    set commands = (select count(*) from command where execution = ?1),
        due_at = (select min(at) from (
            select at from command where execution = ?1 union all select ?2 where ?2 is not null))
    where number = ?1";

pub(super) fn append(session: &mut WriteSession, more: &PackedAppend) -> Result<AppendOutcome, Error> {
    let PackedAppend { lease, expected, entries, row, consumed, forgotten } = more;
    let found = find(session, &lease.identity)?;
    check_lease(session, &found, lease)?;
    if found.head != *expected {
        if entries::are_there(session, found.number, entries)? {
            return Ok(AppendOutcome::Already);
        }
        let what = format!("the journal of {}", lease.identity.execution);
        return Err(Error::Conflict { what, expected: expected.seq, found: found.head.seq });
    }
    let replanned = found.hash != row.plan.0;
    if replanned && session.one::<i64>(HAS_REVISION, params![found.plan, row.plan.0])?.is_none() {
        // Without its plan the execution could never be loaded again.
        return Err(Error::NotFound { what: "plan", id: row.plan.short() });
    }
    entries::write(session, found.tenant, found.number, entries)?;
    let head = entries
        .last()
        .map_or(found.head, |last| ChainHead { seq: last.sealed.entry.seq, hash: last.sealed.entry.hash });
    move_on(session, &found, row, head)?;
    // A number out of range belongs to no command.
    for command in consumed.iter().filter_map(|number| i64::try_from(*number).ok()) {
        session.execute(CONSUME, params![command, found.number])?;
    }
    for key in forgotten {
        request::forget(session, found.tenant, key, &lease.identity.execution)?;
    }
    if found.pending_commands > 0 {
        session.execute(RECOUNT, params![found.number, row.due_at.map(|at| at.0)])?;
    }
    if found.status != row.status.as_str() {
        count(session, found.tenant, &found.status, -1)?;
        count(session, found.tenant, row.status.as_str(), 1)?;
    }
    Ok(AppendOutcome::New)
}

fn move_on(
    session: &WriteSession,
    found: &FoundExecution,
    row: &ExecutionProjection,
    head: ChainHead,
) -> Result<(), Error> {
    let due_at = row.due_at.map(|at| at.0);
    session.execute(
        MOVE_ON,
        params![
            found.number,
            row.driver.as_str(),
            row.plan.0,
            row.revision,
            row.settled,
            row.total,
            row.started_at.map(|at| at.0),
            row.last_at.0,
            head.seq,
            head.hash.0,
            row.completed,
        ],
    )?;
    let status = row.status.as_str();
    let is_same = (found.status.as_str(), found.questions, found.due_at) == (status, row.questions, due_at);
    let deviations = stored_deviations(row);
    if !is_same || (&found.cause, &found.ending, &found.deviations) != (&row.cause, &row.ending, &deviations) {
        let (cause, ending) = (&row.cause, &row.ending);
        session.execute(CHANGE, params![found.number, status, row.questions, due_at, cause, ending, deviations])?;
    }
    Ok(())
}

fn stored_deviations(row: &ExecutionProjection) -> Option<String> {
    let counts = row.deviations.as_ref()?;
    Some(serde_json::to_string(counts).expect("kinds of deviations are texts, and their counts are numbers"))
}

const COUNT: &str = "
    insert into total (tenant, status, count)
    values (?1, ?2, ?3)
    on conflict (tenant, status) do update set count = count + ?3";

/// Maintains the totals, so that no query has to count.
pub(super) fn count(session: &WriteSession, tenant: i64, status: &str, by: i64) -> Result<(), Error> {
    session.execute(COUNT, params![tenant, status, by])?;
    Ok(())
}

/// The columns of a row, in the order in which [`row_of`] reads them.
pub(super) const ROW: &str = "execution.status, execution.driver, execution.hash, execution.revision, \
    execution.settled, execution.total, execution.questions, execution.opened_at, execution.started_at, \
    execution.last_at, execution.due_at, execution.cause, execution.completed, execution.ending, \
    execution.deviations";

/// Reads the columns of [`ROW`], of which the first is column `at`.
pub(super) fn row_of(row: &rusqlite::Row<'_>, at: usize) -> Result<ExecutionProjection, Error> {
    let get = || -> rusqlite::Result<_> {
        let (status, driver): (String, String) = (row.get(at)?, row.get(at + 1)?);
        let hash: Vec<u8> = row.get(at + 2)?;
        let counts: [u32; 4] = [row.get(at + 3)?, row.get(at + 4)?, row.get(at + 5)?, row.get(at + 6)?];
        let times: (i64, Option<i64>, i64, Option<i64>) =
            (row.get(at + 7)?, row.get(at + 8)?, row.get(at + 9)?, row.get(at + 10)?);
        let told: (Option<String>, Option<u32>, Option<String>, Option<String>) =
            (row.get(at + 11)?, row.get(at + 12)?, row.get(at + 13)?, row.get(at + 14)?);
        Ok((status, driver, hash, counts, times, told))
    };
    let (status, driver, hash, counts, times, (cause, completed, ending, deviations)) = get().map_err(fault::of)?;
    let (opened_at, started_at, last_at, due_at) = times;
    let [revision, settled, total, questions] = counts;
    let corrupt = |what: &str| Error::Corrupt(format!("an execution's {what} is invalid"));
    Ok(ExecutionProjection {
        status: ExecutionStatus::parse(&status).ok_or_else(|| corrupt("status"))?,
        driver: match driver.as_str() {
            "server" => Driver::Server,
            "agent" => Driver::Agent,
            _ => return Err(corrupt("driver")),
        },
        plan: hash_of(&hash)?,
        revision,
        settled,
        total,
        questions,
        opened_at: Timestamp(opened_at),
        started_at: started_at.map(Timestamp),
        last_at: Timestamp(last_at),
        due_at: due_at.map(Timestamp),
        cause,
        completed,
        ending,
        deviations: deviations
            .map(|counts| serde_json::from_str(&counts).map_err(|_| corrupt("deviations")))
            .transpose()?,
    })
}
