//! The inbox of an execution: what others ask of it, until its worker answers.

use super::executions::find;
use super::fault;
use super::request;
use super::session::{Session, actor_of};
use rusqlite::{Connection, params};
use rutter_core::limits::{LETTER_BYTES_MAX, LETTERS_MAX};
use rutter_core::port::Error;
use rutter_core::port::journal::{Letter, NewLetter, Posted};
use rutter_core::time::Timestamp;

const WAITING: &str = "select letters from execution where number = ?1";
const NEXT: &str = "select coalesce((select seq from sqlite_sequence where name = 'letter'), 0) + 1";
const THERE: &str = "select 1 from letter where number = ?1";
const POST: &str = "insert into letter (number, execution, actor, at, bytes) values (?1, ?2, ?3, ?4, ?5)";
const WAKE: &str = "
    update execution
    set letters = letters + 1, due_at = min(coalesce(due_at, ?2), ?2)
    where number = ?1";
const ALL: &str = "
    select letter.number, actor.party, actor.name, letter.at, letter.bytes
    from letter
    join actor on actor.number = letter.actor
    where letter.execution = ?1
    order by letter.number";

pub(super) fn check(letter: &NewLetter) -> Result<(), Error> {
    let (max, found) = (LETTER_BYTES_MAX as u64, letter.bytes.len() as u64);
    if found > max {
        return Err(Error::Limit { limit: "letter_bytes_max", max, found });
    }
    letter.request.as_ref().map_or(Ok(()), request::check)
}

/// Posts a letter. `number` is what an earlier attempt in a lost transaction gave it: it is not posted twice.
pub(super) fn post(
    session: &mut Session,
    letter: &NewLetter,
    number: &mut Option<u64>,
) -> Result<Posted, Error> {
    let found = find(session, &letter.identity)?;
    if let Some(number) = *number
        && session.one::<i64>(THERE, [number])?.is_some()
    {
        return Ok(Posted::New { letter: number });
    }
    if let Some(request) = &letter.request
        && request::find(session, found.tenant, request)?.is_some()
    {
        return Ok(Posted::Already);
    }
    let waiting: u64 = session.one(WAITING, [found.number])?.unwrap_or(0);
    if waiting >= LETTERS_MAX as u64 {
        return Err(Error::Limit { limit: "letters_max", max: LETTERS_MAX as u64, found: waiting + 1 });
    }
    let next: u64 = session.one(NEXT, [])?.unwrap_or(1);
    *number = Some(next);
    let actor = session.actor(&letter.actor)?;
    session.execute(POST, params![next, found.number, actor, letter.at.0, letter.bytes])?;
    session.execute(WAKE, params![found.number, letter.at.0])?;
    if let Some(request) = &letter.request {
        request::keep(session, found.tenant, request, &letter.identity.execution, letter.at)?;
    }
    Ok(Posted::New { letter: next })
}

/// The letters that wait for an execution, oldest first.
pub(super) fn of(connection: &Connection, execution: i64) -> Result<Vec<Letter>, Error> {
    let mut statement = connection.prepare_cached(ALL).map_err(fault::of)?;
    let mut rows = statement.query([execution]).map_err(fault::of)?;
    let mut letters = Vec::new();
    while let Some(row) = rows.next().map_err(fault::of)? {
        let get = || -> rusqlite::Result<_> {
            let (party, name): (String, String) = (row.get(1)?, row.get(2)?);
            Ok((row.get(0)?, party, name, row.get(3)?, row.get(4)?))
        };
        let (number, party, name, at, bytes) = get().map_err(fault::of)?;
        letters.push(Letter { number, actor: actor_of(&party, &name)?, at: Timestamp(at), bytes });
    }
    Ok(letters)
}
