//! Erasing the payloads of one execution.

use super::super::executions::find;
use super::super::session::Session;
use super::super::{own, payloads};
use rutter_core::journal::event::{Event, Record};
use rutter_core::port::Error;
use rutter_core::port::upkeep::{Erased, Erasure};

/// Erases, and says so. `before` is what an earlier attempt did, whose commit may have been lost or not: when
/// nothing is left to do, it was not lost.
pub(super) fn erase(
    session: &mut Session,
    erasure: &Erasure,
    before: &mut Option<Erased>,
) -> Result<Erased, Error> {
    let Erasure { identity, entries, actor, at, reason } = erasure;
    let found = find(session, identity)?;
    session.log_holds_erased = true;
    let kept = payloads::of_execution(&session.connection, found.number, entries.as_deref())?;
    if kept.is_empty() {
        return Ok(before.unwrap_or_default());
    }
    let erased =
        Erased { payloads: kept.len() as u64, bytes: kept.iter().map(|payload| payload.bytes).sum() };
    *before = Some(erased);
    payloads::forget(session, &kept)?;
    let (execution, payloads, reason) = (identity.execution.clone(), erased.payloads, reason.clone());
    let event = Event::PayloadsErased { execution, payloads, reason };
    own::record(session, found.tenant, &identity.tenant, &Record { at: *at, actor: actor.clone(), event })?;
    Ok(erased)
}
