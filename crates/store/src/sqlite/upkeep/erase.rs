//! Erasing the payloads of one execution.

use super::super::executions::find;
use super::super::session::WriteSession;
use super::super::{own, payloads};
use rutter_core::journal::event::{Event, EventRecord};
use rutter_core::port::Error;
use rutter_core::port::upkeep::{ErasedTotals, ErasureRequest};

/// Erases payloads and records it. `before` is what an earlier try, whose commit is uncertain, did: if nothing is left
/// to erase, that commit took effect.
pub(super) fn erase(
    session: &mut WriteSession,
    erasure: &ErasureRequest,
    before: &mut Option<ErasedTotals>,
) -> Result<ErasedTotals, Error> {
    let ErasureRequest { identity, entries, actor, at, reason } = erasure;
    let found = find(session, identity)?;
    session.log_holds_erased = true;
    let stored = payloads::of_execution(&session.connection, found.number, entries.as_deref())?;
    if stored.is_empty() {
        return Ok(before.unwrap_or_default());
    }
    let erased =
        ErasedTotals { payloads: stored.len() as u64, bytes: stored.iter().map(|payload| payload.bytes).sum() };
    *before = Some(erased);
    payloads::forget(session, &stored)?;
    let (execution, payloads, reason) = (identity.execution.clone(), erased.payloads, reason.clone());
    let event = Event::PayloadsErased { execution, payloads, reason };
    own::record(session, found.tenant, &identity.tenant, &EventRecord { at: *at, actor: actor.clone(), event })?;
    Ok(erased)
}
