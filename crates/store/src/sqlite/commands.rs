//! The command queue of an execution: commands are stored until its worker has decided them.

use super::executions::find;
use super::fault;
use super::request;
use super::session::{WriteSession, actor_of};
use rusqlite::{Connection, params};
use rutter_core::limits::{COMMAND_BYTES_MAX, COMMANDS_MAX};
use rutter_core::port::Error;
use rutter_core::port::journal::{EnqueueOutcome, NewCommand, StoredCommand};
use rutter_core::time::Timestamp;

const WAITING: &str = "select commands from execution where number = ?1";
const NEXT: &str = "select coalesce((select seq from sqlite_sequence where name = 'command'), 0) + 1";
const THERE: &str = "select 1 from command where number = ?1";
const INSERT: &str = "insert into command (number, execution, actor, at, bytes) values (?1, ?2, ?3, ?4, ?5)";
const WAKE: &str = "
    update execution
    set commands = commands + 1, due_at = min(coalesce(due_at, ?2), ?2)
    where number = ?1";
const ALL: &str = "
    select command.number, actor.party, actor.name, command.at, command.bytes
    from command
    join actor on actor.number = command.actor
    where command.execution = ?1
    order by command.number";

pub(super) fn check(command: &NewCommand) -> Result<(), Error> {
    let (max, found) = (COMMAND_BYTES_MAX as u64, command.bytes.len() as u64);
    if found > max {
        return Err(Error::Limit { limit: "command_bytes_max", max, found });
    }
    command.request.as_ref().map_or(Ok(()), request::check)
}

/// Stores a command. `number` is the one that an earlier attempt, whose commit is uncertain, gave it, so that it is
/// stored once.
pub(super) fn enqueue(
    session: &mut WriteSession,
    stored_command: &NewCommand,
    number: &mut Option<u64>,
) -> Result<EnqueueOutcome, Error> {
    let found = find(session, &stored_command.identity)?;
    if let Some(number) = *number
        && session.one::<i64>(THERE, [number])?.is_some()
    {
        return Ok(EnqueueOutcome::New { command: number });
    }
    if let Some(request) = &stored_command.request
        && request::find(session, found.tenant, request)?.is_some()
    {
        return Ok(EnqueueOutcome::Already);
    }
    let waiting: u64 = session.one(WAITING, [found.number])?.unwrap_or(0);
    if waiting >= COMMANDS_MAX as u64 {
        return Err(Error::Limit { limit: "commands_max", max: COMMANDS_MAX as u64, found: waiting + 1 });
    }
    let next: u64 = session.one(NEXT, [])?.unwrap_or(1);
    *number = Some(next);
    let actor = session.actor(&stored_command.actor)?;
    session.execute(INSERT, params![next, found.number, actor, stored_command.at.0, stored_command.bytes])?;
    session.execute(WAKE, params![found.number, stored_command.at.0])?;
    if let Some(request) = &stored_command.request {
        request::keep(session, found.tenant, request, &stored_command.identity.execution, stored_command.at)?;
    }
    Ok(EnqueueOutcome::New { command: next })
}

/// The pending commands of an execution, oldest first.
pub(super) fn of(connection: &Connection, execution: i64) -> Result<Vec<StoredCommand>, Error> {
    let mut statement = connection.prepare_cached(ALL).map_err(fault::of)?;
    let mut rows = statement.query([execution]).map_err(fault::of)?;
    let mut commands = Vec::new();
    while let Some(row) = rows.next().map_err(fault::of)? {
        let get = || -> rusqlite::Result<_> {
            let (party, name): (String, String) = (row.get(1)?, row.get(2)?);
            Ok((row.get(0)?, party, name, row.get(3)?, row.get(4)?))
        };
        let (number, party, name, at, bytes) = get().map_err(fault::of)?;
        commands.push(StoredCommand { number, actor: actor_of(&party, &name)?, at: Timestamp(at), bytes });
    }
    Ok(commands)
}
